"""`ezgreedy report`: an HTML page and a Markdown document about experiments and runs."""

import argparse
from pathlib import Path

from ezgreedy.commands.targets import check_target, write_pages
from ezgreedy.packages import require_installed

_PAGE_NAME = "report.html"
_REPLACED = "an earlier report"


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
        "--markdown",
        type=Path,
        metavar="FILE",
        help="file of the document (default: none); a page with the details goes beside each "
        "experiment's results, as README.md",
    )
    report.set_defaults(run=_report)


def _report(parsed: argparse.Namespace) -> int:
    from ezgreedy.report import study

    found = study.read_study(*parsed.out)
    texts: dict[Path, str] = {}
    if parsed.markdown is not None:
        from ezgreedy.report import markdown
        from ezgreedy.report.markdown_text import MARK

        for path, text in markdown.documents(found, parsed.markdown).items():
            check_target("--markdown", path, ".md", MARK, _REPLACED)
            texts[path] = text
    if parsed.to is not None or parsed.markdown is None:
        require_installed("report", ("jinja2", "matplotlib", "plotly"), "study")
        from ezgreedy.report import page

        target = parsed.out[0] / _PAGE_NAME if parsed.to is None else parsed.to
        check_target("--to", target, ".html", page.MARK, _REPLACED)
        texts[target] = page.page(found)
    write_pages(texts)
    return 0
