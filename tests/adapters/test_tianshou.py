"""Tianshou 2, with the real library."""

import gymnasium
import numpy as np
import pytest

from support.libraries import library
from support.pages import run_page

library("tianshou", "tianshou.algorithm", "tianshou.data", "tianshou.env", "tianshou.trainer")

import torch  # noqa: E402
from tianshou.algorithm import C51, DQN  # noqa: E402
from tianshou.algorithm.modelfree.c51 import C51Policy  # noqa: E402
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy  # noqa: E402
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy  # noqa: E402
from tianshou.algorithm.optim import AdamOptimizerFactory  # noqa: E402
from tianshou.data import Collector, VectorReplayBuffer  # noqa: E402
from tianshou.env import DummyVectorEnv  # noqa: E402
from tianshou.trainer import OffPolicyTrainerParams  # noqa: E402
from tianshou.utils.net.common import Net  # noqa: E402
from tianshou.utils.torch_utils import policy_within_training_step  # noqa: E402

from ezgreedy import EZGreedy, Fixed, Zeta  # noqa: E402
from ezgreedy.adapters.tianshou import EZGreedyCollector  # noqa: E402
from ezgreedy.testing import AdaptedAgent, RecordedEnv, Trial, check_adapter  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SPACES = {
    "action_space": RecordedEnv.action_space,
    "observation_space": RecordedEnv.observation_space,
}


def dqn(**settings):
    network = Net(state_shape=3, action_shape=5, hidden_sizes=[8])
    policy = DiscreteQLearningPolicy(model=network, **SPACES, **settings)
    return DQN(policy=policy, optim=AdamOptimizerFactory())


def collector_for(trial, algorithm, **settings):
    envs = DummyVectorEnv([lambda i=i: trial.make_env(i) for i in range(trial.lanes)])
    buffer = VectorReplayBuffer(10_000, trial.lanes)
    arguments = {"durations": trial.durations, "seed": trial.seed} | settings
    return EZGreedyCollector(algorithm, envs, buffer, **arguments)


class TianshouAgent(AdaptedAgent):
    def __init__(self, trial):
        self.trial, self.first_step, self.is_new = trial, 0, True
        self.algorithm = dqn()
        self.policy = self.algorithm.policy
        self.collector = collector_for(trial, self.algorithm)

    def collect(self, num_steps):
        if self.is_new:
            self.collector.reset()
        self.is_new = False
        first, last = self.trial.epsilon
        for _ in range(num_steps):
            taken = self.first_step + min(self.trial.recording.num_steps)
            share = min(taken / self.trial.num_steps, 1.0)
            self.policy.set_eps_training(first + (last - first) * share)
            with policy_within_training_step(self.policy):
                self.collect_some()

    def collect_some(self):
        self.collector.collect(n_step=self.trial.lanes)

    def epsilon(self, lane):
        return self.policy.eps_training

    def greedy(self, observation):
        with torch.no_grad():
            values, _ = self.policy.model(np.asarray(observation)[None])
        return int(values.argmax())

    def stored(self):
        buffer = self.collector.buffer
        for index in buffer.sample_indices(0):
            yield buffer.obs[index], int(buffer.act[index])

    def evaluate(self, env):
        testing = Collector(self.algorithm, DummyVectorEnv([lambda: env]))
        testing.reset()
        testing.collect(n_episode=2)

    def exploration_state(self):
        return self.collector.explore.state_dict()

    def save(self, directory):
        torch.save(self.algorithm.state_dict(), directory / "algorithm.pt")

    @classmethod
    def restored(cls, directory, trial):
        agent = cls(trial)
        state = torch.load(directory / "algorithm.pt", weights_only=True)
        agent.algorithm.load_state_dict(state)
        agent.first_step = int(agent.collector.explore.steps.min())
        return agent


