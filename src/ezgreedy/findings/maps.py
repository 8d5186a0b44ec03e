"""After how many steps is each state first visited? Maps side by side that share one slider."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ezgreedy import requirements as require
from ezgreedy.findings.short_numbers import DIGITS, check_labels, numbers, rounded, short, words
from ezgreedy.requirements import FloatArray


@dataclass(frozen=True)
class ColourScale:
    """What the colours of first-visit maps mean, shared by all maps of a figure.

    Args:
        most: number of steps of the last colour; the first stands for 0, or for 1 if `is_log`.
        is_log: whether the scale is logarithmic; zero counts as one.
        label: meaning of the colours.
    """

    most: float
    is_log: bool = False
    label: str = "mean steps to first visit"

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_log", require.flag("log", self.is_log))
        least = np.nextafter(1.0 if self.is_log else 0.0, 2.0)
        object.__setattr__(self, "most", require.number("most", self.most, least=least))
        words("label", self.label)


@dataclass(frozen=True, eq=False)
class Maps:
    """Maps side by side that share one slider.

    Maps are checked when made, and their numbers are rounded to a few digits, so that maps read
    from a file equal those written.

    Args:
        title: heading.
        slider: name of the quantity it changes, and its positions in order.
        maps: label ↦ a map, [height, width], for every position; all of one shape, NaN or None
            where there is no state.
        scale: meaning of the colours.
        axis_labels: labels of the horizontal and the vertical axis; None if they are just places.
        figure: name of the figure that draws these maps too, as for a panel.
    """

    title: str
    slider: tuple[str, Sequence[float | str]]
    maps: Mapping[str, Sequence[ArrayLike]]
    scale: ColourScale
    axis_labels: tuple[str, str] | None = None
    figure: str = ""

    def __post_init__(self) -> None:
        name, positions = self.slider
        if not positions or len(set(positions)) < len(positions):
            raise require.refuse("slider", "have positions that differ", list(positions))
        if not self.maps:
            raise require.refuse("maps", "hold at least one map", dict(self.maps))
        check_labels("map", list(self.maps))
        arrays = {key: _stacked(key, cells, len(positions)) for key, cells in self.maps.items()}
        if len({array.shape for array in arrays.values()}) > 1:
            shapes = {key: array.shape[1:] for key, array in arrays.items()}
            raise require.refuse("maps", "be of one shape", shapes)
        words("title", self.title)
        words("slider", name)
        for label in self.axis_labels or ():
            words("axis", label)
        object.__setattr__(self, "slider", (name, [_position(place) for place in positions]))
        object.__setattr__(
            self, "maps", {key: rounded(array, DIGITS) for key, array in arrays.items()}
        )

    @property
    def kind(self) -> Literal["maps"]:
        """The kind of block, by which the page draws it."""
        return "maps"

    def as_json(self) -> dict[str, Any]:
        """The maps as stored in summary.json and pages."""
        name, positions = self.slider
        scale = self.scale
        return {
            "kind": self.kind,
            "title": self.title,
            "slider": {"name": name, "values": list(positions)},
            "maps": [{"label": key, "values": cells} for key, cells in self.maps.items()],
            "scale": {"most": scale.most, "log": scale.is_log, "label": scale.label},
            "axis_labels": None if self.axis_labels is None else list(self.axis_labels),
            **({"figure": self.figure} if self.figure else {}),
        }

    @classmethod
    def from_json(cls, block: Mapping[str, Any]) -> "Maps":
        """The maps that `as_json` gave."""
        labels, scale = block["axis_labels"], block["scale"]
        return cls(
            block["title"],
            (block["slider"]["name"], block["slider"]["values"]),
            {entry["label"]: entry["values"] for entry in block["maps"]},
            ColourScale(scale["most"], scale["log"], scale["label"]),
            None if labels is None else (labels[0], labels[1]),
            block.get("figure", ""),
        )


def _stacked(label: str, values: Sequence[ArrayLike], num_positions: int) -> FloatArray:
    """The maps of all slider positions, [position, height, width]."""
    name = f"maps of {label!r}"
    if len(values) != num_positions:
        rule = f"be {num_positions}, one for every position of the slider"
        raise require.refuse(name, rule, len(values))
    arrays = [numbers(name, cells) for cells in values]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1 or arrays[0].ndim != 2 or not arrays[0].size:
        raise require.refuse(name, "be of one shape [height, width]", sorted(shapes))
    return np.stack(arrays)


def _position(value: float | str) -> int | float | str:
    """A position of the slider as a reader sees it: 1 rather than 1.0."""
    return value if isinstance(value, str) else short(value)
