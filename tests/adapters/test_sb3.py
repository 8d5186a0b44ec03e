"""Stable-Baselines3 and sb3-contrib, with the real libraries."""

import json
import zipfile

import gymnasium
import numpy as np
import pytest

from support.libraries import library
from support.pages import run_page

library("stable_baselines3")
library("sb3_contrib")

import torch  # noqa: E402
from stable_baselines3 import DQN  # noqa: E402
from stable_baselines3.common.callbacks import (  # noqa: E402
    BaseCallback,
    CheckpointCallback,
    EvalCallback,
)
from stable_baselines3.common.evaluation import evaluate_policy  # noqa: E402
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # noqa: E402

from ezgreedy import (  # noqa: E402
    ActionRepeats,
    EpsilonGreedy,
    EZGreedy,
    FiniteOptions,
    Fixed,
    TemporallyExtended,
    Uniform,
    Zeta,
    exploratory_share,
    repeat,
)
from ezgreedy.adapters.sb3 import EZGreedyDQN  # noqa: E402
from ezgreedy.adapters.sb3_contrib import EZGreedyQRDQN  # noqa: E402
from ezgreedy.experiments.deep import sb3_classic_control  # noqa: E402
from ezgreedy.testing import AdaptedAgent, Trial, check_adapter  # noqa: E402

SMALL = {"policy_kwargs": {"net_arch": [8]}, "device": "cpu", "train_freq": 1}


def envs(trial):
    return DummyVecEnv([lambda i=i: trial.make_env(i) for i in range(trial.lanes)])


def model_for(trial, algorithm=EZGreedyDQN, **settings):
    """A model that does not learn, with the trial's schedule over the trial's steps."""
    first, last = trial.epsilon
    defaults = {
        "durations": trial.durations,
        "exploration_timesteps": trial.num_steps * trial.lanes,
        "exploration_fraction": 1.0,
        "exploration_initial_eps": first,
        "exploration_final_eps": last,
        "learning_starts": 0,
        "gradient_steps": 0,
        "seed": trial.seed,
    }
    return algorithm("MlpPolicy", envs(trial), **SMALL, **(defaults | settings))


class DQNAgent(AdaptedAgent):
    algorithm = EZGreedyDQN

    def __init__(self, trial, model=None, first_step=0):
        self.trial, self.first_step = trial, first_step
        self.model = model or model_for(trial, self.algorithm)

    def collect(self, num_steps):
        self.model.learn(num_steps * self.trial.lanes, reset_num_timesteps=False)

    def epsilon(self, lane):
        # SB3's own schedule, which goes by the share of all timesteps that have been taken.
        taken = self.first_step + min(self.trial.recording.num_steps)
        return self.model.exploration_schedule(1.0 - taken / self.trial.num_steps)

    def greedy(self, observation):
        return int(self.model.predict(observation, deterministic=True)[0])

    def stored(self):
        buffer = self.model.replay_buffer
        for position in range(buffer.pos):
            for lane in range(self.trial.lanes):
                yield buffer.observations[position, lane], buffer.actions[position, lane, 0]

    def evaluate(self, env):
        evaluate_policy(self.model, DummyVecEnv([lambda: env]), n_eval_episodes=3, warn=False)

    def exploration_state(self):
        return self.model.explore.state_dict()

    def save(self, directory):
        self.model.save(directory / "model.zip")

    @classmethod
    def restored(cls, directory, trial):
        model = cls.algorithm.load(directory / "model.zip", env=envs(trial))
        return cls(trial, model, first_step=int(model.explore.steps[0]))


class QRDQNAgent(DQNAgent):
    algorithm = EZGreedyQRDQN


@pytest.mark.parametrize("agent", [DQNAgent, QRDQNAgent])
@pytest.mark.parametrize("lanes", [1, 3])
def test_it_conforms(agent, lanes):
    report = check_adapter(agent, lanes)
    assert not report.skipped
    assert "600 executed actions of 600" in str(report) or lanes == 1


# ε.


