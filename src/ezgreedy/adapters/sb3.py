"""εz-greedy in Stable-Baselines3: `EZGreedyDQN` in place of `DQN`.

    from ezgreedy.adapters.sb3 import EZGreedyDQN

    model = EZGreedyDQN("MlpPolicy", "MountainCar-v0", durations=Zeta(mu=2.0, cap=100))
    model.learn(100_000)

Only training explores this way: `predict`, and with it every evaluation, is SB3's own. ε is that of
SB3's schedule, with one coin per environment instead of one for all. It continues after `load`.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.adapters.libraries import SB3
from ezgreedy.adapters.saved_lanes import continued, fresh_seed, under_law
from ezgreedy.exploration.durations import DurationLaw, Zeta, checked_law
from ezgreedy.exploration.ez_greedy import EpsilonGreedy, EZGreedy
from ezgreedy.requirements import IntArray

SB3.check(__name__)

from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm


class EZGreedyMixin(OffPolicyAlgorithm):
    """εz-greedy for an SB3 algorithm with an ε schedule: `class Mine(EZGreedyMixin, MyDQN)`.

    Options last from one environment step to the next, end with their episode, and also act in the
    warm-up (`learning_starts`), where ε is 1. `explore` is the policy itself: `explore.exploring`
    says which environments explored on the last step. To continue under another law, assign it to
    `durations`.

    Args:
        *arguments: those of the algorithm.
        durations: law of the number of plays; `Zeta()` if None. `Fixed(1)` is ε-greedy with a coin
            for each environment.
        exploration_timesteps: `total_timesteps` from which SB3's schedule of ε is computed; those
            of the first `learn` if None.
        **settings: those of the algorithm. Its `seed` also seeds the exploration.
    """

    _explore: EZGreedy

    def __init__(
        self,
        *arguments: Any,
        durations: DurationLaw | None = None,
        exploration_timesteps: int | None = None,
        **settings: Any,
    ) -> None:
        self.durations = Zeta() if durations is None else durations  # checked by the setter
        if exploration_timesteps is not None:
            require.integer("exploration_timesteps", exploration_timesteps, least=1)
        self.exploration_timesteps = exploration_timesteps
        self._exploration_clock = 0
        self._exploration_state: dict[str, Any] | None = None
        self._awaits_outcome = False
        try:
            super().__init__(*arguments, **settings)
        except AssertionError:
            # SB3 asserts that the space is discrete; this refusal also says what can be done.
            if hasattr(self, "action_space"):
                _num_actions(self.action_space)
            raise

    @property
    def explore(self) -> EZGreedy:
        """The policy that explores; assignable.

        An assigned policy must be an `EZGreedy` for the model's actions and environments. It is
        used as it is, with its own law and counters, but for ε, which is that of SB3's schedule.
        """
        return self._explore

    @explore.setter
    def explore(self, policy: EZGreedy) -> None:
        # What `load` could not make again is refused here, and not once training is done.
        if type(policy) is not EZGreedy:
            rule = "be an EZGreedy, the only kind of policy that load restores"
            raise require.refuse_type("explore", rule, policy, _way_to_explore(policy))
        num_actions = _num_actions(self.action_space)
        if policy.num_actions != num_actions:
            rule = f"be {num_actions}, as in env.action_space: pass model.action_space to EZGreedy"
            raise require.refuse("explore.num_actions", rule, policy.num_actions)
        if policy.lanes != self.n_envs:
            rule = (
                f"be {self.n_envs}, one for each environment: pass lanes=model.n_envs to EZGreedy"
            )
            raise require.refuse("explore.lanes", rule, policy.lanes)
        policy.epsilon = self._scheduled_epsilon()
        self._explore = policy

    @property
    def durations(self) -> DurationLaw:
        """The law of the number of plays; assignable.

        An assigned law is in force from the next step on. Options under way end, since they belong
        to the former law; ε, steps and counters continue.
        """
        if "_explore" in self.__dict__:
            return self._explore.durations
        law: DurationLaw = self.__dict__["durations"]
        return law

    @durations.setter
    def durations(self, law: DurationLaw) -> None:
        law = checked_law("durations", law)
        if "_explore" in self.__dict__:
            self._explore = under_law(self._explore, self._saved_exploration(), law)
        else:
            # Where SB3's `load` puts the saved law too, and `save` looks for it.
            self.__dict__["durations"] = law

    def _setup_model(self) -> None:
        """Builds the networks, and the exploration, which `load` has brought back as plain data."""
        num_actions = _num_actions(self.action_space)
        law, saved = checked_law("durations", self.durations), self._exploration_state
        settings: dict[str, Any] = {}
        if saved is not None:
            _check_saved_law(law, saved)
            settings = {key: saved[key] for key in ("action_weights", "carries_over_episodes")}
        super()._setup_model()
        if saved is None and self.num_timesteps:
            self._adopt(self.num_timesteps, self._total_timesteps)
        seed, epsilon = fresh_seed(self.seed), self._scheduled_epsilon()
        self._explore = EZGreedy(num_actions, epsilon, law, self.n_envs, seed, **settings)
        if saved is not None:
            self._explore = continued(self._explore, saved)

    def _adopt(self, num_timesteps: int, total_timesteps: int) -> None:
        """Continues a model that was saved by SB3's own class."""
        self._exploration_clock = num_timesteps
        if self.exploration_timesteps is None:
            self.exploration_timesteps = total_timesteps
        warnings.warn(
            "this model was saved without εz-greedy: its options begin now, and ε continues at "
            f"step {num_timesteps:,} of {self.exploration_timesteps:,} "
            "(restart_exploration() starts ε anew)",
            stacklevel=4,
        )

    def restart_exploration(self) -> None:
        """Lets ε begin anew with the next `learn`, as in a model just made."""
        self._exploration_clock, self.exploration_timesteps = 0, None

    def _setup_learn(
        self, total_timesteps: int, callback: Any, reset_num_timesteps: bool, *arguments: Any
    ) -> Any:
        starts_episodes = reset_num_timesteps or self._last_obs is None
        prepared = super()._setup_learn(total_timesteps, callback, reset_num_timesteps, *arguments)
        if starts_episodes:
            self._end_all_options()
        if self.exploration_timesteps is None:
            self.exploration_timesteps = self._total_timesteps
        return prepared

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[IntArray, IntArray]:
        """The actions to execute, and the same ones to store."""
        if self._awaits_outcome:  # a callback stopped the training before the step was stored
            self._end_all_options()
        warms_up = self._exploration_clock < learning_starts
        epsilon = 1.0 if warms_up else self._scheduled_epsilon()
        current = self.explore.epsilon
        if not isinstance(current, float) or current != epsilon:
            self.explore.epsilon = epsilon
        actions = self.explore(self._greedy)
        self._exploration_clock += n_envs
        self._awaits_outcome = True
        return actions, actions

    def _greedy(self, lanes: IntArray) -> IntArray:
        seen = self._last_obs
        if isinstance(seen, dict):
            seen = {name: part[lanes] for name, part in seen.items()}
        else:
            seen = seen[lanes]
        actions, _ = self.policy.predict(seen, deterministic=True)
        return np.asarray(actions, dtype=np.int64)

    def _scheduled_epsilon(self) -> float:
        """What SB3's schedule says after all the steps ever taken."""
        share = self._exploration_clock / (self.exploration_timesteps or 1)
        return float(self.exploration_schedule(1.0 - min(share, 1.0)))

    def _on_step(self) -> None:
        super()._on_step()
        self.exploration_rate = self._scheduled_epsilon()
        self.logger.record("rollout/exploration_rate", self.exploration_rate)

    def _store_transition(
        self,
        replay_buffer: Any,
        buffer_action: Any,
        new_obs: Any,
        reward: Any,
        dones: NDArray[np.bool_],
        infos: Any,
    ) -> None:
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)
        self.explore.reset(np.asarray(dones, dtype=np.bool_))
        self._awaits_outcome = False

    def _end_all_options(self) -> None:
        self.explore.reset(np.ones(self.explore.lanes, dtype=np.bool_))
        self._awaits_outcome = False

    def save(self, *arguments: Any, **settings: Any) -> None:
        """As SB3's `save`; the exploration is saved with the model, as plain data."""
        self._exploration_state = self._saved_exploration()
        self.__dict__["durations"] = self.durations
        super().save(*arguments, **settings)

    def _saved_exploration(self) -> dict[str, Any]:
        """The exploration as plain data that `load` accepts."""
        state = self.explore.state_dict()
        if not isinstance(state["epsilon"], float):
            # Set by hand, a function or one number per environment; the schedule overrides it.
            state["epsilon"] = self._scheduled_epsilon()
        return state

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_explore"]


