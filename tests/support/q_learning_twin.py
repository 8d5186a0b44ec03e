"""Q-learning as one would first write it down: environment, agent and policy as objects."""

from dataclasses import dataclass, field

import numpy as np

from ezgreedy.agents.q_learning import QLearning
from ezgreedy.exploration.ez_greedy import EZGreedy


@dataclass
class TwinRun:
    """What the plain loop saw; `tables` holds the values after every step."""

    actions: list = field(default_factory=list)
    returns: list = field(default_factory=list)
    discounted_returns: list = field(default_factory=list)
    lengths: list = field(default_factory=list)
    tables: list = field(default_factory=list)


def train(env, explore: EZGreedy, agent: QLearning, num_steps: int) -> TwinRun:
    """Takes so many steps with a Gymnasium environment, which says when an episode is over."""
    run = TwinRun()
    state, _ = env.reset()
    total, discounted, length = 0.0, 0.0, 0
    weight = 1.0
    for _ in range(num_steps):
        states = np.array([state])
        actions = explore(agent.greedy(states, explore.steps))
        state, reward, terminated, truncated, _ = env.step(int(actions[0]))
        agent.update(states, actions, [reward], np.array([state]), np.array([terminated]))
        explore.reset(np.array([terminated or truncated]))
        total += reward
        discounted += weight * reward
        weight *= agent.discount
        length += 1
        run.actions.append(int(actions[0]))
        run.tables.append(agent.values.copy())
        if terminated or truncated:
            run.returns.append(total)
            run.discounted_returns.append(discounted)
            run.lengths.append(length)
            state, _ = env.reset()
            total, discounted, weight, length = 0.0, 0.0, 1.0, 0
    return run
