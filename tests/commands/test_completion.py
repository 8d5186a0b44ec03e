"""Shells complete our commands: real ones, with the keys that a person presses."""

import importlib.util
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ezgreedy.cli import main

# What is typed, with the tab key, and what the shell makes of it.
COMPLETED = [
    ("reprod\t", "reproduce"),
    ("reproduce fig3-dee\t", "reproduce fig3-deepsea"),
    ("train rainbow-ez-b\t--game Mont\t", "train rainbow-ez-budget --game MontezumaRevenge"),
    ("resume my_r\t", "resume my_runs/"),
    ("sweep x --games Pong,Free\t", "sweep x --games Pong,Freeway"),
]
STARTS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
PREPARES = {"bash": "", "zsh": "autoload -U compinit; compinit -u; "}
LIMIT = 300


@pytest.fixture
def environment(tmp_path):
    if importlib.util.find_spec("argcomplete") is None:
        pytest.skip("argcomplete is not installed (pip install '.[completion]')")
    command = tmp_path / "bin" / "ezgreedy"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m ezgreedy "$@"\n')
    command.chmod(0o755)
    (tmp_path / "my_runs").mkdir()
    path = f"{command.parent}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "HOME": str(tmp_path), "PS1": "$ ", "TERM": "dumb"}


def require_shell(name):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed (apt-get install {name})")


def typed(shell, keys, environment, directory: Path):
    """All that an interactive shell prints when these keys are pressed."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        STARTS[shell],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        cwd=directory,
        start_new_session=True,
    )
    os.close(slave)
    os.set_blocking(master, False)
    printed, pending, end = b"", keys.encode(), time.monotonic() + LIMIT
    while time.monotonic() < end:
        if pending:
            pending = pending[os.write(master, pending) :]
        try:
            printed += os.read(master, 65536)
        except BlockingIOError:
            time.sleep(0.02)
        except OSError:  # the shell has ended
            break
    process.kill()
    process.wait()
    os.close(master)
    return printed.decode()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_tab_key_completes_commands_names_and_directories(shell, environment, tmp_path):
    require_shell(shell)
    keys = f'{PREPARES[shell]}eval "$(ezgreedy completion {shell})"\n'
    for begun, _ in COMPLETED:
        # Ctrl-A goes to the start of the line, so that the completed line is shown, not run.
        keys += f"ezgreedy {begun}\x01echo got: \n"
    printed = typed(shell, keys + "exit\n", environment, tmp_path)
    lines = [line.rstrip() for line in printed.replace("\r", "\n").splitlines()]
    for begun, completed in COMPLETED:
        assert f"got: ezgreedy {completed}" in lines, (begun, printed)


def test_fish_gets_the_same_words(environment, tmp_path):
    require_shell("fish")
    script = "ezgreedy completion fish | source; "
    asked = {
        "reprod": "reproduce",
        "reproduce fig3-dee": "fig3-deepsea",
        "train rainbow --game Mont": "MontezumaRevenge",
    }
    script += "; ".join(f"complete -C 'ezgreedy {begun}'" for begun in asked)
    ran = subprocess.run(
        ["fish", "-c", script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    words = [line.partition("\t")[0].strip() for line in ran.stdout.splitlines()]
    assert words == list(asked.values()), ran.stderr


def test_without_argcomplete_the_command_says_how_to_get_it(capsys, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["completion", "bash"]) == 2
    told = capsys.readouterr().err
    assert "completion needs argcomplete, which is not installed (pip install" in told
    assert "[completion]'" in told
