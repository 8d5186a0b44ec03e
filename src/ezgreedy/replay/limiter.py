"""How often is experience learned from? Samples per insertion, held within a band.

With I insertions and S samples so far, the error I·ratio − S is kept within ±band of its value when
sampling may begin, least_size·ratio: the side that is ahead waits. The arithmetic is exact, so
rounding can never make both sides wait. There are no threads here, only answers.
"""

from fractions import Fraction
from typing import Any

from ezgreedy import requirements as require


class SamplesPerInsert:
    """A two-sided limiter that cannot deadlock: one side may always proceed.

    Args:
        ratio: samples for each insertion. R2D2's rates give 0.77 windows.
        least_size: insertions before the first sample.
        band: the most that the error may lie from its centre; None for a tenth of the centre, or
            for the least that cannot deadlock if that is more.
        most_inserted: the largest number inserted at once.
        most_sampled: the largest number sampled at once.
    """

    def __init__(
        self,
        ratio: float = 0.77,
        least_size: int = 6_250,  # Badia et al. (NGU): 250k steps
        band: float | None = None,
        *,
        most_inserted: int = 1,
        most_sampled: int = 1,
    ) -> None:
        # By its digits: 0.77 means seventy-seven hundredths.
        self.ratio = Fraction(str(require.number("ratio", ratio, 0.0)))
        if not self.ratio:
            raise require.refuse("ratio", "be more than 0", ratio)
        self.least_size = require.integer("least_size", least_size, least=1)
        self.most_inserted = require.integer("most_inserted", most_inserted, least=1)
        self.most_sampled = require.integer("most_sampled", most_sampled, least=1)
        self.centre = self.least_size * self.ratio
        inserted_at_once = self.ratio * self.most_inserted
        # If narrower, a state could refuse both the largest insertion and the largest sample.
        least = max(
            Fraction(1), inserted_at_once, (inserted_at_once + self.most_sampled) * Fraction(1, 2)
        )
        if band is None:
            self.band = max(self.centre / 10, least)
        else:
            self.band = Fraction(str(require.number("band", band, 0.0)))
            if self.band < least:
                rule = f"be at least {float(least):g}, or both sides may wait for each other"
                raise require.refuse("band", rule, band)
        self.num_inserted = 0
        self.num_sampled = 0

    @property
    def error(self) -> float:
        """How far insertions are ahead of samples, in samples; 0 in the middle of the band."""
        return float(self._difference - self.centre)

    def may_insert(self, count: int = 1) -> bool:
        """Whether this many more insertions stay within the band."""
        count = require.integer("count", count, 1, self.most_inserted)
        if self.num_inserted + count <= self.least_size:
            return True
        return self._difference + count * self.ratio <= self.centre + self.band

    def may_sample(self, count: int = 1) -> bool:
        """Whether this many more samples stay within the band, and there is enough to sample."""
        count = require.integer("count", count, 1, self.most_sampled)
        if self.num_inserted < self.least_size:
            return False
        return self._difference - count >= self.centre - self.band

    def inserted(self, count: int = 1) -> None:
        """Count insertions, whether or not they waited for permission."""
        self.num_inserted += require.integer("count", count, least=1)

    def sampled(self, count: int = 1) -> None:
        """Count samples, whether or not they waited for permission."""
        self.num_sampled += require.integer("count", count, least=1)

    def state_dict(self) -> dict[str, Any]:
        """The two counts."""
        return {"num_inserted": self.num_inserted, "num_sampled": self.num_sampled}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the counts of a limiter."""
        counts = {
            name: require.integer(f"state[{name!r}]", state[name], least=0)
            for name in ("num_inserted", "num_sampled")
        }
        self.num_inserted, self.num_sampled = counts["num_inserted"], counts["num_sampled"]

    @property
    def _difference(self) -> Fraction:
        return self.num_inserted * self.ratio - self.num_sampled
