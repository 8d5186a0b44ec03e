"""RLlib's new API stack, with the real library and a private Ray."""

import itertools
import sys
import warnings

import gymnasium
import numpy as np
import pytest

from support.libraries import library
from support.pages import run_page

library("ray.rllib", "ray.rllib.algorithms.dqn", "ray.rllib.connectors.connector_v2", "tree")

import ray  # noqa: E402
import torch  # noqa: E402
from ray.rllib.algorithms.dqn import DQNConfig  # noqa: E402
from ray.rllib.algorithms.dqn.torch.default_dqn_torch_rl_module import (  # noqa: E402
    DefaultDQNTorchRLModule,
)
from ray.rllib.algorithms.ppo import PPOConfig  # noqa: E402
from ray.rllib.connectors.connector_v2 import ConnectorV2  # noqa: E402
from ray.rllib.core.columns import Columns  # noqa: E402
from ray.rllib.core.rl_module.rl_module import RLModuleSpec  # noqa: E402
from ray.tune.registry import register_env  # noqa: E402

from ezgreedy import EZGreedy, Fixed, Uniform  # noqa: E402
from ezgreedy.adapters.rllib import EZGreedyConnector, ez_greedy  # noqa: E402
from ezgreedy.fleet.session import LocalSession  # noqa: E402
from ezgreedy.testing import AdaptedAgent, RecordedEnv, Recording, Trial, check_adapter  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

# RLlib copies what it is given, so environments find their trial here, by number.
TRIALS, EVALUATIONS = {}, {}


class Evaluated(gymnasium.Env):
    """Stands for the environment that is evaluated in, which is known only later."""

    observation_space, action_space = RecordedEnv.observation_space, RecordedEnv.action_space

    def __init__(self, number):
        self._number = number

    def reset(self, **settings):
        return EVALUATIONS[self._number].reset(**settings)

    def step(self, action):
        return EVALUATIONS[self._number].step(action)


def make_env(context):
    number = context["trial"]
    if context.get("evaluates"):
        return Evaluated(number)
    trial, lanes = TRIALS.get(number, (Trial(lanes=64), itertools.count()))
    return trial.make_env(next(lanes) % trial.lanes)


@pytest.fixture(scope="module", autouse=True)
def ray_session():
    with LocalSession(num_processes=4, store_megabytes=100):
        register_env("recorded", make_env)
        yield


def config_for(trial):
    number = len(TRIALS)
    TRIALS[number] = (trial, itertools.count())
    first, last = trial.epsilon
    return (
        DQNConfig()
        .environment("recorded", env_config={"trial": number}, disable_env_checking=True)
        .env_runners(
            num_env_runners=0, num_envs_per_env_runner=trial.lanes, rollout_fragment_length=1
        )
        .rl_module(model_config={"fcnet_hiddens": [8], "head_fcnet_hiddens": []})
        .training(
            epsilon=[[0, first], [trial.num_steps * trial.lanes, last]],
            num_steps_sampled_before_learning_starts=10**9,
        )
        .evaluation(
            evaluation_num_env_runners=0,
            evaluation_interval=10**6,  # without it, RLlib has no runner for evaluations
            evaluation_duration=2,
            evaluation_config=DQNConfig.overrides(
                explore=False,
                num_envs_per_env_runner=1,
                env_config={"trial": number, "evaluates": True},
            ),
        )
    )


def connector_of(runner):
    return runner._module_to_env[EZGreedyConnector][0]


