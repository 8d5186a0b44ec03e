"""One language of `--set`, for settings that are dataclasses and for those that are plain data."""

import itertools
import re
from dataclasses import dataclass, field

import pytest

from ezgreedy.agents.rainbow.presets import RAINBOW_PRESETS
from ezgreedy.experiments.registry import experiments
from ezgreedy.exploration.durations import DurationLaw, Fixed, Geometric, Uniform, Zeta
from ezgreedy.exploration.schedules import Linear
from ezgreedy.learning.settings import Convolution
from ezgreedy.named_settings import flattened, split_change, with_change, with_changes, written
from ezgreedy.runs.settings_codec import with_setting

CLASSES = {made.__name__: made for made in (Zeta, Geometric, Uniform, Fixed, Linear, Convolution)}


@dataclass(frozen=True)
class Inner:
    number: float = 1.0
    maybe: float | None = None


@dataclass(frozen=True)
class Outer:
    count: int = 1
    is_on: bool = False
    word: str = "a"
    sizes: tuple[int, ...] = (1,)
    layers: tuple[Convolution, ...] = ()
    epsilon: float | Linear = 0.1
    law: DurationLaw = field(default_factory=lambda: Zeta(2.0))
    inner: Inner = field(default_factory=Inner)


PLAIN = {
    "count": 1,
    "is_on": False,
    "word": "a",
    "sizes": [1],
    "inner": {"number": 1.0, "maybe": None},
    "rows": [[1, 2], [3, 4]],
}


def of_dataclass(name, text):
    value = with_change(Outer(), name, text, CLASSES, "an example")
    for part in name.split("."):
        value = getattr(value, part)
    return value


def of_plain(name, text):
    value = with_change(PLAIN, name, text, {}, "an example")
    for part in name.split("."):
        value = value[part]
    return tuple(value) if isinstance(value, list) else value


in_both = pytest.mark.parametrize("read", [of_dataclass, of_plain])


@in_both
@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        *[("count", "7", 7), ("count", "1_000", 1000), ("count", "-3", -3)],
        *[("is_on", text, True) for text in ("true", "yes", "1", "True", "YES")],
        *[("is_on", text, False) for text in ("false", "no", "0", "False", "No")],
        *[("word", "b", "b"), ("word", "1,2", "1,2"), ("word", "f(x)", "f(x)"), ("word", "", "")],
        *[("sizes", "3, 4,5", (3, 4, 5)), ("sizes", "3", (3,)), ("sizes", "", ())],
        *[("inner.number", "1e-4", 1e-4), ("inner.number", "2", 2.0)],
        *[("inner.maybe", "none", None), ("inner.maybe", "None", None), ("inner.maybe", "2", 2)],
    ],
)
def test_every_form_is_read_alike_from_fields_and_from_what_it_replaces(read, name, text, value):
    found = read(name, text)
    assert found == value
    assert isinstance(found, bool) == isinstance(value, bool)


@in_both
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("count", "many", "--set count must be an int; got 'many'"),
        ("count", "1.5", "--set count must be an int; got '1.5'"),
        ("count", "none", "--set count must be an int; got 'none'"),
        ("is_on", "perhaps", "--set is_on must be yes or no; got 'perhaps'"),
        ("sizes", "1,x", "each item of --set sizes must be an int; got 'x'"),
        ("inner.number", "x", "--set inner.number must be a number; got 'x'"),
        ("cuont", "1", "(did you mean count?); got 'cuont'"),
        ("inner.numbre", "1", "--set must name a setting of inner: number, maybe (did you mean"),
        ("count.more", "1", "--set must name a setting of count: it has none; got 'count.more'"),
    ],
)
def test_a_refusal_names_argument_rule_and_value(read, name, text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read(name, text)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("law", "Zeta(mu=1.5)", Zeta(1.5)),
        ("law", "Zeta(2, cap=100)", Zeta(2, cap=100)),
        ("law", " Fixed ( 3, ) ", Fixed(3)),
        ("epsilon", "Linear(1, 0.01, 50000)", Linear(1, 0.01, 50000)),
        ("epsilon", "0.5", 0.5),
        (
            "layers",
            "Convolution(32,8,4), Convolution(64, 4, stride=2)",
            (Convolution(32, 8, 4), Convolution(64, 4, 2)),
        ),
    ],
)
def test_calls_are_read(name, text, value):
    assert of_dataclass(name, text.strip()) == value