class EZGreedyDQN(EZGreedyMixin, DQN):
    """SB3's `DQN` with εz-greedy exploration; see `EZGreedyMixin` for what it adds."""


def _num_actions(space: object) -> int:
    """The number of actions of a discrete space; other spaces are refused."""
    name, way = "env.action_space", "map numbers to actions in a wrapper"
    if isinstance(space, spaces.Box):
        continuous = (
            "for continuous actions use TD3, SAC or DDPG with the action_noise "
            "ezgreedy.adapters.sb3_noise.PerEnvironmentNoise"
        )
        raise require.refuse_type(name, "be Discrete", space, f"{continuous}, or {way}")
    if not isinstance(space, spaces.Discrete):
        repeats = "options repeat one of finitely many actions"
        raise require.refuse_type(name, "be Discrete", space, f"{repeats}: {way}")
    if space.start != 0:
        rule = f"start at 0: add {space.start} to the actions in a wrapper"
        raise require.refuse(name, rule, space)
    return int(space.n)


def _way_to_explore(policy: object) -> str:
    """What to do instead of assigning a policy that `load` could not restore."""
    if isinstance(policy, EpsilonGreedy):
        return "for ε-greedy set model.durations = Fixed(1)"
    return "for other policies write the loop yourself: docs/adapters/loop.md"


def _check_saved_law(law: DurationLaw, saved: dict[str, Any]) -> None:
    """Refuses to continue saved options under a law that is not theirs."""
    described = saved["durations"]
    if law.describe() != described:
        arguments = ", ".join(
            f"{key}={value!r}" for key, value in described.items() if key != "law"
        )
        rule = (
            f"be the law that the model was saved with, {described['law']}({arguments}): load "
            "with that one or without durations, then assign another to model.durations"
        )
        raise require.refuse("durations", rule, law)
