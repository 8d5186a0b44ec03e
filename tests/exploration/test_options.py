"""The general form: options over histories, and what binds it to εz-greedy."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy import (
    ActionRepeats,
    EpsilonGreedy,
    EZGreedy,
    FiniteOptions,
    Fixed,
    Geometric,
    History,
    Linear,
    Option,
    PlusOne,
    Primitives,
    TemporallyExtended,
    TimedPolicies,
    Uniform,
    Zeta,
    follow,
    primitive,
    repeat,
    sequence,
)
from ezgreedy.exploration.streams import Purpose
from support.scripted import ScriptedStreams
from support.statistics import assert_follows
from support.twins import tape

HEADS = 0.0
LAWS = [Zeta(), Zeta(cap=20), Fixed(3), Geometric(0.7, 50), Uniform(6), PlusOne(Zeta(cap=5))]


# One mechanism.


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_action_repeats_and_ez_greedy_give_the_same_tape(data):
    draw = data.draw
    lanes, num_actions = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    weights = draw(st.none() | st.lists(st.floats(0.01, 5), min_size=5, max_size=5))
    weights = None if weights is None else weights[:num_actions]
    law, seed = draw(st.sampled_from(LAWS)), draw(st.integers(0, 2**70))
    epsilon = draw(st.sampled_from([0.4, 1.0, Linear(1.0, 0.1, 20), lambda step: 0.3]))
    keywords = {
        "first_lane": draw(st.integers(0, 50)),
        "carries_over_episodes": draw(st.booleans()),
    }
    fast = EZGreedy(num_actions, epsilon, law, lanes, seed, action_weights=weights, **keywords)
    general = TemporallyExtended(
        ActionRepeats(num_actions, law, weights), epsilon, lanes, seed, **keywords
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(1, 50))):
        greedy = rng.integers(0, num_actions, lanes)
        starts = rng.random(lanes) < 0.2 if rng.random() < 0.4 else None
        active = rng.random(lanes) < 0.7 if rng.random() < 0.4 else None
        ends = rng.random(lanes) < 0.3 if rng.random() < 0.4 else None
        legal = None
        if rng.random() < 0.4:
            legal = rng.random((lanes, num_actions)) < 0.6
            legal[np.arange(lanes), greedy] = True
        stepping = np.ones(lanes, bool) if active is None else active
        actions = fast(greedy, starts, active, legal, ends)
        np.testing.assert_array_equal(
            actions[stepping], general(greedy, starts, active, legal, ends=ends)[stepping]
        )
        np.testing.assert_array_equal(fast.exploring, general.exploring)
        np.testing.assert_array_equal(fast.remaining, general.remaining)
        np.testing.assert_allclose(fast.probabilities, general.probabilities)
        finished = rng.random(lanes) < 0.05
        fast.reset(finished)
        general.reset(finished)
    assert fast.counters == general.counters


def test_primitives_are_epsilon_greedy():
    general = TemporallyExtended(Primitives(6), 0.3, lanes=3, seed=4)
    np.testing.assert_array_equal(
        tape(general, 200), tape(EpsilonGreedy(6, 0.3, lanes=3, seed=4), 200)
    )


def test_finite_repeats_are_repeats_of_fixed_duration():
    options = FiniteOptions(4, [repeat(action, 3) for action in range(4)])
    general = TemporallyExtended(options, 0.3, lanes=3, seed=4)
    np.testing.assert_array_equal(
        tape(general, 200), tape(EZGreedy(4, 0.3, Fixed(3), lanes=3, seed=4), 200)
    )


def test_constant_policies_with_a_duration_are_action_repeats():
    policies = [lambda history, action=action: action for action in range(4)]
    options = TimedPolicies(4, policies, Zeta(cap=40), memory="length")
    general = TemporallyExtended(options, 0.3, lanes=3, seed=4)
    np.testing.assert_array_equal(
        tape(general, 300), tape(EZGreedy(4, 0.3, Zeta(cap=40), lanes=3, seed=4), 300)
    )


# Options one by one, with scripted randomness.


def single(option, num_actions=4, script=None, **keywords):
    explore = TemporallyExtended(FiniteOptions(num_actions, [option]), 0.5, **keywords)
    explore.streams = ScriptedStreams(script or {(0, 1): (HEADS, 0.0, 0.0)}, explore.lanes)
    return explore


def test_a_sequence_plays_its_actions_then_ends():
    assert tape(single(sequence([3, 1, 2])), 6)[:, 0].tolist() == [0, 3, 1, 2, 0, 0]


def test_an_option_that_states_its_length_ends_then_whatever_its_termination_says():
    endless = Option(lambda history: 2, lambda history: 0.0, length=2, memory="length")
    assert tape(single(endless), 5)[:, 0].tolist() == [0, 2, 2, 0, 0]


def test_a_primitive_plays_once():
    assert tape(single(primitive(3)), 4)[:, 0].tolist() == [0, 3, 0, 0]


def test_a_followed_policy_sees_the_latest_observation():
    explore = single(follow(lambda history: int(history.observation) % 4, 3))
    actions = [
        int(explore(np.array([0]), observations=np.array([observation]))[0])
        for observation in (7, 6, 5, 11, 2)
    ]
    assert actions == [0, 2, 1, 3, 0]


def test_an_option_over_histories_sees_everything_since_it_began_and_nothing_before():
    seen = []

    def policy(history):
        seen.append((history.length, history.observations, history.actions))
        return 1 + history.length

    explore = single(Option(policy, lambda history: float(history.length >= 3)))
    for observation in range(10, 16):
        explore(np.array([0]), observations=[observation])
    assert seen == [
        (0, (11,), ()),
        (1, (11, 12), (1,)),
        (2, (11, 12, 13), (1, 2)),
    ]


def test_options_keep_only_what_their_memory_says():
    histories = []

    def policy(history):
        histories.append(history)
        return 0

    for memory in ("length", "observation"):
        explore = single(Option(policy, lambda h: float(h.length >= 2), memory=memory))
        for observation in range(4):
            explore(np.array([0]), observations=[observation])
    assert histories == [History(0), History(1), History(0, 1), History(1, 2)]


def test_termination_is_drawn_with_its_probability():
    draws = {
        (0, 0): (HEADS, 0.0, 0.0),
        (0, 1): (0.9, 0.0, 0.0, 0.0, 0.7),
        (0, 2): (0.9, 0.0, 0.0, 0.0, 0.2),
    }
    option = Option(lambda history: 2, lambda history: 0.5, memory="length")
    explore = single(option, script=draws)
    assert tape(explore, 3)[:, 0].tolist() == [2, 2, 0]
    assert (0, 2, Purpose.OPTION_TERMINATION) in explore.streams.asked


def test_sure_ends_and_sure_continuations_draw_nothing():
    explore = single(repeat(2, 3))
    tape(explore, 6)
    assert not any(purpose == Purpose.OPTION_TERMINATION for *_, purpose in explore.streams.asked)


@pytest.mark.parametrize("kind", [bool, np.bool_])
def test_truth_values_of_a_termination_are_one_and_zero(kind):
    tapes = []
    for answer in (float, kind):
        option = Option(lambda h: 2, lambda h, answer=answer: answer(len(h.actions) >= 2))
        explore = TemporallyExtended(FiniteOptions(4, [option]), 0.5, lanes=3, seed=0)
        tapes.append([explore(np.zeros(3, int), observations=[0] * 3).tolist() for _ in range(30)])
        unfinished = 2 * explore.counters.started - explore.counters.explored
        assert 0 <= unfinished <= 3
    assert tapes[0] == tapes[1]


def test_a_geometric_termination_has_geometric_lengths():
    option = Option(lambda history: 1, lambda history: 0.25, memory="length")
    explore = TemporallyExtended(FiniteOptions(2, [option]), 1.0, lanes=200, seed=0)
    greedy, lengths, current = np.zeros(200, int), [], np.zeros(200, int)
    for _ in range(150):
        before = explore.counters.started
        explore(greedy)
        assert (explore.remaining == -1).all()
        current += 1
        lengths.append(explore.counters.started - before)
    # Starts per step settle at the termination rate.
    assert abs(np.mean(lengths[1:]) / 200 - 0.25) < 0.02


def test_a_stochastic_option_policy_follows_its_probabilities():
    law = np.array([0.1, 0.0, 0.6, 0.3])
    option = Option(lambda history: law, lambda history: 1.0, memory="length")
    explore = TemporallyExtended(FiniteOptions(4, [option]), 1.0, lanes=300, seed=0)
    drawn = tape(explore, 100).ravel()
    assert_follows(drawn, law, rejects={"uniform": np.full(4, 0.25)})
    actions = explore(np.zeros(300, int))
    np.testing.assert_allclose(explore.probabilities, law[actions])


def test_probabilities_inside_a_stochastic_option_are_its_own():
    law = np.array([0.5, 0.5])
    option = follow(lambda history: law, 4, memory="length")
    explore = TemporallyExtended(FiniteOptions(2, [option]), 1.0, lanes=3, seed=0)
    for _ in range(4):
        explore(np.zeros(3, int))
        np.testing.assert_allclose(explore.probabilities, 0.5)


def test_probabilities_mix_the_first_actions_of_all_options():
    options = FiniteOptions(4, [repeat(1, 2), sequence([1, 3]), repeat(2, 5)], weights=[1, 1, 2])
    explore = TemporallyExtended(options, 0.4, lanes=200, seed=0)
    actions = explore(np.zeros(200, int))
    by_action = {0: 0.6, 1: 0.4 * 0.5, 2: 0.4 * 0.5}
    np.testing.assert_allclose(explore.probabilities, [by_action[a] for a in actions.tolist()])


def test_an_illegal_play_ends_the_option():
    explore = single(sequence([3, 1, 2]))
    legal = np.ones((1, 4), dtype=bool)
    legal[0, 1] = False
    actions = [explore(np.array([0]), legal=legal)[0] for _ in range(4)]
    assert actions == [0, 3, 0, 0]
    assert explore.counters.cut_by_masks == 1
    assert explore.counters.plays_cut == 2


def test_an_option_whose_first_play_is_illegal_leaves_the_step_to_greedy():
    explore = single(primitive(3))
    legal = np.array([[True, True, True, False]])
    assert [explore(np.array([0]), legal=legal)[0] for _ in range(3)] == [0, 0, 0]
    assert explore.counters.started == 0
    np.testing.assert_allclose(explore.probabilities, 1.0)


def test_option_weights_are_followed():
    options = FiniteOptions(3, [primitive(0), primitive(1), primitive(2)], weights=[1, 0, 3])
    explore = TemporallyExtended(options, 1.0, lanes=200, seed=1)
    assert_follows(tape(explore, 100).ravel(), [0.25, 0.0, 0.75], {"uniform": [1 / 3] * 3})


# Branches have the law of draws.


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_hazards_reproduce_the_duration_law(law):
    ends = ActionRepeats(2, law).branches()[0].option.termination
    alive, mass = 1.0, []
    for n in range(1, law.cap + 1):
        hazard = ends(History(n))
        mass.append(alive * hazard)
        alive *= 1.0 - hazard
    np.testing.assert_allclose(mass, law.pmf(np.arange(1, law.cap + 1)), atol=1e-12)
    assert alive < 1e-9


def test_branch_probabilities_sum_to_one():
    for options in (
        ActionRepeats(5, action_weights=[1, 2, 3, 0, 4]),
        FiniteOptions(2, [primitive(0), primitive(1)], weights=[3, 1]),
        TimedPolicies(2, [lambda h: 0, lambda h: 1], Fixed(2)),
    ):
        assert np.isclose(sum(branch.probability for branch in options.branches()), 1.0)


# Checkpoints inside options.


def wanderer(history):
    return int(np.sum(history.observations[-1]) + history.length + sum(history.actions)) % 3


@pytest.mark.parametrize(
    "options",
    [
        ActionRepeats(3, Zeta(cap=30)),
        TimedPolicies(3, [wanderer, lambda h: 1], Zeta(cap=30), memory="history"),
        FiniteOptions(3, [sequence([0, 1, 2, 1]), follow(wanderer, 6, memory="history")]),
    ],
    ids=lambda options: type(options).__name__,
)
@pytest.mark.parametrize("num_steps", [1, 5, 40])
def test_a_state_saved_inside_options_continues_the_same_tape(options, num_steps):
    rng = np.random.default_rng(0)
    observations = rng.integers(0, 9, (num_steps + 60, 4, 2))
    legal = rng.random((num_steps + 60, 4, 3)) < 0.8
    legal[:, :, 0] = True

    def play(explore, steps):
        greedy = np.zeros(4, int)
        return [
            explore(greedy, legal=legal[t], observations=observations[t]).tolist() for t in steps
        ]

    original = TemporallyExtended(options, 0.4, lanes=4, seed=7)
    play(original, range(num_steps))
    restored = TemporallyExtended(options, 0.4, lanes=4, seed=7)
    restored.load_state_dict(json.loads(json.dumps(original.state_dict())))
    assert restored.state_dict() == original.state_dict()
    ahead = range(num_steps, num_steps + 60)
    assert play(restored, ahead) == play(original, ahead)
    assert restored.counters == original.counters


def test_observations_keep_their_type_through_a_state():
    kept = []
    option = Option(lambda h: kept.append(h) or 0, lambda h: float(h.length >= 3))
    for observation in (3, 2.5, np.arange(6, dtype=np.uint8).reshape(2, 3), np.float32(1.5)):
        original = single(option, script={(0, 0): (HEADS, 0.0, 0.0)})
        original(np.array([0]), observations=[observation])
        restored = single(option, script={(0, 0): (HEADS, 0.0, 0.0)})
        restored.load_state_dict(json.loads(json.dumps(original.state_dict())))
        restored(np.array([0]), observations=[observation])
        first = kept[-1].observations[0]
        assert type(first) is type(observation)
        np.testing.assert_array_equal(first, observation)


def test_a_state_of_another_option_set_is_refused():
    saved = TemporallyExtended(ActionRepeats(3, Fixed(2)), 0.1).state_dict()
    with pytest.raises(ValueError, match=r"state\['options'\] must equal"):
        TemporallyExtended(ActionRepeats(3, Fixed(3)), 0.1).load_state_dict(saved)


# Refusals.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: repeat(-1, 2), "action must be at least 0; got -1"),
        (lambda: repeat(1, 0), "n must be at least 1; got 0"),
        (lambda: repeat(1.0, 2), "action must be an int"),
        (lambda: sequence([]), "actions must hold at least one action"),
        (lambda: sequence([0, -1]), "actions must be at least 0; got -1"),
        (lambda: Option(3, lambda h: 1.0), "policy of option .option. must be a function"),
        (lambda: Option(lambda h: 0, None), "termination of .* must be a function of a History"),
        (
            lambda: Option(lambda h: 0, lambda h: 1.0, memory="all", name="slow"),
            "memory of option 'slow' must be one of",
        ),
        (
            lambda: Option(lambda h: 0, lambda h: 1.0, length=0, name="slow"),
            "length of option 'slow' must be at least 1",
        ),
        (lambda: FiniteOptions(2, []), "options must be Option objects, at least one"),
        (lambda: FiniteOptions(2, [3]), "options must be Option objects"),
        (lambda: FiniteOptions(2, [primitive(0)], weights=[1, 2]), "weights must have shape"),
        (lambda: TimedPolicies(2, [1]), "policies must be functions of a History"),
        (lambda: TemporallyExtended([primitive(0)], 0.1), "options must be an option set"),
    ],
)
def test_bad_options_are_refused_by_name(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (Option(lambda h: 9, lambda h: 1.0), "policy of option 'option' must be at most 3; got 9"),
        (Option(lambda h: 0.5, lambda h: 1.0), "policy of option 'option' must be an int"),
        (Option(lambda h: [1, 2], lambda h: 1.0), r"must have shape \(4,\)"),
        (
            Option(lambda h: 0, lambda h: 1.5),
            r"termination of option 'option' must lie in \[0, 1\]",
        ),
        (Option(lambda h: 0, lambda h: "no"), "termination of option 'option' must be a number"),
    ],
)
def test_options_that_misbehave_are_refused_and_change_nothing(option, message):
    explore = single(option, script={(0, 0): (HEADS, 0.0, 0.0, 0.0, 0.0)})
    if "termination" in message:  # asked from the first play on
        explore(np.array([0]), observations=[0])
    state = explore.state_dict()
    with pytest.raises((ValueError, TypeError), match=message):
        explore(np.array([0]), observations=[1])
    assert explore.state_dict() == state


def test_missing_observations_are_refused_on_the_first_call_whatever_it_draws():
    explore = single(follow(lambda h: 0, 2, name="compass"))  # the coin says greedy
    with pytest.raises(ValueError, match="observations must be given: option 'compass for 2'"):
        explore(np.array([0]))
    with pytest.raises(ValueError, match="observations must have 1 entries; got 2"):
        explore(np.array([0]), observations=[1, 2])
    timed = TemporallyExtended(TimedPolicies(4, [lambda h: 0]), epsilon=0.0)
    with pytest.raises(ValueError, match=r"observations must be given: option .policy 0 for n ~ Z"):
        timed(np.array([0]))


def test_missing_observations_are_refused_with_the_way_for_options_that_read_none():
    explore = single(Option(lambda h: 0, lambda h: 1.0))
    with pytest.raises(ValueError, match=r"as memory='history' says; .*give .* memory='length' if"):
        explore(np.array([0]))
    single(Option(lambda h: 0, lambda h: 1.0, memory="length"))(np.array([0]))


@pytest.mark.parametrize(
    ("option", "name"),
    [(repeat(5, 2), "repeat 5 for 2"), (sequence([0, 1, 3]), "sequence [0, 1, 3]")],
)
def test_a_set_refuses_options_whose_actions_it_lacks(option, name):
    message = re.escape(f"options must play actions in [0, 3); got option {name!r}")
    with pytest.raises(ValueError, match=message):
        FiniteOptions(3, [primitive(0), option])
    assert FiniteOptions(6, [option]).options == (option,)
