"""What do all documents in Markdown share? The mark of their first line, and tables."""

from collections.abc import Iterable, Iterator, Sequence

# The first line of every document made here; a document that starts with it may be replaced.
MARK = "<!-- Made by `ezgreedy report`; changes are lost when it is made again. -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table and the empty line after it."""
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from (_row(row) for row in rows)
    yield ""


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
