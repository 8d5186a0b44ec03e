"""Which runs make up a study of many games? Sweeps as data, and their runs.

A run of a sweep is identified by its settings: its name is a readable part and a hash of them, so a
sweep that is repeated finds the runs it already has.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from ezgreedy import requirements as require
from ezgreedy.agents.registry import agent as find_agent
from ezgreedy.agents.registry import run_of, scales
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.exploration.durations import DurationLaw, Geometric, Uniform, Zeta
from ezgreedy.games.atari.atari57 import games
from ezgreedy.games.atari.atari100k import published
from ezgreedy.games.minatar import GAMES as MINATAR_GAMES
from ezgreedy.games.minatar import PREFIX as MINATAR_PREFIX
from ezgreedy.runs.settings_codec import as_identified, as_plain, with_settings

MOST_SEEDS = 1000
_HASH_DIGITS = 12


class FleetSize(NamedTuple):
    """Processes of a run that is a fleet, besides its learner and its driver."""

    actors: int
    shards: int
    evaluators: int


@dataclass(frozen=True)
class Sweep:
    """Games × agents × seeds, and optionally duration laws.

    Args:
        name: name on the command line.
        games: names of the games.
        agents: names of the agent presets.
        num_seeds: number of seeds, from 0.
        scale: name of the scale, one of `agents.registry.scales`.
        frames: frames of each run; None for those of the scale.
        laws: duration laws that replace the agents' own, one run for each; empty to keep it.
        fleet: size of each run at the paper's scale; None for runs in one process.
    """

    name: str
    games: tuple[str, ...]
    agents: tuple[str, ...]
    num_seeds: int
    scale: str = "paper"
    frames: int | None = None
    laws: tuple[DurationLaw, ...] = ()
    fleet: FleetSize | None = None

    def __post_init__(self) -> None:
        _require_names("--games", self.games)
        _require_names("--agents", self.agents)
        for agent in self.agents:
            find_agent(agent)
        require.integer("--seeds", self.num_seeds, least=1, most=MOST_SEEDS)
        require.one_of("--scale", self.scale, scales())
        if self.frames is not None:
            require.integer("--frames", self.frames, least=1)


@dataclass(frozen=True)
class Member:
    """One run of a sweep: its name and settings."""

    id: str
    settings: RunSettings
    variant: str = ""


# Five of the paper's 320 lanes for each actor: about as many cores as play at the published speed
# (docs/scaling.md).
_FLEET = FleetSize(actors=64, shards=2, evaluators=2)
_RAINBOWS = ("rainbow", "rainbow-eps", "rainbow-ez", "rainbow-cts")
_R2D2S = ("r2d2", "r2d2-rnd", "r2d2-bootstrap", "r2d2-ez")


def sweeps() -> dict[str, Sweep]:
    """All sweeps by name."""
    atari = tuple(games())
    known = (
        Sweep("atari57-rainbow", atari, _RAINBOWS, num_seeds=5),  # 200M frames by default
        Sweep("atari57-r2d2", atari, _R2D2S, num_seeds=3, fleet=_FLEET),  # 30B frames by default
        Sweep(
            "atari-durations",
            EXPLORATION_GAMES,
            ("r2d2-ez",),
            num_seeds=3,
            laws=_DURATION_LAWS,
            fleet=_FLEET,
        ),
        Sweep(
            "small-durations",
            ("deep_sea/20", MINATAR_PREFIX + "freeway"),
            ("rainbow-ez",),
            num_seeds=5,
            scale="laptop",
            frames=200_000,
            laws=_SMALL_DURATION_LAWS,
        ),
        Sweep(
            "atari100k",
            tuple(published()),
            ("rainbow", "rainbow-eps", "rainbow-ez"),
            num_seeds=5,
            scale="atari100k",
        ),
        Sweep(
            "minatar",
            tuple(MINATAR_PREFIX + game for game in MINATAR_GAMES),
            (*_RAINBOWS, *_R2D2S),
            num_seeds=3,
            scale="laptop",
            frames=500_000,
        ),
    )
    return {sweep.name: sweep for sweep in known}


# Paper: "an ablation on distributions with our R2D2-based εz-greedy agent over six games" (Figure
# 2). Deviation: its text gives neither the games nor the hyper-parameters. These are the hard
# exploration games and two in which the agent must go a long way in one direction; the laws are
# among those of our chain, with means from 1.4 to about 300 steps.
EXPLORATION_GAMES = ("Freeway", "Gravitar", "MontezumaRevenge", "Pitfall", "PrivateEye", "Venture")
_DURATION_LAWS: tuple[DurationLaw, ...] = (
    *(Zeta(mu) for mu in (1.25, 1.5, 2.0, 2.5, 3.0)),
    *(Geometric(decay) for decay in (0.5, 0.8, 0.9, 0.98, 0.995)),
    *(Uniform(cap) for cap in (2, 5, 20, 100, 500)),
)


# The same question at the scale of two cores: three laws of each family, with means from 1.4 to 25,
# and Rainbow's cap where a law has one.
_SMALL_DURATION_LAWS: tuple[DurationLaw, ...] = (
    *(Zeta(mu, cap=100) for mu in (1.5, 2.0, 3.0)),
    *(Geometric(decay, cap=100) for decay in (0.5, 0.8, 0.95)),
    *(Uniform(cap) for cap in (2, 10, 50)),
)


def find(name: str) -> Sweep:
    """A sweep by name; the error for an unknown name suggests the nearest."""
    known = sweeps()
    if name not in known:
        raise require.refuse_name("sweep", f"be one of {', '.join(known)}", name, known)
    return known[name]


def members(
    sweep: Sweep, changes: Sequence[str] = (), *, has_earlier_streams: bool = False
) -> list[Member]:
    """The runs of a sweep, seed by seed, so that a stopped sweep has complete seeds.

    Args:
        sweep: the sweep.
        changes: changes to the settings of every run as "NAME=VALUE", in any order.
        has_earlier_streams: see `AgentSettings.at_scale`.
    """
    laws: tuple[DurationLaw | None, ...] = sweep.laws or (None,)
    cells = product(range(sweep.num_seeds), sweep.games, sweep.agents, laws)
    scaled = {
        (agent, game): run_of(agent, sweep.scale, game, has_earlier_streams=has_earlier_streams)
        for agent, game in product(sweep.agents, sweep.games)
    }
    return [
        _member(_settings(sweep, scaled[agent, game], seed, changes), law)
        for seed, game, agent, law in cells
    ]


def run_id(settings: RunSettings, variant: str = "") -> str:
    """Game, agent, variant and seed, for readers, and a hash of all settings."""
    plain = as_identified(as_plain(settings))
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:_HASH_DIGITS]
    parts = [settings.game, settings.agent.name, variant, f"seed{settings.seed}", digest]
    return "_".join(re.sub(r"[^A-Za-z0-9.]+", "-", part) for part in parts if part)


def _settings(sweep: Sweep, scaled: RunSettings, seed: int, changes: Sequence[str]) -> RunSettings:
    settings = replace(scaled, seed=seed)
    if sweep.frames is not None:
        settings = replace(settings, frames=sweep.frames)
    settings = with_settings(settings, changes)
    # A directory has one run for each game, agent and seed.
    fixed = (seed, scaled.game, scaled.agent.name)
    if (settings.seed, settings.game, settings.agent.name) != fixed:
        raise require.refuse("--set", "leave seed, game and agent.name to the sweep", list(changes))
    return settings


def _member(settings: RunSettings, law: DurationLaw | None) -> Member:
    if law is None:
        return Member(run_id(settings), settings)
    settings = replace(settings, agent=settings.agent.with_durations(law))
    variant = _variant(law)
    return Member(run_id(settings, variant), settings, variant)


def _variant(law: DurationLaw) -> str:
    """A law in one word, with the number that distinguishes it from others of its kind."""
    number = {Zeta: "mu", Geometric: "decay", Uniform: "cap"}[type(law)]
    return f"{type(law).__name__.lower()}{getattr(law, number):g}"


def _require_names(name: str, values: tuple[str, ...]) -> None:
    if not values or not all(values):
        raise require.refuse(name, "name at least one, with commas between", ",".join(values))
    twice = [value for value in values if values.count(value) > 1]
    if twice:
        raise require.refuse(name, "name each once", twice[0])
