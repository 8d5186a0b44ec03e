"""Settings to text and back: for config.json and `--set`.

Every settings object is written with the name of its class, so that duration laws and schedules are
restored as such. Only registered classes are ever instantiated.
"""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.agents.registry import agents
from ezgreedy.agents.run_settings import EvaluationSettings, RunSettings
from ezgreedy.exploration.laws import laws
from ezgreedy.exploration.schedules import Linear
from ezgreedy.exploration.stops import stops
from ezgreedy.games.protocol import Protocol
from ezgreedy.learning.settings import Convolution
from ezgreedy.named_settings import with_change, with_changes, written_name
from ezgreedy.replay.importance import ImportanceExponent

KIND = "kind"
# Names in files of classes that were renamed since. The identities of runs contain these names, so
# changing them would disown old runs.
_WRITTEN_NAMES = {"RainbowSettings": "Preset", "R2D2Settings": "SequencePreset"}
# Settings added since runs got their ids, by the written name of their class; see `as_identified`.
_LATER_SETTINGS = {
    "Preset": ("stops",),
    "SequencePreset": ("replay_bytes_per_observation", "stops"),
}
# The parts of a run other than its agent.
_SHARED = (RunSettings, EvaluationSettings, Protocol, ImportanceExponent, Convolution, Linear)


class UnknownKindError(ValueError):
    """Settings of a class that is not registered here: often one of a module of the user's.

    Args:
        name: dotted name of the settings.
        kind: name of the class.
    """

    def __init__(self, name: str, kind: object) -> None:
        way = "--import the module that registers it"
        super().__init__(f"{name} is a {kind!r}, which is not known here: {way}")


def kinds() -> dict[str, Any]:
    """Settings classes by name: of runs and registered agents, duration laws, stopping rules."""
    own = tuple(dict.fromkeys(type(settings) for settings in agents().values()))
    return _kinds(own, (*laws().values(), *stops().values()))


@cache
def _kinds(agent_classes: tuple[type, ...], parts: tuple[type, ...]) -> dict[str, Any]:
    found = [*_SHARED, *(part for made in agent_classes for part in _parts(made)), *parts]
    return {_written_name(made): made for made in found}


def _written_name(made: type) -> str:
    name = written_name(made)
    return _WRITTEN_NAMES.get(name, name)


def _parts(made: Any) -> list[Any]:
    """A settings class and the classes that its fields may hold."""
    found = [made]
    for annotation in typing.get_type_hints(made).values():
        found += [part for one in _alternatives(annotation) for part in _parts(one)]
    return found


def _alternatives(annotation: Any) -> list[Any]:
    """The settings classes that an annotation names, at any depth."""
    if is_dataclass(annotation):
        return [annotation]
    return [one for inner in typing.get_args(annotation) for one in _alternatives(inner)]


def as_plain(settings: Any) -> Any:
    """Dataclasses as mappings with the class name, tuples as lists, the rest unchanged."""
    if is_dataclass(settings) and not isinstance(settings, type):
        values = {field.name: as_plain(getattr(settings, field.name)) for field in fields(settings)}
        return {KIND: _written_name(type(settings)), **values}
    if isinstance(settings, tuple):
        return [as_plain(item) for item in settings]
    return settings


def from_plain(plain: Any, name: str = "settings") -> Any:
    """The inverse of `as_plain`; refuses unknown classes and fields by name."""
    if isinstance(plain, list):
        return tuple(from_plain(item, f"{name}[{i}]") for i, item in enumerate(plain))
    if not isinstance(plain, Mapping):
        return plain
    made = kinds().get(plain.get(KIND, ""))
    if made is None:
        raise UnknownKindError(name, plain.get(KIND))
    known = [field.name for field in fields(made)]
    given = {key: value for key, value in plain.items() if key != KIND}
    if given.keys() != set(known):
        raise require.refuse(name, f"have the settings {', '.join(known)}", sorted(given))
    return made(**{key: from_plain(value, f"{name}.{key}") for key, value in given.items()})


def with_later_settings(plain: Any) -> Any:
    """Plain settings of an earlier version, with the defaults of settings added since.

    The default of a new setting is the earlier behaviour, so this is the same run.
    """
    if isinstance(plain, list):
        return [with_later_settings(item) for item in plain]
    if not isinstance(plain, Mapping):
        return plain
    made = kinds().get(plain.get(KIND, ""))
    later = {} if made is None else {field.name: _default(field) for field in fields(made)}
    known = {name: value for name, value in later.items() if value is not MISSING}
    return {**known, **{name: with_later_settings(value) for name, value in plain.items()}}


def as_identified(plain: Any) -> Any:
    """Plain settings without those added since runs got their ids, unless they were changed.

    A run thus keeps its id when a setting is added.
    """
    if isinstance(plain, list):
        return [as_identified(item) for item in plain]
    if not isinstance(plain, Mapping):
        return plain
    kind = plain.get(KIND, "")
    later = _LATER_SETTINGS.get(kind, ())
    defaults = {f.name: _default(f) for f in fields(kinds()[kind])} if later else {}
    return {
        name: as_identified(value)
        for name, value in plain.items()
        if name not in later or value != defaults[name]
    }


def _default(field: Any) -> Any:
    made = field.default if field.default_factory is MISSING else field.default_factory()
    return as_plain(made)


def with_setting(settings: Any, name: str, text: str) -> Any:
    """Settings of a run with one of them changed, as `--set NAME=TEXT` does.

    Args:
        settings: a settings object.
        name: dotted name of a setting, such as "agent.learner.learning_rate".
        text: the new value, as `named_settings` reads it.
    """
    return with_change(settings, name, text, kinds(), "a run")


def with_settings(settings: Any, changes: Sequence[str]) -> Any:
    """Settings of a run with some of them changed, each by NAME=TEXT and all at once."""
    return with_changes(settings, changes, kinds(), "a run")
