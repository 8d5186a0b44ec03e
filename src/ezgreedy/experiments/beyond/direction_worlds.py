"""The worlds and policies of `directions`, and what is measured of one policy in one world."""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ezgreedy.experiments.experiment import Settings
from ezgreedy.exploration.durations import Zeta
from ezgreedy.exploration.eigenoptions import eigenoptions
from ezgreedy.exploration.options import ActionRepeats, OptionSet, Primitives
from ezgreedy.finite_mdp import FiniteMDP
from ezgreedy.requirements import FloatArray

if TYPE_CHECKING:
    from ezgreedy.envs.finite import FiniteEnv, FiniteModel
    from ezgreedy.exploration.option_tables import OptionTables

# Where actions are no directions, as the paper's limitations describe; and where they are.
NO_DIRECTIONS = {
    "random-sea": "DeepSea, randomised actions",
    "maze": "maze that turns every 3 steps",
    "four-rooms": "four rooms",
}
DIRECTIONS = {"sea": "DeepSea", "corridor": "corridor", "room": "open room"}
WORLDS = NO_DIRECTIONS | DIRECTIONS
COPIES = "copies"  # GridWorld with further actions that go up
_DRAWN_ANEW = ("random-sea", "maze")  # for each seed

POLICIES = {
    "eps": "ε-greedy",
    "ez": "εz-greedy",
    "eigen": "eigenoptions",
    "shuffled": "eigenoptions, shuffled",
    "skips": "TempoRL",
}
# Where action weights are used, in worlds with equal actions.
WEIGHTS = {
    "none": "no weights",
    "exploration": "weights for exploration",
    "both": "weights for exploration and ties",
}


class World:
    """A finite environment with its tables.

    Args:
        env: the environment.
    """

    def __init__(self, env: "FiniteEnv") -> None:
        from ezgreedy.envs.finite import finite_model

        self.env = env
        self.model: FiniteModel = finite_model(env)
        self.mdp = FiniteMDP(self.model.transitions(), self.model.start, self.model.terminal)
        state, action = np.unravel_index(self.model.rewards.argmax(), self.model.rewards.shape)
        # The last state before the reward, since DeepSea has many ends and grids have one way in.
        self.last, self.fewest_steps = int(state), self._steps_to(int(state)) + 1
        self.goal = int(self.model.successors[state, action])

    def _steps_to(self, target: int) -> int:
        """Length of the shortest way from the start."""
        reached = self.model.start > 0
        steps = 0
        while not reached[target]:
            reached = reached.copy()
            reached[self.model.successors[reached & self.model.acting]] = True
            steps += 1
        return steps


def world_of(settings: Settings, seed: int) -> World:
    """The world of `settings["world"]`: drawn from the seed, or the same for all seeds."""
    name = settings["world"]
    size = settings["copies"] if name == COPIES else settings["sizes"][name]
    return _world(name, size, seed if name in _DRAWN_ANEW else 0)


@lru_cache(maxsize=16)
def _world(name: str, size: int, seed: int) -> World:
    from ezgreedy.envs.deep_sea import DeepSea
    from ezgreedy.envs.grid_map import GridMap
    from ezgreedy.envs.obstacle_maps import repeated_actions, turning_maze

    if name == "sea":
        return World(DeepSea(size))
    if name == "random-sea":
        return World(DeepSea(size, action_seed=seed))
    if name == "maze":
        return World(turning_maze(3, size, seed))
    if name == "corridor":
        return World(GridMap(["S" + "." * (size - 2) + "G"], ("left", "right")))
    if name == "room":
        middle = ["." * size] * (size - 2)
        return World(GridMap(["S" + "." * (size - 1), *middle, "." * (size - 1) + "G"]))
    if name == COPIES:
        return World(repeated_actions(size))
    return World(GridMap("four-rooms"))


