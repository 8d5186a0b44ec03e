"""Options as tables: the tape of `TemporallyExtended`, and what has no place in a table."""

import numpy as np
import pytest

from ezgreedy import (
    ActionRepeats,
    FiniteOptions,
    Fixed,
    Geometric,
    Option,
    Primitives,
    TemporallyExtended,
    TimedPolicies,
    Zeta,
    eigenoptions,
    exploratory_share,
    follow,
    matched_epsilon,
    primitive,
    repeat,
    sequence,
)
from ezgreedy.exploration.compiled import lane_stream
from ezgreedy.exploration.option_tables import (
    explore_options,
    matched_start,
    mean_plays,
    option_tables,
)
from support.small_mdps import corridor, deep_sea, room

MDP = room(4, (0, 0))
SETS = {
    "repeats": ActionRepeats(4),
    "weighted repeats": ActionRepeats(4, Zeta(1.5, 50), [1.0, 0.0, 2.0, 0.25]),
    "primitives": Primitives(4),
    "eigenoptions": eigenoptions(MDP, 3),
    "shuffled": eigenoptions(MDP, 2, has_primitives=False, shuffled_by=1),
    "weighted list": FiniteOptions(4, [repeat(1, 3), primitive(0), repeat(3, 2)], [1.0, 2.0, 0.5]),
    "a policy for n steps": FiniteOptions(4, [follow(lambda h: h.observation % 4, 5)]),
    "timed policies": TimedPolicies(
        4, [lambda h: h.observation % 4, lambda h: 3 - h.observation % 3], Geometric(0.8)
    ),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_tables_play_the_tape_of_the_general_form(name, epsilon):
    options, seed = SETS[name], 2**40
    explore = TemporallyExtended(options, epsilon, seed=seed)
    tables, stream = option_tables(options, MDP.num_states), lane_stream(seed, 0)
    successors = MDP.transitions.argmax(axis=2)
    state, option, remaining, num_explored = 0, 0, 0, 0
    for step in range(300):
        greedy = (step * 7) % 4
        expected = int(explore([greedy], observations=[state])[0])
        option, remaining, explores = explore_options(
            stream, step, epsilon, tables, state, option, remaining
        )
        assert (tables.actions[option, state] if explores else greedy) == expected
        assert explores == explore.exploring[0]
        num_explored += explores
        state = successors[state, expected]
        if step % 41 == 40:  # an episode ends
            explore.reset(np.array([True]))
            state, remaining = 0, 0
    assert num_explored == (300 if epsilon == 1.0 else explore.counters.explored) > 0


def test_options_that_need_more_than_the_state_are_refused_by_name():
    by_coin = Option(lambda _: 0, lambda _: 0.5, None, "observation", "a coin")
    by_length = Option(lambda _: 0, lambda h: float(h.length > 2), None, "observation", "impatient")
    torn = Option(lambda _: np.full(4, 0.25), lambda _: 1.0, None, "observation", "torn")
    for option, message in (
        (
            by_coin,
            "end in a state for certain or not at all, to become tables; got option 'a coin'",
        ),
        (by_length, "act and end by the state, whatever the number of plays"),
        (torn, "play one action for certain in each state, to become tables; got option 'torn'"),
        (sequence([0, 1]), "act and end by the state"),
        (Option(lambda _: 0, lambda _: 1.0), "read only the state, not their history"),
    ):
        with pytest.raises(ValueError, match=message):
            option_tables(FiniteOptions(4, [option]), 5)
    with pytest.raises(TypeError, match="options must be ActionRepeats"):
        option_tables([primitive(0)], 5)  # type: ignore[arg-type]


def plays_of(options, mdp):
    acting = mdp.reachable_states() & ~mdp.ends
    tables = option_tables(options, mdp.num_states)
    return mean_plays(tables, mdp.transitions.argmax(axis=2), acting)


def test_mean_plays_are_those_of_the_law_where_nothing_ends():
    assert plays_of(ActionRepeats(2, Zeta(2.0, 100)), corridor(5)) == pytest.approx(
        Zeta(2.0, 100).mean
    )
    assert plays_of(Primitives(2), corridor(5)) == 1.0
    # In row r of a DeepSea of 4 rows, at most 4 − r plays are left; rows have 1, 2, 3 and 4 states.
    expected = np.average([4, 3, 2, 1], weights=[1, 2, 3, 4])
    assert plays_of(ActionRepeats(2, Fixed(9)), deep_sea(4)) == pytest.approx(expected)


def test_mean_plays_of_a_direction_are_its_steps_to_an_end():
    # Up or down a corridor of 5 from a random state: 4, 3, 2, 1 and, at the end itself, one play.
    options = eigenoptions(corridor(5), 1, has_primitives=False)
    assert plays_of(options, corridor(5)) == pytest.approx(11 / 5)


def test_a_matched_start_gives_the_share_that_was_asked_for():
    law = Zeta(2.0, 100)
    assert matched_start(0.1, law.mean) == pytest.approx(matched_epsilon(0.1, law))
    assert exploratory_share(matched_start(0.3, law.mean), law) == pytest.approx(0.3)
    assert matched_start(0.25, 1.0) == 0.25
    with pytest.raises(ValueError, match="share must lie in"):
        matched_start(1.5, 2.0)
    with pytest.raises(ValueError, match="plays must"):
        matched_start(0.5, 0.5)