class Watch(BaseCallback):
    """Writes down the ε in force and the one that SB3 reports, at every step."""

    def __init__(self):
        super().__init__()
        self.reported, self.in_force, self.exploring = [], [], []

    def _on_step(self):
        self.reported.append(self.model.exploration_rate)
        explore = getattr(self.model, "explore", None)
        if explore is not None:
            self.in_force.append(explore.epsilon)
            self.exploring.append(explore.exploring.copy())
        return True


def watched(model, timesteps, **settings):
    watch = Watch()
    model.learn(timesteps, callback=watch, **settings)
    return watch


SCHEDULE = {"exploration_fraction": 0.5, "learning_starts": 0, "gradient_steps": 0, **SMALL}


def test_epsilon_is_that_of_sb3_step_by_step():
    ours = watched(EZGreedyDQN("MlpPolicy", "CartPole-v1", seed=0, **SCHEDULE), 400)
    theirs = watched(DQN("MlpPolicy", "CartPole-v1", seed=0, **SCHEDULE), 400)
    # SB3 takes its first step before it has computed any ε; from the second on they agree.
    assert theirs.reported[0] == 0.0
    assert ours.in_force[0] == 1.0
    np.testing.assert_array_equal(ours.in_force[1:], theirs.reported[1:])
    np.testing.assert_array_equal(ours.reported[1:], theirs.reported[1:])
    assert theirs.reported[-1] == pytest.approx(0.05)


@pytest.mark.parametrize("resets", [True, False], ids=["default", "reset_num_timesteps=False"])
def test_epsilon_continues_after_loading_where_that_of_sb3_jumps_back(tmp_path, resets):
    last = {}
    for algorithm in (DQN, EZGreedyDQN):
        model = algorithm("MlpPolicy", "CartPole-v1", seed=0, **SCHEDULE)
        model.learn(400)
        model.save(tmp_path / "model")
        model = algorithm.load(tmp_path / "model", env=gymnasium.make("CartPole-v1"))
        watch = watched(model, 1000, reset_num_timesteps=resets)
        last[algorithm] = max(watch.in_force or watch.reported[1:])
    assert last[DQN] > 0.4
    assert last[EZGreedyDQN] == pytest.approx(0.05)


def test_an_interrupted_schedule_is_resumed_in_the_middle(tmp_path):
    planned = EZGreedyDQN("MlpPolicy", "CartPole-v1", seed=0, **SCHEDULE)
    whole = watched(planned, 400).in_force
    parts = EZGreedyDQN("MlpPolicy", "CartPole-v1", seed=0, exploration_timesteps=400, **SCHEDULE)
    first = watched(parts, 150).in_force
    parts.save(tmp_path / "model")
    loaded = EZGreedyDQN.load(tmp_path / "model", env=gymnasium.make("CartPole-v1"))
    second = watched(loaded, 250).in_force
    np.testing.assert_array_equal(first + second, whole)


def test_exploration_can_be_restarted():
    model = EZGreedyDQN("MlpPolicy", "CartPole-v1", seed=0, **SCHEDULE)
    assert watched(model, 400).in_force[-1] == pytest.approx(0.05)
    assert watched(model, 100).in_force[0] == pytest.approx(0.05)
    model.restart_exploration()
    assert watched(model, 100).in_force[0] == 1.0


def test_each_environment_has_its_own_coin_where_sb3_has_one_for_all():
    def quiet_share(model, num_steps=400):
        """The share of steps on which every environment acts greedily."""
        recording = trial.recording
        model.learn(num_steps * trial.lanes)
        greedy = [
            [
                step.action == int(model.predict(observation, deterministic=True)[0])
                for episode, steps in enumerate(episodes)
                for position, step in enumerate(steps)
                for observation in [np.array([lane, episode, position], dtype=np.float32)]
            ]
            for lane, episodes in enumerate(recording.lanes)
        ]
        return np.all([lane[:num_steps] for lane in greedy], axis=0).mean()

    half = {"exploration_initial_eps": 0.5, "exploration_final_eps": 0.5}
    settings = {"learning_starts": 0, "gradient_steps": 0, "seed": 0, **half, **SMALL}
    trial = Trial(lanes=8)
    plain = quiet_share(DQN("MlpPolicy", envs(trial), **settings))
    trial = Trial(lanes=8)
    ours = quiet_share(EZGreedyDQN("MlpPolicy", envs(trial), durations=Fixed(1), **settings))
    # One coin: ½ and more. Eight coins: (½ + ½·⅕)⁸ = 0.017, 0.06 being nine deviations above it.
    assert plain > 0.4
    assert ours < 0.06


