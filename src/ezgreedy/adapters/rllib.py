"""εz-greedy in Ray RLlib (new API stack): `ez_greedy(config)` gives a DQN configuration options.

    config = DQNConfig().environment("CartPole-v1").training(epsilon=[[0, 1.0], [10_000, 0.05]])
    algorithm = ez_greedy(config, seed=0).build_algo()

The RLModule then computes greedy actions and keeps RLlib's schedule of ε. A connector between
module and environments decides where options act; what it returns is executed and stored. The state
of the options is part of RLlib's checkpoints.
"""

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.adapters.libraries import RLLIB
from ezgreedy.adapters.saved_lanes import continued, fresh_seed
from ezgreedy.exploration.durations import DurationLaw, Zeta, checked_law
from ezgreedy.exploration.ez_greedy import EZGreedy

RLLIB.check(__name__)

from ray.rllib.algorithms.dqn.torch.default_dqn_torch_rl_module import DefaultDQNTorchRLModule
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

# More environments than any one runner has: the lanes of runner k begin at k times this.
_LANES_PER_RUNNER = 2**20
_RUNNER = "ezgreedy_runner"


def ez_greedy(config: Any, durations: DurationLaw | None = None, seed: int | None = None) -> Any:
    """Lets a DQN configuration explore with options; returns the configuration.

    Call it after all other settings: it builds on the module, the connector and the callback that
    the configuration has.

    Args:
        config: a `DQNConfig`, or that of an algorithm whose module has an `epsilon_schedule`.
        durations: law of the number of plays; `Zeta()` if None.
        seed: seed of the exploration; that of the configuration, or a fresh one, if None.
    """
    law = checked_law("durations", Zeta() if durations is None else durations)
    module = config.rl_module_spec.module_class
    if not issubclass(module, DefaultDQNTorchRLModule):
        rule = "have a module derived from DefaultDQNTorchRLModule"
        raise require.refuse("config", rule, module)
    number = fresh_seed(config.seed if seed is None else seed)
    connectors, created = config._module_to_env_connector, config.callbacks_on_environment_created

    def connector(env: Any, spaces: Any = None) -> list[Any]:
        own = [] if connectors is None else connectors(env, spaces)
        own = list(own) if isinstance(own, (list, tuple)) else [own]
        return [*own, EZGreedyConnector(law, number, runner_of(env))]

    return (
        config.rl_module(rl_module_spec=RLModuleSpec(module_class=_greedy_module(module)))
        .env_runners(module_to_env_connector=connector)
        .callbacks(
            on_environment_created=[*_as_list(created), _remember_runner],
            on_algorithm_init=[*_as_list(config.callbacks_on_algorithm_init), _merge_by_name],
        )
    )


def _as_list(callbacks: Any) -> list[Any]:
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]


class GreedyExploration:
    """For the module of a DQN: acts greedily also when it explores, and moves RLlib's ε on."""

    num_steps_sampled = 0  # by all runners, as far as RLlib has said

    def _forward_exploration(self, batch: Any, t: int) -> Any:
        module: Any = self
        module.num_steps_sampled = t
        module.epsilon_schedule.update(t)
        return module._forward_inference(batch)


class EZGreedyDQNModule(GreedyExploration, DefaultDQNTorchRLModule):
    """The default module of RLlib's DQN, whose exploration a connector decides."""


def _greedy_module(module: type) -> type:
    if module is DefaultDQNTorchRLModule:
        return EZGreedyDQNModule
    return type(f"EZGreedy{module.__name__}", (GreedyExploration, module), {})


def _remember_runner(*, env_runner: Any, env: Any, **_: Any) -> None:
    """Writes into a vector environment which runner it belongs to; connectors are not told."""
    require.num_actions(env.single_action_space)  # RLlib's own refusal does not say what to do
    setattr(env, _RUNNER, env_runner.worker_index or 0)


def _merge_by_name(*, algorithm: Any, **_: Any) -> None:
    """Lets the states of remote runners reach the connector they belong to.

    RLlib 2.60 merges them by position, but counts only connectors that have a state.
    """
    runner = algorithm.env_runner
    pipeline = algorithm.module_to_env_connector if runner is None else runner._module_to_env
    pipeline.merge_states = partial(_merged_by_name, pipeline)


def _merged_by_name(pipeline: Any, states: list[dict[str, Any]]) -> dict[str, Any]:
    merged = {}
    for connector in pipeline.connectors:
        name = type(connector).__name__
        own = [state[name] for state in states if name in state]
        if own:
            merged[name] = connector.merge_states(own)
    return merged


