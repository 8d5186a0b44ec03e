import numpy as np
import pytest

from ezgreedy.findings.paper_tables import (
    HEADER,
    PAPER_GAMES,
    PAPER_SCORES,
    atari57_table,
    table_cells,
)
from ezgreedy.findings.scores import Reference, scores_of
from ezgreedy.findings.training_scores import TrainingScores
from ezgreedy.games.atari.atari57 import games


def rng():
    return np.random.default_rng(0)


def at_level(level, left_out=(), seeds=3):
    """Scores that are this many times human in every game, ± 0.1 over seeds."""
    spread = np.linspace(-0.1, 0.1, seeds) if seeds > 1 else [0.0]
    return scores_of(
        (name, seed, game.random_score + x * (game.human_score - game.random_score))
        for name, game in games().items()
        if name not in left_out
        for seed, x in enumerate(level + np.asarray(spread))
    )


def trained(final=0.5, best=2.0, frames=10**6, **kwargs):
    return TrainingScores(frames, at_level(final, **kwargs), at_level(best, **kwargs))


def test_the_papers_tables_are_whole():
    """Sums over the columns of the paper's table, so that no digit is misread unseen."""
    assert len(PAPER_SCORES) == len({line.agent for line in PAPER_SCORES}) == 8
    columns = np.array([line[4:] for line in PAPER_SCORES])
    np.testing.assert_allclose(columns[:4].sum(axis=0), [61.97, 159.57, 0.426, 75.68, 184.20])
    np.testing.assert_allclose(columns[4:].sum(axis=0), [8.32, 33.99, 0.562, 9.59, 44.37])
    assert len(games()) == PAPER_GAMES


def test_in_the_paper_ez_is_best_by_median_and_gap_and_best_is_above_final():
    for family in (PAPER_SCORES[:4], PAPER_SCORES[4:]):
        assert max(family, key=lambda line: line.median).agent.endswith("-ez")
        assert min(family, key=lambda line: line.human_gap).agent.endswith("-ez")
    assert all(line.best_median > line.median for line in PAPER_SCORES)
    assert all(line.best_mean > line.mean for line in PAPER_SCORES)


def test_the_agents_are_ours_by_name():
    from ezgreedy.figures.colours import AGENT_COLOURS

    control = {"rainbow-ez-budget"}  # ours, not the paper's
    assert {line.agent for line in PAPER_SCORES} == set(AGENT_COLOURS) - control


def test_agents_that_were_not_run_say_so():
    rows = atari57_table({}, rng=rng())
    assert [row.agent for row in rows] == [line.agent for line in PAPER_SCORES]
    cells = table_cells(rows)
    assert len(cells) == 16
    assert cells[0] == (
        *("R2D2", "paper", "30B", "57", "3", "16.44", "39.55", "0.102", "19.36", "46.98", ""),
    )
    assert cells[1] == ("R2D2", "ours", "not run", *["–"] * 7, "")
    assert {len(row) for row in cells} == {len(HEADER)}


def test_ours_stand_below_the_papers_with_their_own_frames_games_and_seeds():
    scores = trained(seeds=5, frames=200 * 10**6)
    cells = table_cells(atari57_table({"rainbow-ez": scores}, rng=rng()))
    paper, ours = cells[-2:]
    assert paper[:5] == ("Rainbow+εz-greedy", "paper", "200M", "57", "5")
    assert ours[:5] == ("Rainbow+εz-greedy", "ours", "200M", "57", "5")
    told = dict(zip(HEADER, ours, strict=True))
    assert told["median"].startswith("0.50 [")
    assert told["mean"].startswith("0.50 [0.4")
    assert told["human-gap"].startswith("0.500 [0.4")
    assert told["median (best)"].startswith("2.00 [")
    assert told["mean (best)"].startswith("2.00 [")
    assert told["missing"] == ""


@pytest.mark.parametrize(("seeds", "frames"), [(5, 10**6), (4, 200 * 10**6)])
def test_fewer_frames_or_seeds_than_the_papers_are_a_plumbing_check_apart(seeds, frames):
    rows = atari57_table({"rainbow": trained(seeds=seeds, frames=frames)}, rng=rng())
    cells = table_cells(rows)
    assert [row[:3] for row in cells if row[0] == "Rainbow"][:2] == [
        ("Rainbow", "paper", "200M"),
        ("Rainbow", "ours", "not run"),
    ]
    assert cells[-1][:2] == ("Rainbow", "plumbing check")
    assert cells[-1][3:5] == ("57", str(seeds))
    assert len(cells) == 17


def test_what_is_missing_stands_in_the_row():
    ours = {"r2d2": trained(left_out=("Pong", "Venture"), frames=30 * 10**9)}
    row = atari57_table(ours, rng=rng())[0]
    assert row.ours.final.num_games == 55
    told = dict(zip(HEADER, table_cells([row])[1], strict=True))
    assert (told["games"], told["missing"]) == ("55", "Pong, Venture")


def test_too_few_seeds_have_no_interval():
    rows = atari57_table({"rainbow": trained(seeds=1, frames=250_000)}, rng=rng())
    told = dict(zip(HEADER, table_cells([rows[4]])[-1], strict=True))
    assert (told["median"], told["human-gap"]) == ("0.50 [–]", "0.500 [–]")
    assert (told["frames"], told["seeds"]) == ("250K", "1")


def test_agents_that_the_paper_has_not_come_last_and_alone():
    rows = atari57_table({"mine": trained()}, rng=rng())
    assert (rows[-1].agent, rows[-1].label, rows[-1].paper) == ("mine", "mine", None)
    assert len(table_cells(rows)) == 17


def test_the_papers_numbers_stay_away_from_other_suites():
    scores = scores_of([("a", 0, 3.0)])
    ours = {"rainbow": TrainingScores(500, scores, scores)}
    (row,) = atari57_table(ours, rng=rng(), suite={"a": Reference(0.0, 4.0)})
    assert row.paper is None
    assert row.ours.final.median.value == pytest.approx(0.75)
    assert table_cells([row])[0][2] == "500"
