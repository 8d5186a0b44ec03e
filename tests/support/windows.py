"""Windows of made-up play, cut as a memory of sequences would, random batches, their learner."""

from dataclasses import replace

import numpy as np
import torch

from ezgreedy.agents.r2d2.learner import SequenceLearner
from ezgreedy.agents.r2d2.learner_settings import (
    RecurrentNetworkSettings,
    ReturnSettings,
    SequenceLearnerSettings,
)
from ezgreedy.agents.r2d2.network import State
from ezgreedy.learning.settings import MINATAR_TORSO
from ezgreedy.replay.sequence_batch import SequenceBatch

# What random batches are for.
NETWORK = RecurrentNetworkSettings(
    num_actions=3,
    input_shape=(4, 10, 10),
    torso=MINATAR_TORSO,
    feature_size=12,
    memory_size=8,
    hidden_size=10,
    largest_pixel=1.0,
)
SETTINGS = SequenceLearnerSettings(
    batch_size=6, burn_in=3, length=5, updates_per_target_sync=3, learning_rate=1e-3
)
VECTORS = replace(NETWORK, input_shape=(6,), torso=())
RETURNS = ReturnSettings(discount=0.9)


def make_learner(network=NETWORK, returns=RETURNS, seed=0, **changes):
    """A small one for random batches; changes are to SETTINGS."""
    return SequenceLearner(network, replace(SETTINGS, **changes), returns, seed=seed)


def random_batch(seed=0, size=6, burn_in=3, length=5, shape=(4, 10, 10), state=(8,), **changes):
    """Windows of all kinds: with short prefixes, short, ended or going on."""
    rng = np.random.default_rng(seed)
    steps = burn_in + length
    observations = rng.integers(0, 2, (size, steps + 1, *shape)).astype(np.uint8)
    if len(shape) == 1:
        observations = rng.normal(size=observations.shape).astype(np.float32)
    lengths = rng.integers(1, length + 1, size)
    lengths[: size // 2] = length
    prefix_lengths = np.resize([burn_in, 0, min(1, burn_in)], size)
    batch = SequenceBatch(
        observations=observations,
        actions=rng.integers(0, 3, (size, steps)),
        rewards=rng.normal(0.0, 2.0, (size, steps)).astype(np.float32),
        previous_action=np.where(prefix_lengths == 0, -1, rng.integers(0, 3, size)),
        previous_reward=np.where(prefix_lengths == 0, 0.0, rng.normal(size=size)).astype(
            np.float32
        ),
        state_h=rng.normal(0.0, 0.3, (size, *state)).astype(np.float32),
        state_c=rng.normal(0.0, 0.3, (size, *state)).astype(np.float32),
        prefix_lengths=prefix_lengths,
        lengths=lengths,
        terminated=rng.random(size) < 0.5,
        weights=rng.uniform(0.2, 1.0, size),
        masks=rng.integers(0, 256, (size, steps)).astype(np.uint8),
        behaviour_probabilities=rng.uniform(0.1, 1.0, (size, steps)).astype(np.float32),
        slots=np.arange(size),
        generations=np.zeros(size, dtype=np.int64),
    )
    return batch._replace(**changes)


class Play:
    """One episode of several lanes: what the actor saw, did and earned, and its Q and states.

    Lists are indexed by time; `states[t]` is the memory before observation t.
    """

    def __init__(self, learner, num_steps, lanes, seed=0):
        rng = np.random.default_rng(seed)
        shape = learner.network_settings.input_shape
        self.observations = rng.integers(0, 2, (num_steps + 1, lanes, *shape)).astype(np.uint8)
        self.actions = rng.integers(0, 3, (num_steps, lanes))
        self.rewards = rng.normal(0.0, 2.0, (num_steps, lanes)).astype(np.float32)
        self.q, self.states = [], [learner.online.initial_state(lanes)]
        actions, rewards = np.full(lanes, -1), np.zeros(lanes, dtype=np.float32)
        for t in range(num_steps + 1):
            q, state = learner.values(self.observations[t], actions, rewards, self.states[t])
            self.q.append(q)
            self.states.append(state)
            if t < num_steps:
                actions, rewards = self.actions[t], self.rewards[t]

    def window(self, start, length, settings, terminated=False, state_lag=0):
        """The windows of all lanes that start there, as a batch; padded places hold rubbish."""
        lanes, burn_in = self.actions.shape[1], settings.burn_in
        first = max(0, start - burn_in)
        batch = random_batch(
            99,
            lanes,
            burn_in,
            settings.length,
            self.observations.shape[2:],
            tuple(self.states[0].h.shape[1:]),
        )
        span = slice(burn_in - (start - first), burn_in + length)
        batch.observations[:, span.start : span.stop + 1] = np.swapaxes(
            self.observations[first : start + length + 1], 0, 1
        )
        batch.actions[:, span] = self.actions[first : start + length].T
        batch.rewards[:, span] = self.rewards[first : start + length].T
        state = State(*(part.numpy() for part in self.states[first + state_lag]))
        return batch._replace(
            previous_action=self.actions[first - 1] if first else np.full(lanes, -1),
            previous_reward=self.rewards[first - 1] if first else np.zeros(lanes, np.float32),
            state_h=state.h,
            state_c=state.c,
            prefix_lengths=np.full(lanes, start - first),
            lengths=np.full(lanes, length),
            terminated=np.full(lanes, terminated),
        )

    def values(self, start, length):
        """What the actor thought over a window and right after it, [T + 1, lanes, actions]."""
        return torch.as_tensor(np.stack(self.q[start : start + length + 1]))


def rubbish(batch, burn_in, seed=1):
    """The same windows with everything else overwritten, the end of a game included."""
    rng = np.random.default_rng(seed)
    unused = ~batch.is_used(burn_in)
    unseen = np.ones((len(unused), unused.shape[1] + 1), dtype=bool)
    unseen[:, :-1] = unused
    unseen[np.arange(len(unused)), burn_in + batch.lengths] = batch.terminated
    observations, actions = batch.observations.copy(), batch.actions.copy()
    is_float = observations.dtype.kind == "f"
    observations[unseen] = np.nan if is_float else 255 - observations[unseen]
    actions[unused] = rng.integers(-(2**40), 2**40, unused.sum())
    floats = {}
    for name in ("rewards", "behaviour_probabilities"):
        floats[name] = np.where(unused, np.float32(np.nan), getattr(batch, name))
    masks = np.where(unused, 255 - batch.masks, batch.masks)
    return batch._replace(observations=observations, actions=actions, masks=masks, **floats)