# Warm-up, evaluation, callbacks.


def blocks(trial, length):
    """The actions of each episode's blocks."""
    for episodes in trial.recording.lanes:
        for episode in episodes:
            actions = [step.action for step in episode]
            for start in range(0, len(actions), length):
                yield actions[start : start + length]


def test_the_warm_up_explores_persistently():
    trial = Trial(lanes=2, durations=Fixed(5), epsilon=(0.0, 0.0))
    model = model_for(trial, learning_starts=400)
    watch = watched(model, 600)
    assert watch.in_force == [1.0] * 200 + [0.0] * 100
    assert all(all(step) for step in watch.exploring[:200])
    warm = Trial(lanes=2, durations=Fixed(5), epsilon=(0.0, 0.0))
    model_for(warm, learning_starts=400).learn(400)
    assert all(len(set(block)) == 1 for block in blocks(warm, 5))


def test_a_loaded_model_does_not_warm_up_again(tmp_path):
    model = EZGreedyDQN("MlpPolicy", "CartPole-v1", seed=0, **(SCHEDULE | {"learning_starts": 50}))
    model.learn(400)
    model.save(tmp_path / "model")
    loaded = EZGreedyDQN.load(tmp_path / "model", env=gymnasium.make("CartPole-v1"))
    assert max(watched(loaded, 100).in_force) == pytest.approx(0.05)


def tape(trial):
    return [[step.action for step in episode] for lane in trial.recording.lanes for episode in lane]


@pytest.mark.parametrize("deterministic", [True, False])
def test_evaluation_during_training_leaves_the_tape_as_it_was(deterministic):
    alone, watched_one = (Trial(lanes=3, epsilon=(0.5, 0.5)) for _ in range(2))
    model_for(alone).learn(600)
    evaluate = EvalCallback(
        envs(Trial(lanes=2)),
        eval_freq=7,
        n_eval_episodes=2,
        deterministic=deterministic,
        warn=False,
    )
    model_for(watched_one).learn(600, callback=evaluate)
    assert evaluate.n_calls == 200
    assert tape(watched_one) == tape(alone)


def test_a_checkpoint_of_a_callback_holds_the_exploration_mid_option(tmp_path):
    trial = Trial(lanes=2, durations=Uniform(9))
    model = model_for(trial)
    model.learn(60, callback=CheckpointCallback(13, tmp_path, save_replay_buffer=True))
    path = next(tmp_path.glob("rl_model_26_steps.zip"))
    with zipfile.ZipFile(path) as saved:
        data = json.loads(saved.read("data"))
    assert data["_exploration_clock"] == 26
    assert data["_exploration_state"]["steps"] == [13, 13]
    assert max(data["_exploration_state"]["remaining"]) > 0
    loaded = EZGreedyDQN.load(path)
    assert loaded.explore.state_dict() == data["_exploration_state"]


class Stop(BaseCallback):
    def __init__(self, timesteps):
        super().__init__()
        self._timesteps = timesteps

    def _on_step(self):
        return self.num_timesteps < self._timesteps


def test_options_end_when_a_callback_stops_the_training():
    trial = Trial(lanes=2, durations=Fixed(50))
    model = model_for(trial)
    model.learn(100, callback=Stop(12))
    assert (model.explore.remaining > 0).all()
    before = model.explore.counters.cut_by_episode_ends
    model.learn(20, reset_num_timesteps=False)
    assert model.explore.counters.cut_by_episode_ends >= before + 2


# Environments and observations.


