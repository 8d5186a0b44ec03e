"""Section 4.1: which sequences of exploratory actions does a policy favour?

With ε-greedy every sequence of k exploratory actions has probability (ε/|A|)^k. εz-greedy favours
sequences that repeat an action. The probabilities are exact; sampled frequencies of the policies'
own actions check them.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.analysis.action_sequences import sequence_probability
from ezgreedy.experiments.experiment import (
    Cell,
    Experiment,
    Record,
    Settings,
    fewest_seeds,
    results_by_cell,
)
from ezgreedy.experiments.readings import POLICIES
from ezgreedy.exploration.durations import DurationLaw, Fixed, Zeta
from ezgreedy.figures import colours
from ezgreedy.findings.claims import AS_STATED, Claim, Number, Statement, Summary, Table
from ezgreedy.findings.intervals import mean_interval
from ezgreedy.findings.judging import Side, all_of
from ezgreedy.findings.panels import Curve, Panel

SETTINGS: dict[str, Any] = {
    "num_actions": 4,
    "epsilons": [1.0, 0.1],
    "mu": 2.0,
    "cap": 10_000,
    "lengths": [1, 2, 3, 4, 5, 7, 10, 15, 20],
    "enumerated_length": 5,
    "sampled_length": 3,
    "num_walks_per_seed": 20_000,
}

# Sequences of k steps by name.
SEQUENCES = {
    "one action, repeated": lambda k: [0] * k,
    "one turn, half-way": lambda k: [0] * (k // 2) + [1] * (k - k // 2),
    "another action every step": lambda k: [step % 2 for step in range(k)],
}

_TOLERANCE = 1e-9
_MOST_ERRORS = 4.0

EQUAL = Statement(
    "With ε-greedy, every sequence of k exploratory actions has a probability of exactly "
    "(ε/|A|)^k, and no sequence can be favoured over the others.",
    "paper, Section 4.1",
    f"All sequences of k = {SETTINGS['enumerated_length']} steps with |A| = 4, at ε = 1 and 0.1: "
    "the exact probability equals (ε/|A|)^k to nine digits. Sampled frequencies of the policy's "
    f"own actions at k = {SETTINGS['sampled_length']} lie within four standard errors of it.",
)
FAVOURED = Statement(
    "Temporally-extended ε-greedy can favour some sequences over others.",
    "paper, Section 4.1",
    "At every k from 2 on, the exact probability of repeating one action is above (ε/|A|)^k and "
    "that of another action on every step is below it, with zeta-distributed durations. Sampled "
    "frequencies lie within four standard errors of the exact values.",
)


def cells(settings: Settings) -> list[Cell]:
    """Both policies at every ε."""
    return [
        Cell(_cell_name(policy, epsilon), {"policy": policy, "epsilon": epsilon})
        for epsilon in settings["epsilons"]
        for policy in POLICIES
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """How many walks begin with each sequence of exploratory actions."""
    from ezgreedy.exploration.ez_greedy import EZGreedy

    num_actions, length = settings["num_actions"], settings["sampled_length"]
    lanes = settings["num_walks_per_seed"]
    explore = EZGreedy(num_actions, settings["epsilon"], _law(settings), lanes, seed)
    numbers, exploring = np.zeros(lanes, dtype=np.int64), np.ones(lanes, dtype=np.bool_)
    for _ in range(length):
        numbers = num_actions * numbers + explore(np.zeros(lanes, dtype=np.int64))
        exploring &= explore.exploring
    counts = np.bincount(numbers[exploring], minlength=num_actions**length)
    return {"counts": counts.tolist()}


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Judges both sentences, and tabulates exact probabilities."""
    results = results_by_cell(records)
    claims = [_claim_of_equality(settings, results), _claim_of_favour(settings, results)]
    panels = [_panel(settings, epsilon) for epsilon in settings["epsilons"]]
    tables = [_table(settings, epsilon) for epsilon in settings["epsilons"]]
    return Summary(claims, panels, tables=tables)


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Probability over the length of the sequence, a panel for each ε."""
    from ezgreedy.figures import curves, style

    return style.save(
        curves.learning_curves(summary.panels, shares_legend=True), directory / "sequences"
    )


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def _claim_of_equality(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    parts: list[Side] = []
    num_actions, k = settings["num_actions"], settings["enumerated_length"]
    for epsilon in settings["epsilons"]:
        chances = [
            sequence_probability(actions, num_actions, epsilon, Fixed(1))
            for actions in product(range(num_actions), repeat=k)
        ]
        expected = (epsilon / num_actions) ** k
        error = float(np.max(np.abs(np.divide(chances, expected) - 1.0)))
        scores = _scores(settings, results, "eps", epsilon)
        numbers[f"ε = {epsilon:g}: (ε/|A|)^{k}"] = expected
        numbers[f"ε = {epsilon:g}: largest relative deviation of {len(chances):,} sequences"] = (
            float(f"{error:.1g}")
        )
        numbers[_score_name(settings, epsilon)] = round(float(np.abs(scores).max()), 2)
        parts += [_side(error < _TOLERANCE), _side(bool((np.abs(scores) < _MOST_ERRORS).all()))]
    return Claim(EQUAL, {AS_STATED: all_of(parts)}, numbers, fewest_seeds(results))


def _claim_of_favour(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    parts: list[Side] = []
    k = settings["sampled_length"]
    repeated, _, alternating = SEQUENCES
    for epsilon in settings["epsilons"]:
        exact = {name: _chances(settings, epsilon, name) for name in SEQUENCES}
        plain = _plain(settings, epsilon)
        longer = np.array(settings["lengths"]) > 1
        parts.append(_side(bool((exact[repeated] > plain)[longer].all())))
        parts.append(_side(bool((exact[alternating] < plain)[longer].all())))
        scores = _scores(settings, results, "ez", epsilon)
        parts.append(_side(bool((np.abs(scores) < _MOST_ERRORS).all())))
        place = settings["lengths"].index(10) if 10 in settings["lengths"] else -1
        length = settings["lengths"][place]
        ratio = float(f"{exact[repeated][place] / plain[place]:.4g}")
        numbers[f"ε = {epsilon:g}: {length} times one action, εz/ε"] = ratio
        shares = [
            entry["counts"][0] / settings["num_walks_per_seed"]
            for entry in results[_cell_name("ez", epsilon)]
        ]
        sampled = mean_interval(shares)
        numbers[f"ε = {epsilon:g}: {k} times one action, sampled"] = sampled
        chance = sequence_probability([0] * k, settings["num_actions"], epsilon, _zeta(settings))
        numbers[f"ε = {epsilon:g}: {k} times one action, exact"] = float(f"{chance:.4g}")
        numbers[_score_name(settings, epsilon)] = round(float(np.abs(scores).max()), 2)
    return Claim(
        FAVOURED,
        {AS_STATED: all_of(parts)},
        numbers,
        fewest_seeds(results),
        note="What is favoured are repeats; a sequence that changes on every step is less likely "
        "than with ε-greedy.",
        key_numbers=[name for name in numbers if name.endswith("εz/ε")],
    )


def _scores(settings: Settings, results: Results, policy: str, epsilon: float) -> Any:
    """Sampled minus exact frequency of every sequence, in standard errors."""
    num_actions, k = settings["num_actions"], settings["sampled_length"]
    entries = results[_cell_name(policy, epsilon)]
    num_walks = settings["num_walks_per_seed"] * len(entries)
    sampled = np.sum([entry["counts"] for entry in entries], axis=0) / num_walks
    law = _law({**settings, "policy": policy})
    exact = np.array(
        [
            sequence_probability(actions, num_actions, epsilon, law)
            for actions in product(range(num_actions), repeat=k)
        ]
    )
    return (sampled - exact) / np.sqrt(exact * (1.0 - exact) / num_walks)


def _score_name(settings: Settings, epsilon: float) -> str:
    k, num_actions = settings["sampled_length"], settings["num_actions"]
    return f"ε = {epsilon:g}: largest of {num_actions**k} sampled errors, in standard errors"


def _table(settings: Settings, epsilon: float) -> Table:
    columns = {name: _chances(settings, epsilon, name) for name in SEQUENCES}
    rows: list[list[Number]] = []
    for place, k in enumerate(settings["lengths"]):
        numbers = [
            _plain(settings, epsilon)[place],
            *(column[place] for column in columns.values()),
        ]
        rows.append([k, *(float(f"{number:.4g}") for number in numbers)])
    return Table(
        f"Probability of a given sequence of k exploratory actions, |A| = "
        f"{settings['num_actions']}, ε = {epsilon:g}",
        ["k", "ε-greedy: any sequence", *(f"εz-greedy: {name}" for name in SEQUENCES)],
        rows,
        "Exact, from a step on which no option runs.",
    )


def _panel(settings: Settings, epsilon: float) -> Panel:
    looks = [colours.EZ_COLOUR, *colours.OTHER_COLOURS]
    curves = [
        Curve(
            "ε-greedy: any sequence",
            settings["lengths"],
            _plain(settings, epsilon),
            colour=colours.EPS_COLOUR,
        ),
        *(
            Curve(
                f"εz-greedy: {name}",
                settings["lengths"],
                _chances(settings, epsilon, name),
                colour=colour,
            )
            for name, colour in zip(SEQUENCES, looks, strict=False)
        ),
    ]
    return Panel(
        f"ε = {epsilon:g}",
        curves,
        x_label="steps k",
        y_label="probability of the sequence",
        log_y=True,
        figure="sequences",
    )


def _chances(settings: Settings, epsilon: float, name: str) -> Any:
    """Exact probabilities of one kind of sequence, [lengths]."""
    law = _zeta(settings)
    return np.array(
        [
            sequence_probability(SEQUENCES[name](k), settings["num_actions"], epsilon, law)
            for k in settings["lengths"]
        ]
    )


def _plain(settings: Settings, epsilon: float) -> Any:
    """Paper: (ε/|A|)^k, [lengths]."""
    return (epsilon / settings["num_actions"]) ** np.array(settings["lengths"], dtype=np.float64)


def _zeta(settings: Settings) -> DurationLaw:
    return Zeta(settings["mu"], settings["cap"])


def _law(settings: Settings) -> DurationLaw:
    return Fixed(1) if settings["policy"] == "eps" else _zeta(settings)


def _side(holds: bool) -> Side:
    return "holds" if holds else "contradicted"


def _cell_name(policy: str, epsilon: float) -> str:
    return f"{policy}, ε = {epsilon:g}"


EXPERIMENT = Experiment(
    id="sequence-probabilities",
    title="Section 4.1: probabilities of action sequences",
    shows="exact probabilities of sequences of exploratory actions under both policies",
    settings=SETTINGS,
    quick={"num_walks_per_seed": 5000},
    num_seeds=10,
    num_quick_seeds=5,
    statements=(EQUAL, FAVOURED),
    cost_seconds=3.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
