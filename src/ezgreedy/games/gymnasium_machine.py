"""Any Gymnasium environment with discrete actions as a machine that is checked and can be replayed.

Everything it returns is checked against its spaces, and the first breach is reported with the
environment, the step, the rule and the value received. Gymnasium has no way to copy an environment,
so a state is the seed of the episode and the actions since: exact if the seed determines
everything, at the cost of replaying the episode's actions. The meaning of observations is left to
others.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ezgreedy import packages
from ezgreedy import requirements as require

LARGEST_SEED = 2**31 - 1  # some environments take no more than 32 signed bits

_STATE_KEYS = {"seed", "actions", "total_reward", "digest"}
_T = TypeVar("_T")


class EnvironmentFault(ValueError):
    """An environment broke its interface: which one, when, and how."""


class GymnasiumMachine:
    """One environment by its id; everything it returns is checked.

    Args:
        name: the id, as for `gymnasium.make`; "module:id" imports the module first.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._env = _made(name)
        self.observation_space = self._env.observation_space
        # As numbers: an environment could change its space behind our back.
        self.num_actions, self._first_action = _checked_actions(name, self._env.action_space)
        self.is_over = False  # the last step terminated
        self.is_cut_off = False  # the last step reached a time limit
        self.observation: NDArray[Any] | None = None  # the last one; do not write to it
        self._seed: int | None = None
        self._played: list[int] = []
        self._total_reward = 0.0

    def restart(self, seed: int) -> None:
        """Begins the episode that this seed determines."""
        self._seed, self._played, self._total_reward = seed, [], 0.0
        self.is_over = self.is_cut_off = False
        returned = self._guarded("reset", lambda: self._env.reset(seed=seed))
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise self._fault("reset() must return (observation, info)", _kind(returned))
        self.observation = self._checked_observation(returned[0])

    def act(self, action: int) -> float:
        """Plays the action with this number for one step of the environment; returns its reward."""
        self._played.append(action)
        executed = self._first_action + action
        returned = self._guarded("step", lambda: self._env.step(executed))
        if not isinstance(returned, tuple) or len(returned) != 5:
            rule = "step() must return (observation, reward, terminated, truncated, info)"
            raise self._fault(rule, _kind(returned))
        observation, reward, terminated, truncated, _ = returned
        self.observation = self._checked_observation(observation)
        gained = self._checked_reward(reward)
        self.is_over = self._checked_flag("terminated", terminated)
        self.is_cut_off = self._checked_flag("truncated", truncated) and not self.is_over
        if _numbers(self._env.action_space) != (self.num_actions, self._first_action):
            raise self._fault(f"there must be {self.num_actions} actions", self._env.action_space)
        self._total_reward += gained
        return gained

    def close(self) -> None:
        """Releases the environment's resources; it cannot be played afterwards."""
        self._guarded("close", self._env.close)

    def state(self) -> dict[str, Any]:
        """The seed and the actions of the episode, and a check that a replay is the same."""
        return {
            "seed": self._seed,
            "actions": np.array(self._played, dtype=np.int64),
            "total_reward": self._total_reward,
            "digest": _digest(self.observation),
        }

    def replayed(self, state: Any) -> "GymnasiumMachine":
        """Another machine, brought to this state by a replay; this one stays as it is."""
        seed, actions = self._checked_state(state)
        other = GymnasiumMachine(self.name)
        if seed is None:
            return other
        other.restart(seed)
        for action in actions:
            if other.is_over or other.is_cut_off:
                break
            other.act(action)
        same = {key: other.state()[key] == state[key] for key in ("total_reward", "digest")}
        if len(other._played) != len(actions) or not all(same.values()):
            raise other._fault(
                f"a replay of {len(actions)} actions from seed {seed} must lead to the saved "
                "observation and return, which the seed does not determine",
                "others",
            )
        return other

    def _checked_state(self, state: Any) -> tuple[int | None, list[int]]:
        if not isinstance(state, Mapping) or state.keys() != _STATE_KEYS:
            received = sorted(state) if isinstance(state, Mapping) else state
            rule = f"have the keys {sorted(_STATE_KEYS)}"
            raise require.refuse("state['machine']", rule, received)
        seed = state["seed"]
        if seed is not None:
            require.integer("state['machine']['seed']", seed, least=0, most=LARGEST_SEED)
        actions = state["actions"]
        length = actions.size if isinstance(actions, np.ndarray) else 0
        checked = require.actions("state['machine']['actions']", actions, length, self.num_actions)
        return seed, checked.tolist()

    def _guarded(self, call: str, function: Callable[[], _T]) -> _T:
        try:
            return function()
        except Exception as error:
            raise self._fault(
                f"{call}() must not fail", f"{type(error).__name__}: {error}"
            ) from error

    def _checked_observation(self, observation: object) -> NDArray[Any]:
        space = self.observation_space
        rule = f"the observation must be {space.dtype} of shape {space.shape}"
        if not isinstance(observation, np.ndarray):
            raise self._fault(rule, _kind(observation))
        if observation.dtype != space.dtype or observation.shape != space.shape:
            raise self._fault(rule, f"{observation.dtype} of shape {observation.shape}")
        if not space.contains(observation):
            extremes = f"values from {observation.min()} to {observation.max()}"
            raise self._fault(f"the observation must lie in {space}", extremes)
        return observation

    def _checked_reward(self, reward: object) -> float:
        is_number = isinstance(reward, (int, float, np.integer, np.floating))
        if not is_number or isinstance(reward, bool) or not math.isfinite(reward):  # type: ignore[arg-type]
            raise self._fault("the reward must be a finite number", _kind(reward))
        return float(reward)  # type: ignore[arg-type]

    def _checked_flag(self, name: str, value: object) -> bool:
        if not isinstance(value, (bool, np.bool_)):
            raise self._fault(f"{name} must be a bool", _kind(value))
        return bool(value)

    def _fault(self, rule: str, received: object) -> EnvironmentFault:
        place = f"{self.name} at step {len(self._played)} of the episode with seed {self._seed}"
        return EnvironmentFault(f"{place}: {rule}; got {received}")


