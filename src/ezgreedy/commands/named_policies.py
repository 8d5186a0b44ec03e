"""Which policies does `--policy` name? Two words, a duration law, or a policy of one's own.

`eps` and `ez` are ε- and εz-greedy. A law such as `Zeta(1.5, cap=100)` is εz-greedy with that law,
so that several laws can be compared. `MODULE:NAME` is a class or function of a user's module, which
is called with num_actions, epsilon, lanes and seed, by name, and returns the policy. Each may be
followed by rules that end its options early: `ez; stops=StopOnUnchanged(1)`.
"""

import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ezgreedy import plugins
from ezgreedy import requirements as require
from ezgreedy.exploration.durations import DurationLaw, Zeta
from ezgreedy.exploration.ez_greedy import EpsilonGreedy, EZGreedy
from ezgreedy.exploration.laws import laws
from ezgreedy.exploration.stopping import StoppingRule
from ezgreedy.exploration.stops import Situation, StopSettings, rule_of, stops
from ezgreedy.named_settings import with_change

if TYPE_CHECKING:
    from ezgreedy.analysis.environment_walks import Policy

TITLES = {"ez": "εz-greedy", "eps": "ε-greedy"}


@dataclass(frozen=True)
class NamedPolicy:
    """A policy that can be made for any environment.

    Args:
        name: the text that named it.
        title: its name in tables and figures.
        make: makes it, given num_actions, epsilon, lanes and seed by name.
        stops: rules that end its options early.
    """

    name: str
    title: str
    make: "Callable[..., Policy]"
    stops: tuple[StopSettings, ...] = ()

    def rule(self, lanes: int, seed: int) -> StoppingRule | None:
        """Its rules as one, for this many trials; None if it has none."""
        return rule_of(self.stops, Situation(lanes, seed))

    @property
    def slug(self) -> str:
        """Its part of file names."""
        return re.sub(r"[^\w.=]+", "-", self.name).strip("-")


def named_policy(name: str, usual: DurationLaw) -> NamedPolicy:
    """The policy that a text names.

    Args:
        name: "eps", "ez", a duration law, or "MODULE:NAME", and perhaps "; stops=" and rules.
        usual: the law of "ez".
    """
    base, has_rules, rules = name.partition(";")
    if has_rules:
        named = named_policy(base.strip(), usual)
        title = f"{named.title}, {rules.strip().removeprefix('stops=')}"
        return replace(named, name=name, title=title, stops=_stops(name, rules.strip()))
    if name == "eps":
        return NamedPolicy(name, TITLES[name], EpsilonGreedy)
    if name == "ez":
        return NamedPolicy(name, TITLES[name], _ez_greedy(usual))
    if "(" in name:
        law = _law(name)
        return NamedPolicy(name, f"εz-greedy, {name}", _ez_greedy(law))
    if ":" in name:
        return NamedPolicy(name, name, _own(name))
    rule = "be eps, ez, a law such as 'Zeta(1.5, cap=100)', or MODULE:NAME, and '; stops=RULES'"
    raise require.refuse_name("--policy", rule, name, tuple(TITLES))


def _ez_greedy(law: DurationLaw) -> "Callable[..., Policy]":
    def make(**settings: Any) -> EZGreedy:
        return EZGreedy(durations=law, **settings)

    return make


@dataclass(frozen=True)
class _Named:
    durations: DurationLaw
    stops: tuple[StopSettings, ...] = ()


def _law(text: str) -> DurationLaw:
    return _read("durations", text).durations


def _stops(name: str, text: str) -> tuple[StopSettings, ...]:
    """Rules from the text behind a policy; refuses those that need what walks do not have."""
    key, equals, value = text.partition("=")
    if key.strip() != "stops" or not equals or not value:
        raise require.refuse("--policy", "have stops=RULES after the semicolon", name)
    found = _read("stops", value).stops
    for made in found:
        if "values" in made.rule(Situation(1)).reads:
            rule = "have rules that read observations and rewards only: nothing is learned here"
            raise require.refuse("--policy", rule, name)
    return found


def _read(setting: str, text: str) -> _Named:
    try:
        named: _Named = with_change(
            _Named(Zeta()), setting, text, {**laws(), **stops()}, "--policy"
        )
    except (ValueError, TypeError) as error:
        raise ValueError(str(error).replace(f"--set {setting}", "--policy")) from error
    return named


def _own(name: str) -> "Callable[..., Policy]":
    module, _, attribute = name.partition(":")
    plugins.add(module)
    found = getattr(importlib.import_module(module), attribute, None)
    if not callable(found):
        raise require.refuse("--policy", f"name a class or function of {module}", name)

    def make(**settings: Any) -> "Policy":
        from ezgreedy.analysis.environment_walks import check_policy

        try:
            inspect.signature(found).bind(**settings)
        except TypeError as error:
            rule = f"take {', '.join(settings)} by name ({error})"
            raise require.refuse("--policy", rule, name) from None
        policy: Policy = found(**settings)
        check_policy(policy, name=f"--policy {name}")
        return policy

    return make
