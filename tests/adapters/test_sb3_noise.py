"""Our noises as the action noise of Stable-Baselines3, with the real library."""

import gymnasium
import numpy as np
import pytest

from support.libraries import library

library("stable_baselines3")

from stable_baselines3 import DDPG, SAC, TD3  # noqa: E402
from stable_baselines3.common.callbacks import CheckpointCallback  # noqa: E402
from stable_baselines3.common.evaluation import evaluate_policy  # noqa: E402
from stable_baselines3.common.noise import (  # noqa: E402
    OrnsteinUhlenbeckActionNoise,
    VectorizedActionNoise,
)
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

from ezgreedy import (  # noqa: E402
    ColouredNoise,
    Fixed,
    HeldNoise,
    OrnsteinUhlenbeck,
    WhiteNoise,
    Zeta,
)
from ezgreedy.adapters.sb3_noise import PerEnvironmentNoise  # noqa: E402
from ezgreedy.experiments.beyond import continuous_learning  # noqa: E402

KINDS = {
    "white": lambda lanes, seed=5: WhiteNoise(2, 0.2, lanes, seed),
    "held": lambda lanes, seed=5: HeldNoise(2, [0.1, 0.2], Zeta(cap=16), lanes, seed),
    "ou": lambda lanes, seed=5: OrnsteinUhlenbeck(2, 0.2, lanes, seed),
    "pink": lambda lanes, seed=5: ColouredNoise(2, 0.2, lanes, seed, length=12),
}
each_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
LENGTHS = (7, 1, 13, 4, 18, 3, 9)  # of successive episodes; lanes begin at different ones


class Recorded(gymnasium.Env):
    """Two actions in a box of its own; writes down what it is asked to do."""

    action_space = gymnasium.spaces.Box(
        np.array([-3.0, 0.0], dtype=np.float32), np.array([3.0, 4.0], dtype=np.float32)
    )
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, lane, tape):
        self.lane, self.tape, self.episode = lane, tape, lane

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = LENGTHS[self.episode % len(LENGTHS)]
        self.episode += 1
        self.tape.append((self.lane, None))
        return np.zeros(1, dtype=np.float32), {}

    def step(self, action):
        self.tape.append((self.lane, np.asarray(action, dtype=np.float64)))
        self.left -= 1
        return np.zeros(1, dtype=np.float32), 0.0, self.left == 0, False, {}


class Scene:
    """Recorded environments and the noise that they were given."""

    def __init__(self, lanes):
        self.tape = []
        self.envs = DummyVecEnv([lambda i=i: Recorded(i, self.tape) for i in range(lanes)])

    def executed(self, lane, offset):
        """The noise of every step of a lane, and whether the step was an episode's first."""
        values, starts, is_start = [], [], False
        for whose, action in self.tape:
            if whose != lane:
                continue
            if action is None:
                is_start = True
            else:
                # The box's middle is (0, 2) and half its width (3, 2): SB3 adds noise to actions
                # that are scaled to [−1, 1].
                values.append((action - [0.0, 2.0]) / [3.0, 2.0] - offset)
                starts.append(is_start)
                is_start = False
        return np.array(values), np.array(starts)


def model_for(scene, noise, algorithm=TD3, **settings):
    """A model that does not learn."""
    defaults = {"learning_starts": 0, "gradient_steps": 0, "train_freq": 4, "seed": 0}
    return algorithm(
        "MlpPolicy",
        scene.envs,
        action_noise=noise,
        policy_kwargs={"net_arch": [4]},
        device="cpu",
        **(defaults | settings),
    )


def offset_of(model):
    """The policy's own action, scaled; it is the same everywhere."""
    action, _ = model.predict(np.zeros((1, 1), dtype=np.float32), deterministic=True)
    return (action[0].astype(np.float64) - [0.0, 2.0]) / [3.0, 2.0]


def expected(make, lanes, starts):
    """What our noise gives for the same episodes; starts is [steps, lanes]."""
    noise = make(lanes)
    return np.array([noise(starts=row) for row in starts])


def compare(scene, lanes, offset, make):
    recorded = [scene.executed(lane, offset) for lane in range(lanes)]
    values = np.stack([part[0] for part in recorded], axis=1)
    starts = np.stack([part[1] for part in recorded], axis=1)
    wanted = expected(make, lanes, starts)
    assert np.abs(offset + wanted).max() < 1.0  # nothing was clipped
    np.testing.assert_allclose(values, wanted, atol=2e-6)  # SB3 computes in 32 bits
    return values, starts


