"""εz-greedy in Tianshou: `EZGreedyCollector` in place of the training `Collector`.

    training = EZGreedyCollector(algorithm, envs, VectorReplayBuffer(20_000, len(envs)), seed=0)
    testing = Collector(algorithm, test_envs)

It works with every policy that has `eps_training`: DQN, QR-DQN, C51, Rainbow, IQN and FQF. The
policy itself stays as it is, so nothing leaks into evaluation. The exploration becomes part of the
policy's, and so of the algorithm's, `state_dict`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ezgreedy import requirements as require
from ezgreedy.adapters.libraries import TIANSHOU
from ezgreedy.adapters.saved_lanes import continued, fresh_seed
from ezgreedy.adapters.torch_checkpoints import OldCheckpoints
from ezgreedy.exploration.durations import DurationLaw
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.requirements import BoolArray, IntArray

TIANSHOU.check(__name__)

from tianshou.data import Batch, Collector


class EZGreedyCollector(Collector):
    """A `Collector` whose exploration noise is εz-greedy.

    ε is the policy's `eps_training` within a training step, else its `eps_inference`, as in
    Tianshou. With `collect(random=True)`, the usual warm-up, ε is 1 and options act as well.

    Args:
        policy: a policy with `eps_training`, or its algorithm.
        env: vector environment with discrete actions.
        buffer: replay buffer; as for `Collector` if None.
        durations: law of the number of plays; `Zeta()` if None.
        seed: seed of the exploration; fresh if None.
        exploration_noise: whether to explore.
        **settings: the other arguments of `Collector`.
    """

    def __init__(
        self,
        policy: Any,
        env: Any,
        buffer: Any = None,
        *,
        durations: DurationLaw | None = None,
        seed: int | None = None,
        exploration_noise: bool = True,
        **settings: Any,
    ) -> None:
        # Tianshou adds no noise of its own, and hands over what the policy would do.
        super().__init__(policy, env, buffer, exploration_noise=False, **settings)
        self._explores = require.flag("exploration_noise", exploration_noise)
        if not hasattr(self.policy, "eps_training"):
            rule = "have eps_training, as the policies of DQN and its relatives do"
            raise require.refuse_type("policy", rule, self.policy)
        # The policy's space: a vector environment shows that of its innermost environments.
        actions = self.policy.action_space
        self.explore = EZGreedy(actions, 0.0, durations, self.env_num, fresh_seed(seed))
        self._stepping: IntArray = np.arange(self.env_num)
        self.policy.ez_greedy = _Exploration(self)

    def reset_env(self, *arguments: Any, **settings: Any) -> Any:
        """As in `Collector`; running options end."""
        observations = super().reset_env(*arguments, **settings)
        if hasattr(self, "explore"):
            self.explore.reset(np.ones(self.env_num, dtype=np.bool_))
        return observations

    def _compute_action_policy_hidden(
        self,
        random: bool,
        ready_env_ids_R: IntArray,
        last_obs_RO: Any,
        *arguments: Any,
        **settings: Any,
    ) -> Any:
        computed = super()._compute_action_policy_hidden(
            random, ready_env_ids_R, last_obs_RO, *arguments, **settings
        )
        if self._explores or random:
            legal = getattr(Batch(obs=last_obs_RO).obs, "mask", None)
            epsilon = 1.0 if random else self._epsilon()
            computed.act = self._explored(computed.act, ready_env_ids_R, legal, epsilon)
            computed.act_normalized = self.policy.map_action(computed.act)
        return computed

    def _epsilon(self) -> float:
        policy = self.policy
        epsilon = policy.eps_training if policy.is_within_training_step else policy.eps_inference
        return float(epsilon)

    def _explored(
        self, greedy: Any, lanes: IntArray, mask: NDArray[Any] | None, epsilon: float
    ) -> IntArray:
        """The actions of the environments that take a step now; the others are left alone."""
        if epsilon != self.explore.epsilon:
            self.explore.epsilon = epsilon
        actions = np.zeros(self.env_num, dtype=np.int64)
        actions[lanes] = greedy
        legal: BoolArray | None = None
        if mask is not None:
            legal = np.ones((self.env_num, self.explore.num_actions), dtype=np.bool_)
            legal[lanes] = np.asarray(mask, dtype=np.bool_)
        active = np.zeros(self.env_num, dtype=np.bool_)
        active[lanes] = True
        self._stepping = np.asarray(lanes)
        return self.explore(actions, active=active, legal=legal)[lanes]

    def run_on_step_hook(self, action_batch: Any, rollout_batch: Any) -> None:
        """As in `Collector`; options end with their episodes."""
        super().run_on_step_hook(action_batch, rollout_batch)
        finished = np.zeros(self.env_num, dtype=np.bool_)
        finished[self._stepping] = rollout_batch.done
        self.explore.reset(finished)


class _Exploration(OldCheckpoints, nn.Module):
    """The exploration as part of the policy's `state_dict`."""

    def __init__(self, collector: EZGreedyCollector) -> None:
        super().__init__()
        self._holder = [collector]  # in a list, so that torch does not look inside

    def get_extra_state(self) -> dict[str, Any]:
        return self._holder[0].explore.state_dict()

    def set_extra_state(self, state: Mapping[str, Any] | None) -> None:
        if state is not None:
            collector = self._holder[0]
            collector.explore = continued(collector.explore, state)
