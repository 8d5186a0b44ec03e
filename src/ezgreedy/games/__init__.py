"""Where deep agents play: Atari, MinAtar and others under one protocol, resumable to the bit.

    from ezgreedy.games import Lanes
    lanes = Lanes("Freeway", 8, seed=0)

Needs the `deep` extra, MinAtar the `minatar` one; packages are imported when a game is first made.
"""

from ezgreedy.games.atari.atari57 import HARD_EXPLORATION, Game, game, games
from ezgreedy.games.atari.emulator import Emulator
from ezgreedy.games.atari.palette import colours, expand
from ezgreedy.games.deep_sea_images import DeepSeaImages
from ezgreedy.games.environment import Environment
from ezgreedy.games.family import GameFamily
from ezgreedy.games.gymnasium_images import GYMNASIUM, GymnasiumImages
from ezgreedy.games.gymnasium_machine import EnvironmentFault
from ezgreedy.games.lanes import Lanes, LaneSteps
from ezgreedy.games.memory_chain import MemoryChain
from ezgreedy.games.minatar import MINATAR, MinAtar
from ezgreedy.games.protocol import R2D2_PROTOCOL, SMALL_WORLD, Protocol, Step
from ezgreedy.games.registry import make, register

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
    "GameFamily",
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
    "register",
]
