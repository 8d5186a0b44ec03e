"""Where a run stands: what is due, and the lines of results about it."""

from ezgreedy.agents.run_settings import EvaluationSettings
from ezgreedy.runs.evaluation import Evaluation
from ezgreedy.runs.ledger import Ledger
from support.small_runs import small_run

FOUND = Evaluation([2.0], [1.0], 40, 0.5)


def ledger(frames=800, evaluation=None):
    evaluation = evaluation or EvaluationSettings(frames_between=300, frames=60, lanes=2)
    return Ledger(small_run(frames=frames, frames_per_report=200, evaluation=evaluation))


def test_a_report_is_due_with_every_period_and_tells_of_the_episodes_since_the_last():
    book = ledger()
    assert not book.report_is_due
    book.add(199, [1.0])
    assert not book.report_is_due
    book.add(1, [4.0])
    assert book.report_is_due
    assert book.report({"loss": 0.5}) == {
        "kind": "training",
        "frames": 200,
        "episodes": 2,
        "mean_return": 2.5,
        "loss": 0.5,
    }
    assert not book.report_is_due
    book.add(200, [])
    assert book.report({}) == {"kind": "training", "frames": 400, "episodes": 0}


def test_evaluations_are_due_from_the_beginning_to_the_end_whatever_was_missed():
    book, found = ledger(), []
    for frames in (0, 100, 250, 450):
        book.add(frames, [])
        while book.evaluation_is_due:
            found.append(book.evaluation(FOUND, book.frames)["frames"])
    assert found == [0, 350, 800, 800]  # that of 600 frames is made up for at the end
    assert book.is_finished
    assert book.num_evaluations == book.num_evaluations_due == 4


def test_a_line_about_an_evaluation_has_its_kind_and_frames_first():
    record = ledger().evaluation(FOUND, 7)
    assert list(record)[:2] == ["kind", "frames"]
    assert record["frames"] == 7
    assert record["unfinished"] == [1.0]


def test_a_ledger_continues_from_its_state():
    book, other = ledger(), ledger()
    book.add(250, [3.0])
    book.report({})
    book.evaluation(FOUND, 0)
    book.add(200, [5.0])
    other.load_state_dict(book.state_dict())
    assert other.state_dict() == book.state_dict()
    assert other.report({}) == book.report({})
    assert book.state_dict()["returns"] == []
