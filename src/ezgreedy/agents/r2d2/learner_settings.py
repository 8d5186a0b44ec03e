"""How does R2D2 see and learn? Plain settings for presets and command lines, without torch."""

from dataclasses import dataclass

from ezgreedy import requirements as require
from ezgreedy.learning.settings import Convolution, Sight

PADDINGS = ("valid", "same")
REWARD_INPUTS = ("raw", "tanh")
RETURNS = ("peng", "harutyunyan", "retrace", "n-step")
LOSSES = ("squared", "huber")
MOST_HEADS = 8  # one bit each in a one-byte mask


# Table of the paper for R2D2, on whole frames.
R2D2_TORSO = (
    Convolution(32, 7, 4),
    Convolution(64, 5, 2),
    Convolution(128, 5, 2),
    Convolution(128, 3),
)


@dataclass(frozen=True)
class RecurrentNetworkSettings:
    """Architecture of a recurrent network; the defaults are R2D2's on whole Atari frames.

    Args:
        num_actions: number of actions.
        input_shape: shape of an input: [channels, height, width], or [features] for vectors.
        torso: convolutions, first to last; none for vectors.
        padding: "valid" for none, "same" for outputs of ⌈input / stride⌉.
        feature_size: units of the layer between torso and memory.
        memory_size: units of the LSTM.
        hidden_size: units of the hidden layer of each stream of the duelling head.
        largest_pixel: divisor of observations: 255 for frames, 1 for binary planes.
        reward_input: form of the previous reward as an input: "raw" or "tanh".
        forget_bias: initial bias of the forget gates.
        num_heads: number of bootstrapped value functions over one torso; None for plain R2D2.
        shares_memory: whether heads share all but the duelling streams, or only the torso.
        has_codes: whether observations are colour codes, one plane for every three inputs.
        has_memory: whether the network sees more than the observation. If not, the LSTM state and
            the previous action and reward are zeros at every step: a control without memory.
    """

    num_actions: int
    input_shape: tuple[int, ...] = (3, 210, 160)
    torso: tuple[Convolution, ...] = R2D2_TORSO
    padding: str = "valid"  # not in the paper; as DQN Zoo, by authors of both
    feature_size: int = 512  # table of the paper
    memory_size: int = 512  # table of the paper
    hidden_size: int = 512  # table of the paper
    largest_pixel: float = 255.0
    reward_input: str = "raw"  # not in the paper, which clips no rewards
    forget_bias: float = 1.0  # not in the paper; the usual default, but not torch's
    num_heads: int | None = None  # the paper's bootstrapped agent has 8
    # Paper: heads have "distinct fully-connected layers on top"; it does not mention the memory.
    shares_memory: bool = False
    has_codes: bool = False
    has_memory: bool = True

    def __post_init__(self) -> None:
        for name in ("num_actions", "feature_size", "memory_size", "hidden_size"):
            require.integer(name, getattr(self, name), least=1)
        if len(self.input_shape) not in (1, 3):
            rule = "be [channels, height, width] or [features]"
            raise require.refuse("input_shape", rule, self.input_shape)
        if self.torso and len(self.input_shape) == 1:
            raise require.refuse("torso", "be empty for vectors", self.torso)
        require.one_of("padding", self.padding, PADDINGS)
        require.one_of("reward_input", self.reward_input, REWARD_INPUTS)
        require.number("forget_bias", self.forget_bias, -100.0, 100.0)
        if not require.number("largest_pixel", self.largest_pixel, 0.0) > 0.0:
            raise require.refuse("largest_pixel", "be positive", self.largest_pixel)
        if self.num_heads is not None:
            require.integer("num_heads", self.num_heads, least=1, most=MOST_HEADS)
        for name in ("shares_memory", "has_codes", "has_memory"):
            require.flag(name, getattr(self, name))
        if self.has_codes and self.input_shape[0] % 3:
            raise require.refuse("input_shape", "have planes of three colours", self.input_shape)

    @property
    def sight(self) -> Sight:
        """Shape and kind of the observations."""
        shape = self.input_shape
        if self.has_codes:
            shape = (shape[0] // 3, *shape[1:])
        return Sight(shape, self.largest_pixel, self.has_codes)

    @property
    def num_streams(self) -> int:
        """Number of value functions; 1 if not bootstrapped."""
        return self.num_heads or 1

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Shape of h and of c for one lane: [memory], or [heads, memory] if not shared."""
        if self.num_heads is None or self.shares_memory:
            return (self.memory_size,)
        return (self.num_heads, self.memory_size)


@dataclass(frozen=True)
class ReturnSettings:
    """Targets of the values: expected SARSA(λ) on rescaled values.

    Args:
        form: "peng" mixes n-step returns without correction; "harutyunyan" and "retrace" correct
            for actions that the target policy would not take; "n-step" is the double Q-learning
            that R2D2 was published with.
        decay: λ.
        num_steps: n of "n-step".
        discount: γ of one agent step.
        target_epsilon: ε of the ε-greedy policy whose values are learned.
        rescaling: ε of h(x) = sign(x)(√(|x| + 1) − 1) + εx.
    """

    # Paper: only "expected SARSA(λ)".
    form: str = "peng"
    decay: float = 0.7  # table of the paper
    num_steps: int = 5  # Kapturowski et al.
    discount: float = 0.997  # table of the paper
    target_epsilon: float = 0.01  # not in the paper; Badia et al. 2020
    rescaling: float = 1e-3  # Kapturowski et al.

    def __post_init__(self) -> None:
        require.one_of("form", self.form, RETURNS)
        require.integer("num_steps", self.num_steps, least=1)
        for name in ("decay", "discount", "target_epsilon", "rescaling"):
            require.number(name, getattr(self, name), 0.0, 1.0)


@dataclass(frozen=True)
class SequenceLearnerSettings:
    """One update of R2D2; the defaults are those of the paper's table.

    Args:
        learning_rate: learning rate of Adam.
        adam_epsilon: Adam's ε, added to the root of the second moment after bias correction.
        batch_size: windows in one update.
        burn_in: longest prefix, which warms up LSTM states and is not trained.
        length: trained steps in a full window.
        updates_per_target_sync: updates between copies of the online network to the target
            network.
        largest_gradient_norm: largest norm over all parameters; larger gradients are scaled down.
        loss: loss of an error δ: "squared" is δ²/2, "huber" is linear beyond |δ| = 1.
        max_share: η in the priority of a window, η·max|δ| + (1 − η)·mean|δ|.
        least_priority: smallest priority.
    """

    learning_rate: float = 2e-4  # table of the paper
    adam_epsilon: float = 1e-3  # table of the paper
    batch_size: int = 64  # table of the paper
    burn_in: int = 20  # table of the paper
    length: int = 80  # table of the paper
    updates_per_target_sync: int = 400  # table of the paper
    largest_gradient_norm: float = 40.0  # not in the paper; Badia et al. 2020
    loss: str = "squared"  # the paper's background has Huber, R2D2's authors squares
    max_share: float = 0.9  # Kapturowski et al.
    least_priority: float = 1e-6

    def __post_init__(self) -> None:
        for name in ("learning_rate", "adam_epsilon", "largest_gradient_norm", "least_priority"):
            value = getattr(self, name)
            if not require.number(name, value, 0.0) > 0.0:
                raise require.refuse(name, "be positive", value)
        for name in ("batch_size", "length", "updates_per_target_sync"):
            require.integer(name, getattr(self, name), least=1)
        require.integer("burn_in", self.burn_in, least=0)
        require.number("max_share", self.max_share, 0.0, 1.0)
        require.one_of("loss", self.loss, LOSSES)
