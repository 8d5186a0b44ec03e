"""How is the playground's page made? Template, style, scripts and data become one file.

The page asks the network for nothing and works from the file system. What it shares with Python
(worlds, the generator's constants, colours) is written into it as data.
"""

import json
from pathlib import Path
from typing import Any

from ezgreedy import __version__
from ezgreedy.exploration import streams
from ezgreedy.figures import style
from ezgreedy.playground.worlds import page_worlds

# Near the top of every page made here; a page that contains it may be replaced.
MARK = '<meta name="generator" content="ezgreedy playground'

_HERE = Path(__file__).parent
_SCRIPTS = (  # joined in this order
    "streams.js",
    "durations.js",
    "worlds.js",
    "walks.js",
    "settings.js",
    "python.js",
    "drawing.js",
    "page.js",
)
_NUM_SHADES = 64


def page() -> str:
    """The whole page."""
    parts = {
        "version": __version__,
        "style": _read("page.css"),
        # Within a script only "</" could end it early.
        "data": json.dumps(_data(), ensure_ascii=False).replace("</", "<\\/"),
        "script": "\n".join(map(_read, _SCRIPTS)),
    }
    text = _read("page.html")
    for name, part in parts.items():
        text = text.replace("{{ " + name + " }}", part)
    return text


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _data() -> dict[str, Any]:
    return {
        "worlds": page_worlds(),
        "generator": {
            # 64-bit words as text: numbers of scripts have only 53 bits.
            "weyl": str(streams.WEYL),
            "multiplierA": str(streams.MULTIPLIER_A),
            "multiplierB": str(streams.MULTIPLIER_B),
            "shifts": [streams.SHIFT_A, streams.SHIFT_B, streams.SHIFT_C],
            "purposes": {purpose.name: int(purpose) for purpose in streams.Purpose},
        },
        "colours": {
            "shades": style.shades(style.SOON_TO_NEVER, _NUM_SHADES),
            "eps": style.EPS_COLOUR,
            "ez": style.EZ_COLOUR,
        },
    }
