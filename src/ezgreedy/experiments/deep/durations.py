"""Which duration law is best for a deep agent? Figure 2b from the runs of a sweep.

The paper compares zeta, exponential and uniform durations with R2D2 on six Atari games, and finds
"remarkable consistency with the results of the chain MDP"; its text names neither games nor
hyper-parameters. `ezgreedy sweep atari-durations` is this comparison at full scale, and `ezgreedy
sweep small-durations` at the scale of two cores, with `rainbow-ez` on DeepSea and one game of
MinAtar. Both are drawn and judged here.

Stated before any run started: a game counts with five seeds or more of every law. Zeta is best
there if, at the best hyper-parameter of each family, the whole Welch interval of its mean final
score minus that of the better other family lies above 0; this is contradicted if the interval lies
below 0, and undecided otherwise. With fewer seeds there is a figure but no verdict. Over games, it
holds if it does on every game that counts, and is contradicted if it is on one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.experiments.run_study import RunStudy
from ezgreedy.findings.claims import AS_STATED, Claim, Number, Statement, Summary, Table
from ezgreedy.findings.intervals import Interval, stratified_difference_interval
from ezgreedy.findings.judging import above, all_of
from ezgreedy.results.runs import Run

LEAST_SEEDS = 5

# A family in `config.json` ↦ its name in the paper, its hyper-parameter here and in the paper.
FAMILIES = {
    "Zeta": ("zeta", "mu", "μ"),
    "Geometric": ("exponential", "decay", "λ"),
    "Uniform": ("uniform", "cap", "N"),
}

ZETA_IS_BEST = Statement(
    "For deep agents, too, heavy-tailed (zeta) durations at their best score more than exponential "
    "or uniform ones at theirs.",
    "paper, Section 5.2 and Figure 2b",
    f"On every game with {LEAST_SEEDS} seeds or more of every law: the Welch interval of the "
    "difference between zeta's mean final score and that of the better other family, each at its "
    "best hyper-parameter, lies above 0.",
)


_DIFFERENCE = "zeta − better other family"


@dataclass(frozen=True)
class Point:
    """The final scores of one law on one game."""

    game: str
    family: str
    number: float
    scores: Sequence[float]

    @property
    def estimate(self) -> Interval | float:
        """The mean over seeds, with a t interval if there are five or more."""
        if len(self.scores) < LEAST_SEEDS:
            return float(np.mean(self.scores))
        return stratified_difference_interval([(self.scores, None)])


def summarise(runs: Sequence[Run]) -> Summary:
    """The final score of every law, and the best family where there are enough seeds."""
    points = _points(runs)
    games = list(dict.fromkeys(point.game for point in points))
    claim = _claim(games, points)
    data = {
        "games": {
            game: {
                FAMILIES[family][0]: {
                    "numbers": [point.number for point in own],
                    "scores": [list(point.scores) for point in own],
                }
                for family in FAMILIES
                if (own := [p for p in points if (p.game, p.family) == (game, family)])
            }
            for game in games
        }
    }
    tables = [_table(points)] if points else []
    if claim is None:
        missing = {ZETA_IS_BEST.claim: _missing(games, points)}
        return Summary([], data=data, tables=tables, missing=missing)
    return Summary([claim], data=data, tables=tables)


def _missing(games: Sequence[str], points: Sequence[Point]) -> str:
    """Which game comes closest to having enough seeds of every law."""
    rule = f"no game has {LEAST_SEEDS} finished seeds of every zeta, exponential and uniform law"
    fewest = {
        game: [
            min((len(p.scores) for p in points if (p.game, p.family) == (game, family)), default=0)
            for family in FAMILIES
        ]
        for game in games
    }
    if not fewest:
        return f"{rule}; there is none with two laws"
    game = max(fewest, key=lambda game: (min(fewest[game]), sum(fewest[game])))
    pairs = zip(FAMILIES.values(), fewest[game], strict=True)
    return (
        f"{rule}; closest: {game}, {', '.join(f'{number} of {name[0]}' for name, number in pairs)}"
    )


def _sample_sizes(summary: Summary) -> list[int]:
    games = summary.data["games"].values()
    return [len(own) for game in games for law in game.values() for own in law["scores"]]


def _points(runs: Sequence[Run]) -> list[Point]:
    scores: dict[tuple[str, str, float], list[float]] = {}
    for run in sorted(runs, key=lambda run: (run.game, run.seed)):
        law: Mapping[str, Any] = run.settings["agent"]["durations"]
        if run.is_finished and law["kind"] in FAMILIES:
            number = float(law[FAMILIES[law["kind"]][1]])
            key = (run.game, law["kind"], number)
            scores.setdefault(key, []).append(run.scores[-1].mean_return)
    order = {family: place for place, family in enumerate(FAMILIES)}
    keys = sorted(scores, key=lambda key: (key[0], order[key[1]], key[2]))
    # Other runs have a law too; a comparison needs two laws on one game.
    laws_of_games = Counter(game for game, *_ in keys)
    return [Point(*key, scores[key]) for key in keys if laws_of_games[key[0]] > 1]


def _claim(games: Sequence[str], points: Sequence[Point]) -> Claim | None:
    numbers: dict[str, Number] = {}
    sides = []
    num_seeds = []
    for game in games:
        own = [point for point in points if point.game == game]
        found = _numbers(game, own)
        if found is not None:
            numbers |= found
            difference = found[f"{game}: {_DIFFERENCE}"]
            assert isinstance(difference, Interval)
            sides.append(above(difference))
            num_seeds += [len(point.scores) for point in own]
    if not sides:
        return None
    return Claim(
        ZETA_IS_BEST,
        {AS_STATED: all_of(sides)},
        numbers,
        min(num_seeds),
        note="The paper's ablation has R2D2 on six games; this is our small form of it.",
        key_numbers=[name for name in numbers if name.endswith(_DIFFERENCE)],
    )


def _numbers(game: str, own: Sequence[Point]) -> dict[str, Number] | None:
    """The best law of every family on one game; None if a family or seeds are missing."""
    if any(len(point.scores) < LEAST_SEEDS for point in own):
        return None
    best: dict[str, Point] = {}
    for point in sorted(own, key=lambda point: float(np.mean(point.scores))):
        best[point.family] = point
    if set(best) != set(FAMILIES):
        return None
    rival = max((best["Geometric"], best["Uniform"]), key=lambda p: float(np.mean(p.scores)))
    difference = stratified_difference_interval([(best["Zeta"].scores, rival.scores)])
    numbers: dict[str, Number] = {f"{game}: {_DIFFERENCE}": difference}
    for family, point in best.items():
        numbers[f"{game}: best {FAMILIES[family][0]}, {_law(point)}"] = point.estimate
    return numbers


def _law(point: Point) -> str:
    return f"{FAMILIES[point.family][2]} = {point.number:g}"


def _table(points: Sequence[Point]) -> Table:
    return Table(
        "Final score by law and hyper-parameter",
        ("game", "durations", "seeds", "mean", "each seed"),
        [
            (
                point.game,
                f"{FAMILIES[point.family][0]}, {_law(point)}",
                len(point.scores),
                point.estimate,
                ", ".join(f"{score:.4g}" for score in point.scores),
            )
            for point in points
        ],
        f"t intervals over runs, from {LEAST_SEEDS} seeds on.",
    )


def draw(summary: Summary, directory: Path) -> list[Path]:
    """Return by law and hyper-parameter, a row for each game."""
    from ezgreedy.figures import duration_laws, style

    if not summary.data["games"]:
        return []
    figure = duration_laws.by_hyperparameter(summary.data["games"])
    return list(style.save(figure, directory / "durations"))


STUDY = RunStudy(
    id="deep-durations",
    title="Figure 2b: duration laws for deep agents",
    shows="what zeta, exponential and uniform durations earn with a deep agent",
    statements=(ZETA_IS_BEST,),
    criteria={"least_seeds": LEAST_SEEDS},
    commands=("ezgreedy sweep small-durations --out DIR",),
    summarise=summarise,
    draw=draw,
    sample_sizes=_sample_sizes,
    condition="game and law",
)
