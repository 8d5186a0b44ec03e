"""How are episodes cut into windows? Only the numbers; `sequences` does the cutting."""

from dataclasses import dataclass

from ezgreedy import requirements as require


@dataclass(frozen=True)
class SequenceSettings:
    """How episodes are cut into windows, in steps.

    Args:
        length: number of steps a window trains on; a multiple of the stride.
        burn_in: number of steps before them that warm up the recurrent state; at most the stride.
        stride: distance between the starts of windows, and the steps in a block of observations.
    """

    length: int = 80  # Paper
    burn_in: int = 20  # Paper
    stride: int = 40  # Kapturowski et al.

    def __post_init__(self) -> None:
        require.integer("stride", self.stride, least=1)
        require.integer("length", self.length, least=self.stride)
        require.integer("burn_in", self.burn_in, least=0)
        if self.length % self.stride:
            rule = f"be a multiple of stride, which is {self.stride}"
            raise require.refuse("length", rule, self.length)
        if self.burn_in > self.stride:
            # A prefix then lies within the block before its window.
            rule = f"be at most stride, which is {self.stride}"
            raise require.refuse("burn_in", rule, self.burn_in)

    @property
    def blocks_per_window(self) -> int:
        """The number of blocks that the trained steps of a full window span."""
        return self.length // self.stride

    def is_window(self, start: int, num_steps: int) -> bool:
        """Whether an episode of `num_steps` steps has a window at this multiple of the stride."""
        return start == 0 or start + self.length - self.stride < num_steps

    def starts_prefix(self, time: int) -> bool:
        """Whether the state before the observation at this time may have to be stored."""
        is_before_later_window = time + self.burn_in >= self.stride
        return time == 0 or (is_before_later_window and (time + self.burn_in) % self.stride == 0)