@each_kind
@pytest.mark.parametrize("algorithm", [TD3, DDPG])
@pytest.mark.parametrize("lanes", [1, 3])
def test_sb3_executes_our_noise_step_for_step(make, algorithm, lanes):
    """Over many collections of four steps and many episodes of each environment."""
    scene = Scene(lanes)
    model = model_for(scene, PerEnvironmentNoise(make(lanes)), algorithm)
    model.learn(80 * lanes)
    values, starts = compare(scene, lanes, offset_of(model), make)
    assert values.shape == (80, lanes, 2)
    assert (starts.sum(axis=0) > 5).all()
    stored = model.replay_buffer.actions[:80] - offset_of(model)
    np.testing.assert_allclose(stored, values, atol=2e-6)


def test_the_end_of_an_episode_resets_its_own_lane_and_no_other():
    scene = Scene(3)
    model = model_for(scene, PerEnvironmentNoise(HeldNoise(2, 0.1, Fixed(1000), lanes=3)))
    model.learn(240)
    for lane in range(3):
        values, starts = scene.executed(lane, offset_of(model))
        changed = np.abs(np.diff(values, axis=0)).max(axis=1) > 1e-4
        np.testing.assert_array_equal(changed, starts[1:])


def test_correlation_outlives_collections():
    """Fixed(9) changes on every ninth step of an episode, whatever the collections are."""
    scene = Scene(2)
    noise = PerEnvironmentNoise(HeldNoise(2, 0.1, Fixed(9), lanes=2))
    model = model_for(scene, noise, train_freq=1)
    model.learn(200)
    for lane in range(2):
        values, starts = scene.executed(lane, offset_of(model))
        begins = np.flatnonzero(starts)
        for begin, end in zip(begins, [*begins[1:], len(values)], strict=True):
            episode = values[begin:end]
            for block in range(0, len(episode), 9):
                assert np.ptp(episode[block : block + 9], axis=0).max() < 1e-5


def test_environments_have_noise_of_their_own_in_sb3_s_form():
    noise = PerEnvironmentNoise(HeldNoise(2, 0.1, lanes=4))
    assert isinstance(noise, VectorizedActionNoise)  # else SB3 would wrap it
    values = noise()
    assert len(np.unique(values, axis=0)) == 4
    theirs = VectorizedActionNoise(OrnsteinUhlenbeckActionNoise(np.zeros(2), np.ones(2)), 4)
    assert theirs().shape == values.shape
    assert theirs().dtype == values.dtype == np.float32


@each_kind
def test_a_loaded_model_continues_the_same_noise(make, tmp_path):
    scene = Scene(2)
    model = model_for(scene, PerEnvironmentNoise(make(2)))
    model.learn(62)
    model.save(tmp_path / "model")
    resumed = Scene(2)
    loaded = TD3.load(tmp_path / "model", env=resumed.envs)
    saved, found = (one.action_noise.noise.state_dict() for one in (model, loaded))
    assert found == saved
    loaded.learn(60, reset_num_timesteps=False)
    offset = offset_of(model)
    # The same noise without SB3, whose environments begin new episodes after `load`.
    twin = make(2)
    first = [scene.executed(lane, offset)[1] for lane in range(2)]
    for starts in np.stack(first, axis=1):
        twin(starts=starts)
    second = [resumed.executed(lane, offset) for lane in range(2)]
    values, starts = (np.stack(part, axis=1) for part in zip(*second, strict=True))
    assert starts[0].all()
    wanted = np.array([twin(starts=row) for row in starts])
    np.testing.assert_allclose(values, wanted, atol=2e-6)


def test_a_checkpoint_in_mid_episode_holds_the_noise(tmp_path):
    model = model_for(Scene(2), PerEnvironmentNoise(HeldNoise(2, 0.1, Fixed(50), lanes=2)))
    model.learn(40, callback=CheckpointCallback(10, tmp_path))
    loaded = TD3.load(next(tmp_path.glob("rl_model_20_steps.zip")))
    assert loaded.action_noise.noise.steps.tolist() == [10, 10]


def test_sac_and_evaluations_work_and_evaluations_draw_nothing():
    scene = Scene(2)
    model = model_for(scene, PerEnvironmentNoise(WhiteNoise(2, 0.1, lanes=2)), SAC)
    model.learn(20)
    before = model.action_noise.noise.state_dict()
    evaluate_policy(model, DummyVecEnv([lambda: Recorded(0, [])]), n_eval_episodes=2, warn=False)
    assert model.action_noise.noise.state_dict() == before


