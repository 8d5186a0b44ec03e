"""`ezgreedy evaluate` and `ezgreedy watch`: how good a trained agent is, and what it does."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from ezgreedy.commands.training import require_packages


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers both commands."""
    evaluate = commands.add_parser(
        "evaluate",
        help="play a run's agent and report its scores",
        description="Plays the agent of the run's newest checkpoint by the protocol of evaluation, "
        "in environments of its own, and prints the scores. The run may be going on; nothing in "
        "it is changed.",
    )
    _add_run(evaluate)
    evaluate.add_argument(
        "--frames", type=int, metavar="N", help="how long to play; as in the run if not given"
    )
    evaluate.add_argument(
        "--number",
        type=int,
        default=1_000_000,
        metavar="K",
        help="which streams to play with; those of the run's own evaluations are 0, 1, ... "
        "(default: 1000000)",
    )
    _add_epsilon(evaluate)
    evaluate.set_defaults(run=_evaluate)

    watch = commands.add_parser(
        "watch",
        help="make a film of a run's agent, exploratory steps marked",
        description="Plays the agent of the run's newest checkpoint and writes a GIF. The stripe "
        "below the screen is orange on exploratory steps.",
    )
    _add_run(watch)
    watch.add_argument("--out", type=Path, metavar="FILE", help="the film (default: RUN/watch.gif)")
    watch.add_argument(
        "--steps", type=int, default=500, metavar="N", help="actions to show (default: 500)"
    )
    _add_epsilon(watch)
    watch.add_argument("--seed", type=int, default=0, help="of game and exploration (default: 0)")
    watch.set_defaults(run=_watch)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="RUN", help="a directory of ezgreedy train")


def _add_epsilon(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--epsilon",
        type=float,
        metavar="E",
        help="explore with this probability; with that of evaluation if not given",
    )


def _restored(directory: Path, command: str) -> Any:
    require_packages(command)
    from ezgreedy.running.restored import restore

    restored = restore(directory)
    for notice in restored.notices:
        print(notice)
    return restored


def _evaluate(parsed: argparse.Namespace) -> int:
    import numpy as np

    from ezgreedy.results.intervals import mean_interval
    from ezgreedy.running.training import evaluation

    restored = _restored(parsed.directory, "evaluate")
    settings = restored.settings
    if parsed.frames is not None:
        chosen = replace(settings.evaluation, frames=parsed.frames)
        settings = replace(settings, evaluation=chosen)
    found = evaluation(settings, restored.agent, parsed.number, epsilon=parsed.epsilon)
    assert found is not None  # nobody can give it up
    print(f"{settings.agent.name} on {settings.game} after {restored.frames:,} frames")
    if len(found.returns) >= 2:
        interval = mean_interval(found.returns, np.random.default_rng(parsed.number))
        spread = f" [{interval.low:,.2f}, {interval.high:,.2f}]"
    else:
        spread = ""
    print(f"mean return {found.mean_return:,.2f}{spread} over {len(found.returns)} episodes")
    print(f"{found.frames:,} frames played, {found.explored_share:.2%} of steps exploratory")
    if not found.returns:
        print("no episode finished: the mean is of what the unfinished ones had earned")
    return 0


def _watch(parsed: argparse.Namespace) -> int:
    from ezgreedy import requirements as require

    require.integer("--steps", parsed.steps, least=1)
    out = parsed.out or parsed.directory / "watch.gif"
    if out.suffix.lower() != ".gif":
        raise require.refuse("--out", "end in .gif", str(out))
    restored = _restored(parsed.directory, "watch")
    from ezgreedy.atari.lanes import Lanes
    from ezgreedy.running.film import marked, play, write_gif
    from ezgreedy.seeding import role_seed

    settings = restored.settings
    seed = role_seed(parsed.seed, "film")
    lanes = Lanes(settings.game, 1, settings.protocol, seed=seed)
    policy = restored.agent.evaluation_policy(1, seed, parsed.epsilon)
    pictures: list[Any] = []
    num_exploratory = 0

    def see(picture: Any, is_exploring: bool, score: float) -> None:
        nonlocal num_exploratory
        num_exploratory += is_exploring
        pictures.append(marked(picture, is_exploring))

    scores = play(policy, lanes, parsed.steps, see)
    write_gif(out, pictures)
    print(f"{num_exploratory} of {parsed.steps} steps exploratory")
    print("episodes finished: " + (", ".join(f"{score:g}" for score in scores) or "none"))
    print(f"wrote {out}")
    return 0
