"""Settings as text and back: what config.json holds and what `--set` changes.

Every settings class is written with its name, so that a duration law or a schedule comes back as
what it was. Only the classes listed here are ever made.
"""

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.agents.presets import Preset
from ezgreedy.agents.sequence_presets import SequencePreset
from ezgreedy.atari.games import near
from ezgreedy.atari.protocol import Protocol
from ezgreedy.exploration.durations import Fixed, Geometric, PlusOne, Uniform, Zeta
from ezgreedy.exploration.schedules import Linear
from ezgreedy.intrinsic.rnd_settings import DistillationSettings
from ezgreedy.learning.sequence_settings import ReturnSettings, SequenceLearnerSettings
from ezgreedy.learning.settings import Convolution, LearnerSettings
from ezgreedy.replay.prioritized import ImportanceExponent
from ezgreedy.running.settings import EvaluationSettings, RunSettings

KIND = "kind"
_CLASSES: dict[str, Any] = {
    made.__name__: made
    for made in (
        RunSettings,
        EvaluationSettings,
        Preset,
        LearnerSettings,
        SequencePreset,
        SequenceLearnerSettings,
        ReturnSettings,
        DistillationSettings,
        Protocol,
        ImportanceExponent,
        Convolution,
        Linear,
        Zeta,
        Geometric,
        Uniform,
        Fixed,
        PlusOne,
    )
}


def as_plain(settings: Any) -> Any:
    """Dataclasses as mappings with their class's name, tuples as lists, the rest as it is."""
    if is_dataclass(settings) and not isinstance(settings, type):
        values = {field.name: as_plain(getattr(settings, field.name)) for field in fields(settings)}
        return {KIND: type(settings).__name__, **values}
    if isinstance(settings, tuple):
        return [as_plain(item) for item in settings]
    return settings


def from_plain(plain: Any, name: str = "settings") -> Any:
    """The inverse of `as_plain`; unknown classes and fields are refused by name."""
    if isinstance(plain, list):
        return tuple(from_plain(item, f"{name}[{i}]") for i, item in enumerate(plain))
    if not isinstance(plain, Mapping):
        return plain
    made = _CLASSES.get(plain.get(KIND, ""))
    if made is None:
        raise require.refuse(f"{name}.{KIND}", f"be one of {', '.join(_CLASSES)}", plain.get(KIND))
    known = [field.name for field in fields(made)]
    given = {key: value for key, value in plain.items() if key != KIND}
    if given.keys() != set(known):
        raise require.refuse(name, f"have the settings {', '.join(known)}", sorted(given))
    return made(**{key: from_plain(value, f"{name}.{key}") for key, value in given.items()})


def with_later_settings(plain: Any) -> Any:
    """Plain settings of an earlier version, with the defaults of settings that came since.

    A new setting's default is what was done before there was a choice, so this is the same run.
    """
    if isinstance(plain, list):
        return [with_later_settings(item) for item in plain]
    if not isinstance(plain, Mapping):
        return plain
    made = _CLASSES.get(plain.get(KIND, ""))
    later = {} if made is None else {field.name: _default(field) for field in fields(made)}
    known = {name: value for name, value in later.items() if value is not MISSING}
    return {**known, **{name: with_later_settings(value) for name, value in plain.items()}}


def _default(field: Any) -> Any:
    made = field.default if field.default_factory is MISSING else field.default_factory()
    return as_plain(made)


def with_setting(settings: Any, path: str, text: str) -> Any:
    """Settings with one of them changed.

    Args:
        settings: a settings object.
        path: names joined by dots, say "agent.learner.learning_rate".
        text: the new value: a number, yes or no, none, a word, or a call such as Zeta(mu=1.5)
            or Linear(1, 0.01, 50000).
    """
    return _changed(settings, path.split("."), text, path)


def _changed(settings: Any, names: list[str], text: str, path: str) -> Any:
    name, *rest = names
    known = [field.name for field in fields(settings)] if is_dataclass(settings) else []
    if name not in known:
        here = ".".join(path.split(".")[: -len(names)]) or "a run"
        rule = f"name a setting of {here} ({', '.join(known) or 'which has none'})"
        raise require.refuse("--set", rule + near(name, known), path)
    current = getattr(settings, name)
    value = _changed(current, rest, text, path) if rest else _value(settings, name, text, path)
    try:
        return replace(settings, **{name: value})
    except (ValueError, TypeError) as error:
        raise ValueError(f"--set {path}={text}: {error}") from error


def _value(settings: Any, name: str, text: str, path: str) -> Any:
    """Text as a value of the field's type."""
    allowed = _alternatives(typing.get_type_hints(type(settings))[name])
    if "(" in text:
        return _called(text, path)
    if type(None) in allowed and text.lower() == "none":
        return None
    readers: dict[type, Callable[[str], Any]] = {
        bool: _flag,
        int: int,
        float: float,
        str: str,
    }
    for kind, reader in readers.items():
        if kind in allowed:
            try:
                return reader(text)
            except ValueError:
                continue
    kinds = " or ".join(getattr(kind, "__name__", str(kind)) for kind in allowed)
    raise require.refuse(f"--set {path}", f"be {kinds}", text)


def _called(text: str, path: str) -> Any:
    """A settings class called with numbers, say Zeta(2, cap=100)."""
    name, _, arguments = text.partition("(")
    made = _CLASSES.get(name.strip())
    if made is None or not arguments.endswith(")"):
        rule = f"be a number or a call of {', '.join(_CLASSES)}"
        raise require.refuse(f"--set {path}", rule, text)
    names = [field.name for field in fields(made)]
    given: dict[str, Any] = {}
    parts = [part.strip() for part in arguments[:-1].split(",") if part.strip()]
    for position, part in enumerate(parts):
        key, has_key, value = part.partition("=")
        if not has_key:
            key, value = (names[position] if position < len(names) else "?"), part
        if key.strip() not in names or key.strip() in given:
            raise require.refuse(f"--set {path}", f"give {name} {', '.join(names)} once", text)
        given[key.strip()] = _numeric(value.strip(), path)
    try:
        return made(**given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"--set {path}={text}: {error}") from error


def _numeric(text: str, path: str) -> float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise require.refuse(f"--set {path}", "hold numbers", text) from None


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    if isinstance(annotation, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def _flag(text: str) -> bool:
    if text.lower() in ("true", "yes", "1"):
        return True
    if text.lower() in ("false", "no", "0"):
        return False
    raise ValueError(text)
