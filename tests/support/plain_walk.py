"""Exploration of a finite MDP in plain Python: the obvious twin of the compiled walks."""

import numpy as np

from ezgreedy import EZGreedy, Fixed, Zeta
from ezgreedy.analysis.finite_walks import world_seed
from ezgreedy.analysis.process import ExplorationProcess
from ezgreedy.exploration.streams import Purpose, Streams
from support.small_mdps import corridor, deep_sea, random_mdp, room


class PlainWalk:
    """One run in plain Python: the core's policy, and successors drawn from the MDP's arrays."""

    def __init__(self, process, seed, lane, max_episode_steps=None):
        self.process, self.mdp = process, process.mdp
        self.explore = EZGreedy(
            self.mdp.num_actions,
            process.epsilon,
            process.durations,
            seed=seed,
            first_lane=lane,
            carries_over_episodes=process.carries_over_episodes,
        )
        self.world = Streams(world_seed(seed), 1, lane)
        self.limit = max_episode_steps
        self.step_count = self.episode_steps = 0
        self.state = self._beginning()

    def _drawn(self, probabilities, purpose, step):
        u = self.world.uniforms(self.world.words(np.array([step])), purpose)[0]
        possible = np.flatnonzero(probabilities)
        cumulative = np.cumsum(probabilities[possible])
        return possible[min(np.searchsorted(cumulative, u, side="right"), len(possible) - 1)]

    def _beginning(self):
        return self._drawn(self.mdp.start, Purpose.ACTION, self.step_count)

    def step(self):
        """Plays one step; returns the pair played and the states then visited."""
        state = self.state
        action = int(self.explore(self.process.greedy_actions[[state]])[0])
        arrived = self._drawn(self.mdp.transitions[state, action], Purpose.COIN, self.step_count)
        self.step_count += 1
        self.episode_steps += 1
        self.state = arrived
        if not self.mdp.ends[arrived] and self.episode_steps != self.limit:
            return state, action, [arrived]
        self.explore.reset(np.array([True]))
        self.episode_steps = 0
        self.state = self._beginning()
        return state, action, [arrived, self.state]


def processes():
    """Processes that differ in all that a walk can do."""
    greedy = np.array([0, 1, 2, 1, 0, 2])
    random = random_mdp(4, num_states=6, num_actions=3, ends=2)
    return {
        "a corridor, ε-greedy": ExplorationProcess(corridor(6), durations=Fixed(1)),
        "a room": ExplorationProcess(room(4, (0, 1))),
        "deep sea": ExplorationProcess(deep_sea(5)),
        "deep sea, carried over": ExplorationProcess(deep_sea(5), carries_over_episodes=True),
        "chance": ExplorationProcess(random, 0.4, Zeta(1.5, 30), greedy),
        "chance, carried over": ExplorationProcess(random, 0.4, Zeta(1.5, 30), greedy, True),
    }