class Named(gymnasium.ObservationWrapper):
    """The same observation as a dictionary."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Dict(
            {"place": env.observation_space, "lane": gymnasium.spaces.Discrete(9)}
        )

    def observation(self, observation):
        return {"place": observation, "lane": int(observation[0])}


def test_dictionaries_and_normalised_observations_work():
    for wrap, policy in ((Named, "MultiInputPolicy"), (lambda env: env, "MlpPolicy")):
        trial = Trial(lanes=3, durations=Fixed(5))
        vector = DummyVecEnv([lambda i=i: wrap(trial.make_env(i)) for i in range(3)])  # noqa: B023
        if wrap is not Named:
            vector = VecNormalize(vector)
        model = EZGreedyDQN(
            policy,
            vector,
            durations=Fixed(5),
            exploration_initial_eps=0.9,
            exploration_final_eps=0.9,
            learning_starts=30,
            seed=1,
            **(SMALL | {"train_freq": 10}),
        )
        model.learn(300)
        assert trial.recording.num_steps == [100] * 3
        assert model.explore.counters.explored > 200


def test_it_learns_while_it_explores():
    settings = SMALL | {"train_freq": 10, "learning_starts": 100}
    model = EZGreedyDQN("MlpPolicy", "CartPole-v1", seed=0, **settings)
    before = model.policy.state_dict()["q_net.q_net.0.weight"].clone()
    model.learn(300)
    assert not before.equal(model.policy.state_dict()["q_net.q_net.0.weight"])


def test_without_a_seed_every_model_explores_differently():
    first, second = (EZGreedyDQN("MlpPolicy", "CartPole-v1", **SMALL).explore for _ in range(2))
    assert first.streams.seed != second.streams.seed


# Bad input.


CONTINUOUS = r"be Discrete; got Box .*ezgreedy\.adapters\.sb3_noise\.PerEnvironmentNoise"


@pytest.mark.parametrize("algorithm", [EZGreedyDQN, EZGreedyQRDQN])
@pytest.mark.parametrize(
    ("space", "kind", "message"),
    [
        (gymnasium.spaces.Box(-1.0, 1.0, (2,)), TypeError, CONTINUOUS),
        (
            gymnasium.spaces.MultiDiscrete([3, 2]),
            TypeError,
            r"be Discrete; got MultiDiscrete .*: map numbers to actions in a wrapper\)",
        ),
        (
            gymnasium.spaces.Discrete(2, start=1),
            ValueError,
            r"start at 0: add 1 to the actions in a wrapper; got Discrete\(2, start=1\)",
        ),
    ],
    ids=["Box", "MultiDiscrete", "start"],
)
def test_other_action_spaces_are_refused_with_the_way(algorithm, space, kind, message):
    class Other(gymnasium.Wrapper):
        action_space = space

    env = Other(gymnasium.make("CartPole-v1").unwrapped)
    with pytest.raises(kind, match=rf"^env\.action_space must {message}"):
        algorithm("MlpPolicy", env, **SMALL)


def test_settings_out_of_range_are_refused():
    with pytest.raises(TypeError, match="durations must be a duration law"):
        EZGreedyDQN("MlpPolicy", "CartPole-v1", durations=5, **SMALL)
    with pytest.raises(ValueError, match="exploration_timesteps must be at least 1; got 0"):
        EZGreedyDQN("MlpPolicy", "CartPole-v1", exploration_timesteps=0, **SMALL)


def test_a_checkpoint_of_plain_dqn_is_adopted_with_a_warning(tmp_path):
    model = DQN("MlpPolicy", "CartPole-v1", seed=0, **SCHEDULE)
    model.learn(400, callback=Stop(150))
    model.save(tmp_path / "plain")
    with pytest.warns(UserWarning, match=r"saved without εz-greedy.* at step 150 of 400"):
        loaded = EZGreedyDQN.load(tmp_path / "plain", env=gymnasium.make("CartPole-v1"))
    for name, weights in model.policy.state_dict().items():
        assert weights.equal(loaded.policy.state_dict()[name])
    watch = watched(loaded, 250, reset_num_timesteps=False)
    assert watch.in_force[0] == pytest.approx(1.0 - 0.95 * 150 / 200)
    assert watch.in_force[-1] == pytest.approx(0.05)
    assert any(any(step) for step in watch.exploring)


def test_a_checkpoint_of_ours_loads_as_plain_dqn(tmp_path):
    model = EZGreedyDQN("MlpPolicy", "CartPole-v1", seed=0, **SCHEDULE)
    model.learn(50)
    model.save(tmp_path / "ours")
    plain = DQN.load(tmp_path / "ours", env=gymnasium.make("CartPole-v1"))
    plain.learn(50)


@pytest.mark.parametrize("lanes", [2, 5])
def test_another_number_of_environments_continues_with_a_warning(tmp_path, lanes):
    trial = Trial(lanes=3, durations=Fixed(1))
    model = model_for(trial)
    model.learn(90)
    model.save(tmp_path / "model")
    other = Trial(lanes=lanes, durations=Fixed(1))
    with pytest.warns(UserWarning, match=f"saved with 3 environments, continued with {lanes}"):
        loaded = EZGreedyDQN.load(tmp_path / "model", env=envs(other))
    assert loaded.explore.steps.tolist() == ([30, 30, 30, 0, 0])[:lanes]
    loaded.learn(10 * lanes, reset_num_timesteps=False)
    assert other.recording.num_steps == [10] * lanes
    counters = loaded.explore.counters  # of all that ever happened
    assert counters.steps == 90 + 10 * lanes
    assert 0 < counters.explored == counters.started <= counters.steps


# Another law, another policy.


@pytest.mark.parametrize("algorithm", [EZGreedyDQN, EZGreedyQRDQN])
def test_an_assigned_law_is_in_force_saved_and_loaded(tmp_path, algorithm):
    trial = Trial(lanes=2, durations=Fixed(5), epsilon=(0.5, 0.5))
    model = model_for(trial, algorithm)
    model.learn(40)
    running, before = model.explore.remaining, model.explore.counters
    assert running.any()
    model.durations = Fixed(3)
    assert model.durations == model.explore.durations == Fixed(3)
    assert not model.explore.remaining.any()
    counters = model.explore.counters
    assert (counters.steps, counters.explored) == (before.steps, before.explored)
    assert counters.cut_by_caller == np.count_nonzero(running)
    assert model.explore.steps.tolist() == [20, 20]  # the streams go on and are not repeated
    model.learn(40, reset_num_timesteps=False)
    after = model.explore.counters
    assert after.steps == 80
    assert after.durations[5] == before.durations[5]
    assert after.durations[3] > 0
    model.save(tmp_path / "model")
    loaded = algorithm.load(tmp_path / "model", env=envs(Trial(lanes=2)))
    assert loaded.durations == Fixed(3)
    assert loaded.explore.state_dict() == model.explore.state_dict()
    loaded.learn(40)


def test_a_law_may_be_assigned_by_a_callback():
    class Shorten(BaseCallback):
        def _on_step(self):
            if self.num_timesteps == 100:
                self.model.durations = Fixed(1)
            return True

    trial = Trial(lanes=2, durations=Fixed(5), epsilon=(0.5, 0.5))
    model = model_for(trial)
    model.learn(100)
    fives = model.explore.counters.durations[5]
    trial = Trial(lanes=2, durations=Fixed(5), epsilon=(0.5, 0.5))
    model = model_for(trial)
    model.learn(200, callback=Shorten())
    counters = model.explore.counters
    assert counters.durations[5] == fives
    assert counters.durations[1] > 0
    assert counters.steps == 200


def test_a_law_and_a_policy_may_be_set_after_loading(tmp_path):
    model = model_for(Trial(lanes=2, durations=Fixed(5)))
    model.learn(40)
    model.save(tmp_path / "model")
    env = envs(Trial(lanes=2))
    model = EZGreedyDQN.load(tmp_path / "model", env=env)
    clock, model.durations = model._exploration_clock, Fixed(3)
    model.explore = EZGreedy(model.action_space, 0.0, Fixed(3), lanes=2, seed=1)
    model.learn(40, reset_num_timesteps=False)
    assert list(model.explore.counters.durations) == [3]
    assert model._exploration_clock == clock + 40
    model.save(tmp_path / "model")
    again = EZGreedyDQN.load(tmp_path / "model", env=env)
    assert again.explore.durations == Fixed(3)
    assert again.explore.counters == model.explore.counters


def test_something_else_than_a_law_is_refused_and_changes_nothing():
    model = model_for(Trial(lanes=2, durations=Fixed(5)))
    before = model.explore
    with pytest.raises(TypeError, match="durations must be a duration law"):
        model.durations = 3
    assert model.explore is before
    assert model.durations == Fixed(5)


@pytest.mark.parametrize(
    "settings",
    [
        {"durations": Zeta(3.0)},
        {"durations": Fixed(3), "action_weights": [1.0, 1.0, 1.0, 0.1, 3.0]},
        {"durations": Fixed(3), "carries_over_episodes": True},
        {"durations": Fixed(3), "first_lane": 7},
        {"durations": Fixed(3), "epsilon": lambda step: 0.5},
        {"durations": Fixed(3), "epsilon": [0.1, 0.2]},
    ],
    ids=["law", "action_weights", "carries_over_episodes", "first_lane", "function", "ladder"],
)
@pytest.mark.parametrize("trains", [True, False])
def test_an_assigned_policy_is_in_force_saved_and_loaded(tmp_path, settings, trains):
    model = model_for(Trial(lanes=2, durations=Fixed(5)))
    assigned = EZGreedy(model.action_space, **({"epsilon": 0.0, "lanes": 2, "seed": 1} | settings))
    model.explore = assigned
    assert model.durations == settings["durations"]
    if trains:
        model.learn(40)
        assert model.explore is assigned
        assert assigned.counters.steps == 40
    model.save(tmp_path / "model")
    loaded = EZGreedyDQN.load(tmp_path / "model", env=envs(Trial(lanes=2)))
    assert loaded.durations == settings["durations"]
    assert loaded.explore.state_dict() == assigned.state_dict()
    loaded.learn(40)
    assert loaded.explore.counters.steps == assigned.counters.steps + 40


@pytest.mark.parametrize("epsilon", [[0.1, 0.2], lambda step: 0.5], ids=["ladder", "function"])
def test_epsilon_of_the_policy_is_overwritten_by_the_schedule_and_can_be_saved(tmp_path, epsilon):
    model = model_for(Trial(lanes=2, epsilon=(0.75, 0.75)))
    model.explore.epsilon = epsilon
    model.save(tmp_path / "model")
    assert EZGreedyDQN.load(tmp_path / "model").explore.epsilon == 0.75
    model.durations = Fixed(2)
    assert model.explore.epsilon == 0.75
    model.explore.epsilon = epsilon
    model.learn(2)
    assert model.explore.epsilon == 0.75


@pytest.mark.parametrize(
    ("policy", "kind", "message"),
    [
        (
            TemporallyExtended(FiniteOptions(5, [repeat(0, 3)]), 0.0, lanes=2),
            TypeError,
            r"explore must be an EZGreedy, .*load restores; got TemporallyExtended .*loop\.md\)",
        ),
        (
            TemporallyExtended(ActionRepeats(5), 0.0, lanes=2),
            TypeError,
            "explore must be an EZGreedy",
        ),
        (
            EpsilonGreedy(5, 0.0, lanes=2),
            TypeError,
            r"explore must be an EZGreedy.*model\.durations = Fixed\(1\)\)",
        ),
        (None, TypeError, "explore must be an EZGreedy"),
        (
            EZGreedy(5, 0.0, lanes=3),
            ValueError,
            r"explore\.lanes must be 2, .*pass lanes=model\.n_envs to EZGreedy; got 3",
        ),
        (
            EZGreedy(6, 0.0, lanes=2),
            ValueError,
            r"explore\.num_actions must be 5, .*pass model\.action_space to EZGreedy; got 6",
        ),
    ],
    ids=["options", "repeats", "eps", "None", "lanes", "actions"],
)
@pytest.mark.parametrize("algorithm", [EZGreedyDQN, EZGreedyQRDQN])
def test_a_policy_that_cannot_act_or_be_loaded_is_refused_at_once(algorithm, policy, kind, message):
    model = model_for(Trial(lanes=2, durations=Fixed(5)), algorithm)
    before = model.explore
    with pytest.raises(kind, match=message):
        model.explore = policy
    assert model.explore is before
    assert model.durations == Fixed(5)


def test_a_new_model_shows_the_first_epsilon_of_the_schedule():
    model = EZGreedyDQN("MlpPolicy", "CartPole-v1", exploration_initial_eps=0.75, **SMALL)
    assert model.explore.epsilon == 0.75


def test_environments_that_change_between_calls_are_refused_with_the_way():
    """SB3's own refusal, which points to `load`."""
    model = model_for(Trial(lanes=3))
    model.learn(30)
    with pytest.raises(AssertionError, match=r"\(2 != 3\).*load\(path, env\)"):
        model.set_env(envs(Trial(lanes=2)))


