"""The environment that explores, and the plain loop of the example: both need Gymnasium only."""

import importlib.util
import re
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ezgreedy import EZGreedy, Fixed, Linear
from ezgreedy.adapters.gymnasium import EZGreedyActions
from ezgreedy.testing import RecordedEnv, Recording, Trial, check_adapter
from support.libraries import library
from support.loop_agent import LoopAgent
from support.pages import ROOT, run_page


class WrapperAgent(LoopAgent):
    """Sends greedy actions to environments that explore, and stores what they say they did."""

    autoreset = AutoresetMode.NEXT_STEP

    def policy(self, trial):
        self.wrapped = [
            EZGreedyActions(trial.make_env(lane), 0.0, trial.durations, trial.seed, lane)
            for lane in range(trial.lanes)
        ]

    def vector_env(self, trial):
        return SyncVectorEnv([lambda env=env: env for env in self.wrapped])

    def act(self, greedy, real):
        for lane, env in enumerate(self.wrapped):
            env.epsilon = self.epsilon(lane)
        return greedy

    def executed(self, actions, infos):
        return infos.get("executed_action", actions)

    def end_options(self, finished):
        pass

    def exploration_state(self):
        return [env.explore.state_dict() for env in self.wrapped]

    def save(self, directory):
        self.saved = self.exploration_state()
        (directory / "state.json").write_text(self.as_text(self.saved))

    @classmethod
    def restored(cls, directory, trial):
        agent = cls(trial)
        for env, state in zip(agent.wrapped, cls.from_text(directory / "state.json"), strict=True):
            env.explore.load_state_dict(state)
        agent.steps_before = [int(env.explore.steps[0]) for env in agent.wrapped]
        return agent


@pytest.mark.parametrize("lanes", [1, 3])
def test_it_conforms(lanes):
    assert not check_adapter(WrapperAgent, lanes).skipped


def test_every_step_says_what_was_executed():
    recording = Recording(1)
    env = EZGreedyActions(RecordedEnv(recording, 0), 0.5, Fixed(2), seed=3)
    twin = EZGreedy(5, 0.5, Fixed(2), seed=3)
    env.reset()
    for _ in range(7):
        *_, info = env.step(np.int64(4))
        assert info["executed_action"] == recording.lanes[0][0][-1].action
        assert info["executed_action"] == int(twin(np.array([4]))[0])
        assert info["exploring"] == bool(twin.exploring[0])


def test_epsilon_can_be_set_from_outside():
    envs = SyncVectorEnv([lambda i=i: EZGreedyActions(Trial().make_env(i), 0.1) for i in (0, 1)])
    envs.set_attr("epsilon", 0.7)
    assert envs.get_attr("epsilon") == (0.7, 0.7)
    scheduled = EZGreedyActions(Trial().make_env(0), Linear(1.0, 0.0, 10))
    assert scheduled.epsilon == Linear(1.0, 0.0, 10)


@pytest.mark.parametrize(
    "space", [gymnasium.spaces.Box(-1.0, 1.0, (2,)), gymnasium.spaces.MultiDiscrete([2, 3])]
)
def test_other_action_spaces_are_refused_with_the_way(space):
    class Other(RecordedEnv):
        action_space = space

    with pytest.raises(TypeError, match=r"be an int or a Discrete space; got .*in a wrapper\)"):
        EZGreedyActions(Other(Recording(1), 0), 0.1)


def test_the_page_runs_and_states_the_measured_errors(tmp_path):
    printed = run_page("docs/adapters/gymnasium.md", tmp_path)
    sent, executed = re.findall(r"= (\d\.\d{3})", printed)
    text = (ROOT / "docs/adapters/gymnasium.md").read_text()
    assert f"the largest error is {sent}, with" in text
    assert f"the largest error is {executed}." in text
    assert float(sent) > 0.1
    assert float(executed) < 0.001


# The plain loop.


@pytest.fixture(scope="module")
def dqn_loop():
    library("torch")
    spec = importlib.util.spec_from_file_location("dqn_loop", ROOT / "examples" / "dqn_loop.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("mode", AutoresetMode)
def test_the_loop_of_the_example_is_right_in_every_mode(dqn_loop, mode):
    trial = Trial(lanes=3, durations=Fixed(5))
    envs = SyncVectorEnv([lambda i=i: trial.make_env(i) for i in range(3)], autoreset_mode=mode)
    explore = EZGreedy(5, 1.0, Fixed(5), lanes=3, seed=trial.seed)
    replay, _ = dqn_loop.train(envs, explore, 150)
    recording = trial.recording
    for episodes in recording.lanes:
        for episode in episodes:
            actions = [step.action for step in episode]
            for start in range(0, len(actions), 5):
                assert len(set(actions[start : start + 5])) == 1
    assert len(replay) == sum(recording.num_steps)
    for seen, action, _, following, _ in replay:
        lane, episode, step = (int(number) for number in seen)
        assert recording.action_at((lane, episode, step)) == action
        assert following.tolist() == [lane, episode, step + 1]  # never of the next episode


def test_the_diff_of_the_page_is_the_difference_to_epsilon_greedy(dqn_loop, tmp_path):
    """Its added lines are those of the example; with its removed lines the example runs as well."""
    page = (ROOT / "docs/adapters/loop.md").read_text()
    blocks = re.search(r"```diff\n(.*?)```", page, flags=re.DOTALL)[1].split("\n\n")
    source = (ROOT / "examples" / "dqn_loop.py").read_text()
    _, acting, ending = blocks
    for block in (acting, ending):
        lines = block.strip("\n").splitlines()
        added = "\n".join(line[1:] for line in lines if line.startswith("+")) + "\n"
        removed = "".join(line[1:] + "\n" for line in lines if line.startswith("-"))
        assert source.count(added) == 1
        source = source.replace(added, removed)
    plain = tmp_path / "plain.py"
    plain.write_text(source)
    spec = importlib.util.spec_from_file_location("plain", plain)
    module = importlib.util.module_from_spec(spec)
    sys.modules["plain"] = module
    spec.loader.exec_module(module)
    envs = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    replay, length = module.train(envs, np.random.default_rng(0), 100)
    assert len(replay) > 100
    assert length > 5
