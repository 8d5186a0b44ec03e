"""Which actions do the same? Uniform actions are biased if many of them have one effect.

A limitation that the paper names: in an action set with many equal actions, repeats of one of the
others are rare. Weights that share one action's probability among equal actions make *effects*
uniform:

    effects = distinct_actions(mdp)
    explore = EZGreedy(mdp.num_actions, epsilon=0.1, action_weights=effects.action_weights)

For a finite MDP the answer is exact. Otherwise actions are tried out, each from the same states,
and count as equal as long as nothing tells them apart: `probed_actions` does it for Gymnasium
environments, by copying them or by repeating what led to a state, and `game_actions` for games.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.finite_mdp import FiniteMDP
from ezgreedy.games.environment import Environment
from ezgreedy.requirements import FloatArray, IntArray

_STEPS_BETWEEN_PLACES = 8


@dataclass(frozen=True, eq=False)
class ActionEffects:
    """Actions sorted by what they do.

    Args:
        labels: for every action the first action with the same effect, [actions].
    """

    labels: IntArray

    @property
    def num_distinct(self) -> int:
        """Number of different effects."""
        return len(np.unique(self.labels))

    @property
    def action_weights(self) -> FloatArray:
        """For `EZGreedy`: every effect is equally likely, shared by the actions that have it."""
        _, positions, counts = np.unique(self.labels, return_inverse=True, return_counts=True)
        return 1.0 / counts[positions]

    @property
    def groups(self) -> list[list[int]]:
        """The actions of every effect."""
        return [np.flatnonzero(self.labels == label).tolist() for label in np.unique(self.labels)]


def distinct_actions(mdp: FiniteMDP) -> ActionEffects:
    """Actions that lead to the same next states with the same probabilities, wherever one can be.

    Args:
        mdp: the process; terminal and unreachable states do not count.
    """
    if not isinstance(mdp, FiniteMDP):
        raise require.refuse_type("mdp", "be a FiniteMDP; others can be probed", mdp)
    rows = mdp.transitions[mdp.reachable_states() & ~mdp.ends]
    labels = np.arange(mdp.num_actions)
    for action in range(mdp.num_actions):
        for earlier in range(action):
            if labels[earlier] == earlier and np.array_equal(rows[:, action], rows[:, earlier]):
                labels[action] = earlier
                break
    return ActionEffects(labels)


def combined_effects(found: Sequence[ActionEffects]) -> ActionEffects:
    """Actions that none of several examinations told apart.

    Args:
        found: effects of the same actions, examined in different places; at least one.
    """
    if not found:
        raise require.refuse("found", "hold at least one examination", found)
    sizes = {len(effects.labels) for effects in found}
    if len(sizes) > 1:
        raise require.refuse("found", "be about the same number of actions", sorted(sizes))
    rows = np.stack([effects.labels for effects in found], axis=1)
    _, firsts, groups = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return ActionEffects(firsts[groups])


class Probe(Protocol):
    """A place from which actions can be tried without leaving it."""

    num_actions: int

    def outcome(self, action: int, num_steps: int) -> Sequence[Any]:
        """What repeating an action this often shows, step by step: comparable things."""

    def move(self, action: int) -> None:
        """Goes on to another place."""


def compared_actions(
    probe: Probe, num_places: int, num_steps: int, rng: np.random.Generator
) -> ActionEffects:
    """Actions that nothing tells apart in `num_places` places of a random walk.

    Args:
        probe: where to try them.
        num_places: places to try them in; more find rarer differences.
        num_steps: how often an action is repeated in one place, since some take effect later.
        rng: random generator of the walk.
    """
    require.integer("num_places", num_places, least=1)
    require.integer("num_steps", num_steps, least=1)
    labels = np.zeros(probe.num_actions, dtype=np.int64)
    for _ in range(num_places):
        firsts = np.flatnonzero(labels != np.arange(probe.num_actions))
        undecided = np.union1d(firsts, labels[firsts])
        if not undecided.size:
            break
        outcomes = {action: probe.outcome(action, num_steps) for action in undecided.tolist()}
        action, outcome = next(iter(outcomes.items()))
        if not _equal(probe.outcome(action, num_steps), outcome):
            raise _erratic(f"two outcomes of action {action} in one place")
        labels = _split(labels, outcomes)
        probe.move(int(rng.integers(probe.num_actions)))
    return ActionEffects(labels)


def _split(labels: IntArray, outcomes: dict[int, Sequence[Any]]) -> IntArray:
    """Labels after these outcomes: actions with one label and two outcomes part."""
    found = labels.copy()
    heads: dict[int, list[int]] = {}
    for action, outcome in outcomes.items():
        known = heads.setdefault(int(labels[action]), [])
        same = [head for head in known if _equal(outcomes[head], outcome)]
        found[action] = same[0] if same else action
        if not same:
            known.append(action)
    return found


def _equal(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True)
    )


def probed_actions(
    make: Callable[[], Any],
    *,
    num_places: int = 50,
    num_steps: int = 1,
    seed: int = 0,
) -> ActionEffects:
    """Actions of a Gymnasium environment that nothing tells apart.

    Places come from a random walk over episodes; environments are copied, or, if they cannot be,
    reset with the same seed and led to the place again.

    Args:
        make: makes the environment, which has discrete actions.
        num_places: places to try the actions in.
        num_steps: how often an action is repeated in one place.
        seed: random seed of the walk and of the environment.
    """
    rng = np.random.default_rng(seed)
    env = make()
    try:
        require.num_actions(env.action_space)
        env.reset(seed=seed)
        probe: Probe
        try:
            copy.deepcopy(env)
            probe = _CopiedProbe(env)
        except Exception:  # an environment may fail to be copied in any way
            probe = _RepeatedProbe(env, seed)
        return compared_actions(probe, num_places, num_steps, rng)
    finally:
        env.close()


def game_actions(
    game: Environment, *, num_places: int = 50, num_steps: int = 4, seed: int = 0
) -> ActionEffects:
    """Actions of a game, such as an Atari game, that nothing on the screen tells apart.

    Args:
        game: the game, which is reset; its states are saved and restored.
        num_places: places to try the actions in.
        num_steps: how often an action is repeated in one place.
        seed: random seed of the walk.
    """
    rng = np.random.default_rng(seed)
    return compared_actions(_GameProbe(game), num_places, num_steps, rng)


class _GameProbe:
    """Tries actions in a game and restores its state."""

    def __init__(self, game: Environment) -> None:
        self.game, self.num_actions = game, game.num_actions
        game.reset()

    def outcome(self, action: int, num_steps: int) -> Sequence[Any]:
        state, seen = self.game.state_dict(), []
        for _ in range(num_steps):
            step = self.game.step(action)
            seen += [step.observation, step.reward, step.lives, step.terminated]
            if step.terminated or step.truncated:
                break
        self.game.load_state_dict(state)
        return seen

    def move(self, action: int) -> None:
        # Long walks reach more of a game than single steps do.
        for _ in range(_STEPS_BETWEEN_PLACES):
            step = self.game.step(action)
            if step.terminated or step.truncated:
                self.game.reset()
                break


def _repeated(env: Any, action: int, num_steps: int) -> list[Any]:
    """Observations, rewards and ends while an action is repeated, up to the episode's end."""
    seen: list[Any] = []
    for _ in range(num_steps):
        observation, reward, terminated, truncated, _ = env.step(action)
        seen += [*_leaves(observation), float(reward), bool(terminated)]
        if terminated or truncated:
            break
    return seen


