"""Figures 2b and 5 and the paper's tables, drawn from real runs, tiny ones."""

import json
from pathlib import Path

import numpy as np
import pytest

from ezgreedy.cli import main
from ezgreedy.experiments.deep import games as deep_games
from ezgreedy.findings.finding import read_finding
from ezgreedy.findings.paper_tables import PAPER_SCORES
from ezgreedy.findings.training_scores import raw_curves
from ezgreedy.report.markdown_experiment import experiment_page
from ezgreedy.report.study import read_study
from ezgreedy.results.runs import read_run, run_directories
from support.written_runs import write_run

# A few steps of a few lanes, an update, and two evaluations after the first.
TINY = [
    *("--scale", "laptop", "--frames", "600", "--quiet"),
    *("--set", "lanes=2", "--set", "evaluation.lanes=2", "--set", "evaluation.frames=60"),
    *("--set", "evaluation.frames_between=300", "--set", "frames_per_report=300"),
]
SMALL_R2D2 = [
    *("--set", "agent.feature_size=8", "--set", "agent.memory_size=8"),
    *("--set", "agent.hidden_size=8", "--set", "agent.least_windows=4"),
]


def trained(path, agent, game, *options):
    path.mkdir(exist_ok=True)
    out = path / str(len(list(path.iterdir())))
    assert main(["train", agent, "--game", game, "--out", str(out), *TINY, *options]) == 0


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Figure 5's agents on two games of MinAtar and one of Atari."""
    path = tmp_path_factory.mktemp("runs")
    for agent in deep_games.SELECTED_AGENTS:
        trained(path, agent, "minatar/freeway", *SMALL_R2D2)
    for seed in "12":
        trained(path, "r2d2", "minatar/freeway", *SMALL_R2D2, "--seed", seed)
    trained(path, "r2d2-ez", "minatar/breakout", *SMALL_R2D2)
    trained(path, "rainbow-ez", "Venture")
    return path


@pytest.fixture(scope="module")
def judged(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    assert main(["judge", "deep-games", str(runs), "--out", str(out)]) == 0
    return out


def test_figure_5_has_a_panel_for_every_game_that_two_of_its_agents_played(judged):
    (panel,) = read_finding(judged / "deep-games").summary.panels
    assert panel.title == "minatar/freeway"
    assert [curve.label for curve in panel.curves] == list(deep_games.SELECTED_AGENTS)
    of_three_seeds, of_one, _ = panel.curves
    assert of_three_seeds.low is not None
    assert of_one.low is None
    for name in ("selected_games", "every_game_r2d2", "every_game_rainbow"):
        assert (judged / "deep-games" / f"{name}.svg").stat().st_size > 1000
    text = (judged / "deep-games" / "every_game_r2d2.svg").read_text()
    assert "minatar/breakout" in text
    assert "Venture" not in text


def test_curves_are_the_evaluations_of_the_runs(runs, judged):
    own = [read_run(path) for path in run_directories(runs)]
    own = [run for run in own if run.agent == "r2d2" and run.game == "minatar/freeway"]
    assert len(own) == 3
    scores = np.array([[score.mean_return for score in run.scores] for run in own])
    curve = read_finding(judged / "deep-games").summary.panels[0].curves[0]
    assert curve.mean == pytest.approx(scores.mean(axis=0), abs=1e-3)
    assert [round(1e6 * x) for x in curve.x] == [score.frames for score in own[0].scores]


def test_tables_hold_the_paper_s_lines_and_every_game(runs, judged):
    study = read_study(judged)
    (finding,) = study.findings
    text = experiment_page(finding, study)
    for line in PAPER_SCORES:
        assert f"| {line.label} | paper |" in text
    assert "| R2D2+RND | ours | not run |" in text
    assert "| Rainbow+εz-greedy | plumbing check | 600 | 1 | 1 |" in text
    assert "MinAtar: final and best scores over games" in text
    assert text.count("| minatar/freeway | r2d2") == 3
    assert "| minatar/freeway | r2d2 | 600 | 3 |" in text


def test_selected_games_come_first_if_they_were_played(tmp_path):
    runs = [
        write_run(tmp_path / f"{agent}{game}", [(0, 0.0), (10, 1.0)], agent=agent, game=game)
        for agent in ("r2d2", "r2d2-rnd")
        for game in ("Venture", "Alien", "Freeway")
    ]
    summary = deep_games.summarise([read_run(run) for run in runs])
    assert [panel.title for panel in summary.panels] == ["Freeway", "Venture"]
    every = [panel["title"] for panel in summary.data["families"]["r2d2"]]
    assert every == ["Alien", "Freeway", "Venture"]


def test_variants_of_an_agent_are_separate_curves(tmp_path):
    for seed, lanes in enumerate((2, 3)):
        path = tmp_path / str(seed)
        write_run(path, [(0, 0.0), (10, 1.0)], agent="r2d2-ez", lanes=lanes)
    write_run(tmp_path / "other", [(0, 0.0), (10, 1.0)], agent="r2d2")
    summary = deep_games.summarise([read_run(run) for run in sorted(tmp_path.iterdir())])
    labels = [curve.label for curve in summary.panels[0].curves]
    assert labels == ["r2d2", "r2d2-ez (lanes 2)", "r2d2-ez (lanes 3)"]
    assert len({curve.colour for curve in summary.panels[0].curves}) == 3


def test_a_run_that_is_behind_does_not_shorten_the_others(tmp_path):
    write_run(tmp_path / "a", [(0, 0.0), (10, 1.0), (20, 2.0)], seed=0, frames=20)
    write_run(tmp_path / "b", [(0, 2.0), (10, 3.0), (20, 4.0)], seed=1, frames=20)
    write_run(tmp_path / "c", [(0, 9.0), (10, 9.0)], seed=2, frames=20)
    frames, scores = raw_curves([read_run(run) for run in sorted(tmp_path.iterdir())])
    assert frames.tolist() == [0, 10, 20]
    assert scores.tolist() == [[0.0, 2.0], [1.0, 3.0], [2.0, 4.0]]


def test_runs_without_an_evaluation_leave_nothing_to_draw(tmp_path):
    write_run(tmp_path / "run", [(0, 1.0)], agent="r2d2")
    summary = deep_games.summarise([read_run(tmp_path / "run")])
    assert summary.tables == []
    assert deep_games.draw(summary, tmp_path / "out") == []


def test_figure_2b_is_drawn_from_runs_of_a_sweep(tmp_path):
    laws = ("Zeta(2.0, cap=100)", "Geometric(0.8, cap=100)", "Uniform(10)")
    for law in laws:
        options = ["--set", "agent.least_replay=100", "--set", f"agent.durations={law}"]
        trained(tmp_path / "runs", "rainbow-ez", "minatar/freeway", *options)
    assert main(["judge", "deep-durations", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 0
    figure = Path(tmp_path / "deep-durations" / "durations.svg").read_text()
    for family in ("zeta, μ", "exponential, λ", "uniform, N"):
        assert family in figure
    summary = json.loads((tmp_path / "deep-durations" / "summary.json").read_text())
    (table,) = summary["tables"]
    assert [row[1] for row in table["rows"]] == [
        "zeta, μ = 2",
        "exponential, λ = 0.8",
        "uniform, N = 10",
    ]
