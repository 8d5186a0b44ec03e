"""What someone passes who has not read the documentation: accepted, or refused with the way."""

import json
import re

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from ezgreedy import (
    ActionRepeats,
    DurationLaw,
    EpsilonGreedy,
    EZGreedy,
    FiniteOptions,
    Fixed,
    Geometric,
    StopOnUnchanged,
    TemporallyExtended,
    TimedPolicies,
    WhiteNoise,
    Zeta,
    ladder,
    primitive,
)
from ezgreedy.exploration.tensors import TensorEZGreedy
from support.twins import tape


class Handmade(DurationLaw):
    """An ordinary class, not a dataclass."""

    def __init__(self, longest, weights=None):
        self.cap = longest
        self.favourite = np.int64(2)
        self._given = np.ones(longest) if weights is None else weights

    def _weights(self):
        return self._given


class Unweighted(DurationLaw):
    """A law whose author has forgotten its probabilities."""

    cap = 5


# Accepted.


@pytest.mark.parametrize(
    "make",
    [
        lambda space: EZGreedy(space, 0.1),
        lambda space: EpsilonGreedy(space, 0.1),
        lambda space: TensorEZGreedy(space, 0.1),
        lambda space: TemporallyExtended(ActionRepeats(space), 0.1),
        lambda space: FiniteOptions(space, [primitive(2)]),
        lambda space: TimedPolicies(space, [lambda history: 0]),
    ],
)
def test_a_discrete_space_is_a_number_of_actions(make):
    assert make(gymnasium.make("MountainCar-v0").action_space).num_actions == 3
    assert type(make(Discrete(3)).num_actions) is int


def test_an_own_law_that_is_no_dataclass_is_saved_and_continued():
    saved, expected = EZGreedy(4, 0.3, Handmade(5)), EZGreedy(4, 0.3, Handmade(5))
    tape(saved, 30), tape(expected, 30)
    state = json.loads(json.dumps(saved.state_dict()))
    assert state["durations"] == {"law": "Handmade", "cap": 5, "favourite": 2, "mean": 3.0}
    restored = EZGreedy(4, 0.3, Handmade(5))
    restored.load_state_dict(state)
    np.testing.assert_array_equal(tape(restored, 50), tape(expected, 50))
    for other in (Handmade(6), Handmade(5, [1, 0, 0, 0, 0])):
        with pytest.raises(ValueError, match=r"state\['durations'\] must equal"):
            EZGreedy(4, 0.3, other).load_state_dict(state)


# Refused, with the way.


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Discrete(3, start=1), "num_actions must start at 0: pass 3, and add 1 to the actions"),
        (Box(0.0, 1.0), "be an int or a Discrete space; got Box .*use HeldActions or HeldNoise"),
        (MultiDiscrete([2, 3]), "got MultiDiscrete .*map numbers to actions"),
        (MultiBinary(3), "got MultiBinary .*map numbers to actions"),
        (True, "num_actions must be an int; got bool True"),
    ],
)
def test_other_spaces_are_refused_with_the_way(space, message):
    for make in (EZGreedy, EpsilonGreedy):
        with pytest.raises((TypeError, ValueError), match=message):
            make(space, 0.1)


@pytest.mark.parametrize(("sizes", "is_batch"), [([3, 3, 3], True), ([2], True), ([2, 3], False)])
def test_the_space_of_a_vector_environment_is_refused_with_the_single_one(sizes, is_batch):
    with pytest.raises(TypeError, match="map numbers to actions in a wrapper") as refused:
        EZGreedy(MultiDiscrete(sizes), 0.1)
    way = "(for vector environments pass envs.single_action_space; "
    assert (way in str(refused.value)) == is_batch


@pytest.mark.parametrize(
    ("greedy", "way"),
    [
        (1, "(one entry per lane: pass [1])"),
        (np.int64(1), "(one entry per lane: pass [1])"),
        (
            torch.zeros(1, dtype=torch.int64),
            "(pass tensor.cpu().numpy(), or use ezgreedy.exploration.tensors.TensorEZGreedy)",
        ),
        (torch.zeros(1, 4), "(pass tensor.argmax(1).cpu().numpy(), or use"),
        (memoryview(b"1"), "memory at"),
    ],
)
def test_greedy_actions_that_are_no_array_are_refused_with_the_way(greedy, way):
    explore = EZGreedy(4, 0.1)
    with pytest.raises(TypeError, match="greedy must be an int array; got .*" + re.escape(way)):
        explore(greedy)


