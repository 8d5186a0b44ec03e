"""The doctor tries what is there, and says how to get what is not."""

from dataclasses import replace

import pytest

from ezgreedy.cli import main
from ezgreedy.commands import doctor
from ezgreedy.packages import install_command


def part(name):
    return next(each for each in doctor.PARTS if each.module == name)


@pytest.mark.slow  # it starts Ray, a browser and a dozen processes
def test_everything_that_tests_need_works(capsys):
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "✗" not in printed
    for package in ("numba", "gymnasium", "torch", "ale-py", "MinAtar", "ray"):
        assert f"✓ {package} " in printed


def test_what_works_is_shown_with_its_version(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "PARTS", (part("scipy"),))
    monkeypatch.setattr(doctor, "_BROWSERS", ())
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "✓ scipy 1." in printed
    assert "– Chromium" in printed
    assert "apt-get install chromium" in printed


def test_what_is_missing_comes_with_the_command_that_installs_it(capsys, monkeypatch):
    absent = replace(part("torch"), module="no_such_torch")
    monkeypatch.setattr(doctor, "PARTS", (absent,))
    monkeypatch.setattr(doctor, "_BROWSERS", ())
    assert main(["doctor"]) == 0
    assert f"missing: {install_command('deep')}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("trial", "reason"),
    [
        ("raise RuntimeError('no such instruction')", "RuntimeError: no such instruction"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "exit code -11"),
        ("import time; time.sleep(600)", "no answer after 2 s"),
    ],
)
def test_what_is_there_and_fails_is_named_with_the_reason(trial, reason, capsys, monkeypatch):
    monkeypatch.setattr(doctor, "PARTS", (replace(part("scipy"), trial=trial),))
    monkeypatch.setattr(doctor, "_BROWSERS", ())
    if "sleep" in trial:
        monkeypatch.setattr(doctor, "_TIME_LIMIT", 2)
    assert main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert f"does not work: {reason}" in printed
    assert "✗ scipy" in printed
