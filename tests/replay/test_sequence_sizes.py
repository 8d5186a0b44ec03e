"""Sizes foretold against the arrays themselves, and budgets of bytes that are too small."""

from dataclasses import replace

import numpy as np
import pytest

from ezgreedy.agents.agent import GameSpec
from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
from ezgreedy.agents.r2d2.roles import require_replay_bytes, sequence_replay
from ezgreedy.replay.blocks import BlockCodec
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.replay.sequence_replay import SequenceReplay
from ezgreedy.replay.sequence_sizes import sequence_sizes

CODES = GameSpec(18, (1, 210, 160), 1, 255.0, np.dtype(np.uint16))
PLANES = GameSpec(6, (4, 10, 10), 1, 1.0)
VECTORS = GameSpec(2, (5,), 1, 1.0, np.dtype(np.float32))


def array_bytes(value):
    """The bytes of all arrays of a replay, but not of its codec, which has a size of its own."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(map(array_bytes, value.values()))
    if isinstance(value, (BlockCodec, np.random.Generator)) or not hasattr(value, "__dict__"):
        return 0
    return array_bytes(vars(value))


@pytest.mark.parametrize(
    ("game", "spec"), [("Pong", CODES), ("minatar/breakout", PLANES), ("memory_chain/9", VECTORS)]
)
@pytest.mark.parametrize(
    ("agent", "changes"),
    [
        ("r2d2", {}),
        ("r2d2", {"replay_bytes_per_observation": 300}),
        ("r2d2-bootstrap", {}),
        ("r2d2-bootstrap", {"shares_memory": True}),
    ],
)
def test_the_memory_that_is_foretold_is_that_of_the_arrays(agent, changes, game, spec):
    preset = replace(R2D2_PRESETS[agent].at_scale("laptop", game).agent, **changes)
    actual = array_bytes(sequence_replay(preset, spec, seed=0))
    assert preset.replay_bytes(spec.frame_shape) == pytest.approx(actual, rel=0.01)


def test_heads_of_their_own_memory_take_their_share_at_the_papers_size():
    shape = (1, 210, 160)
    plain, heads = (R2D2_PRESETS[name].replay_bytes(shape) for name in ("r2d2", "r2d2-bootstrap"))
    assert heads - plain == 100_000 * 7 * 2 * 4 * 512  # windows, heads, halves, bytes, units


def test_more_bytes_for_observations_are_foretold_and_set_aside():
    cut = SequenceSettings()
    usual = sequence_sizes(40_000, cut, 67_200, 512)
    more = sequence_sizes(40_000, cut, 67_200, 512, 1700)
    assert more.num_bytes - usual.num_bytes == 40_000 * 1000
    # But never more than observations can take.
    small = sequence_sizes(40_000, cut, 100, 512, 1700)
    assert small == sequence_sizes(40_000, cut, 100, 512)


def test_budgets_that_may_not_hold_a_window_are_refused_with_the_least_that_does():
    codec = BlockCodec((1, 210, 160), np.uint16)
    rng = np.random.default_rng(0)
    message = r"^bytes_per_observation must be at least \d+; got 100$"
    with pytest.raises(ValueError, match=message) as refusal:
        SequenceReplay(40_000, codec, bytes_per_observation=100, rng=rng)
    least = int(str(refusal.value).split("at least ")[1].split(";")[0])
    with pytest.raises(ValueError, match=r"^bytes_per_observation must"):
        SequenceReplay(40_000, codec, bytes_per_observation=least - 1, rng=rng)
    SequenceReplay(40_000, codec, bytes_per_observation=least, rng=rng)
    SequenceReplay(400, codec, rng=rng)  # the usual number needs no thought
    with pytest.raises(ValueError, match=r"^bytes_per_observation must be at least 21; got 0"):
        SequenceReplay(400_000, codec, bytes_per_observation=0, rng=rng)


def test_agents_refuse_them_by_the_name_of_the_setting():
    preset = replace(R2D2_PRESETS["r2d2"], replay_capacity=400_000, replay_bytes_per_observation=80)
    with pytest.raises(
        ValueError, match=r"^replay_bytes_per_observation must be at least 84; got 80$"
    ):
        sequence_replay(replace(preset, replay_capacity=100_000, least_windows=1), CODES, seed=0)
    require_replay_bytes(preset, CODES)
    with pytest.raises(
        ValueError, match=r"^replay_bytes_per_observation must be at least 84; got 80$"
    ):
        require_replay_bytes(preset, CODES, num_shards=4)
