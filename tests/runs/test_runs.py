"""Runs on disk: kills, signals, damage, second owners, and what is refused."""

import multiprocessing
import os
import re
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.cli import main
from ezgreedy.results.store import ResultLog, read_results
from ezgreedy.runs import run_loop as driver
from ezgreedy.runs.interruption import Interruption
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import DriveOptions, resume, train
from support.edited_files import edit, without_checksums
from support.small_runs import small_run
from support.states import bits

# Real games, networks and checkpoints; processes are forked from one that has imported all of it.
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["ezgreedy.runs.run_loop", "ezgreedy.agents.r2d2.agent", "ale_py"])
# Finished runs keep their whole state here, so that every bit of it can be compared.
OFTEN = DriveOptions(0.05, is_quiet=True, checkpoint_share=1.0, keeps_replay=True)
SELDOM = DriveOptions(1e6, is_quiet=True, keeps_replay=True)
ALE = small_run("rainbow-ez", game="Breakout", frames=1600)


def outcome(directory):
    """What a finished run leaves: every byte of its results and every bit of its last state."""
    place = RunDirectory(directory)
    loaded = Checkpoints(place.checkpoints, place.identity()).load()
    return place.results.read_bytes(), bits(loaded.state)


def in_process(function, *arguments):
    process = context.Process(target=function, args=arguments, daemon=True)
    process.start()
    return process


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "whole"
    process = in_process(train, directory, ALE, SELDOM)
    process.join(300)
    assert process.exitcode == 0
    return directory


def killed_and_resumed(directory, settings, rng, num_kills):
    """Kills a run again and again, in and between saves; how many kills found it alive."""
    process = in_process(train, directory, settings, OFTEN)
    wait_for(lambda: (directory / "config.json").exists())
    num_hit = 0
    for _ in range(num_kills):
        time.sleep(rng.uniform(0.2, 1.5))
        num_hit += process.is_alive()
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        process = in_process(resume, directory, OFTEN)
    process.join(300)
    assert process.exitcode == 0
    return num_hit


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


@pytest.mark.slow
def test_a_killed_run_of_a_recurrent_agent_ends_with_the_same_bytes_too(tmp_path):
    settings = small_run("r2d2-ez", game="Breakout", frames=2400, lanes=2)
    whole = in_process(train, tmp_path / "whole", settings, SELDOM)
    whole.join(300)
    assert whole.exitcode == 0
    num_hit = killed_and_resumed(tmp_path / "run", settings, np.random.default_rng(2), num_kills=3)
    assert num_hit >= 1
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_a_killed_run_ends_with_the_same_bytes_as_one_that_was_not(uninterrupted, tmp_path):
    num_hit = killed_and_resumed(tmp_path / "run", ALE, np.random.default_rng(0), num_kills=4)
    assert num_hit >= 2
    assert outcome(tmp_path / "run") == outcome(uninterrupted)


@pytest.mark.slow
def test_twenty_kills_change_no_bit(uninterrupted, tmp_path):
    rng = np.random.default_rng(1)
    for number in range(4):
        directory = tmp_path / str(number)
        killed_and_resumed(directory, ALE, rng, num_kills=5)
        assert outcome(directory) == outcome(uninterrupted)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_stops_within_ten_seconds(uninterrupted, tmp_path, number, code):
    directory = tmp_path / "run"
    process = in_process(train, directory, ALE, SELDOM)
    wait_for(lambda: RunDirectory(directory).status().get("state") == "running")
    os.kill(process.pid, number)
    begin = time.monotonic()
    process.join(20)
    assert time.monotonic() - begin < 10.0
    # The exit code of a function in a child process is lost; the status tells.
    assert RunDirectory(directory).status()["state"] == "paused"
    assert resume(directory, SELDOM) == 0
    assert RunDirectory(directory).status()["state"] == "finished"
    assert outcome(directory)[0] == outcome(uninterrupted)[0]
    assert code == 128 + number


