"""Where do rules that end or start options help, and where do they hurt? Worlds of both kinds.

In some the paper expects εz-greedy to fail, in others it shines. A world is a finite task whose map
may depend on the seed; all policies share it. Costs are positive, and less is better: the mean
length of episodes where the goal is all there is to find, and else what is missing of the best
return.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ezgreedy.experiments.experiment import Settings
from ezgreedy.exploration.durations import DurationLaw

if TYPE_CHECKING:
    from ezgreedy.kernels.q_learning_runs import FiniteTask
    from ezgreedy.kernels.ruled_runs import RuledRun
    from ezgreedy.kernels.rules import Rules


class World(NamedTuple):
    """A world of the study.

    Args:
        title: name in tables and figures.
        shines: whether the paper expects εz-greedy to do well there.
        best_return: of an episode; None if the cost is an episode's length.
    """

    title: str
    shines: bool
    best_return: float | None


ROOM, MINES, MAZE, COPIES = "room", "mines", "maze", "copies"
SEA, RANDOM_SEA, CORRIDOR, FOOD, CAR = "sea", "random-sea", "corridor", "food", "car"
WORLDS = {
    ROOM: World("open room", False, None),
    MINES: World("room with 2 % mines", False, 1.0),
    MAZE: World("maze, a turn every 3 steps", False, None),
    COPIES: World("4 further actions that go up", False, None),
    RANDOM_SEA: World("randomised DeepSea", False, 0.99),
    FOOD: World("room with food that stays", False, None),
    SEA: World("DeepSea", True, 0.99),
    CORRIDOR: World("corridor", True, None),
    CAR: World("MountainCar", True, None),
}
_EPISODES = {
    MINES: "num_mine_episodes",
    SEA: "num_sea_episodes",
    RANDOM_SEA: "num_random_sea_episodes",
    FOOD: "num_food_episodes",
}
# A run that shows that all works.
QUICK = {"num_episodes": 100, **dict.fromkeys(_EPISODES.values(), 100)}
AMENDED = (
    "Three worlds were changed after a first run with 30 seeds, in which ε- and εz-greedy "
    "hardly ever found the goal, the food or the treasure there, so that next to nothing could be "
    "compared: "
    "mines from 5 % and 1,000 episodes to 2 % and 3,000, randomised DeepSea from size 10 and 4,000 "
    "episodes to 5 and 20,000, food from 200 episodes of 200 steps to 100 of 1,000. The new ones "
    "were chosen from runs of other seeds without rules or triggers."
)
# Found with the results: what some numbers cannot show.
NOTE = (
    "Randomised DeepSea decides nothing here: its episodes have five steps, and a discrepancy over "
    "five steps is not known before. Costs end where no run learns: at 1,000 steps with equal "
    "actions and at 0.99 in DeepSea, so that ratios there can be too small."
)
SETTINGS: dict[str, Any] = {
    "mu": 2.0,
    "cap": 10_000,  # Paper: all experiments but Rainbow's
    "mines": 0.02,
    "steps_between_turns": 3,
    "maze_length": 48,
    "num_copies": 4,
    "sea_size": 10,
    "random_sea_size": 5,
    "corridor_length": 40,
    # Paper: appendix, GridWorld
    "step_size": 0.1,
    "epsilon": 0.1,
    "discount": 0.99,
    "step_limit": 1000,
    # Paper: DeepSea, ε = 1/(N + 1)
    "sea_step_size": 1.0,
    "sea_discount": 1.0,
    "num_episodes": 1000,
    "num_mine_episodes": 3000,
    "num_sea_episodes": 4000,
    "num_random_sea_episodes": 20_000,
    "num_food_episodes": 100,
    "food_step_limit": 1000,
}


def law(settings: Settings) -> DurationLaw:
    """The duration law of `settings["policy"]`: once for ε-greedy."""
    from ezgreedy.exploration.durations import Fixed, Zeta

    is_plain = settings["policy"].startswith("eps")
    return Fixed(1) if is_plain else Zeta(settings["mu"], settings["cap"])


def is_sea(world: str) -> bool:
    """Whether a world is a DeepSea, which has settings of its own."""
    return world in (SEA, RANDOM_SEA)


def epsilon_of(settings: Settings) -> float:
    """ε in a world."""
    if is_sea(settings["world"]):
        return 1.0 / (settings[_sea_size(settings["world"])] + 1)
    return float(settings["epsilon"])


def _sea_size(world: str) -> str:
    return "random_sea_size" if world == RANDOM_SEA else "sea_size"


def discount_of(settings: Settings) -> float:
    """γ in a world."""
    name = "sea_discount" if is_sea(settings["world"]) else "discount"
    return float(settings[name])


def task_of(settings: Settings, seed: int) -> "FiniteTask":
    """The task of `settings["world"]`, with the map of a seed."""
    drawn = seed if settings["world"] in (MINES, MAZE, RANDOM_SEA) else 0
    names = (
        "mines",
        "steps_between_turns",
        "maze_length",
        "num_copies",
        "sea_size",
        "random_sea_size",
        "corridor_length",
        "step_limit",
        "food_step_limit",
    )
    return _task(settings["world"], drawn, tuple((name, settings[name]) for name in names))


@lru_cache(maxsize=16)
def _task(world: str, seed: int, items: tuple[tuple[str, Any], ...]) -> "FiniteTask":
    from ezgreedy.envs import obstacle_maps
    from ezgreedy.envs.deep_sea import DeepSea
    from ezgreedy.envs.grid_map import GridMap
    from ezgreedy.envs.grid_world import GridWorld
    from ezgreedy.kernels.q_learning_runs import finite_task

    settings = dict(items)
    limit = settings["step_limit"]
    if world == FOOD:
        return _food(settings["food_step_limit"])
    if is_sea(world):
        size = settings[_sea_size(world)]
        return finite_task(DeepSea(size, seed if world == RANDOM_SEA else None))
    if world == MINES:
        return finite_task(obstacle_maps.mine_field(settings["mines"], seed), limit)
    if world == MAZE:
        turns, length = settings["steps_between_turns"], settings["maze_length"]
        return finite_task(obstacle_maps.turning_maze(turns, length, seed), limit)
    if world == COPIES:
        return finite_task(obstacle_maps.repeated_actions(settings["num_copies"]), limit)
    if world == CORRIDOR:
        row = "S" + "." * (settings["corridor_length"] - 2) + "G"
        return finite_task(GridMap([row], ("left", "right")), limit)
    return finite_task(GridWorld(), limit)


def _food(step_limit: int) -> "FiniteTask":
    """The open room with food in the goal's place: every step that leads there pays 1."""
    from ezgreedy.envs.grid_world import GOAL, SIZE, GridWorld
    from ezgreedy.kernels.q_learning_runs import finite_task

    task = finite_task(GridWorld(goal=None), step_limit)
    food = GOAL[0] * SIZE + GOAL[1]
    return task._replace(rewards=(task.successors == food).astype(np.float64))


