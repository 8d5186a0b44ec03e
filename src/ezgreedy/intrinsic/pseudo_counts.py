"""How new is a frame, and what does that earn? Pseudo-counts (Bellemare et al., 2016).

The gain in a frame's probability from seeing it once shows how often similar frames were seen
before. Needs numba.
"""

import math
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.intrinsic.cts import CTSModel, Image, reduce
from ezgreedy.intrinsic.settings import PSEUDO_COUNT_FORMS

SMALLEST_COUNT = 0.01  # Paper (2016): added to the pseudo-count, so that the bonus is at most 10 β
LARGEST_GAIN = 25.0  # for the form without such a term

_LARGEST_EXPONENT = 700.0  # e to this is still a double


class PseudoCountBonus:
    """The reward for meeting a frame: smaller the more often similar frames were met.

    Call it once for each step of training, in order, with the frame in which the action was chosen.

    Args:
        model: the model that learns the frames, half as high and wide.
        scale: β, the factor of all bonuses.
        form: "bellemare" or "expm1", see `bonus`.
    """

    def __init__(
        self, model: CTSModel | None = None, scale: float = 0.0005, form: str = "bellemare"
    ) -> None:
        self.model = CTSModel() if model is None else model
        self.scale = require.number("scale", scale, least=0.0)
        self.form = require.one_of("form", form, PSEUDO_COUNT_FORMS)

    def __call__(self, frame: Image) -> float:
        """Learn a frame and return its bonus.

        Args:
            frame: the newest grey frame, uint8, [2 * height, 2 * width].
        """
        return self.of_symbols(reduce(frame, self.model.num_levels))

    def of_symbols(self, image: Image) -> float:
        """Learn an image that needs no reducing and return its bonus.

        Args:
            image: an image of the model's shape and levels, uint8.
        """
        before, after = self.model.update(image)
        return bonus(before, after, self.scale, self.form)

    def state_dict(self) -> dict[str, Any]:
        """What the model has learned."""
        return self.model.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what a model with the same settings has learned."""
        self.model.load_state_dict(state)


def pseudo_count(log_prob_before: float, log_prob_after: float) -> float:
    """How often an image seems to have been seen: N̂ = ρ (1 − ρ′) / (ρ′ − ρ).

    Infinite if learning the image did not make it likelier. This can happen for a known image
    right after a very different one, while the trees' weights settle again.
    """
    gain = _gain(log_prob_before, log_prob_after)
    if gain <= 0.0:
        return math.inf
    return -math.expm1(log_prob_after) / math.expm1(min(gain, _LARGEST_EXPONENT))


def bonus(
    log_prob_before: float, log_prob_after: float, scale: float, form: str = "bellemare"
) -> float:
    """The reward for an image, from its probabilities before and after it was learned.

    "bellemare" is β / √(N̂ + 0.01), at most 10 β. "expm1" is β √(e^PG − 1) with the prediction gain
    PG = log ρ′ − log ρ capped at 25: for rarely seen images this is far larger, up to 268,000 β,
    so its users clip the sum of rewards. Both are 0 if the gain is not positive.
    """
    if require.one_of("form", form, PSEUDO_COUNT_FORMS) == "bellemare":
        count = pseudo_count(log_prob_before, log_prob_after)
        return scale / math.sqrt(count + SMALLEST_COUNT)
    gain = _gain(log_prob_before, log_prob_after)
    return scale * math.sqrt(max(0.0, math.expm1(min(gain, LARGEST_GAIN))))


def _gain(log_prob_before: float, log_prob_after: float) -> float:
    before = require.number("log_prob_before", log_prob_before, least=-math.inf, most=0.0)
    return require.number("log_prob_after", log_prob_after, least=-math.inf, most=0.0) - before
