"""Whoever is ended from within, without a chance to say so, is spoken for."""

import subprocess
import sys

import pytest

CODE = """
import os, signal, sys
from ezgreedy.fleet.last_words import LastWords

words = LastWords()
{end}
"""
ENDS = {
    "leaves at once": ("os._exit(1)", True),
    "is killed": ("os.kill(os.getpid(), signal.SIGKILL)", True),
    "says farewell": ("words.withdraw()", False),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_process_is_spoken_for_if_it(end):
    code, speaks = ENDS[end]
    ended = subprocess.run(
        [sys.executable, "-c", CODE.format(end=code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ("Ray ended this process, or it was killed" in ended.stderr) == speaks
    assert ended.stderr.count("\n") == speaks
