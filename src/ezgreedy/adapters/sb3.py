"""εz-greedy in Stable-Baselines3: `EZGreedyDQN` in place of `DQN`.

    from ezgreedy.adapters.sb3 import EZGreedyDQN

    model = EZGreedyDQN("MlpPolicy", "MountainCar-v0", durations=Zeta(mu=2.0, cap=100))
    self.learn(100_000)

Only training explores this way: `predict`, and with it every evaluation, is SB3's own. ε is that of
SB3's schedule, with one coin per environment instead of one for all. It continues after `load`.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.adapters.libraries import SB3
from ezgreedy.adapters.saved_lanes import continued, fresh_seed
from ezgreedy.exploration.durations import DurationLaw, Zeta
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.requirements import IntArray

SB3.check(__name__)

from stable_baselines3 import DQN
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm


class EZGreedyMixin(OffPolicyAlgorithm):
    """εz-greedy for an SB3 algorithm with an ε schedule: `class Mine(EZGreedyMixin, MyDQN)`.

    Options last from one environment step to the next, end with their episode, and also act in the
    warm-up (`learning_starts`), where ε is 1. `explore` is the policy itself: `explore.exploring`
    says which environments explored on the last step.

    Args:
        *arguments: those of the algorithm.
        durations: law of the number of plays; `Zeta()` if None. `Fixed(1)` is ε-greedy with a coin
            for each environment.
        exploration_timesteps: `total_timesteps` from which SB3's schedule of ε is computed; those
            of the first `learn` if None.
        **settings: those of the algorithm. Its `seed` also seeds the exploration.
    """

    explore: EZGreedy

    def __init__(
        self,
        *arguments: Any,
        durations: DurationLaw | None = None,
        exploration_timesteps: int | None = None,
        **settings: Any,
    ) -> None:
        self.durations = Zeta() if durations is None else durations
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
                require.num_actions(self.action_space)
            raise

    def _setup_model(self) -> None:
        """Builds the networks, and the exploration, which `load` has brought back as plain data."""
        super()._setup_model()
        seed = fresh_seed(self.seed)
        self.explore = EZGreedy(self.action_space, 0.0, self.durations, self.n_envs, seed)
        if self._exploration_state is not None:
            self.explore = continued(self.explore, self._exploration_state)
        elif self.num_timesteps:
            self._adopt(self.num_timesteps, self._total_timesteps)

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
        if epsilon != self.explore.epsilon:
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
        self._exploration_state = self.explore.state_dict()
        super().save(*arguments, **settings)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "explore"]


class EZGreedyDQN(EZGreedyMixin, DQN):
    """SB3's `DQN` with εz-greedy exploration; see `EZGreedyMixin` for what it adds."""
