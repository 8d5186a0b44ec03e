"""One visual style: the type, colours and sizes of every figure, and how figures are saved.

Colours are from a palette that colour-blind readers can distinguish; each policy keeps its own in
all figures. Saving the same figure twice gives the same bytes.
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
    "shades",
    "svg",
    "voice",
]

DOTS_PER_INCH = 160
_SVG_METADATA: Any = {"Date": None, "Creator": None}

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
    return text.getvalue()


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
        figure.savefig(sharp, metadata=_SVG_METADATA)
    return [png, sharp]
