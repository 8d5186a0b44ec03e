"""Where deep agents play: Atari, MinAtar and others under one protocol, resumable to the bit.

    from ezgreedy.atari import Lanes
    lanes = Lanes("Freeway", 8, seed=0)

Needs the `deep` extra, MinAtar the `minatar` one; packages are imported when a game is first made.
"""

from ezgreedy.atari.deep_sea import DeepSeaImages
from ezgreedy.atari.emulator import Emulator
from ezgreedy.atari.environment import Environment
from ezgreedy.atari.games import HARD_EXPLORATION, Game, game, games
from ezgreedy.atari.gymnasium_env import GYMNASIUM, GymnasiumImages
from ezgreedy.atari.gymnasium_machine import EnvironmentFault
from ezgreedy.atari.lanes import Lanes, LaneSteps, make
from ezgreedy.atari.memory_chain import MemoryChain
from ezgreedy.atari.minatar import MINATAR, MinAtar
from ezgreedy.atari.palette import colours, expand
from ezgreedy.atari.protocol import R2D2_PROTOCOL, SMALL_WORLD, Protocol, Step

__all__ = [
    "GYMNASIUM",
    "HARD_EXPLORATION",
    "MINATAR",
    "R2D2_PROTOCOL",
    "SMALL_WORLD",
    "DeepSeaImages",
    "Emulator",
    "Environment",
    "EnvironmentFault",
    "Game",
    "GymnasiumImages",
    "LaneSteps",
    "Lanes",
    "MemoryChain",
    "MinAtar",
    "Protocol",
    "Step",
    "colours",
    "expand",
    "game",
    "games",
    "make",
]
