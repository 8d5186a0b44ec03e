"""Beyond the paper: do directions and effects mend what repeated actions cannot do?

The paper's limitations: (i) actions are not directions, (ii) many actions may have the same effect;
and it asks how an agent could learn problem-specific notions of direction. Here eigenoptions, which
know the whole transition table, take the place of learned directions; their shuffled control has
the same options without their meaning. TempoRL learns how long to repeat an action. Weights from
`distinct_actions` make effects uniform, in exploration alone and in the ties of the greedy policy
too. All explore a tenth of their steps. Worlds are those in which the paper expects repeats to
fail, and those in which they shine.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.experiments.beyond import direction_worlds
from ezgreedy.experiments.beyond.direction_worlds import (
    COPIES,
    DIRECTIONS,
    NO_DIRECTIONS,
    POLICIES,
    WEIGHTS,
    WORLDS,
)
from ezgreedy.experiments.experiment import (
    Cell,
    Experiment,
    Record,
    Settings,
    fewest_seeds,
    results_by_cell,
)
from ezgreedy.figures import colours
from ezgreedy.findings.claims import OURS, Claim, Number, Statement, Summary, Table
from ezgreedy.findings.intervals import (
    Interval,
    bootstrap_interval,
    geometric_ratio_interval,
    mean_interval,
    paired_difference_interval,
    ratio_interval,
)
from ezgreedy.findings.judging import Side, above, below
from ezgreedy.requirements import FloatArray

SETTINGS: dict[str, Any] = {
    "mu": 2.0,
    "cap": 10_000,
    "sizes": {
        "sea": 10,
        "random-sea": 10,
        "maze": 24,
        "corridor": 40,
        "room": 11,
        "four-rooms": 15,
    },
    "copies": [0, 4, 12],
    "num_directions": 4,  # eight options, beside the single actions
    "longest_skip": 7,  # of TempoRL's tabular experiments
    "share": 0.1,  # of exploratory steps, of every policy
    # The paper's settings for GridWorld and DeepSea.
    "step_size": 0.1,
    "sea_step_size": 1.0,
    "discount": 0.99,
    "step_limit": 1000,
    "num_steps": 40_000,
    "copies_steps": 100_000,
    "cover_runs": 5,
    "horizon": 1_000_000,  # of cover times; a longer one counts as this
    "bootstrap_seed": 0,
}

_READINGS = (
    "Each world in which actions are no directions (randomised DeepSea, turning maze, four rooms) "
    "is a reading; DeepSea, corridor and open room, where repeats lead on, are controls."
)
_EARNED = (
    "Q-learning for {:,} steps, of which every policy explores a tenth: the interval of the "
    "difference of the reward earned, over seeds, lies above 0."
).format(SETTINGS["num_steps"])
FINDS = Statement(
    "Where actions are no directions, eigenoptions find the goal in fewer steps than εz-greedy.",
    OURS,
    "The interval of the ratio of the exact expected steps to the goal under pure exploration "
    f"(ε = 1), eigenoptions over εz-greedy, lies below 1. {_READINGS}",
)
COVERS = Statement(
    "Where actions are no directions, eigenoptions have a shorter cover time than εz-greedy.",
    OURS,
    "The interval of the ratio of median cover times under pure exploration (ε = 1), eigenoptions "
    f"over εz-greedy, lies below 1; times beyond a million steps count as a million. {_READINGS}",
)
LEARNS = Statement(
    "Where actions are no directions, Q-learning earns more with eigenoptions than with εz-greedy.",
    OURS,
    f"{_EARNED} {_READINGS}",
)
MEANING = Statement(
    "It is the directions that help, not options as such: shuffled eigenoptions earn less.",
    OURS,
    f"{_EARNED} Eigenoptions less shuffled ones. {_READINGS}",
)
SKIPS = Statement(
    "A learned duration is worth more than a drawn one: TempoRL earns more than εz-greedy.",
    OURS,
    f"{_EARNED} Every one of the six worlds is a reading.",
)
_COPIES = f"Q-learning for {SETTINGS['copies_steps']:,} steps with εz-greedy, 4 and 12 further "
_COPIES += "actions that go up (two readings)"
WEIGHED = Statement(
    "Where actions have equal effects, weights that make exploratory effects uniform help.",
    OURS,
    f"{_COPIES}: the interval of the difference of the reward earned with weights for exploration "
    "and without lies above 0.",
)
RESTORED = Statement(
    "Used for exploration and for ties, the weights undo the harm of equal actions.",
    OURS,
    f"{_COPIES}: the interval of the ratio of the reward earned with both weights to that of the "
    "world without further actions lies above 0.8.",
)
STATEMENTS = (FINDS, COVERS, LEARNS, MEANING, SKIPS, WEIGHED, RESTORED)


def cells(settings: Settings) -> list[Cell]:
    """Every policy in every world, and every use of weights at every number of copies."""
    plain = [
        Cell(_name(world, policy), {"world": world, "policy": policy})
        for world in WORLDS
        for policy in POLICIES
    ]
    weighed = [
        Cell(
            _name(f"{copies} copies", weights),
            {"world": COPIES, "policy": "ez", "copies": copies, "weights": weights},
        )
        for copies in settings["copies"]
        for weights in WEIGHTS
        if copies or weights == "none"
    ]
    return plain + weighed


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """Learning, and pure exploration where there is such a thing: TempoRL has none."""
    world = direction_worlds.world_of(settings, seed)
    result = direction_worlds.learning(settings, world, seed)
    if settings["world"] == COPIES or settings["policy"] == "skips":
        return result
    return result | direction_worlds.pure_exploration(settings, world, seed)


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Every statement, world by world."""
    found = _Found(settings, results_by_cell(records))
    claims = [
        _over_worlds(FINDS, found, found.ratio_of_steps, below, 1.0),
        _over_worlds(COVERS, found, found.ratio_of_covers, below, 1.0),
        _over_worlds(LEARNS, found, lambda world: found.gain(world, "eigen", "ez"), above, 0.0),
        _over_worlds(
            MEANING, found, lambda world: found.gain(world, "eigen", "shuffled"), above, 0.0
        ),
        _skips(found),
        _weighed(settings, found),
        _restored(settings, found),
    ]
    return Summary(claims, data=found.as_json(), tables=[found.table()])


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Steps to the goal, cover times and learning by world; the use of weights beside them."""
    from ezgreedy.figures import policy_dots, style

    panels = summary.data["panels"]
    return style.save_both(
        policy_dots.policy_dots(panels),
        policy_dots.policy_dots(panels, columns=1),
        directory / "directions",
    )


Results = Mapping[str, Sequence[Mapping[str, Any]]]


class _Found:
    """The results as samples and intervals."""

    def __init__(self, settings: Settings, results: Results) -> None:
        self.settings, self.results = settings, results
        self.num_seeds = fewest_seeds(results)

    def samples(self, world: str, policy: str, measure: str) -> FloatArray:
        return np.array([entry[measure] for entry in self.results[_name(world, policy)]])

    def gain(self, world: str, policy: str, other: str) -> Interval:
        """The difference of the reward earned."""
        return paired_difference_interval(
            self.samples(world, policy, "earned"), self.samples(world, other, "earned")
        )

    def ratio_of_steps(self, world: str) -> Interval:
        return geometric_ratio_interval(
            self.samples(world, "eigen", "steps"), self.samples(world, "ez", "steps")
        )

    def ratio_of_covers(self, world: str) -> Interval:
        """Resampled by seeds, whose runs share a map."""
        times = np.stack(
            [self.samples(world, policy, "cover") for policy in ("eigen", "ez")], axis=1
        )
        return bootstrap_interval(times, self._rng(), _ratio_of_medians)

    def cover(self, world: str, policy: str) -> Interval:
        times = self.samples(world, policy, "cover")
        return bootstrap_interval(times, self._rng(), lambda t: np.median(t, axis=(1, 2)))

    def steps(self, world: str, policy: str) -> Interval:
        steps = self.samples(world, policy, "steps")
        return geometric_ratio_interval(steps, np.ones_like(steps))

    def earned(self, world: str, policy: str) -> Interval:
        return mean_interval(self.samples(world, policy, "earned"))

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.settings["bootstrap_seed"])

    def table(self) -> Table:
        """All measures of all policies."""
        rows: list[list[Number]] = []
        for world, title in WORLDS.items():
            for policy, label in POLICIES.items():
                share = float(self.samples(world, policy, "share").mean())
                explored: list[Number] = ["–", "–"]
                if policy != "skips":
                    explored = [self.steps(world, policy), self.cover(world, policy)]
                rows.append([title, label, *explored, self.earned(world, policy), round(share, 4)])
        return Table(
            "Pure exploration and learning",
            ["world", "policy", "steps to the goal", "cover time", "reward earned", "explored"],
            rows,
            "Steps to the goal are exact (geometric means over maps and shuffles), cover times are "
            "medians, up to a million steps. Reward earned is the share of what the best policy "
            "would earn in the same steps; explored is the share of exploratory steps.",
        )

    def as_json(self) -> dict[str, Any]:
        """The panels of the figure: title, axis, and dots by row and policy."""
        measures = {
            "steps": ("pure exploration: finding the goal", "expected steps", self.steps),
            "cover": ("pure exploration: covering everything", "cover time (steps)", self.cover),
            "earned": ("learning at equal exploration", "share of the best reward", self.earned),
        }
        panels = [
            {
                "title": title,
                "x_label": x_label,
                "log_x": measure != "earned",
                "labels": POLICIES,
                "colours": [colours.EPS_COLOUR, colours.EZ_COLOUR, *colours.OTHER_COLOURS[:3]],
                "rows": {
                    name: {
                        policy: list(compute(world, policy))
                        for policy in POLICIES
                        if policy != "skips" or measure == "earned"
                    }
                    for world, name in WORLDS.items()
                },
            }
            for measure, (title, x_label, compute) in measures.items()
        ]
        copies = {
            f"{number} further actions": {
                weights: list(self.earned(f"{number} copies", weights))
                for weights in WEIGHTS
                if number or weights == "none"
            }
            for number in self.settings["copies"]
        }
        panels.append(
            {
                "title": "equal actions: εz-greedy with weights",
                "x_label": "share of the best reward",
                "log_x": False,
                "labels": WEIGHTS,
                "colours": [colours.EZ_COLOUR, *colours.OTHER_COLOURS[3:]],
                "rows": copies,
            }
        )
        return {"panels": panels}


def _over_worlds(
    statement: Statement, found: _Found, measure: Any, side: Any, bound: float
) -> Claim:
    numbers: dict[str, Number] = {title: measure(world) for world, title in WORLDS.items()}
    sides: dict[str, Side] = {title: side(numbers[title], bound) for title in WORLDS.values()}
    notes = {
        FINDS: "Steps are exact; intervals are over maps, of which corridor and rooms have one.",
        COVERS: _missed(found),
    }
    return Claim(
        statement,
        {title: sides[title] for title in NO_DIRECTIONS.values()},
        numbers,
        found.num_seeds,
        controls={title: sides[title] for title in DIRECTIONS.values()},
        note=notes.get(statement, "Of the reward that the best policy would earn, as a share."),
        key_numbers=list(NO_DIRECTIONS.values()),
    )


def _missed(found: _Found) -> str:
    shares = [
        f"{100 * float(found.samples(world, 'eigen', 'missed').mean()):.0f} % in {title}"
        for world, title in WORLDS.items()
    ]
    return (
        "With single actions among them eigenoptions have full coverage (Property 1). Directions "
        f"alone never visit these shares of the pairs: {', '.join(shares)}."
    )


def _skips(found: _Found) -> Claim:
    numbers: dict[str, Number] = {}
    readings: dict[str, Side] = {}
    for world, title in WORLDS.items():
        gain = found.gain(world, "skips", "ez")
        numbers[title] = gain
        readings[title] = above(gain)
        numbers[f"{title}: TempoRL less ε-greedy"] = found.gain(world, "skips", "eps")
    return Claim(
        SKIPS,
        readings,
        numbers,
        found.num_seeds,
        note="TempoRL repeats greedy actions too, and draws skips at random while all are equal.",
        key_numbers=[WORLDS["random-sea"], WORLDS["sea"], WORLDS["corridor"]],
    )


def _weighed(settings: Settings, found: _Found) -> Claim:
    numbers: dict[str, Number] = {}
    readings: dict[str, Side] = {}
    for number in settings["copies"]:
        if number:
            world = f"{number} copies"
            gain = found.gain(world, "exploration", "none")
            numbers[f"{number} further actions"] = gain
            readings[f"{number} further actions"] = above(gain)
    return Claim(
        WEIGHED,
        readings,
        numbers,
        found.num_seeds,
        note="Ties of the greedy policy are broken at random, and that is biased as well.",
    )


def _restored(settings: Settings, found: _Found) -> Claim:
    numbers: dict[str, Number] = {}
    readings: dict[str, Side] = {}
    least = f"{min(settings['copies'])} copies"
    for number in settings["copies"]:
        if number:
            both = found.samples(f"{number} copies", "both", "earned")
            ratio = ratio_interval(both, found.samples(least, "none", "earned"))
            numbers[f"{number} further actions: ratio"] = ratio
            readings[f"{number} further actions"] = above(ratio, 0.8)
            numbers[f"{number} further actions: both weights − none"] = found.gain(
                f"{number} copies", "both", "none"
            )
    return Claim(
        RESTORED,
        readings,
        numbers,
        found.num_seeds,
        note="With both, behaviour has the law of the world without further actions until values "
        "of equal actions differ.",
    )


def _ratio_of_medians(times: FloatArray) -> FloatArray:
    """Medians over seeds and runs of [repeats, seeds, 2, runs], the first over the second."""
    medians = np.median(times, axis=(1, 3))
    return np.asarray(medians[:, 0] / medians[:, 1])


def _name(world: str, policy: str) -> str:
    return f"{world}, {policy}"


EXPERIMENT = Experiment(
    id="beyond-directions",
    title="Beyond the paper: directions, effects and learned durations",
    shows="what eigenoptions, action weights and TempoRL do where actions are no directions, and "
    "where they are",
    settings=SETTINGS,
    quick={
        "sizes": {"sea": 5, "random-sea": 5, "maze": 6, "corridor": 8, "room": 4, "four-rooms": 15},
        "copies": [0, 2],
        "num_steps": 2000,
        "copies_steps": 2000,
        "cover_runs": 2,
        "horizon": 20_000,
    },
    num_seeds=10,
    num_quick_seeds=2,
    num_thorough_seeds=30,
    statements=STATEMENTS,
    cost_seconds=110.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
