"""Times and sizes as people say them."""

import pytest

from ezgreedy.units import duration, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *[(0.4, "0 s"), (5, "5 s"), (60, "60 s"), (89.4, "89 s"), (90, "2 min"), (600, "10 min")],
        *[(5399, "90 min"), (7200, "2.0 h"), (9000, "2.5 h"), (3e5, "3.5 days")],
        *[(1e9, "31.7 years"), (1e12, "31,688.1 years")],
    ],
)
def test_durations_are_said_as_people_say_them(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        *[(0, "0.0 MB"), (440_000, "0.4 MB"), (9_940_000, "9.9 MB"), (10_000_000, "10 MB")],
        *[(500_000_000, "500 MB"), (7.1e9, "7.1 GB"), (1.25e12, "1.2 TB")],
    ],
)
def test_sizes_are_said_as_people_say_them(num_bytes, text):
    assert size(num_bytes) == text
