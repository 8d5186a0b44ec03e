"""Deep agents in the report: numbers of runs by hand, what is averaged with what, and the words."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ezgreedy.cli import main
from ezgreedy.experiments.paper.fig1_gridworld_coverage import EXPERIMENT
from ezgreedy.figures import colours
from ezgreedy.findings.intervals import Interval
from ezgreedy.findings.panels import Panel
from ezgreedy.findings.training_scores import training_scores
from ezgreedy.report import deep_curves
from ezgreedy.report.deep import PUBLISHED_DQN, DeepStudy, GameStudy, Row, read_deep_study
from ezgreedy.report.wording import plain
from ezgreedy.results.runs import not_begun, run_directories
from support.written_runs import write_run


def study_of(directory: Path) -> DeepStudy:
    return read_deep_study(sorted(path for path in directory.iterdir() if path.is_dir()))


def only_game(directory: Path) -> GameStudy:
    (game,) = study_of(directory).games
    return game


def only_panel(directory: Path) -> Panel:
    (panel,) = deep_curves.panels(only_game(directory))
    return panel


def only_row(directory: Path) -> Row:
    (row,) = only_game(directory).rows
    return row


def test_the_numbers_of_a_row_are_those_that_a_hand_computes(tmp_path: Path) -> None:
    scores = [(0, 0.0), (100_000, 9.0), (200_000, 3.0), (300_000, 4.0), (400_000, 8.0)]
    reports = [
        (300_000, 90, 100.0, 0.5),  # before the last 100K frames: no part of the return
        (350_000, 30, 2.0, 0.25),
        (390_000, 0, None, 0.25),
        (400_000, 10, 6.0, 0.0),
    ]
    write_run(tmp_path / "run", scores, reports, frames=400_000)
    row = only_row(tmp_path)
    assert row.final == 8.0
    assert row.best == 9.0
    assert row.training == (30 * 2.0 + 10 * 6.0) / 40
    assert row.explored == 0.25
    assert all(run.is_finished for run in row.group.runs)


def test_an_interval_needs_three_seeds(tmp_path: Path) -> None:
    for seed, score in enumerate((1.0, 2.0, 6.0)):
        write_run(tmp_path / f"run-{seed}", [(0, score)], seed=seed)
        final = only_row(tmp_path).final
        if seed < 2:
            assert final == [1.0, 1.5][seed]
    assert isinstance(final, Interval)
    assert final.value == 3.0
    # Student's t with two degrees of freedom: 4.303 · √7 / √3 on either side.
    assert (final.low, final.high) == pytest.approx((3.0 - 6.5727, 3.0 + 6.5727), abs=1e-3)


@pytest.mark.parametrize("num_long", [3, 5])
def test_shorter_finished_runs_count_where_long_ones_are_too_few(
    tmp_path: Path, num_long: int
) -> None:
    every = [(100_000 * i, float(i)) for i in range(6)]
    for agent, extra in (("rainbow-eps", 0.0), ("rainbow-ez", 1.0)):
        for seed in range(7):
            until = 5 if seed < num_long else 2
            scores = [(frames, score + extra + seed / 10) for frames, score in every[: until + 1]]
            planned = 500_000 if seed == 6 else until * 100_000  # the last one is unfinished
            write_run(tmp_path / f"{agent}-{seed}", scores, agent=agent, seed=seed, frames=planned)
    (answer,) = [answer for answer in only_game(tmp_path).answers if "higher" in answer.question]
    frames, seeds = (200_000, 6) if num_long == 3 else (500_000, 5)
    assert f"at {plain(frames)} frames, {seeds} seeds of each" in answer.because
    assert answer.verdict == "yes"


def test_final_is_the_last_evaluation_alone_as_over_suites(tmp_path: Path) -> None:
    finals = []
    for length in range(1, 6):
        scores = [(100_000 * i, 10.0**i) for i in range(length)]
        write_run(tmp_path / str(length) / "run", scores)
        row = only_row(tmp_path / str(length))
        finals.append(row.final)
        assert training_scores(row.group.runs).final.values == [[row.final]]
    assert finals == [1.0, 10.0, 100.0, 1000.0, 10_000.0]


def test_runs_with_as_many_evaluations_at_other_frames_are_not_averaged(tmp_path: Path) -> None:
    for seed, last in enumerate((500_000, 600_000, 600_008)):
        scores = [(0, 0.0), (200_000, 1.0), (400_000, 2.0), (last, last / 1e5)]
        write_run(tmp_path / f"{seed}", scores, frames=last // 1000 * 1000, seed=seed)
    group = only_row(tmp_path).group
    assert [run.seed for run in group.runs] == [1, 2]
    assert [run.seed for run in group.behind] == [0]


def test_runs_that_are_behind_are_counted_and_not_averaged(tmp_path: Path) -> None:
    scores = [(0, 0.0), (100_000, 4.0)]
    for seed in range(2):
        write_run(tmp_path / f"ahead-{seed}", scores, seed=seed)
    write_run(tmp_path / "behind", [(0, 1000.0)], seed=2)
    row = only_row(tmp_path)
    assert (row.final, row.best) == (4.0, 4.0)
    assert (len(row.group.runs), len(row.group.behind)) == (2, 1)
    block = only_panel(tmp_path).as_json()
    assert block["series"][0]["label"] == "rainbow, 2 of 3 seeds"
    assert block["series"][0]["mean"] == [0, 4]


def test_the_same_run_twice_counts_once_as_far_as_it_came(tmp_path: Path) -> None:
    early = write_run(tmp_path / "a" / "run", [(0, 1.0)])
    late = write_run(tmp_path / "b" / "run", [(0, 1.0), (100_000, 5.0)], frames=2_000_000)
    for order in ([early, late], [late, early]):
        study = read_deep_study(order)
        assert [run.path for run in study.runs] == [late]
        assert study.left_out == ["a/run: the same run as b/run, which has as much or more"]
    assert read_deep_study([late, late]).left_out == []
    copy = shutil.copytree(late, tmp_path / "c" / "run")
    told = ["c/run: the same run as b/run, which has as much or more"]
    assert read_deep_study([late, copy]).left_out == told


def test_runs_without_an_evaluation_are_left_out_by_name(tmp_path: Path) -> None:
    write_run(tmp_path / "fresh", [])
    study = study_of(tmp_path)
    assert (study.games, study.left_out) == ([], ["fresh: no evaluation yet"])


def write_sweep(path: Path, runs: list[tuple[str, str, str, int]]) -> None:
    """A sweep.json that names runs as (agent, variant, game, seed), their place being their id."""
    path.mkdir(exist_ok=True)
    names = ("agent", "variant", "game", "seed")
    entries = {str(place): dict(zip(names, run, strict=True)) for place, run in enumerate(runs)}
    (path / "sweep.json").write_text(json.dumps({"runs": entries}))


def test_what_a_sweep_has_not_begun_is_left_out_by_name(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    rainbows = [("rainbow", "", game, seed) for game in ("Pong", "Venture") for seed in (0, 1)]
    write_sweep(sweep, [*rainbows, ("r2d2-ez", "zeta2", "Pong", 0)])
    write_run(sweep / "runs" / "0", [(0, 1.0)], game="Pong")
    study = read_deep_study([sweep, sweep])
    assert [run.path.name for run in study.runs] == ["0"]
    assert study.left_out == [
        "sweep: 3 runs of rainbow not begun (Pong seed 1; Venture seeds 0, 1)",
        "sweep: 1 run of r2d2-ez zeta2 not begun (Pong seed 0)",
    ]


def test_sweeps_below_a_directory_are_not_left_out(tmp_path: Path) -> None:
    write_run(tmp_path / "alone", [(0, 1.0)], game="Pong")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write_sweep(tmp_path / name, [("rainbow", "", "Pong", 0), ("rainbow", "", "Pong", 1)])
        write_run(tmp_path / name / "runs" / "0", [(0, 1.0)], game="Pong")
    names = [path.relative_to(tmp_path).as_posix() for path in run_directories(tmp_path)]
    assert names == ["alone", "first/runs/0", "second/runs/0"]
    assert not_begun(tmp_path) == {"rainbow": [("Pong", 1), ("Pong", 1)]}


def test_a_damaged_sweep_is_refused_by_its_file(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "0", [(0, 1.0)])
    (tmp_path / "sweep.json").write_text('{"runs": {"1": {}}}')
    with pytest.raises(ValueError, match=r"sweep\.json was not made by ezgreedy sweep"):
        read_deep_study([tmp_path])


def test_other_settings_are_never_averaged_over(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [(0, 1.0)], agent__hidden_size=32)
    write_run(tmp_path / "b", [(0, 3.0)], agent__hidden_size=64)
    rows = only_game(tmp_path).rows
    assert [(row.group.label, row.final) for row in rows] == [
        ("rainbow (hidden_size 32)", 1.0),
        ("rainbow (hidden_size 64)", 3.0),
    ]
    block = only_panel(tmp_path).as_json()
    own, other, _ = [series["colour"] for series in block["series"]]
    assert own == colours.AGENT_COLOURS["rainbow"]
    assert other != own


@pytest.mark.parametrize(
    ("frames", "training", "verdict"),
    [
        (1_000_000, 9.0, "yes"),
        (1_000_000, 0.95 * 9.0, "yes"),  # as near as a figure can be read
        (1_000_000, 8.5, "no"),
        (900_000, 20.0, "open"),
    ],
)
def test_published_figures_are_met_in_training_at_a_million_frames(
    tmp_path: Path, frames: int, training: float, verdict: str
) -> None:
    # What comes after a million frames, and how it is evaluated, is beside the question.
    reports = [(frames, 5, training, 0.0)]
    reports += [(2_000_000, 5, 1000.0, 0.0)] if frames == 1_000_000 else []
    for seed in range(5):
        write_run(tmp_path / f"run-{seed}", [(0, 500.0)], reports, seed=seed)
    (answer,) = only_game(tmp_path).answers
    assert answer.verdict == verdict
    assert answer.question.startswith("Does rainbow reach the published DQN figure (about 9 ")


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([(999_999, 3.0), (1_000_010, 7.0), (1_200_000, 9.0)], "Evaluated there: 7 [–]."),
        ([(0, 3.0), (900_000, 7.0)], "Evaluated there: –."),
        ([(900_000, 7.0), (1_200_000, 9.0)], "Evaluated there: –."),
    ],
)
def test_with_published_figures_stands_the_evaluation_at_a_million_frames(
    tmp_path: Path, scores: list[tuple[int, float]], words: str
) -> None:
    write_run(tmp_path / "run", scores, [(1_000_000, 5, 20.0, 0.0)])
    (answer,) = only_game(tmp_path).answers
    assert answer.because.endswith(f"{words} An answer needs 5 seeds.")
    assert answer.verdict == "open"


def test_a_figure_met_on_average_only_is_told_as_such(tmp_path: Path) -> None:
    for seed, training in enumerate((2.0, 20.0, 20.0, 2.0, 20.0)):
        write_run(tmp_path / str(seed), [(0, 0.0)], [(1_000_000, 5, training, 0.0)], seed=seed)
    (answer,) = only_game(tmp_path).answers
    assert answer.verdict == "open"
    assert "; the mean does, the interval reaches below." in answer.because


@pytest.mark.parametrize(
    ("shift", "verdict"), [(10.0, "yes"), (-10.0, "no"), (0.5, "open")], ids=["above", "below", "?"]
)
def test_policies_are_compared_at_frames_that_both_have_played(
    tmp_path: Path, shift: float, verdict: str
) -> None:
    for seed in range(5):
        # Half a million frames, and more: 400K is the last that both were evaluated at.
        scores = [(0, 0.0), (200_000, 99.0), (400_000, float(seed)), (500_000, 1000.0)]
        place = tmp_path / f"eps-{seed}"
        write_run(place, scores, agent="rainbow-eps", game="Pong", seed=seed)
        scores = [(0, 0.0), (200_000, 0.0), (400_008, seed + shift), (600_000, -1000.0)]
        write_run(tmp_path / f"ez-{seed}", scores, agent="rainbow-ez", game="Pong", seed=seed)
    (answer,) = only_game(tmp_path).answers
    assert answer.question == "Does rainbow-ez score higher than rainbow-eps?"
    assert answer.verdict == verdict
    assert answer.because.startswith(f"Difference: {shift:g}".replace("-", "−"))
    assert f"at {plain(400_000)} frames" in answer.because


def test_three_seeds_answer_nothing(tmp_path: Path) -> None:
    for seed in range(3):
        for agent, score in (("rainbow-eps", 0.0), ("rainbow-ez", 100.0)):
            scores = [(0, 0.0), (100_000, score + 0.1 * seed)]
            write_run(tmp_path / f"{agent}-{seed}", scores, agent=agent, game="Pong", seed=seed)
    (answer,) = only_game(tmp_path).answers
    assert answer.verdict == "open"
    assert answer.because.endswith("An answer needs 5 seeds.")


def test_the_same_question_in_many_games_is_corrected(tmp_path: Path) -> None:
    # p = 0.04 in Pong alone; with four games in which nothing differs, 0.2.
    names = ["Pong", "Boxing", "Krull", "Hero", "Alien"]
    for game in names:
        for seed in range(5):
            shift = 2.47 if game == "Pong" else 0.0
            for agent, more in (("rainbow-eps", 0.0), ("rainbow-ez", shift)):
                scores = [(0, 0.0), (100_000, seed + more)]
                place = tmp_path / f"{game}-{agent}-{seed}"
                write_run(place, scores, agent=agent, game=game, seed=seed)
    games = {game.name: game for game in study_of(tmp_path).games}
    (pong,) = games["Pong"].answers
    assert pong.p == pytest.approx(0.04, abs=0.005)
    assert pong.verdict == "open"
    assert pong.because.endswith("p = 0.19, corrected for 5 games.")


def test_policies_that_share_no_evaluation_in_training_are_not_compared(tmp_path: Path) -> None:
    scores = {"rainbow-eps": [(0, 0.0), (200_000, 1.0)], "rainbow-ez": [(0, 0.0), (300_000, 2.0)]}
    for agent, own in scores.items():
        for seed in range(3):
            place = tmp_path / f"{agent}-{seed}"
            write_run(place, own, agent=agent, game="Pong", seed=seed)
    (answer,) = only_game(tmp_path).answers
    assert answer.verdict == "open"
    assert answer.because == "They share no evaluation in training at the same frames."


def test_neighbouring_reports_are_joined_by_their_episodes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    episodes = rng.integers(0, 4, size=400)
    returns = rng.normal(size=400)
    reports = [
        (1000 * (i + 1), int(n), float(value) if n else None, 0.0)
        for i, (n, value) in enumerate(zip(episodes, returns, strict=True))
    ]
    write_run(tmp_path / "run", [(0, 0.0)], reports)
    frames, values = deep_curves.training_points(only_row(tmp_path).group)
    assert frames.shape == values.shape == (1, 134)
    for point in range(134):
        joined = slice(3 * point, 3 * point + 3)
        assert frames[0, point] == reports[joined][-1][0]
        weights = episodes[joined]
        expected = np.average(returns[joined], weights=weights) if weights.any() else np.nan
        assert values[0, point] == pytest.approx(expected, nan_ok=True)


def test_bands_are_over_seeds_and_references_are_marked(tmp_path: Path) -> None:
    for seed in range(5):
        write_run(tmp_path / f"run-{seed}", [(0, 1.0), (100_000, float(seed))], seed=seed)
    block = only_panel(tmp_path).as_json()
    curve, reference = block["series"]
    # Student's t with four degrees of freedom: 2.776 · √2.5 / √5 on either side of 2.
    assert (curve["mean"], curve["low"], curve["high"]) == ([1, 2], [1, 0.03676], [1, 3.963])
    assert curve["x"] == [0, 0.1]
    assert reference["is_reference"] is True
    assert reference["mean"] == [PUBLISHED_DQN["minatar/breakout"]] * 2
    assert reference["colour"] == colours.REFERENCE_COLOUR


def test_bands_of_parallel_runs_have_one_width(tmp_path: Path) -> None:
    for seed, above in enumerate((0.0, 4.0, 16.0, 60.0, 20.0)):  # means are whole
        scores = [(100_000 * point, 10.0 * point + above) for point in range(40)]
        write_run(tmp_path / f"run-{seed}", scores, seed=seed)
    block = only_panel(tmp_path).as_json()
    mean, low, high = (np.array(block["series"][0][name]) for name in ("mean", "low", "high"))
    assert np.ptp(mean - low) < 0.1 < (mean - low)[0]
    assert np.ptp(high - mean) < 0.1 < (high - mean)[0]


def test_figures_are_the_same_bytes_every_time(runs: Path) -> None:
    game = only_game(runs)
    text = deep_curves.figure_svg(game)
    assert text == deep_curves.figure_svg(game)
    assert text.count("<svg") == 1


def test_a_page_takes_any_mix_and_the_same_numbers_come_out(
    out: Path, runs: Path, tmp_path: Path
) -> None:
    assert main(["collect", str(runs), "--out", str(tmp_path / "kept")]) == 0
    shutil.copytree(out, tmp_path / "out")
    documents = []
    for index, sources in enumerate(
        [[runs], [tmp_path / "kept"], sorted(runs.iterdir()), [runs, tmp_path / "kept"]]
    ):
        to = ["--to", str(tmp_path / f"{index}.html"), "--markdown", str(tmp_path / f"{index}.md")]
        assert main(["report", str(tmp_path / "out"), *map(str, sources), *to]) == 0
        assert f"### {EXPERIMENT.id}" in (tmp_path / f"{index}.md").read_text(encoding="utf-8")
        text = (tmp_path / "out" / "deep-agents.md").read_text(encoding="utf-8")
        documents.append([line for line in text.splitlines() if line.startswith("| minatar/")])
        assert 'id="deep-minatar-breakout"' in (tmp_path / f"{index}.html").read_text()
    assert [line.split(" | ")[1] for line in documents[0]] == ["rainbow-eps", "rainbow-ez"]
    assert all(document == documents[0] for document in documents)


def test_runs_alone_make_a_page_without_verdicts(runs: Path, tmp_path: Path) -> None:
    targets = ["--to", str(tmp_path / "p.html"), "--markdown", str(tmp_path / "p.md")]
    assert main(["report", str(runs), *targets]) == 0
    assert 'id="verdicts"' not in (tmp_path / "p.html").read_text()
    assert "claims" not in (tmp_path / "p.md").read_text()
    assert "# Training runs" in (tmp_path / "p.md").read_text()


def test_what_explains_the_table_of_scores_does_not_scroll_with_it(
    runs: Path, tmp_path: Path
) -> None:
    assert main(["report", str(runs), "--to", str(tmp_path / "p.html")]) == 0
    section = (tmp_path / "p.html").read_text().partition('<section id="scores"')[2]
    above, _, scrolling = section.partition('<div class="scroll')
    assert '<p class="note" id="scores-told">Final is each run’s last evaluation' in above
    assert 'aria-describedby="scores-told"' in scrolling.partition("</table>")[0]
    assert '<caption class="unseen">Scores by game and agent</caption>' in scrolling


def test_collections_beside_experiments_are_found(out: Path, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(out, tmp_path / "results")
    assert main(["collect", str(runs), "--out", str(tmp_path / "results" / "deep")]) == 0
    document = tmp_path / "R.md"
    assert main(["report", str(tmp_path / "results"), "--markdown", str(document)]) == 0
    assert "### Deep agents" in document.read_text(encoding="utf-8")
    # Only what says that it is a collection: a directory of others is nobody's business here.
    (tmp_path / "results" / "deep" / "collection.json").unlink()
    assert main(["report", str(tmp_path / "results"), "--markdown", str(document)]) == 0
    assert "### Deep agents" not in document.read_text(encoding="utf-8")


def test_bad_sources_are_refused_in_one_line(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write_run(tmp_path / "good", [(0, 1.0)])
    foreign, damaged, half = (tmp_path / name for name in ("foreign", "damaged", "half"))
    for directory in (foreign, damaged, half):
        shutil.copytree(good, directory)
    (foreign / "config.json").write_text(json.dumps({"settings": {"agent": "x"}}))
    (damaged / "results.jsonl").write_text('{"kind": "evaluation"}\n')
    (half / "config.json").write_text("{")
    twin = tmp_path / "twin"
    shutil.copytree(out, twin)
    (tmp_path / "empty").mkdir()
    for sources, message in (
        ([good, foreign], "foreign/config.json was not made by ezgreedy train"),
        ([good, damaged], "damaged/results.jsonl, line 1: damaged"),
        ([good, half], "half/config.json is damaged: not JSON"),
        ([good, tmp_path / "empty"], "holds no summaries (*/summary.json) and no runs"),
        ([good, tmp_path / "absent"], "OUT must be a directory"),
        ([out, twin], f"{EXPERIMENT.id} is there twice: "),
    ):
        page = tmp_path / "page.html"
        assert main(["report", *map(str, sources), "--to", str(page)]) == 2
        told = capsys.readouterr().err
        assert message in told
        assert told.count("\n") == 1
        assert not page.exists()


def test_runs_are_reported_where_nothing_can_be_trained(runs: Path, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in {'torch', 'ale_py', 'minatar', 'safetensors'}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from ezgreedy.cli import main\n"
        f"assert main(['collect', {str(runs)!r}, '--out', {str(tmp_path / 'kept')!r}]) == 0\n"
        f"sys.exit(main(['report', {str(tmp_path / 'kept')!r}]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "kept" / "report.html").exists()
