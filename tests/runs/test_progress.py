"""What a run tells while it goes on, where no terminal can show a bar."""

from types import SimpleNamespace

import pytest

from ezgreedy.agents.run_settings import EvaluationSettings
from ezgreedy.runs import progress, progress_bar
from ezgreedy.runs.evaluation import Evaluation, Played
from ezgreedy.runs.progress import Bar


@pytest.mark.parametrize(
    ("returns", "unfinished", "words"),
    [
        ([3.0, 4.0], [9.0], "3.50 over 2 episodes"),
        ([], [1.0, 2.0], "1.50 over 2 unfinished episodes"),
    ],
)
def test_an_evaluation_is_told_with_what_its_mean_is_over(capsys, returns, unfinished, words):
    found = Evaluation(returns, unfinished, frames=100, explored_share=0.0)
    Bar("r2d2 on Pong", 1_000).see_record(
        {"kind": "evaluation", "frames": 500, **found.record()},
    )
    assert capsys.readouterr().err == f"r2d2 on Pong: evaluation at 500 frames: {words}\n"


def test_the_line_shows_return_loss_epsilon_and_when_the_evaluation_was(capsys, monkeypatch):
    clock = SimpleNamespace(seconds=100.0)
    clock.monotonic = lambda: clock.seconds
    for module in (progress, progress_bar):
        monkeypatch.setattr(module, "time", clock)
    report = {"mean_return": 2.5, "loss": 0.1234, "epsilon": 0.5, "explored_share": 0.4}
    with Bar("rainbow on Pong", 10_000) as bar:
        clock.seconds += 60.0  # of the first evaluation, which are no training time
        found = Evaluation([3.0], [], frames=100, explored_share=0.0)
        bar.see_record({"kind": "evaluation", "frames": 0, **found.record()})
        bar.see_record({"kind": "training", "frames": 0, "episodes": 3, **report})
        clock.seconds += 10.0
        bar.see_progress(1_000)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == (
        "rainbow on Pong: 1,000 of 10,000 frames, 100 frames/s, about 2 min left, return 2.5, "
        "loss 0.123, ε 0.5, 40.0% exploratory, evaluation 3.0 at 0 frames"
    )


def test_no_time_is_left_to_show_while_nothing_moves(capsys, monkeypatch):
    clock = SimpleNamespace(seconds=100.0)
    clock.monotonic = lambda: clock.seconds
    for module in (progress, progress_bar):
        monkeypatch.setattr(module, "time", clock)
    with Bar("r2d2 on Pong", 10_000) as bar:
        for step in range(1, 401):
            clock.seconds += 0.5
            bar.see_progress(min(50 * step, 2_000))  # 20 s, and then nothing
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == "r2d2 on Pong: 2,000 of 10,000 frames, 100 frames/s, about 80 s left"
    for line in lines[4:]:
        assert line == "r2d2 on Pong: 2,000 of 10,000 frames, 0 frames/s"


@pytest.mark.parametrize(
    ("settings", "knows", "words"),
    [
        (EvaluationSettings(), True, ", {} of 500,000 frames (evaluation.frames is 500,000"),
        (EvaluationSettings(), False, " (evaluation.frames is 500,000"),
        (EvaluationSettings(episodes=50), True, ", {} of 50 episodes (evaluation.episodes is 50"),
    ],
)
def test_a_long_evaluation_is_told_every_twenty_seconds(capsys, settings, knows, words):
    bar = Bar("rainbow on Pong", 10_000)
    record = {"kind": "evaluation", "frames": 0, "mean_return": 1.0, "episodes": 2}
    for _ in range(2):  # and again in the next evaluation
        for seconds in range(45):
            played = Played(frames=seconds, episodes=seconds)
            bar.see_evaluation(float(seconds), settings, played if knows else None)
        bar.see_record(record)
    told = capsys.readouterr().err.splitlines()
    assert told[:3] == told[3:]
    assert told[:2] == [
        f"rainbow on Pong: evaluating, {seconds} s so far{words.format(seconds)}; "
        "Ctrl-C saves and stops)"
        for seconds in (20, 40)
    ]


def test_the_fast_steps_before_learning_promise_no_time(capsys, monkeypatch):
    clock = SimpleNamespace(seconds=100.0)
    clock.monotonic = lambda: clock.seconds
    for module in (progress, progress_bar):
        monkeypatch.setattr(module, "time", clock)
    with Bar("rainbow on Pong", 10_000) as bar:
        for frames, is_learning in ((1_000, False), (1_000, True), (1_100, True)):
            clock.seconds += 10.0
            bar.see_progress(frames, is_learning=is_learning)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "rainbow on Pong: 1,000 of 10,000 frames, 100 frames/s"
    assert lines[-1] == "rainbow on Pong: 1,100 of 10,000 frames, 10 frames/s, about 15 min left"
