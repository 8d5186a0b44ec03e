"""Add εz-greedy to an ordinary DQN-style loop: the two lines marked with arrows.

The task is a corridor with a small reward nearby on the left and a large one far away on the right.
The agent is a table with a replay, so this runs in seconds; with a network the two lines are the
same.
"""

import numpy as np

from ezgreedy import EpsilonGreedy, EZGreedy

CELLS, START, LANES, STEPS = 20, 4, 8, 4000


class Corridors:
    """Eight corridors stepped together; a corridor restarts as soon as its episode ends."""

    def __init__(self) -> None:
        self.cells = np.full(LANES, START)
        self.clock = np.zeros(LANES, dtype=np.int64)

    def step(self, actions):
        """Moves left (0) or right (1); returns cells reached, rewards, terminated, finished."""
        self.cells = np.clip(self.cells + np.where(actions == 1, 1, -1), 0, CELLS - 1)
        self.clock += 1
        reached = self.cells.copy()
        rewards = 1.0 * (reached == CELLS - 1) + 0.1 * (reached == 0)
        terminated, truncated = rewards > 0, self.clock >= 60
        finished = terminated | truncated
        self.cells[finished], self.clock[finished] = START, 0
        return reached, rewards, terminated, finished


def train(explore) -> float:
    """Runs the loop and returns the reward per thousand steps."""
    rng = np.random.default_rng(0)
    envs, values, replay, total = Corridors(), np.zeros((CELLS, 2)), [], 0.0
    for _ in range(STEPS):
        cells = envs.cells.copy()
        greedy = (values[cells] + 1e-9 * rng.random((LANES, 2))).argmax(axis=1)
        actions = explore(greedy)  # <-- line 1: replaces your ε-greedy
        reached, rewards, terminated, finished = envs.step(actions)
        explore.reset(finished)  # <-- line 2: an option ends with its episode
        # The replay stores the action that was executed, not the greedy one.
        replay.extend(zip(cells, actions, rewards, reached, terminated, strict=True))
        for index in rng.integers(0, len(replay), 4):
            cell, action, reward, successor, last = replay[index]
            target = reward + (0.0 if last else 0.99 * values[successor].max())
            values[cell, action] += 0.5 * (target - values[cell, action])
        total += rewards.sum()
    return 1000.0 * total / (STEPS * LANES)


def main() -> None:
    """Compares ε-greedy and εz-greedy at the same ε."""
    for explore in (
        EpsilonGreedy(num_actions=2, epsilon=0.1, lanes=LANES, seed=0),
        EZGreedy(num_actions=2, epsilon=0.1, lanes=LANES, seed=0),
    ):
        reward, counters = train(explore), explore.counters
        print(
            f"{type(explore).__name__:14s} reward per 1000 steps {reward:5.1f}, "
            f"exploratory steps {counters.explored / counters.steps:.0%}"
        )


if __name__ == "__main__":
    main()
