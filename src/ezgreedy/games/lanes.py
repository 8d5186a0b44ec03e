"""Several games stepped together, each with its own random stream.

A lane that finishes an episode begins the next one within the same call, so every action of an
agent is played and no call is a dummy. Such a step has two observations: the one the action
led to, which belongs to the transition, and the first of the new episode, to act on next.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.games.protocol import Frames, Protocol
from ezgreedy.games.registry import make
from ezgreedy.requirements import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class LaneSteps:
    """The results of one action in each lane, one row per lane; see `Step`."""

    observations: Frames  # to act on next: the first of a new episode where one has finished
    next_observations: Frames  # the actions' results; `observations` itself if none finished
    rewards: FloatArray
    clipped_rewards: FloatArray
    discounts: FloatArray
    terminated: BoolArray
    truncated: BoolArray
    lives: IntArray  # at the end of the step, before any new episode
    episode_returns: FloatArray  # raw; where an episode finished, its score
    episode_frames: IntArray

    @property
    def finished(self) -> BoolArray:
        """Where an episode ended, terminated or truncated, and the next one has begun."""
        return self.terminated | self.truncated


class Lanes:
    """A batch of lanes that play the same game.

        lanes = Lanes("Freeway", 8, seed=0)
        observations = lanes.reset()
        steps = lanes.step(actions)

    Args:
        name: the game, as for `make`.
        lanes: number of lanes.
        protocol: the settings; the game's usual ones if None.
        seed: any non-negative int; with the lane's number it determines the lane's stream.
        first_lane: the fleet-wide number of this batch's first lane.
    """

    def __init__(
        self,
        name: str,
        lanes: int,
        protocol: Protocol | None = None,
        *,
        seed: int,
        first_lane: int = 0,
    ) -> None:
        require.integer("lanes", lanes, least=1)
        require.integer("first_lane", first_lane, least=0, most=2**32 - 1 - lanes)
        self.environments = [
            make(name, protocol, rng=lane_rng(seed, first_lane + lane)) for lane in range(lanes)
        ]
        first = self.environments[0]
        self.lanes = lanes
        self.name = name
        self.protocol = first.protocol
        self.num_actions = first.num_actions
        self.frame_shape = first.frame_shape
        self.frame_dtype = first.frame_dtype
        self.observation_shape = first.observation_shape
        self.largest_pixel = first.largest_pixel
        self.shows_objects = first.shows_objects

    def reset(self) -> Frames:
        """Begins an episode in every lane; the first observations, [lanes, …]."""
        return np.stack([environment.reset() for environment in self.environments])

    def step(self, actions: object) -> LaneSteps:
        """Plays one action in every lane; lanes that finish begin their next episode at once."""
        chosen = require.actions("actions", actions, self.lanes, self.num_actions).tolist()
        steps = [
            environment.step(action)
            for environment, action in zip(self.environments, chosen, strict=True)
        ]
        next_observations = np.stack([step.observation for step in steps])
        observations = next_observations
        finished = [lane for lane, step in enumerate(steps) if step.terminated or step.truncated]
        if finished:
            observations = next_observations.copy()
            for lane in finished:
                observations[lane] = self.environments[lane].reset()
        return LaneSteps(
            observations=observations,
            next_observations=next_observations,
            rewards=np.array([step.reward for step in steps]),
            clipped_rewards=np.array([step.clipped_reward for step in steps]),
            discounts=np.array([step.discount for step in steps]),
            terminated=np.array([step.terminated for step in steps]),
            truncated=np.array([step.truncated for step in steps]),
            lives=np.array([step.lives for step in steps], dtype=np.int64),
            episode_returns=np.array([step.episode_return for step in steps]),
            episode_frames=np.array([step.episode_frames for step in steps], dtype=np.int64),
        )

    def state_dict(self) -> dict[str, Any]:
        """The states of all lanes, in order."""
        return {"lanes": [environment.state_dict() for environment in self.environments]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a `state_dict` of the same number of lanes of the same game."""
        states = state.get("lanes") if isinstance(state, Mapping) else None
        if not isinstance(states, list) or len(states) != self.lanes:
            received = f"{len(states)} lanes" if isinstance(states, list) else "something else"
            rule = f"be a state_dict() of {self.lanes} lanes"
            raise require.refuse("state", rule, require.Described(received))
        restores = [
            environment.checked_state(lane_state)
            for environment, lane_state in zip(self.environments, states, strict=True)
        ]
        for restore in restores:
            restore()


def lane_rng(seed: int, lane: int) -> np.random.Generator:
    """The generator of one lane; other seeds or lanes give unrelated ones."""
    require.integer("seed", seed, least=0, most=None)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(lane,)))
