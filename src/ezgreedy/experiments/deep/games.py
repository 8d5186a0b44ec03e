"""How do the deep agents do, game by game? Figure 5, the appendix's curves, and the tables.

Drawn from any runs of deep agents: a sweep such as `ezgreedy sweep atari57-r2d2`, a collection, or
single runs, finished or not. Figure 5 shows R2D2, R2D2 with εz-greedy and R2D2 with RND on selected
games; the appendix shows every agent on every game. The tables hold medians, means and gaps over
games beside the paper's own, and the scores of every game.

Nothing is judged here: the text of the paper has no numbers for single games.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ezgreedy.experiments.run_study import RunStudy
from ezgreedy.figures.colours import AGENT_COLOURS, colours_of
from ezgreedy.findings.claims import Number, Summary, Table
from ezgreedy.findings.intervals import LEAST_SEEDS, stratified_difference_interval
from ezgreedy.findings.panels import Curve, Panel
from ezgreedy.findings.paper_tables import HEADER, atari57_table, table_cells
from ezgreedy.findings.score_intervals import stratified_band
from ezgreedy.findings.suites import suites
from ezgreedy.findings.training_scores import raw_curves, thinned, training_scores
from ezgreedy.findings.variants import variants
from ezgreedy.games.family import NamedSuite
from ezgreedy.requirements import FloatArray
from ezgreedy.results.runs import Run
from ezgreedy.seeding import role_seed
from ezgreedy.sweeps.definitions import EXPLORATION_GAMES

SELECTED_AGENTS = ("r2d2", "r2d2-ez", "r2d2-rnd")
# Deviation: of the games in Figure 5, the paper's text names only Private Eye.
SELECTED_GAMES = EXPLORATION_GAMES

_MOST_POINTS = 60
_REPEATS = 500
_COLUMNS = 4  # of panels in a figure
_GAME_COLUMNS = ("game", "agent", "frames", "seeds", "final", "best")


class Group(NamedTuple):
    """Runs of one game that differ only in seed, by the label of their agent."""

    game: str
    label: str
    runs: Sequence[Run]

    @property
    def agent(self) -> str:
        """Name of the agent."""
        return self.runs[0].agent

    @property
    def family(self) -> str:
        """The agent that it is a variant of: r2d2 for r2d2-ez."""
        return self.agent.split("-")[0]


def summarise(runs: Sequence[Run]) -> Summary:
    """Curves and scores of every game, and their medians and means over games."""
    counted = [run for run in runs if run.last_evaluated > 0]
    groups = _groups(counted)
    drawn = {
        family: [_panel(game, own) for game, own in _by_game(groups, family).items()]
        for family in dict.fromkeys(group.family for group in groups)
    }
    data = {
        "families": {family: [panel.as_json() for panel in own] for family, own in drawn.items()}
    }
    tables = [*_suite_tables(counted), *([_game_table(groups)] if groups else [])]
    return Summary([], selected_panels(groups), data, tables)


def selected_panels(groups: Sequence[Group]) -> list[Panel]:
    """Figure 5: its agents on its games; without runs of these, on all that two of them played."""
    played = _by_game([group for group in groups if group.agent in SELECTED_AGENTS])
    chosen = {game: own for game, own in played.items() if len({group.agent for group in own}) > 1}
    names = [game for game in SELECTED_GAMES if game in chosen] or list(chosen)
    return [_panel(game, chosen[game]) for game in names]


def _groups(runs: Sequence[Run]) -> list[Group]:
    ordered = sorted(runs, key=lambda run: (run.game, _place(run.agent), run.agent, run.seed))
    games: dict[str, list[Run]] = {}
    for run in ordered:
        games.setdefault(run.game, []).append(run)
    return [
        Group(game, label, alike)
        for game, own in games.items()
        for label, alike in variants(own).items()
    ]


def _place(agent: str) -> int:
    known = list(AGENT_COLOURS)
    return known.index(agent) if agent in known else len(known)


def _by_game(groups: Sequence[Group], family: str | None = None) -> dict[str, list[Group]]:
    games: dict[str, list[Group]] = {}
    for group in groups:
        if family is None or group.family == family:
            games.setdefault(group.game, []).append(group)
    return games


def _panel(game: str, groups: Sequence[Group]) -> Panel:
    colours = colours_of({group.label: group.agent for group in groups})
    curves = [_curve(group, colours[group.label]) for group in groups]
    return Panel(game, curves, x_label="million frames", y_label="score", figure="selected_games")


def _curve(group: Group, colour: str) -> Curve:
    """Mean over runs at the evaluations that they share, with a band over seeds."""
    frames, scores = raw_curves(group.runs)
    kept = thinned(len(frames), _MOST_POINTS)
    x, values = frames[kept] / 1e6, scores[kept]
    if values.shape[1] < LEAST_SEEDS:
        return Curve(group.label, x, values.mean(axis=1), colour=colour)
    rng = np.random.default_rng(role_seed(0, f"{group.game} {group.label} curve"))
    # Whole runs are resampled, [points, runs, one game].
    band = stratified_band(_mean_of_runs, values[..., None], rng=rng, repeats=_REPEATS)
    return Curve(group.label, x, band.values, band.low, band.high, colour)


def _mean_of_runs(resamples: FloatArray) -> FloatArray:
    return resamples.mean(axis=(-2, -1))


def _suite_tables(runs: Sequence[Run]) -> list[Table]:
    """The paper's summary table of each suite that has runs, with its own lines on Atari."""
    tables = []
    for suite in suites():
        own = [run for run in runs if run.game in suite.games]
        if own:
            tables.append(_suite_table(suite, own))
    return tables


