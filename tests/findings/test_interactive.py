import json
from typing import Any

import numpy as np
import pytest

from ezgreedy.findings.interactive import block_from_json
from ezgreedy.findings.maps import ColourScale, Maps
from ezgreedy.findings.panels import Curve, Panel


def curves(*entries: Curve, **changes: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {"x_label": "episodes", "y_label": "return", **changes}
    return Panel("Return", list(entries), **arguments).as_json()


def maps(values: dict[str, Any], **changes: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {"slider": ("ε", [0.1, 1.0]), "most": 5000, **changes}
    scale = ColourScale(arguments["most"], arguments.get("is_log", False))
    labels = arguments.get("axis_labels")
    return Maps("First visits", arguments["slider"], values, scale, labels).as_json()


def test_a_block_of_curves_is_plain_json_with_four_digits() -> None:
    block = curves(
        Curve("ε-greedy", [1, 2], [0.123456, 2 / 3], [0.1, 0.5], [0.2, 0.7], "#d55e00"),
        Curve("εz-greedy", np.array([1.0, 123456.7]), [np.nan, 98765.4]),
        log_x=True,
    )
    assert block == {
        "kind": "curves",
        "title": "Return",
        "x_label": "episodes",
        "y_label": "return",
        "log_x": True,
        "log_y": False,
        "series": [
            {
                "label": "ε-greedy",
                "colour": "#d55e00",
                "x": [1, 2],
                "mean": [0.1235, 0.6667],
                "low": [0.1, 0.5],
                "high": [0.2, 0.7],
            },
            {
                "label": "εz-greedy",
                "colour": None,
                "x": [1, 123457],
                "mean": [None, 98770],
                "low": None,
                "high": None,
            },
        ],
    }
    assert json.loads(json.dumps(block, allow_nan=False)) == block


def test_a_block_of_maps_is_plain_json_with_four_digits() -> None:
    cells = np.array([[0.0, 1234.56, np.nan], [5000.0, 0.5, 1 / 3]])
    block = maps({"ε-greedy": [cells, 2 * cells]}, is_log=True, axis_labels=("x", "y"))
    assert block == {
        "kind": "maps",
        "title": "First visits",
        "slider": {"name": "ε", "values": [0.1, 1]},
        "maps": [
            {
                "label": "ε-greedy",
                "values": [
                    [[0, 1235, None], [5000, 0.5, 0.3333]],
                    [[0, 2469, None], [10000, 1, 0.6667]],
                ],
            }
        ],
        "scale": {"most": 5000.0, "log": True, "label": "mean steps to first visit"},
        "axis_labels": ["x", "y"],
    }
    assert json.loads(json.dumps(block, allow_nan=False)) == block


@pytest.mark.parametrize(
    "block",
    [
        curves(Curve("a", [1, 2], [0.5, np.nan], [0.1, 0.2], [0.7, 0.8]), log_y=True),
        maps({"a": [[[1.5, np.nan]]] * 2, "b": [[[2, 3]]] * 2}),
        maps({"a": [[[1.5]]] * 2}, slider=("law", ["zeta", "uniform"]), axis_labels=("x", "y")),
    ],
    ids=["curves", "maps", "labelled maps"],
)
def test_reading_a_block_gives_the_block(block: dict[str, Any]) -> None:
    assert block_from_json(json.loads(json.dumps(block))).as_json() == block


GOOD = Curve("a", [1, 2], [3, 4])


@pytest.mark.parametrize(
    ("entries", "changes", "message"),
    [
        ([], {}, "curves must hold at least one curve"),
        ([GOOD, GOOD], {}, r"labels of curves must differ; got \['a', 'a'\]"),
        ([Curve("a", [1, 2], [3])], {}, r"mean of 'a' must have one number for each of 2 x"),
        ([Curve("a", [1, 2], [3, 4], low=[2, 3])], {}, "interval of 'a' must have both ends"),
        ([Curve("a", [1, np.nan], [3, 4])], {}, "x of 'a' must be finite"),
        ([Curve("a", [1, 2], [3, np.inf])], {}, "mean of 'a' must hold finite numbers"),
        ([Curve("a", [0, 2], [3, 4])], {"log_x": True}, "must be positive on a logarithmic axis"),
        ([Curve("a", [1, 2], [-3, 4])], {"log_y": True}, "must be positive on a logarithmic axis"),
        ([Curve("a", [[1, 2]], [3, 4])], {}, r"x of 'a' must be a row of numbers; got \(1, 2\)"),
        ([Curve("a", [], [])], {}, "x of 'a' must"),
        ([Curve("", [1], [1])], {}, "label of a curve must be words; got ''"),
        ([Curve("a", [1], [1], colour="red")], {}, "colour must be written as #rrggbb; got 'red'"),
        ([GOOD], {"x_label": ""}, "x_label must be words"),
    ],
)
def test_curves_that_cannot_be_drawn_are_refused(
    entries: list[Curve], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        curves(*entries, **changes)


@pytest.mark.parametrize(
    ("values", "changes", "message"),
    [
        ({}, {}, "maps must hold at least one map"),
        ({"a": [[[1]]]}, {}, "maps of 'a' must be 2, one for every position of the slider; got 1"),
        ({"a": [[[1]], [[1, 2]]]}, {}, r"maps of 'a' must be of one shape \[height, width\]"),
        ({"a": [[1], [2]]}, {}, r"maps of 'a' must be of one shape \[height, width\]"),
        ({"a": [[[1]]] * 2, "b": [[[1, 2]]] * 2}, {}, "maps must be of one shape"),
        ({"a": [[[np.nan]]] * 2}, {}, "maps of 'a' must hold finite numbers"),
        ({"a": [[[1]]] * 2}, {"slider": ("ε", [])}, "slider must have positions that differ"),
        ({"a": [[[1]]] * 2}, {"slider": ("ε", [1, 1])}, "slider must have positions that differ"),
        ({"a": [[[1]]] * 2}, {"most": 0}, "most must be finite and be at least"),
        ({"a": [[[1]]] * 2}, {"most": 1, "is_log": True}, "most must be finite and be at least"),
    ],
)
def test_maps_that_cannot_be_drawn_are_refused(
    values: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        maps(values, **changes)


def test_words_instead_of_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="mean of 'a' must hold numbers"):
        curves(Curve("a", [1], ["many"]))


def test_references_are_marked_and_come_back() -> None:
    others = Curve("theirs", [0, 1], [9, 9], colour="#777777")
    block = curves(Curve("ours", [0, 1], [1, 2]), references=[others])
    ours, theirs = block["series"]
    assert "is_reference" not in ours
    assert theirs["is_reference"] is True
    assert block_from_json(json.loads(json.dumps(block))).as_json() == block
    with pytest.raises(ValueError, match="labels of curves must differ"):
        curves(Curve("theirs", [0], [1]), references=[others])
