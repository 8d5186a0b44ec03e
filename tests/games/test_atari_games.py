import pytest

from ezgreedy.games import HARD_EXPLORATION, Emulator, game, games
from ezgreedy.games.atari.atari57 import NUM_FULL_ACTIONS
from ezgreedy.games.atari.emulator import full_action_set


def test_there_are_57_games_in_order_and_every_score_is_there():
    assert len(games()) == 57
    assert list(games()) == sorted(games())
    for name, entry in games().items():
        assert entry.name == name
        assert entry.random_score < entry.human_score


def test_known_scores_are_those_of_the_literature():
    assert (game("Pong").random_score, game("Pong").human_score) == (-20.7, 14.6)
    assert (game("Freeway").random_score, game("Freeway").human_score) == (0.0, 29.6)
    assert game("VideoPinball").human_score == 17667.9


def test_action_sets_are_those_of_the_emulator_and_begin_with_noop(raw_machine):
    for entry in games().values():
        machine = raw_machine(entry.name, is_begun=False)
        minimal = machine.getMinimalActionSet()
        assert len(minimal) == entry.num_minimal_actions, entry.name
        assert set(minimal) <= set(machine.getLegalActionSet()) <= set(full_action_set())
        assert minimal[0] == full_action_set()[0] == type(minimal[0]).NOOP
    assert len(full_action_set()) == NUM_FULL_ACTIONS


def test_a_random_agent_scores_0_and_a_person_1():
    for entry in games().values():
        assert entry.human_normalised(entry.random_score) == 0.0
        assert entry.human_normalised(entry.human_score) == 1.0


def test_the_papers_hard_exploration_games_are_among_them():
    assert {name for name in games() if game(name).is_hard_exploration} == set(HARD_EXPLORATION)
    assert len(HARD_EXPLORATION) == 4


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("montezuma_revenge", "MontezumaRevenge"),
        ("Montezuma's Revenge", "MontezumaRevenge"),
        ("freeway", "Freeway"),
        ("JamesBond", "Jamesbond"),
        ("PongNoFrameskip-v4", "Pong"),
        ("ALE/Freeway-v5", "Freeway"),
    ],
)
def test_unknown_games_are_refused_with_the_nearest_names(wrong, meant):
    with pytest.raises(ValueError, match=f"did you mean .*{meant}.*got {wrong!r}"):
        game(wrong)
    with pytest.raises(ValueError, match="did you mean"):
        Emulator(wrong, rng=None)


def test_names_like_no_game_are_refused_without_a_suggestion():
    with pytest.raises(ValueError, match=r"one of the 57 Atari games, or .*; got 'zzzzqqq'"):
        game("zzzzqqq")
    with pytest.raises(TypeError, match="be the name of a game"):
        game(3)
