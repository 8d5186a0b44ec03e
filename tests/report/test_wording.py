import pytest

from ezgreedy.findings.claims import Claim, Number
from ezgreedy.findings.intervals import Interval
from ezgreedy.report import wording


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Interval(3866.34, 3820.1, 3912.7), "3866 [3820, 3913]"),
        (Interval(0.58123, 0.57011, 0.59244), "0.581 [0.570, 0.592]"),
        (Interval(0.00072, 0.0, 0.00193), "0.00072 [0, 0.00193]"),
        (Interval(196601.4, 125306.0, 264617.0), "196\u202f601 [125\u202f306, 264\u202f617]"),
        (Interval(-0.5, -0.62, 0.12), "−0.50 [−0.62, 0.12]"),
        (Interval(5000.0, 5000.0, 5000.0), "5000 [5000, 5000]"),
        (Interval(0.0, 0.0, 0.0), "0 [0, 0]"),
        (12, "12"),
        (123456, "123\u202f456"),
        (0.25, "0.25"),
        (2 / 3, "0.6667"),
        (-1234567.8, "−1\u202f234\u202f568"),
        (100.0, "100"),
        (0.0, "0"),
        ("never", "never"),
    ],
)
def test_numbers_have_the_digits_that_their_intervals_support(number: Number, text: str) -> None:
    assert wording.written(number) == text


def test_a_claim_leads_with_its_key_numbers_or_its_first_three() -> None:
    numbers: dict[str, Number] = {"a": 1, "b": 2, "c": 3, "d": 4}
    assert list(wording.key_numbers(Claim("It holds.", "reproduced", numbers))) == ["a", "b", "c"]
    claim = Claim("It holds.", "reproduced", numbers, key_numbers=["d", "a"])
    assert list(wording.key_numbers(claim)) == ["d", "a"]
    with pytest.raises(ValueError, match="key number must be one of"):
        Claim("It holds.", "reproduced", numbers, key_numbers=["e"])


def test_claims_survive_json() -> None:
    numbers: dict[str, Number] = {"ratio": Interval(0.5, 0.4, 0.6), "seeds": 3, "word": "x"}
    claim = Claim("It holds.", "reading-dependent", numbers, "Perhaps.", ["ratio"])
    assert Claim.from_json(claim.as_json()) == claim


@pytest.mark.parametrize(
    ("value", "text"), [("right", "right"), ("", '""'), ([0.1, 1.0], "[0.1, 1.0]"), (True, "true")]
)
def test_settings_are_written_as_json_without_needless_quotes(value: object, text: str) -> None:
    assert wording.setting(value) == text
