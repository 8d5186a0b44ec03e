"""What does exploration alone find in the 57 Atari games? ε- against εz-greedy, without learning.

The paper's limitations ask where action repeats are aligned with the dynamics; this experiment
answers for each game. Pure exploration (ε = 1), and ε = 0.1 around a greedy policy that never
moves. A seed is one walk of whole episodes; `analysis.game_walks` defines what is counted, and
`games.atari.screen_cells` what a screen cell is. On the same seed, both policies toss the same
coins and start episodes alike.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.experiments.deep.atari_claims import FREEWAY, FREEWAY_REWARDS, claims, statements
from ezgreedy.experiments.deep.atari_conditions import (
    Found,
    cell_name,
    duration_law,
    judged,
    policies,
)
from ezgreedy.experiments.experiment import Cell, Experiment, Record, Settings
from ezgreedy.findings.claims import Summary
from ezgreedy.games.atari.atari57 import game, games

SETTINGS: dict[str, Any] = {
    "games": list(games()),
    "epsilons": [1.0, 0.1],
    "mus": [2.0],
    "caps": [100, 10_000],  # Paper: 100 for Rainbow, else 10,000
    "judged_mu": 2.0,  # Paper: μ = 2 in all but the ablations
    "num_steps": 2000,  # agent steps of four frames each, then to the episode's end
    "most_episode_frames": 108_000,  # half an hour, as for Rainbow
}


def cells(settings: Settings) -> list[Cell]:
    """Every game at every ε, with ε-greedy and with εz-greedy at every μ and cap."""
    _check(settings)
    return [
        Cell(
            cell_name(name, epsilon, policy),
            {"game": name, "epsilon": epsilon, "mu": mu, "cap": cap},
        )
        for name in settings["games"]
        for epsilon in settings["epsilons"]
        for policy, (mu, cap) in policies(settings).items()
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """One walk: see `GameWalk`."""
    from ezgreedy.analysis.game_walks import game_walk
    from ezgreedy.exploration.ez_greedy import EZGreedy
    from ezgreedy.games.atari.screen_cells import PROTOCOL, CoarseEmulator
    from ezgreedy.games.lanes import lane_rng

    # Every game is a lane of its own, so that games are independent samples; all policies share it.
    lane = list(games()).index(settings["game"])
    protocol = replace(PROTOCOL, most_episode_frames=settings["most_episode_frames"])
    played = CoarseEmulator(settings["game"], protocol, rng=lane_rng(seed, lane))
    explore = EZGreedy(
        played.num_actions,
        settings["epsilon"],
        duration_law(settings["mu"], settings["cap"]),
        seed=seed,
        first_lane=lane,
    )
    return asdict(game_walk(played, explore, settings["num_steps"]))


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Every measure of every condition, and on how many games εz-greedy is ahead."""
    found = Found.of(settings, records)
    return Summary(claims(found), data=found.as_json())


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """The gain in every game, and over all games."""
    from ezgreedy.figures import game_gains, style

    data, shown = summary.data, judged(settings)
    return [
        *style.save_both(
            game_gains.gains_by_game(data, shown),
            game_gains.gains_by_game(data, shown, is_narrow=True),
            directory / "gains_by_game",
        ),
        *style.save_both(
            game_gains.over_games(data),
            game_gains.over_games(data, is_narrow=True),
            directory / "over_games",
        ),
    ]


def _check(settings: Settings) -> None:
    for name in ("games", "epsilons", "mus", "caps"):
        values = settings[name]
        if not values or len(set(values)) < len(values):
            raise require.refuse(name, "hold at least one value, each once", values)
    for name in settings["games"]:
        game(name)
    for epsilon in settings["epsilons"]:
        require.number("epsilons", epsilon, least=0.0, most=1.0)
    for cap in settings["caps"]:
        require.integer("caps", cap, least=2)
        for mu in settings["mus"]:
            duration_law(mu, cap)
    if settings["judged_mu"] not in settings["mus"]:
        raise require.refuse("judged_mu", "be one of mus", settings["judged_mu"])
    require.integer("num_steps", settings["num_steps"], least=1)


EXPERIMENT = Experiment(
    id="atari-exploration",
    title="Limitations: what exploration alone finds in Atari",
    shows="rewards and places that ε- and εz-greedy find in 57 games without learning",
    settings=SETTINGS,
    quick={
        "games": [FREEWAY, "MontezumaRevenge", "Pong"],
        "epsilons": [1.0],
        "mus": [2.0],
        "caps": [100],
        "num_steps": 500,
    },
    full={"num_steps": 100_000, "mus": [1.5, 2.0, 3.0]},
    num_seeds=10,
    num_thorough_seeds=20,
    statements=(
        FREEWAY_REWARDS,
        *(s for epsilon in SETTINGS["epsilons"] for s in statements(epsilon).values()),
    ),
    num_quick_seeds=3,
    cost_seconds=9_000.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
    extra="deep",
    modules=("ale_py",),
)
