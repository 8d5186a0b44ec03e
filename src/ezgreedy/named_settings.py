"""Settings by dotted names: all as a flat mapping, or one changed by `--set`.

The settings of runs are dataclasses, typed by their fields; those of experiments are plain data,
where a new value has the type of the old one. Both use the same syntax, which `HOW_TO_SET`
describes for `--help`.
"""

import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from ezgreedy import requirements as require

HOW_TO_SET = (
    "--set NAME=VALUE changes one setting. Dots in NAME select settings within groups. Depending "
    "on the setting, VALUE is a number, yes or no, none, a word, a comma-separated list (which may "
    "be empty), or a call with numbers such as 'Zeta(1.5, cap=100)'."
)


def flattened(data: Any, name: str = "") -> dict[str, Any]:
    """Nested plain data as a flat mapping with dotted names."""
    if isinstance(data, Mapping) and data:
        inner = [
            flattened(value, f"{name}.{key}" if name else str(key)) for key, value in data.items()
        ]
        return {key: value for part in inner for key, value in part.items()}
    return {name: data}


def split_change(change: str) -> tuple[str, str]:
    """The name and the text of a change, from NAME=VALUE."""
    name, equals, text = change.partition("=")
    if not equals:
        raise require.refuse("--set", "be NAME=VALUE", change)
    return name, text


class _Change(NamedTuple):
    """A change by `--set`, and the settings it applies to."""

    name: str
    text: str
    classes: Mapping[str, Any]
    whole: str

    @property
    def argument(self) -> str:
        """Name of the change in errors."""
        return f"--set {self.name}"


def with_change(settings: Any, name: str, text: str, classes: Mapping[str, Any], whole: str) -> Any:
    """A copy of the settings with one of them changed; see `with_changes`."""
    return _changed(settings, [(name.split("."), _Change(name, text, classes, whole))])


def with_changes(
    settings: Any, changes: Sequence[str], classes: Mapping[str, Any], whole: str
) -> Any:
    """A copy of the settings with some of them changed.

    The changes are made at once: their order does not matter, and only their result must be valid.

    Args:
        settings: a dataclass or a mapping, possibly nested.
        changes: NAME=VALUE, where the name of a setting is dotted, such as
            "agent.learner.learning_rate", and `HOW_TO_SET` describes values.
        classes: dataclasses that may be called, by name.
        whole: owner of the settings in errors, such as "a run".
    """
    pairs = dict.fromkeys(split_change(change) for change in changes)
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            values = [text for other, text in pairs if other == name]
            raise require.refuse("--set", f"give {name} one value", ", ".join(values))
    if not pairs:
        return settings
    told = [(name.split("."), _Change(name, text, classes, whole)) for name, text in pairs]
    return _changed(settings, told)


def written(value: Any) -> str | None:
    """A value as text for `--set`; None if there is no such text."""
    if is_dataclass(value) and not isinstance(value, type):
        given = {
            field.name: getattr(value, field.name)
            for field in fields(value)
            if getattr(value, field.name) != field.default
        }
        if not all(_is_number(number) for number in given.values()):
            return None
        arguments = ",".join(f"{name}={number!r}" for name, number in given.items())
        return f"{written_name(type(value))}({arguments})"
    if isinstance(value, tuple):
        items = [written(item) for item in value]
        return None if None in items else ", ".join(item for item in items if item is not None)
    if value is None or isinstance(value, (bool, str)) or _is_number(value):
        return str(value)
    return None


def written_name(made: type) -> str:
    """The name of a settings class in files and on the command line."""
    return getattr(made, "written_name", made.__name__)


_WAY_TO_OTHERS = "or import the module that registers it with --import"

_Changes = list[tuple[list[str], _Change]]  # the rest of each name, and the change


def _changed(settings: Any, changes: _Changes) -> Any:
    parts: dict[str, _Changes] = {}
    for (name, *rest), change in changes:
        _require_known(settings, name, 1 + len(rest), change)
        parts.setdefault(name, []).append((rest, change))
    values = {name: _part(settings, name, inner) for name, inner in parts.items()}
    if isinstance(settings, Mapping):
        return {**settings, **values}
    return _made([change for _, change in changes], lambda: replace(settings, **values))


def _part(settings: Any, name: str, changes: _Changes) -> Any:
    """One setting after its changes: of the whole, and of settings within it."""
    value = settings[name] if isinstance(settings, Mapping) else getattr(settings, name)
    for change in (change for rest, change in changes if not rest):
        if isinstance(settings, Mapping):
            value = _like(value, change)
        else:
            kinds = _alternatives(typing.get_type_hints(type(settings))[name])
            value = _read(change.text, kinds, change, change.argument)
    inner = [(rest, change) for rest, change in changes if rest]
    return _changed(value, inner) if inner else value


def _require_known(settings: Any, name: str, num_names: int, change: _Change) -> None:
    known = _names(settings)
    if name not in known:
        here = ".".join(change.name.split(".")[:-num_names]) or change.whole
        rule = f"name a setting of {here}: {', '.join(known) or 'it has none'}"
        raise require.refuse("--set", rule + require.near(name, known), change.name)


