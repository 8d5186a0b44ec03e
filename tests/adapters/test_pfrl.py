"""PFRL, with the real library."""

import gymnasium
import numpy as np
import pytest

from support.libraries import library
from support.pages import run_page

library("pfrl")

import pfrl  # noqa: E402
import torch  # noqa: E402
from pfrl.envs import SerialVectorEnv  # noqa: E402
from pfrl.explorers import (  # noqa: E402
    AdditiveGaussian,
    ConstantEpsilonGreedy,
    LinearDecayEpsilonGreedy,
)

from ezgreedy import EZGreedy, Fixed, Zeta  # noqa: E402
from ezgreedy.adapters.pfrl import explore_with_options  # noqa: E402
from ezgreedy.testing import AdaptedAgent, RecordedEnv, Recording, Trial, check_adapter  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*gym.*")


class FourTuple(gymnasium.Wrapper):
    """The interface that PFRL speaks: a time limit is an information, not an end."""

    def reset(self):
        return self.env.reset()[0]

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, info | {"needs_reset": truncated}


def dqn(explorer, algorithm=pfrl.agents.DQN):
    network = torch.nn.Sequential(torch.nn.Linear(3, 5), pfrl.q_functions.DiscreteActionValueHead())
    return algorithm(
        network,
        torch.optim.Adam(network.parameters()),
        pfrl.replay_buffers.ReplayBuffer(10_000),
        gamma=0.9,
        explorer=explorer,
        replay_start_size=10_000,
        target_update_interval=10**6,
        phi=lambda seen: np.asarray(seen, dtype=np.float32),
    )


def sample():
    raise AssertionError("random actions come from the options")


class PFRLAgent(AdaptedAgent):
    def __init__(self, trial):
        self.trial, self.first_step, self.observations = trial, 0, None
        first, last = trial.epsilon
        decay = LinearDecayEpsilonGreedy(first, last, trial.num_steps * trial.lanes, sample)
        self.agent = dqn(decay)
        self.explorer = explore_with_options(
            self.agent, RecordedEnv.action_space, trial.durations, trial.seed
        )
        self.envs = SerialVectorEnv([FourTuple(trial.make_env(i)) for i in range(trial.lanes)])

    def collect(self, num_steps):
        if self.observations is None:
            self.observations = self.envs.reset()
            self.agent.t = self.first_step * self.trial.lanes
        for _ in range(num_steps):  # the loop of pfrl.experiments.train_agent_batch
            actions = self.agent.batch_act(self.observations)
            seen, rewards, dones, infos = self.envs.step(actions)
            resets = [info["needs_reset"] for info in infos]
            self.agent.batch_observe(seen, rewards, dones, resets)
            self.observations = self.envs.reset(~np.logical_or(dones, resets))

    def epsilon(self, lane):
        taken = self.first_step + min(self.trial.recording.num_steps)
        first, last = self.trial.epsilon
        steps = self.trial.num_steps * self.trial.lanes
        schedule = LinearDecayEpsilonGreedy(first, last, steps, sample)
        return schedule.compute_epsilon(taken * self.trial.lanes)

    def greedy(self, observation):
        with self.agent.eval_mode():
            return int(self.agent.act(observation))

    def stored(self):
        for transition in self.agent.replay_buffer.memory:
            yield transition[0]["state"], int(transition[0]["action"])

    def evaluate(self, env):
        pfrl.experiments.evaluator.eval_performance(
            env=FourTuple(env), agent=self.agent, n_steps=None, n_episodes=2
        )

    def exploration_state(self):
        return self.explorer.exploration.state_dict()

    def save(self, directory):
        self.agent.save(str(directory / "agent"))

    @classmethod
    def restored(cls, directory, trial):
        agent = cls(trial)
        agent.agent.load(str(directory / "agent"))
        agent.first_step = int(agent.explorer.policies[0].steps[0])
        return agent


@pytest.mark.parametrize("lanes", [1, 3])
def test_it_conforms(lanes):
    assert not check_adapter(PFRLAgent, lanes).skipped