def _suite_table(suite: NamedSuite, runs: Sequence[Run]) -> Table:
    ordered = sorted(runs, key=lambda run: (_place(run.agent), run.agent, run.game, run.seed))
    labelled = variants(ordered, across_games=True)
    scores = {label: training_scores(alike) for label, alike in labelled.items()}
    rng = np.random.default_rng(role_seed(0, f"{suite.name} table of deep games"))
    rows = atari57_table(scores, rng=rng, suite=suite.measures)
    header = [suite.gap if title == "human-gap" else title for title in HEADER]
    return Table(
        f"{suite.name}: final and best scores over games",
        header,
        table_cells(rows),
        f"Normalised: random play is 0, {suite.unit} is 1. {suite.source} Lines can be compared "
        f"only where frames, games and seeds agree; intervals from {LEAST_SEEDS} seeds on.",
    )


def _game_table(groups: Sequence[Group]) -> Table:
    return Table(
        "Scores by game",
        _GAME_COLUMNS,
        [_game_row(group) for group in groups],
        "The evaluation at the last frames at which every run has one, and the best until then; "
        f"means over seeds, with t intervals from {LEAST_SEEDS} seeds on.",
    )


def _sample_sizes(summary: Summary) -> list[int]:
    place = _GAME_COLUMNS.index("seeds")
    tables = [table for table in summary.tables if tuple(table.columns) == _GAME_COLUMNS]
    return [int(str(row[place])) for table in tables for row in table.rows]


def _game_row(group: Group) -> tuple[Number, ...]:
    scores = training_scores(group.runs)
    estimates = [_estimate(table.values) for table in (scores.final, scores.best)]
    return (group.game, group.label, scores.frames, len(group.runs), *estimates)


def _estimate(values: FloatArray) -> Number:
    known = values[np.isfinite(values)]
    if len(known) < LEAST_SEEDS:
        return float(known.mean()) if len(known) else "–"
    return stratified_difference_interval([(known.tolist(), None)])


def draw(summary: Summary, directory: Path) -> list[Path]:
    """Figure 5, and a figure of every game for each family of agents."""
    figures = {"selected_games": summary.panels}
    families: Mapping[str, Any] = summary.data["families"]
    for family, panels in families.items():
        figures[f"every_game_{family}"] = [Panel.from_json(panel) for panel in panels]
    return [path for name, panels in figures.items() for path in _draw(panels, directory / name)]


def _draw(panels: Sequence[Panel], path: Path) -> list[Path]:
    from ezgreedy.figures import curves, style

    if not panels:
        return []
    return style.save(curves.learning_curves(panels, columns=_COLUMNS, shares_legend=True), path)


STUDY = RunStudy(
    id="deep-games",
    title="Figure 5 and the tables: deep agents, game by game",
    shows="what deep agents score on every game, and over suites beside the paper's numbers",
    statements=(),
    criteria={"selected_games": list(SELECTED_GAMES), "selected_agents": list(SELECTED_AGENTS)},
    commands=("ezgreedy sweep atari57-r2d2 --out DIR",),
    summarise=summarise,
    draw=draw,
    sample_sizes=_sample_sizes,
    condition="agent and game",
)
