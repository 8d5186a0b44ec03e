"""How do importance weights grow to full strength? Only the numbers; `prioritized` applies them."""

from dataclasses import dataclass

from ezgreedy import requirements as require


@dataclass(frozen=True)
class ImportanceExponent:
    """β as a function of the number of transitions ever added: linear, and constant outside.

    Counts are agent steps: the default reaches 1 after 50M of them, or 200M frames.
    """

    start: float = 0.4
    end: float = 1.0
    first_addition: int = 20_000
    last_addition: int = 50_000_000

    def __post_init__(self) -> None:
        require.number("start", self.start, 0.0, 1.0)
        require.number("end", self.end, 0.0, 1.0)
        require.integer("first_addition", self.first_addition, least=0)
        require.integer("last_addition", self.last_addition, least=self.first_addition + 1)

    def __call__(self, num_added: int) -> float:
        """β once `num_added` transitions have been added."""
        span = self.last_addition - self.first_addition
        fraction = min(max((num_added - self.first_addition) / span, 0.0), 1.0)
        return self.start * (1.0 - fraction) + self.end * fraction