def test_the_training_loops_of_the_library_drive_it(tmp_path):
    trial = Trial(lanes=2, durations=Fixed(4))
    agent = dqn(ConstantEpsilonGreedy(0.7, sample), pfrl.agents.DoubleDQN)
    explorer = explore_with_options(agent, 5, trial.durations, trial.seed)
    pfrl.experiments.train_agent_batch_with_evaluation(
        agent,
        SerialVectorEnv([FourTuple(trial.make_env(i)) for i in range(2)]),
        steps=400,
        outdir=str(tmp_path),
        eval_n_steps=None,
        eval_n_episodes=1,
        eval_interval=100,
        eval_env=SerialVectorEnv([FourTuple(RecordedEnv(Recording(1), 0))]),
    )
    assert trial.recording.num_steps == [200, 200]
    assert [int(policy.steps[0]) for policy in explorer.policies] == [200, 200]
    for lane, policy in enumerate(explorer.policies):
        played = [step.action for episode in trial.recording.lanes[lane] for step in episode]
        twin = EZGreedy(5, 0.7, Fixed(4), 1, trial.seed, first_lane=lane)
        expected = []
        for episode in trial.recording.lanes[lane]:
            for step in episode:
                expected.append(int(twin(np.array([step.action]))[0]))  # greedy ones are known
            twin.reset(np.array([True]))
        assert played == expected
        assert policy.counters.explored > 100
    assert explorer.epsilon == 0.7


def test_a_checkpoint_of_before_loads_with_a_warning(tmp_path):
    before = dqn(ConstantEpsilonGreedy(0.7, sample))
    before.save(str(tmp_path / "agent"))
    agent = dqn(ConstantEpsilonGreedy(0.7, sample))
    explorer = explore_with_options(agent, 5)
    with pytest.warns(UserWarning, match="saved without εz-greedy: its options begin now"):
        agent.load(str(tmp_path / "agent"))
    assert explorer.policies == []


def test_the_other_way_round_a_plain_agent_loads_ours(tmp_path):
    agent = dqn(ConstantEpsilonGreedy(0.7, sample))
    explore_with_options(agent, 5, Zeta(cap=9))
    agent.act(np.zeros(3, dtype=np.float32))
    agent.save(str(tmp_path / "agent"))
    dqn(ConstantEpsilonGreedy(0.7, sample)).load(str(tmp_path / "agent"))


@pytest.mark.parametrize(
    "space", [gymnasium.spaces.Box(-1.0, 1.0, (2,)), gymnasium.spaces.MultiDiscrete([2, 3])]
)
def test_other_action_spaces_are_refused_with_the_way(space):
    agent = dqn(ConstantEpsilonGreedy(0.7, sample))
    with pytest.raises(TypeError, match=r"be an int or a Discrete space; got .*in a wrapper\)"):
        explore_with_options(agent, space)
    assert isinstance(agent.explorer, ConstantEpsilonGreedy)


def test_the_old_spaces_of_gym_are_understood():
    from gym.spaces import Discrete

    explorer = explore_with_options(dqn(ConstantEpsilonGreedy(0.7, sample)), Discrete(5), seed=1)
    assert explorer.exploration.lane(0).num_actions == 5


def act(agent, num_environments, num_steps):
    """Steps of training in this many environments, none of which ends its episode."""
    seen, nothing = [np.zeros(3)] * num_environments, [False] * num_environments
    for _ in range(num_steps):
        agent.batch_act(seen)
        agent.batch_observe(seen, [0.0] * num_environments, nothing, nothing)


def test_environments_that_change_between_calls_are_warned_about():
    agent = dqn(ConstantEpsilonGreedy(1.0, sample))
    explorer = explore_with_options(agent, 5, Fixed(50), seed=1)
    act(agent, 3, num_steps=3)
    with pytest.warns(UserWarning, match="3 environments before, 2 now: .* both have continue"):
        act(agent, 2, num_steps=2)
    assert [int(policy.steps[0]) for policy in explorer.policies] == [5, 5, 3]
    assert [int(policy.remaining[0]) for policy in explorer.policies] == [45, 45, 47]


def test_another_number_of_environments_than_saved_is_warned_about(tmp_path):
    agent = dqn(ConstantEpsilonGreedy(1.0, sample))
    explore_with_options(agent, 5, Fixed(50), seed=1)
    act(agent, 3, num_steps=1)
    agent.save(str(tmp_path / "agent"))
    other = dqn(ConstantEpsilonGreedy(1.0, sample))
    explorer = explore_with_options(other, 5, Fixed(50), seed=1)
    other.load(str(tmp_path / "agent"))
    with pytest.warns(UserWarning, match="3 environments before, 4 now"):
        act(other, 4, num_steps=2)
    assert [int(policy.steps[0]) for policy in explorer.policies] == [3, 3, 3, 2]


def test_other_explorers_and_agents_are_refused():
    with pytest.raises(TypeError, match=r"agent.explorer must be ε-greedy; got AdditiveGaussian"):
        explore_with_options(dqn(AdditiveGaussian(0.1)), 5)
    with pytest.raises(TypeError, match="agent must be a DQN agent or one of its relatives"):
        explore_with_options(object(), 5)


def test_the_page_runs(tmp_path):
    assert "exploratory" in run_page("docs/adapters/pfrl.md", tmp_path)
