"""`ezgreedy report`: one page to look at, and one document to keep, from experiments and runs."""

import argparse
import importlib.util
from pathlib import Path

_PAGE_NAME = "report.html"


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    report = commands.add_parser(
        "report",
        help="build the page that shows verdicts, figures and numbers",
        description="Builds one self-contained HTML page, or a Markdown document, or both, from "
        "the summaries that `ezgreedy reproduce --out OUT` left, from runs of `ezgreedy train` "
        "and `ezgreedy sweep`, and from what `ezgreedy collect` kept of runs, in any mix.",
    )
    report.add_argument(
        "out",
        type=Path,
        nargs="+",
        metavar="OUT",
        help="holds experiments' directories or runs, or is a run",
    )
    report.add_argument(
        "--to",
        type=Path,
        metavar="FILE",
        help=f"where the page goes (default: {_PAGE_NAME} in the first OUT, unless only "
        "--markdown is given)",
    )
    report.add_argument(
        "--markdown", type=Path, metavar="FILE", help="where the document goes; none if not given"
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
        _check_installed()
        from ezgreedy.report import page

        target = parsed.out[0] / _PAGE_NAME if parsed.to is None else parsed.to
        _check_target("--to", target, ".html", page.MARK)
        texts[target] = page.page(found)
    _write(texts)
    return 0


def _check_installed() -> None:
    for module in ("jinja2", "matplotlib", "plotly"):
        if importlib.util.find_spec(module) is None:
            raise ValueError(
                f"report needs {module}, which is not installed (pip install 'ezgreedy[study]')"
            )


def _check_target(name: str, path: Path, suffix: str, mark: str) -> None:
    """Only what an earlier report wrote is ever replaced."""
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
        print(f"wrote {path} ({len(text.encode()) / 1e6:.1f} MB)")