def test_a_tensor_as_a_mask_is_not_taken_for_values():
    with pytest.raises(TypeError, match=r"\(pass tensor\.cpu\(\)\.numpy\(\), or use"):
        EZGreedy(4, 0.1)([0], legal=torch.ones(1, 4))


@pytest.mark.parametrize(
    ("greedy", "lanes", "way"),
    [
        (np.zeros(3), 3, "(pass greedy.astype(int))"),
        ([0.0, 1.0, 2.0], 3, "[0.0, 1.0, 2.0] (pass ints)"),
        (np.zeros(4), 1, "(pass [values.argmax()])"),
        (np.zeros((3, 4)), 3, "(pass argmax(axis=1) of values)"),
        (np.zeros(4), 3, "array([0., 0., 0., 0.])"),
    ],
)
def test_greedy_actions_that_are_floats_are_refused_with_the_way(greedy, lanes, way):
    with pytest.raises(TypeError, match="hold ints, not float64") as refused:
        EZGreedy(4, 0.1, lanes=lanes)(greedy)
    assert str(refused.value).endswith(way)


def test_an_environment_as_a_number_of_actions_is_refused_with_its_space():
    envs = gymnasium.make_vec("MountainCar-v0", num_envs=2, vectorization_mode="sync")
    with pytest.raises(TypeError, match=r"\(pass envs\.single_action_space\)"):
        EZGreedy(num_actions=envs, epsilon=0.1)
    with pytest.raises(TypeError, match=r"\(pass env\.action_space\)"):
        EZGreedy(num_actions=gymnasium.make("MountainCar-v0"), epsilon=0.1)


@pytest.mark.parametrize("options", [[primitive(0)], (primitive(0),), primitive(0)])
def test_options_that_are_no_set_are_refused_with_the_set(options):
    with pytest.raises(TypeError, match=r"FiniteOptions\(num_actions, \[\.\.\.\]\)"):
        TemporallyExtended(options, 0.1)


def test_states_of_other_lanes_are_refused_with_the_argument():
    for make, whose in (
        (lambda lanes: EZGreedy(3, 0.1, lanes=lanes), "policy"),
        (StopOnUnchanged, "rule"),
        (lambda lanes: WhiteNoise(1, 0.5, lanes=lanes), "noise"),
    ):
        with pytest.raises(ValueError, match=rf"got 5 \(make the {whose} with lanes=5\)"):
            make(3).load_state_dict(make(5).state_dict())


def test_one_number_for_many_lanes_is_refused_with_their_shape():
    explore = EZGreedy(3, 0.1, lanes=4)
    for value in (1, np.int64(1)):
        with pytest.raises(TypeError, match=r"\(one entry per lane: pass an array of 4\)"):
            explore(value)
    with pytest.raises(TypeError, match=r"\(one row per lane: pass an array of shape \(4, 3\)\)"):
        explore([0] * 4, legal=True)
    with pytest.raises(TypeError, match=r"got int 1 \(pass an array of 3\)"):
        EZGreedy(3, 0.1, action_weights=1)


@pytest.mark.parametrize("lanes", [1, 2])
def test_actions_of_more_lanes_are_refused_with_the_argument_that_was_forgotten(lanes):
    message = r"got \(4,\) \(one entry per lane: make the policy with lanes=4\)"
    general = TemporallyExtended(ActionRepeats(3, Fixed(2)), 0.1, lanes=lanes)
    for explore in (EZGreedy(3, 0.1, lanes=lanes), general):
        with pytest.raises(ValueError, match=message):
            explore(np.zeros(4, dtype=int))
    # A function is asked about some lanes only, which no argument changes.
    with pytest.raises(ValueError, match=r"got \(4,\) \(one entry per lane asked for\)"):
        EZGreedy(3, 0.1, lanes=lanes)(lambda _: np.zeros(4, dtype=int))


@pytest.mark.parametrize("kind", [np.int8, np.float32])
def test_masks_of_numbers_are_refused_with_the_way(kind):
    explore = EZGreedy(3, 0.1, lanes=2)
    with pytest.raises(TypeError, match=r"\(pass legal\.astype\(bool\)\)"):
        explore([0, 0], legal=np.ones((2, 3), dtype=kind))
    with pytest.raises(TypeError, match=r"\(pass finished\.astype\(bool\)\)"):
        explore.reset(np.zeros(2, dtype=kind))
    with pytest.raises(TypeError, match=r"\(pass legal\.bool\(\)\)"):
        TensorEZGreedy(3, 0.1, lanes=2)(torch.zeros(2).long(), legal=torch.ones(2, 3))
    with pytest.raises(TypeError, match=r"got list \[0, 1\] \(pass numpy\.array\(finished, bool\)"):
        explore.reset([0, 1])


