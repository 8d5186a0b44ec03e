import pytest

from ezgreedy.findings.claims import AS_STATED, OURS, Claim, Number, Statement
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
        (Interval(0.31, -0.001, 0.62), "0.31 [0.00, 0.62]"),  # not −0.00
        (Interval(3.45201687867873, 3.45201687867872, 3.45201687867874), "3.452 [3.452, 3.452]"),
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


def claim_with(*key_numbers: str, seeds: int = 5) -> Claim:
    statement = Statement("It holds.", OURS, "A number.")
    numbers: dict[str, Number] = {"a": 1, "b": 2, "c": 3, "d": 4}
    return Claim(statement, {AS_STATED: "holds"}, numbers, seeds, key_numbers=key_numbers)


def test_a_claim_leads_with_its_key_numbers_or_its_first_three() -> None:
    assert list(wording.key_numbers(claim_with())) == ["a", "b", "c"]
    assert list(wording.key_numbers(claim_with("d", "a"))) == ["d", "a"]
    with pytest.raises(ValueError, match="key number must be one of"):
        claim_with("e")


def test_verdicts_are_told_and_too_few_seeds_have_none() -> None:
    assert wording.verdict(claim_with()) == "reproduced"
    assert wording.verdict(claim_with(seeds=4)) == "no verdict"


@pytest.mark.parametrize(
    ("number", "text"),
    [(9.0949e-31, "9.095e-31"), (-2.5e-7, "−2.500e-07"), (0.00012, "0.00012"), (0.0, "0")],
)
def test_very_small_numbers_are_not_rows_of_zeros(number: float, text: str) -> None:
    assert wording.plain(number) == text


def test_readings_are_counted_by_side() -> None:
    assert wording.sides({"a": "holds", "b": "holds"}) == "holds in 2 of 2 readings"
    found = {"a": "contradicted", "b": "undecided", "c": "contradicted"}
    assert wording.sides(found) == "undecided in 1 of 3 readings, contradicted in 2"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "text"), [("right", "right"), ("", '""'), ([0.1, 1.0], "[0.1, 1.0]"), (True, "true")]
)
def test_settings_are_written_as_json_without_needless_quotes(value: object, text: str) -> None:
    assert wording.setting(value) == text
