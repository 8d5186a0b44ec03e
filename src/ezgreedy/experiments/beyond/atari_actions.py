"""How many of the 18 actions of an Atari game differ? The table behind `action_weights`.

The paper's limitation (ii): where many actions have the same effect, uniform actions are biased.
R2D2 plays with all 18 actions of the console, of which many games tell only a few apart. Here all
of them are tried from the same states of every game, and those that nothing tells apart (the
screen in colour, rewards, lives, the end of the game) count as equal. A seed is one walk through a
game; actions are equal if no walk tells them apart. A longer walk can only find more differences.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.experiments.experiment import Cell, Experiment, Record, Settings, results_by_cell
from ezgreedy.findings.claims import AS_STATED, OURS, Claim, Number, Statement, Summary, Table
from ezgreedy.findings.intervals import share_interval
from ezgreedy.findings.judging import above
from ezgreedy.games.atari.atari57 import NUM_FULL_ACTIONS, game, games

SETTINGS: dict[str, Any] = {
    "games": list(games()),
    "num_places": 50,  # of each walk, eight steps apart
    "num_steps": 4,  # how often an action is repeated in one place
}

_WALKS = f"over three walks of {SETTINGS['num_places']} places"
FEWER = Statement(
    "In most Atari games, fewer than 18 of the 18 actions differ.",
    OURS,
    f"The interval of the share of games in which fewer than 18 actions are told apart, {_WALKS}, "
    "lies above 1/2.",
)
LISTED = Statement(
    "In most Atari games, as many of the 18 actions differ as the emulator lists for the game.",
    OURS,
    "The interval of the share of games in which the number of actions told apart equals the size "
    f"of the emulator's own list for the game, {_WALKS}, lies above 1/2.",
)


def cells(settings: Settings) -> list[Cell]:
    """Every game."""
    names = settings["games"]
    if not names or len(set(names)) < len(names):
        raise require.refuse("games", "hold at least one game, each once", names)
    return [Cell(game(name).name, {"game": name}) for name in names]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """The first action with the same effect, for each of the 18, as one walk shows it."""
    from ezgreedy.analysis.distinct_actions import game_actions
    from ezgreedy.games.atari.emulator import Emulator
    from ezgreedy.games.lanes import lane_rng
    from ezgreedy.games.protocol import R2D2_PROTOCOL

    lane = list(games()).index(settings["game"])  # games are independent samples
    played = Emulator(settings["game"], R2D2_PROTOCOL, rng=lane_rng(seed, lane))
    effects = game_actions(
        played, num_places=settings["num_places"], num_steps=settings["num_steps"], seed=seed
    )
    return {"labels": effects.labels.tolist()}


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """The table of all games, and in how many of them actions are equal."""
    from ezgreedy.analysis.distinct_actions import ActionEffects, combined_effects

    walks = {
        name: [ActionEffects(np.array(entry["labels"])) for entry in entries]
        for name, entries in results_by_cell(records).items()
    }
    effects = {name: combined_effects(found) for name, found in walks.items()}
    counts = {name: found.num_distinct for name, found in effects.items()}
    listed = {name: game(name).num_minimal_actions for name in counts}
    rows: list[list[Number]] = [
        [name, counts[name], listed[name], max(map(len, found.groups)), _agreement(walks[name])]
        for name, found in effects.items()
    ]
    table = Table(
        "How many of 18 actions differ",
        ["game", "differ", "in the emulator's list", "largest group", "found by each walk"],
        rows,
        "A group is a set of equal actions: with uniform actions, the share of its effect is its "
        "size out of 18.",
    )
    data = {"labels": {name: found.labels.tolist() for name, found in effects.items()}}
    return Summary([_fewer(counts), _as_listed(counts, listed)], data=data, tables=[table])


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Actions that differ and actions in the emulator's list, game by game."""
    from ezgreedy.figures import action_effects, style

    rows = {str(row[0]): (int(str(row[1])), int(str(row[2]))) for row in summary.tables[0].rows}
    return style.save_both(
        action_effects.actions_by_game(rows),
        action_effects.actions_by_game(rows, is_narrow=True),
        directory / "actions_by_game",
    )


def _agreement(walks: Sequence[Any]) -> str:
    """What single walks found: one number if all found as many."""
    found = sorted({walk.num_distinct for walk in walks})
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _fewer(counts: Mapping[str, int]) -> Claim:
    num_fewer = sum(count < NUM_FULL_ACTIONS for count in counts.values())
    share = share_interval(num_fewer, len(counts))
    return Claim(
        FEWER,
        {AS_STATED: above(share, 0.5)},
        {
            "share of games with equal actions": share,
            "actions that differ, median": float(np.median(list(counts.values()))),
            "games in which at most 9 differ": sum(count <= 9 for count in counts.values()),
        },
        len(counts),
        note="Nothing that was seen tells equal actions apart; elsewhere in the game they may "
        "differ.",
        sample="game",
    )


def _as_listed(counts: Mapping[str, int], listed: Mapping[str, int]) -> Claim:
    share = share_interval(sum(counts[name] == listed[name] for name in counts), len(counts))
    fewer = [name for name, count in counts.items() if count < listed[name]]
    more = [name for name, count in counts.items() if count > listed[name]]
    return Claim(
        LISTED,
        {AS_STATED: above(share, 0.5)},
        {
            "share of games with as many as listed": share,
            "games with fewer": len(fewer),
            "games with more": len(more),
        },
        len(counts),
        note=f"Fewer differ in {', '.join(fewer) or 'none'}; more in {', '.join(more) or 'none'}.",
        sample="game",
    )


EXPERIMENT = Experiment(
    id="atari-actions",
    title="Limitation (ii): how many of Atari's 18 actions differ",
    shows="which of the 18 actions have the same effect, for each of 57 games",
    settings=SETTINGS,
    quick={"games": ["Freeway", "Skiing"], "num_places": 4},
    num_seeds=3,
    num_quick_seeds=2,
    statements=(FEWER, LISTED),
    cost_seconds=600.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
    extra="deep",
    modules=("ale_py",),
)
