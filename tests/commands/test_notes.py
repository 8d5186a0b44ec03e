"""What the commands say before they train: after every refusal, and only what is true."""

import pytest

from ezgreedy.agents.registry import run_of, smaller_scales
from ezgreedy.cli import main
from ezgreedy.commands.train import missing_scores, shortened
from ezgreedy.runs.settings_codec import with_settings
from support.written_runs import write_run

SHORT = ["--scale", "laptop", "--frames", "300"]
# A run of a second.
SMALL = [
    *("--set", "lanes=2", "--set", "agent.hidden_size=8", "--set", "agent.least_replay=40"),
    *("--set", "agent.replay_capacity=300", "--set", "agent.learner.batch_size=4"),
    *("--set", "evaluation.frames=60", "--set", "evaluation.lanes=2"),
]


def run(agent, scale, game, frames, changes=()):
    return with_settings(run_of(agent, scale, game), [f"frames={frames}", *changes])


@pytest.mark.parametrize(
    "arguments",
    [
        ["rainbow", "--game", "Freway", *SHORT],
        ["rainbow", "--game", "minatar/breakot", *SHORT],
        ["rainbow", "--game", "memory_chain/10", *SHORT],
        ["rainbow", "--game", "minatar/breakout", "--scale", "atari100k"],
        ["rainbow", "--game", "MinAtar/Breakout-v1", *SHORT, "--set", "agent.hidden_size=0"],
    ],
)
def test_a_refused_run_says_nothing_else(arguments, tmp_path, capsys):
    assert main(["train", *arguments, "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1


def test_a_directory_that_is_taken_is_refused_without_notes(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("precious")
    asked = ["train", "rainbow", "--game", "minatar/breakout", *SHORT, "--out", str(tmp_path)]
    assert main(asked) == 2
    assert capsys.readouterr().out == ""


def test_a_run_that_begins_says_how_its_game_is_named_and_what_is_not_shortened(tmp_path, capsys):
    asked = ["train", "rainbow-ez", "--game", "MinAtar/Breakout-v1", *SHORT, *SMALL]
    assert main([*asked, "--out", str(tmp_path / "run")]) == 0
    name, length = capsys.readouterr().out.splitlines()
    assert name.startswith("MinAtar/Breakout-v1 is played as minatar/breakout;")
    assert "nothing else is shortened: agent.epsilon='Linear(" in length
    assert "evaluation.frames" not in length  # it was changed


def test_a_smaller_scale_is_named_only_where_there_is_one():
    def told(agent, scale, game):
        (line,) = shortened(scale, [run(agent, scale, game, 300)], [])
        return line

    assert "; --scale laptop is smaller)" in told("rainbow-ez", "paper", "Freeway")
    assert "; --scale atari100k is smaller)" in told("rainbow-ez", "laptop", "Freeway")
    assert "--scale" not in told("rainbow-ez", "laptop", "minatar/breakout")
    assert "--scale" not in told("rainbow-ez", "atari100k", "Freeway")
    assert "--scale" not in told("r2d2-ez", "laptop", "Freeway")
    assert smaller_scales("rainbow", "paper", "minatar/breakout") == ["laptop"]


def test_runs_of_at_least_half_their_scale_are_not_short():
    assert shortened("laptop", [run("rainbow-ez", "laptop", "Freeway", 500_000)], []) == []
    assert shortened("laptop", [run("rainbow-ez", "laptop", "Freeway", 499_999)], []) != []


def test_what_differs_between_agents_is_named_without_a_value():
    agents = ("rainbow-eps", "r2d2-ez")
    (line,) = shortened(
        "paper", [run(agent, "paper", "Freeway", 2_000_000) for agent in agents], []
    )
    assert "are at most 1.0% of this scale's 200,000,000 or 30,000,000,000" in line
    assert "agent.epsilon='Linear(" in line  # only Rainbow's has a schedule
    assert line.endswith("evaluation.frames=500000 (--set changes them)")
    steps = ["agent.epsilon=Linear(1, 0.5, 77)"]
    runs = [
        run("rainbow-eps", "laptop", "Freeway", 9),
        run("rainbow-ez", "laptop", "Freeway", 9, steps),
    ]
    (line,) = shortened("laptop", runs, [])
    assert "nothing else is shortened: agent.epsilon, evaluation.frames=" in line


def test_games_without_published_scores_are_said_at_scales_that_compare():
    assert missing_scores("atari100k", ["Freeway"]) == []
    assert missing_scores("laptop", ["Skiing"]) == []
    (line,) = missing_scores("atari100k", ["Skiing", "Freeway", "Pitfall"])
    assert line.startswith("Skiing, Pitfall are not among Atari-100k's 26 games")


def sweep(out, *arguments):
    words = ["--seeds", "1", "--jobs", "1", "--probe-seconds", "0"]
    return main(["sweep", "minatar", *words, *arguments, "--out", str(out)])


def test_a_sweep_says_once_that_its_runs_are_short(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("ezgreedy.commands.sweep._is_agreed", lambda *_: False)
    assert sweep(tmp_path / "short", "--frames", "300") == 2
    assert capsys.readouterr().err.count("nothing else is shortened") == 1
    # The sweep's own length is no surprise.
    assert sweep(tmp_path / "usual") == 2
    assert capsys.readouterr().err == ""
    assert sweep(tmp_path / "refused", "--frames", "300", "--jobs", "0") == 2
    assert "nothing else is shortened" not in capsys.readouterr().err


def test_a_sweep_says_that_a_game_is_not_of_its_kind(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("ezgreedy.commands.sweep._is_agreed", lambda *_: False)
    assert sweep(tmp_path / "out", "--games", "Breakout,freeway") == 2
    assert capsys.readouterr().err == (
        "Breakout is a game of atari; those of this sweep are of minatar "
        "(did you mean minatar/breakout?)\n"
    )


def test_resuming_a_sweep_says_to_repeat_its_command(tmp_path, capsys):
    (tmp_path / "sweep.json").write_text("{}")
    write_run(tmp_path / "runs" / "one", [])
    assert main(["resume", str(tmp_path)]) == 2
    assert "to continue a sweep, repeat its `ezgreedy sweep` command" in capsys.readouterr().err
