"""How does Rainbow see and learn? Only the numbers: command lines read them without torch."""

from dataclasses import dataclass

from ezgreedy import requirements as require
from ezgreedy.learning.settings import ATARI_TORSO, Convolution


@dataclass(frozen=True)
class LearnerSettings:
    """One update of Rainbow; the defaults are those of the paper's table for its baseline.

    Args:
        learning_rate: Adam's learning rate.
        adam_epsilon: term that Adam adds to the root of its second moment, after bias correction.
        batch_size: transitions in one update.
        num_steps: n of the n-step returns that replay accumulates.
        discount: γ of one agent step.
        updates_per_target_sync: updates between copies of the online network to the target
            network; 1 means that the online network is its own target.
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
class NetworkSettings:
    """The layers of a network; the defaults are Rainbow's on Atari.

    Args:
        num_actions: number of actions.
        input_shape: shape of a state, [channels, height, width].
        torso: convolutions, first to last.
        hidden_size: units of the hidden layer of each stream.
        shares_hidden: whether both streams have the same hidden layer.
        num_atoms: number of atoms in a value's distribution.
        least_value: the first atom.
        most_value: the last atom.
        sigma0: initial scale of the noise; None for a network without noise.
        largest_pixel: divisor of inputs, 255 for grey frames and 1 for binary ones.
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
