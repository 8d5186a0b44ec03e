"""Which agents are there? All are registered here; see `plugins` for adding your own."""

import contextlib
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ezgreedy import plugins
from ezgreedy import requirements as require
from ezgreedy.agents.agent import AgentSettings, GameSpec, Policy
from ezgreedy.agents.r2d2 import presets as r2d2
from ezgreedy.agents.rainbow import presets as rainbow
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.checkpoints.state_tree import without_rings

_agents: dict[str, AgentSettings] = {**rainbow.RAINBOW_PRESETS, **r2d2.R2D2_PRESETS}


def register(*agents: AgentSettings) -> None:
    """Add agents by name; refuse a name that is already taken."""
    for settings in agents:
        if _agents.get(settings.name, settings) != settings:
            rule = f"have a name other than {', '.join(_agents)}"
            raise require.refuse("agent", rule, settings.name)
    _agents.update({settings.name: settings for settings in agents})


def agents() -> dict[str, AgentSettings]:
    """All agents by name, in order of registration."""
    plugins.load()
    return dict(_agents)


def agent(name: str) -> AgentSettings:
    """The agent with this name; the error for an unknown name suggests the nearest ones."""
    known = agents()
    if name not in known:
        raise require.refuse_name("agent", f"be one of {', '.join(known)}", name, known)
    return known[name]


def run_of(name: str, scale: str, game: str, *, has_earlier_streams: bool = False) -> RunSettings:
    """The settings of a run, from the names of an agent, a scale and a game.

    Args:
        name: name of the agent.
        scale: name of the scale.
        game: full name of the game.
        has_earlier_streams: see `AgentSettings.at_scale`.
    """
    settings = agent(name)
    if scale in scales() and scale not in settings.scales:
        others = [one.name for one in agents().values() if scale in one.scales]
        rule = f"be {' or '.join(settings.scales)} for {name} ({scale} is for {', '.join(others)})"
        raise require.refuse("--scale", rule, scale)
    return settings.at_scale(scale, game, has_earlier_streams=has_earlier_streams)


def smaller_scales(name: str, scale: str, game: str) -> list[str]:
    """The scales at which an agent plays fewer frames of a game, the longest run first."""
    lengths: dict[str, int] = {}
    for other in agent(name).scales:
        # Some scales are for the games of the console only.
        with contextlib.suppress(ValueError):
            lengths[other] = run_of(name, other, game).frames
    fewer = [other for other, frames in lengths.items() if frames < lengths[scale]]
    return sorted(fewer, key=lambda other: -lengths[other])


def scales() -> tuple[str, ...]:
    """The scales of all agents, without duplicates."""
    return tuple(dict.fromkeys(scale for one in agents().values() for scale in one.scales))


def policy_state(settings: AgentSettings, state: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an agent's state that `load_policy` needs: never the replay.

    Args:
        settings: settings of the agent.
        state: state of the agent.
    """
    module = settings.policy_module
    found: dict[str, Any] = (
        without_rings(state) if module is None else import_module(module).policy_state(state)
    )
    return found


def load_policy(
    settings: AgentSettings,
    spec: GameSpec,
    state: Mapping[str, Any],
    *,
    lanes: int,
    seed: int,
    device: str = "cpu",
    epsilon: float | None = None,
) -> Policy:
    """The policy of a saved agent, as its `evaluation_policy` would return it.

    Settings with a `policy_module` load only what acts. Other agents are built as a whole, in as
    many lanes as the policy has.

    Args:
        settings: settings of the agent.
        spec: the game that it plays.
        state: state of the agent, or that of `policy_state`.
        lanes: number of environments.
        seed: random seed of the policy.
        device: device of the network.
        epsilon: probability of exploring; None for the evaluation default.
    """
    module = settings.policy_module
    if module is not None:
        load: Callable[..., Policy] = import_module(module).load_policy
        return load(settings, spec, state, lanes=lanes, seed=seed, device=device, epsilon=epsilon)
    agent = settings.build(spec, lanes=lanes, seed=seed, device=device)
    agent.load_policy(state)
    return agent.evaluation_policy(lanes, seed, epsilon)
