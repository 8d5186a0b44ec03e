"""`ezgreedy report` on the command line: what it writes, and what it refuses."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ezgreedy.cli import main
from ezgreedy.experiments.paper.fig1_gridworld_coverage import EXPERIMENT
from ezgreedy.report import wording
from ezgreedy.report.markdown import OWN_PAGE

FIG1 = EXPERIMENT.id


@pytest.fixture
def copy(out: Path, tmp_path: Path) -> Path:
    """Results that a test may damage."""
    shutil.copytree(out, tmp_path / "out")
    return tmp_path / "out"


def verdict_of(claim: dict[str, Any]) -> str:
    return wording.VERDICT_WORDS[claim["verdict"]] if claim["verdict"] else wording.NO_VERDICT


def test_the_document_has_every_claim_and_a_paragraph_and_a_figure_for_each_experiment(
    copy: Path, tmp_path: Path, summaries: dict[str, Any]
) -> None:
    file = tmp_path / "REPRODUCTION.md"
    assert main(["report", str(copy), "--markdown", str(file)]) == 0
    lines = file.read_text(encoding="utf-8").splitlines()
    ours = (copy / OWN_PAGE).read_text(encoding="utf-8").splitlines()
    for name, summary in summaries.items():
        start = lines.index(f"### {name}")
        assert f"`{summary['command']}`" in lines[start + 1]
        assert f"(out/{name}/README.md)" in lines[start + 1]
        assert lines[start + 3].endswith(f"(out/{name}/{summary['figures'][1]})")
        for claim in summary["claims"]:
            is_ours = claim["source"] == "ours"
            table, place = (ours, name) if is_ours else (lines, f"out/{name}")
            (row,) = (line for line in table if line.startswith(f"| {claim['claim']} |"))
            assert f"[{name}]({place}/README.md)" in row
            assert f"| **{verdict_of(claim)}** | {claim['seeds']} |" in row
            numbers = row.split(" | ")[2].split("<br>")
            assert len(numbers) - (len(claim["readings"]) > 1) <= 3
    for line in lines:
        for target in re.findall(r"\]\(([^)]+)\)", line):
            assert (tmp_path / target).exists(), target


def test_an_experiment_s_page_tells_every_claim_number_and_verdict(
    copy: Path, tmp_path: Path, summaries: dict[str, Any]
) -> None:
    assert main(["report", str(copy), "--markdown", str(tmp_path / "R.md")]) == 0
    for name, summary in summaries.items():
        lines = (copy / name / "README.md").read_text(encoding="utf-8").splitlines()
        assert f"- Command: `{summary['command']}`" in lines
        for claim in summary["claims"]:
            start = lines.index(f"## {claim['claim']}")
            told = f"**{verdict_of(claim).capitalize()}.** {claim['note']}".rstrip()
            assert lines[start + 2] == told
            source = claim["source"].removeprefix("paper, ")
            source = source if source != "ours" else "ours, not the paper's"
            assert lines[start + 4] == f"- Source: {source}"
            assert lines[start + 5].startswith(f"- Criterion: {claim['criterion']}")
            for key, number in claim["numbers"].items():
                value = number["value"] if isinstance(number, dict) else number
                row = next(line for line in lines[start:] if line.startswith(f"| {key} | "))
                shown = row.split(" | ")[1].split(" ")[0].strip(" |")
                assert float(shown.replace(wording.NARROW_SPACE, "")) == pytest.approx(
                    value, rel=0.05, abs=1e-6
                )


def test_a_foreign_page_beside_the_results_is_not_replaced(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy / FIG1 / "README.md").write_text("mine")
    assert main(["report", str(copy), "--markdown", str(tmp_path / "R.md")]) == 2
    assert "--markdown must be a new file or an earlier report" in capsys.readouterr().err
    assert not (tmp_path / "R.md").exists()


def test_the_same_summaries_give_the_same_files(copy: Path, tmp_path: Path) -> None:
    for directory in ("a", "b"):
        targets = ["--to", str(tmp_path / directory / "page.html")]
        targets += ["--markdown", str(tmp_path / directory / "R.md")]
        assert main(["report", str(copy), *targets]) == 0
    for name in ("page.html", "R.md"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_document_alone_leaves_the_page_alone(copy: Path) -> None:
    (copy / "report.html").unlink()
    assert main(["report", str(copy), "--markdown", str(copy / "R.md")]) == 0
    assert not (copy / "report.html").exists()
    assert main(["report", str(copy)]) == 0
    assert main(["report", str(copy)]) == 0, "an earlier page may be replaced"


def test_experiments_without_a_summary_are_named_as_not_run(copy: Path) -> None:
    (copy / FIG1 / "summary.json").unlink()
    assert main(["report", str(copy), "--markdown", str(copy / "R.md")]) == 0
    text = (copy / "R.md").read_text() + (copy / OWN_PAGE).read_text()
    assert text.count(f"`ezgreedy reproduce {FIG1}` | not run |") == 4
    assert main(["report", str(copy)]) == 0
    page = (copy / "report.html").read_text(encoding="utf-8")
    assert '<span class="chip not-run">not run</span>' in page
    assert f"<code>ezgreedy reproduce {FIG1}</code>" in page


def unsealed(text: str) -> dict[str, Any]:
    """A summary without its checksum, which would refuse any change before the rest is read."""
    return {name: value for name, value in json.loads(text).items() if name != "sha256"}


def changed(**changes: Any) -> Callable[[str], str]:
    return lambda text: json.dumps({**unsealed(text), **changes})


def claim_with(**changes: Any) -> Callable[[str], str]:
    def damaged(text: str) -> str:
        summary = unsealed(text)
        summary["claims"][0] |= changes
        return json.dumps(summary)

    return damaged


def without(name: str) -> Callable[[str], str]:
    return lambda text: json.dumps({k: v for k, v in unsealed(text).items() if k != name})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "is not the summary of an experiment: "),
        (lambda text: "[]", "is not the summary of an experiment: "),
        (without("claims"), "'claims' is missing"),
        (without("command"), "'command' is missing"),
        (changed(id="other"), "is the summary of another experiment, 'other'"),
        (changed(seeds=0), "seeds must be at least 1; got 0"),
        (changed(seconds="long"), "seconds must be a number"),
        (changed(title=None), "title must be words"),
        (changed(claims=[{"claim": "x"}]), "'source' is missing"),
        (claim_with(readings={"a": "maybe"}), "side must be one of"),
        (claim_with(readings={}), "readings must hold at least one"),
        (claim_with(source="a blog"), "source must be 'ours' or begin with"),
        (changed(figures=["absent.svg"]), "names a figure that is not there: absent.svg"),
        (changed(data={"interactive": [{"kind": "pie"}]}), "kind must be one of"),
        (changed(data={"interactive": [{"kind": "maps"}]}), "is missing"),
    ],
)
def test_damaged_summaries_are_refused_in_one_line(
    copy: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[str], str],
    message: str,
) -> None:
    path = copy / FIG1 / "summary.json"
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    before = (copy / "report.html").read_bytes()
    capsys.readouterr()
    assert main(["report", str(copy), "--to", str(copy / "report.html")]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert str(path) in told
    assert told.count("\n") == 1
    assert (copy / "report.html").read_bytes() == before


def test_directories_without_summaries_are_refused(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for directory, message in (
        (tmp_path, "holds no summaries"),
        (tmp_path, "nor any coverage (coverage.json or */coverage.json); `ezgreedy reproduce`"),
        (tmp_path / "absent", "OUT must be a directory that `ezgreedy reproduce` or `ezgreedy cov"),
        (out / FIG1, "holds a single experiment; give the directory that it is in"),
    ):
        assert main(["report", str(directory)]) == 2
        assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_only_earlier_reports_are_replaced(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, document = copy / "own.html", copy / "own.md"
    for file in (page, document):
        file.write_text("mine")
    assert main(["report", str(copy), "--to", str(page)]) == 2
    assert "--to must be a new file or an earlier report" in capsys.readouterr().err
    assert main(["report", str(copy), "--markdown", str(document)]) == 2
    assert "--markdown must be a new file or an earlier report" in capsys.readouterr().err
    assert main(["report", str(copy), "--to", str(copy / FIG1 / "summary.json")]) == 2
    assert "--to must end in .html" in capsys.readouterr().err
    assert page.read_text() == document.read_text() == "mine"


def test_a_missing_library_is_named(out: Path) -> None:
    script = (
        "import importlib.util, sys\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda n, *a: None if n == 'plotly' else real(n, *a)\n"
        "from ezgreedy.cli import main\n"
        f"sys.exit(main(['report', {str(out)!r}]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "report needs plotly, which is not installed" in ended.stderr
