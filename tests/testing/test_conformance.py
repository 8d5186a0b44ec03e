"""The conformance suite passes what is right, and finds every known way to get it wrong."""

import json

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from ezgreedy import EZGreedy, PlusOne
from ezgreedy.testing import NonConforming, RecordedEnv, Recording, Trial, check_adapter
from ezgreedy.testing.conformance import _check_plays
from ezgreedy.testing.recording import place_of
from support.loop_agent import LoopAgent


class SameStep(LoopAgent):
    autoreset = AutoresetMode.SAME_STEP


class Disabled(LoopAgent):
    autoreset = AutoresetMode.DISABLED


@pytest.mark.parametrize("agent", [LoopAgent, SameStep, Disabled])
@pytest.mark.parametrize("lanes", [1, 4])
def test_the_core_conforms_in_every_autoreset_mode(agent, lanes):
    report = check_adapter(agent, lanes)
    assert list(report.passed) == ["runs", "lanes", "storage", "epsilon", "evaluation", "saving"]
    assert str(report).startswith(f"{agent.__name__} conforms:\n  runs: ")


# One fault each. The first five were made by people who tried this without an adapter.


class OutlivesEpisodes(SameStep):
    def end_options(self, finished):
        pass


class CountsDummySteps(LoopAgent):
    def act(self, greedy, real):
        return self.explore(greedy)


class OneCoin(SameStep):
    def policy(self, trial):
        return EZGreedy(trial.num_actions, self.schedule, trial.durations, 1, trial.seed)

    def act(self, greedy, real):
        return np.repeat(self.explore(greedy[:1]), len(greedy))

    def end_options(self, finished):
        self.explore.reset(finished[:1])


class StoresGreedy(SameStep):
    def store(self, actions, greedy, real):
        super().store(greedy, greedy, real)


class EvaluatesWithTheTrainingPolicy(SameStep):
    def evaluate(self, env):
        observation, _ = env.reset()
        greedy = np.full(self.trial.lanes, self.greedy(observation))
        env.step(self.explore(greedy)[0])


class StoresDummySteps(LoopAgent):
    def store(self, actions, greedy, real):
        super().store(actions, greedy, np.ones_like(real))


class StoresNothing(SameStep):
    def store(self, actions, greedy, real):
        pass


class PlaysOnceMore(SameStep):
    def policy(self, trial):
        law = PlusOne(trial.durations)
        return EZGreedy(trial.num_actions, self.schedule, law, trial.lanes, trial.seed)


class MixesUpLanes(SameStep):
    def act(self, greedy, real):
        return self.explore(greedy[::-1].copy())[::-1]

    def end_options(self, finished):
        self.explore.reset(finished[::-1].copy())


class RepeatsTheGreedyAction(SameStep):
    def act(self, greedy, real):
        actions = super().act(greedy, real)
        return np.where(self.explore.exploring, greedy, actions)


class ExploresInEvaluation(SameStep):
    def evaluate(self, env):
        _, _ = env.reset()
        for action in (0, 1, 2):
            env.step(action)


class NeverEvaluates(SameStep):
    def evaluate(self, env):
        pass


class IgnoresTheSchedule(SameStep):
    def policy(self, trial):
        start = trial.epsilon[0]
        return EZGreedy(trial.num_actions, start, trial.durations, trial.lanes, trial.seed)


class KeepsEpsilon(IgnoresTheSchedule):
    def epsilon(self, lane):
        return self.trial.epsilon[0]


class ForgetsItsState(SameStep):
    @classmethod
    def restored(cls, directory, trial):
        return cls(trial)


class ForgetsTheClock(SameStep):
    """Options come back, but ε begins again."""

    @classmethod
    def restored(cls, directory, trial):
        agent = super().restored(directory, trial)
        agent.steps_before = [0] * trial.lanes
        return agent


class RestartsTheTape(SameStep):
    """The state looks right, but the steps are counted from zero."""

    def exploration_state(self):
        return None

    @classmethod
    def restored(cls, directory, trial):
        agent = super().restored(directory, trial)
        state = json.loads((directory / "state.json").read_text())
        agent.explore.load_state_dict(state | {"steps": [0] * trial.lanes})
        return agent


