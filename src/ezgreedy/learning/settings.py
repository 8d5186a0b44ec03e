"""What do networks look at, and with which convolutions? Only the numbers, without torch."""

from dataclasses import dataclass

from ezgreedy import requirements as require

# Initial parameters of a layer. "uniform": U(±1/√fan_in) for weights and biases. "orthogonal":
# weights with orthogonal rows or columns of norm √2, and no biases.
INITIALISATIONS = ("uniform", "orthogonal")


@dataclass(frozen=True)
class Sight:
    """The observations that a network looks at.

    Args:
        shape: shape of an observation: [planes, height, width], or [features] of a vector.
        largest_pixel: divisor of observations: 255 for frames, 1 for binary planes.
        has_codes: whether pixels are codes of colours, see `games.atari.palette`, and every plane
            of them is seen as three.
    """

    shape: tuple[int, ...]
    largest_pixel: float = 255.0
    has_codes: bool = False

    def __post_init__(self) -> None:
        if len(self.shape) not in (1, 3):
            rule = "be [planes, height, width] or [features]"
            raise require.refuse("shape", rule, self.shape)
        if not require.number("largest_pixel", self.largest_pixel, 0.0) > 0.0:
            raise require.refuse("largest_pixel", "be positive", self.largest_pixel)
        if require.flag("has_codes", self.has_codes) and len(self.shape) == 1:
            raise require.refuse("has_codes", "be False for vectors", self.has_codes)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the input to convolutions or linear layers."""
        return (3 * self.shape[0], *self.shape[1:]) if self.has_codes else self.shape


@dataclass(frozen=True)
class Convolution:
    """One layer of a torso: square kernels, then ReLU."""

    channels: int
    size: int
    stride: int = 1


ATARI_TORSO = (Convolution(32, 8, 4), Convolution(64, 4, 2), Convolution(64, 3, 1))
# Data-efficient Rainbow (van Hasselt et al. 2019): 576 features.
DER_TORSO = (Convolution(32, 5, 5), Convolution(64, 5, 5))
# MinAtar's own DQN: one small layer before 128 hidden units.
MINATAR_TORSO = (Convolution(16, 3),)
