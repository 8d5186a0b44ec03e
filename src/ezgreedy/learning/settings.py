"""Networks and learners as numbers alone: read by presets and command lines, without torch."""

from dataclasses import dataclass

from ezgreedy import requirements as require


@dataclass(frozen=True)
class LearnerSettings:
    """One update of Rainbow; the defaults are those of the paper's table for its baseline.

    Args:
        learning_rate: of Adam.
        adam_epsilon: what Adam adds to the root of its second moment, after bias correction.
        batch_size: transitions of one update.
        num_steps: n, of the returns that replay accumulates.
        discount: γ of one agent step.
        updates_per_target_sync: every how many updates the target network becomes a copy of the
            online one; 1 means that there is no target network but the online one.
        largest_gradient_norm: gradients of a larger norm, over all parameters, are scaled down;
            None to leave them as they are.
        uses_double_q: whether the online network chooses the action that the target values; if
            not, the target network does both.
    """

    learning_rate: float = 6.25e-5  # table of the paper; Hessel et al.
    adam_epsilon: float = 1.5e-4  # table of the paper; Hessel et al.
    batch_size: int = 32  # table of the paper
    num_steps: int = 3  # table of the paper
    discount: float = 0.99  # table of the paper
    updates_per_target_sync: int = 2_000  # table of the paper: 32K frames, 16 to an update
    # In no text of the paper or of Hessel et al.; DQN Zoo, by authors of both, clips at 10.
    largest_gradient_norm: float | None = 10.0
    uses_double_q: bool = True  # Hessel et al.

    def __post_init__(self) -> None:
        for name in ("learning_rate", "adam_epsilon", "largest_gradient_norm"):
            value = getattr(self, name)
            if value is None and name == "largest_gradient_norm":
                continue
            if not require.number(name, value, 0.0) > 0.0:
                raise require.refuse(name, "be positive", value)
        for name in ("batch_size", "num_steps", "updates_per_target_sync"):
            require.integer(name, getattr(self, name), least=1)
        require.number("discount", self.discount, 0.0, 1.0)
        require.flag("uses_double_q", self.uses_double_q)

    @property
    def has_target_network(self) -> bool:
        """Whether targets come from an older copy of the network."""
        return self.updates_per_target_sync > 1


@dataclass(frozen=True)
class Sight:
    """What a network looks at.

    Args:
        shape: of an observation: [planes, height, width], or [features] of a vector.
        largest_pixel: what an observation is divided by: 255 for frames, 1 for binary planes.
        has_codes: whether pixels are codes of colours, see `atari.palette`, and every plane of
            them is seen as three.
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
        """Of what convolutions or linear layers are given."""
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


@dataclass(frozen=True)
class NetworkSettings:
    """What a network looks like; the defaults are Rainbow's on Atari.

    Args:
        num_actions: how many actions have values.
        input_shape: of a state, [channels, height, width].
        torso: convolutions, first to last.
        hidden_size: units of the hidden layer of each stream.
        shares_hidden: whether both streams have the same hidden layer.
        num_atoms: how many atoms a value's distribution has.
        least_value: the first atom.
        most_value: the last atom.
        sigma0: initial scale of the noise; None for a plain network without any.
        largest_pixel: what an input is divided by, 255 for grey frames and 1 for binary ones.
    """

    num_actions: int
    input_shape: tuple[int, int, int] = (4, 84, 84)
    torso: tuple[Convolution, ...] = ATARI_TORSO
    hidden_size: int = 512
    shares_hidden: bool = False
    num_atoms: int = 51
    least_value: float = -10.0
    most_value: float = 10.0
    # Deviation: Hessel et al. print 0.5, and advise 0.1 for noise made on the processor.
    sigma0: float | None = 0.1
    largest_pixel: float = 255.0

    def __post_init__(self) -> None:
        require.integer("num_actions", self.num_actions, least=1)
        require.integer("hidden_size", self.hidden_size, least=1)
        require.flag("shares_hidden", self.shares_hidden)
        require.integer("num_atoms", self.num_atoms, least=2)
        if not self.least_value < self.most_value:
            raise require.refuse("least_value", f"be less than {self.most_value}", self.least_value)
        if self.sigma0 is not None:
            require.number("sigma0", self.sigma0, 0.0)
        if not self.largest_pixel > 0.0:
            raise require.refuse("largest_pixel", "be positive", self.largest_pixel)
