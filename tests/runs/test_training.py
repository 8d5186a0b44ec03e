"""A training: when it evaluates and reports, what its numbers depend on, and how it continues."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
from ezgreedy.agents.rainbow.presets import RAINBOW_PRESETS
from ezgreedy.agents.run_settings import EvaluationSettings
from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.exploration.durations import Fixed
from ezgreedy.games.lanes import Lanes
from ezgreedy.learning.gradients import NotFiniteError
from ezgreedy.runs.evaluation import evaluate
from ezgreedy.runs.training import Training
from support.small_runs import small_run
from support.states import bits

ALE = {"game": "Breakout", "frames": 1600}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def run_to(training, frames):
    """The lines of results up to so many frames."""
    records = []
    while True:
        if training.report_is_due:
            records.append(training.report())
        while training.evaluation_is_due:
            records.append(training.evaluate())
        if training.frames >= frames or training.is_finished:
            return records
        training.step()


def everything(training, folder):
    """All that the future depends on, through files and back."""
    checkpoints = Checkpoints(folder, {})
    checkpoints.save(1, training.state_dict())
    return Checkpoints(folder, {}).load().state


@pytest.mark.parametrize(
    ("agent", "changes"),
    [
        ("rainbow", {}),
        ("rainbow-eps", {}),
        ("rainbow-ez", {}),
        ("rainbow-cts", {}),
        ("rainbow-ez", ALE),
        ("rainbow-cts", ALE),
        ("rainbow-ez", {"game": "deep_sea/5"}),
        ("r2d2", {}),
        ("r2d2-rnd", {}),
        ("r2d2-bootstrap", {}),
        ("r2d2-ez", {}),
        ("r2d2-ez", ALE),
        ("r2d2-rnd", ALE),
        ("r2d2", {"game": "memory_chain/4"}),
        ("r2d2-bootstrap", {"game": "deep_sea/5"}),
    ],
)
def test_a_saved_training_continues_as_if_nothing_had_happened(agent, changes, tmp_path):
    settings = small_run(agent, **changes)
    whole, first = Training(settings), Training(settings)
    expected = run_to(whole, settings.frames)
    middle = settings.frames // 2
    found = run_to(first, middle)
    state = everything(first, tmp_path / "middle")
    continued = Training(settings)
    continued.load_state_dict(state)
    found += run_to(continued, settings.frames)
    assert found == expected
    ends = [everything(each, tmp_path / name) for each, name in ((whole, "a"), (continued, "b"))]
    assert bits(ends[0]) == bits(ends[1])
    assert whole.agent.learner.num_updates > 20


@pytest.mark.parametrize("agent", ["rainbow", "r2d2"])
def test_a_state_without_q_values_goes_on_and_reports_them(agent):
    settings = small_run(agent)
    training, continued = Training(settings), Training(settings)
    while training.agent.num_updates < 3:
        training.step()
    state = training.state_dict()
    means = state["agent"]["means"]
    earlier = ("loss", "gradient_norm", "bonus")
    kept = means[:3] if agent == "rainbow" else {name: means[name] for name in earlier}
    continued.load_state_dict({**state, "agent": {**state["agent"], "means": kept}})
    while continued.agent.num_updates < 6:
        training.step()
        continued.step()
    ours, theirs = continued.agent.measurements(), training.agent.measurements()
    assert ours["loss"] == theirs["loss"]  # since the beginning
    assert ours["q_values"] != theirs["q_values"]  # the former since it went on


def test_a_training_is_saved_in_mid_option(tmp_path):
    settings = small_run("rainbow-ez")
    training = Training(settings)
    while not training.agent.explorer.remaining.any():
        training.step()
    state = everything(training, tmp_path)
    continued = Training(settings)
    continued.load_state_dict(state)
    for _ in range(30):
        training.step()
        continued.step()
        assert continued.agent.explorer.remaining.tolist() == (
            training.agent.explorer.remaining.tolist()
        )


@pytest.mark.parametrize("agent", R2D2_PRESETS)
def test_a_recurrent_training_is_saved_in_mid_episode_and_mid_option(agent, tmp_path):
    settings = small_run(agent, "minatar/freeway", preset={"durations": Fixed(5)})
    training = Training(settings)
    while not (training.agent.num_updates and training.agent.actor.explorer.remaining.any()):
        training.step()
    while not training.agent.actor._waiting:  # a window whose priority is not known yet
        training.step()
    assert not training.play.starts.any()
    continued = Training(settings)
    continued.load_state_dict(everything(training, tmp_path / "middle"))
    for _ in range(40):
        left, right = training.step(), continued.step()
        np.testing.assert_array_equal(left.observations, right.observations)
    ends = [everything(each, tmp_path / str(i)) for i, each in enumerate((training, continued))]
    assert bits(ends[0]) == bits(ends[1])


def test_a_checkpoint_of_a_memory_of_sequences_writes_what_is_new(tmp_path):
    training = Training(small_run("r2d2"))
    for _ in range(100):
        training.step()
    checkpoints = Checkpoints(tmp_path, {})
    checkpoints.save(1, training.state_dict())
    first = {path: path.stat().st_size for path in (tmp_path / "segments").iterdir()}
    for _ in range(3):
        training.step()
    checkpoints.save(2, training.state_dict())
    added = [path for path in (tmp_path / "segments").iterdir() if path not in first]
    assert added
    assert sum(path.stat().st_size for path in added) < sum(first.values()) / 4


def test_evaluating_changes_nothing_that_is_learned():
    settings = small_run("rainbow")
    often = replace(settings, evaluation=EvaluationSettings(50, 40, 1))
    seldom = replace(settings, evaluation=EvaluationSettings(800, 40, 1))
    trainings = [Training(each) for each in (often, seldom)]
    for training in trainings:
        run_to(training, settings.frames)
    first, second = (bits(training.agent.state_dict()) for training in trainings)
    assert first == second


def test_evaluations_come_at_the_beginning_at_every_period_and_at_the_end():
    settings = small_run(frames=800, evaluation=EvaluationSettings(300, 40, 2))
    records = run_to(Training(settings), 800)
    assert [r["frames"] for r in records if r["kind"] == "evaluation"] == [0, 300, 600, 800]
    settings = small_run(frames=600, evaluation=EvaluationSettings(300, 40, 2))
    records = run_to(Training(settings), 600)
    assert [r["frames"] for r in records if r["kind"] == "evaluation"] == [0, 300, 600]
    reports = [r["frames"] for r in records if r["kind"] == "training"]
    assert reports == [200, 400, 600]


def test_scores_are_raw_returns_of_whole_games():
    class Right:
        exploring = np.zeros(2, dtype=np.bool_)

        def act(self, observations, starts):
            return np.full(2, 1)

        def observe(self, steps):
            pass

    found = evaluate(Right(), Lanes("Freeway", 2, seed=3), EvaluationSettings(frames=20_000))
    # Always up in Freeway: a game of 2:16 minutes earns some twenty crossings, whole numbers.
    assert len(found.returns) == 2
    assert all(score == int(score) and 15 <= score <= 30 for score in found.returns)
    assert found.frames >= 20_000
    assert found.mean_return == np.mean(found.returns)


class Stays:
    """A policy that never moves, in three lanes whose episodes last 2, 3 and 10 steps."""

    exploring = np.zeros(3, dtype=np.bool_)

    def act(self, observations, starts):
        return np.zeros(3, dtype=np.int64)

    def observe(self, steps):
        pass


class Clocks:
    """Lanes whose episodes have a length each, and score the number of their episode."""

    lanes, lengths = 3, np.array([2, 3, 10])

    def reset(self):
        self.clock, self.begun = np.zeros(3, dtype=np.int64), np.arange(3)
        self.num_begun = 3
        return np.zeros(3)

    def step(self, actions):
        self.clock += 1
        finished = self.clock >= self.lengths
        frames, returns = 4 * self.clock, self.begun.astype(float)
        for lane in np.flatnonzero(finished):
            self.begun[lane], self.clock[lane] = self.num_begun, 0
            self.num_begun += 1
        return SimpleNamespace(
            finished=finished,
            episode_frames=np.where(finished, 4 * self.lengths, frames),
            episode_returns=returns,
            observations=np.zeros(3),
        )


def test_episodes_count_in_the_order_in_which_they_begin():
    """Counting the first to end would leave out the long one in the third lane."""
    found = evaluate(Stays(), Clocks(), EvaluationSettings(episodes=5, lanes=3))
    assert sorted(found.returns) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert found.unfinished == []
    assert found.returns[-1] == 2.0  # the long one, which all wait for


def test_an_evaluation_by_episodes_ends_at_its_frames_and_says_what_is_unfinished():
    found = evaluate(Stays(), Clocks(), EvaluationSettings(episodes=5, lanes=3, frames=90))
    assert len(found.returns) == 4
    assert found.unfinished == [2.0]
    settings = EvaluationSettings(frames_between=None, frames=60, lanes=2, episodes=3)
    training = Training(small_run("rainbow", game="Freeway", evaluation=settings))
    assert training.evaluate()["episodes"] == 0
    (notice,) = training.take_notices()
    assert "with 0 of 3 episodes finished" in notice
    assert "evaluation.frames" in notice
    assert training.take_notices() == []


def test_a_replay_without_room_is_told_once_and_in_numbers():
    training = Training(small_run("r2d2"))
    agent = training.agent
    while agent.replay.num_windows < 90:
        training.step()
    measured = training.report()
    assert (measured["windows"], measured["windows_held"]) == (agent.replay.num_windows, 75)
    assert (measured["windows_lost"], measured["effective_replay_capacity"]) == (0, 300)
    assert training.take_notices() == []
    short = {**agent.measurements(), "effective_replay_capacity": 100.0}
    agent.measurements = lambda: short
    training.report()
    (notice,) = training.take_notices()
    assert "has room for about 100 of 300 observations" in notice
    assert "agent.replay_bytes_per_observation=2100" in notice
    training.report()
    assert training.take_notices() == []


def test_evaluations_are_due_at_the_end_only_if_there_is_nothing_between():
    settings = EvaluationSettings(frames_between=None)
    assert [settings.num_due(frames, 1000) for frames in (0, 999, 1000, 1200)] == [0, 0, 1, 1]
    settings = EvaluationSettings(frames_between=400)
    dues = [settings.num_due(frames, 1000) for frames in (0, 399, 400, 999, 1000)]
    assert dues == [1, 1, 2, 3, 4]
    run = small_run(frames=600, evaluation=EvaluationSettings(None, 40, 2, episodes=1))
    records = run_to(Training(run), 600)
    assert [r["frames"] for r in records if r["kind"] == "evaluation"] == [600]


def test_separate_streams_depend_on_game_and_agent_and_paired_ones_do_not():
    def seeds(**changes):
        settings = replace(small_run("rainbow-ez", seed=3), **{"streams": "paired", **changes})
        return [
            settings.role_seed(role, index) for role in ("agent", "evaluation") for index in (0, 1)
        ]

    other = small_run("rainbow-eps").agent
    assert seeds() == seeds(game="minatar/freeway") == seeds(agent=other)
    separate = [
        seeds(streams="separate"),
        seeds(streams="separate", game="minatar/freeway"),
        seeds(streams="separate", agent=other),
        seeds(streams="separate", seed=4),
        seeds(),
    ]
    assert len({seed for group in separate for seed in group}) == 20


def test_without_a_finished_episode_the_running_returns_count():
    found = Training(small_run("rainbow", game="Freeway")).evaluate()
    assert found["episodes"] == 0
    assert found["mean_return"] == np.mean(found["unfinished"])


def test_an_evaluation_that_is_given_up_leaves_no_trace():
    training = Training(small_run())
    assert training.evaluate(lambda played: True) is None
    assert training.ledger.num_evaluations == 0


def test_units_are_frames_for_budgets_and_steps_for_agents():
    settings = small_run("rainbow-ez", **ALE)
    training = Training(settings)
    training.step()
    assert training.frames == 4
    assert training.agent.explorer.steps.tolist() == [1]
    run_to(training, settings.frames)
    num_steps = settings.frames // 4
    # The first update is due with the first 40 transitions, which take three steps more to come.
    first = -(-(40 + settings.agent.learner.num_steps - 1) // 4) * 4
    assert training.agent.learner.num_updates == (num_steps - first) // 4 + 1


def test_schedules_count_the_steps_of_all_lanes():
    settings = small_run("rainbow-ez", lanes=2)
    agent = Training(settings).agent
    assert (agent.explorer.epsilon.steps, agent.explorer.epsilon.first_step) == (100, 10)


def test_priorities_are_unweighted_losses():
    training = Training(small_run("rainbow"))
    while training.agent.learner.num_updates == 0:
        training.step()
    agent = training.agent
    batch = agent.replay.sample(4)
    state = agent.learner.state_dict()
    losses = agent.learner.update(batch).losses
    agent.learner.load_state_dict(state)
    reweighted = batch._replace(weights=batch.weights * 0.25)
    np.testing.assert_array_equal(agent.learner.update(reweighted).losses, losses)


def test_a_reward_that_is_no_number_stops_the_training_where_it_is_seen(monkeypatch):
    training = Training(small_run())
    for _ in range(5):
        training.step()
    environment = training.lanes.environments[1]
    monkeypatch.setattr(environment, "_act", lambda action: (float("nan"), False))
    before = bits(training.agent.state_dict())
    with pytest.raises(NotFiniteError, match=r"reward in lane 1 at frame 10: .* after 0 updates"):
        training.step()
    assert bits(training.agent.replay.state_dict()) == before["memory"]


def test_laptops_change_schedules_and_sizes_but_not_who_the_agent_is():
    for preset in RAINBOW_PRESETS.values():
        for game in ("Freeway", "minatar/freeway"):
            paper, laptop = preset.at_scale("paper", game), preset.at_scale("laptop", game)
            assert laptop.agent.durations == paper.agent.durations
            assert laptop.agent.sigma0 == paper.agent.sigma0
            assert laptop.agent.learner.num_steps == paper.agent.learner.num_steps
            assert laptop.agent.learner.has_target_network == paper.agent.learner.has_target_network
            assert laptop.protocol == paper.protocol
    assert (
        RAINBOW_PRESETS["rainbow-ez"].at_scale("paper", "Freeway").agent
        == RAINBOW_PRESETS["rainbow-ez"]
    )
