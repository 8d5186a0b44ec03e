"""Evaluations go on beside play: in order, several at once, and never more than one waiting."""

from ezgreedy.agents.run_settings import EvaluationSettings
from ezgreedy.fleet.evaluations import Evaluations
from ezgreedy.runs.evaluation import Evaluation
from ezgreedy.runs.ledger import Ledger
from support.asked_fleet import members
from support.small_runs import small_sequence_run


def evaluating(frames=10_000, **fleet):
    evaluation = EvaluationSettings(frames_between=300, frames=60, lanes=2, episodes=3)
    settings = small_sequence_run("r2d2", frames=frames, evaluation=evaluation)
    ledger, fleet = Ledger(settings), members(**fleet)
    return Evaluations(fleet, ledger), ledger, fleet


def scores(value=1.0):
    return Evaluation([value] * 3, [], 60, 0.0)


def asked(fleet):
    """Numbers and weights of the evaluations in progress."""
    return [call.asked for call in fleet.supervisor.calls]


def taken(evaluations):
    """Frames of everything that can be written now."""
    frames = []
    while evaluations.are_done:
        frames.append(evaluations.take()["frames"])
    return frames


def test_an_evaluation_is_of_the_frames_and_weights_at_its_start():
    evaluations, ledger, fleet = evaluating()
    evaluations.ask("first weights")
    assert not evaluations.are_behind
    assert asked(fleet) == [(0, "first weights")]
    ledger.add(290, [])
    fleet.supervisor.settle(0, scores(2.0))
    record = evaluations.take()
    assert (record["kind"], record["frames"], record["mean_return"]) == ("evaluation", 0, 2.0)
    assert (ledger.num_evaluations, evaluations.num_asked) == (1, 1)
    assert not evaluations.are_done


def test_without_weights_nothing_starts():
    evaluations, _, fleet = evaluating()
    evaluations.ask(None)
    assert asked(fleet) == []
    assert evaluations.are_behind


def test_while_all_evaluators_are_busy_only_the_newest_waits_and_the_others_are_counted():
    evaluations, ledger, fleet = evaluating()
    evaluations.ask("w0")
    for frames, skipped in ((300, 0), (300, 1), (300, 2)):
        ledger.add(frames, [])
        evaluations.ask("busy")
        assert (len(asked(fleet)), evaluations.num_skipped) == (1, skipped)
    fleet.supervisor.settle(0, scores())
    evaluations.ask("w3")
    assert asked(fleet) == [(3, "w3")]
    fleet.supervisor.settle(0, scores())
    assert taken(evaluations) == [0, 900]
    assert ledger.num_evaluations == ledger.num_evaluations_due == 4


def test_several_evaluators_work_at_once_and_results_keep_the_order_of_frames():
    evaluations, ledger, fleet = evaluating(evaluators=3)
    for weights in ("w0", "w1", "w2"):
        evaluations.ask(weights)
        ledger.add(300, [])
    assert asked(fleet) == [(0, "w0"), (1, "w1"), (2, "w2")]
    assert len({id(call.process) for call in fleet.supervisor.calls}) == 3
    assert evaluations.num_running == 3
    fleet.supervisor.settle(2, scores())
    fleet.supervisor.settle(1, scores())
    assert taken(evaluations) == []  # the oldest is not done
    evaluations.ask("w3")
    fleet.supervisor.settle(0, scores())
    assert taken(evaluations) == [0, 300, 600]
    assert evaluations.num_skipped == 0


def test_evaluations_due_at_the_same_moment_are_one():
    evaluations, ledger, fleet = evaluating(evaluators=3)
    ledger.add(650, [])
    evaluations.ask("weights")
    evaluations.ask("weights")
    assert asked(fleet) == [(2, "weights")]
    assert evaluations.num_skipped == 2


def test_the_last_evaluation_is_always_made():
    evaluations, ledger, fleet = evaluating(frames=1000)
    evaluations.ask("w0")
    ledger.add(1010, [])
    evaluations.ask("final")
    evaluations.ask("final")
    assert evaluations.are_behind
    fleet.supervisor.settle(0, scores())
    evaluations.ask("final")
    assert asked(fleet) == [(4, "final")]
    fleet.supervisor.settle(0)  # lost: it is made again
    evaluations.ask("final")
    fleet.supervisor.settle(0, scores())
    assert taken(evaluations) == [0, 1010]
    assert not ledger.evaluation_is_due
    assert evaluations.num_skipped == 3


def test_an_evaluation_that_is_lost_is_asked_for_again():
    evaluations, ledger, fleet = evaluating()
    evaluations.ask("weights")
    fleet.supervisor.settle(0)
    assert evaluations.are_behind
    evaluations.ask("later weights")
    assert asked(fleet) == [(0, "later weights")]
    assert (ledger.num_evaluations, evaluations.num_skipped) == (0, 0)


def test_an_evaluation_that_is_lost_after_a_newer_one_started_is_skipped():
    evaluations, ledger, fleet = evaluating(evaluators=2)
    evaluations.ask("w0")
    ledger.add(300, [])
    evaluations.ask("w1")
    fleet.supervisor.settle(0)
    fleet.supervisor.settle(0, scores())
    evaluations.ask("w1")
    assert asked(fleet) == []
    assert taken(evaluations) == [300]
    assert evaluations.num_skipped == 1


def test_starts_keep_their_distance_in_time_except_the_last():
    evaluations, ledger, fleet = evaluating(frames=1000, evaluators=3, evaluation_seconds=10.0)
    evaluations.ask("w0")
    for seconds, number in ((4.0, 1), (9.9, 1), (10.0, 2)):
        ledger.add(300, [])
        fleet.supervisor.time = seconds
        evaluations.ask("later")
        assert len(asked(fleet)) == number
    assert asked(fleet)[1][0] == 3
    assert evaluations.num_skipped == 0  # nobody wanted those in between
    ledger.add(300, [])
    evaluations.ask("final")
    assert asked(fleet)[2] == (4, "final")


def test_skipped_evaluations_are_told_when_their_number_has_doubled():
    evaluations, ledger, _ = evaluating()
    evaluations.ask("w0")
    told = []
    for _ in range(10):
        ledger.add(300, [])
        evaluations.ask("busy")
        told += [int(notice.split()[0]) for notice in evaluations.take_notices()]
    assert told == [1, 2, 4, 8]
    assert evaluations.take_notices() == []


def test_a_resumed_run_makes_again_what_was_in_progress():
    evaluations, ledger, _ = evaluating()
    evaluations.ask("w0")
    ledger.add(700, [])
    saved = (ledger.state_dict(), evaluations.state_dict())
    again, ledger, fleet = evaluating()
    ledger.load_state_dict(saved[0])
    again.load_state_dict(saved[1])
    again.ask("weights")
    assert asked(fleet) == [(2, "weights")]
    again.load_state_dict({})  # of an older run
    assert again.num_skipped == 0


def test_a_fleet_says_too_if_an_evaluation_was_cut_short():
    evaluations, ledger, fleet = evaluating()
    evaluations.ask("weights")
    fleet.supervisor.settle(0, Evaluation([1.0], [2.0], 60, 0.0))
    evaluations.take()
    (notice,) = ledger.take_notices()
    assert "with 1 of 3 episodes finished" in notice
