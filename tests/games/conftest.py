import ale_py
import numpy as np
import pytest
from ale_py import roms

from ezgreedy.games import Emulator, Protocol, game

PLAYED = ["Pong", "Breakout", "Freeway", "MontezumaRevenge"]


@pytest.fixture(params=PLAYED)
def name(request):
    """Each of a few games with little in common."""
    return request.param


@pytest.fixture
def raw_machine():
    """Makes bare emulators, set up here independently of the package."""

    def make(name, is_begun=True):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        machine = ale_py.ALEInterface()
        machine.setInt("frame_skip", 1)
        machine.setFloat("repeat_action_probability", 0.0)
        machine.loadROM(roms.get_rom_path(game(name).rom))
        if is_begun:
            machine.reset_game()
        return machine

    return make


@pytest.fixture
def emulator():
    """Makes games without no-ops, unless they are asked for."""

    def make(name, seed=0, **settings):
        protocol = Protocol(**{"most_noop_frames": 0, **settings})
        return Emulator(name, protocol, rng=np.random.default_rng(seed))

    return make
