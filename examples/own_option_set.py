"""Write your own option set, check that it covers everything, and use it.

In a row of rooms, a "sweep" walks one way until it sees the last room. A single sweep leaves most
state-action pairs untried, and the checker says so. Both sweeps together with single steps cover
everything.
"""

import numpy as np

from ezgreedy import (
    FiniteMDP,
    FiniteOptions,
    History,
    Option,
    TemporallyExtended,
    full_coverage,
    primitive,
)

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


def main() -> None:
    """Checks two option sets and plays the one that covers everything."""
    mdp = corridor()
    sweeps = [sweep(LEFT, 0), sweep(RIGHT, ROOMS - 1)]
    for name, options in {
        "a single sweep": FiniteOptions(2, sweeps[:1]),
        "both sweeps and single steps": FiniteOptions(
            2, [*sweeps, primitive(LEFT), primitive(RIGHT)], weights=[2, 2, 1, 1]
        ),
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
