"""Scores over suites in the report: numbers by hand, equal terms, and what is missing by name."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ezgreedy.findings.intervals import Interval
from ezgreedy.findings.paper_tables import table_cells
from ezgreedy.findings.training_scores import training_scores
from ezgreedy.games.minatar_scores import minatar_scores
from ezgreedy.report import suite_curves
from ezgreedy.report.deep import deep_study
from ezgreedy.report.markdown import document
from ezgreedy.report.page import page
from ezgreedy.report.study import Study
from ezgreedy.report.suite_scores import lacking, made_by, suite_scores
from ezgreedy.results.runs import Run, Score, read_run, run_directories

BREAKOUT, ASTERIX = "minatar/breakout", "minatar/asterix"


def score_of(game, normalised):
    """The score that is this many times as far above the random agent's as DQN's is."""
    measure = minatar_scores()[game]
    return measure.random_score + normalised * (measure.dqn_score - measure.random_score)


def run(agent, game, seed, *normalised, frames=200, spacing=100, **settings):
    settings |= {"game": game, "seed": seed, "frames": frames, "agent": {"name": agent}}
    scores = [Score(spacing * at, score_of(game, value)) for at, value in enumerate(normalised)]
    return Run(Path(f"{game}-{agent}-{seed}"), settings, "0", scores, [], {})


def agent(name, **by_game):
    return [
        run(name, f"minatar/{game}", seed, 0.0, value / 2, value)
        for game, values in by_game.items()
        for seed, value in enumerate(values)
    ]


EPS = agent("rainbow-eps", breakout=[0.5, 0.7, 0.9], asterix=[1.0, 2.0, 3.0])
EZ = agent("rainbow-ez", breakout=[0.8, 0.8, 0.8], asterix=[4.0, 4.0, 4.0])


def only(runs):
    (found,) = suite_scores(runs)
    return found


def test_a_suite_needs_two_games():
    one_game = agent("rainbow-eps", breakout=[1.0]) + agent("rainbow-ez", breakout=[1.0])
    assert suite_scores(one_game) == []
    outside = [run("rainbow", BREAKOUT, 0, 1.0, frames=0)]
    outside += [
        outside[0].__class__(
            **{**vars(outside[0]), "settings": {**outside[0].settings, "game": "memory_chain/30"}}
        )
    ]
    assert suite_scores(outside) == []


def test_of_two_runs_evaluated_differently_the_longer_counts():
    often, rarely = {"evaluation": {"frames_between": 50}}, {"evaluation": {"frames_between": 100}}
    short = run("rainbow-eps", BREAKOUT, 0, 0.0, 9.0, frames=50, spacing=50, **often)
    long = [replace(one, settings={**one.settings, **rarely}) for one in EPS]
    for runs in ([short, *long], [*long, short]):
        found = only(runs)
        assert found.rows == only(long).rows
        (reason,) = [told for told in lacking(found) if told.startswith("not counted, shorter")]
        assert lacking(found)[reason] == "rainbow-eps on minatar/breakout, seed 0"


def test_numbers_are_those_that_a_hand_computes():
    found = only(EPS)
    (row,) = found.rows
    assert found.frames == {"rainbow-eps": 200}
    assert found.played == (ASTERIX, BREAKOUT)
    assert row.ours.final.median.value == pytest.approx((0.7 + 2.0) / 2)
    assert row.ours.final.mean.value == pytest.approx((0.7 + 2.0) / 2)
    assert row.ours.final.human_gap.value == pytest.approx(1 - (0.7 + 1.0) / 2)
    assert row.paper is None, "the paper's numbers are of other games"
    assert found.comparison is None, "there is nobody to compare with"


def test_missing_games_and_runs_are_named():
    found = only([entry for entry in EPS if (entry.game, entry.seed) != (ASTERIX, 2)])
    assert lacking(found) == {
        "rainbow-eps": "all games but minatar/asterix, minatar/breakout; minatar/asterix seed 2; "
        "minatar/breakout seed 2 (not used)"
    }
    most = [
        run("rainbow-eps", f"minatar/{name}", 0, 1.0, 2.0, 3.0)
        for name in ("asterix", "breakout", "freeway")
    ]
    assert lacking(only(most)) == {"rainbow-eps": "minatar/seaquest, minatar/space_invaders"}


def test_runs_that_were_looked_at_more_or_less_often_are_of_one_agent():
    rarely = [run("rainbow-eps", ASTERIX, seed, 0.0, 1.0, evaluation={}) for seed in range(3)]
    often = [
        run("rainbow-eps", BREAKOUT, seed, 0.0, 1.0, evaluation={"frames": 10}) for seed in range(3)
    ]
    assert list(only(rarely + often).agents) == ["rainbow-eps"]


def test_runs_that_were_looked_at_in_another_way_are_of_other_agents():
    entries = [
        run("rainbow-eps", game, 0, 0.0, 1.0, evaluation={"frames": at, "epsilon": epsilon})
        for at, (game, epsilon) in enumerate([(ASTERIX, 0.0), (BREAKOUT, 0.0), (BREAKOUT, 0.1)])
    ]
    names = ["rainbow-eps (epsilon 0.0)", "rainbow-eps (epsilon 0.1)"]
    assert list(only(entries).agents) == names
    with pytest.raises(ValueError, match="differ in evaluation"):
        training_scores([entries[0], entries[2]])


def test_the_runs_that_come_with_the_repository_are_of_one_kind_for_each_agent():
    kept = Path(__file__).parents[2] / "results" / "deep"
    runs = [read_run(path) for path in run_directories(kept)]
    (minatar,) = (found for found in suite_scores(runs) if found.suite.slug == "minatar")
    assert [*minatar.agents] == sorted({run.agent for run in runs if "minatar/" in run.game})


def test_agents_are_compared_on_games_and_frames_that_all_have():
    longer = [run("rainbow-ez", ASTERIX, seed, 0.0, 2.0, 9.0, 99.0, frames=300) for seed in (0, 1)]
    longer += [run("rainbow-ez", BREAKOUT, seed, 0.0, 0.4, 0.8, 9.9, frames=300) for seed in (0, 1)]
    longer += [run("rainbow-ez", "minatar/freeway", 0, 0.0, 0.0, 0.0, 0.0, frames=300)]
    equal = only(EPS + longer).comparison
    assert equal.frames == 200
    assert equal.games == (ASTERIX, BREAKOUT)
    # Always ahead on Asterix; on Breakout 0.8 beats 0.5 and 0.7, not 0.9. Two seeds: no interval.
    assert equal.better["rainbow-ez", "rainbow-eps"] == pytest.approx((1 + 2 / 3) / 2)
    assert equal.standings["rainbow-ez"].num_seeds == 2, "Freeway, which has one, is no part of it"
    assert equal.standings["rainbow-eps"].num_seeds == 3


def test_agents_that_are_evaluated_at_other_frames_are_compared_where_both_are():
    def evaluated(agent, frames):
        settings = {"seed": 0, "frames": frames[-1], "agent": {"name": agent}}
        return [
            Run(
                Path(f"{game}-{agent}"),
                {**settings, "game": game},
                "0",
                [Score(at, score_of(game, at / 100_000)) for at in frames],
                [],
                {},
            )
            for game in (BREAKOUT, ASTERIX)
        ]

    short = evaluated("rainbow-eps", (0, 200_000, 400_000, 500_000))
    long = evaluated("rainbow-ez", (0, 200_000, 400_000, 600_000, 800_000, 1_000_000))
    found = only(short + long)
    assert found.frames == {"rainbow-eps": 500_000, "rainbow-ez": 1_000_000}
    assert found.comparison.frames == 400_000
    means = [standing.interquartile_mean for standing in found.comparison.standings.values()]
    assert means == pytest.approx([4.0, 4.0])
    assert only(short + evaluated("rainbow-ez", (0, 300_000))).comparison is None


FOUR = {game: [1.0, 2.0, 3.0] for game in ("asterix", "breakout", "freeway", "seaquest")}


def test_an_agent_with_few_games_does_not_decide_on_which_others_are_compared():
    few = agent("r2d2", breakout=[9.0], freeway=[9.0])
    whole = [
        own for name in ("rainbow", "rainbow-eps", "rainbow-ez") for own in agent(name, **FOUR)
    ]
    found = only(whole + few)
    equal = found.comparison
    assert equal.games == tuple(f"minatar/{game}" for game in FOUR)
    assert list(equal.standings) == ["rainbow", "rainbow-eps", "rainbow-ez"]
    assert {standing.num_seeds for standing in equal.standings.values()} == {3}
    assert {label for pair in equal.better for label in pair} == {*equal.standings}
    assert equal.left_out == {"r2d2": "2 of these games"}
    text = document(Study([], [], deep_study(whole + few), [found]))
    assert "Left out: r2d2 (2 of these games)." in text


def test_an_agent_on_other_games_hinders_no_comparison():
    apart = agent("r2d2", seaquest=[1.0])
    equal = only(EPS + EZ + apart).comparison
    assert list(equal.standings) == ["rainbow-eps", "rainbow-ez"]
    assert equal.left_out == {"r2d2": "none of these games"}
    assert only(EPS + apart).comparison is None


def test_of_equally_many_cells_those_with_more_games_are_compared():
    # Two agents on four games are as many cells as four agents on two.
    two = [own for name in ("rainbow", "rainbow-eps") for own in agent(name, **FOUR)]
    others = [
        own
        for name in ("r2d2", "r2d2-ez")
        for own in agent(name, breakout=[1.0] * 3, freeway=[1.0] * 3)
    ]
    assert list(only(two + others).comparison.standings) == ["rainbow", "rainbow-eps"]
    more = agent("r2d2-rnd", breakout=[1.0], freeway=[1.0])
    assert len(only(two + others + more).comparison.standings) == 5


def test_an_agent_without_an_evaluation_at_the_frames_of_others_is_left_out():
    odd = [run("r2d2", game, 0, 0.0, 1.0, spacing=130) for game in (BREAKOUT, ASTERIX)]
    equal = only(EPS + EZ + odd).comparison
    assert (equal.frames, list(equal.standings)) == (200, ["rainbow-eps", "rainbow-ez"])
    assert equal.left_out == {"r2d2": "not evaluated at 200 frames"}


def test_runs_without_an_evaluation_after_frame_0_count_nowhere_and_are_named():
    fresh = [run("r2d2", ASTERIX, 0, 9.0), run("rainbow-ez", BREAKOUT, 3, 9.0)]
    found, whole = only(EPS + EZ + fresh), only(EPS + EZ)
    assert found.frames == whole.frames
    assert found.comparison.frames == 200
    assert found.comparison.left_out == {}
    assert table_cells(found.rows) == table_cells(whole.rows)
    assert {**lacking(found), **lacking(whole)} == lacking(found)
    assert lacking(found)["not counted, without an evaluation after frame 0"] == (
        "r2d2 on minatar/asterix, seed 0; rainbow-ez on minatar/breakout, seed 3"
    )


def test_runs_that_were_not_evaluated_at_the_frames_of_their_line_are_named():
    odd = [run("rainbow-eps", BREAKOUT, 0, 0.0, 1.0, spacing=130)]
    asterix = [entry for entry in EPS if entry.game == ASTERIX]
    words = lacking(only(odd + asterix))["rainbow-eps"]
    assert words.endswith(
        "but minatar/asterix; no evaluation at 200 frames: minatar/breakout seed 0"
    )


def twice(runs):
    """Every run once more, as another seed: six seeds, enough for intervals."""
    again = [replace(run, settings={**run.settings, "seed": run.seed + 3}) for run in runs]
    return [*runs, *again]


def test_intervals_over_games_need_five_seeds():
    equal = only(EPS + EZ).comparison
    assert isinstance(equal.standings["rainbow-ez"].interquartile_mean, float)
    equal = only(twice(EPS + EZ)).comparison
    assert isinstance(equal.standings["rainbow-ez"].interquartile_mean, Interval)


def test_both_ways_round_probabilities_add_up_to_one():
    equal = only(twice(EPS + EZ)).comparison
    one, other = (
        equal.better[pair]
        for pair in (("rainbow-ez", "rainbow-eps"), ("rainbow-eps", "rainbow-ez"))
    )
    assert isinstance(one, Interval)
    assert one.value + other.value == pytest.approx(1)
    assert one.low + other.high == pytest.approx(1)
    assert ("rainbow-ez", "rainbow-ez") not in equal.better


def test_the_middle_half_of_the_runs_decides_the_interquartile_mean():
    equal = only(EPS + EZ).comparison
    assert equal.standings["rainbow-eps"].interquartile_mean == pytest.approx(
        np.mean([0.7, 0.9, 1.0, 2.0])
    )


def test_other_settings_are_other_agents():
    wide = [run("rainbow-ez", game, 0, 0.0, 0.0, 1.0, lanes=8) for game in (BREAKOUT, ASTERIX)]
    narrow = [run("rainbow-ez", game, 0, 0.0, 0.0, 3.0, lanes=2) for game in (BREAKOUT, ASTERIX)]
    found = only(wide + narrow)
    assert set(found.agents) == {"rainbow-ez (lanes 8)", "rainbow-ez (lanes 2)"}
    medians = {row.label: row.ours.final.median.value for row in found.rows}
    assert medians == {
        "rainbow-ez (lanes 8)": pytest.approx(1.0),
        "rainbow-ez (lanes 2)": pytest.approx(3.0),
    }


def test_runs_under_way_are_scored_as_far_as_all_have_come():
    half = [run("rainbow", game, 0, 0.0, 1.0) for game in (BREAKOUT, ASTERIX)]
    assert only(half).frames == {"rainbow": 100}


def test_curves_are_of_the_statistics_at_every_evaluation():
    blocks = [panel.as_json() for panel in suite_curves.panels(only(twice(EPS + EZ)))]
    titles = [block["title"] for block in blocks]
    assert titles[:3] == [f"MinAtar: {name} over games" for name in ("median", "mean", "DQN-gap")]
    assert titles[3].startswith("MinAtar: performance profile at 200 frames, 2 games")
    eps, ez = blocks[0]["series"]
    assert (eps["label"], ez["label"]) == ("rainbow-eps, 2 games", "rainbow-ez, 2 games")
    assert eps["x"] == [0, 0.0001, 0.0002]
    assert eps["mean"] == pytest.approx([0.0, 1.35 / 2, 1.35], abs=1e-9)
    assert ez["low"] == pytest.approx(ez["mean"], abs=1e-3), "all seeds of it are alike"
    assert eps["low"][-1] < 1.35 < eps["high"][-1]
    profile = blocks[3]["series"][1]
    above_one = np.searchsorted(profile["x"], 1.0)
    assert profile["mean"][0] == 1
    assert profile["mean"][above_one] == 0.5


def test_where_the_scores_that_become_0_and_1_are_from_is_told():
    text = document(Study([], [], deep_study(EPS), [only(EPS)]))
    assert "Random scores are our own, means of 500 episodes of minatar 1.0.15." in text
    assert "Young and Tian (2019), 30 seeds, read off their figure to about 5 %" in text
    for game, measure in minatar_scores().items():
        assert f"| {game} | {measure.random_score:g} | {measure.dqn_score:g} |" in text
    drawn = page(Study([], [], deep_study(EPS), [only(EPS)]))
    assert "Random scores are our own, means of 500 episodes of minatar 1.0.15." in drawn
    assert '<th scope="row">minatar/freeway</th><td>0.126</td><td>48</td>' in drawn


def test_runs_of_several_versions_of_the_code_are_told_as_such():
    assert made_by(only(EPS)) == ""
    committed = [replace(entry, manifest={"commit": "abc1234"}) for entry in EZ]
    found = only([*EPS[1:], *committed, replace(EPS[0], version="0.2")])
    told = "Made by 3 versions of the code: 0, commit abc1234 (6 runs); 0 (5 runs); 0.2 (1 run)."
    assert made_by(found) == told
    study = Study([], [], deep_study(EPS), [found])
    assert told in document(study)
    assert f"<p>{told}</p>" in page(study)


def test_few_frames_of_atari_do_not_stand_beside_the_paper():
    games = {"Pong": 21.0, "Breakout": 100.0}
    runs = []
    for name, value in games.items():
        settings = {"game": name, "seed": 0, "frames": 100, "agent": {"name": "rainbow-ez"}}
        runs.append(Run(Path(name), settings, "0", [Score(100, value)], [], {}))
    found = only(runs)
    cells = table_cells(found.rows)
    paper, absent, ours = (row for row in cells if row[0] == "Rainbow+εz-greedy")
    assert paper[2:6] == ("200M", "57", "5", "2.30")
    assert absent[1:3] == ("ours", "not run")
    assert ours[1:5] == ("plumbing check", "100", "2", "1")
    assert "Zaxxon" in ours[-1]
    assert [row[2] for row in cells if row[:2] == ("R2D2", "ours")] == ["not run"]
    text = document(Study([], [], deep_study(runs), [found]))
    assert "## Atari-57: scores over games" in text
    assert "those of dqn_zoo's atari_data.py" in text
    assert "becomes 0" not in text, "there are too many games to list"
    assert "| " + " | ".join(ours[:-1]) + " |" in text
    assert "- Rainbow+εz-greedy: all games but Breakout, Pong" in text
