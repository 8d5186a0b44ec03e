"""Which command starts this run? The inverse of how `ezgreedy train` reads its arguments."""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from ezgreedy.agents.registry import agents
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.named_settings import written
from ezgreedy.runs.settings_codec import with_setting


class Spread(NamedTuple):
    """Numbers of processes that a run on Ray was spread over."""

    actors: int
    shards: int = 1


def train_command(settings: RunSettings, spread: Spread | None = None) -> str | None:
    """The shortest `ezgreedy train` command with these settings, without `--out`.

    None if there is none: the agent is not based on a preset, or differs from it where `--set` does
    not reach. For a run that was spread over processes, the command spreads it the same way, on any
    cluster.
    """
    preset = agents().get(settings.agent.name)
    if preset is None:
        return None
    commands = []
    for scale in preset.scales:
        with suppress(ValueError):  # a scale that is not for this game
            base = preset.at_scale(scale, settings.game)
            commands.append(_command(settings, scale, base, spread))
    return min((command for command in commands if command is not None), key=len, default=None)


def _command(
    settings: RunSettings, scale: str, base: RunSettings, spread: Spread | None
) -> str | None:
    words = ["ezgreedy", "train", settings.agent.name, "--game", settings.game]
    if scale != "paper":
        words += ["--scale", scale]
    for name, default in (("frames", base.frames), ("seed", 0), ("device", base.device)):
        if getattr(settings, name) != default:
            words += [f"--{name}", str(getattr(settings, name))]
    base = replace(base, frames=settings.frames, seed=settings.seed, device=settings.device)
    if spread is not None:
        words += _spread_words(spread, settings.lanes, base.lanes)
        if settings.lanes % spread.actors == 0:
            base = replace(base, lanes=settings.lanes)
    texts = {path: written(value) for path, value in _differences(base, settings, "")}
    known = {path: text for path, text in texts.items() if text is not None}
    ordered = _ordered(base, known)
    if len(ordered) < len(texts):
        return None
    for path in ordered:
        words += ["--set", shlex.quote(f"{path}={known[path]}")]
    return " ".join(words)


def _spread_words(spread: Spread, lanes: int, usual_lanes: int) -> list[str]:
    words = ["--engine", "ray", "--actors", str(spread.actors)]
    if lanes != usual_lanes and lanes % spread.actors == 0:
        words += ["--lanes-per-actor", str(lanes // spread.actors)]
    if spread.shards != 1:
        words += ["--shards", str(spread.shards)]
    return words


def _ordered(settings: RunSettings, texts: dict[str, str]) -> list[str]:
    """The changes in an order in which each is valid; shorter if there is no such order.

    For example, a replay must have room for its least filling, so the filling must shrink first.
    """
    ordered: list[str] = []
    waiting = list(texts)
    while waiting:
        for path in waiting:
            try:
                settings = with_setting(settings, path, texts[path])
            except ValueError:
                continue
            ordered.append(path)
            waiting.remove(path)
            break
        else:
            break
    return ordered


def _differences(base: Any, settings: Any, path: str) -> Iterator[tuple[str, Any]]:
    for field in fields(base):
        before, now = getattr(base, field.name), getattr(settings, field.name)
        name = f"{path}.{field.name}" if path else field.name
        if before == now:
            continue
        if is_dataclass(before) and type(before) is type(now):
            yield from _differences(before, now, name)
        else:
            yield name, now
