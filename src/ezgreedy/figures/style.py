"""One visual style: the type, colours and sizes of every figure, and how figures are saved.

Colours are from a palette that colour-blind readers can distinguish; each policy keeps its own in
all figures. An SVG turns dark with the reader's screen. Saving the same figure twice gives the same
bytes.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from ezgreedy.figures.colours import (
    EPS_COLOUR,
    EZ_COLOUR,
    FAINT_COLOUR,
    FEW_TO_MANY,
    NEVER_COLOUR,
    OTHER_COLOURS,
    SOON_TO_NEVER,
    TEXT_COLOUR,
)
from ezgreedy.findings.finding import NARROW

__all__ = [
    "EPS_COLOUR",
    "EZ_COLOUR",
    "FAINT_COLOUR",
    "FEW_TO_MANY",
    "NEVER_COLOUR",
    "OTHER_COLOURS",
    "SOON_TO_NEVER",
    "TEXT_COLOUR",
    "new_figure",
    "save",
    "save_both",
    "shades",
    "svg",
    "voice",
]

DOTS_PER_INCH = 160
_SVG_METADATA: Any = {"Date": None, "Creator": None}

# Colours that are not data, and what they become on a dark screen.
_IN_THE_DARK = {
    "#ffffff": "#1c2026",
    TEXT_COLOUR: "#e6e8eb",
    "#000000": "#e6e8eb",
    FAINT_COLOUR: "#3a414b",
    "#666666": "#8b95a1",
    "#f3dede": "#45262a",
}

# Any: the names of matplotlib's settings differ between its releases.
_VOICE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 9.0,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": TEXT_COLOUR,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=[EPS_COLOUR, EZ_COLOUR, *OTHER_COLOURS]),
    "text.color": TEXT_COLOUR,
    "xtick.color": TEXT_COLOUR,
    "ytick.color": TEXT_COLOUR,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "figure.facecolor": "white",
    # Identifiers in the file are derived from this rather than at random.
    "svg.hashsalt": "ezgreedy",
}


@contextmanager
def voice() -> Iterator[None]:
    """Within it, matplotlib uses the project's style; its settings are restored afterwards."""
    with matplotlib.rc_context(_VOICE):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, whose parts do not overlap."""
    return Figure(figsize=(width, height), layout="constrained")


def shades(name: str, number: int) -> list[str]:
    """This many colours of a colour map, first to last, as #rrggbb."""
    sampled = matplotlib.colormaps[name].resampled(number)
    return [to_hex(sampled(shade)) for shade in range(number)]


def svg(figure: Figure) -> str:
    """A figure as the text of an SVG file, the same every time."""
    text = io.StringIO()
    with voice():
        figure.savefig(text, format="svg", metadata=_SVG_METADATA)
    head, opening, rest = text.getvalue().partition("<svg ")
    attributes, end, body = rest.partition(">")
    return f"{head}{opening}{attributes}{end}\n{_dark_style()}{body}"


def _dark_style() -> str:
    """Rules inside the file: paper, ink and lines change with the reader's colour scheme."""
    rules = "".join(
        f'[style*="{kind}: {light}"]{{{kind}:{dark}!important}}'
        for light, dark in _IN_THE_DARK.items()
        for kind in ("fill", "stroke")
    )
    return f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"


def save(figure: Figure, path: Path) -> list[Path]:
    """Writes path.png and path.svg, the same bytes every time; returns the two files.

    Args:
        figure: the figure to save.
        path: the file without its suffix; its directory is created if missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    png, sharp = (path.with_name(f"{path.name}.{kind}") for kind in ("png", "svg"))
    with voice():
        figure.savefig(png, dpi=DOTS_PER_INCH, metadata={"Software": None})
    sharp.write_text(svg(figure), encoding="utf-8")
    return [png, sharp]


def save_both(wide: Figure, narrow: Figure, path: Path) -> list[Path]:
    """`save`, with a version for a phone beside it, only as SVG."""
    small = path.with_name(f"{path.name}{NARROW}.svg")
    files = save(wide, path)
    small.write_text(svg(narrow), encoding="utf-8")
    return [*files, small]
