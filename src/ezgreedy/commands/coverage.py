"""`ezgreedy coverage ENV`: how soon do policies visit the parts of an environment?

Runs ε- and εz-greedy, other laws or a user's own policies in any Gymnasium environment with
discrete actions, draws their first-visit maps and compares them. All arguments are checked and all
trials run before any file is written.
"""

import argparse
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ezgreedy import __version__, plugins
from ezgreedy import requirements as require
from ezgreedy.commands.coverage_words import comparison, reference
from ezgreedy.commands.help_text import DefaultsShown
from ezgreedy.commands.imports import add_import_option
from ezgreedy.commands.named_policies import NamedPolicy, named_policy
from ezgreedy.commands.parsing import whole_number
from ezgreedy.commands.targets import check_writable
from ezgreedy.exploration.durations import Zeta
from ezgreedy.packages import require_installed

# These imports are slow; `ezgreedy --help` must not wait for them.
if TYPE_CHECKING:
    from gymnasium.spaces import Discrete

    from ezgreedy.analysis.bins import Bins
    from ezgreedy.analysis.environment_walks import Environment
    from ezgreedy.analysis.visits import FirstVisitTimes
    from ezgreedy.figures.coverage_maps import Layout

SUMMARY = "coverage.json"
_NEEDED = ("gymnasium", "matplotlib", "rich")


@dataclass(frozen=True)
class CoverageSettings:
    """Settings of the command; the defaults are the paper's for MountainCar.

    Args:
        environment: environment id for `gymnasium.make`.
        policies: policies to compare, as `named_policy` reads them.
        steps: steps of each trial.
        trials: trials of each policy.
        bins: bins along each continuous dimension.
        ranges: (dimension, low, high) for dimensions that are unbounded or to be cut.
        dims: dimensions of the observation to map; None for the first two.
        width: cells in a row, if the observation is the number of a grid cell; None to ask the
            environment.
        max_episode_steps: length at which episodes are truncated; None for the environment's limit.
        epsilon: probability of starting to explore.
        greedy: action that both policies take when not exploring.
        mu: exponent of the zeta law.
        cap: longest duration.
        seed: random seed of the environments and of both policies, which share their coins.
    """

    environment: str
    policies: tuple[str, ...] = ("ez", "eps")
    steps: int = 5000
    trials: int = 50
    bins: int = 12
    ranges: tuple[tuple[int, float, float], ...] = ()
    dims: tuple[int, ...] | None = None
    width: int | None = None
    max_episode_steps: int | None = None
    epsilon: float = 1.0
    greedy: int | None = None
    mu: float = 2.0
    cap: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        require.integer("--steps", self.steps, least=1)
        require.integer("--trials", self.trials, least=1)
        require.integer("--bins", self.bins, least=1)
        require.integer("--seed", self.seed, least=0, most=None)
        require.number("--epsilon", self.epsilon, 0.0, 1.0)
        if self.epsilon < 1.0 and self.greedy is None:
            rule = "be 1, or come with --greedy ACTION for non-exploratory steps"
            raise require.refuse("--epsilon", rule, self.epsilon)
        if self.max_episode_steps is not None:
            require.integer("--max-episode-steps", self.max_episode_steps, least=1)

    def named_policies(self) -> list[NamedPolicy]:
        """The policies to compare; refuses names that mean nothing."""
        named = [named_policy(name, Zeta(self.mu, self.cap)) for name in self.policies]
        if len({policy.slug for policy in named}) != len(named):
            raise require.refuse("--policy", "name each policy once", list(self.policies))
        return named

    @property
    def constant_greedy(self) -> Callable[[Any], int] | None:
        """The greedy policy; None if there is none."""
        action = self.greedy
        return None if action is None else lambda _: action


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    defaults = CoverageSettings("")
    parser = commands.add_parser(
        "coverage",
        help="show how soon policies visit the parts of your own environment",
        description="Runs ε-greedy, εz-greedy or your own policies in a Gymnasium environment with "
        "discrete actions and maps how many steps it takes to first visit each part of the "
        "observation space.",
        formatter_class=DefaultsShown,
    )
    add = parser.add_argument
    add(
        "environment",
        metavar="ENV",
        help="environment id of Gymnasium, such as MountainCar-v0, or MODULE:ID",
    )
    add_import_option(parser)
    add(
        "--policy",
        action="append",
        default=argparse.SUPPRESS,
        metavar="POLICY",
        help="ez (εz-greedy), eps (ε-greedy), a law such as 'Zeta(1.5, cap=100)' for εz-greedy "
        "with it, or MODULE:NAME for your own, called with num_actions, epsilon, lanes and seed; "
        "rules that end options early may follow, as in 'ez; stops=StopOnUnchanged(1)'; repeatable "
        "(default: ez and eps)",
    )
    add("--steps", type=whole_number, default=defaults.steps, help="steps of each trial")
    add("--trials", type=whole_number, default=defaults.trials, help="trials to average")
    add("--bins", type=int, default=defaults.bins, help="bins along each continuous dimension")
    add(
        "--range",
        nargs=3,
        action="append",
        type=float,
        default=argparse.SUPPRESS,
        metavar=("DIM", "LOW", "HIGH"),
        help="range of a dimension of the observation; required if it is unbounded",
    )
    add(
        "--dims",
        nargs="+",
        type=int,
        default=argparse.SUPPRESS,
        metavar="I",
        help="one or two dimensions of the observation to map (default: the first two)",
    )
    _add_optional(parser)
    add("--epsilon", type=float, default=defaults.epsilon, help="probability of exploring")
    add("--mu", type=float, default=defaults.mu, help="exponent of the zeta law")
    add("--cap", type=int, default=defaults.cap, help="longest duration")
    add("--seed", type=int, default=defaults.seed, help="random seed of policies and environments")
    add("--out", type=Path, required=True, metavar="DIR", help="directory for figures and numbers")
    parser.set_defaults(run=run)