class RLlibAgent(AdaptedAgent):
    def __init__(self, trial):
        self.trial, self.episodes = trial, []
        config = ez_greedy(config_for(trial), trial.durations, trial.seed)
        self.number = len(TRIALS) - 1
        self.algorithm = config.build_algo()
        self.runner, self.num_sampled = self.algorithm.env_runner, 0

    def collect(self, num_steps):
        for _ in range(num_steps // 10):
            sampled = self.runner.sample(num_timesteps=10 * self.trial.lanes, explore=True)
            self.episodes += sampled
            self.num_sampled += sum(map(len, sampled))
            # As after every iteration of the algorithm: the clock of ε moves on.
            self.algorithm.env_runner_group.sync_env_runner_states(
                config=self.algorithm.config, env_steps_sampled=self.num_sampled
            )

    def epsilon(self, lane):
        return float(self.runner.module.epsilon_schedule.get_current_value())

    def greedy(self, observation):
        seen = {Columns.OBS: torch.as_tensor(np.asarray(observation))[None]}
        return int(self.runner.module.forward_inference(seen)[Columns.ACTIONS])

    def stored(self):
        for episode in self.episodes:
            seen = episode.get_observations()[: len(episode)]
            yield from zip(seen, episode.get_actions(), strict=True)

    def evaluate(self, env):
        EVALUATIONS[self.number] = env
        self.algorithm.evaluate()

    def exploration_state(self):
        state = connector_of(self.runner).get_state()["runners"]["0"]
        return {key: value for key, value in state.items() if key != "epsilon"}

    def save(self, directory):
        self.algorithm.save_to_path(directory / "algorithm")

    @classmethod
    def restored(cls, directory, trial):
        agent = cls(trial)
        agent.algorithm.restore_from_path(directory / "algorithm")
        agent.num_sampled = agent.runner.num_env_steps_sampled_lifetime
        return agent


@pytest.mark.parametrize("lanes", [1, 3])
def test_it_conforms(lanes):
    assert not check_adapter(RLlibAgent, lanes).skipped


# The whole algorithm.


def test_training_and_evaluation_drive_it():
    trial = Trial(lanes=2, durations=Fixed(4), epsilon=(0.6, 0.6))
    config = config_for(trial).training(
        num_steps_sampled_before_learning_starts=20, train_batch_size=8
    )
    config.evaluation(evaluation_interval=1)
    algorithm = ez_greedy(config, trial.durations, trial.seed).build_algo()
    EVALUATIONS[len(TRIALS) - 1] = RecordedEnv(Recording(1), 0)
    for _ in range(2):
        algorithm.train()
    connector = connector_of(algorithm.env_runner)
    counters = connector.explore.counters
    assert counters.steps == sum(trial.recording.num_steps) > 0
    for number, episodes in enumerate(trial.recording.lanes):
        twin = EZGreedy(5, 0.6, Fixed(4), 1, trial.seed, first_lane=number)
        for episode in episodes:
            for step in episode:  # greedy actions are known; those of options must agree
                twin.epsilon = step.epsilon if step.epsilon == step.epsilon else 0.6
                assert int(twin(np.array([step.action]))[0]) == step.action
            twin.reset(np.array([True]))
    algorithm.stop()


def sampled_actions(algorithm, num_timesteps=40):
    """The actions of each remote runner."""
    return [
        [action for episode in sample for action in np.ravel(episode.get_actions()).tolist()]
        for sample in algorithm.env_runner_group.foreach_env_runner(
            lambda runner: runner.sample(num_timesteps=num_timesteps, explore=True),
            local_env_runner=False,
        )
    ]


def runner_states(algorithm):
    return algorithm.env_runner_group.foreach_env_runner(
        lambda runner: runner._module_to_env[EZGreedyConnector][0].get_state(),
        local_env_runner=False,
    )


def test_remote_runners_explore_differently_and_keep_their_states(tmp_path):
    # Other processes cannot import this module.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

    def build():
        config = DQNConfig().environment("CartPole-v1").training(epsilon=1.0)
        config.env_runners(num_env_runners=2, num_envs_per_env_runner=1)
        config.sync_filters_on_rollout_workers_timeout_s = 600.0  # for machines under load
        return ez_greedy(config, Uniform(9), seed=5).build_algo()

    algorithm = build()
    first, second = sampled_actions(algorithm)
    assert first != second
    before = [state["runners"][str(state["runner"])] for state in runner_states(algorithm)]
    assert [state["first_lane"] for state in before] == [2**20, 2**21]
    algorithm.env_runner_group.sync_env_runner_states(config=algorithm.config)
    after = [state["runners"][str(state["runner"])] for state in runner_states(algorithm)]
    assert after == before  # what RLlib merges and sends back does not disturb them
    algorithm.save_to_path(tmp_path / "algorithm")
    algorithm.stop()

    restored = build()
    restored.restore_from_path(tmp_path / "algorithm")
    sampled_actions(restored, 1)
    continued = [state["runners"][str(state["runner"])] for state in runner_states(restored)]
    for saved, now in zip(before, continued, strict=True):
        assert now["steps"] == [saved["steps"][0] + 1]
    restored.stop()


class Swapped(ConnectorV2):
    """A user's own connector, which must be kept."""

    calls = 0

    def __call__(self, *, batch, **_):
        Swapped.calls += 1
        return batch


class OwnModule(DefaultDQNTorchRLModule):
    """A user's own module, which must be kept."""


def test_own_modules_connectors_and_callbacks_are_kept():
    trial, created = Trial(lanes=1), []
    config = config_for(trial)
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=OwnModule))
    config.env_runners(module_to_env_connector=lambda env, spaces: Swapped())
    config.callbacks(on_environment_created=lambda **_: created.append(1))
    algorithm = ez_greedy(config, Fixed(2), seed=1).build_algo()
    algorithm.env_runner.sample(num_timesteps=5, explore=True)
    assert isinstance(algorithm.env_runner.module, OwnModule)
    assert Swapped.calls >= 5
    assert created
    assert connector_of(algorithm.env_runner).explore.counters.steps == 5
    algorithm.stop()


