"""`ezgreedy evaluate` and `ezgreedy watch`: how good is a trained agent, and what does it do?"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.commands.imports import add_import_option
from ezgreedy.commands.parsing import whole_number
from ezgreedy.commands.train import add_device_option
from ezgreedy.packages import require_deep
from ezgreedy.units import counted


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers both commands."""
    evaluate = commands.add_parser(
        "evaluate",
        help="play a run's agent and report its scores",
        description="Plays the agent of the run's newest checkpoint, as in an evaluation, in "
        "environments of its own, and prints the scores. The run may still be running; nothing in "
        "it is changed.",
    )
    _add_run(evaluate)
    evaluate.add_argument(
        "--frames", type=whole_number, metavar="N", help="frames to play (default: as in the run)"
    )
    evaluate.add_argument(
        "--episodes",
        type=whole_number,
        metavar="N",
        help="episodes to play, however long they are (default: as in the run)",
    )
    evaluate.add_argument(
        "--number",
        type=int,
        default=1_000_000,
        metavar="K",
        help="number that selects random streams; the run's own evaluations use 0, 1, ... "
        "(default: 1000000)",
    )
    _add_epsilon(evaluate)
    evaluate.set_defaults(run=_evaluate)

    watch = commands.add_parser(
        "watch",
        help="make a film of a run's agent, with exploratory steps marked",
        description="Plays the agent of the run's newest checkpoint and writes a GIF. The stripe "
        "below the screen is orange on exploratory steps.",
    )
    _add_run(watch)
    watch.add_argument(
        "--out", type=Path, metavar="FILE", help="file of the film (default: RUN/watch.gif)"
    )
    watch.add_argument(
        "--steps",
        type=whole_number,
        default=500,
        metavar="N",
        help="number of actions to show (default: 500)",
    )
    _add_epsilon(watch)
    watch.add_argument(
        "--seed", type=int, default=0, help="random seed of game and exploration (default: 0)"
    )
    watch.set_defaults(run=_watch)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="RUN", help="directory of a run")
    add_device_option(parser)
    add_import_option(parser)


def _add_epsilon(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--epsilon",
        type=float,
        metavar="E",
        help="probability of exploring (default: that of evaluations)",
    )


def _restored(parsed: argparse.Namespace, command: str) -> Any:
    require_deep(command)
    from ezgreedy.runs.restored import restore

    restored = restore(parsed.directory, parsed.device)
    for notice in restored.notices:
        print(notice)
    return restored


def _evaluate(parsed: argparse.Namespace) -> int:
    from ezgreedy.findings.intervals import mean_interval
    from ezgreedy.runs.evaluation import evaluate_agent

    restored = _restored(parsed, "evaluate")
    settings = restored.settings
    chosen = settings.evaluation
    if parsed.episodes is not None:
        require.integer("--episodes", parsed.episodes, least=1)
        lanes = min(chosen.lanes, parsed.episodes)
        frames = (parsed.episodes + lanes) * settings.protocol.most_episode_frames
        chosen = replace(chosen, episodes=parsed.episodes, lanes=lanes, frames=frames)
    if parsed.frames is not None:
        chosen = replace(chosen, frames=parsed.frames)
    settings = replace(settings, evaluation=chosen)
    found = evaluate_agent(settings, restored, parsed.number, epsilon=parsed.epsilon)
    assert found is not None  # it cannot be abandoned
    print(f"{settings.agent.name} on {settings.game} after {restored.frames:,} frames")
    if len(found.returns) >= 2:
        interval = mean_interval(found.returns)
        spread = f" [{interval.low:z,.2f}, {interval.high:z,.2f}]"
    else:
        spread = ""
    episodes = counted(len(found.returns), "episode")
    print(f"mean return {found.mean_return:z,.2f}{spread} over {episodes}")
    print(f"{found.frames:,} frames played, {found.explored_share:.2%} of steps exploratory")
    if not found.returns:
        print("no episode finished: the mean is over the returns so far of unfinished ones")
    return 0


def _watch(parsed: argparse.Namespace) -> int:
    require.integer("--steps", parsed.steps, least=1)
    out = parsed.out or parsed.directory / "watch.gif"
    if out.suffix.lower() != ".gif":
        raise require.refuse("--out", "end in .gif", str(out))
    restored = _restored(parsed, "watch")
    from ezgreedy.games.lanes import Lanes
    from ezgreedy.runs.film import marked, play, write_gif
    from ezgreedy.seeding import role_seed

    settings = restored.settings
    seed = role_seed(parsed.seed, "film")
    lanes = Lanes(settings.game, 1, settings.protocol, seed=seed)
    policy = restored.evaluation_policy(1, seed, parsed.epsilon)
    pictures: list[Any] = []
    num_exploratory = 0

    def see(picture: Any, is_exploring: bool, score: float) -> None:
        nonlocal num_exploratory
        num_exploratory += is_exploring
        pictures.append(marked(picture, is_exploring))

    scores = play(policy, lanes, parsed.steps, see)
    write_gif(out, pictures)
    print(f"{num_exploratory} of {parsed.steps} steps exploratory")
    returns = ", ".join(f"{score:g}" for score in scores) or "no episode finished"
    print(f"returns of finished episodes: {returns}")
    print(f"wrote {out}")
    return 0
