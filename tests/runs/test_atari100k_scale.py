"""The scale of Atari-100k: every number of the published tables, and what it is not for."""

from dataclasses import replace

import numpy as np
import pytest

from ezgreedy.agents.agent import game_spec
from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
from ezgreedy.agents.rainbow.agent import network_settings
from ezgreedy.agents.rainbow.network import RainbowNetwork
from ezgreedy.agents.rainbow.presets import RAINBOW, RAINBOW_PRESETS
from ezgreedy.cli import main
from ezgreedy.exploration.schedules import Linear
from ezgreedy.games.atari.atari57 import games
from ezgreedy.games.atari.atari100k import published
from ezgreedy.games.protocol import Protocol
from ezgreedy.learning.settings import ATARI_TORSO, Convolution
from ezgreedy.runs.training import Training
from ezgreedy.sweeps.definitions import members, sweeps

torch = pytest.importorskip("torch")


def test_the_scale_is_data_efficient_rainbow_as_published():
    settings = RAINBOW.at_scale("atari100k", "Freeway")
    agent, learner = settings.agent, settings.agent.learner
    assert agent.torso == (Convolution(32, 5, 5), Convolution(64, 5, 5))
    assert agent.hidden_size == 256
    assert not agent.shares_hidden
    assert learner.num_steps == 20
    assert (agent.least_replay, learner.batch_size, agent.steps_per_update) == (1_600, 32, 1)
    assert (learner.learning_rate, learner.adam_epsilon) == (1e-4, 1.5e-4)
    assert learner.largest_gradient_norm == 10.0
    assert agent.sigma0 == 0.1
    assert learner.updates_per_target_sync == 2_000
    assert (agent.num_atoms, agent.least_value, agent.most_value) == (51, -10.0, 10.0)
    assert agent.priority_exponent == 0.5
    assert [agent.importance_exponent(n) for n in (1_600, 100_000)] == [0.4, 1.0]
    assert agent.replay_capacity == 100_000
    assert agent.epsilon == 0.0
    assert settings.frames == 400_000
    assert settings.streams == "separate"


def test_the_game_is_presented_as_in_the_paper_and_evaluated_as_in_the_benchmark():
    settings = RAINBOW.at_scale("atari100k", "Freeway")
    assert settings.protocol == Protocol()  # no sticky actions, minimal set, grey, clipped, lives
    evaluation = settings.evaluation
    assert evaluation.frames_between is None  # the final agent only
    assert evaluation.episodes == 100
    # An episode ends after 27,000 steps, so that this many frames are always enough.
    assert settings.protocol.most_episode_frames == 4 * 27_000
    assert evaluation.frames == 100 * 4 * 27_000


def test_the_network_has_576_features():
    training = Training(replace(RAINBOW.at_scale("atari100k", "Freeway"), lanes=1))
    network = training.agent.learner.online
    assert network.torso.num_features == 576
    hidden = 2 * 2 * (576 * 256 + 256)
    heads = 2 * 4 * 51 * 256 + 4 * 51
    convolutions = 32 * 100 + 32 + 64 * 800 + 64
    assert sum(p.numel() for p in network.parameters()) == convolutions + hidden + heads


@pytest.mark.parametrize("name", RAINBOW_PRESETS)
def test_agents_keep_what_makes_them_differ(name):
    agent = RAINBOW_PRESETS[name].at_scale("atari100k", "Freeway").agent
    preset = RAINBOW_PRESETS[name]
    assert agent.durations == preset.durations
    assert agent.matches_budget == preset.matches_budget
    assert agent.sigma0 == preset.sigma0
    assert agent.bonus_scale == preset.bonus_scale
    if name == "rainbow-cts":
        assert (agent.learner.num_steps, agent.learner.updates_per_target_sync) == (5, 1)
    if name not in ("rainbow", "rainbow-sigma05"):
        assert agent.epsilon == Linear(1.0, 0.01, 5_000, first_step=1_600)
        assert agent.evaluation_epsilon == 0.001


def test_dopamine_s_variant_differs_in_what_its_file_says():
    agent = RAINBOW.at_scale("atari100k-dopamine", "Freeway").agent
    assert agent.torso == ATARI_TORSO
    assert (agent.hidden_size, agent.shares_hidden) == (512, True)
    assert agent.learner.num_steps == 10
    assert agent.learner.largest_gradient_norm is None
    assert not agent.is_noisy_in_evaluation
    assert agent.evaluation_epsilon == 0.001
    assert [agent.importance_exponent(n) for n in (0, 50_000, 100_000)] == [0.5] * 3
    lanes = Training(replace(RAINBOW.at_scale("atari100k", "Freeway"), lanes=1)).lanes
    network = RainbowNetwork(network_settings(agent, game_spec(lanes)), torch.Generator())
    first, second = (stream[0] for stream in network.streams.values())
    assert first is second
    assert first.weight_mean.shape == (512, 3136)


def test_the_published_scores_are_of_the_26_games_and_come_to_what_was_published():
    table = published()
    assert len(table) == 26
    for name, row in table.items():
        assert row.random_score == games()[name].random_score
        assert row.human_score == games()[name].human_score
    der = np.array([row.human_normalised(row.der) for row in table.values()])
    assert np.median(der) == pytest.approx(0.161, abs=5e-4)
    assert der.mean() == pytest.approx(0.285, abs=5e-4)
    assert table["Freeway"].share_of_der(27.9) == 1.0


def test_the_sweep_is_that_of_the_benchmark():
    runs = members(sweeps()["atari100k"])
    assert {run.settings.game for run in runs} == set(published())
    assert {run.settings.agent.name for run in runs} == {"rainbow", "rainbow-eps", "rainbow-ez"}


@pytest.mark.parametrize("agent", R2D2_PRESETS)
def test_r2d2_is_refused_with_what_to_use_instead(agent, tmp_path, capsys):
    for scale in ("atari100k", "atari100k-dopamine"):
        arguments = ["train", agent, "--game", "Freeway", "--scale", scale]
        assert main([*arguments, "--out", str(tmp_path / "run")]) == 2
        said = capsys.readouterr().err
        assert f"--scale must be paper or laptop for {agent} ({scale} is for rainbow" in said
        assert "rainbow-ez" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("scale", ["atari100k", "atari100k-dopamine", "laptop"])
def test_a_misspelt_game_is_named_at_every_scale(scale, tmp_path, capsys):
    arguments = ["train", "rainbow-ez", "--game", "Freway", "--scale", scale]
    assert main([*arguments, "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr()
    assert "game must be one of the 57 Atari games" in told.err
    assert "(did you mean Freeway?); got 'Freway'" in told.err
    assert told.out == ""


@pytest.mark.slow
def test_other_worlds_are_refused_and_games_outside_the_26_are_played_and_said_so(tmp_path, capsys):
    arguments = ["train", "rainbow", "--scale", "atari100k", "--quiet"]
    assert main([*arguments, "--game", "minatar/breakout", "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr()
    assert "--scale must be laptop or paper for minatar/breakout" in told.err
    assert told.out == ""
    few = ["--frames", "40", "--set", "evaluation.frames=40"]
    assert main([*arguments, *few, "--game", "Skiing", "--out", str(tmp_path / "run")]) == 0
    assert "Skiing is not among Atari-100k's 26 games" in capsys.readouterr().out
