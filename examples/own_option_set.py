"""Write your own option set, check that it covers everything, and use it.

In a row of rooms, a "sweep" walks one way until it sees the last room. A single sweep leaves most
state-action pairs untried, and the checker says so. Both sweeps together with single steps cover
everything. Options that follow a pattern need not be written out: `Strides` is a class of its own.
"""

import numpy as np

from ezgreedy import (
    FiniteMDP,
    FiniteOptions,
    History,
    Option,
    OptionSet,
    TemporallyExtended,
    full_coverage,
    primitive,
    repeat,
)
from ezgreedy.exploration.options import Branch

ROOMS, LEFT, RIGHT = 8, 0, 1


def corridor() -> FiniteMDP:
    """Returns a row of rooms, entered in the middle; walking into either end stays there."""
    transitions = np.zeros((ROOMS, 2, ROOMS))
    for room in range(ROOMS):
        transitions[room, LEFT, max(room - 1, 0)] = 1.0
        transitions[room, RIGHT, min(room + 1, ROOMS - 1)] = 1.0
    return FiniteMDP(transitions, start=np.eye(ROOMS)[ROOMS // 2])


def sweep(action: int, last_room: int) -> Option:
    """Returns an option that walks one way and ends when it observes the last room."""

    def policy(history: History) -> int:
        return action

    def termination(history: History) -> float:
        return float(history.observation == last_room)

    return Option(policy, termination, memory="observation", name=f"sweep to room {last_room}")


class Strides(OptionSet):
    """Any action, repeated for one of several lengths; all pairs are equally likely."""

    def __init__(self, num_actions: int, lengths: tuple[int, ...]) -> None:
        self.num_actions, self.lengths = num_actions, lengths

    def draw(self, choice: float, duration: float, legal: object = None) -> Option:
        """Returns the option that two uniforms of [0, 1) select."""
        action = int(choice * self.num_actions)
        return repeat(action, self.lengths[int(duration * len(self.lengths))])

    def branches(self) -> list[Branch]:
        """Returns every option that can be drawn, with its probability."""
        pairs = [(action, n) for action in range(self.num_actions) for n in self.lengths]
        return [Branch(1.0 / len(pairs), repeat(action, n)) for action, n in pairs]


def main() -> None:
    """Checks three option sets and plays the last one."""
    mdp = corridor()
    sweeps = [sweep(LEFT, 0), sweep(RIGHT, ROOMS - 1)]
    for name, options in {
        "a single sweep": FiniteOptions(2, sweeps[:1]),
        "both sweeps and single steps": FiniteOptions(
            2, [*sweeps, primitive(LEFT), primitive(RIGHT)], weights=[2, 2, 1, 1]
        ),
        "strides of 1, 2 or 4 rooms": Strides(2, (1, 2, 4)),
    }.items():
        print(f"{name}: {full_coverage(mdp, options).explain(most=2)}")
    explore = TemporallyExtended(options, epsilon=1.0, lanes=3, seed=0)
    rooms = np.full(3, ROOMS // 2)
    seen = [rooms]
    for _ in range(20):
        actions = explore(np.zeros(3, dtype=np.int64), observations=rooms)
        rooms = np.clip(rooms + np.where(actions == RIGHT, 1, -1), 0, ROOMS - 1)
        seen.append(rooms)
    for lane, path in enumerate(np.array(seen).T):
        print(f"lane {lane}: {' '.join(map(str, path))}")


if __name__ == "__main__":
    main()
