"""Progress in one format: lines where there is no terminal, a bar where there is one."""

from types import SimpleNamespace

import pytest

from ezgreedy.runs import progress_bar
from ezgreedy.runs.progress_bar import ProgressBar


@pytest.fixture
def clock(monkeypatch):
    """Time stands still until a test moves `seconds`."""
    clock = SimpleNamespace(seconds=100.0)
    clock.monotonic = lambda: clock.seconds
    monkeypatch.setattr(progress_bar, "time", clock)
    return clock


def test_a_line_is_written_at_the_beginning_every_ten_seconds_and_at_the_end(clock, capsys):
    with ProgressBar("jobs done") as bar:
        bar.begin("fig1", total=1004, done=4)
        for done in range(5, 1005):
            clock.seconds += 0.02
            bar.show(done)
    assert capsys.readouterr().err.splitlines() == [
        "fig1: 4 of 1,004 jobs done",
        "fig1: 505 of 1,004 jobs done, about 10 s left",
        "fig1: 1,004 of 1,004 jobs done, about 0 s left",
    ]


def test_the_time_until_the_first_job_is_done_says_nothing_about_the_others(clock, capsys):
    with ProgressBar("jobs done") as bar:
        bar.begin("compiled", total=12, writes_line=False)
        clock.seconds += 60
        bar.show(2)
        clock.seconds += 12
        bar.show(6)
    assert capsys.readouterr().err.splitlines() == [
        "compiled: 2 of 12 jobs done",
        "compiled: 6 of 12 jobs done, about 18 s left",
    ]


def test_a_given_speed_and_news_are_told(clock, capsys):
    with ProgressBar("frames") as bar:
        bar.begin("r2d2 on Pong", 10_000_000, writes_line=False)
        clock.seconds += 11
        bar.show(10_000, speed=1000.0, news="evaluation 3.5")
        clock.seconds += 11
        bar.show(10_000, speed=0.0)  # processes are being started
    assert capsys.readouterr().err.splitlines() == [
        "r2d2 on Pong: 10,000 of 10,000,000 frames, 1,000 frames/s, about 2.8 h left, "
        "evaluation 3.5",
        "r2d2 on Pong: 10,000 of 10,000,000 frames, 0 frames/s",
    ]


def test_only_what_is_said_is_shown_when_quiet(clock, capsys):
    with ProgressBar("frames", is_quiet=True) as bar:
        bar.begin("a run", 10)
        clock.seconds += 60
        bar.show(10)
        bar.say("a warning [about brackets]")
    assert capsys.readouterr().err == "a warning [about brackets]\n"


def test_a_terminal_shows_the_same_count_as_a_bar(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with ProgressBar("jobs done") as bar:
        bar.begin("one [of two]", 4)
        bar.show(1, news="news [in brackets]")
    told = capsys.readouterr().err
    assert "one [of two]" in told
    assert " 25% 1 of 4 jobs done" in told
    assert "news [in brackets]" in told
    assert "left\n" not in told  # no lines beside the bar
