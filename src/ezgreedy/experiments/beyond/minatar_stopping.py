"""Does a deep agent gain if its exploratory repeats end early? `rainbow-ez` on MinAtar's Freeway.

The paper asks whether foraging should end "as soon as food is within sight", and whether value
discrepancies could say so. On Freeway repeats matter: the road is crossed by going up again and
again, and every crossing is rewarded. Runs with a rule are compared with runs without one that
share the seeds; ε is the same, so that a rule also means fewer exploratory steps. Observations
never stand still on MinAtar, where something always moves, so `StopOnUnchanged` is not among the
rules.

Stated before any run started; with fewer than five seeds there is a table but no verdict. One
control came later, when shares of exploratory steps were known but no score had been compared, and
before any of its runs: `StopOnDiscrepancy` explores on 34 % of steps and no rule on 37 %, and the
control has no rule but an ε that falls in nine tenths of the time, which makes the shares equal.
`StopOnReward` changes the share by less than 0.2 points and needs no such control.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.experiments.run_study import RunStudy
from ezgreedy.findings.claims import AS_STATED, OURS, Claim, Number, Statement, Summary, Table
from ezgreedy.findings.intervals import Interval, stratified_difference_interval
from ezgreedy.findings.judging import Side, above
from ezgreedy.results.runs import Run

GAME, AGENT, FRAMES = "minatar/freeway", "rainbow-ez", 200_000
LEAST_SEEDS = 5
CONTROL = ""
EQUAL_SHARE = "no rule, equal share"
# Conditions ↦ what config.json says of them: rules with their first number, and ε's steps.
STEPS_OF_DECAY, FEWER_STEPS_OF_DECAY = 100_000, 90_000
CONDITIONS: dict[str, tuple[list[tuple[str, float]], int]] = {
    CONTROL: ([], STEPS_OF_DECAY),
    "StopOnReward()": ([("StopOnReward", 0.0)], STEPS_OF_DECAY),
    "StopOnDiscrepancy(0.1)": ([("StopOnDiscrepancy", 0.1)], STEPS_OF_DECAY),
    EQUAL_SHARE: ([], FEWER_STEPS_OF_DECAY),
}
# Rules ↦ the control with the same share of exploratory steps.
SHARE_CONTROLS = {"StopOnDiscrepancy(0.1)": EQUAL_SHARE}
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
    chosen = {condition: _runs_under(runs, condition) for condition in CONDITIONS}
    scores = {rule: [run.scores[-1].mean_return for run in own] for rule, own in chosen.items()}
    shares = {rule: [_explored_share(run) for run in own] for rule, own in chosen.items()}
    claims = [claim for rule in STATEMENTS if (claim := _claim(rule, scores, shares)) is not None]
    tables = [_table(scores, shares)] if any(scores.values()) else []
    judged = [claim.claim for claim in claims]
    missing = {
        statement.claim: f"{LEAST_SEEDS} finished seeds of {AGENT} on {GAME} at {FRAMES:,} frames "
        f"are needed with the rule and as many without; there are {len(scores[rule])} and "
        f"{len(scores[CONTROL])}"
        for rule, statement in STATEMENTS.items()
        if statement.claim not in judged
    }
    data = {"scores": scores, "explored": shares}
    return Summary(claims, data=data, tables=tables, missing=missing)


def _runs_under(runs: Sequence[Run], condition: str) -> list[Run]:
    found = [
        run
        for run in runs
        if (run.game, run.agent, run.frames_to_play) == (GAME, AGENT, FRAMES)
        and run.is_finished
        and _described(run) == CONDITIONS[condition]
    ]
    return sorted(found, key=lambda run: run.seed)


def _described(run: Run) -> tuple[list[tuple[str, Any]], int]:
    agent = run.settings["agent"]
    stops = agent.get("stops", [])
    rules = [(stop["kind"], stop.get(_NUMBERS.get(stop["kind"], ""))) for stop in stops]
    return rules, agent["epsilon"]["steps"]


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
    control = SHARE_CONTROLS.get(rule)
    controls: dict[str, Side] = {}
    if control is not None and len(scores[control]) >= LEAST_SEEDS:
        at_equal_share = stratified_difference_interval([(scores[rule], scores[control])])
        controls = {"equal share of exploratory steps": above(at_equal_share)}
        numbers["with the rule − without, equal share"] = at_equal_share
        numbers["share without, ε falling sooner"] = round(float(np.mean(shares[control])), 4)
    return Claim(STATEMENTS[rule], {AS_STATED: above(difference)}, numbers, num_seeds, controls)


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


def _sweep_command(condition: str, num_seeds: int) -> str:
    name = f"DIR/{condition.partition('(')[0].replace(', ', '-').replace(' ', '-') or 'no-rule'}"
    command = f"ezgreedy sweep minatar --games {GAME} --agents {AGENT} --frames {FRAMES}"
    return f"{command} --seeds {num_seeds}{_change(condition)} --out {name}"


def _change(condition: str) -> str:
    if condition == EQUAL_SHARE:
        return f" --set agent.epsilon.steps={FEWER_STEPS_OF_DECAY}"
    return f" --set agent.stops='{condition}'" if condition else ""


STUDY = RunStudy(
    id="minatar-stopping",
    title="Beyond the paper: options that end early, in a deep agent",
    shows="what rainbow-ez scores on MinAtar's Freeway with stopping rules",
    statements=tuple(STATEMENTS.values()),
    criteria={"least_seeds": LEAST_SEEDS, "frames": FRAMES, "game": GAME},
    commands=[_sweep_command(condition, 8) for condition in CONDITIONS],
    summarise=summarise,
    draw=draw,
    sample_sizes=lambda summary: [len(own) for own in summary.data["scores"].values()],
    condition="rule",
)