# Checkpoints from before, and bad input.


def test_a_checkpoint_of_plain_dqn_can_be_restored(tmp_path):
    trial = Trial(lanes=2)
    plain = config_for(trial).build_algo()
    plain.env_runner.sample(num_timesteps=20, explore=True)
    plain.env_runner_group.sync_env_runner_states(config=plain.config, env_steps_sampled=20)
    plain.save_to_path(tmp_path / "plain")
    weights = plain.env_runner.module.get_state()
    plain.stop()
    other = Trial(lanes=2)
    algorithm = ez_greedy(config_for(other), Fixed(3), seed=1).build_algo()
    algorithm.restore_from_path(tmp_path / "plain")
    for name, value in algorithm.env_runner.module.get_state().items():
        np.testing.assert_array_equal(value, weights[name])
    with pytest.warns(UserWarning, match="20 steps were sampled without εz-greedy: options begin"):
        algorithm.env_runner.sample(num_timesteps=20, explore=True)
    assert connector_of(algorithm.env_runner).explore.counters.steps == 20
    algorithm.stop()


def test_a_fresh_algorithm_begins_in_silence():
    algorithm = ez_greedy(config_for(Trial(lanes=2)), Fixed(3), seed=1).build_algo()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*sampled without")
        algorithm.env_runner.sample(num_timesteps=20, explore=True)
    algorithm.stop()


def test_environments_that_change_between_calls_are_refused_with_the_way():
    algorithm = ez_greedy(config_for(Trial(lanes=3)), Fixed(3), seed=1).build_algo()
    algorithm.env_runner.sample(num_timesteps=6, explore=True)
    connector, module = connector_of(algorithm.env_runner), algorithm.env_runner.module
    message = "the runner must have 3 environments as before: build the algorithm anew; got 2"
    with pytest.raises(ValueError, match=message):
        connector(rl_module=module, batch={}, episodes=[None, None], explore=True)
    algorithm.stop()


@pytest.mark.parametrize(
    "space", [gymnasium.spaces.Box(-1.0, 1.0, (2,)), gymnasium.spaces.MultiDiscrete([3, 2])]
)
def test_other_action_spaces_are_refused_with_the_way(space):
    class Other(RecordedEnv):
        action_space = space

    register_env("other", lambda context: Other(Recording(1), 0))
    config = config_for(Trial(lanes=1)).environment("other")
    with pytest.raises(TypeError, match=r"be an int or a Discrete space; got .*in a wrapper\)"):
        ez_greedy(config).build_algo()


def test_other_runners_than_saved_begin_with_a_warning():
    connector = EZGreedyConnector(Fixed(2), 0, runner=3)
    state = {"runner": None, "runners": {"0": {}, "1": {}}, "is_merged": False}
    with pytest.warns(UserWarning, match=r"saved by runners \['0', '1'\]: exploration of runner 3"):
        connector.set_state(state)


def test_other_algorithms_are_refused():
    with pytest.raises(ValueError, match="module derived from DefaultDQNTorchRLModule"):
        ez_greedy(PPOConfig().environment("CartPole-v1"))


def test_a_callback_set_afterwards_is_refused_with_the_way():
    config = ez_greedy(config_for(Trial(lanes=1)))
    config.callbacks(on_environment_created=lambda **_: None)
    with pytest.raises(ValueError, match=r"call ez_greedy\(config\) after all settings"):
        config.build_algo()


def test_the_page_runs(tmp_path):
    assert "exploratory" in run_page("docs/adapters/rllib.md", tmp_path)