def test_another_law_than_the_saved_one_is_refused(tmp_path):
    model = EZGreedyDQN("MlpPolicy", "CartPole-v1", seed=0, **SMALL)
    model.save(tmp_path / "model")
    message = (
        r"durations must be the law that the model was saved with, Zeta\(mu=2\.0, cap=10000, .*\): "
        r"load .* without durations, then assign another to model\.durations; got Fixed\(n=3\)"
    )
    with pytest.raises(ValueError, match=message):
        EZGreedyDQN.load(tmp_path / "model", durations=Fixed(3))
    model = EZGreedyDQN.load(tmp_path / "model", durations=Zeta())
    model.durations = Fixed(3)
    assert model.explore.durations == Fixed(3)


def test_the_page_runs(tmp_path):
    printed = run_page("docs/adapters/sb3.md", tmp_path)
    assert "steps were exploratory" in printed
    assert "ε is still 0.05" in printed
    assert "mean return" in printed
    assert "each environment took 500 steps with noise" in printed
    assert "and 750 after loading" in printed


# The comparison on classic tasks (`ezgreedy reproduce sb3-classic-control`), much shortened.


def compared(policy, task="CartPole-v1", seed=0):
    changes = {"timesteps": {task: 600}, "num_evaluations": 2, "num_evaluation_episodes": 1}
    zoo = {**sb3_classic_control.ZOO[task], "learning_starts": 100, "train_freq": 64}
    settings = {**sb3_classic_control.SETTINGS, **changes, "zoo": {task: zoo}}
    return {**settings, "task": task, "policy": policy}, seed