def runner_of(env: Any) -> int | None:
    """The number of the runner that plays in a vector environment; None if there is none."""
    if env is None:
        return None
    runner = getattr(env.unwrapped, _RUNNER, None)
    if runner is None:
        rule = "keep the callback on_environment_created: call ez_greedy(config) after all settings"
        raise require.refuse("config", rule, require.Described("another callback"))
    return int(runner)


class EZGreedyConnector(ConnectorV2):
    """Replaces the actions of environments in which an option acts.

    Args:
        durations: law of the number of plays.
        seed: seed of the exploration.
        runner: number of the environment runner; None for one without environments, which only
            keeps the states of others for checkpoints.
    """

    def __init__(self, durations: DurationLaw, seed: int, runner: int | None) -> None:
        super().__init__()
        self._durations, self._seed, self._runner = durations, seed, runner
        self.explore: EZGreedy | None = None
        self._episode_ids: list[str] = []
        self._saved: dict[str, Any] = {}  # states of runners, by number
        self._restored: set[str] = set()  # runners that have not yet had theirs back

    def __call__(
        self,
        *,
        rl_module: Any,
        batch: dict[str, Any],
        episodes: list[Any],
        explore: bool | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """The batch with the actions to execute, which the episodes store."""
        if not explore:
            return batch
        policy = self._policy(rl_module, len(episodes))
        policy.epsilon = float(rl_module.epsilon_schedule.get_current_value())
        # In the order of the environments; the keys may still be those of episodes that have ended.
        items = list(batch[Columns.ACTIONS].values())
        greedy = np.array([int(item[0]) for item in items])
        ids = [episode.id_ for episode in episodes]
        # An episode keeps its number when RLlib cuts it into chunks. One that is not reset yet is
        # about to take the dummy step in which its environment resets.
        starts = np.array([new != old for new, old in zip(ids, self._episode_ids, strict=True)])
        active = np.array([bool(episode.is_reset) for episode in episodes])
        played = policy(greedy, starts=starts, active=active)
        self._episode_ids = ids
        for item, action in zip(items, played.tolist(), strict=True):
            item[0] = np.asarray(item[0]).dtype.type(action)
        return batch

    def _policy(self, rl_module: Any, lanes: int) -> EZGreedy:
        """The policy, which is made when the number of environments is known."""
        if self.explore is None:
            first_lane = _LANES_PER_RUNNER * (self._runner or 0)
            self.explore = EZGreedy(
                rl_module.action_space,
                0.0,
                self._durations,
                lanes,
                self._seed,
                first_lane=first_lane,
            )
            self._begin(rl_module.num_steps_sampled)
        if self.explore.lanes != lanes:
            rule = f"have {self.explore.lanes} environments as before: build the algorithm anew"
            raise require.refuse("the runner", rule, lanes)
        if not self._episode_ids:
            self._episode_ids = [""] * lanes
        return self.explore

    def _begin(self, num_steps_sampled: int) -> None:
        assert self.explore is not None
        state = self._saved.get(str(self._runner))
        if state is not None:
            self.explore = continued(self.explore, state)
        elif num_steps_sampled and not self._saved:
            warnings.warn(
                f"{num_steps_sampled:,} steps were sampled without εz-greedy: options begin now, "
                "and ε continues",
                stacklevel=2,
            )

    # Checkpoints. RLlib collects the states of all runners, has the runner without environments
    # merge them, sends the result back to all and saves it.

    def get_state(self, *_: Any, **__: Any) -> dict[str, Any]:
        """The state of this runner, and those of others that it has been told."""
        if self.explore is not None:
            self._saved[str(self._runner)] = self.explore.state_dict()
        return {"runner": self._runner, "runners": dict(self._saved), "is_merged": False}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a checkpoint; merged states are only kept, since ours is newer."""
        if not state:
            return
        own = str(self._runner)
        is_given_back = not state["is_merged"] or own in state.get("restored", ())
        self._saved = dict(state["runners"])
        if not state["is_merged"]:
            self._restored = set(self._saved)
        if is_given_back and self._runner is not None:
            if own not in self._saved:
                warnings.warn(
                    f"saved by runners {sorted(self._saved)}: exploration of runner {own} begins",
                    stacklevel=2,
                )
            elif self.explore is not None:
                self.explore = continued(self.explore, self._saved[own])
            self._episode_ids = []

    def merge_states(self, states: list[dict[str, Any]]) -> dict[str, Any]:
        """What each runner says of itself, unless a checkpoint has just been restored.

        A runner that does not answer in time keeps what it said before.
        """
        merged = dict(self._saved) | {
            str(state["runner"]): state["runners"][str(state["runner"])]
            for state in states
            if str(state["runner"]) in state["runners"]
        }
        merged |= {runner: self._saved[runner] for runner in self._restored}
        restored, self._restored = sorted(self._restored), set()
        return {"runner": None, "runners": merged, "is_merged": True, "restored": restored}