def _made(name: object) -> Any:
    if not isinstance(name, str):
        raise require.refuse_type("game", "be the id of a Gymnasium environment", name)
    gymnasium: Any = packages.imported("gymnasium", name, "deep")
    module, _, identity = name.rpartition(":")
    if "ALE/" in name:  # whether or not ale-py has made its ids known
        raise _emulated(name)
    try:
        if module:
            import_module(module)
        spec = gymnasium.spec(identity)
    except gymnasium.error.UnregisteredEnv as error:
        hint = require.near(identity, gymnasium.registry)
        rule = f"be an environment that Gymnasium knows{hint}"
        raise require.refuse("game", rule, name) from error
    except (gymnasium.error.Error, ImportError) as error:
        raise _not_made(name, error) from error
    if "ale_py" in str(spec.entry_point):
        raise _emulated(name)
    try:
        # Gymnasium's own checker only warns; ours names the first breach and stops.
        return gymnasium.make(identity, disable_env_checker=True)
    except Exception as error:  # a constructor may do anything
        raise _not_made(name, error) from error


def _not_made(name: str, error: Exception) -> ValueError:
    reason = (str(error).splitlines() or [""])[0]
    kind = "" if isinstance(error, ImportError) else f" ({type(error).__name__})"
    return ValueError(f"{name} cannot be made: {reason}{kind}")


def _emulated(name: str) -> ValueError:
    rule = (
        "be named as the game is, such as 'Pong', if it is an Atari game: Gymnasium's ids bring "
        "sticky actions and skipped frames of their own"
    )
    return require.refuse("game", rule, name)


def _checked_actions(name: str, space: Any) -> tuple[int, int]:
    """The number of actions, and the first action's number."""
    numbers = _numbers(space)
    if numbers is None:
        rule = "be discrete (gymnasium.spaces.Discrete): exploration repeats one of finitely many"
        raise require.refuse(f"{name}: the environment's actions", rule, require.Described(space))
    return numbers


def _numbers(space: Any) -> tuple[int, int] | None:
    from gymnasium.spaces import Discrete

    return (int(space.n), int(space.start)) if isinstance(space, Discrete) else None


def _digest(observation: NDArray[Any] | None) -> str:
    return "" if observation is None else hashlib.sha256(observation.tobytes()).hexdigest()


def _kind(value: object) -> str:
    text = repr(value)
    size = f" of {len(value)}" if isinstance(value, tuple) else f" {text[:60]}"
    return f"{type(value).__name__}{size}"
