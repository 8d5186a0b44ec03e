"""When should an option start? A trigger in place of the constant ε.

    trigger = DiscrepancyTrigger(lanes=8, rate=0.01)
    ...
    deciding = starts | (explore.remaining == 0)
    explore.epsilon = trigger(rewards=rewards, values=values, starts=starts, deciding=deciding)
    actions = explore(greedy, starts=starts)

A trigger gives ε for one step, larger where the agent's predictions have just failed, at the target
rate on average. The policy tosses its own coins, so `probabilities`, counters and tapes stay what
they are. For a signal of your own use `Homeostat`, which this is made of.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.homeostasis import Homeostat
from ezgreedy.exploration.seen import Seen
from ezgreedy.exploration.value_promise import ValuePromise
from ezgreedy.requirements import BoolArray, FloatArray


class DiscrepancyTrigger:
    """ε by the value promise discrepancy, see `StopOnDiscrepancy`.

    Args:
        lanes: number of environments stepped together.
        rate: ε on average over the steps that decide, in (0, 1).
        discount: γ.
        steps: k; within an episode's first k steps ε is the rate.
        reading: "consistent" or "printed".
    """

    def __init__(
        self,
        lanes: int = 1,
        *,
        rate: float,
        discount: float = 0.99,
        steps: int = 5,
        reading: str = "consistent",
    ) -> None:
        self.lanes = require.integer("lanes", lanes, least=1)
        self.promise = ValuePromise(lanes, discount=discount, steps=steps, reading=reading)
        self.homeostat = Homeostat(lanes, rate=rate)

    def __call__(
        self,
        *,
        rewards: object,
        values: object,
        starts: BoolArray | None = None,
        deciding: BoolArray | None = None,
        active: BoolArray | None = None,
    ) -> FloatArray:
        """ε for this step, [lanes].

        Args:
            rewards: rewards of the step that led here, [lanes]; any number at an episode's start.
            values: the agent's estimates of the present observations' values, [lanes].
            starts: bool [lanes], true where the observation is the first of an episode.
            deciding: bool [lanes], the lanes outside an option, whose signal the rate is held on;
                all if None.
            active: bool [lanes], the lanes that take a step now. The others are left as they are.
        """
        seen = Seen.checked(self.lanes, None, rewards, values, starts, active)
        if deciding is None:
            deciding = np.ones(self.lanes, dtype=np.bool_)
        deciding = require.mask("deciding", deciding, (self.lanes,))
        for name in ("rewards", "values"):
            if getattr(seen, name) is None:
                raise require.refuse(name, "be given", None)
        self.promise.forget(seen.starts)
        discrepancy, known = self.promise(seen)
        return self.homeostat(discrepancy, deciding if known is None else known & deciding)

    def reset(self, finished: BoolArray) -> None:
        """Forgets the episodes of these lanes, which have ended."""
        self.promise.forget(require.mask("finished", finished, (self.lanes,)))

    def state_dict(self) -> dict[str, Any]:
        """What a later process needs to continue, as plain JSON-able data."""
        return {"promise": self.promise.state_dict(), "homeostat": self.homeostat.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of a trigger made with the same arguments."""
        if not isinstance(state, Mapping) or state.keys() != {"promise", "homeostat"}:
            raise require.refuse("state", "have the keys ['homeostat', 'promise']", state)
        self.promise.load_state_dict(state["promise"])
        self.homeostat.load_state_dict(state["homeostat"])
