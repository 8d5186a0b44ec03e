"""What an unknown name is answered with."""

import pytest

from ezgreedy import requirements as require

KNOWN = ["Pong", "Freeway", "minatar/breakout", "rainbow-ez"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("freway", " (did you mean Freeway?)"),  # nearly right, in any case
        ("PongNoFrameskip-v4", " (did you mean Pong?)"),  # holds a known name
        ("rainb", " (did you mean rainbow-ez?)"),  # the beginning of a known name
        ("rainbow_ez", " (did you mean rainbow-ez?)"),  # right but for its punctuation
        ("minatar/brekout", " (did you mean minatar/breakout?)"),
        ("nothing of the kind", ""),
        ("", ""),
    ],
)
def test_the_nearest_names_are_suggested(name, hint):
    assert require.near(name, KNOWN) == hint
    error = require.refuse_name("game", "be known", name, KNOWN)
    assert str(error) == f"game must be known{hint}; got {name!r}"


def test_at_most_three_names_are_suggested():
    assert require.near("aaaa1", [f"aaaa{i}" for i in range(2, 9)]).count(" or ") == 2
