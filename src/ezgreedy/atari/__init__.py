"""Where images come from: Atari games and MinAtar under one protocol, resumable to the bit.

    from ezgreedy.atari import Lanes
    lanes = Lanes("Freeway", 8, seed=0)

Needs the `deep` extra; the emulators are imported when the first game is made.
"""

from ezgreedy.atari.emulator import Emulator
from ezgreedy.atari.environment import Environment
from ezgreedy.atari.games import HARD_EXPLORATION, Game, game, games
from ezgreedy.atari.lanes import Lanes, LaneSteps, make
from ezgreedy.atari.minatar import MINATAR, MinAtar
from ezgreedy.atari.palette import colours, expand
from ezgreedy.atari.protocol import R2D2_PROTOCOL, Protocol, Step

__all__ = [
    "HARD_EXPLORATION",
    "MINATAR",
    "R2D2_PROTOCOL",
    "Emulator",
    "Environment",
    "Game",
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