class StopsEarly(SameStep):
    def collect(self, num_steps):
        super().collect(num_steps // 3)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (OutlivesEpisodes, "an option of 5 plays one action, cut only by the end"),
        (CountsDummySteps, "an option of 5 plays one action, cut only by the end"),
        (OneCoin, "an option of 5 plays one action, cut only by the end"),
        (StoresGreedy, r"stored \d, executed \d"),
        (EvaluatesWithTheTrainingPolicy, "evaluation changed the state of the exploration"),
        (StoresDummySteps, r"stored \d, but no action was executed"),
        (StoresNothing, "0 of 600 executed actions were stored"),
        (PlaysOnceMore, "an option of 5 plays one action"),
        (MixesUpLanes, r"expected \d \(play 1 of an option of"),
        (RepeatsTheGreedyAction, "an option of 5 plays one action"),
        (ExploresInEvaluation, r"evaluation, lane 0, episode 0, step .: executed ., greedy is"),
        (NeverEvaluates, "evaluate.. took no step"),
        (IgnoresTheSchedule, r"expected . \(greedy\)"),
        (KeepsEpsilon, "epsilon must go from 1 to 0 .* in 1 values"),
        (ForgetsItsState, "restored state of the exploration is not the saved one"),
        (ForgetsTheClock, r"executed ., expected"),
        (RestartsTheTape, r"executed ., expected"),
        (StopsEarly, "asked for 200 steps of each lane, got 66"),
    ],
)
def test_every_fault_is_found(agent, message):
    with pytest.raises(NonConforming, match=message):
        check_adapter(agent)


def test_an_epsilon_that_jumps_back_is_found():
    class Jumps(SameStep):
        """Explores and reports consistently, but begins again after loading."""

        @classmethod
        def restored(cls, directory, trial):
            agent = super().restored(directory, trial)
            taken = agent.explore.steps[0]
            agent.schedule = lambda step: 1.0 - (step - taken) / 200
            state = agent.explore.state_dict() | {"epsilon": "function"}
            agent.explore = agent.policy(trial)
            agent.explore.load_state_dict(state)
            return agent

        def exploration_state(self):
            return super().exploration_state() | {"epsilon": None}

    with pytest.raises(NonConforming, match=r"epsilon jumped from 0\.50\d\d back to 1\.0000"):
        check_adapter(Jumps)


# What can be left out.


def test_checks_left_out_are_named_with_their_reasons():
    report = check_adapter(StoresGreedy, without={"storage": "it has no replay"})
    assert "storage" not in report.passed
    assert str(report).endswith("storage: not checked, it has no replay")


def test_unknown_checks_are_refused():
    with pytest.raises(ValueError, match=r"without must be one of 'runs', .*; got 'reading'"):
        check_adapter(LoopAgent, without={"reading": "why not"})


# The recording.


def test_a_step_after_the_end_is_refused():
    env = RecordedEnv(Recording(1), 0)
    env.reset()
    for _ in range(7):
        *_, terminated, truncated, _ = env.step(0)
    assert terminated
    assert not truncated
    with pytest.raises(ValueError, match="must reset an environment that has ended"):
        env.step(0)


def test_episodes_differ_in_length_and_end_both_ways():
    env, lengths, ends = RecordedEnv(Recording(2), 1), [], set()
    for _ in range(11):
        env.reset()
        terminated = truncated = False
        length = 0
        while not (terminated or truncated):
            *_, terminated, truncated, _ = env.step(0)
            length += 1
        lengths.append(length)
        ends.add(terminated)
    assert len(set(lengths)) == 11
    assert ends == {True, False}
    assert all(length % 5 for length in lengths)


def test_an_observation_says_where_it_belongs():
    trial = Trial(lanes=3)
    env = trial.make_env(2)
    env.reset()
    observation, *_ = env.step(4)
    assert place_of(observation) == (2, 0, 1)
    assert trial.recording.action_at((2, 0, 0)) == 4
    assert trial.recording.action_at((2, 0, 1)) is None
    with pytest.raises(ValueError, match="observation must be an observation of RecordedEnv"):
        place_of(np.zeros(4))


def test_expected_plays_are_those_of_the_policy():
    """The suite's own reading of the method is bound to the policy with another law and ε."""
    trial = Trial(lanes=4, epsilon=(0.2, 0.2), num_steps=500)
    agent = SameStep(trial)
    trial.recording.epsilon = agent.epsilon
    agent.collect(500)
    _check_plays(agent, trial)
