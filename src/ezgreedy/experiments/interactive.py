"""What can a reader of the report play with? Curves to hover over, and maps under a slider.

An experiment puts a list of blocks made here into its summary's data under KEY; the page draws each
by its kind. Blocks are plain JSON with numbers rounded to what a reader can tell apart, and are
checked when made and once more when read, so that a page never shows half a plot.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ezgreedy import requirements as require
from ezgreedy.requirements import FloatArray

KEY = "interactive"
KINDS = ("curves", "maps")

_DIGITS = 4
_X_DIGITS = 6
_REFERENCE = "is_reference"
_PARTS = ("mean", "low", "high")


@dataclass(frozen=True, eq=False)
class Curve:
    """One labelled curve, all [points]: its mean, and the ends of its interval if there is one.

    NaN in `mean`, `low` or `high` is a gap. The colour is "#rrggbb"; without one, curves are
    coloured in order, as the figures do.
    """

    label: str
    x: ArrayLike
    mean: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    colour: str | None = None


def curves_block(
    title: str,
    curves: Sequence[Curve],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    references: Sequence[Curve] = (),
) -> dict[str, Any]:
    """Curves in one pair of axes, whose values show under the pointer.

    Args:
        title: what there is to see.
        curves: at least one, with labels of their own; a few hundred points each are plenty.
        x_label: of the horizontal axis, and
        y_label: of the vertical one.
        log_x: whether equal ratios of x rather than equal differences look alike.
        log_y: the same for y.
        references: numbers of others for comparison, drawn thin and dashed.
    """
    if not curves:
        raise require.refuse("curves", "hold at least one curve", list(curves))
    _check_labels("curve", [curve.label for curve in (*curves, *references)])
    return {
        "kind": "curves",
        "title": _text("title", title),
        "x_label": _text("x_label", x_label),
        "y_label": _text("y_label", y_label),
        "log_x": require.flag("log_x", log_x),
        "log_y": require.flag("log_y", log_y),
        "series": [
            *(_series(curve, log_x=log_x, log_y=log_y) for curve in curves),
            *(
                {**_series(curve, log_x=log_x, log_y=log_y), _REFERENCE: True}
                for curve in references
            ),
        ],
    }


def maps_block(
    title: str,
    slider: tuple[str, Sequence[float | str]],
    maps: Mapping[str, Sequence[ArrayLike]],
    *,
    most: float,
    log: bool = False,
    label: str = "mean steps to first visit",
    axis_labels: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """Maps side by side that all follow one slider.

    Args:
        title: what there is to see.
        slider: what it changes, and its positions in order.
        maps: label ↦ a map, [height, width], for every position; all of one shape, NaN where
            there is no state.
        most: what the last colour stands for; the first stands for 0, or for 1 if `log`.
        log: whether equal ratios rather than equal differences look alike.
        label: what the colours mean.
        axis_labels: what the horizontal and the vertical direction are, if not simply places.
    """
    name, positions = slider
    if not positions or len(set(positions)) < len(positions):
        raise require.refuse("slider", "have positions that differ", list(positions))
    if not maps:
        raise require.refuse("maps", "hold at least one map", dict(maps))
    _check_labels("map", list(maps))
    arrays = {key: _stacked(key, values, len(positions)) for key, values in maps.items()}
    if len({array.shape for array in arrays.values()}) > 1:
        shapes = {key: array.shape[1:] for key, array in arrays.items()}
        raise require.refuse("maps", "be of one shape", shapes)
    return {
        "kind": "maps",
        "title": _text("title", title),
        "slider": {"name": _text("slider", name), "values": [_position(p) for p in positions]},
        "maps": [
            {"label": key, "values": [_rounded(cells, _DIGITS) for cells in array]}
            for key, array in arrays.items()
        ],
        "scale": {
            "most": require.number("most", most, least=np.nextafter(1.0 if log else 0.0, 2.0)),
            "log": require.flag("log", log),
            "label": _text("label", label),
        },
        "axis_labels": None if axis_labels is None else [_text("axis", a) for a in axis_labels],
    }


def block_from_json(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block as it was read, refused where it could not have been made here."""
    kind = require.one_of("kind", block["kind"], KINDS)
    if kind == "curves":
        return curves_block(
            block["title"],
            [_curve(series) for series in block["series"] if _REFERENCE not in series],
            references=[_curve(series) for series in block["series"] if _REFERENCE in series],
            **{name: block[name] for name in ("x_label", "y_label", "log_x", "log_y")},
        )
    labels = block["axis_labels"]
    return maps_block(
        block["title"],
        (block["slider"]["name"], block["slider"]["values"]),
        {entry["label"]: entry["values"] for entry in block["maps"]},
        axis_labels=None if labels is None else (labels[0], labels[1]),
        **block["scale"],
    )


