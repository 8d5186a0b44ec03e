"""What goes between processes arrives in order, once, or is given up; without Ray."""

from ezgreedy.fleet.deliveries import Deliveries
from ezgreedy.fleet.roles import Key, ShardReport
from ezgreedy.fleet.status import SECONDS_BETWEEN_VIEWS, Status
from ezgreedy.replay.limiter import SamplesPerInsert
from support.asked_fleet import members


def report(kept):
    return ShardReport(kept, 0, kept, 1.0)


def delivering(shards=2):
    limiter = SamplesPerInsert(1.0, 10, most_inserted=4, most_sampled=4)
    fleet = members(shards)
    return Deliveries(fleet, limiter), fleet, limiter


def keys(fleet):
    return [call.asked[0] for call in fleet.supervisor.calls]


def test_a_memory_gets_one_call_at_a_time_in_order_and_others_need_not_wait():
    deliveries, fleet, limiter = delivering()
    for key in (Key(0, 0, 1), Key(1, 0, 1)):
        deliveries.add(key, f"windows of {key.actor}", 5)
    deliveries.send()
    for key in (Key(2, 0, 1), Key(0, 0, 2)):
        deliveries.add(key, f"windows of {key.actor}", 5)
    deliveries.send()
    assert keys(fleet) == [[Key(0, 0, 1)], [Key(1, 0, 1)]]  # actors 0 and 2 share a memory
    assert len(deliveries) == 2
    fleet.supervisor.settle(0, report(kept=5))
    assert (limiter.num_inserted, fleet.reports) == (5, [report(5), None])
    deliveries.send()
    assert keys(fleet) == [[Key(1, 0, 1)], [Key(2, 0, 1), Key(0, 0, 2)]]
    assert fleet.supervisor.calls[1].asked[1:] == ("windows of 2", "windows of 0")
    assert not deliveries


def test_a_call_carries_no_more_than_so_many_deliveries():
    deliveries, fleet, _ = delivering(shards=1)
    for number in range(300):
        deliveries.add(Key(0, 0, number), "windows", 5)
    deliveries.send()
    assert (len(keys(fleet)[0]), len(deliveries)) == (256, 44)


def test_deliveries_that_are_lost_go_again_alone_before_others_and_are_given_up_in_the_end():
    deliveries, fleet, limiter = delivering(shards=1)
    for number in (1, 2):
        deliveries.add(Key(0, 0, number), "windows", 5)
    deliveries.send()
    assert keys(fleet) == [[Key(0, 0, 1), Key(0, 0, 2)]]
    deliveries.add(Key(0, 0, 3), "windows", 5)
    fleet.supervisor.settle(0)
    for _ in range(2):
        deliveries.send()
        assert keys(fleet) == [[Key(0, 0, 1)]]
        fleet.supervisor.settle(0)
    deliveries.send()
    assert keys(fleet) == [[Key(0, 0, 2)]]
    fleet.supervisor.settle(0, report(kept=2))
    deliveries.send()
    assert keys(fleet) == [[Key(0, 0, 3)]]
    assert (limiter.num_inserted, len(deliveries)) == (2, 0)


def test_nothing_is_sent_to_a_memory_that_is_not_ready():
    deliveries, fleet, _ = delivering(shards=1)
    fleet.memories[0].is_ready = False
    deliveries.add(Key(0, 0, 1), "windows", 5)
    deliveries.send()
    assert (len(deliveries), fleet.supervisor.calls) == (1, [])


def test_views_and_reports_count_apart():
    status = Status()
    status.played(100, 3)
    status.updated(1.0, 3.0)
    assert status.take_view() == {}  # too soon
    status._viewed -= 2 * SECONDS_BETWEEN_VIEWS
    view = status.take_view()
    assert (view["parameter_lag"], view["learner_wait_share"]) == (3.0, 0.25)
    status.played(50, 1)
    status._viewed -= 2 * SECONDS_BETWEEN_VIEWS
    assert status.take_view()["parameter_lag"] == 1.0
    assert status.take_report()["parameter_lag"] == 2.0
    assert status.take_report()["frames_per_second"] == 0.0
