"""Games are found by any usual spelling of their names."""

import pytest

from ezgreedy.games.registry import families, full_name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Breakout", "Breakout"),
        ("breakout", "Breakout"),
        ("ALE/Breakout-v5", "Breakout"),
        ("BreakoutNoFrameskip-v4", "Breakout"),
        ("montezuma_revenge", "MontezumaRevenge"),
        ("ALE/MontezumaRevenge-v5", "MontezumaRevenge"),
        ("minatar/breakout", "minatar/breakout"),
        ("MinAtar/Breakout-v1", "minatar/breakout"),
        ("MinAtar/SpaceInvaders-v0", "minatar/space_invaders"),
        ("gymnasium/CarRacing-v3", "gymnasium/CarRacing-v3"),
        ("Freway", "Freway"),
    ],
)
def test_usual_spellings_are_understood(spelling, name):
    assert full_name(spelling) == name


def test_every_game_keeps_its_own_name():
    for family in families():
        assert [full_name(name) for name in family.games()] == list(family.games())