def options_of(settings: Settings, world: World, seed: int) -> OptionSet:
    """What the policy explores with; options are shuffled differently for every seed."""
    policy, mdp = settings["policy"], world.mdp
    if policy == "eps":
        return Primitives(mdp.num_actions)
    if policy == "ez":
        return ActionRepeats(
            mdp.num_actions, Zeta(settings["mu"], settings["cap"]), _weights(settings, world)
        )
    shuffled_by = seed if policy == "shuffled" else None
    return eigenoptions(mdp, settings["num_directions"], shuffled_by=shuffled_by)


def _weights(settings: Settings, world: World) -> FloatArray | None:
    from ezgreedy.analysis.distinct_actions import distinct_actions

    if settings.get("weights", "none") == "none":
        return None
    return distinct_actions(world.mdp).action_weights


# What is measured.


def learning(settings: Settings, world: World, seed: int) -> dict[str, Any]:
    """Q-learning at a start probability that gives every policy the same share of exploration."""
    from ezgreedy.exploration.option_tables import option_tables
    from ezgreedy.kernels.option_runs import run_options
    from ezgreedy.kernels.q_learning_runs import Budget, finite_task, rule
    from ezgreedy.kernels.skip_runs import run_skips

    is_sea = settings["world"].endswith("sea")
    how = rule(settings["sea_step_size" if is_sea else "step_size"], settings["discount"])
    task = finite_task(world.env, settings["step_limit"])
    num_steps = settings["copies_steps" if settings["world"] == COPIES else "num_steps"]
    budget = Budget(num_steps, num_steps)
    share = settings["share"]
    if settings["policy"] == "skips":
        # Random actions and greedy ones are repeated alike, so ε is the share.
        run, _ = run_skips(seed, task, share, how, budget, settings["longest_skip"])
    else:
        tables = option_tables(options_of(settings, world, seed), world.env.num_states)
        ties = _weights(settings, world) if settings.get("weights") == "both" else None
        run = run_options(seed, task, tables, _start(tables, world, share), how, budget, ties)
    earned = float(run.returns.sum()) * world.fewest_steps / run.num_steps
    return {"earned": round(earned, 6), "share": round(run.explored_share, 6)}


def _start(tables: "OptionTables", world: World, share: float) -> float:
    from ezgreedy.exploration.option_tables import matched_start, mean_plays

    return matched_start(share, mean_plays(tables, world.model.successors, world.model.acting))


def pure_exploration(settings: Settings, world: World, seed: int) -> dict[str, Any]:
    """Exact steps to the goal, sampled cover times, and what options without actions miss."""
    from ezgreedy.analysis.option_walks import option_cover_times

    options = options_of(settings, world, seed)
    runs, horizon = settings["cover_runs"], settings["horizon"]
    cover = option_cover_times(world.mdp, options, runs, horizon, seed)
    assert cover.times is not None
    return {
        "steps": _significant(_steps_to_goal(settings, world, options)),
        "cover": cover.times.tolist(),
        "missed": _missed(settings, world, seed),
    }


def _steps_to_goal(settings: Settings, world: World, options: OptionSet) -> float:
    from ezgreedy.analysis.exact import expected_first_visit
    from ezgreedy.analysis.option_walks import expected_option_visit
    from ezgreedy.analysis.process import ExplorationProcess

    # In DeepSea, where many ends are reached, the treasure is in the last state.
    target = world.last if settings["world"].endswith("sea") else world.goal
    if isinstance(options, ActionRepeats):
        process = ExplorationProcess(world.mdp, durations=options.durations)
        return float(expected_first_visit(process, target))
    return expected_option_visit(world.mdp, options, target)


def _missed(settings: Settings, world: World, seed: int) -> float | None:
    """The share of pairs that directions without single actions never visit (Property 1)."""
    from ezgreedy.exploration.full_coverage import full_coverage

    if settings["policy"] != "eigen":
        return None
    alone = eigenoptions(world.mdp, settings["num_directions"], has_primitives=False)
    acting = np.flatnonzero(world.model.acting)
    visited = full_coverage(world.mdp, alone).visited[acting]
    return round(1.0 - float(visited.mean()), 6)


def _significant(number: float) -> float:
    """Six digits; exact numbers of steps may be very large."""
    return float(f"{number:.6g}") if math.isfinite(number) else number