def _leaves(observation: Any) -> Iterable[Any]:
    if isinstance(observation, dict):
        return [leaf for key in sorted(observation) for leaf in _leaves(observation[key])]
    if isinstance(observation, tuple):
        return [leaf for item in observation for leaf in _leaves(item)]
    return [np.array(observation)]


class _CopiedProbe:
    """Tries actions on copies of the environment."""

    def __init__(self, env: Any) -> None:
        self.env, self.num_actions = env, int(env.action_space.n)

    def outcome(self, action: int, num_steps: int) -> Sequence[Any]:
        return _repeated(copy.deepcopy(self.env), action, num_steps)

    def move(self, action: int) -> None:
        *_, terminated, truncated, _ = self.env.step(action)
        if terminated or truncated:
            self.env.reset()


class _RepeatedProbe:
    """Tries actions in the environment itself, which is led back to its place every time."""

    def __init__(self, env: Any, seed: int) -> None:
        self.env, self.num_actions, self.seed = env, int(env.action_space.n), seed
        self.path: list[int] = []  # of the episode
        self.expected: list[list[Any]] = []  # what the path showed

    def outcome(self, action: int, num_steps: int) -> Sequence[Any]:
        self._return()
        return _repeated(self.env, action, num_steps)

    def move(self, action: int) -> None:
        self._return()
        observation, reward, terminated, truncated, _ = self.env.step(action)
        if terminated or truncated:
            self.seed += 1
            self.path, self.expected = [], []
            return
        self.path.append(action)
        self.expected.append([*_leaves(observation), float(reward)])

    def _return(self) -> None:
        self.env.reset(seed=self.seed)
        for step, (action, expected) in enumerate(zip(self.path, self.expected, strict=True)):
            observation, reward, *_ = self.env.step(action)
            if not _equal([*_leaves(observation), float(reward)], expected):
                raise _erratic(f"other observations at step {step}")


def _erratic(what: str) -> ValueError:
    rule = (
        "give the same observations after the same actions, when it is copied or reset with the "
        "same seed"
    )
    return require.refuse("the environment", rule, require.Described(what))
