"""Which runs does a study of many games consist of? Sweeps as data, and the runs they mean.

A run of a sweep is known by its settings: its name is something to read and a hash of them, so the
same question asked twice finds the run that answered it.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from ezgreedy import requirements as require
from ezgreedy.atari.atari100k import published
from ezgreedy.atari.games import games, near
from ezgreedy.atari.minatar import GAMES as MINATAR_GAMES
from ezgreedy.atari.minatar import PREFIX as MINATAR_PREFIX
from ezgreedy.exploration.durations import DurationLaw, Geometric, Uniform, Zeta
from ezgreedy.running.plain import as_plain, with_setting
from ezgreedy.running.scales import SCALES, preset
from ezgreedy.running.settings import RunSettings

MOST_SEEDS = 1000
_HASH_DIGITS = 12


@dataclass(frozen=True)
class Sweep:
    """Games × agents × seeds, and perhaps duration laws.

    Args:
        name: as on a command line.
        games: what is played.
        agents: by the names of their presets.
        num_seeds: seeds 0, 1, … of everything.
        scale: a key of `SCALES`.
        frames: of each run; the scale's if None.
        laws: duration laws that take the agents' own one's place, each a run; none to keep it.
    """

    name: str
    games: tuple[str, ...]
    agents: tuple[str, ...]
    num_seeds: int
    scale: str = "paper"
    frames: int | None = None
    laws: tuple[DurationLaw, ...] = ()

    def __post_init__(self) -> None:
        _require_names("--games", self.games)
        _require_names("--agents", self.agents)
        for agent in self.agents:
            preset(agent)
        require.integer("--seeds", self.num_seeds, least=1, most=MOST_SEEDS)
        require.one_of("--scale", self.scale, tuple(SCALES))
        if self.frames is not None:
            require.integer("--frames", self.frames, least=1)


@dataclass(frozen=True)
class Member:
    """One run of a sweep: what it is called and what it does."""

    id: str
    settings: RunSettings
    variant: str = ""


_RAINBOWS = ("rainbow", "rainbow-eps", "rainbow-ez", "rainbow-cts")
_R2D2S = ("r2d2", "r2d2-rnd", "r2d2-bootstrap", "r2d2-ez")


def sweeps() -> dict[str, Sweep]:
    """All sweeps by name."""
    atari = tuple(games())
    known = (
        Sweep("atari57-rainbow", atari, _RAINBOWS, num_seeds=5),  # 200M frames by default
        Sweep("atari57-r2d2", atari, _R2D2S, num_seeds=3),  # 30B frames by default
        Sweep("atari-durations", _DURATION_GAMES, ("r2d2-ez",), num_seeds=3, laws=_DURATION_LAWS),
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
# 2). Deviation: neither the games nor the hyper-parameters are in its text. These games are the
# hard exploration games and two in which a long way has to be gone in one direction; the laws are
# among those of our chain, with means from 1.4 to some 300 steps.
_DURATION_GAMES = ("Freeway", "Gravitar", "MontezumaRevenge", "Pitfall", "PrivateEye", "Venture")
_DURATION_LAWS: tuple[DurationLaw, ...] = (
    *(Zeta(mu) for mu in (1.25, 1.5, 2.0, 2.5, 3.0)),
    *(Geometric(decay) for decay in (0.5, 0.8, 0.9, 0.98, 0.995)),
    *(Uniform(cap) for cap in (2, 5, 20, 100, 500)),
)


# The same question at the scale of two cores: three laws of each family, with means from 1.4 to 25,
# and Rainbow's cap where there is one.
_SMALL_DURATION_LAWS: tuple[DurationLaw, ...] = (
    *(Zeta(mu, cap=100) for mu in (1.5, 2.0, 3.0)),
    *(Geometric(decay, cap=100) for decay in (0.5, 0.8, 0.95)),
    *(Uniform(cap) for cap in (2, 10, 50)),
)


def find(name: str) -> Sweep:
    """A sweep by name; an unknown one is refused with the nearest."""
    known = sweeps()
    if name not in known:
        rule = f"be one of {', '.join(known)}{near(name, list(known))}"
        raise require.refuse("sweep", rule, name)
    return known[name]


def members(sweep: Sweep, changes: Sequence[str] = ()) -> list[Member]:
    """The runs of a sweep, seed by seed, so that whatever is stopped has whole seeds first.

    Args:
        sweep: which.
        changes: settings of every run as "PATH=VALUE", in this order.
    """
    laws: tuple[DurationLaw | None, ...] = sweep.laws or (None,)
    cells = product(range(sweep.num_seeds), sweep.games, sweep.agents, laws)
    return [
        _member(_settings(sweep, agent, game, seed, changes), law)
        for seed, game, agent, law in cells
    ]


def run_id(settings: RunSettings, variant: str = "") -> str:
    """Game, agent, variant and seed to read, and a hash of all settings to rely on."""
    text = json.dumps(as_plain(settings), sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:_HASH_DIGITS]
    parts = [settings.game, settings.agent.name, variant, f"seed{settings.seed}", digest]
    return "_".join(re.sub(r"[^A-Za-z0-9.]+", "-", part) for part in parts if part)


def _settings(
    sweep: Sweep, agent: str, game: str, seed: int, changes: Sequence[str]
) -> RunSettings:
    settings = replace(SCALES[sweep.scale](preset(agent), game), seed=seed)
    if sweep.frames is not None:
        settings = replace(settings, frames=sweep.frames)
    for change in changes:
        path, has_value, text = change.partition("=")
        if not has_value:
            raise require.refuse("--set", "be PATH=VALUE", change)
        settings = with_setting(settings, path, text)
    # A directory has one place for a game, an agent and a seed.
    if (settings.seed, settings.game, settings.agent.name) != (seed, game, agent):
        raise require.refuse("--set", "leave seed, game and agent.name to the sweep", list(changes))
    return settings


def _member(settings: RunSettings, law: DurationLaw | None) -> Member:
    if law is None:
        return Member(run_id(settings), settings)
    settings = replace(settings, agent=replace(settings.agent, durations=law))
    variant = _variant(law)
    return Member(run_id(settings, variant), settings, variant)


def _variant(law: DurationLaw) -> str:
    """A law in a word, with the one number that tells it from others of its kind."""
    number = {Zeta: "mu", Geometric: "decay", Uniform: "cap"}[type(law)]
    return f"{type(law).__name__.lower()}{getattr(law, number):g}"


def _require_names(name: str, values: tuple[str, ...]) -> None:
    if not values or not all(values):
        raise require.refuse(name, "name at least one, with commas between", ",".join(values))
    twice = [value for value in values if values.count(value) > 1]
    if twice:
        raise require.refuse(name, "name each once", twice[0])
