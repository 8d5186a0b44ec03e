"""From steps to n-step transitions: (s, a, R, D, s′), with every tail at the end of an episode.

R = Σ_{k<n} (Π_{j<k} d_j)·r_k and D = Π_{k<n} d_k, where d is γ, or 0 on a step that terminates the
game or loses a life. An episode that ends returns its last steps as shorter transitions; one that
was cut off does so with D = γᵏ, so that their targets still bootstrap. States are named by slots.
"""

from collections import deque
from typing import Any, NamedTuple

from ezgreedy import requirements as require


class Transition(NamedTuple):
    """A state, the action taken there, and the outcome within n steps."""

    slot: int
    action: int
    n_step_return: float
    discount: float
    next_slot: int


class Accumulator:
    """Turns the steps of several lanes into transitions; lanes never see each other's steps.

    Args:
        num_steps: n. With n = 1 every step is a transition.
        discount: γ of one step.
        lanes: number of environments.
    """

    def __init__(self, num_steps: int = 3, discount: float = 0.99, lanes: int = 1) -> None:
        self.num_steps = require.integer("num_steps", num_steps, least=1)
        self.discount = require.number("discount", discount, 0.0, 1.0)
        self.lanes = require.integer("lanes", lanes, least=1)
        # For each lane: (slot, action, reward, discount) of steps that still wait for their return,
        # and the lane's current slot, None between episodes.
        self._pending: list[deque[tuple[int, int, float, float]]] = [
            deque() for _ in range(self.lanes)
        ]
        self._current: list[int | None] = [None] * self.lanes

    def begin(self, lane: int, slot: int) -> None:
        """Start an episode in the state that `slot` names."""
        self.require_between_episodes(lane)
        self._current[lane] = slot

    def require_between_episodes(self, lane: int) -> None:
        """Refuse a lane that is inside an episode."""
        if self._current[self._checked(lane)] is not None:
            raise ValueError(f"lane {lane} must end its episode before it begins another")

    def require_inside_episode(self, lane: int) -> int:
        """Refuse a lane that has not begun an episode; return its slot otherwise."""
        slot = self._current[self._checked(lane)]
        if slot is None:
            raise ValueError(f"lane {lane} must begin an episode before it takes a step")
        return slot

    def step(
        self,
        lane: int,
        action: int,
        reward: float,
        next_slot: int,
        *,
        terminated: bool = False,
        truncated: bool = False,
        life_lost: bool = False,
    ) -> list[Transition]:
        """Take one step of a lane; return the transitions now complete, oldest first.

        Args:
            lane: number of the environment.
            action: the executed action.
            reward: the reward to learn from, that is, clipped.
            next_slot: the state in which the step ends, even if it ends the episode.
            terminated: the game is over; later rewards are 0.
            truncated: the game was cut off; later rewards still have a value.
            life_lost: later rewards do not count, but the episode continues.
        """
        slot = self.require_inside_episode(lane)
        pending = self._pending[lane]
        pending.append((slot, action, reward, self._step_discount(terminated or life_lost)))
        is_last = terminated or truncated
        self._current[lane] = None if is_last else next_slot
        complete = []
        while len(pending) >= self.num_steps or (is_last and pending):
            complete.append(self._oldest(lane, next_slot))
            pending.popleft()
        return complete

    def _checked(self, lane: int) -> int:
        return require.integer("lane", lane, 0, self.lanes - 1)

    def _step_discount(self, is_worthless_afterwards: bool) -> float:
        return 0.0 if is_worthless_afterwards else self.discount

    def _oldest(self, lane: int, next_slot: int) -> Transition:
        pending = self._pending[lane]
        total, product = 0.0, 1.0
        for _, _, reward, discount in pending:
            total += product * reward
            product *= discount
        slot, action, _, _ = pending[0]
        return Transition(slot, action, total, product, next_slot)

    def state_dict(self) -> dict[str, Any]:
        """The waiting steps and the lanes' slots, as plain data."""
        return {
            "pending": [[list(step) for step in pending] for pending in self._pending],
            "current": list(self._current),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of an accumulator with the same number of lanes."""
        if len(state["current"]) != self.lanes or len(state["pending"]) != self.lanes:
            raise require.refuse("state", f"hold {self.lanes} lanes", len(state["current"]))
        self._pending = [
            deque((int(s), int(a), float(r), float(d)) for s, a, r, d in pending)
            for pending in state["pending"]
        ]
        self._current = list(state["current"])
