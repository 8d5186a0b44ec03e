"""How random network distillation rewards, as numbers alone, without torch."""

from dataclasses import dataclass

from ezgreedy import requirements as require
from ezgreedy.learning.settings import ATARI_TORSO, Convolution

NORMALISATIONS = ("var", "std", "ngu")


@dataclass(frozen=True)
class DistillationSettings:
    """The bonus for what a network cannot yet predict; the defaults are those of R2D2+RND.

    Args:
        scale: β, by which bonuses are multiplied before they are added to rewards.
        normalisation: of an error e, given the mean μ and variance σ² of all errors so far: "var"
            is e/σ², as the paper words it, and grows as errors shrink; "std" is e/σ, which does
            not; "ngu" is (e − μ)/σ, or 0 if that is negative.
        largest_bonus: normalised bonuses are cut there.
        torso: convolutions of both networks, first to last; none for vectors.
        hidden_sizes: units of hidden layers between torso and outputs, of both networks.
        num_outputs: how many random functions are predicted.
        learning_rate: of the predictor's Adam.
        largest_gradient_norm: gradients of a larger norm are scaled down.
        steps_per_window: how many steps, a window's last, train the predictor; None for all.
    """

    scale: float = 0.3  # not in the paper; best of Badia et al. 2020 for this agent
    normalisation: str = "var"  # Paper: "dividing by its variance"
    largest_bonus: float = 5.0  # not in the paper; Badia et al. 2020
    torso: tuple[Convolution, ...] = ATARI_TORSO  # Paper: "DQN-size"
    hidden_sizes: tuple[int, ...] = ()  # Paper: convolutions and "one linear layer"
    num_outputs: int = 128  # table of the paper
    learning_rate: float = 5e-4  # table of the paper
    largest_gradient_norm: float = 40.0  # not in the paper; Badia et al. 2020
    steps_per_window: int | None = None

    def __post_init__(self) -> None:
        require.number("scale", self.scale, 0.0)
        require.one_of("normalisation", self.normalisation, NORMALISATIONS)
        for name in ("largest_bonus", "learning_rate", "largest_gradient_norm"):
            value = getattr(self, name)
            if not require.number(name, value, 0.0) > 0.0:
                raise require.refuse(name, "be positive", value)
        require.integer("num_outputs", self.num_outputs, least=1)
        for size in self.hidden_sizes:
            require.integer("hidden_sizes", size, least=1)
        if self.steps_per_window is not None:
            require.integer("steps_per_window", self.steps_per_window, least=1)