def test_a_compared_run_depends_only_on_its_settings_and_seed():
    once, again = (sb3_classic_control.run_seed(*compared("ez")) for _ in range(2))
    assert once == again
    assert len(once["evaluations"]) == 2
    assert sb3_classic_control.run_seed(*compared("ez", seed=1)) != once


def test_compared_policies_share_everything_but_durations():
    env = Monitor(gymnasium.make("CartPole-v1"))
    models = {}
    for policy in ("eps", "ez", "ez, equal budget"):
        settings, seed = compared(policy)
        models[policy] = sb3_classic_control._model(settings, env, seed)
    eps, ez, matched = models.values()
    assert eps.durations == Fixed(1)
    assert ez.durations == matched.durations == Zeta()
    for progress in (1.0, 0.95, 0.5, 0.0):
        epsilon = eps.exploration_schedule(progress)
        assert ez.exploration_schedule(progress) == epsilon
        share = exploratory_share(matched.exploration_schedule(progress), Zeta())
        assert share == pytest.approx(epsilon)
    first = [model.policy.state_dict()["q_net.q_net.0.weight"] for model in models.values()]
    assert torch.equal(first[0], first[1])
    assert torch.equal(first[0], first[2])


def test_a_compared_run_notes_when_the_goal_was_first_reached():
    result = sb3_classic_control.run_seed(*compared("ez", "MountainCar-v0"))
    assert result["first_goal"] is None  # three episodes are too few
    assert 0.2 < result["exploratory_share"] < 0.8
