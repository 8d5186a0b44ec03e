"""Which plots of the report are interactive? Panels to hover over, and maps with a slider.

An experiment puts them into its summary, and the page draws each by its kind. They are checked when
made and again when read, so that a page never shows half a plot.
"""

from collections.abc import Mapping
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.findings.maps import Maps
from ezgreedy.findings.panels import Panel

KINDS = ("curves", "maps")

Block = Panel | Maps


def block_from_json(block: Mapping[str, Any]) -> Block:
    """A block from its JSON form; an invalid one is refused."""
    kind = require.one_of("kind", block["kind"], KINDS)
    return Panel.from_json(block) if kind == "curves" else Maps.from_json(block)
