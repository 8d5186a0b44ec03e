"""What goes wrong in a process of its own: an environment that breaks, and a disk that is full."""

import errno
import os
import sys
from pathlib import Path

import gymnasium

from support.signals import Signals

BREAKS_AT = 100
MARK = "broken"  # breaks as long as a file of this name is in the working directory


class Unopenable(type(Path())):
    """A file for which there is no room in its directory."""

    def open(self, *arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))


class Burning(Signals):
    """Signals with a lamp that burns out."""

    _num_steps = 0

    def step(self, action):
        self._num_steps += 1
        if self._num_steps > BREAKS_AT and Path(MARK).exists():
            raise RuntimeError("the lamp burned out")
        return super().step(action)


gymnasium.register("Burning-v0", Burning)


def fill_up():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "replay")


def break_down():
    raise RuntimeError("the lamp burned out")


def talk():
    sys.stderr.write("a word\n")
    sys.stderr.flush()


def vanish():
    os._exit(7)
