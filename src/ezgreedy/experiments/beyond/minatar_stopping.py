"""Does a deep agent gain if its exploratory repeats end early? `rainbow-ez` on MinAtar's Freeway.

The paper asks whether foraging should end "as soon as food is within sight", and whether value
discrepancies could say so. On Freeway repeats matter: the road is crossed by going up again and
again, and every crossing is rewarded. Runs with a rule are compared with runs without one that
share the seeds; ε is the same, so that a rule also means fewer exploratory steps. Observations
never stand still on MinAtar, where something always moves, so `StopOnUnchanged` is not among the
rules.

Stated before any run started; with fewer than five seeds there is a table but no verdict.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.experiments.run_study import RunStudy
from ezgreedy.findings.claims import AS_STATED, OURS, Claim, Number, Statement, Summary, Table
from ezgreedy.findings.intervals import Interval, stratified_difference_interval
from ezgreedy.findings.judging import above
from ezgreedy.results.runs import Run

GAME, AGENT, FRAMES = "minatar/freeway", "rainbow-ez", 200_000
LEAST_SEEDS = 5
CONTROL = ""
# What `--set agent.stops` says ↦ what config.json says of it: the rule and its first number.
RULES = {
    CONTROL: [],
    "StopOnReward()": [("StopOnReward", 0.0)],
    "StopOnDiscrepancy(0.1)": [("StopOnDiscrepancy", 0.1)],
}
_NUMBERS = {"StopOnReward": "above", "StopOnDiscrepancy": "rate"}
_WHEN = {
    "StopOnReward()": "whenever a reward is met",
    "StopOnDiscrepancy(0.1)": "on a value discrepancy, on one step in ten",
}
_CRITERION = (
    f"{AGENT} on {GAME}, laptop scale, {FRAMES:,} frames, {LEAST_SEEDS} seeds or more of each: the "
    "Welch interval of the difference of mean final scores, with the rule minus without, lies "
    "above 0. ε is the same."
)
STATEMENTS = {
    rule: Statement(
        f"Rainbow with εz-greedy scores more on MinAtar's Freeway if options end {when}.",
        OURS,
        _CRITERION,
    )
    for rule, when in _WHEN.items()
}


def summarise(runs: Sequence[Run]) -> Summary:
    """Final scores and exploratory shares with every rule, and what a rule changes."""
    chosen = {rule: _runs_with(runs, rule) for rule in RULES}
    scores = {rule: [run.scores[-1].mean_return for run in own] for rule, own in chosen.items()}
    shares = {rule: [_explored_share(run) for run in own] for rule, own in chosen.items()}
    claims = [claim for rule in STATEMENTS if (claim := _claim(rule, scores, shares)) is not None]
    tables = [_table(scores, shares)] if any(scores.values()) else []
    return Summary(claims, data={"scores": scores, "explored": shares}, tables=tables)


def _runs_with(runs: Sequence[Run], rule: str) -> list[Run]:
    found = [
        run
        for run in runs
        if (run.game, run.agent, run.frames_to_play) == (GAME, AGENT, FRAMES)
        and run.is_finished
        and _described(run) == RULES[rule]
    ]
    return sorted(found, key=lambda run: run.seed)


def _described(run: Run) -> list[tuple[str, Any]]:
    stops = run.settings["agent"].get("stops", [])
    return [(stop["kind"], stop.get(_NUMBERS.get(stop["kind"], ""))) for stop in stops]


def _explored_share(run: Run) -> float:
    """The share of exploratory steps, over reports of equally many frames."""
    return float(np.mean([report.explored_share for report in run.reports]))


def _claim(
    rule: str, scores: dict[str, list[float]], shares: dict[str, list[float]]
) -> Claim | None:
    num_seeds = min(len(scores[rule]), len(scores[CONTROL]))
    if num_seeds < LEAST_SEEDS:
        return None
    difference = stratified_difference_interval([(scores[rule], scores[CONTROL])])
    numbers: dict[str, Number] = {
        "with the rule − without": difference,
        "score with the rule": _mean(scores[rule]),
        "score without": _mean(scores[CONTROL]),
        "share of exploratory steps with the rule": round(float(np.mean(shares[rule])), 4),
        "share without": round(float(np.mean(shares[CONTROL])), 4),
    }
    return Claim(STATEMENTS[rule], {AS_STATED: above(difference)}, numbers, num_seeds)


def _mean(scores: Sequence[float]) -> Interval:
    return stratified_difference_interval([(scores, None)])


def _table(scores: dict[str, list[float]], shares: dict[str, list[float]]) -> Table:
    rows = [
        (
            rule or "none",
            len(own),
            _mean(own) if len(own) >= LEAST_SEEDS else float(np.mean(own)),
            round(float(np.mean(shares[rule])), 4),
            ", ".join(f"{score:.4g}" for score in own),
        )
        for rule, own in scores.items()
        if own
    ]
    return Table(
        "Final score by rule",
        ("rule", "seeds", "mean", "exploratory steps", "each seed"),
        rows,
        f"t intervals over runs, from {LEAST_SEEDS} seeds on.",
    )


def draw(summary: Summary, directory: Path) -> list[Path]:
    """The final score of every run, a row for each rule."""
    from ezgreedy.figures import style
    from ezgreedy.figures.rule_effects import scores_by_rule

    scores = {rule or "no rule": own for rule, own in summary.data["scores"].items() if own}
    if not scores:
        return []
    figure = scores_by_rule(scores, f"final score of {AGENT} on {GAME}")
    return list(style.save(figure, directory / "minatar_stopping"))


def train_commands(num_seeds: int = LEAST_SEEDS) -> list[str]:
    """The commands that make the runs, seed by seed, so that partial results are balanced."""
    commands = []
    for seed in range(num_seeds):
        for rule in RULES:
            change = f" --set agent.stops='{rule}'" if rule else ""
            name = rule.partition("(")[0] or "none"
            commands.append(
                f"ezgreedy train {AGENT} --game {GAME} --scale laptop --frames {FRAMES}"
                f" --seed {seed}{change} --out DIR/{name}-{seed}"
            )
    return commands


STUDY = RunStudy(
    id="minatar-stopping",
    title="Beyond the paper: options that end early, in a deep agent",
    shows="what rainbow-ez scores on MinAtar's Freeway with stopping rules",
    statements=tuple(STATEMENTS.values()),
    criteria={"least_seeds": LEAST_SEEDS, "frames": FRAMES, "game": GAME},
    commands=train_commands(),
    summarise=summarise,
    draw=draw,
)
