"""How are numbers, verdicts and settings written for a reader?

An estimate is written with as many digits as its interval supports, and so are its ends. Narrow
spaces separate thousands from five digits on, so that a comma only ever separates the ends of an
interval.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from ezgreedy.findings.claims import Claim, Number
from ezgreedy.findings.intervals import Interval
from ezgreedy.findings.judging import LEAST_FOR_A_VERDICT, Side, Verdict
from ezgreedy.units import counted

VERDICT_WORDS: Mapping[Verdict, str] = {
    "reproduced": "reproduced",
    "reading-dependent": "depends on the reading",
    "undecided": "undecided",
    "contradicted": "contradicted",
}
NO_VERDICT = "no verdict"

# What each verdict means, for the reader of a table.
VERDICT_MEANINGS: Mapping[Verdict, str] = {
    "reproduced": "holds under every reading of what the paper leaves open",
    "reading-dependent": "holds under some readings, not under others",
    "undecided": "neither it nor the opposite is shown under any reading",
    "contradicted": "holds under no reading; under at least one, the opposite is shown",
}
NOT_RUN_MEANING = "not run, or runs are missing"
NO_VERDICT_MEANING = f"fewer than {LEAST_FOR_A_VERDICT} seeds"

NARROW_SPACE = "\u202f"

_DIGITS = 4
_ROUNDING = (
    1e-9  # an interval that is narrower than this share of its value is one of rounding errors
)
_SMALL = 1e-5  # below this, a power of ten is easier to read than zeros
_GROUPED_FROM = 5
_MOST_PLACES_FOR_VALUE = 6
_NUM_KEY_NUMBERS = 3


def number_parts(number: Number) -> tuple[str, str, str]:
    """The value and the ends of its interval as text; the ends are empty if there are none."""
    if isinstance(number, Interval):
        places = _places(number)
        value, low, high = number.value, number.low, number.high
        return _decimal(value, places), _decimal(low, places), _decimal(high, places)
    return plain(number), "", ""


def written(number: Number) -> str:
    """A number as one text: `0.58 [0.55, 0.61]`, or only the value if it has no interval."""
    value, low, high = number_parts(number)
    return f"{value} [{low}, {high}]" if low else value


def plain(number: int | float | str) -> str:
    """A number without an interval: integers in full, others with four significant digits.

    Very small ones are written as 9.095e-31.
    """
    if isinstance(number, str):
        return number
    if isinstance(number, int) or number == 0:
        return _grouped(str(int(number)))
    if abs(number) < _SMALL:
        return f"{number:.{_DIGITS - 1}e}".replace("-", "−", int(number < 0))
    text = _decimal(number, _places_for(number, _DIGITS))
    return text.rstrip("0").rstrip(".") if "." in text else text


def key_numbers(claim: Claim) -> dict[str, Number]:
    """Three numbers to stand beside the verdict: key numbers if there are any, none of controls."""
    names = [name for name in claim.key_numbers or claim.numbers if not _is_of_control(claim, name)]
    return {name: claim.numbers[name] for name in names[:_NUM_KEY_NUMBERS]}


def _is_of_control(claim: Claim, number: str) -> bool:
    """Whether a number's name begins with that of a control (and not with a reading's)."""
    conditions = [name for name in (*claim.readings, *claim.controls) if number.startswith(name)]
    return bool(conditions) and max(conditions, key=len) not in claim.readings


def quick_notice(num_quick: int, num_findings: int) -> str:
    """What a reader of quick results must know."""
    which = "These" if num_quick == num_findings else f"{num_quick} of these experiments"
    results = "results are" if num_quick == num_findings else "are"
    return (
        f"{which} {results} from a quick look: small settings and few seeds. They are no evidence; "
        f"with fewer than {LEAST_FOR_A_VERDICT} seeds there is no verdict."
    )


def verdict(claim: Claim) -> str:
    """The claim's verdict in words."""
    return NO_VERDICT if claim.verdict is None else VERDICT_WORDS[claim.verdict]


def sides(found: Mapping[str, Side], noun: str = "reading") -> str:
    """How many readings lie on each side: `holds in 4 of 6 readings, contradicted in 2`."""
    given = list(found.values())
    counts = {side: given.count(side) for side in ("holds", "undecided", "contradicted")}
    told: list[str] = []
    for side, number in counts.items():
        if number:
            told.append(f"{side} in {number}{'' if told else f' of {counted(len(given), noun)}'}")
    return ", ".join(told)


def setting(value: Any) -> str:
    """A setting's value as JSON, without quotes around plain words."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _places(number: Interval) -> int:
    """Decimals that show two significant digits of the interval's half-width, and of the value."""
    half = (number.high - number.low) / 2
    if half <= _ROUNDING * abs(number.value):
        return _places_for(number.value, _DIGITS)
    return max(_places_for(half, 2), min(_places_for(number.value, 2), _MOST_PLACES_FOR_VALUE))


def _places_for(number: float, digits: int) -> int:
    """Decimals that show this many significant digits."""
    return max(digits - 1 - math.floor(math.log10(abs(number))), 0) if number else 0


def _decimal(number: float, places: int) -> str:
    return _grouped(f"{number:z.{places}f}") if number else "0"


def _grouped(text: str) -> str:
    """Separates thousands and gives negative numbers a minus rather than a hyphen."""
    sign, digits = ("−", text[1:]) if text.startswith("-") else ("", text)
    whole, point, fraction = digits.partition(".")
    if len(whole) >= _GROUPED_FROM:
        whole = f"{int(whole):,}".replace(",", NARROW_SPACE)
    return sign + whole + point + fraction
