"""How does a quantity change? Labelled curves in one pair of axes, for figures and pages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ezgreedy import requirements as require
from ezgreedy.findings.short_numbers import (
    DIGITS,
    X_DIGITS,
    check_labels,
    numbers,
    rounded,
    words,
)
from ezgreedy.requirements import FloatArray

_REFERENCE = "is_reference"
_PARTS = ("mean", "low", "high")


@dataclass(frozen=True, eq=False)
class Curve:
    """One labelled curve: its mean and the ends of its interval, if it has one, each [points].

    NaN or None in `mean`, `low` or `high` is a gap. The colour is "#rrggbb"; without one, curves
    are coloured in order.
    """

    label: str
    x: ArrayLike
    mean: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    colour: str | None = None


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves in one pair of axes.

    Curves are checked when a panel is made, and their numbers are rounded to a few digits, so that
    a panel read from a file equals the one written.

    Args:
        title: heading.
        curves: at least one curve, with distinct labels; a few hundred points each are plenty.
        x_label: label of the horizontal axis.
        y_label: label of the vertical axis.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is logarithmic.
        references: published curves or limits for comparison, drawn thin and dashed.
        figure: name of the figure that draws this panel too, without a suffix; the page shows only
            one of them. Empty if there is none.
    """

    title: str
    curves: Sequence[Curve]
    _: KW_ONLY
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False
    references: Sequence[Curve] = ()
    figure: str = ""

    def __post_init__(self) -> None:
        if not self.curves:
            raise require.refuse("curves", "hold at least one curve", list(self.curves))
        check_labels("curve", [curve.label for curve in (*self.curves, *self.references)])
        for name in ("title", "x_label", "y_label"):
            words(name, getattr(self, name))
        for name in ("log_x", "log_y"):
            object.__setattr__(self, name, require.flag(name, getattr(self, name)))
        for name in ("curves", "references"):
            checked = [self._checked(curve) for curve in getattr(self, name)]
            object.__setattr__(self, name, checked)

    @property
    def kind(self) -> Literal["curves"]:
        """The kind of block, by which the page draws it."""
        return "curves"

    def _checked(self, curve: Curve) -> Curve:
        x = _row(curve.label, "x", curve.x)
        if not np.isfinite(x).all():
            raise require.refuse(f"x of {curve.label!r}", "be finite", x.tolist())
        rows = {
            name: _row(curve.label, name, values)
            for name in _PARTS
            if (values := getattr(curve, name)) is not None
        }
        if ("low" in rows) != ("high" in rows):
            raise require.refuse(f"interval of {curve.label!r}", "have both ends", sorted(rows))
        for name, values in rows.items():
            if values.shape != x.shape:
                rule = f"have one number for each of {x.size} x"
                raise require.refuse(f"{name} of {curve.label!r}", rule, values.shape)
        _check_positive(
            curve.label, x if self.log_x else None, rows["mean"] if self.log_y else None
        )
        _check_colour(curve.colour)
        mean, low, high = (rounded(rows[name], DIGITS) if name in rows else None for name in _PARTS)
        assert mean is not None
        return Curve(curve.label, rounded(x, X_DIGITS), mean, low, high, curve.colour)

    def as_json(self) -> dict[str, Any]:
        """The panel as stored in summary.json and pages."""
        return {
            "kind": self.kind,
            "title": self.title,
            "x_label": self.x_label,
            "y_label": self.y_label,
            "log_x": self.log_x,
            "log_y": self.log_y,
            **({"figure": self.figure} if self.figure else {}),
            "series": [
                *(_series(curve) for curve in self.curves),
                *({**_series(curve), _REFERENCE: True} for curve in self.references),
            ],
        }

    @classmethod
    def from_json(cls, block: Mapping[str, Any]) -> "Panel":
        """The panel that `as_json` gave."""
        return cls(
            block["title"],
            [_curve(series) for series in block["series"] if _REFERENCE not in series],
            references=[_curve(series) for series in block["series"] if _REFERENCE in series],
            figure=block.get("figure", ""),
            **{name: block[name] for name in ("x_label", "y_label", "log_x", "log_y")},
        )


def _series(curve: Curve) -> dict[str, Any]:
    return {name: getattr(curve, name) for name in ("label", "colour", "x", *_PARTS)}


def _curve(series: Mapping[str, Any]) -> Curve:
    return Curve(**{name: value for name, value in series.items() if name != _REFERENCE})


def _row(label: str, name: str, values: ArrayLike) -> FloatArray:
    array = numbers(f"{name} of {label!r}", values)
    if array.ndim != 1 or not array.size:
        raise require.refuse(f"{name} of {label!r}", "be a row of numbers", array.shape)
    return array


def _check_positive(label: str, *rows: FloatArray | None) -> None:
    """Refuses values that a logarithmic axis cannot show."""
    for values in rows:
        if values is not None and (values <= 0).any():
            rule = "be positive on a logarithmic axis"
            raise require.refuse(f"values of {label!r}", rule, float(np.nanmin(values)))


def _check_colour(value: str | None) -> None:
    if value is not None and not re.fullmatch("#[0-9a-f]{6}", value):
        raise require.refuse("colour", "be written as #rrggbb", value)