def _like(current: Any, change: _Change) -> Any:
    """The text as a value of the same type as the current one."""
    if isinstance(current, list | dict) and not change.text:
        return type(current)()
    return _read(change.text, _kinds_like(current, change), change, change.argument)


def _names(settings: Any) -> list[str]:
    if isinstance(settings, Mapping):
        return list(settings)
    return [field.name for field in fields(settings)] if is_dataclass(settings) else []


def _made(changes: Sequence[_Change], make: Callable[[], Any]) -> Any:
    """The result of `make`; if it refuses the values, the error names the changes."""
    try:
        return make()
    except (ValueError, TypeError) as error:
        told = " ".join(f"{change.argument}={change.text}" for change in changes)
        raise ValueError(f"{told}: {error}") from error


# Allowed kinds of a setting: a tuple of types, where list[X] and tuple[X, ...] hold others.


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    if isinstance(annotation, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def _kinds_like(current: Any, change: _Change) -> tuple[Any, ...]:
    """Kinds of values that may replace the current one."""
    if current is None:
        return (types.NoneType, int, float)
    if isinstance(current, bool | int | float | str):
        return (type(current),)
    if isinstance(current, list) and all(
        isinstance(item, bool | int | float | str) for item in current
    ):
        return (list[type(current[0]) if current else str],)  # type: ignore[misc]
    rule = "name a number, a flag, a word or a list of these"
    raise require.refuse("--set", rule, change.name)


def _item_kinds(kind: Any) -> tuple[Any, ...]:
    """Kinds of the items of a list; empty if it is not a list of any length."""
    if typing.get_origin(kind) not in (list, tuple):
        return ()
    item, *more = typing.get_args(kind)
    return _alternatives(item) if more in ([], [Ellipsis]) else ()


def _takes(kind: Any, made: type) -> bool:
    if not isinstance(kind, type) or typing.get_origin(kind) is not None:
        return False
    return getattr(kind, "_is_protocol", False) or issubclass(made, kind)


# Reading text as one of these kinds.


def _read(text: str, kinds: tuple[Any, ...], change: _Change, argument: str) -> Any:
    """Text as a value of one of these kinds.

    Args:
        text: all of the value, or one item of a list.
        kinds: allowed kinds.
        change: the change it comes from.
        argument: name in errors.
    """
    if types.NoneType in kinds and text.lower() == "none":
        return None
    calls = [
        name for name, made in change.classes.items() if any(_takes(kind, made) for kind in kinds)
    ]
    rule = f"be {_words(kinds, calls)}"
    if calls and "(" in text:
        return _called(text, calls, rule, change, argument)
    for kind, reader in _READERS.items():
        if kind in kinds:
            with suppress(ValueError):
                return reader(text)
    for kind in kinds:
        if _item_kinds(kind):
            return _listed(text, kind, change)
    raise require.refuse(argument, rule, text)


def _listed(text: str, kind: Any, change: _Change) -> Any:
    each = f"each item of {change.argument}"
    items = [_read(item, _item_kinds(kind), change, each) for item in _items(text)]
    return typing.get_origin(kind)(items)


def _called(text: str, calls: list[str], rule: str, change: _Change, argument: str) -> Any:
    """A settings class called with numbers, such as Zeta(2, cap=100)."""
    name, _, arguments = text.partition("(")
    name = name.strip()
    if name not in calls or not arguments.endswith(")"):
        hint = "" if name in calls else f" ({_WAY_TO_OTHERS}){require.near(name, calls)}"
        raise require.refuse(argument, rule + hint, text)
    made = change.classes[name]
    names = [field.name for field in fields(made)]
    given: dict[str, Any] = {}
    for position, part in enumerate(filter(None, _items(arguments[:-1]))):
        key, has_key, value = (word.strip() for word in part.partition("="))
        if not has_key:
            key, value = (names[position] if position < len(names) else "?"), part
        if key not in names or key in given:
            raise require.refuse(argument, f"give {name} {', '.join(names)} once", text)
        given[key] = _number(value, argument)
    return _made([change], lambda: made(**given))


def _items(text: str) -> list[str]:
    """Items separated by commas, except for commas within calls."""
    return [item.strip() for item in re.split(r",(?![^(]*\))", text)] if text else []


def _number(text: str, argument: str) -> int | float:
    for reader in (int, float):
        try:
            return reader(text)
        except ValueError:
            continue
    raise require.refuse(argument, "hold numbers", text)


def _flag(text: str) -> bool:
    if text.lower() in ("true", "yes", "1"):
        return True
    if text.lower() in ("false", "no", "0"):
        return False
    raise ValueError(text)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# In this order: text is read as the first allowed kind that fits.
_READERS: dict[Any, Callable[[str], Any]] = {bool: _flag, int: int, float: float, str: str}
_WORDS: dict[Any, str] = {
    bool: "yes or no",
    int: "an int",
    float: "a number",
    str: "a word",
    types.NoneType: "none",
}


def _words(kinds: tuple[Any, ...], calls: list[str]) -> str:
    said = [word for kind, word in _WORDS.items() if kind in kinds]
    said += [f"a call of {', '.join(calls)}"] if calls else []
    return " or ".join(said) or " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