def open_task(settings: Settings, seed: int) -> "FiniteTask":
    """The task for walks without learning: an open room has no goal."""
    from ezgreedy.envs.grid_world import GridWorld
    from ezgreedy.kernels.q_learning_runs import finite_task

    if settings["world"] == ROOM:
        return finite_task(GridWorld(goal=None))
    return task_of(settings, seed)


def learned(settings: Settings, seed: int, epsilon: float, made: "Rules") -> "RuledRun":
    """Q-learning with the settings of a world."""
    from ezgreedy.kernels.policies import exploration
    from ezgreedy.kernels.q_learning_runs import Budget, rule
    from ezgreedy.kernels.ruled_runs import run_finite_with_rules

    world = settings["world"]
    step_size = settings["sea_step_size" if is_sea(world) else "step_size"]
    return run_finite_with_rules(
        seed,
        task_of(settings, seed),
        exploration(epsilon, law(settings)),
        made,
        rule(step_size, discount_of(settings)),
        Budget(settings[_EPISODES.get(world, "num_episodes")]),
    )


def cost(settings: Settings, run: "RuledRun") -> float:
    """What a run cost on average over its episodes; less is better."""
    world = settings["world"]
    if world == FOOD:
        return 1.0 - float(run.returns.mean()) / settings["food_step_limit"]
    best = WORLDS[world].best_return
    return float(run.lengths.mean()) if best is None else best - float(run.returns.mean())


def equal_budget(settings: Settings, seed: int, share: float) -> "RuledRun":
    """A run without rules at the ε at which options of its length make up this share of steps."""
    from ezgreedy.kernels.rules import rules

    plain = learned(settings, seed, epsilon_of(settings), rules())
    length = max(plain.mean_option_length, 1.0)
    epsilon = share / (length * (1.0 - share) + share)
    return learned(settings, seed, min(epsilon, 1.0), rules())
