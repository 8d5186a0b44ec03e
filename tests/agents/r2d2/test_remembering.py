"""Small and sharp: a cue at the start of an episode pays at its end, for who remembers it."""

import numpy as np
import pytest

from ezgreedy.agents.r2d2.learner import SequenceLearner
from ezgreedy.agents.r2d2.learner_settings import (
    RecurrentNetworkSettings,
    SequenceLearnerSettings,
)
from ezgreedy.replay.sequence_batch import SequenceBatch

NUM_STEPS, SIZE = 6, 32


def episodes(rng, has_cue):
    """Random play: the last action earns 1 if it equals the cue, else −1; nothing else pays."""
    cues = rng.integers(0, 2, SIZE)
    observations = np.zeros((SIZE, NUM_STEPS + 1, 2), dtype=np.float32)
    if has_cue:
        observations[:, 0, 0] = 2 * cues - 1
    observations[:, NUM_STEPS - 1, 1] = 1.0
    actions = rng.integers(0, 2, (SIZE, NUM_STEPS))
    rewards = np.zeros((SIZE, NUM_STEPS), dtype=np.float32)
    rewards[:, -1] = np.where(actions[:, -1] == cues, 1.0, -1.0)
    zeros = np.zeros((SIZE, 24), dtype=np.float32)
    batch = SequenceBatch(
        observations=observations,
        actions=actions,
        rewards=rewards,
        previous_action=np.full(SIZE, -1),
        previous_reward=np.zeros(SIZE, dtype=np.float32),
        state_h=zeros,
        state_c=zeros,
        prefix_lengths=np.zeros(SIZE, dtype=np.int64),
        lengths=np.full(SIZE, NUM_STEPS),
        terminated=np.ones(SIZE, dtype=np.bool_),
        weights=np.ones(SIZE),
        masks=np.zeros((SIZE, NUM_STEPS), dtype=np.uint8),
        behaviour_probabilities=np.full((SIZE, NUM_STEPS), 0.5, dtype=np.float32),
        slots=np.arange(SIZE),
        generations=np.zeros(SIZE, dtype=np.int64),
    )
    return batch, cues


def share_of_right_answers(learner, batch, cues):
    """Of the greedy action in the last observation, after watching the episode."""
    state = learner.online.initial_state(SIZE)
    actions, rewards = batch.previous_action, batch.previous_reward
    for t in range(NUM_STEPS):
        q, state = learner.values(batch.observations[:, t], actions, rewards, state)
        actions, rewards = batch.actions[:, t], batch.rewards[:, t]
    return (q.argmax(axis=1) == cues).mean()


@pytest.mark.parametrize("has_cue", [True, False])
def test_a_cue_is_remembered_if_there_was_one(has_cue):
    network = RecurrentNetworkSettings(
        num_actions=2,
        input_shape=(2,),
        torso=(),
        feature_size=16,
        memory_size=24,
        hidden_size=16,
        largest_pixel=1.0,
    )
    settings = SequenceLearnerSettings(
        learning_rate=3e-3, batch_size=SIZE, burn_in=0, length=NUM_STEPS, updates_per_target_sync=20
    )
    learner, rng = SequenceLearner(network, settings, seed=0), np.random.default_rng(0)
    for _ in range(150):
        learner.update(episodes(rng, has_cue)[0])
    shares = [share_of_right_answers(learner, *episodes(rng, has_cue)) for _ in range(8)]
    assert (np.mean(shares) == 1.0) == has_cue
    assert has_cue or 0.3 < np.mean(shares) < 0.7
