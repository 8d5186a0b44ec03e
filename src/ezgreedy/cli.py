"""The command line: `ezgreedy COMMAND`.

Invalid input ends with exit code 2 and one line that names the argument, the rule and the value. If
the reader of the output goes away, as in `ezgreedy list | head`, the command ends in silence.
"""

import argparse
import errno
import importlib.util
import os
import select
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ezgreedy import __version__, demonstration
from ezgreedy.commands import (
    check,
    collect,
    completion,
    coverage,
    doctor,
    evaluate,
    fleet,
    judge,
    list_experiments,
    playground,
    report,
    reproduce,
    sweep,
    train,
)
from ezgreedy.commands.help_text import DefaultsShown
from ezgreedy.commands.imports import without_imports
from ezgreedy.commands.parsing import Parser, whole_number
from ezgreedy.packages import install_command
from ezgreedy.units import size

_BROKEN_PIPE = 141  # what a shell reports for programs that the signal SIGPIPE ends: 128 + 13


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    try:
        others = without_imports(sys.argv[1:] if arguments is None else arguments)
        parser = _parser()
        completion.answer(parser)
        parsed = parser.parse_args(others)
        code: int = parsed.run(parsed)
        print(end="", flush=True)  # a reader that has gone is noticed now, not when Python exits
    except (ValueError, TypeError) as error:
        print(f"ezgreedy: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _reader_has_gone():
            return _BROKEN_PIPE
        print(f"ezgreedy: {_described(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print("ezgreedy: stopped", file=sys.stderr)
        return getattr(stop, "exit_code", 130)
    return code


def _reader_has_gone() -> bool:
    """Whether nobody reads what is printed any more, as after `| head`; then nothing is printed."""
    try:
        output = sys.stdout.fileno()
        asked = select.poll()
    except (AttributeError, OSError):  # no pipes to ask about, or output that is no file
        return False
    asked.register(output, select.POLLOUT)
    if not any(event & (select.POLLERR | select.POLLHUP) for _, event in asked.poll(0)):
        return False
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, output)  # what is still to be printed would fail again when Python exits
    os.close(nowhere)
    return True


def _described(error: OSError) -> str:
    """The reason and the file, if the system names one; on a full disk, the room that is left."""
    reason = error.strerror or str(error) or type(error).__name__
    place = "" if error.filename is None else f": {error.filename}"
    if error.errno != errno.ENOSPC:
        return reason + place
    directory = Path(error.filename or ".").absolute()
    while not directory.is_dir():
        directory = directory.parent
    return f"{reason}{place} ({size(shutil.disk_usage(directory).free)} free)"


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = Parser(
        prog="ezgreedy", description="Temporally-extended ε-greedy exploration."
    )
    parser.add_argument("--version", action="version", version=f"ezgreedy {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_demo(commands)
    playground.add_parser(commands)
    list_experiments.add_parser(commands)
    reproduce.add_parser(commands)
    coverage.add_parser(commands)
    report.add_parser(commands)
    train.add_parsers(commands)
    fleet.add_parser(commands)
    sweep.add_parser(commands)
    evaluate.add_parsers(commands)
    collect.add_parser(commands)
    judge.add_parser(commands)
    check.add_parser(commands)
    doctor.add_parser(commands)
    completion.add_parser(commands)
    return parser


def _add_demo(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    defaults = demonstration.DemoSettings()
    demo = commands.add_parser(
        "demo",
        help="show first-visit maps of ε- and εz-greedy on a grid, in a few seconds",
        description="Walks an open grid with ε-greedy and with εz-greedy, where the greedy policy "
        "goes straight down (the paper's Figure 1), and shows how many steps it takes to first "
        "visit each cell: in the terminal, and as a figure if matplotlib is installed.",
        formatter_class=DefaultsShown,
    )
    demo.add_argument(
        "--epsilon",
        type=float,
        action="append",
        metavar="E",
        help=f"probability of exploring, repeatable; {', '.join(map(str, defaults.epsilons))} "
        "if not given",
    )
    demo.add_argument("--mu", type=float, default=defaults.mu, help="exponent of the zeta law")
    demo.add_argument("--size", type=int, default=defaults.size, help="cells along each side")
    demo.add_argument(
        "--steps", type=whole_number, default=defaults.num_steps, help="steps of each walk"
    )
    demo.add_argument("--walks", type=int, default=defaults.num_walks, help="walks to average")
    demo.add_argument("--seed", type=int, default=defaults.seed, help="seed of both policies")
    demo.add_argument(
        "--out", type=Path, default=Path("out/demo"), metavar="DIR", help="directory for the figure"
    )
    demo.set_defaults(run=_demo)


def _demo(parsed: argparse.Namespace) -> int:
    defaults = demonstration.DemoSettings()
    settings = demonstration.DemoSettings(
        size=parsed.size,
        num_steps=parsed.steps,
        num_walks=parsed.walks,
        epsilons=tuple(parsed.epsilon or defaults.epsilons),
        mu=parsed.mu,
        seed=parsed.seed,
    )
    if parsed.out.exists() and not parsed.out.is_dir():
        raise ValueError(f"--out must be a directory; got the file {str(parsed.out)!r}")
    maps = demonstration.run(settings)
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for item in (maps[0], maps[-1]) if len(maps) > 1 else maps:
        print(demonstration.terminal_map(item, settings.num_steps, colour=colour), end="\n\n")
    print(demonstration.legend(colour=colour), end="\n\n")
    print(demonstration.summary(maps, settings))
    if importlib.util.find_spec("matplotlib") is None:
        print(f"\nno figure: matplotlib is not installed ({install_command('study')})")
        return 0
    files = demonstration.draw(maps, settings, parsed.out)
    print("\n" + "\n".join(f"wrote {file}" for file in files))
    return 0
