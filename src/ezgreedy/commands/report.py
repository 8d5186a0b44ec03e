"""`ezgreedy report`: an HTML page and a Markdown document about experiments and runs."""

import argparse
from pathlib import Path

from ezgreedy.packages import require_installed
from ezgreedy.units import size

_PAGE_NAME = "report.html"


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    report = commands.add_parser(
        "report",
        help="build a page of verdicts, figures and numbers",
        description="Builds one self-contained HTML page, or a Markdown document, or both, from "
        "any mix of the summaries of `ezgreedy reproduce --out OUT`, the runs of `ezgreedy train` "
        "and `ezgreedy sweep`, and the collections of `ezgreedy collect`.",
    )
    report.add_argument(
        "out",
        type=Path,
        nargs="+",
        metavar="OUT",
        help="directory of experiments or runs, or a run",
    )
    report.add_argument(
        "--to",
        type=Path,
        metavar="FILE",
        help=f"file of the page (default: {_PAGE_NAME} in the first OUT, unless only "
        "--markdown is given)",
    )
    report.add_argument(
        "--markdown", type=Path, metavar="FILE", help="file of the document (default: none)"
    )
    report.set_defaults(run=_report)


def _report(parsed: argparse.Namespace) -> int:
    from ezgreedy.report import study

    found = study.read_study(*parsed.out)
    texts: dict[Path, str] = {}
    if parsed.markdown is not None:
        from ezgreedy.report import markdown

        _check_target("--markdown", parsed.markdown, ".md", markdown.MARK)
        texts[parsed.markdown] = markdown.document(found)
    if parsed.to is not None or parsed.markdown is None:
        require_installed("report", ("jinja2", "matplotlib", "plotly"), "study")
        from ezgreedy.report import page

        target = parsed.out[0] / _PAGE_NAME if parsed.to is None else parsed.to
        _check_target("--to", target, ".html", page.MARK)
        texts[target] = page.page(found)
    _write(texts)
    return 0


def _check_target(name: str, path: Path, suffix: str, mark: str) -> None:
    """Refuses to replace anything except an earlier report."""
    from ezgreedy import requirements as require

    if path.suffix != suffix:
        raise require.refuse(name, f"end in {suffix}", str(path))
    if path.exists() and not (path.is_file() and mark in path.read_text(encoding="utf-8")[:2000]):
        raise require.refuse(name, "be a new file or an earlier report", str(path))


def _write(texts: dict[Path, str]) -> None:
    from ezgreedy.results.store import write_text_atomically

    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, text)
        print(f"wrote {path} ({size(len(text.encode()))})")
