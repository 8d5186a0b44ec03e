"""Row j: are the random streams of all runs, roles and lanes unrelated?"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from ezgreedy.agents.registry import agents, run_of
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.exploration.ez_greedy import EpsilonGreedy
from ezgreedy.games.atari.atari57 import games
from ezgreedy.seeding import role_seed
from faults.matrix import Case, Failure, Row

NUM_SEEDS, NUM_EVALUATIONS = 5, 8
NUM_DRAWS = 4096
ALPHA = 0.001  # for all cases of a group together
SAME, CORRELATED, PLAYED = "duplicates among all streams", "correlated pairs", "actions at ε = 1"
STREAMS_PER_CASE = 1500
LANES_PER_CASE = 256
# Roles of a run, and the roles that the agent's own seed is split into.
_ROLES = ("environments", "shards")
_AGENT_ROLES = ("learner", "replay", "explorer", "heads", "bootstrap", "distillation", "noise")


class Stream(NamedTuple):
    """Who draws."""

    game: str
    agent: str
    seed: int
    role: str
    index: int = 0


class Streams(Row):
    """No two streams are the same, and none follows another."""

    letter = "j"
    title = "Independent streams"
    goal = "0 duplicates, 0 significant pairs (Bonferroni at 0.1 % over all cases of a group)"
    others = "seed + i in SB3, Gymnasium and RLlib: 12 distinct streams of 40, largest |z| 65.6"
    groups = (SAME, CORRELATED, PLAYED)
    quick = 3
    full = 3 * 20
    seconds = 900.0

    def prepare(self, place: Path) -> None:
        self._all = list(_streams())
        self._settings: dict[str, RunSettings] = {
            name: replace(run_of(name, "paper", "Pong"), streams="separate") for name in agents()
        }

    def run(self, case: Case) -> dict[str, Any]:
        if case.group == SAME:
            return self._same(case)
        if case.group == CORRELATED:
            chosen = case.rng.choice(len(self._all), STREAMS_PER_CASE, replace=False)
            draws = [self._generator(self._all[n]).random(NUM_DRAWS) for n in chosen]
            return self._pairs(np.array(draws), [str(self._all[n]) for n in chosen])
        return self._played(case)

    def words(self, facts: Sequence[dict[str, Any]]) -> str:
        streams = max(fact["streams"] for fact in facts)
        if "z" not in facts[0]:
            return f"{streams:,} streams, each with each"
        pairs = sum(fact["trials"] for fact in facts)
        return f"{pairs:,} pairs, largest |z| {max(fact['z'] for fact in facts):.2f}"

    def _seed(self, stream: Stream) -> int:
        settings = replace(self._settings[stream.agent], game=stream.game, seed=stream.seed)
        if stream.role in _AGENT_ROLES:
            return role_seed(settings.role_seed("agent"), stream.role, stream.index)
        return settings.role_seed(stream.role, stream.index)

    def _generator(self, stream: Stream) -> np.random.Generator:
        return np.random.default_rng(self._seed(stream))

    def _same(self, case: Case) -> dict[str, Any]:
        """Every stream of the study once, with another first seed in each case."""
        first = int(case.rng.integers(10**6)) if case.number else 0
        seen: dict[int, Stream] = {}
        for stream in self._all:
            moved = stream._replace(seed=stream.seed + first)
            seed = self._seed(moved)
            if seed in seen:
                raise Failure(f"{moved} draws what {seen[seed]} draws")
            seen[seed] = moved
        return {"trials": len(seen), "streams": len(seen)}

    def _played(self, case: Case) -> dict[str, Any]:
        """What is played with ε = 1 in the lanes of some runs."""
        rng = case.rng
        chosen = [self._all[n] for n in rng.choice(len(self._all), 4, replace=False)]
        lanes = LANES_PER_CASE // len(chosen)
        tapes, names = [], []
        for stream in chosen:
            seed = self._seed(stream._replace(role="explorer", index=0))
            # Without options, which hold an action: every step is a draw of its own.
            policy = EpsilonGreedy(6, 1.0, lanes, seed)
            greedy = np.zeros(lanes, dtype=np.int64)
            tape = np.array([policy(greedy).copy() for _ in range(NUM_DRAWS)])
            tapes.append(tape.T)
            names += [f"lane {lane} of {stream}" for lane in range(lanes)]
        return self._pairs(np.concatenate(tapes).astype(float), names)

    def _pairs(self, draws: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
        """Correlations of all pairs against what chance allows.

        Args:
            draws: [streams, draws].
            names: who drew them.
        """
        centred = draws - draws.mean(axis=1, keepdims=True)
        centred /= np.linalg.norm(centred, axis=1, keepdims=True)
        z = centred @ centred.T * math.sqrt(draws.shape[1])
        np.fill_diagonal(z, 0.0)
        num_pairs = len(names) * (len(names) - 1) // 2
        cases = max(self.full // len(self.groups), 1)
        critical = float(norm.isf(ALPHA / (2.0 * num_pairs * cases)))
        worst = np.unravel_index(np.abs(z).argmax(), z.shape)
        largest = float(abs(z[worst]))
        if largest > critical:
            first, second = (names[int(n)] for n in worst)
            raise Failure(f"|z| = {largest:.2f} > {critical:.2f}: {first} and {second}")
        return {"trials": num_pairs, "streams": len(names), "z": largest, "critical": critical}


def _streams() -> Iterator[Stream]:
    """Every stream of a study of 57 games, all agents and five seeds."""
    for game in games():
        for agent in agents():
            for seed in range(NUM_SEEDS):
                for role in (*_ROLES, *_AGENT_ROLES):
                    yield Stream(game, agent, seed, role)
                for number in range(NUM_EVALUATIONS):
                    yield Stream(game, agent, seed, "evaluation", number)


ROW = Streams()
