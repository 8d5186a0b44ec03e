"""How long an exploratory option lasts: the paper's laws z over n = 1, 2, …, cap.

Every law is a table of probabilities, and every backend samples it by inverting the same table at
a given uniform, so that NumPy, compiled code and tensors draw the same duration. Section 4.2 of the
paper compares the families; its zeta law with μ = 2 and n ≤ 10,000 is the default (Rainbow: 100).
"""

import json
import math
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ezgreedy import requirements as require
from ezgreedy.requirements import FloatArray, IntArray

LARGEST_CAP = 10_000_000
PAPER_CAP = 10_000
_GUIDE_SIZE = 4096


class InverseTable(NamedTuple):
    """A law's cumulative probabilities and a guide into them, for compiled and tensor code.

    n = 1 + #{k : cumulative[k] <= u}. With c = ⌊u·(len(guide) − 1)⌋ that count lies within
    guide[c] … guide[c + 1], so a scan from guide[c] takes O(1) steps on average for any cap.
    """

    cumulative: FloatArray
    guide: IntArray


class DurationLaw:
    """A distribution over durations 1 … cap; subclasses define `cap` and `_weights`."""

    cap: int

    def __repr__(self) -> str:
        described = self.describe()
        law = described.pop("law")
        return f"{law}({', '.join(f'{name}={value!r}' for name, value in described.items())})"

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the arguments, not the tables computed from them."""
        computed = ("mean", "inverse", "_table")
        return {name: value for name, value in vars(self).items() if name not in computed}

    def _weights(self) -> FloatArray:
        """Unnormalised probabilities of 1 … cap."""
        rule = "define _weights(), the unnormalised probabilities of 1 … cap"
        raise TypeError(f"{type(self).__name__} must {rule}")

    def pmf(self, n: ArrayLike) -> FloatArray:
        """z(n), zero outside 1 … cap; elementwise over ints."""
        n = _durations("n", n)
        inside = (n >= 1) & (n <= self.cap)
        return np.where(inside, self._table[np.where(inside, n, 1) - 1], 0.0)

    def cdf(self, n: ArrayLike) -> FloatArray:
        """P(duration ≤ n); elementwise over ints."""
        n = _durations("n", n)
        cumulative = self.inverse.cumulative[np.clip(n, 1, self.cap) - 1]
        return np.where(n >= 1, cumulative, 0.0)

    @cached_property
    def mean(self) -> float:
        """The expected duration, in environment steps."""
        return math.fsum(self._table * np.arange(1, self.cap + 1))

    def quantile(self, uniforms: NDArray[np.float64]) -> IntArray:
        """The duration drawn by each uniform u of [0, 1): the smallest n with cdf(n) > u."""
        cumulative, guide = self.inverse
        cells = (uniforms * _GUIDE_SIZE).astype(np.int64)
        counts = guide[cells]
        # Most cells of the guide lie within one duration; only the others need a search.
        unsure = np.flatnonzero(guide[cells + 1] != counts)
        counts[unsure] = np.searchsorted(cumulative, uniforms[unsure], side="right")
        return counts + 1

    @cached_property
    def inverse(self) -> InverseTable:
        """The table that every backend inverts."""
        cumulative = np.cumsum(self._table)
        cumulative[np.flatnonzero(self._table)[-1] :] = 1.0  # rounding must not leave u uncovered
        grid = np.arange(_GUIDE_SIZE + 1) / _GUIDE_SIZE
        guide = np.searchsorted(cumulative, grid, side="right")
        return InverseTable(cumulative, np.minimum(guide, self.cap - 1))

    @cached_property
    def _table(self) -> FloatArray:
        name = f"{type(self).__name__}._weights()"
        weights = require.probabilities(name, self._weights(), self.cap)
        return weights / math.fsum(weights)

    def describe(self) -> dict[str, Any]:
        """The law as plain data, as a policy's state_dict records it.

        These are the fields of a dataclass, or else the cap, the mean and the public attributes.
        """
        law: Any = self
        if is_dataclass(law):
            arguments = {field.name: getattr(self, field.name) for field in fields(law)}
        else:
            arguments = {
                name: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
                for name, value in vars(self).items()
                if not name.startswith("_") and name != "inverse"
            }
            # The mean tells most laws apart; powers may differ in the last bits of another machine.
            arguments |= {"cap": self.cap, "mean": float(f"{self.mean:.9g}")}
        return {"law": type(self).__name__} | arguments


@dataclass(frozen=True)
class Zeta(DurationLaw):
    """z(n) ∝ n^−μ: heavy-tailed, so that every distance is reached now and then.

    With mu = 0 this is `Uniform(cap)`; with cap = 1 it is `Fixed(1)`. For large mu it tends to
    `Fixed(1)`, which is ε-greedy.

    Args:
        mu: the exponent μ ≥ 0 (the law is finite, so μ ≤ 1 is fine).
        cap: the longest duration N.
        tail: meaning of "capped at N". "truncate" renormalises over 1 … N; "clip" moves the
            mass of all n > N to N, which needs μ > 1 for the uncapped law to exist.
    """

    mu: float = 2.0
    cap: int = PAPER_CAP
    tail: Literal["truncate", "clip"] = "truncate"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", require.number("mu", self.mu, least=0.0))
        object.__setattr__(self, "cap", _cap("cap", self.cap))
        require.one_of("tail", self.tail, ("truncate", "clip"))
        if self.tail == "clip" and self.mu <= 1.0:
            raise require.refuse("mu", "exceed 1 when tail is 'clip'", self.mu)

    def _weights(self) -> FloatArray:
        weights = np.arange(1, self.cap + 1, dtype=np.float64) ** -self.mu
        if self.tail == "clip":
            weights[-1] = _zeta_tail(self.mu, self.cap)
        return weights


@dataclass(frozen=True)
class Geometric(DurationLaw):
    """z(n) ∝ λ^(n−1) on 1 … cap: the paper's "exponential" law.

    With decay = 0 this is `Fixed(1)`, with decay = 1 `Uniform(cap)`.

    Args:
        decay: λ in [0, 1].
        cap: the longest duration.
    """

    decay: float
    cap: int = PAPER_CAP

    def __post_init__(self) -> None:
        object.__setattr__(self, "decay", require.number("decay", self.decay, 0.0, 1.0))
        object.__setattr__(self, "cap", _cap("cap", self.cap))

    def _weights(self) -> FloatArray:
        return self.decay ** np.arange(self.cap, dtype=np.float64)


@dataclass(frozen=True)
class Uniform(DurationLaw):
    """z(n) = 1/N on 1 … N; `Uniform(1)` is `Fixed(1)`."""

    cap: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cap", _cap("cap", self.cap))

    def _weights(self) -> FloatArray:
        return np.ones(self.cap)


@dataclass(frozen=True)
class Fixed(DurationLaw):
    """Always n; `Fixed(1)` turns εz-greedy into ε-greedy."""

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _cap("n", self.n))

    @property
    def cap(self) -> int:  # type: ignore[override]
        """The only duration."""
        return self.n

    def _weights(self) -> FloatArray:
        weights = np.zeros(self.n)
        weights[-1] = 1.0
        return weights


@dataclass(frozen=True)
class PlusOne(DurationLaw):
    """Algorithm 1 read literally: a drawn n is played n + 1 times.

    The printed pseudo-code does not decrement on the step that draws n. With `Fixed(1)` it is
    therefore not ε-greedy, contrary to the text; we keep it for sensitivity studies.
    """

    base: DurationLaw

    def __post_init__(self) -> None:
        if not isinstance(self.base, DurationLaw):
            raise require.refuse_type("base", "be a duration law", self.base)

    @property
    def cap(self) -> int:  # type: ignore[override]
        """One more than the base law's."""
        return self.base.cap + 1

    def _weights(self) -> FloatArray:
        return np.concatenate([[0.0], self.base._table])

    def describe(self) -> dict[str, Any]:
        """The law as plain data."""
        return {"law": "PlusOne", "base": self.base.describe()}