def _curve(series: Mapping[str, Any]) -> Curve:
    return Curve(**{name: value for name, value in series.items() if name != _REFERENCE})


def _series(curve: Curve, *, log_x: bool, log_y: bool) -> dict[str, Any]:
    x = _row(curve.label, "x", curve.x)
    if not np.isfinite(x).all():
        raise require.refuse(f"x of {curve.label!r}", "be finite", x.tolist())
    rows = {
        name: _row(curve.label, name, values)
        for name, values in (("mean", curve.mean), ("low", curve.low), ("high", curve.high))
        if values is not None
    }
    if ("low" in rows) != ("high" in rows):
        raise require.refuse(f"interval of {curve.label!r}", "have both ends", sorted(rows))
    for name, values in rows.items():
        if values.shape != x.shape:
            rule = f"have one number for each of {x.size} x"
            raise require.refuse(f"{name} of {curve.label!r}", rule, values.shape)
    _check_positive(curve.label, x if log_x else None, rows["mean"] if log_y else None)
    return {
        "label": curve.label,
        "colour": _colour(curve.colour),
        "x": _rounded(x, _X_DIGITS),
        **{name: _rounded(rows[name], _DIGITS) if name in rows else None for name in _PARTS},
    }


def _check_positive(label: str, *rows: FloatArray | None) -> None:
    """Neither zero nor less has a place on a logarithmic axis."""
    for values in rows:
        if values is not None and (values <= 0).any():
            rule = "be positive on a logarithmic axis"
            raise require.refuse(f"values of {label!r}", rule, float(np.nanmin(values)))


def _row(label: str, name: str, values: ArrayLike) -> FloatArray:
    array = _numbers(f"{name} of {label!r}", values)
    if array.ndim != 1 or not array.size:
        raise require.refuse(f"{name} of {label!r}", "be a row of numbers", array.shape)
    return array


def _stacked(label: str, values: Sequence[ArrayLike], num_positions: int) -> FloatArray:
    """The maps of all slider positions, [position, height, width]."""
    name = f"maps of {label!r}"
    if len(values) != num_positions:
        rule = f"be {num_positions}, one for every position of the slider"
        raise require.refuse(name, rule, len(values))
    arrays = [_numbers(name, cells) for cells in values]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1 or arrays[0].ndim != 2 or not arrays[0].size:
        raise require.refuse(name, "be of one shape [height, width]", sorted(shapes))
    return np.stack(arrays)


def _numbers(name: str, values: ArrayLike) -> FloatArray:
    """Numbers of any shape; None, which is how JSON holds a gap, counts as NaN."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise require.refuse_type(name, "hold numbers in rows of one length", values) from error
    if np.isinf(array).any() or np.isnan(array).all():
        raise require.refuse(name, "hold finite numbers", array.tolist())
    return array


def _rounded(values: FloatArray, digits: int) -> list[Any]:
    """Significant digits alone, whole numbers without a point, and gaps as None."""
    if values.ndim > 1:
        return [_rounded(row, digits) for row in values]
    return [None if np.isnan(value) else _short(f"{value:.{digits}g}") for value in values]


def _position(value: float | str) -> int | float | str:
    """A place of the slider as a reader sees it: 1 rather than 1.0."""
    return value if isinstance(value, str) else _short(f"{value:.{_X_DIGITS}g}")


def _short(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _colour(value: str | None) -> str | None:
    if value is not None and not re.fullmatch("#[0-9a-f]{6}", value):
        raise require.refuse("colour", "be written as #rrggbb", value)
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise require.refuse(name, "be words", value)
    return value


def _check_labels(name: str, labels: Sequence[str]) -> None:
    for label in labels:
        _text(f"label of a {name}", label)
    if len(set(labels)) < len(labels):
        raise require.refuse(f"labels of {name}s", "differ", list(labels))
