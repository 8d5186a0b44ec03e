"""`ezgreedy report`: an HTML page and a Markdown document about experiments and runs."""

import argparse
from pathlib import Path

from ezgreedy import requirements as require
from ezgreedy.commands.targets import check_target, write_pages
from ezgreedy.commands.unverified import tell_unverified
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
        "and `ezgreedy sweep`, and the collections of `ezgreedy collect`. Directories of `ezgreedy "
        "coverage` give a page of their own.",
    )
    report.add_argument(
        "out",
        type=Path,
        nargs="+",
        metavar="OUT",
        help="directory of experiments or runs, a run, or one or more directories of `ezgreedy "
        "coverage`, or the directory that they are in",
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
    require_installed("report", ("scipy", "jinja2", "matplotlib", "plotly"), "study")
    from ezgreedy.report import study

    coverages = {path: _coverages(path) for path in parsed.out}
    if any(coverages.values()):
        return _report_coverage(parsed, coverages)

    found = study.read_study(*parsed.out)
    tell_unverified(parsed.out)
    texts: dict[Path, str] = {}
    if parsed.markdown is not None:
        from ezgreedy.report import markdown
        from ezgreedy.report.markdown_text import MARK

        for path, text in markdown.documents(found, parsed.markdown).items():
            check_target("--markdown", path, ".md", MARK, _REPLACED)
            texts[path] = text
    if parsed.to is not None or parsed.markdown is None:
        from ezgreedy.report import page

        target = parsed.out[0] / _PAGE_NAME if parsed.to is None else parsed.to
        check_target("--to", target, ".html", page.MARK, _REPLACED)
        texts[target] = page.page(found)
    write_pages(texts)
    return 0


def _coverages(path: Path) -> list[Path]:
    """The directory itself if `ezgreedy coverage` made it, or those within it if it has no more."""
    from ezgreedy.commands.coverage_page import is_coverage
    from ezgreedy.report.study import holds_results

    if is_coverage(path):
        return [path]
    within = [child for child in sorted(path.glob("*")) if is_coverage(child)]
    return [] if within and holds_results(path) else within


def _report_coverage(parsed: argparse.Namespace, coverages: dict[Path, list[Path]]) -> int:
    from ezgreedy.commands import coverage_page

    missing = [str(path) for path in parsed.out if not path.exists()]
    if missing:
        raise require.refuse("OUT", "exist", missing[0])
    others = [str(path) for path, found in coverages.items() if not found]
    if others:
        rule = "all be directories of `ezgreedy coverage` if one of them is"
        raise require.refuse("OUT", rule, others[0])
    if parsed.markdown is not None:
        raise require.refuse(
            "--markdown", "be left out for `ezgreedy coverage`", str(parsed.markdown)
        )
    target = parsed.out[0] / _PAGE_NAME if parsed.to is None else parsed.to
    check_target("--to", target, ".html", coverage_page.MARK, _REPLACED)
    found = [directory for path in parsed.out for directory in coverages[path]]
    write_pages({target: coverage_page.coverage_page(found)})
    return 0
