"""The same tape from PyTorch tensors, on any device.

Nothing here waits for the device: no value is read back on a step, so exploration can stay on a GPU
with the network. Everything is computed for all lanes: skipping some would mean reading which.
Checkpoints are those of `EZGreedy`, in both directions. Needs PyTorch and a device with float64.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import DurationLaw
from ezgreedy.exploration.explorer import Counters
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.exploration.schedules import Linear
from ezgreedy.exploration.streams import (
    MULTIPLIER_A,
    MULTIPLIER_B,
    RESOLUTION_BITS,
    SHIFT_A,
    SHIFT_B,
    SHIFT_C,
    UNIT,
    WEYL,
    Purpose,
)


def _signed(word: int) -> int:
    """A 64-bit word as PyTorch's int64 holds it; addition and multiplication wrap alike."""
    word &= 2**64 - 1
    return word - 2**64 if word >= 2**63 else word


def _shifted(words: Tensor, bits: int) -> Tensor:
    """Logical right shift: int64 shifts drag the sign along, which the mask removes."""
    return (words >> bits) & (2 ** (64 - bits) - 1)


def _scramble(words: Tensor, multiplier: Tensor | int) -> Tensor:
    words = (words ^ _shifted(words, SHIFT_A)) * _signed(MULTIPLIER_A)
    return (words ^ _shifted(words, SHIFT_B)) * multiplier


def _uniforms(words: Tensor, purpose: Purpose) -> Tensor:
    if purpose != Purpose.COIN:
        words = _scramble(words + _signed(purpose * WEYL), _signed(MULTIPLIER_B))
        words = words ^ _shifted(words, SHIFT_C)
    return _shifted(words, 64 - RESOLUTION_BITS).to(torch.float64) * UNIT


class _Last(NamedTuple):
    """The decisions of the last call; all [lanes] except `epsilon` and `legal`."""

    exploring: Tensor
    deciding: Tensor
    stepping: Tensor
    agrees: Tensor
    epsilon: Tensor
    actions: Tensor
    legal: Tensor | None


