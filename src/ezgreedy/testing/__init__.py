"""Does an adapter explore as it should? One conformance suite for every library.

    from ezgreedy.testing import AdaptedAgent, Trial, check_adapter

    print(check_adapter(MyAgent))

`MyAgent` is a small class that tells the suite how to build, run, save and evaluate an agent of the
library (docs/adapters/conformance.md shows one). Needs Gymnasium.
"""

from ezgreedy.testing.conformance import Conformance, NonConforming, check_adapter
from ezgreedy.testing.recording import RecordedEnv, Recording
from ezgreedy.testing.trial import AdaptedAgent, Trial

__all__ = [
    "AdaptedAgent",
    "Conformance",
    "NonConforming",
    "RecordedEnv",
    "Recording",
    "Trial",
    "check_adapter",
]
