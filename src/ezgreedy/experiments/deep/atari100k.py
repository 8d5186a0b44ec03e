"""Is our Rainbow the published one, and does εz-greedy help it? Judged from runs on Atari-100k.

The runs are those of `ezgreedy sweep atari100k`. Three questions, with criteria that were stated
before any run started and have not changed since:

1. Agreement. Data-efficient Rainbow (DER) is Rainbow with other hyper-parameters, and its scores
   are published. The claim holds if the median over games of (ours − random)/(DER − random), ours
   being the mean over seeds of `rainbow`, lies in [0.7, 1.4]. Games with fewer than three seeds of
   100,000 steps do not count.
2. Freeway, where exploration is the bottleneck: there is no score before the first crossing of the
   road. Runs of 30,000 steps, 16 seeds or more of each agent. The share of seeds whose final agent
   crosses 10 times or more an episode is compared by Fisher's exact test, and the number of steps
   until a training episode first does so by the log-rank test; two-sided, at 0.05. The comparison
   that counts is `rainbow-ez` with `rainbow-eps`, at equal ε as in the paper; an equal budget of
   exploratory steps is a control, and `rainbow` is shown for comparison.
3. No loss elsewhere. `rainbow-ez` − `rainbow-eps` on the other games, human-normalised, averaged
   over games with three seeds or more of each; a t interval over runs (Welch–Satterthwaite). The
   claim holds if the interval lies above −0.1, is contradicted if it lies below 0, and is undecided
   otherwise.

Nothing was tuned on these games.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.experiments.deep.atari100k_tables import score_tables
from ezgreedy.experiments.run_study import RunStudy, closest
from ezgreedy.figures.colours import AGENT_COLOURS
from ezgreedy.findings.claims import AS_STATED, OURS, Claim, Number, Statement, Summary
from ezgreedy.findings.intervals import stratified_difference_interval
from ezgreedy.findings.judging import Side
from ezgreedy.findings.panels import Curve, Panel
from ezgreedy.games.atari.atari100k import NUM_FRAMES, NUM_STEPS, published
from ezgreedy.results.runs import Run
from ezgreedy.units import counted

FREEWAY = "Freeway"
FREEWAY_FRAMES = 120_000
LEAST_CROSSINGS = 10.0
LEAST_FREEWAY_SEEDS = 16
AGREEMENT = (0.7, 1.4)
LEAST_SEEDS = 3
LARGEST_LOSS = 0.1
LEVEL = 0.05
STRETCH = 5_000  # agent steps averaged in one point of a curve

PLAIN, EPS, EZ, EZ_BUDGET = "rainbow", "rainbow-eps", "rainbow-ez", "rainbow-ez-budget"

AGREES = Statement(
    "After 100,000 steps our Rainbow scores what data-efficient Rainbow was published with.",
    OURS,
    "(ours − random)/(DER − random), DER from van Hasselt et al. (2019) and ours the mean over "
    f"seeds, {LEAST_SEEDS} or more: the median over games lies in "
    f"[{AGREEMENT[0]}, {AGREEMENT[1]}], and contradicts the claim otherwise.",
)
CROSSES = Statement(
    "On Freeway, more seeds of rainbow-ez than of rainbow-eps have learned to cross after 30,000 "
    "steps.",
    OURS,
    f"The final agent crosses {LEAST_CROSSINGS:g} times or more an episode; Fisher's exact test "
    f"over {LEAST_FREEWAY_SEEDS} seeds or more of each, two-sided, at {LEVEL:g}.",
)
CROSSES_SOONER = Statement(
    "On Freeway, rainbow-ez first crosses often after fewer steps than rainbow-eps.",
    OURS,
    f"Steps until the first training episode of {LEAST_CROSSINGS:g} crossings or more, to the next "
    "report, every 1,000 steps; runs without one are censored at 30,000. Log-rank test over "
    f"{LEAST_FREEWAY_SEEDS} seeds or more of each, two-sided, at {LEVEL:g}.",
)
NO_LOSS = Statement(
    "Elsewhere rainbow-ez loses nothing against rainbow-eps.",
    "paper, Section 5.2",
    "Our reading of 'little to no loss in performance on the rest of the suite', on Atari-100k: "
    "human-normalised scores, averaged over games with "
    f"{LEAST_SEEDS} seeds or more of each; the t interval of the difference over runs lies above "
    f"−{LARGEST_LOSS:g}. Contradicted if it lies below 0.",
)


def summarise(runs: Sequence[Run]) -> Summary:
    """Judges the given runs; claims with missing runs are left out."""
    scores = _final_scores(runs, NUM_FRAMES)
    freeway = [run for run in runs if run.game == FREEWAY and _is_whole(run, FREEWAY_FRAMES)]
    found = [
        _agreement(scores),
        *_freeway_claims(freeway),
        _no_loss(scores),
    ]
    claims = [claim for claim in found if claim is not None]
    panels = [panel for game in scores if (panel := _curves(game, runs)) is not None]
    missing = _missing(scores, freeway, [claim.statement for claim in claims])
    return Summary(
        claims,
        panels,
        _data(scores, freeway),
        score_tables(scores, (PLAIN, EPS, EZ), LEAST_SEEDS),
        missing,
    )


def _missing(
    scores: Mapping[str, Mapping[str, Sequence[float]]],
    freeway: Sequence[Run],
    judged: Sequence[Statement],
) -> dict[str, str]:
    """What is missing for each claim that was not judged."""

    def seeds(game: str, *agents: str) -> int:
        return min(len(scores[game].get(agent, ())) for agent in agents)

    known = [game for game in scores if game in published()]
    crossings = [sum(run.agent == agent for run in freeway) for agent in (EZ, EPS)]
    least = f"{LEAST_SEEDS} finished seeds"
    too_few = (
        f"{FREEWAY} must have {LEAST_FREEWAY_SEEDS} finished seeds of {EZ} and as many of {EPS} at "
        f"{FREEWAY_FRAMES:,} frames; there are {crossings[0]} and {crossings[1]}"
    )
    lacking = {
        AGREES: f"no game has {least} of {PLAIN} at {NUM_FRAMES:,} frames; "
        + closest({game: seeds(game, PLAIN) for game in known}),
        CROSSES: too_few,
        CROSSES_SOONER: too_few,
        NO_LOSS: f"no game but {FREEWAY} has {least} of {EZ} and as many of {EPS} at "
        f"{NUM_FRAMES:,} frames; "
        + closest({game: seeds(game, EZ, EPS) for game in known if game != FREEWAY}),
    }
    return {one.claim: words for one, words in lacking.items() if one not in judged}


def _sample_sizes(summary: Summary) -> list[int]:
    by_game = [len(own) for agents in summary.data["scores"].values() for own in agents.values()]
    return by_game + [len(own) for own in summary.data["first_crossings"].values()]


def _is_whole(run: Run, frames: int) -> bool:
    return run.frames_to_play == frames and run.is_finished


def _final_scores(runs: Sequence[Run], frames: int) -> dict[str, dict[str, list[float]]]:
    """The final evaluation of every complete run: by game, then agent, in order of seeds."""
    scores: dict[str, dict[str, list[float]]] = {}
    for run in sorted(runs, key=lambda run: (run.game, run.agent, run.seed)):
        if _is_whole(run, frames):
            by_agent = scores.setdefault(run.game, {})
            by_agent.setdefault(run.agent, []).append(run.scores[-1].mean_return)
    return scores


def _agreement(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> Claim | None:
    shares = {
        game: published()[game].share_of_der(float(np.mean(by_agent[PLAIN])))
        for game, by_agent in scores.items()
        if game in published() and len(by_agent.get(PLAIN, ())) >= LEAST_SEEDS
    }
    if not shares:
        return None
    median = float(np.median(list(shares.values())))
    numbers: dict[str, Number] = {"median share of DER": median, "games": len(shares)}
    numbers |= {f"share of DER, {game}": share for game, share in shares.items()}
    return Claim(
        AGREES,
        {AS_STATED: "holds" if AGREEMENT[0] <= median <= AGREEMENT[1] else "contradicted"},
        numbers,
        len(shares),
        note="The sample is one of games.",
        key_numbers=["median share of DER", "games"],
    )


def _freeway_claims(runs: Sequence[Run]) -> list[Claim | None]:
    by_agent = {
        agent: sorted((run for run in runs if run.agent == agent), key=lambda run: run.seed)
        for agent in (PLAIN, EPS, EZ, EZ_BUDGET)
    }
    if any(len(by_agent[agent]) < LEAST_FREEWAY_SEEDS for agent in (EPS, EZ)):
        return []
    known = {agent: own for agent, own in by_agent.items() if own}
    return [_freeway_crossings(known), _freeway_steps(known)]


def _freeway_crossings(by_agent: Mapping[str, Sequence[Run]]) -> Claim:
    from scipy.stats import fisher_exact

    counts = {
        agent: sum(run.scores[-1].mean_return >= LEAST_CROSSINGS for run in runs)
        for agent, runs in by_agent.items()
    }
    numbers: dict[str, Number] = {}
    for agent, runs in by_agent.items():
        numbers[f"seeds that cross, {agent}"] = f"{counts[agent]} of {len(runs)}"

    def p_value(one: str, other: str) -> float:
        table = [[counts[a], len(by_agent[a]) - counts[a]] for a in (one, other)]
        return float(fisher_exact(table).pvalue)

    share = {agent: counts[agent] / len(runs) for agent, runs in by_agent.items()}
    return _freeway_claim(
        CROSSES,
        numbers,
        p_value,
        share[EZ] - share[EPS],
        by_agent,
    )


def _freeway_steps(by_agent: Mapping[str, Sequence[Run]]) -> Claim:
    from scipy.stats import CensoredData, logrank

    steps = {agent: [first_crossing(run) for run in runs] for agent, runs in by_agent.items()}

    def censored(agent: str) -> Any:
        known = [found for found in steps[agent] if found is not None]
        absent = [FREEWAY_FRAMES // 4] * (len(steps[agent]) - len(known))
        return CensoredData(uncensored=known, right=absent)

    def p_value(one: str, other: str) -> float:
        return float(logrank(censored(one), censored(other)).pvalue)

    numbers: dict[str, Number] = {}
    for agent, found in steps.items():
        known = [value for value in found if value is not None]
        numbers[f"seeds that cross in training, {agent}"] = f"{len(known)} of {len(found)}"
        numbers[f"median steps until then, {agent}"] = _median_steps(found)
    # With the log-rank statistic's sign: fewer steps are better.
    mean = {
        agent: float(np.mean([FREEWAY_FRAMES // 4 if s is None else s for s in found]))
        for agent, found in steps.items()
    }
    return _freeway_claim(
        CROSSES_SOONER,
        numbers,
        p_value,
        mean[EPS] - mean[EZ],
        by_agent,
    )


def _freeway_claim(
    statement: Statement,
    numbers: dict[str, Number],
    p_value: Callable[[str, str], float],
    gain: float,
    by_agent: Mapping[str, Sequence[Run]],
) -> Claim:
    """Judged by `rainbow-ez` against `rainbow-eps`; other pairs are shown for comparison."""
    is_decided = p_value(EZ, EPS) < LEVEL
    side: Side = "undecided" if not is_decided else "holds" if gain > 0.0 else "contradicted"
    pairs = [(EZ, EPS), (EZ_BUDGET, EPS), (EZ, PLAIN), (EPS, PLAIN)]
    for one, other in pairs:
        if one in by_agent and other in by_agent:
            numbers[f"p, {one} against {other}"] = p_value(one, other)
    return Claim(
        statement,
        {AS_STATED: side},
        numbers,
        min(len(by_agent[agent]) for agent in (EZ, EPS)),
        note=f"The same budget of exploratory steps ({EZ_BUDGET}) is a control.",
        key_numbers=[
            name for name in numbers if name.endswith((EZ, EPS)) and not name.startswith("p, ")
        ]
        + [f"p, {EZ} against {EPS}"],
    )


def first_crossing(run: Run) -> int | None:
    """Agent steps until the first report with a training episode of 10 crossings; None if never.

    Reports come every 1,000 steps and an episode takes 2,000: no report covers two episodes.
    """
    for report in run.reports:
        if report.mean_return is not None and report.mean_return >= LEAST_CROSSINGS:
            return report.frames // 4
    return None


def _median_steps(found: Sequence[int | None]) -> Number:
    steps = sorted(np.inf if value is None else float(value) for value in found)
    median = float(np.median(steps))
    return median if np.isfinite(median) else "more than 30,000"


def _no_loss(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> Claim | None:
    pairs = {
        game: (_normalised(game, by_agent[EZ]), _normalised(game, by_agent[EPS]))
        for game, by_agent in scores.items()
        if game in published()
        and game != FREEWAY
        and all(len(by_agent.get(agent, ())) >= LEAST_SEEDS for agent in (EZ, EPS))
    }
    if not pairs:
        return None
    interval = stratified_difference_interval(list(pairs.values()))
    numbers: dict[str, Number] = {"mean difference": interval, "games": len(pairs)}
    for game, (above, below) in pairs.items():
        numbers[f"difference, {game}"] = stratified_difference_interval([(above, below)])
    holds = interval.low > -LARGEST_LOSS
    side: Side = "holds" if holds else "contradicted" if interval.high < 0.0 else "undecided"
    return Claim(
        NO_LOSS,
        {AS_STATED: side},
        numbers,
        min(sum(map(len, scores)) for scores in zip(*pairs.values(), strict=True)),
        key_numbers=["mean difference", "games"],
    )


def _normalised(game: str, scores: Sequence[float]) -> list[float]:
    return [published()[game].human_normalised(score) for score in scores]


def _data(
    scores: Mapping[str, Mapping[str, Sequence[float]]], freeway: Sequence[Run]
) -> dict[str, Any]:
    return {
        "scores": {game: dict(by_agent) for game, by_agent in scores.items()},
        "first_crossings": {
            agent: [first_crossing(run) for run in freeway if run.agent == agent]
            for agent in (PLAIN, EPS, EZ, EZ_BUDGET)
        },
    }


def _curves(game: str, runs: Sequence[Run]) -> Panel | None:
    """Returns of training episodes, averaged over runs and stretches; None if none ended."""
    whole = [run for run in runs if run.game == game and _is_whole(run, NUM_FRAMES)]
    curves = []
    for agent in dict.fromkeys(run.agent for run in whole):
        rows = np.array([_stretches(run) for run in whole if run.agent == agent])
        middles = (np.arange(rows.shape[1]) + 0.5) * STRETCH
        known = np.isfinite(rows)
        if not known.any():
            continue
        sums = np.where(known, rows, 0.0).sum(axis=0)
        means = np.where(known.any(axis=0), sums / np.maximum(known.sum(axis=0), 1), np.nan)
        label = f"{agent}, {counted(len(rows), 'seed')}"
        colour = AGENT_COLOURS.get(agent)
        curves.append(Curve(label, middles, means, colour=colour))
    if not curves:
        return None
    ends = np.array([0.0, float(NUM_STEPS)])
    references = []
    if game in published():
        der = published()[game].der
        references = [Curve("DER as published", ends, np.array([der, der]))]
    return Panel(
        f"{game}: return of training episodes",
        curves,
        x_label="agent steps",
        y_label="return",
        references=references,
    )


def _stretches(run: Run) -> list[float]:
    """The mean return of the episodes that ended in each stretch; NaN where none did."""
    means = []
    for end in range(STRETCH, NUM_STEPS + 1, STRETCH):
        within = [
            report
            for report in run.reports
            if end - STRETCH < report.frames / 4 <= end and report.mean_return is not None
        ]
        weights = [report.episodes for report in within]
        returns = [report.mean_return for report in within if report.mean_return is not None]
        means.append(float(np.average(returns, weights=weights)) if within else np.nan)
    return means


def draw(summary: Summary, directory: Path) -> list[Path]:
    """Scores beside published ones, and when agents cross Freeway."""
    from ezgreedy.figures import run_scores, style

    files: list[Path] = []
    scores = {game: own for game, own in summary.data["scores"].items() if game in published()}
    if scores:
        files += style.save(run_scores.scores_by_game(scores), directory / "scores_by_game")
    if any(summary.data["first_crossings"].values()):
        figure = run_scores.share_still_without(
            summary.data["first_crossings"],
            FREEWAY_FRAMES // 4,
            "share of seeds that have not crossed\n10 times in an episode",
        )
        files += style.save(figure, directory / "freeway_crossings")
    return files


STUDY = RunStudy(
    id="atari100k",
    title="Rainbow on Atari-100k, beside published scores",
    shows="our Rainbow beside data-efficient Rainbow as published, and εz beside ε, on real Atari",
    statements=(AGREES, CROSSES, CROSSES_SOONER, NO_LOSS),
    criteria={
        "agreement": list(AGREEMENT),
        "least_seeds": LEAST_SEEDS,
        "least_freeway_seeds": LEAST_FREEWAY_SEEDS,
        "least_crossings": LEAST_CROSSINGS,
        "level": LEVEL,
        "largest_loss": LARGEST_LOSS,
    },
    commands=(
        "ezgreedy sweep atari100k --out DIR",
        "ezgreedy sweep atari100k --games Freeway --agents rainbow,rainbow-eps,rainbow-ez,"
        "rainbow-ez-budget --frames 120000 --seeds 16 --set evaluation.episodes=10 --out DIR",
    ),
    summarise=summarise,
    draw=draw,
    sample_sizes=_sample_sizes,
    condition="agent and game",
)