def test_it_learns():
    scene = Scene(2)
    settings = {"gradient_steps": 1, "learning_starts": 20, "batch_size": 4}
    model = model_for(scene, PerEnvironmentNoise(WhiteNoise(2, 0.1, lanes=2)), **settings)
    before = model.policy.state_dict()["critic.qf0.0.weight"].clone()
    model.learn(80)
    assert not before.equal(model.policy.state_dict()["critic.qf0.0.weight"])


@pytest.mark.parametrize("carries_on", [False, True])
@pytest.mark.parametrize("lanes", [1, 2])
def test_learn_begins_the_correlation_anew_unless_it_is_told_to_carry_on(lanes, carries_on):
    """SB3 resets noise at the start of `learn`, also where episodes continue."""
    scene = Scene(lanes)
    noise = PerEnvironmentNoise(HeldNoise(2, 0.1, Fixed(1000), lanes=lanes))
    model = model_for(scene, noise)
    model.learn(4 * lanes)
    if carries_on:
        noise.carry_on()
    model.learn(8 * lanes, reset_num_timesteps=False)
    values, starts = scene.executed(0, offset_of(model))
    assert np.flatnonzero(starts).tolist() == [0, 7, 8]  # no episode ends after four steps
    changes = np.flatnonzero(np.abs(np.diff(values, axis=0)).max(axis=1) > 1e-4) + 1
    assert changes.tolist() == ([7, 8] if carries_on else [4, 7, 8])


# Bad input.


@pytest.mark.parametrize(("lanes", "size"), [(1, 2), (2, 2), (3, 1), (3, 3)])
def test_noise_that_does_not_fit_is_refused_before_a_step_is_taken(lanes, size):
    scene = Scene(3)
    model = model_for(scene, PerEnvironmentNoise(WhiteNoise(size, lanes=lanes)))
    with pytest.raises(ValueError, match=rf"\(3, 2\); got lanes={lanes}, size={size}"):
        model.learn(10)
    assert all(action is None for _, action in scene.tape)


@pytest.mark.parametrize("noise", [None, 0.3, np.zeros(2), WhiteNoise])
def test_what_is_not_a_noise_of_ours_is_refused(noise):
    with pytest.raises(TypeError, match="noise must be a noise of ezgreedy"):
        PerEnvironmentNoise(noise)


@pytest.mark.parametrize("indices", [[3], [-1], [0.0], [True]])
def test_wrong_environments_are_refused_and_nothing_is_reset(indices):
    noise = PerEnvironmentNoise(HeldNoise(2, 0.1, Fixed(50), lanes=3))
    noise()
    before = noise.noise.state_dict()
    with pytest.raises((TypeError, ValueError), match="index must be"):
        noise.reset([0, *indices])
    assert noise.noise.state_dict() == before


def test_discrete_actions_are_refused_by_sb3_itself():
    with pytest.raises(AssertionError, match=r"only supports .*Box.* but Discrete"):
        TD3("MlpPolicy", "CartPole-v1", action_noise=PerEnvironmentNoise(WhiteNoise(1)))


def test_it_says_what_it_is():
    noise = PerEnvironmentNoise(HeldNoise(2, 0.1, lanes=3))
    assert repr(noise) == "PerEnvironmentNoise(HeldNoise, lanes=3, scale=[0.1, 0.1])"


# The comparison of noises (`ezgreedy reproduce beyond-continuous-learning`), much shortened.


def compared(noise, seed=0):
    td3 = {**continuous_learning.SETTINGS["td3"], "learning_starts": 50, "train_freq": 50}
    changes = {"timesteps": 200, "step_limit": 60, "num_evaluations": 2, "td3": td3}
    settings = {**continuous_learning.SETTINGS, **changes, "num_evaluation_episodes": 1}
    return {**settings, "noise": noise}, seed


def test_a_compared_run_depends_only_on_its_settings_and_seed():
    once, again = (continuous_learning.run_seed(*compared("held")) for _ in range(2))
    assert once == again
    assert len(once["evaluations"]) == 2
    others = [compared("held", 1), compared("pink"), compared("white")]
    returns = [continuous_learning.run_seed(*other)["training_return"] for other in others]
    assert len({once["training_return"], *returns}) == 4