def checked_law(name: str, value: object) -> DurationLaw:
    """A duration law whose probabilities and description can be had; else it is refused now."""
    if not isinstance(value, DurationLaw):
        raise require.refuse_type(name, "be a duration law such as Zeta()", value)
    require.integer(f"{name}.cap", getattr(value, "cap", None), least=1, most=LARGEST_CAP)
    _ = value.inverse
    try:
        json.dumps(value.describe())
    except TypeError as error:
        rule = "describe itself as plain data: make it a dataclass of numbers, or define describe()"
        raise require.refuse_type(name, rule, value) from error
    return value


def exploratory_share(epsilon: float, durations: DurationLaw) -> float:
    """The long-run share of steps that are exploratory when options run to their end.

    ε is the probability of *starting* an option, so the share is ε·m / (1 − ε + ε·m) with m the
    mean duration. With `Fixed(1)` it is ε itself.
    """
    epsilon = require.number("epsilon", epsilon, 0.0, 1.0)
    return epsilon * durations.mean / (1.0 - epsilon + epsilon * durations.mean)


def matched_epsilon(share: float, durations: DurationLaw) -> float:
    """The ε whose `exploratory_share` is `share`: share / (m·(1 − share) + share)."""
    share = require.number("share", share, 0.0, 1.0)
    return share / (durations.mean * (1.0 - share) + share)


def _cap(name: str, value: object) -> int:
    return require.integer(name, value, least=1, most=LARGEST_CAP)


def _durations(name: str, value: ArrayLike) -> IntArray:
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise require.refuse_type(name, f"hold ints, not {array.dtype}", value)
    return array.astype(np.int64)


def _zeta_tail(mu: float, start: int) -> float:
    """Σ_{n ≥ start} n^−μ for μ > 1: a plain sum, then Euler–Maclaurin from a large n on."""
    far = max(start, 64)
    head = math.fsum(float(n) ** -mu for n in range(start, far))
    integral = far ** (1.0 - mu) / (mu - 1.0)
    first = far**-mu / 2.0
    second = mu * far ** (-mu - 1.0) / 12.0
    third = -mu * (mu + 1.0) * (mu + 2.0) * far ** (-mu - 3.0) / 720.0
    return head + integral + first + second + third
