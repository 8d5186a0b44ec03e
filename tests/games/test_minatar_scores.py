import numpy as np
import pytest

from ezgreedy.findings.scores import human_normalised, scores_of
from ezgreedy.findings.suites import suites
from ezgreedy.games.atari.atari57 import games
from ezgreedy.games.minatar import GAMES, PREFIX
from ezgreedy.games.minatar_scores import minatar_scores, random_returns

QUICK = [name for name in GAMES if name != "freeway"]  # whose episodes take 2,500 frames


def check(name: str, returns: list[float]) -> None:
    found = minatar_scores()[PREFIX + name]
    assert np.mean(returns) == pytest.approx(found.random_score, rel=1e-9)
    error = np.std(returns, ddof=1) / np.sqrt(len(returns))
    assert error == pytest.approx(found.random_error, abs=5.1e-4)


@pytest.mark.parametrize("name", QUICK)
def test_random_scores_are_what_the_random_agent_gets_from_the_real_games(name: str) -> None:
    check(name, random_returns(PREFIX + name, 500, seed=0))


@pytest.mark.slow
def test_the_random_score_of_freeway_is_what_the_random_agent_gets() -> None:
    check("freeway", random_returns(f"{PREFIX}freeway", 500, seed=0))


def test_other_seeds_agree_within_their_errors() -> None:
    returns = random_returns(f"{PREFIX}breakout", 500, seed=1)
    assert returns != random_returns(f"{PREFIX}breakout", 500, seed=0)
    found = minatar_scores()[f"{PREFIX}breakout"]
    assert abs(np.mean(returns) - found.random_score) < 4 * np.sqrt(2) * found.random_error


def test_dqn_is_one_and_the_random_agent_zero() -> None:
    _, suite = suites()
    for name, measure in minatar_scores().items():
        for score, expected in ((measure.random_score, 0.0), (measure.dqn_score, 1.0)):
            scores = human_normalised(scores_of([(name, 0, score)]), suite.games)
            assert scores.values[0, scores.games.index(name)] == pytest.approx(expected)


def test_every_game_has_scores_and_a_suite_of_its_own() -> None:
    atari, minatar = suites()
    assert list(minatar.games) == [PREFIX + name for name in GAMES]
    assert list(atari.games) == list(games())
    assert not {*atari.games} & {*minatar.games}
    assert [name for name, found in minatar_scores().items() if not found.is_comparable] == [
        f"{PREFIX}seaquest"
    ]
