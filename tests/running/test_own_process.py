"""A process that only trains: its threads, and what it does with freed memory."""

import platform
import subprocess
import sys

import pytest

# Blocks as large as a gradient, given back and asked for again: how many pages come anew. Huge
# pages are turned off, for with them a block comes in one fault or in thousands as it happens.
FAULTS = """
import ctypes
import resource
import torch
from ezgreedy.running.own_process import prepare_process
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE
{prepare}
def fill():
    return [torch.ones(5_000_000) for _ in range(4)]
for _ in range(3):  # until every block has found its place
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
