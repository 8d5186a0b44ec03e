"""Where images come from: Atari, MinAtar and Gymnasium under one protocol, resumable to the bit.

    from ezgreedy.atari import Lanes
    lanes = Lanes("Freeway", 8, seed=0)

Needs the `deep` extra, MinAtar the `minatar` one; packages are imported when a game is first made.
"""

from ezgreedy.atari.emulator import Emulator
from ezgreedy.atari.environment import Environment
from ezgreedy.atari.games import HARD_EXPLORATION, Game, game, games
from ezgreedy.atari.gymnasium_env import GYMNASIUM, GymnasiumImages
from ezgreedy.atari.gymnasium_machine import EnvironmentFault
from ezgreedy.atari.lanes import Lanes, LaneSteps, make
from ezgreedy.atari.minatar import MINATAR, MinAtar
from ezgreedy.atari.palette import colours, expand
from ezgreedy.atari.protocol import R2D2_PROTOCOL, Protocol, Step

__all__ = [
    "GYMNASIUM",
    "HARD_EXPLORATION",
    "MINATAR",
    "R2D2_PROTOCOL",
    "Emulator",
    "Environment",
    "EnvironmentFault",
    "Game",
    "GymnasiumImages",
    "LaneSteps",
    "Lanes",
    "MinAtar",
    "Protocol",
    "Step",
    "colours",
    "expand",
    "game",
    "games",
    "make",
]
