"""εz-greedy in TorchRL: `EZGreedyModule` in place of `EGreedyModule`.

    policy = TensorDictSequential(actor, EZGreedyModule(env.action_spec, eps_end=0.05))
    env = TransformedEnv(env, InitTracker())  # tells when episodes begin

It keeps one option per environment, explores only where `EGreedyModule` does (exploration type
RANDOM), and stays on the device of the actions.
"""

import multiprocessing
import os
import re
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ezgreedy import requirements as require
from ezgreedy.adapters.libraries import TORCHRL
from ezgreedy.adapters.saved_lanes import fresh_seed, restore
from ezgreedy.adapters.torch_checkpoints import OldCheckpoints
from ezgreedy.exploration.durations import DurationLaw, Zeta, checked_law
from ezgreedy.exploration.tensors import TensorEZGreedy

TORCHRL.check(__name__)

from tensordict import TensorDictBase
from torchrl.data import Categorical, Composite, MultiCategorical, MultiOneHot, OneHot
from torchrl.envs import ExplorationType, exploration_type
from torchrl.modules import EGreedyModule

# More environments than any one process plays in: the lanes of worker k begin at k times this.
_LANES_PER_WORKER = 2**20


class _Answered(NamedTuple):
    """The last step on which the module explored: its `is_init` and the actions."""

    starts: Tensor
    version: int
    actions: Tensor


