"""A process that only trains: its threads, and what it does with freed memory."""

import platform
import resource
import subprocess
import sys

import pytest

# Blocks as large as gradients, each given back before the next: how many pages come anew. While
# nothing is set, a block that is larger than all before it is mapped by itself and unmapped when it
# is freed; one of a size that was there may stay, if something small happens to lie above it. Huge
# pages are turned off, for with them a block comes in one fault or in thousands as it happens.
FAULTS = """
import ctypes
import resource
import torch
from ezgreedy.running.own_process import prepare_process
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE
{prepare}
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for quarter_megabytes in range(32, 128):
    torch.ones(quarter_megabytes * 2**16)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, torch.get_num_threads())
"""
PAGES = sum(range(32, 128)) * 2**18 // resource.getpagesize()


def faults_and_threads(prepare):
    command = [sys.executable, "-c", FAULTS.format(prepare=prepare)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple(int(word) for word in told.split())


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_freed_memory_is_kept_for_what_is_asked_next():
    untouched, _ = faults_and_threads("")
    kept, threads = faults_and_threads("prepare_process(threads=1)")
    assert untouched > 0.9 * PAGES
    assert kept < untouched / 10
    assert threads == 1