def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_it_taken(
    uninterrupted, tmp_path, capsys
):
    directory = tmp_path / "run"
    process = in_process(train, directory, ALE, OFTEN)
    saved = directory / "checkpoints"
    wait_for(lambda: len(list(saved.glob("checkpoint-*"))) == 2)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    newest = max(saved.glob("checkpoint-*")) / "arrays.safetensors"
    contents = bytearray(newest.read_bytes())
    contents[len(contents) // 2] ^= 1
    newest.write_bytes(contents)
    assert resume(directory, SELDOM) == 0
    assert str(newest) in capsys.readouterr().err.replace("\n", "")
    assert outcome(directory)[0] == outcome(uninterrupted)[0]


def test_two_processes_cannot_own_one_run(uninterrupted, capsys):
    with ResultLog(uninterrupted / "results.jsonl"):
        assert main(["resume", str(uninterrupted)]) == 2
    assert "is being written by another process" in capsys.readouterr().err


def test_a_run_that_is_finished_stays_as_it_is(uninterrupted, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(uninterrupted, copy)
    assert resume(copy, SELDOM) == 0
    assert outcome(copy)[0] == outcome(uninterrupted)[0]


# An update may leave such numbers behind; whichever looks at them first, acting or saving, stops.
@pytest.mark.parametrize(
    ("seconds", "site"), [(3600.0, "NaN or infinity after"), (0.0, "must be finite; got")]
)
def test_numbers_that_are_none_stop_a_run_and_never_enter_a_checkpoint(
    tmp_path, capsys, seconds, site
):
    settings = small_run("rainbow")
    settings = replace(
        settings,
        seed=7,
        agent=replace(settings.agent, learner=replace(settings.agent.learner, learning_rate=1e38)),
    )
    options = replace(OFTEN, seconds_between_checkpoints=seconds)
    assert train(tmp_path / "run", settings, options) == 1
    told = capsys.readouterr().err
    assert site in told
    assert re.findall(r"seed (\d+)", told) == ["7"]
    place = RunDirectory(tmp_path / "run")
    assert place.status()["state"] == "failed"
    assert re.findall(r"seed (\d+)", place.status()["reason"]) == ["7"]
    loaded = Checkpoints(place.checkpoints, place.identity()).load()
    if seconds > 0.0:
        assert loaded is None
        return
    kept = loaded.state["training"]["agent"]["learner"]["online"].values()
    assert all(np.isfinite(array).all() for array in kept)


def test_results_hold_evaluations_and_reports(uninterrupted):
    records = read_results(uninterrupted / "results.jsonl")
    evaluations = [record for record in records if record["kind"] == "evaluation"]
    # A step may end between two multiples of its four frames, where a game ends within it.
    due = [0, 300, 600, 900, 1200, 1500, 1600]
    assert all(0 <= r["frames"] - d < 4 for r, d in zip(evaluations, due, strict=True))
    reports = [record for record in records if record["kind"] == "training"]
    due = range(200, 1601, 200)
    assert all(0 <= r["frames"] - d < 4 for r, d in zip(reports, due, strict=True))
    assert all(0.0 < record["explored_share"] <= 1.0 for record in reports)
    assert list(uninterrupted.glob("tensorboard/events.*"))


def events(run):
    """(file, event) of all of TensorBoard's files, in the order in which they were written."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for file in sorted(run.glob("tensorboard/events.*"), key=lambda path: path.stat().st_mtime_ns):
        data = file.read_bytes()
        while data:  # length, checksum, event, checksum
            end = 12 + int.from_bytes(data[:8], "little")
            found.append((file.name, Event.FromString(data[12:end])))
            data = data[end + 4 :]
    return found


def shown(run):
    """What TensorBoard shows: (tag, step) of every point that no later file hides."""
    found = events(run)
    starts = [
        (place, event.step)
        for place, (_, event) in enumerate(found)
        if event.HasField("session_log")
    ]
    return [
        (value.tag, event.step)
        for place, (_, event) in enumerate(found)
        for value in event.summary.value
        if not any(later > place and event.step >= step for later, step in starts)
    ]


def test_tensorboard_has_the_names_that_others_use(uninterrupted):
    tags = {tag for tag, _ in shown(uninterrupted)}
    assert tags >= {
        "charts/episodic_return",
        "charts/episodic_length",
        "charts/SPS",
        "rollout/exploration_rate",
        "explore/fraction",
        "explore/option_len",
        "explore/starts",
        "losses/loss",
        "losses/q_values",
        "eval/episodic_return",
    }
    records = read_results(uninterrupted / "results.jsonl")
    points = [step for tag, step in shown(uninterrupted) if tag == "eval/episodic_return"]
    assert points == [record["frames"] for record in records if record["kind"] == "evaluation"]


def test_resuming_a_finished_run_hides_nothing_in_tensorboard(uninterrupted, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(uninterrupted, copy)
    before = shown(copy)
    assert resume(copy, SELDOM) == 0
    assert shown(copy) == before


def test_a_run_that_kept_its_replay_plays_on_to_more_frames(uninterrupted, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(uninterrupted, copy)
    words = ["resume", str(copy), "--keep-replay"]
    assert main([*words, "--frames", "100"]) == 2
    assert "--frames must be at least 1600; got 100" in capsys.readouterr().err
    assert main([*words, "--frames", "2e3"]) == 0
    assert "finished 2,00" in capsys.readouterr().err
    assert RunDirectory(copy).settings().frames == 2000
    old = (uninterrupted / "results.jsonl").read_bytes()
    new = (copy / "results.jsonl").read_bytes()
    assert new.startswith(old)
    assert read_results(copy / "results.jsonl")[-1]["frames"] >= 2000
    assert main(["resume", str(copy)]) == 0


def test_a_run_that_dropped_its_replay_says_why_it_cannot(tmp_path, capsys):
    run = str(tmp_path / "run")
    assert main(["train", "rainbow-ez", "--game", "minatar/breakout", "--out", run, *SMALL]) == 0
    capsys.readouterr()
    assert main(["resume", run]) == 0
    assert (
        "rainbow-ez on minatar/breakout: finished 608 frames, evaluation" in capsys.readouterr().err
    )
    assert main(["resume", run, "--frames", "900"]) == 2
    told = capsys.readouterr().err
    assert "dropped its replay (--keep-replay of train or resume keeps it); got 900" in told


# What a user meets.

SMALL = [
    *("--scale", "laptop", "--frames", "600", "--quiet"),
    *("--set", "agent.hidden_size=8", "--set", "agent.least_replay=40"),
    *("--set", "agent.replay_capacity=300", "--set", "evaluation.frames=200"),
    *("--set", "evaluation.frames_between=300", "--set", "frames_per_report=200"),
]


def test_a_run_is_trained_evaluated_and_watched(tmp_path, capsys):
    run = str(tmp_path / "run")
    assert main(["train", "rainbow-ez", "--game", "minatar/breakout", "--out", run, *SMALL]) == 0
    assert main(["evaluate", run]) == 0
    printed = capsys.readouterr().out
    assert "rainbow-ez on minatar/breakout after 608 frames" in printed
    assert "mean return" in printed
    assert main(["evaluate", run, "--episodes", "2"]) == 0
    assert "over 2 episodes" in capsys.readouterr().out
    assert main(["evaluate", run, "--epsilon", "1"]) == 0
    assert "100.00% of steps exploratory" in capsys.readouterr().out
    assert main(["watch", run, "--steps", "30", "--epsilon", "1"]) == 0
    printed = capsys.readouterr().out
    assert "30 of 30 steps exploratory" in printed
    from PIL import Image

    with Image.open(Path(run) / "watch.gif") as film:
        assert film.n_frames > 1
        assert film.size == (160, 168)
        stripe = np.asarray(film.convert("RGB"))[-1, 0]
    assert np.abs(stripe.astype(int) - [230, 97, 1]).max() < 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rainbow-es", "--game", "Freeway"], "did you mean rainbow"),
        (["rainbow", "--game", "ALE/Freway-v5"], "did you mean Freeway?"),
        (["rainbow", "--game", "minatar/brekout"], "did you mean minatar/breakout"),
        (["rainbow", "--game", "Freeway", "--frames", "0"], "frames must be at least 1; got 0"),
        (["rainbow", "--game", "Freeway", "--seed", "-1"], "seed must be at least 0; got -1"),
        (["rainbow", "--game", "Freeway", "--device", "tpu"], "device must be one of"),
        (["rainbow", "--game", "Freeway", "--set", "agent.gamma=1"], "name a setting of agent"),
        (["rainbow", "--game", "Freeway", "--set", "lanes"], "--set must be NAME=VALUE"),
        (
            ["rainbow", "--game", "Freeway", "--set", "agent.learner.discount=1.5"],
            "--set agent.learner.discount=1.5: discount must lie in [0, 1]; got 1.5",
        ),
        (
            ["rainbow", "--game", "Freeway", "--set", "agent.learner.batch_size=many"],
            "--set agent.learner.batch_size must be an int; got 'many'",
        ),
        (
            ["rainbow", "--game", "Freeway", "--set", "agent.least_replay=2000000"],
            "least_replay must be at most replay_capacity, which is 1000000",
        ),
        (
            ["rainbow", "--game", "Freeway", "--set", "agent.replay_capacity=100000000"],
            "capacity must be at most",
        ),
        (
            ["rainbow", "--game", "memory_chain/10"],
            "frames must be planes of bytes for Rainbow (R2D2 plays others too: ",
        ),
        (["rainbow", "--game", "deep_sea/x"], "game must be deep_sea/ and a number"),
        (["r2d2-es", "--game", "Freeway"], "did you mean r2d2"),
        (["r2d2", "--game", "Freway"], "did you mean Freeway?"),
        (
            ["r2d2", "--game", "Freeway", "--set", "agent.learner.length=70"],
            "length must be a multiple of stride, which is 40; got 70",
        ),
        (
            ["r2d2", "--game", "Freeway", "--set", "protocol.zeroes_discount_on_life_loss=yes"],
            "zeroes_discount_on_life_loss must be False for r2d2",
        ),
        (
            [
                *[
                    "r2d2",
                    "--game",
                    "Pong",
                    "--set",
                    "lanes=2",
                    "--set",
                    "agent.replay_capacity=4000000000",
                ]
            ],
            "capacity must be at most",
        ),
        (
            ["r2d2-ez", "--game", "Freeway", "--set", "agent.durations=2"],
            "--set agent.durations must be",
        ),
        (["rainbow", "--game", "gymnasium/Pendulum-v1"], "Discrete"),
        (["rainbow", "--game", "gymnasium/CartPole-v1"], "image"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(tmp_path, capsys, arguments, message):
    out = tmp_path / "run"
    assert main(["train", *arguments, "--out", str(out), "--quiet"]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not out.exists()


def test_a_directory_of_another_configuration_is_refused_untouched(uninterrupted, capsys):
    before = (uninterrupted / "config.json").read_bytes()
    run = str(uninterrupted)
    assert main(["train", "rainbow", "--game", "Freeway", "--out", run, *SMALL]) == 2
    assert "holds a run with other settings" in capsys.readouterr().err
    assert (uninterrupted / "config.json").read_bytes() == before
    with pytest.raises(ValueError, match="already holds this run"):
        train(uninterrupted, ALE, SELDOM)


def test_a_directory_of_this_run_says_what_can_be_done_with_it(tmp_path):
    settings = small_run("r2d2")
    place = RunDirectory(tmp_path / "run")
    place.create(settings)
    with pytest.raises(ValueError, match=r"this run \(continue it: ezgreedy resume .*run\)"):
        place.create(settings)
    place.write_status("finished", frames=settings.frames, has_replay=False)
    with pytest.raises(ValueError, match=r"which has finished \(choose another --out; without the"):
        place.create(settings)
    place.write_status("finished", frames=settings.frames)
    with pytest.raises(ValueError, match=r"or play on: ezgreedy resume .*run --frames N"):
        place.create(settings)


def test_a_directory_of_something_else_is_refused_untouched(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("precious")
    run = str(tmp_path)
    assert main(["train", "rainbow", "--game", "Freeway", "--out", run, *SMALL]) == 2
    assert "new or an empty directory" in capsys.readouterr().err
    assert main(["resume", run]) == 2
    assert "made by ezgreedy train" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_configuration_of_a_newer_version_is_refused(uninterrupted, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(uninterrupted, copy)
    edit(copy / "config.json", lambda config: config.update(format=99))
    assert main(["resume", str(copy)]) == 2
    assert "needs another version of ezgreedy" in capsys.readouterr().err


def test_a_run_of_a_version_with_fewer_settings_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    settings = small_run("r2d2")
    whole, earlier = RunDirectory(tmp_path / "whole"), RunDirectory(tmp_path / "earlier")
    whole.create(settings)
    without_checksums(whole.path)
    assert resume(whole.path, SELDOM) == 0
    earlier.create(settings)
    without_checksums(earlier.path)
    later = "replay_bytes_per_observation"
    edit(earlier.config, lambda c: c["settings"]["agent"].pop(later) and None, seals=False)
    with pytest.raises(ValueError, match="already holds this run"):
        earlier.create(settings)
    assert earlier.settings() == settings
    steps = iter(range(100))
    monkeypatch.setattr(Interruption, "requested", property(lambda _: next(steps) > 60))
    monkeypatch.setattr(Interruption, "exit_code", 130)
    assert resume(earlier.path, SELDOM) == 130
    monkeypatch.undo()
    assert resume(earlier.path, SELDOM) == 0
    assert earlier.results.read_bytes() == whole.results.read_bytes()
    assert "replay_bytes_per_observation" not in earlier.identity()["agent"]


def test_checkpoints_of_another_run_are_refused(uninterrupted, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(uninterrupted, copy)
    edit(copy / "config.json", lambda config: config["settings"].update(seed=7))
    assert main(["resume", str(copy)]) == 2
    assert "seed" in capsys.readouterr().err


def test_the_help_names_every_agent_every_kind_of_game_and_every_sweep(capsys):
    from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
    from ezgreedy.agents.rainbow.presets import RAINBOW_PRESETS
    from ezgreedy.sweeps.definitions import sweeps

    said = {}
    for command in ("train", "sweep"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        said[command] = re.sub(r"-?\s+", "", capsys.readouterr().out)
    games = ["Freeway", "minatar/NAME", "deep_sea/N", "memory_chain/N", "gymnasium/ID"]
    for name in [*RAINBOW_PRESETS, *R2D2_PRESETS, *games]:
        assert name.replace("-", "") in said["train"].replace("-", "")
    for name in sweeps():
        assert name.replace("-", "") in said["sweep"].replace("-", "")


def test_a_device_that_is_not_there_is_refused(tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ValueError, match="device must be cpu if there is no CUDA"):
        driver.train(tmp_path / "run", replace(ALE, device="cuda"))