class EpisodesAgent(TianshouAgent):
    """Collects episodes: environments that have done their share are left alone meanwhile."""

    def collect(self, num_steps):
        enough = min(self.trial.recording.num_steps) + num_steps
        while min(self.trial.recording.num_steps) < enough:
            super().collect(1)

    def collect_some(self):
        self.collector.collect(n_episode=self.trial.lanes + 1)


@pytest.mark.parametrize("lanes", [1, 3])
def test_it_conforms(lanes):
    assert not check_adapter(TianshouAgent, lanes).skipped


def test_it_conforms_when_environments_are_stepped_in_part():
    reason = "ε changes between calls of collect, and one call takes many steps"
    report = check_adapter(EpisodesAgent, without={"epsilon": reason, "saving": reason})
    assert "storage" in report.passed


def test_options_survive_from_one_collection_to_the_next():
    trial = Trial(lanes=2, durations=Fixed(50))
    algorithm = dqn(eps_training=1.0)
    collector = collector_for(trial, algorithm)
    collector.reset()
    with policy_within_training_step(algorithm.policy):
        for _ in range(6):
            collector.collect(n_step=2)
    assert trial.recording.num_steps == [6, 6]
    for lane in trial.recording.lanes:
        assert len({step.action for step in lane[0]}) == 1


# ε, warm-up and training.


def test_epsilon_is_that_of_the_step_as_in_tianshou():
    trial = Trial(lanes=2)
    algorithm = dqn(eps_training=1.0, eps_inference=0.25)
    collector = collector_for(trial, algorithm)
    collector.reset()
    collector.collect(n_step=2)
    assert collector.explore.epsilon == 0.25
    with policy_within_training_step(algorithm.policy):
        collector.collect(n_step=2)
    assert collector.explore.epsilon == 1.0


def test_the_warm_up_explores_persistently():
    trial = Trial(lanes=3, durations=Fixed(5))
    collector = collector_for(trial, dqn())
    collector.reset()
    collector.collect(n_step=300, random=True)
    for lane in trial.recording.lanes:
        for episode in lane:
            actions = [step.action for step in episode]
            for start in range(0, len(actions), 5):
                assert len(set(actions[start : start + 5])) == 1
    assert collector.explore.counters.explored == 300
    assert [int(a) for a in collector.buffer.act[:5]] == [
        step.action for episode in trial.recording.lanes[0] for step in episode
    ][:5]


def test_without_exploration_noise_it_is_greedy():
    trial = Trial(lanes=2)
    algorithm = dqn(eps_training=1.0)
    collector = collector_for(trial, algorithm, exploration_noise=False)
    collector.reset()
    with policy_within_training_step(algorithm.policy):
        collector.collect(n_step=20)
    assert collector.explore.counters.steps == 0


def test_the_trainer_drives_it():
    trial, test_trial = Trial(lanes=2, durations=Fixed(3)), Trial(lanes=1)
    algorithm = dqn(eps_training=0.3)
    collector = collector_for(trial, algorithm)
    testing = Collector(algorithm, DummyVectorEnv([lambda: test_trial.make_env(0)]))
    epsilons = []

    def training_fn(epoch, env_step):
        algorithm.policy.set_eps_training(max(0.1, 1.0 - env_step / 400))
        epsilons.append((env_step, collector.explore.epsilon))

    algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            test_collector=testing,
            max_epochs=2,
            epoch_num_steps=200,
            collection_step_num_env_steps=10,
            test_step_num_episodes=2,
            batch_size=16,
            training_fn=training_fn,
        )
    )
    assert collector.explore.counters.steps == sum(trial.recording.num_steps) == 400
    assert collector.explore.epsilon == pytest.approx(0.1, abs=0.04)
    tested = [step.action for episode in test_trial.recording.lanes[0] for step in episode]
    assert tested


