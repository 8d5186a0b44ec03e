"""A plain loop over Gymnasium's vector environments, as the conformance suite sees it."""

import json

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ezgreedy import EZGreedy, Linear
from ezgreedy.testing import AdaptedAgent


class LoopAgent(AdaptedAgent):
    """The core in a loop of one's own; the agent is a fixed function of the observation."""

    autoreset = AutoresetMode.NEXT_STEP

    def __init__(self, trial):
        first, last = trial.epsilon
        self.trial, self.replay = trial, []
        self.schedule = Linear(first, last, trial.num_steps)
        self.explore = self.policy(trial)
        self.envs = self.vector_env(trial)
        self.observations = None
        self.finished = np.zeros(trial.lanes, dtype=bool)
        self.steps_before = [0] * trial.lanes

    def policy(self, trial):
        return EZGreedy(trial.num_actions, self.schedule, trial.durations, trial.lanes, trial.seed)

    def vector_env(self, trial):
        return SyncVectorEnv(
            [lambda i=i: trial.make_env(i) for i in range(trial.lanes)],
            autoreset_mode=self.autoreset,
        )

    def collect(self, num_steps):
        if self.observations is None:
            self.observations, _ = self.envs.reset()
            self.end_options(np.ones(self.trial.lanes, dtype=bool))
        for _ in range(num_steps):
            self.step()

    def step(self):
        greedy = np.array([self.greedy(observation) for observation in self.observations])
        real = np.ones(self.trial.lanes, dtype=bool)
        if self.autoreset == AutoresetMode.NEXT_STEP:
            real = ~self.finished  # the others only reset: their action is ignored
        actions = self.act(greedy, real)
        reached, _, terminated, truncated, infos = self.envs.step(actions)
        self.finished = terminated | truncated
        self.end_options(self.finished)
        self.store(self.executed(actions, infos), greedy, real)
        if self.autoreset == AutoresetMode.DISABLED and self.finished.any():
            reached, _ = self.envs.reset(options={"reset_mask": self.finished})
        self.observations = reached.copy()

    def act(self, greedy, real):
        return self.explore(greedy, active=real)

    def executed(self, actions, infos):
        return actions

    def end_options(self, finished):
        self.explore.reset(finished)

    def store(self, actions, greedy, real):
        for lane in np.flatnonzero(real):
            self.replay.append((self.observations[lane].copy(), int(actions[lane])))

    def epsilon(self, lane):
        # Asked while the lane takes its step, which is not yet in the recording.
        return self.schedule(self.steps_before[lane] + self.trial.recording.num_steps[lane])

    def greedy(self, observation):
        lane, episode, step = (int(number) for number in observation)
        return (3 * lane + 5 * episode + 7 * step + step // 3) % 5

    def stored(self):
        return self.replay

    def evaluate(self, env):
        observation, _ = env.reset()
        finished = False
        while not finished:
            action = self.greedy(observation)
            observation, _, terminated, truncated, _ = env.step(action)
            finished = terminated or truncated

    def exploration_state(self):
        return self.explore.state_dict()

    def save(self, directory):
        (directory / "state.json").write_text(self.as_text(self.explore.state_dict()))

    @staticmethod
    def as_text(state):
        return json.dumps(state)

    @staticmethod
    def from_text(path):
        return json.loads(path.read_text())

    @classmethod
    def restored(cls, directory, trial):
        agent = cls(trial)
        agent.explore.load_state_dict(cls.from_text(directory / "state.json"))
        agent.steps_before = agent.explore.steps.tolist()
        return agent
