"""What a build of the documentation does besides reading pages: it makes the playground.

It marks indented code in docstrings as code. And it points links that leave this folder for files
of the repository to their text on the site, if they have one there, and shows the others as plain
code: a reader of the site has no checkout.
"""

import re
from pathlib import Path
from typing import Any

from ezgreedy.playground.page import page

ROOT = Path(__file__).parents[1]

# Pages of the repository that the site includes, by their place in the repository.
INCLUDED = {
    "README.md": "index",
    "REPRODUCTION.md": "pages/reproduction",
    "results/README.md": "pages/results",
    "benchmarks/README.md": "pages/benchmarks",
    "CONTRIBUTING.md": "pages/contributing",
    "CHANGELOG.md": "pages/changelog",
}
_LINK = re.compile(r"(?<!!)\[([^\]\n]*(?:\n[^\]\n]*)?)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def setup(app: Any) -> dict[str, bool]:
    """Registers the steps with Sphinx."""
    app.connect("builder-inited", _write_playground)
    app.connect("source-read", _point_links_into_the_site)
    app.connect("include-read", _point_included_links_into_the_site)
    app.connect("autodoc-process-docstring", _mark_code, priority=400)  # before Args are read
    return {"parallel_read_safe": True}


def _write_playground(app: Any) -> None:
    target = ROOT / "out" / "docs-extra" / "playground" / "index.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(), encoding="utf-8")


def _point_links_into_the_site(app: Any, name: str, source: list[str]) -> None:
    file = Path(app.env.doc2path(name))
    if file.suffix == ".md":
        source[0] = pointed(source[0], file)


def _point_included_links_into_the_site(
    app: Any, path: Path, parent: str, source: list[str]
) -> None:
    source[0] = pointed(source[0], ROOT / "docs" / path)


def pointed(text: str, file: Path) -> str:
    """A page's text with links that work on the site; in the file they are relative to it."""

    def replaced(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        place = (file.parent / target).resolve()
        if not place.is_relative_to(ROOT):
            return match[0]
        within = place.relative_to(ROOT).as_posix()
        if within in INCLUDED:
            page, anchor = INCLUDED[within], anchor if within != "README.md" else ""
        elif within.startswith("docs/") and within.endswith((".md", ".ipynb")):
            page = within.removeprefix("docs/").rpartition(".")[0]
        elif within.startswith("docs/"):
            return match[0]
        else:
            return label if label.startswith("`") else f"{label} (`{within}`)"
        suffix = ".ipynb" if (ROOT / "docs" / f"{page}.ipynb").exists() else ".md"
        return f"[{label}](/{page}{suffix}{anchor})"

    return _LINK.sub(replaced, text)


def _mark_code(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Puts `::` before indented blocks that follow a paragraph, which reStructuredText needs."""
    marked: list[str] = []
    for at, line in enumerate(lines):
        before = [earlier for earlier in lines[:at] if earlier.strip()]
        follows_a_paragraph = at > 0 and not lines[at - 1].strip() and before
        if line.startswith("    ") and follows_a_paragraph and not before[-1].startswith(" "):
            marked += ["::", ""]
        marked.append(line)
    lines[:] = marked