def test_numbers_in_a_call_stay_as_they_are_written():
    # Runs of a sweep are known by a hash of their settings, in which 2 is not 2.0.
    assert type(of_dataclass("law", "Zeta(2)").mu) is type(Zeta(2).mu)
    assert repr(of_dataclass("law", "Zeta(2)")) == repr(Zeta(2))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("law", "2", "--set law must be a call of Zeta, Geometric, Uniform, Fixed; got '2'"),
        ("law", "Zetta(2)", "(did you mean Zeta?); got 'Zetta(2)'"),
        ("law", "Zeta(2", "--set law must be a call of"),
        ("law", "Linear(1, 0, 5)", "--set law must be a call of Zeta"),
        ("law", "Zeta(x)", "--set law must hold numbers; got 'x'"),
        ("law", "Zeta(2, mu=3)", "--set law must give Zeta mu, cap, tail once"),
        ("law", "Zeta(2, top=3)", "--set law must give Zeta mu, cap, tail once"),
        ("law", "Fixed(0)", "--set law=Fixed(0): "),
        ("epsilon", "half", "--set epsilon must be a number or a call of Linear; got 'half'"),
    ],
)
def test_a_call_that_cannot_be_made_is_refused(name, text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        of_dataclass(name, text)


def test_plain_data_of_other_shapes_cannot_be_set():
    for name in ("rows", "inner"):
        with pytest.raises(ValueError, match=f"--set must name a number, .*; got '{name}'"):
            of_plain(name, "1")


def test_lists_and_groups_of_plain_data_can_be_emptied():
    assert of_plain("rows", "") == ()
    assert of_plain("inner", "") == {}


def test_a_change_leaves_the_settings_given_as_they_are():
    before = flattened(PLAIN)
    assert with_change(PLAIN, "inner.number", "3", {}, "an example") != PLAIN
    assert flattened(PLAIN) == before


def test_a_change_has_a_name_and_a_value():
    assert split_change("a.b=c=d") == ("a.b", "c=d")
    with pytest.raises(ValueError, match="--set must be NAME=VALUE; got 'a'"):
        split_change("a")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("count", 3), ("is_on", True), ("word", "b"), ("inner.maybe", None)],
        *[("inner.number", 1e-7), ("law", Geometric(0.5)), ("epsilon", Linear(1, 0.5, 77))],
    ],
)
def test_what_is_written_is_read_again(name, value):
    assert of_dataclass(name, written(value)) == value


def test_flat_settings_are_named_as_changes_name_them():
    flat = flattened({"a": {"b": 1, "c": {}}, "d": [1]})
    assert flat == {"a.b": 1, "a.c": {}, "d": [1]}


def test_lists_of_a_run_can_be_set():
    run = RAINBOW_PRESETS["rainbow"].at_scale("laptop", "Freeway")
    changed = with_setting(run, "agent.torso", "Convolution(32,8,4),Convolution(32,4,2)")
    assert changed.agent.torso == (Convolution(32, 8, 4), Convolution(32, 4, 2))


def test_settings_within_an_experiment_s_groups_can_be_set():
    settings = experiments()["fig3-cartpole"].settings
    changed = with_change(settings, "map_edges.x", "2", {}, "fig3-cartpole")
    assert changed["map_edges"] == {**settings["map_edges"], "x": 2.0}
    assert list(changed) == list(settings)


@dataclass(frozen=True)
class Bounded:
    least: int = 10
    most: int = 20

    def __post_init__(self):
        if self.least > self.most:
            raise ValueError(f"least must be at most {self.most}; got {self.least}")


@dataclass(frozen=True)
class Whole:
    bounds: Bounded = field(default_factory=Bounded)
    law: DurationLaw = field(default_factory=lambda: Zeta(2.0))


CHANGES = ["bounds.least=30", "bounds.most=40", "law=Zeta(1.5)", "law.cap=7"]


@pytest.mark.parametrize("changes", list(itertools.permutations(CHANGES)))
def test_the_order_of_changes_does_not_matter(changes):
    made = with_changes(Whole(), changes, CLASSES, "an example")
    assert made == Whole(Bounded(30, 40), Zeta(1.5, cap=7))


def test_changes_that_are_wrong_together_are_named_together():
    with pytest.raises(ValueError, match=r"--set bounds.least=9 --set bounds.most=8: least must"):
        with_changes(Whole(), ["bounds.least=9", "bounds.most=8"], CLASSES, "an example")


def test_a_setting_has_one_value():
    assert with_changes(PLAIN, ["count=3", "count=3"], {}, "an example")["count"] == 3
    with pytest.raises(ValueError, match="--set must give count one value; got '3, 4'"):
        with_changes(PLAIN, ["count=3", "word=b", "count=4"], {}, "an example")