@pytest.mark.parametrize("finished", [[0, 2], np.array([2]), [2, 0, 1]])
def test_numbers_of_lanes_in_place_of_a_mask_are_refused_with_the_mask(finished):
    explore = EZGreedy(3, 0.1, lanes=3)
    with pytest.raises(TypeError, match=r"pass numpy\.isin\(numpy\.arange\(3\), finished\)"):
        explore.reset(finished)


def test_another_number_of_lanes_is_refused_with_the_way():
    message = r"greedy must have shape \(3,\); got \(2,\) \(one entry per lane, .*`active` leaves"
    with pytest.raises(ValueError, match=message):
        EZGreedy(4, 0.1, lanes=3)([0, 1])


def test_arrays_of_other_packages_are_refused_with_the_way():
    class Foreign:
        def __array__(self):
            raise AssertionError("never converted in silence")

    with pytest.raises(TypeError, match=r"\(pass numpy\.asarray of it\)"):
        EZGreedy(4, 0.1)(Foreign())


@pytest.mark.parametrize(("value", "said"), [(True, "[True]"), (np.True_, "[True]")])
def test_reset_of_a_scalar_is_refused_with_the_way(value, said):
    message = f"finished must be a bool array; got .*pass {re.escape(said)}"
    with pytest.raises(TypeError, match=message):
        EZGreedy(4, 0.1).reset(value)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (Handmade(3, np.ones(4)), r"Handmade._weights\(\) must have shape \(3,\)"),
        (Handmade(3, np.zeros(3)), r"Handmade._weights\(\) must be finite, non-negative"),
        (Handmade(3, [1, -1, 1]), r"Handmade._weights\(\) must be finite, non-negative"),
        (Handmade(0), r"durations\.cap must be at least 1; got 0"),
        (DurationLaw(), r"durations\.cap must be an int; got NoneType None"),
        (Unweighted(), r"Unweighted must define _weights\(\), the unnormalised probabilities"),
    ],
)
def test_a_law_that_cannot_be_drawn_from_is_refused_when_the_policy_is_made(law, message):
    for make in (lambda: EZGreedy(4, 0.0, law), lambda: ActionRepeats(4, law)):
        with pytest.raises((TypeError, ValueError), match=message):
            make()


def test_a_law_that_cannot_be_saved_is_refused_when_the_policy_is_made():
    law = Handmade(3)
    law.network = object()
    with pytest.raises(TypeError, match="durations must describe itself as plain data"):
        EZGreedy(4, 0.1, law)


# What a policy says about itself.


def test_a_policy_shows_its_settings_and_what_it_has_done():
    explore = EZGreedy(4, 1.0, Fixed(3), lanes=2, seed=7)
    assert repr(explore) == (
        "EZGreedy(num_actions=4, epsilon=1.0, lanes=2, seed=7, durations=Fixed(n=3)) "
        "after 0 steps, 0 of them exploratory"
    )
    tape(explore, 600)
    assert repr(explore).endswith("after 1,200 steps, 1,200 of them exploratory")


def test_rare_settings_are_shown_where_they_are_set():
    explore = EZGreedy(
        2, ladder(2), lanes=2, first_lane=9, action_weights=[1, 3], carries_over_episodes=True
    )
    for part in ("array([0.4", "first_lane=9", "action_weights=[1.0, 3.0]", "carries_over"):
        assert part in repr(explore)
    assert repr(EpsilonGreedy(4, 0.1)).startswith(
        "EpsilonGreedy(num_actions=4, epsilon=0.1, lanes=1"
    )
    assert "durations" not in repr(EpsilonGreedy(4, 0.1))
    options = repr(TemporallyExtended(ActionRepeats(4, Geometric(0.5)), 0.1))
    assert options.startswith("TemporallyExtended(options=ActionRepeats(num_actions=4, ...), eps")
    assert repr(TensorEZGreedy(4, 0.1, Zeta())).startswith("TensorEZGreedy(num_actions=4, epsilon")
    assert repr(Handmade(3)) == "Handmade(cap=3, favourite=2, mean=2.0)"
