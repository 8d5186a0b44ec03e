"""The command line forgives what it can, and suggests what was meant."""

import argparse

import pytest

from ezgreedy.cli import main
from ezgreedy.commands.parsing import whole_number


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["trian"], "ezgreedy: argument COMMAND: must be one of demo, playground, "),
        (["trian"], "(did you mean train?); got 'trian'; ezgreedy --help explains\n"),
        (["train", "rainbow", "--fraems", "3", "--game", "Pong", "--out", "x"], "--frames?)"),
        (["train", "rainbow", "--seeed=3", "--game", "Pong", "--out", "x"], "--seed?)"),
        (["train", "rainbow", "--gaem", "Pong"], "unknown argument --gaem (did you mean --game?)"),
        (["train", "rainbow", "--seed", "3"], "the following arguments are required: --game"),
        (["demo", "--szie", "9"], "ezgreedy demo: unknown argument --szie (did you mean --size?)"),
        (["demo", "much"], "ezgreedy demo: unknown argument much; ezgreedy demo --help explains\n"),
        (
            ["completion", "fsh"],
            "argument SHELL: must be one of bash, zsh, fish (did you mean fish",
        ),
        (["demo", "--steps", "1.5"], "argument --steps: must be a whole number, such as 2000000"),
    ],
)
def test_misspelt_words_get_one_line_with_a_suggestion(arguments, told, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e6", 10**6), ("2_000_000", 2 * 10**6), ("1.5e3", 1500), ("-3", -3), ("1e18", 10**18)],
)
def test_whole_numbers_are_read_as_people_write_them(text, number):
    assert whole_number(text) == number
    assert isinstance(whole_number(text), int)


@pytest.mark.parametrize("text", ["", "many", "1.5", "1e-1", "inf", "nan", "1e999999999", "0x10"])
def test_other_numbers_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="must be a whole number"):
        whole_number(text)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["report", "results", "--out", "page.html"], "--to"),
        (["report", "results", "--out=page.html"], "--to"),
        (["collect", "runs", "--to", "kept"], "--out"),
    ],
)
def test_out_and_to_are_suggested_for_each_other(words, meant, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert f"(did you mean {meant}?)" in capsys.readouterr().err
