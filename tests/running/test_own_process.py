"""A process that only trains: its threads, and what it does with freed memory."""

import platform
import subprocess
import sys

import pytest

# Blocks as large as a gradient, given back and asked for again: how many pages come anew.
FAULTS = """
import resource
import torch
from ezgreedy.running.own_process import prepare_process
{prepare}
def fill():
    return [torch.ones(5_000_000) for _ in range(4)]
fill()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    fill()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, torch.get_num_threads())
"""


def faults_and_threads(prepare):
    command = [sys.executable, "-c", FAULTS.format(prepare=prepare)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple(int(word) for word in told.split())


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_freed_memory_is_kept_for_what_is_asked_next():
    untouched, _ = faults_and_threads("")
    kept, threads = faults_and_threads("prepare_process(threads=1)")
    assert kept < untouched / 10
    assert threads == 1