class EZGreedyModule(OldCheckpoints, EGreedyModule):
    """`EGreedyModule` whose random actions last: place it after the actor.

    ε, its annealing by `step(frames)` and its buffers are those of `EGreedyModule`. The state of
    the options is part of the `state_dict`. One module serves one batch of environments.

    Args:
        spec: spec of the action: one-hot or categorical.
        *arguments: eps_init, eps_end, annealing_num_steps, as for `EGreedyModule`.
        durations: law of the number of plays; `Zeta()` if None.
        seed: seed of the exploration; fresh if None.
        first_lane: number of the first environment, for modules that share a seed. Copies in the
            worker processes of a collector have numbers of their own in any case.
        init_key: entry that is true where an episode begins, as `InitTracker` writes it.
        **settings: action_key, action_mask_key, device, as for `EGreedyModule`.
    """

    def __init__(
        self,
        spec: Any,
        *arguments: Any,
        durations: DurationLaw | None = None,
        seed: int | None = None,
        first_lane: int = 0,
        init_key: Any = "is_init",
        **settings: Any,
    ) -> None:
        super().__init__(spec, *arguments, **settings)
        self.durations = checked_law("durations", Zeta() if durations is None else durations)
        self.init_key = init_key
        self.in_keys.append(init_key)
        self._leaf = self.spec[self.action_key] if isinstance(self.spec, Composite) else self.spec
        self.num_actions = _num_actions(self._leaf)
        self._is_one_hot = isinstance(self._leaf, OneHot)
        self._seed = fresh_seed(seed)
        self._first_lane = require.integer("first_lane", first_lane, least=0)
        self._process = os.getpid()
        self._explore: TensorEZGreedy | None = None
        self._saved: dict[str, Any] | None = None
        self._last: _Answered | None = None

    @property
    def explore(self) -> TensorEZGreedy | None:
        """The policy itself, which knows what explored; None before the first exploring call."""
        return self._explore

    def extra_repr(self) -> str:
        """The settings, with the ε that `step` has reached and the seed in force."""
        settings: dict[str, Any] = {
            "num_actions": self.num_actions,
            "eps": _shown(self.eps),
            "eps_init": _shown(self.eps_init),
            "eps_end": _shown(self.eps_end),
            "annealing_num_steps": self.annealing_num_steps,
            "durations": self.durations,
            "seed": self._seed if self._saved is None else self._saved["seed"],
        }
        if self._first_lane:
            settings["first_lane"] = self._first_lane
        return ", ".join(f"{name}={value}" for name, value in settings.items())

    def __repr__(self) -> str:
        # The base class shows the keys, but not `extra_repr`.
        name, opening, keys = super().__repr__().partition("(\n")
        return f"{name}{opening}    {self.extra_repr()},\n{keys}"

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Replaces the action where an option acts."""
        if exploration_type() not in (ExplorationType.RANDOM, None):
            return tensordict
        action = tensordict.get(self.action_key)
        greedy = action.argmax(-1) if self._is_one_hot else action
        actions = self._explored(greedy.reshape(-1).to(torch.int64), tensordict)
        actions = actions.reshape(greedy.shape)
        if self._is_one_hot:
            actions = torch.nn.functional.one_hot(actions, self.num_actions)
        tensordict.set(self.action_key, actions.to(action.dtype))
        return tensordict

    def _explored(self, greedy: Tensor, tensordict: TensorDictBase) -> Tensor:
        """The actions to execute, [lanes].

        A collector calls its policy on the first observation once more, to see what it writes. Such
        a step is recognised by its very tensor, answered in the same way, and counted once.
        """
        explore = self._policy(len(greedy), greedy.device)
        starts = self._starts(tensordict)
        last = self._last
        if last is not None and starts is last.starts and starts._version == last.version:
            return torch.where(explore.exploring, last.actions, greedy)
        legal = self._legal(tensordict)
        actions = explore(greedy, starts=starts.reshape(-1), legal=legal, epsilon=self.eps)
        self._last = _Answered(starts, starts._version, actions)
        return actions

    def _starts(self, tensordict: TensorDictBase) -> Tensor:
        starts = tensordict.get(self.init_key, None)
        if starts is None:
            rule = f"have an entry {self.init_key!r}: append InitTracker() to the environment"
            received = require.Described(f"the entries {sorted(map(str, tensordict.keys()))}")
            raise require.refuse("tensordict", rule, received)
        return starts

    def _legal(self, tensordict: TensorDictBase) -> Tensor | None:
        if self.action_mask_key is None:
            return None
        mask = tensordict.get(self.action_mask_key)
        return mask.reshape(-1, self.num_actions)

    def _policy(self, lanes: int, device: torch.device) -> TensorEZGreedy:
        """The policy for this batch of environments, on this device."""
        if self._explore is not None and self._explore.lanes != lanes:
            rule = (
                f"be called with {self._explore.lanes} environments as before: give every "
                "collector a module of its own, and evaluate with "
                "set_exploration_type(ExplorationType.DETERMINISTIC)"
            )
            raise require.refuse("this EZGreedyModule", rule, lanes)
        if self._explore is not None and self._explore.device != device:
            self._saved, self._explore = self._explore.state_dict(), None
        if self._explore is None:
            self._explore = self._made(lanes, device)
        return self._explore

    def _made(self, lanes: int, device: torch.device) -> TensorEZGreedy:
        saved = self._saved or {"seed": self._seed, "first_lane": self._numbered_lane()}
        explore = TensorEZGreedy(
            self.num_actions,
            0.0,
            self.durations,
            lanes,
            saved["seed"],
            device=device,
            first_lane=saved["first_lane"],
        )
        if self._saved is not None:
            restore(explore, self._saved)
            self._saved = None
        self._seed = saved["seed"]
        return explore

    def _numbered_lane(self) -> int:
        """The number of the first environment; copies in other processes have their own."""
        if os.getpid() == self._process:
            return self._first_lane
        worker = re.search(r"\d+$", multiprocessing.current_process().name)
        return self._first_lane + _LANES_PER_WORKER * (int(worker[0]) if worker else os.getpid())

    # Checkpoints.

    def get_extra_state(self) -> dict[str, Any] | None:
        """The exploration as plain data, which `torch.load` reads with `weights_only`."""
        return self._saved if self._explore is None else self._explore.state_dict()

    def set_extra_state(self, state: dict[str, Any] | None) -> None:
        """Continues from a saved exploration; there is none if the module had never explored."""
        if state is None:
            return
        self._saved, before, self._last = dict(state), self._explore, None
        self._explore = None if before is None else self._made(before.lanes, before.device)


def _shown(epsilon: Tensor) -> str:
    """The number, without the digits that single precision adds; a meta tensor has none."""
    return str(epsilon) if epsilon.is_meta else f"{epsilon.item():.6g}"


def _num_actions(spec: Any) -> int:
    """The number of actions of a one-hot or categorical spec; others are refused."""
    single = isinstance(spec, (OneHot, Categorical)) and not isinstance(
        spec, (MultiOneHot, MultiCategorical)
    )
    if not single:
        rule = "be a OneHot or Categorical action spec"
        way = "options repeat one of finitely many actions: map numbers to actions in a transform"
        raise require.refuse_type("spec", rule, spec, way)
    return require.integer("number of actions of spec", int(spec.space.n), least=1)
