"""Row e: NaN and infinity, wherever numbers pass."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ezgreedy.agents.agent import game_spec
from ezgreedy.agents.r2d2.network import RecurrentNetwork
from ezgreedy.agents.r2d2.roles import NetworkCopy
from ezgreedy.agents.rainbow.network import RainbowNetwork
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.games.lanes import Lanes, LaneSteps
from ezgreedy.learning.gradients import NotFiniteError
from ezgreedy.results.store import read_results
from ezgreedy.runs.run_directory import FAILED, RunDirectory
from ezgreedy.runs.run_loop import train
from ezgreedy.runs.training import Training
from faults import base_runs
from faults.matrix import Case, Failure, Row

AGENTS = {"Rainbow": "rainbow-ez", "R2D2": "r2d2-ez"}
SITES = ("reward", "stored return", "network output", "gradient", "parameter", "priority")
IN_FLIGHT = "R2D2: weights in flight"
VALUES = (math.nan, math.inf, -math.inf)


class Injected(Exception):
    """Training went on after the number was injected."""


class NotFinite(Row):
    """A number that is none stops the run at once, and is never saved or learned from."""

    letter = "e"
    title = "NaN and infinity"
    goal = "caught before the next update; run marked as failed; no checkpoint holds such a number"
    others = "SB3: the run finishes and all weights are NaN; RLlib: a bare AssertionError later"
    groups = (*(f"{agent}: {site}" for site in SITES for agent in AGENTS), IN_FLIGHT)
    quick = 2 * len(groups)
    full = 50 * len(groups)

    def prepare(self, place: Path) -> None:
        self._settings = {
            name: base_runs.brief(agent, frames=400) for name, agent in AGENTS.items()
        }

    def run(self, case: Case) -> dict[str, Any]:
        value = float(case.rng.choice(VALUES))
        if case.group == IN_FLIGHT:
            return self._in_flight(case, value)
        agent, _, site = case.group.partition(": ")
        # Late enough that there is something to learn from, early enough to cost little.
        updates = int(case.rng.integers(1, 12))
        injection = _Injection(site, value, updates, case.rng)
        directory = case.place / "run"
        code = injection.train(directory, replace(self._settings[agent], seed=case.number))
        self._check(directory, code, injection)
        return {"value": str(value), "updates": injection.num_updates}

    def _check(self, directory: Path, code: int, injection: "_Injection") -> None:
        if injection.num_updates is None:
            raise Failure("nothing was injected")
        if code not in (1, 2):
            raise Failure(f"exit code {code} after an injected number")
        place = RunDirectory(directory)
        status = place.status()
        if status["state"] != FAILED or not status["reason"]:
            raise Failure(f"the status is {status}")
        if injection.later > injection.allowed:
            raise Failure(f"{injection.later} updates came after it: {status['reason']}")
        _require_finite_run(place)

    def _in_flight(self, case: Case, value: float) -> dict[str, Any]:
        """Weights that change on their way from the learner to an actor."""
        settings = replace(self._settings["R2D2"], seed=case.number)
        lanes = Lanes(settings.game, settings.lanes, settings.protocol, seed=0)
        agent: Any = settings.agent.build(game_spec(lanes), lanes=settings.lanes, seed=case.number)
        weights = {name: array.copy() for name, array in agent.learning.weights().items()}
        names = [name for name, array in weights.items() if array.dtype.kind == "f" and array.size]
        name = str(case.rng.choice(names))
        flat = weights[name].reshape(-1)
        flat[case.rng.integers(flat.size)] = value
        weights[name] = flat.reshape(weights[name].shape)
        copy = NetworkCopy(settings.agent, game_spec(lanes), seed=case.number)
        try:
            copy.follow(weights)
            policy = copy.evaluation_policy(settings.lanes, 0, 0.0)
            observations = lanes.reset()
            for _ in range(4):
                policy.act(observations, np.zeros(settings.lanes, dtype=bool))
        except (NotFiniteError, ValueError) as error:
            return {"value": str(value), "said": str(error)[:100]}
        raise Failure(f"an actor plays with {value} in {name}")


class _Injection:
    """One number that is none, at one place, after a number of updates.

    Args:
        site: where.
        value: the number.
        updates: when.
        rng: which of many numbers there.
    """

    def __init__(self, site: str, value: float, updates: int, rng: np.random.Generator) -> None:
        self.site, self.value, self.rng = site, value, rng
        self._updates = updates
        self.num_updates: int | None = None  # when it was injected
        self.later = 0  # updates since
        # A gradient or a loss is found within the update; a reward, before it is stored.
        self.allowed = 0

    def train(self, directory: Path, settings: RunSettings) -> int:
        """Train until the number is found, or for a while after."""
        places: dict[str, tuple[Any, str, Callable[..., Any]]] = {
            "reward": (Lanes, "step", self._step),
            "stored return": (_replay_class(settings), "sample", self._sample),
            "network output": (_network_class(settings), "values", self._values),
            "gradient": (Training, "step", self._hook),
            "parameter": (Training, "step", self._spoil),
            "priority": (_replay_class(settings), "update_priorities", self._priorities),
        }
        owner, name, wrapper = places[self.site]
        original, step = getattr(owner, name), Training.step

        def wrapped(instance: Any, *arguments: Any, **named: Any) -> Any:
            return wrapper(original, instance, *arguments, **named)

        def counting(training: Training) -> LaneSteps:
            self._training = training
            before = training.agent.num_updates
            steps = step(training) if owner is not Training else wrapped(training)
            if self.num_updates is not None:
                self.later += training.agent.num_updates - max(before, self.num_updates)
                if self.later > 20:
                    raise Injected
            return steps

        if owner is not Training:
            setattr(owner, name, wrapped)
        Training.step = counting  # type: ignore[method-assign]
        options = replace(base_runs.ALWAYS, seconds_between_checkpoints=0.2)
        try:
            return train(directory, settings, options)
        except (ValueError, TypeError):  # the command line makes a sentence of it
            return 2
        except Injected as error:
            raise Failure(f"{self.later} updates after {self.value} in a {self.site}") from error
        finally:
            setattr(owner, name, original)
            Training.step = step  # type: ignore[method-assign]

    @property
    def _is_due(self) -> bool:
        training: Training | None = getattr(self, "_training", None)
        return (
            self.num_updates is None
            and training is not None
            and training.agent.num_updates >= self._updates
        )

    def _note(self) -> None:
        self.num_updates = self._training.agent.num_updates

    def _poisoned(self, array: Any) -> Any:
        changed = np.array(array, dtype=float)
        changed.reshape(-1)[self.rng.integers(changed.size)] = self.value
        return changed

    def _step(self, call: Callable[..., Any], lanes: Lanes, actions: Any) -> Any:
        steps = call(lanes, actions)
        if self._is_due and lanes is self._training.lanes:
            self._note()
            return replace(steps, rewards=self._poisoned(steps.rewards))
        return steps

    def _sample(self, call: Callable[..., Any], replay: Any, *more: Any) -> Any:
        batch = call(replay, *more)
        if self._is_due:
            self._note()
            if hasattr(batch, "returns"):
                return batch._replace(returns=self._poisoned(batch.returns).astype(np.float32))
            # Windows have room before and after the steps that are learned from.
            rewards = batch.rewards.copy()
            rows, steps = np.nonzero(batch.is_trained(self._training.agent.preset.learner.burn_in))
            chosen = int(self.rng.integers(len(rows)))
            rewards[rows[chosen], steps[chosen]] = self.value
            return batch._replace(rewards=rewards)
        return batch

    def _values(self, call: Callable[..., Any], network: Any, *more: Any) -> Any:
        found = call(network, *more)
        if not self._is_due:
            return found
        self._note()
        values = (found[0] if isinstance(found, tuple) else found).clone()
        values.reshape(-1)[int(self.rng.integers(values.numel()))] = self.value
        return (values, *found[1:]) if isinstance(found, tuple) else values

    def _hook(self, call: Callable[..., Any], training: Any) -> Any:
        if self._is_due:
            self._note()
            parameter = self._parameter(training.agent.learner)
            parameter.register_hook(lambda gradient: gradient * self.value)
        return call(training)

    def _spoil(self, call: Callable[..., Any], training: Any) -> Any:
        if self._is_due:
            self._note()
            self._fill(training.agent.learner)
        return call(training)

    def _fill(self, learner: Any) -> None:
        with torch.no_grad():
            # A weight of −∞ may be switched off by the layer after it; NaN never is.
            self._parameter(learner).reshape(-1)[0] = math.nan

    def _parameter(self, learner: Any) -> torch.nn.Parameter:
        """A parameter of the torso, which every value depends on."""
        found = [p for name, p in learner.online.named_parameters() if "torso" in name]
        return found[0]

    def _priorities(self, call: Callable[..., Any], replay: Any, *more: Any) -> Any:
        if self._is_due:
            self._note()
            *first, last = more
            more = (*first, self._poisoned(last))
        return call(replay, *more)


def _replay_class(settings: RunSettings) -> Any:
    from ezgreedy.replay.sequence_replay import SequenceReplay
    from ezgreedy.replay.transition_replay import TransitionReplay

    return SequenceReplay if settings.agent.name.startswith("r2d2") else TransitionReplay


def _network_class(settings: RunSettings) -> Any:
    return RecurrentNetwork if settings.agent.name.startswith("r2d2") else RainbowNetwork


def _require_finite_run(place: RunDirectory) -> None:
    loaded = Checkpoints(place.checkpoints, place.identity()).load()
    if loaded is not None:
        _require_finite("state", loaded.state)
    for record in read_results(place.results):
        _require_finite("results.jsonl", record)


def _require_finite(name: str, value: Any) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _require_finite(f"{name}.{key}", inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _require_finite(name, inner)
    elif hasattr(value, "num_written"):
        _require_finite(name, value.array)
    elif np.asarray(value).dtype.kind == "f" and not np.isfinite(value).all():
        raise Failure(f"{name} holds NaN or infinity")


ROW = NotFinite()
