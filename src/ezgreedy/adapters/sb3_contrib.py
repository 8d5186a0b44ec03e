"""εz-greedy in sb3-contrib: `EZGreedyQRDQN` in place of `QRDQN`; everything else is as in `sb3`."""

from ezgreedy.adapters.libraries import SB3_CONTRIB

SB3_CONTRIB.check(__name__)

from sb3_contrib import QRDQN

from ezgreedy.adapters.sb3 import EZGreedyMixin


class EZGreedyQRDQN(EZGreedyMixin, QRDQN):
    """sb3-contrib's `QRDQN` with εz-greedy exploration; see `EZGreedyMixin` for what it adds."""
