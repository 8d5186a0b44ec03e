"""How a learner learns, as numbers alone: read by presets and command lines, without torch."""

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
        largest_gradient_norm: gradients of a larger norm, over all parameters, are scaled down.
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
    largest_gradient_norm: float = 10.0
    uses_double_q: bool = True  # Hessel et al.

    def __post_init__(self) -> None:
        for name in ("learning_rate", "adam_epsilon", "largest_gradient_norm"):
            value = getattr(self, name)
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
