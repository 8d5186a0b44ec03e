"""What holds for the whole suite: Ctrl-C works, and it ends by saying how long each room took."""

import signal

import pytest

from support.room_times import RoomTimes

try:
    from hypothesis import HealthCheck, settings
except ModuleNotFoundError:  # environments with another library test only that
    pass
else:
    # How long an example takes depends on what else the machine does, not on the code.
    settings.register_profile(
        "unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("unhurried")

_times = pytest.StashKey[RoomTimes]()


def pytest_configure(config):
    # A shell that starts the suite in the background has it ignore Ctrl-C, and `nohup` the end of
    # the terminal; the commands that tests start and interrupt would inherit that.
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    config.stash[_times] = RoomTimes()
    config.pluginmanager.register(_Listener(config.stash[_times]))


class _Listener:
    """With xdist this runs where the workers' reports arrive."""

    def __init__(self, times):
        self._times = times

    def pytest_runtest_logreport(self, report):
        self._times.add(report.nodeid, report.duration)


def pytest_terminal_summary(terminalreporter, config):
    lines = config.stash[_times].lines()
    if lines:
        terminalreporter.section("time by room (fixtures included)")
        for line in lines:
            terminalreporter.write_line(line)