def _add_optional(parser: argparse.ArgumentParser) -> None:
    """Options without a fixed default."""
    descriptions = {
        "--width": "cells in a row, if the observation is the number of a grid cell (default: what "
        "the environment says)",
        "--max-episode-steps": "truncate episodes here (default: the environment's limit)",
        "--greedy": "action when not exploring; required if epsilon is below 1",
    }
    for name, text in descriptions.items():
        parser.add_argument(name, type=int, default=argparse.SUPPRESS, metavar="N", help=text)


def run(parsed: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    require_installed("coverage", _NEEDED, "study")
    settings = _settings(parsed)
    _check_directory(parsed.out, settings)
    began = time.monotonic()
    _import_module_of(settings.environment)
    policies = settings.named_policies()
    bins, layout, num_actions = _fitted(settings)
    results = _all_visits(settings, policies, bins, num_actions)
    summary = {
        "command": "coverage",
        "version": __version__,
        "environment": settings.environment,
        "settings": asdict(settings),
        "cells": asdict(bins),
        **_numbers(results, settings.trials),
        "titles": {policy.name: policy.title for policy in policies},
        "seconds": round(time.monotonic() - began, 2),
    }
    named = {policy.slug: results[policy.name] for policy in policies}
    slug_titles = {policy.slug: policy.title for policy in policies}
    files = _write(parsed.out, (named, slug_titles), layout, summary)
    print(comparison(summary, bins.num_cells))
    print("\n" + "\n".join(f"wrote {file}" for file in files))
    print(f"one page of it: ezgreedy report {parsed.out}")
    return 0


def _settings(parsed: argparse.Namespace) -> CoverageSettings:
    given = dict(vars(parsed))
    for name in ("run", "out", "imports"):
        given.pop(name)
    if "policy" in given:
        given["policies"] = tuple(given.pop("policy"))
    if "dims" in given:
        given["dims"] = tuple(given["dims"])
    ranges = []
    for dim, low, high in given.pop("range", ()):
        if not dim.is_integer():
            raise require.refuse("--range", "begin with the number of a dimension", dim)
        ranges.append((int(dim), low, high))
    return CoverageSettings(**given, ranges=tuple(ranges))


def _check_directory(directory: Path, settings: CoverageSettings) -> None:
    """Refuses to overwrite anything except an earlier coverage with the same settings."""
    check_writable("--out", directory)
    if not directory.exists() or not any(directory.iterdir()):
        return
    before, now = _earlier(directory), json.loads(json.dumps(asdict(settings)))
    if before.get("environment") != settings.environment:
        rule = f"be empty or hold an earlier coverage of {settings.environment}"
        raise require.refuse("--out", rule, str(directory))
    others = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if others:
        name = others[0]
        difference = f"{name} {before.get(name)!r} there, {now.get(name)!r} here"
        raise ValueError(
            f"{directory} holds a coverage with other settings ({difference}); "
            "choose another --out, or remove the directory"
        )


def _earlier(directory: Path) -> dict[str, Any]:
    """The settings of the coverage in a directory; empty if there is none."""
    try:
        summary = json.loads((directory / SUMMARY).read_text(encoding="utf-8"))
        return dict(summary["settings"]) if summary["command"] == "coverage" else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


# The environment.


def _import_module_of(environment: str) -> None:
    """Imports the module of MODULE:ID, which may also register laws and rules of policies."""
    module, colon, _ = environment.partition(":")
    if colon:
        try:
            plugins.add(module)
        except (ValueError, ImportError) as error:
            raise ValueError(f"{environment} cannot be made: {error.__cause__ or error}") from error


def _fitted(settings: CoverageSettings) -> "tuple[Bins, Layout, int]":
    """The cells of the environment, their layout, and the number of actions."""
    from ezgreedy.analysis.bins import Bins, RangeNeeded
    from ezgreedy.analysis.environment_walks import grid_width
    from ezgreedy.figures.coverage_maps import Layout

    env = _opened(settings)
    try:
        ranges = {dim: (low, high) for dim, low, high in settings.ranges}
        try:
            bins = Bins.of(env.observation_space, settings.bins, settings.dims, ranges)
        except RangeNeeded as error:
            raise error.naming(f"--range {error.dimension} LOW HIGH") from None
        if settings.greedy is not None and not env.action_space.contains(settings.greedy):
            raise require.refuse("--greedy", f"be one of {env.action_space}", settings.greedy)
        num_actions = int(cast("Discrete", env.action_space).n)
        width = grid_width(env, bins) if settings.width is None else settings.width
    finally:
        env.close()
    return bins, Layout(bins, width), num_actions


def _opened(settings: CoverageSettings) -> "Environment":
    """The environment; refuses an unknown name, with the reason."""
    import gymnasium

    from ezgreedy.analysis.environment_walks import open_environment

    if importlib.util.find_spec("ezgreedy.envs") is not None:
        importlib.import_module("ezgreedy.envs")  # registers our own environments
    try:
        return open_environment(settings.environment, settings.max_episode_steps)
    except gymnasium.error.UnregisteredEnv as error:
        rule = "be an environment that Gymnasium knows (--import MODULE adds those of a module)"
        known = gymnasium.registry
        raise require.refuse_name("ENV", rule, settings.environment, known) from error
    except (gymnasium.error.Error, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{settings.environment} cannot be made: {reason}") from error


def _all_visits(
    settings: CoverageSettings, policies: list[NamedPolicy], bins: "Bins", num_actions: int
) -> "dict[str, FirstVisitTimes]":
    """The trials of every policy, with a progress bar that shows the time left."""
    from ezgreedy.analysis.environment_walks import first_visits
    from ezgreedy.runs.progress_bar import ProgressBar

    made = []
    for policy in policies:
        with _naming(policy):
            made.append(
                policy.make(
                    num_actions=num_actions,
                    epsilon=settings.epsilon,
                    lanes=settings.trials,
                    seed=settings.seed,
                )
            )
    results = {}
    with ProgressBar("steps") as bar:
        for policy, explore in zip(policies, made, strict=True):
            bar.begin(policy.title, settings.steps)
            with _naming(policy):
                results[policy.name] = first_visits(
                    settings.environment,
                    explore,
                    settings.steps,
                    bins,
                    max_episode_steps=settings.max_episode_steps,
                    greedy=settings.constant_greedy,
                    stops=policy.rule(settings.trials, settings.seed),
                    progress=bar.show,
                )
    return results


@contextmanager
def _naming(policy: NamedPolicy) -> Iterator[None]:
    """Errors within it say which of several policies they are about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if str(error).startswith("--policy"):
            raise
        raise ValueError(f"--policy {policy.name}: {error}") from error
    except Exception as error:
        error.add_note(f"in --policy {policy.name}")  # a fault of their own keeps its traceback
        raise


# The numbers.


def _numbers(results: "dict[str, FirstVisitTimes]", trials: int) -> dict[str, Any]:
    """Means with t intervals over trials, as plain data; one trial has no interval."""
    from ezgreedy.findings.intervals import Interval, mean_interval, ratio_interval

    def plain(interval: Interval) -> dict[str, float | None]:
        return interval._asdict() | ({"low": None, "high": None} if trials == 1 else {})

    policies = {
        name: {
            "mean_first_visit": plain(mean_interval(result.trial_means())),
            "never_visited": plain(mean_interval(result.trial_never())),
            "cells_never_visited_in_any_trial": int((result.visits.sum(axis=0) == 0).sum()),
            "first_visit_map": result.mean_map().tolist(),
            "visit_map": result.visit_map().tolist(),
            "trial_means": result.trial_means().tolist(),
        }
        for name, result in results.items()
    }
    against = reference(results)
    ratios = {
        f"mean_first_visit_{name}_over_{against}": plain(
            ratio_interval(result.trial_means(), results[against].trial_means())
        )
        for name, result in results.items()
        if name != against
    }
    return {"policies": policies, "comparison": ratios, "interval_level": 0.95}


def _write(
    directory: Path,
    maps: "tuple[dict[str, FirstVisitTimes], dict[str, str]]",
    layout: "Layout",
    summary: dict[str, Any],
) -> list[Path]:
    """Writes figures, then the numbers; returns the files."""
    from ezgreedy.figures.coverage_maps import draw_maps

    directory.mkdir(parents=True, exist_ok=True)
    files = draw_maps(*maps, layout, summary["environment"], directory)
    summary["files"] = [file.name for file in files]
    target, unfinished = directory / SUMMARY, directory / f".{SUMMARY}.partial"
    unfinished.write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(unfinished, target)
    return [*files, target]