def test_other_q_policies_work():
    network = Net(state_shape=3, action_shape=5, hidden_sizes=[8], softmax=True, num_atoms=11)
    algorithm = C51(
        policy=C51Policy(model=network, num_atoms=11, eps_training=1.0, **SPACES),
        optim=AdamOptimizerFactory(),
    )
    trial = Trial(lanes=2, durations=Zeta(cap=9))
    collector = collector_for(trial, algorithm)
    collector.reset()
    with policy_within_training_step(algorithm.policy):
        collector.collect(n_step=100)
    expected = EZGreedy(5, 1.0, Zeta(cap=9), lanes=2, seed=trial.seed)
    first = [lane[0] for lane in trial.recording.lanes]
    for step in range(min(map(len, first))):
        assert [episode[step].action for episode in first] == expected(np.zeros(2, int)).tolist()


class Masked(gymnasium.Wrapper):
    """Actions 1 and 3 only."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Dict(
            {"obs": env.observation_space, "mask": gymnasium.spaces.MultiBinary(5)}
        )

    def _seen(self, observation):
        return {"obs": observation, "mask": np.array([False, True, False, True, False])}

    def reset(self, **settings):
        observation, info = self.env.reset(**settings)
        return self._seen(observation), info

    def step(self, action):
        observation, *rest = self.env.step(action)
        return self._seen(observation), *rest


def test_masks_are_respected():
    trial = Trial(lanes=2)
    algorithm = dqn(eps_training=0.5)
    envs = DummyVectorEnv([lambda i=i: Masked(trial.make_env(i)) for i in range(2)])
    collector = EZGreedyCollector(algorithm, envs, VectorReplayBuffer(1000, 2), seed=1)
    collector.reset()
    with policy_within_training_step(algorithm.policy):
        collector.collect(n_step=200)
    played = {s.action for lane in trial.recording.lanes for episode in lane for s in episode}
    assert played == {1, 3}


# Checkpoints and bad input.


def test_a_checkpoint_of_before_loads_with_a_warning():
    before = dqn().state_dict()
    trial, algorithm = Trial(lanes=2), dqn()
    collector = collector_for(trial, algorithm)
    with pytest.warns(UserWarning, match="saved without εz-greedy: its options begin now"):
        algorithm.load_state_dict(before)
    assert collector.explore.steps.tolist() == [0, 0]


def test_another_number_of_environments_continues_with_a_warning():
    saved = dqn(eps_training=1.0)
    collector = collector_for(Trial(lanes=3), saved)
    collector.reset()
    collector.collect(n_step=30)
    state, algorithm = saved.state_dict(), dqn()
    other = collector_for(Trial(lanes=2), algorithm)
    with pytest.warns(UserWarning, match="saved with 3 environments, continued with 2"):
        algorithm.load_state_dict(state)
    assert other.explore.steps.tolist() == [10, 10]
    assert other.explore.counters.steps == 30


@pytest.mark.parametrize(
    "space", [gymnasium.spaces.Box(-1.0, 1.0, (2,)), gymnasium.spaces.MultiDiscrete([2, 3])]
)
def test_other_action_spaces_are_refused_with_the_way(space):
    network = Net(state_shape=3, action_shape=5, hidden_sizes=[8])
    policy = DiscreteQLearningPolicy(model=network, action_space=space)
    envs = DummyVectorEnv([lambda: Trial().make_env(0)])
    with pytest.raises(TypeError, match=r"be an int or a Discrete space; got .*in a wrapper\)"):
        EZGreedyCollector(policy, envs)


def test_policies_without_epsilon_are_refused():
    actor = Net(state_shape=3, action_shape=5, hidden_sizes=[8], softmax=True)
    policy = DiscreteActorPolicy(actor=actor, action_space=RecordedEnv.action_space)
    envs = DummyVectorEnv([lambda: Trial().make_env(0)])
    with pytest.raises(TypeError, match="policy must have eps_training, as the policies of DQN"):
        EZGreedyCollector(policy, envs)


def test_the_page_runs(tmp_path):
    assert "exploratory" in run_page("docs/adapters/tianshou.md", tmp_path)
