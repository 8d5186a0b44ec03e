"""A process that only trains: its threads, and what it does with freed memory."""

import platform
import subprocess
import sys

import pytest

# How far the process's own memory has grown after a block as large as gradients came and went.
GROWTH = """
import re
from pathlib import Path
import torch
from ezgreedy.runs.process_setup import prepare_process

def own_bytes():
    return 1024 * int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

prepare_process(threads=1)
before = own_bytes()
torch.ones({size} // 4)
print(own_bytes() - before, torch.get_num_threads())
"""
SIZE = 24 * 2**20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_freed_memory_stays_with_a_process_of_the_threads_asked_for():
    command = [sys.executable, "-c", GROWTH.format(size=SIZE)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    growth, threads = map(int, told.split())
    assert growth > SIZE / 2  # nothing if it is given back
    assert threads == 1
