import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ezgreedy.experiments.runner import Plan, reproduce
from ezgreedy.results.store import read_results
from support.tiny_experiment import TINY, tiny

TESTS = Path(__file__).parents[1]


def files(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def summary(out: Path) -> dict[str, Any]:
    """The summary without the one entry that depends on the machine."""
    content = json.loads((out / "tiny" / "summary.json").read_text())
    assert content.pop("seconds") >= 0
    return content


def results(out: Path) -> dict[tuple[str, int], Any]:
    stored = read_results(out / "tiny" / "results.jsonl")
    by_job = {(entry["cell"], entry["seed"]): entry["result"] for entry in stored}
    assert len(by_job) == len(stored), "a job was stored twice"
    return by_job


def start(out: Path, processes: int, pause: float, *flags: str) -> "subprocess.Popen[str]":
    """Runs the tiny experiment as a program, at the head of a process group of its own."""
    arguments = [str(out), str(processes), str(pause), *flags]
    return subprocess.Popen(
        [sys.executable, "-m", "support.tiny_experiment", *arguments],
        cwd=TESTS,
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_results(out: Path, number: int) -> None:
    path = out / "tiny" / "results.jsonl"
    deadline = time.monotonic() + 30
    while not path.exists() or path.read_bytes().count(b"\n") < number:
        assert time.monotonic() < deadline, "no results"
        time.sleep(0.01)


def wait_for_empty_group(group: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        assert time.monotonic() < deadline, "a process was left behind"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run in this process."""
    out = tmp_path_factory.mktemp("whole")
    assert reproduce([TINY], Plan(out)) == 0
    return out


def test_a_run_writes_settings_results_summary_and_figures(whole: Path) -> None:
    assert set(files(whole / "tiny")) == {
        "settings.json",
        "results.jsonl",
        "summary.json",
        "values.png",
        "values.svg",
    }
    assert set(results(whole)) == {(f"shift {n}", seed) for n in range(3) for seed in range(4)}
    content = summary(whole)
    assert content["id"] == "tiny"
    assert content["seeds"] == 4
    assert content["settings"] == TINY.settings
    assert content["command"] == "ezgreedy reproduce tiny"
    assert content["figures"] == ["values.png", "values.svg"]
    (claim,) = content["claims"]
    assert claim["readings"] == {"as stated": "holds"}
    assert claim["verdict"] is None, "four seeds are too few"
    assert claim["numbers"]["cells"] == 3
    interval = claim["numbers"]["shift 2"]
    assert interval["low"] < interval["value"] < interval["high"]
    assert 2 < interval["value"] < 3


def test_results_depend_neither_on_processes_nor_on_the_order_of_jobs(
    whole: Path, tmp_path: Path
) -> None:
    experiment = tiny(meeting=str(tmp_path / "meeting"))
    assert reproduce([experiment], Plan(tmp_path, num_processes=2)) == 0
    assert results(tmp_path) == results(whole)
    stored = read_results(tmp_path / "tiny" / "results.jsonl")
    assert (stored[0]["cell"], stored[0]["seed"]) != ("shift 0", 0), "the first job came first"
    assert summary(tmp_path)["claims"] == summary(whole)["claims"]
    assert summary(tmp_path)["data"] == summary(whole)["data"]
    for figure in ("values.png", "values.svg"):
        assert files(tmp_path / "tiny")[figure] == files(whole / "tiny")[figure]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupted_run_continues_to_the_same_summary(
    whole: Path, tmp_path: Path, processes: int
) -> None:
    run = start(tmp_path, processes, 0.2)
    wait_for_results(tmp_path, 2)
    os.killpg(run.pid, signal.SIGINT)  # as Ctrl-C does: to all processes of the group
    _, told = run.communicate(timeout=10)
    assert run.returncode == 130
    assert "--resume" in told
    assert "Traceback" not in told
    wait_for_empty_group(run.pid)
    early = results(tmp_path)
    assert 2 <= len(early) < 12
    assert not (tmp_path / "tiny" / "summary.json").exists()

    stored = (tmp_path / "tiny" / "results.jsonl").read_bytes()
    run = start(tmp_path, processes, 0.2, "--resume")
    _, told = run.communicate(timeout=30)
    assert run.returncode == 0, told
    assert (tmp_path / "tiny" / "results.jsonl").read_bytes().startswith(stored)
    assert results(tmp_path) == results(whole)
    assert summary(tmp_path)["claims"] == summary(whole)["claims"]


@pytest.mark.parametrize("delay", [0.0, 0.2, 0.4])
def test_an_interruption_while_processes_start_is_as_quiet(tmp_path: Path, delay: float) -> None:
    run = start(tmp_path, 2, 0.5)
    wait_for_results(tmp_path, 0)
    time.sleep(delay)
    os.killpg(run.pid, signal.SIGINT)
    _, told = run.communicate(timeout=10)
    assert run.returncode == 130
    assert told == (
        "tiny: 0 of 12 jobs done\n"
        "stopped; finished jobs are kept: the same command with --resume continues\n"
    )
    wait_for_empty_group(run.pid)


def test_killing_a_run_takes_its_processes_along_and_keeps_its_results(
    whole: Path, tmp_path: Path
) -> None:
    run = start(tmp_path, 2, 0.2)
    wait_for_results(tmp_path, 2)
    run.kill()
    run.communicate(timeout=10)
    wait_for_empty_group(run.pid)
    assert reproduce([tiny(pause=0.2)], Plan(tmp_path, resumes=True, num_processes=2)) == 0
    assert results(tmp_path) == results(whole)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("raise", "shift 1, seed 1: ArithmeticError: the sum diverged (tiny_experiment.py, line"),
        ("nan", "shift 1, seed 1: a result that cannot be stored: record['result']['value'] must"),
    ],
)
def test_a_failing_job_is_named_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], processes: int, trouble: str, message: str
) -> None:
    experiments = [tiny(trouble=trouble), replace(TINY, id="other")]
    assert reproduce(experiments, Plan(tmp_path, num_processes=processes)) == 1
    assert message in capsys.readouterr().err
    assert len(results(tmp_path)) == 11
    assert not (tmp_path / "tiny" / "summary.json").exists()
    assert (tmp_path / "other" / "summary.json").exists()


def test_failed_jobs_are_run_again_on_resume(whole: Path, tmp_path: Path) -> None:
    failing = tiny(trouble="raise")
    assert reproduce([failing], Plan(tmp_path)) == 1
    mended = replace(failing, run_seed=_untroubled)
    assert reproduce([mended], Plan(tmp_path, resumes=True)) == 0
    assert results(tmp_path) == results(whole)


def _untroubled(settings: Any, seed: int) -> Any:
    return TINY.run_seed({**settings, "trouble": ""}, seed)


def test_a_worker_that_dies_ends_the_run_with_its_results_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce([tiny(trouble="exit", pause=0.02)], Plan(tmp_path, num_processes=2)) == 1
    assert "a worker process died" in capsys.readouterr().err
    assert 0 < len(results(tmp_path)) < 12


def test_resuming_a_whole_run_runs_nothing(whole: Path) -> None:
    before = files(whole / "tiny")
    assert reproduce([TINY], Plan(whole, resumes=True)) == 0
    assert files(whole / "tiny") == before


def test_resuming_with_more_seeds_adds_them_and_with_fewer_leaves_them_out(
    whole: Path, tmp_path: Path
) -> None:
    assert reproduce([TINY], Plan(tmp_path, num_seeds=2)) == 0
    assert summary(tmp_path)["command"] == "ezgreedy reproduce tiny --seeds 2"
    few = summary(tmp_path)
    assert reproduce([TINY], Plan(tmp_path, resumes=True)) == 0
    assert results(tmp_path) == results(whole)
    assert summary(tmp_path) == summary(whole)
    assert reproduce([TINY], Plan(tmp_path, num_seeds=2, resumes=True)) == 0
    assert summary(tmp_path) == few


def test_resuming_where_nothing_is_begins(whole: Path, tmp_path: Path) -> None:
    assert reproduce([TINY], Plan(tmp_path / "new", resumes=True)) == 0
    assert summary(tmp_path / "new") == summary(whole)


def test_a_quick_look_is_smaller(tmp_path: Path) -> None:
    assert reproduce([TINY], Plan(tmp_path, scale="quick")) == 0
    assert set(results(tmp_path)) == {("shift 0", 0), ("shift 1", 0)}
    assert summary(tmp_path)["command"] == "ezgreedy reproduce tiny --quick"


def test_a_thorough_run_continues_a_default_one_and_compares_the_two(
    whole: Path, tmp_path: Path
) -> None:
    thorough = replace(TINY, num_thorough_seeds=6)
    assert reproduce([thorough], Plan(tmp_path)) == 0
    before = (tmp_path / "tiny" / "results.jsonl").read_bytes()
    assert "tables" not in summary(tmp_path)
    assert reproduce([thorough], Plan(tmp_path, scale="thorough", resumes=True)) == 0
    assert (tmp_path / "tiny" / "results.jsonl").read_bytes().startswith(before)
    found, default = summary(tmp_path), summary(whole)
    assert (found["seeds"], found["command"]) == (6, "ezgreedy reproduce tiny --thorough")
    (table,) = found["tables"]
    assert table["columns"][2:] == ["4 seeds", "all 6 seeds"]
    rows = {row[1]: row[2:] for row in table["rows"]}
    numbers = [content["claims"][0]["numbers"] for content in (default, found)]
    assert rows["shift 0"] == [number["shift 0"] for number in numbers]
    assert rows["shift 0"][0] != rows["shift 0"][1]
    assert rows["verdict"][1] == found["claims"][0]["verdict"]


def test_without_a_number_of_its_own_a_thorough_run_has_the_default_seeds() -> None:
    assert TINY.num_seeds_at("thorough") == TINY.num_seeds
    assert TINY.settings_at("thorough") == TINY.settings
    with pytest.raises(ValueError, match="num_thorough_seeds must be at least 4; got 3"):
        replace(TINY, num_thorough_seeds=3)


def refused(plan: Plan, message: str, experiment: Any = TINY) -> None:
    """The plan is refused with this message, and nothing of what is there changes."""
    before = {file: file.read_bytes() for file in plan.out.rglob("*") if file.is_file()}
    with pytest.raises(ValueError, match=message):
        reproduce([replace(TINY, id="first"), experiment], plan)
    assert {file: file.read_bytes() for file in plan.out.rglob("*") if file.is_file()} == before
    assert not (plan.out / "first").exists()


def test_existing_results_are_not_overwritten(whole: Path) -> None:
    refused(Plan(whole), "already holds 12 results; continue them with --resume")


def test_other_settings_are_not_mixed_into_a_run(whole: Path) -> None:
    plan = Plan(whole, resumes=True)
    refused(plan, "its pause was 0.0 and is now 0.5", tiny(pause=0.5))
    refused(plan, "its extra is new", tiny(extra=1))
    refused(Plan(whole, scale="quick", resumes=True), r"its shifts was \[0, 1, 2\]")


@pytest.mark.parametrize("resumes", [False, True])
def test_directories_of_something_else_are_left_alone(tmp_path: Path, resumes: bool) -> None:
    plan = Plan(tmp_path, resumes=resumes)
    directory = tmp_path / "tiny"
    directory.mkdir()
    (directory / "thesis.txt").write_text("ten years")
    refused(plan, "holds files but no settings.json")
    (directory / "settings.json").write_text('{"colour": "blue"}')
    refused(plan, "is not the settings of an experiment")
    (directory / "settings.json").write_text('{"id": "huge", "version": "1", "settings": {}}')
    refused(plan, "holds the experiment 'huge'")
    refused(Plan(directory, resumes=resumes), "holds the experiment 'huge'")
    refused(Plan(directory / "thesis.txt"), "--out must be a directory")


def test_the_draft_of_a_killed_run_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / ".settings.json.17.draft").write_text("{")
    assert reproduce([TINY], Plan(tmp_path, num_seeds=1)) == 0


def test_damaged_results_are_refused(tmp_path: Path) -> None:
    assert reproduce([TINY], Plan(tmp_path, num_seeds=1)) == 0
    path = tmp_path / "tiny" / "results.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"seed":0', b'"seed":7', 1))
    refused(Plan(tmp_path, resumes=True), r"results\.jsonl, line 1: damaged")


def test_an_unfinished_last_line_is_run_again(whole: Path, tmp_path: Path) -> None:
    assert reproduce([TINY], Plan(tmp_path)) == 0
    path = tmp_path / "tiny" / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-10])
    assert reproduce([TINY], Plan(tmp_path, resumes=True)) == 0
    assert results(tmp_path) == results(whole)


@pytest.mark.parametrize("changes", [{"num_seeds": 0}, {"num_processes": 0}, {"num_seeds": -1}])
def test_no_seeds_and_no_processes_are_refused(tmp_path: Path, changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        Plan(tmp_path, **changes)  # type: ignore[arg-type]
