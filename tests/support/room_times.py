"""How long do the tests of each room take? Summed from reports, also those of xdist's workers."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import PurePosixPath


@dataclass
class RoomTimes:
    """Seconds and tests of each room, a room being a folder of tests."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    tests: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, nodeid: str, seconds: float) -> None:
        """Counts a part of a test: what sets it up, the test itself, or what cleans up after it."""
        room = room_of(nodeid)
        self.seconds[room] += seconds
        self.tests[room].add(nodeid)

    def lines(self) -> list[str]:
        """A table of the rooms, those that take longest first; empty for a single room."""
        if len(self.seconds) < 2:
            return []
        rooms = sorted(self.seconds, key=lambda room: -self.seconds[room])
        rows = [(room, len(self.tests[room]), self.seconds[room]) for room in rooms]
        rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
        width = max(len("room"), *(len(room) for room, _, _ in rows))
        table = [f"{room:<{width}}  {tests:>5}  {seconds:>7.1f}" for room, tests, seconds in rows]
        return [f"{'room':<{width}}  tests  seconds", *table]


def room_of(nodeid: str) -> str:
    """The folder directly below tests/ that a test is in; the file's name if it is in none."""
    parts = PurePosixPath(nodeid.partition("::")[0]).parts
    below = parts[parts.index("tests") + 1 :] if "tests" in parts else parts
    return below[0]
