"""Which settings did the user change? NAME=VALUE, typed by the value that it replaces."""

import difflib
from collections.abc import Sequence
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.experiments.experiment import Settings

_FLAGS = {"true": True, "false": False}


def overridden(settings: Settings, changes: Sequence[str]) -> dict[str, Any]:
    """Settings with some of them changed.

    Args:
        settings: all settings of an experiment; numbers, flags, words, or lists of one of these.
        changes: each NAME=VALUE. The items of a list are separated by commas.
    """
    changed = dict(settings)
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise require.refuse("--set", "be NAME=VALUE", change)
        if name not in settings:
            near = difflib.get_close_matches(name, settings, n=3, cutoff=0.5)
            hint = f" (did you mean {' or '.join(near)}?)" if near else ""
            rule = f"name one of the settings {', '.join(settings)}{hint}"
            raise require.refuse("--set", rule, name)
        changed[name] = _value(name, text, settings[name])
    return changed


def _value(name: str, text: str, current: Any) -> Any:
    """Text as a value of the same type as the current one."""
    if isinstance(current, list) and not any(isinstance(item, list | dict) for item in current):
        return [_value(name, item.strip(), current[0] if current else "") for item in _items(text)]
    if isinstance(current, bool):
        return _FLAGS[require.one_of(f"--set {name}", text, tuple(_FLAGS))]
    if isinstance(current, str):
        return text
    kind = type(current)
    try:
        return kind(text)
    except (ValueError, TypeError):
        raise require.refuse(f"--set {name}", f"be of type {kind.__name__}", text) from None


def _items(text: str) -> list[str]:
    return text.split(",") if text else []
