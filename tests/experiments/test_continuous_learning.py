"""How the comparison of noises with SB3's TD3 is judged; tests/adapters trains with SB3 itself."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from ezgreedy import ColouredNoise, HeldNoise, WhiteNoise, Zeta
from ezgreedy.experiments import registry
from ezgreedy.experiments.beyond import continuous_learning
from ezgreedy.experiments.experiment import Record

ID = "beyond-continuous-learning"
SETTINGS = {**continuous_learning.SETTINGS, "num_evaluations": 4}
OFFSETS = (0.0, 3.0, -1.0, 2.0, 5.0)  # one for each seed


def summary_of(levels, spread=1.0):
    """Every noise has its level; seeds differ by offsets, those of held noise by more."""
    records = []
    for noise, level in levels.items():
        for seed, offset in enumerate(OFFSETS):
            own = offset * (spread if noise == "held" else 1.0)
            result = {
                "evaluations": [level + own, level + own, level, level + 4.0],
                "training_return": level,
                "first_goal": None if seed == 0 else 1000 * seed,
            }
            records.append(Record(noise, {}, seed, result))
    return continuous_learning.summarise(SETTINGS, records)


def sides(levels):
    return [claim.readings["as stated"] for claim in summary_of(levels).claims]


def test_it_is_run_only_when_it_is_named():
    assert ID in registry.experiments()
    assert ID not in [experiment.id for experiment in registry.find([])]


def test_lasting_noise_must_earn_more_than_white_noise():
    assert sides({"white": 0.0, "pink": 20.0, "held": 30.0}) == ["holds"] * 3
    assert sides({"white": 0.0, "pink": -1.0, "held": -1.0})[:2] == ["contradicted"] * 2


def test_held_noise_may_cost_ten_points_against_pink_noise():
    assert sides({"white": 0.0, "pink": 50.0, "held": 41.0})[2] == "holds"
    assert sides({"white": 0.0, "pink": 50.0, "held": 39.0})[2] == "contradicted"


def test_seeds_are_paired():
    claim = summary_of({"white": 0.0, "pink": 0.0, "held": 1.0}, spread=2.0).claims[0]
    white = [0.5 * offset + 1.0 for offset in OFFSETS]
    held = [offset + 2.0 for offset in OFFSETS]
    expected = ttest_rel(held, white).confidence_interval()
    interval = claim.numbers["held − white, mean evaluation"]
    assert interval[1:] == pytest.approx((expected.low, expected.high))


def test_noises_have_equal_power_and_the_paper_s_law():
    noises = {
        name: continuous_learning.noise_of({**SETTINGS, "noise": name}, seed=3)
        for name in continuous_learning.NOISES
    }
    assert [type(noise) for noise in noises.values()] == [WhiteNoise, ColouredNoise, HeldNoise]
    assert all(noise.scale.tolist() == [0.5] for noise in noises.values())
    assert noises["pink"].length == 999
    law = Zeta(2.0, 10_000)
    same = HeldNoise(1, 0.5, law, seed=3)
    for _ in range(200):
        np.testing.assert_array_equal(noises["held"](), same())


def test_the_figure_is_drawn(tmp_path):
    files = continuous_learning.draw(
        SETTINGS, summary_of({"white": 0.0, "pink": 1.0, "held": 2.0}), tmp_path
    )
    assert [file.name for file in files] == ["evaluations.png", "evaluations.svg"]
    assert all(file.stat().st_size > 5000 for file in files)