class TensorEZGreedy:
    """`EZGreedy` for tensors: the same arguments, the same tape, no host synchronisation.

    A value out of range (a greedy action, a lane without legal actions) cannot be refused on the
    spot without waiting for the device; it is remembered there and raised by the next `check`,
    `counters` or `state_dict`.

    Args:
        num_actions, epsilon, durations, lanes, seed: as for `EZGreedy`. A plain function as epsilon
            needs all lanes to step together; `Linear` does not.
        device: device of the tensors.
        **settings: first_lane, action_weights, carries_over_episodes, as for `EZGreedy`.
    """

    def __init__(
        self,
        num_actions: object,
        epsilon: object,
        durations: DurationLaw | None = None,
        lanes: int = 1,
        seed: int = 0,
        *,
        device: torch.device | str = "cpu",
        **settings: Any,
    ) -> None:
        # The NumPy policy checks all arguments and keeps the checkpoint format; it never acts.
        self._host = EZGreedy(num_actions, epsilon, durations, lanes, seed, **settings)
        self.device = torch.device(device)
        self.lanes, self.num_actions = self._host.lanes, self._host.num_actions
        self.carries_over_episodes = self._host.carries_over_episodes
        streams, choice = self._host.streams, self._host.choice
        self._offsets = self._tensor(streams.offsets.view(np.int64))
        self._multipliers = self._tensor(streams.multipliers.view(np.int64))
        self._cumulative = self._tensor(self._host.durations.inverse.cumulative)
        self._units = self._tensor(choice.units)
        self._cumulative_units = self._tensor(choice.cumulative)
        self._steps: Tensor
        self._remaining: Tensor
        self._option_actions: Tensor
        self._durations: Tensor
        self._cut_by_episode_ends: Tensor
        self._cut_by_masks: Tensor
        self._cut_by_caller: Tensor
        self._plays_cut: Tensor
        self._faulty: Tensor
        self._common_step: int | None
        self._last: _Last | None
        self._load_from_host()

    def __call__(
        self,
        greedy: Tensor,
        starts: Tensor | None = None,
        active: Tensor | None = None,
        legal: Tensor | None = None,
        epsilon: Tensor | None = None,
        ends: Tensor | None = None,
    ) -> Tensor:
        """The actions to execute, int64 [lanes]; arguments as for `EZGreedy`, as tensors.

        Args:
            greedy: as for `EZGreedy`.
            starts: as for `EZGreedy`.
            active: as for `EZGreedy`.
            legal: as for `EZGreedy`.
            epsilon: the ε of this call, one number or [lanes], for schedules that live on the
                device; the policy's own if None.
            ends: as for `EZGreedy`.
        """
        self._check_greedy(greedy)
        lanes, actions_shape = (self.lanes,), (self.lanes, self.num_actions)
        for name, value, shape in (
            ("starts", starts, lanes),
            ("active", active, lanes),
            ("legal", legal, actions_shape),
            ("ends", ends, lanes),
        ):
            self._check_mask(name, value, shape)
        if epsilon is None:
            epsilon = self._epsilon_now(active)
        else:
            epsilon = epsilon.to(torch.float64)
            self._faulty |= ~((epsilon >= 0.0) & (epsilon <= 1.0)).all()
        if starts is not None and not self.carries_over_episodes:
            self._remaining = self._end(starts, self._cut_by_episode_ends)
        if ends is not None:
            self._remaining = self._end(ends, self._cut_by_caller)
        if legal is not None:
            allowed = legal.gather(1, self._option_actions[:, None])[:, 0]
            illegal = ~allowed if active is None else ~allowed & active
            self._remaining = self._end(illegal, self._cut_by_masks)
        running = self._remaining
        words = _scramble(self._offsets + self._steps * _signed(WEYL), self._multipliers)
        deciding = running == 0
        stepping = torch.ones_like(deciding) if active is None else active
        deciding = deciding & stepping
        fresh = deciding & (_uniforms(words, Purpose.COIN) < epsilon)
        exploring = fresh | (running > 0) & stepping
        drawn = self._pick(_uniforms(words, Purpose.ACTION), legal)
        plays = torch.searchsorted(self._cumulative, _uniforms(words, Purpose.DURATION), right=True)
        self._option_actions = torch.where(fresh, drawn, self._option_actions)
        actions = torch.where(exploring, self._option_actions, greedy)
        # `plays` counts from zero, so it is the number left after the first play.
        self._remaining = torch.where(fresh, plays, running - exploring.to(torch.int64))
        self._steps = self._steps + stepping
        if self._common_step is not None:
            self._common_step = None if active is not None else self._common_step + 1
        self._durations.scatter_add_(0, torch.where(fresh, plays + 1, 0), torch.ones_like(plays))
        self._faulty |= self._faults(actions, deciding & ~exploring, stepping, legal)
        self._last = _Last(
            exploring, deciding, stepping, actions == greedy, epsilon, actions, legal
        )
        return actions

    def __repr__(self) -> str:
        return f"{self._host!r}".partition(" after ")[0].replace("EZGreedy", "TensorEZGreedy", 1)

    @property
    def exploring(self) -> Tensor:
        """Which lanes an option acted on in the last decision, bool [lanes]."""
        if self._last is None:
            return torch.zeros(self.lanes, dtype=torch.bool, device=self.device)
        return self._last.exploring

    @property
    def remaining(self) -> Tensor:
        """Plays of the running option still to come after the last one, int64 [lanes]."""
        return self._remaining

    @property
    def steps(self) -> Tensor:
        """Total steps taken by each lane, int64 [lanes]."""
        return self._steps

    @property
    def probabilities(self) -> Tensor:
        """The probability with which the last decision played each action, float64 [lanes]."""
        if self._last is None:
            return torch.full((self.lanes,), torch.nan, dtype=torch.float64, device=self.device)
        _, deciding, stepping, agrees, epsilon, actions, legal = self._last
        units = self._units.expand(self.lanes, -1) if legal is None else self._units * legal
        chance = units.gather(1, actions[:, None])[:, 0] / units.sum(1).clip(1).to(torch.float64)
        decided = (1.0 - epsilon) * agrees + epsilon * chance
        return torch.where(stepping, torch.where(deciding, decided, 1.0), torch.nan)

    def reset(self, finished: Tensor) -> None:
        """Ends the options of lanes whose episode has ended."""
        self._check_mask("finished", finished, (self.lanes,))
        if not self.carries_over_episodes:
            self._remaining = self._end(finished, self._cut_by_episode_ends)

    # Reading back: these wait for the device.

    def check(self) -> None:
        """Raises if any call so far was given a value out of range."""
        if bool(self._faulty):
            rule = f"lie in [0, {self.num_actions}), be legal, and have a legal alternative"
            received = require.Described("other values on an earlier call, or an epsilon beyond 1")
            raise require.refuse("greedy", rule, received)

    @property
    def counters(self) -> Counters:
        """Counts of what has happened so far, summed over lanes."""
        self._store_on_host()
        return self._host.counters

    def state_dict(self) -> dict[str, Any]:
        """As `EZGreedy.state_dict`: either class continues the other's tape."""
        self._store_on_host()
        return self._host.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of this class or of `EZGreedy`, made with the same arguments."""
        self._host.load_state_dict(state)
        self._load_from_host()

    def _store_on_host(self) -> None:
        self.check()
        counts = self._durations.cpu().numpy()
        state = self._host.state_dict()
        further_steps = int(self._steps.sum()) - sum(state["steps"])
        state["steps"] = self._steps.tolist()
        state["remaining"] = self._remaining.tolist()
        state["option_actions"] = self._option_actions.tolist()
        state["counters"] |= {
            "steps": state["counters"]["steps"] + further_steps,
            "started": int(counts[1:].sum()),
            "cut_by_episode_ends": int(self._cut_by_episode_ends),
            "cut_by_masks": int(self._cut_by_masks),
            "cut_by_caller": int(self._cut_by_caller),
            "plays_cut": int(self._plays_cut),
            "durations": [[n, int(counts[n])] for n in np.flatnonzero(counts).tolist() if n],
        }
        self._host.load_state_dict(state)

    def _load_from_host(self) -> None:
        state = self._host.state_dict()
        counters = state["counters"]
        steps = state["steps"]
        self._steps = self._tensor(steps)
        self._common_step = steps[0] if steps.count(steps[0]) == self.lanes else None
        self._remaining = self._tensor(state["remaining"])
        self._option_actions = self._tensor(state["option_actions"])
        self._cut_by_episode_ends = self._tensor(counters["cut_by_episode_ends"])
        self._cut_by_masks = self._tensor(counters["cut_by_masks"])
        self._cut_by_caller = self._tensor(counters["cut_by_caller"])
        self._plays_cut = self._tensor(counters["plays_cut"])
        counts = np.zeros(self._host.durations.cap + 1, dtype=np.int64)
        for n, count in counters["durations"]:
            counts[n] = count
        self._durations = self._tensor(counts)  # entry 0 collects lanes that are not counted
        self._faulty = self._tensor(False)
        self._last = None
        self._read_epsilon()

    # ε.

    @property
    def epsilon(self) -> object:
        """ε as given; may be assigned."""
        return self._host.epsilon

    @epsilon.setter
    def epsilon(self, value: object) -> None:
        self._host.epsilon = value
        self._read_epsilon()

    def _read_epsilon(self) -> None:
        epsilon = self._host.epsilon
        self._epsilons = epsilon if callable(epsilon) else self._tensor(np.asarray(epsilon))

    def _epsilon_now(self, active: Tensor | None) -> Tensor:
        if isinstance(self._epsilons, Tensor):
            return self._epsilons
        if isinstance(self._epsilons, Linear):
            return torch.as_tensor(self._epsilons.at(self._steps.to(torch.float64)))
        if self._common_step is None or active is not None:
            rule = "be a number, an array or Linear once lanes no longer step together"
            raise require.refuse("epsilon", rule, self._epsilons)
        name = f"epsilon(step={self._common_step})"
        value = require.number(name, self._epsilons(self._common_step), 0.0, 1.0)
        return torch.tensor(value, dtype=torch.float64, device=self.device)

    # Parts of a step.

    def _end(self, ended: Tensor, tally: Tensor) -> Tensor:
        """Plays left [lanes] without those of ended options, which are counted."""
        running = torch.where(ended, 0, self._remaining)
        tally += (ended & (self._remaining > 0)).sum()
        self._plays_cut += (self._remaining - running).sum()
        return running

    def _pick(self, uniforms: Tensor, legal: Tensor | None) -> Tensor:
        if legal is not None:
            cumulative = (self._units * legal).cumsum(1)
            targets = uniforms * cumulative[:, -1].to(torch.float64)
            picked = (cumulative <= targets[:, None]).sum(1)
            return picked.clip(max=self.num_actions - 1)
        if self._host.choice.weights is None:
            return (uniforms * self.num_actions).to(torch.int64)
        targets = uniforms * float(self._host.choice.total)
        return torch.searchsorted(self._cumulative_units.to(torch.float64), targets, right=True)

    def _faults(
        self, actions: Tensor, greedy_played: Tensor, stepping: Tensor, legal: Tensor | None
    ) -> Tensor:
        faults = (actions < 0) | (actions >= self.num_actions)
        if legal is not None:
            index = actions.clip(0, self.num_actions - 1)[:, None]
            faults = faults | greedy_played & ~legal.gather(1, index)[:, 0]
            faults = faults | stepping & ~(legal & (self._units > 0)).any(1)
        return faults.any()

    # Arguments: types, shapes and devices are known without waiting.

    def _check_greedy(self, greedy: object) -> None:
        if not isinstance(greedy, Tensor):
            raise require.refuse_type("greedy", "be a tensor", greedy)
        if greedy.dtype != torch.int64:
            raise require.refuse_type("greedy", f"be int64, not {greedy.dtype}", greedy)
        self._check_place("greedy", greedy, (self.lanes,))

    def _check_mask(self, name: str, value: object, shape: tuple[int, ...]) -> None:
        if value is None:
            return
        if not isinstance(value, Tensor) or value.dtype != torch.bool:
            way = f"pass {name}.bool()" if isinstance(value, Tensor) else ""
            raise require.refuse_type(name, "be a bool tensor", value, way)
        self._check_place(name, value, shape)

    def _check_place(self, name: str, value: Tensor, shape: tuple[int, ...]) -> None:
        if tuple(value.shape) != shape:
            raise require.refuse(name, f"have shape {shape}", tuple(value.shape))
        if value.device.type != self.device.type:
            raise require.refuse(name, f"be on {self.device}", value.device)

    def _tensor(self, value: Any) -> Tensor:
        return torch.as_tensor(np.array(value), device=self.device)
