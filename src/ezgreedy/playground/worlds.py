"""Which worlds does the playground show, and how does the page know them?

A world is an environment of ours with a greedy action. Those with finitely many states are given to
the page as tables that are read off the environment, so that nothing is defined twice. MountainCar
is given as its constants; the page has its equation of motion once more, and tests compare the two.
"""

from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

import ezgreedy.envs  # noqa: F401 (registers the worlds)
from ezgreedy.analysis.bins import Bins
from ezgreedy.envs import mountain_car
from ezgreedy.envs.finite import FiniteEnv, FiniteModel, finite_model
from ezgreedy.envs.mountain_car import MountainCar

# What a cell looks like: outside the world, floor, an end that pays, an end that does not.
NOTHING, FLOOR, PAYING_END, END = "#.G*"


@dataclass(frozen=True)
class World:
    """A world of the playground.

    Args:
        title: name in the list of worlds.
        about: what it is, in a sentence or two.
        environment: id for `gymnasium.make`.
        greedy: action of the greedy policy, the same in every state.
        greedy_words: what that action does.
        end_words: what the cells are that end an episode and pay nothing; empty if there are none.
        settings: further arguments of `gymnasium.make`.
    """

    title: str
    about: str
    environment: str
    greedy: int
    greedy_words: str
    end_words: str = ""
    settings: dict[str, Any] = field(default_factory=dict)


WORLDS = {
    "open-room": World(
        "Open room",
        "The room of the paper’s Figure 1. The greedy policy walks straight down, and leaving "
        "through the bottom ends the episode.",
        "ezgreedy/GridWorldDown-v0",
        1,
        "down",
        "way out",
    ),
    "corridor": World(
        "Corridor",
        "Forty cells in a row, the goal at the far end. The greedy policy pushes against the wall "
        "behind it.",
        "ezgreedy/Corridor-v0",
        0,
        "left",
    ),
    "four-rooms": World(
        "Four rooms",
        "Narrow doors join four rooms, and the goal lies diagonally across. The greedy policy "
        "goes up.",
        "ezgreedy/FourRooms-v0",
        0,
        "up",
    ),
    "mines": World(
        "Mines",
        "A step onto a mine ends the episode. The paper names such a world as one in which "
        "εz-greedy might do worse. The greedy policy goes up, onto a mine.",
        "ezgreedy/Mines-v0",
        0,
        "up",
        "mine",
    ),
    "deep-sea": World(
        "DeepSea",
        "Every step dives one row, to the left or to the right; only one of 2²⁰ dives finds the "
        "treasure. The greedy policy goes left.",
        "ezgreedy/DeepSea-v0",
        0,
        "left",
        "sea bed",
    ),
    "mountain-car": World(
        "MountainCar",
        "A car too weak to climb the hill must rock itself out of the valley. The map shows its "
        "position and velocity. The greedy policy coasts.",
        "ezgreedy/MountainCarSparse-v0",
        1,
        "coast",
        settings={"first_position": -0.5},
    ),
}


def page_worlds() -> dict[str, dict[str, Any]]:
    """All worlds as the page takes them, as plain data."""
    return {name: _described(world) | _dynamics(world) for name, world in WORLDS.items()}


def _described(world: World) -> dict[str, Any]:
    return {
        "title": world.title,
        "about": world.about,
        "environment": world.environment,
        "settings": world.settings,
        "greedy": world.greedy,
        "greedyWords": world.greedy_words,
        "endWords": world.end_words,
    }


def _dynamics(world: World) -> dict[str, Any]:
    made = gymnasium.make(world.environment, **world.settings)
    env = made.unwrapped
    limit = None if made.spec is None else made.spec.max_episode_steps
    if isinstance(env, FiniteEnv):
        return {"stepLimit": limit} | _table(env)
    assert isinstance(env, MountainCar)
    return {"stepLimit": limit} | _car(env)


def _table(env: FiniteEnv) -> dict[str, Any]:
    """A finite world: where each action leads, and what its cells are."""
    model = finite_model(env)
    return {
        "kind": "table",
        "numActions": env.num_actions,
        "numColumns": env.num_columns,
        "firstState": env.first_state,
        "successors": model.successors.ravel().tolist(),
        "cells": _cells(model),
    }


def _cells(model: FiniteModel) -> str:
    """A character for every state."""
    kinds = np.full(len(model.terminal), NOTHING)
    kinds[model.acting] = FLOOR
    kinds[model.terminal] = END
    paying = model.successors[(model.rewards > 0.0) & model.acting[:, None]]
    kinds[paying] = PAYING_END
    return "".join(kinds)


def _car(env: MountainCar) -> dict[str, Any]:
    """The car's constants, and the bins of its map."""
    bins = Bins.of(env.observation_space)
    return {
        "kind": "car",
        "numActions": mountain_car.NUM_ACTIONS,
        "firstPosition": env.first_position,
        "leastPosition": mountain_car.LEAST_POSITION,
        "mostPosition": mountain_car.MOST_POSITION,
        "mostSpeed": mountain_car.MOST_SPEED,
        "goalPosition": mountain_car.GOAL_POSITION,
        "force": mountain_car.FORCE,
        "gravity": mountain_car.GRAVITY,
        "low": bins.low,
        "high": bins.high,
        "counts": bins.counts,
    }
