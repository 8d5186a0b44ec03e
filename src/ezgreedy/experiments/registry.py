"""Which experiments are there? Found by id; an unknown id is refused with the nearest ones."""

import importlib
from collections.abc import Sequence
from functools import cache

from ezgreedy import requirements as require
from ezgreedy.experiments.experiment import Experiment

# In the order of the paper. Each module defines EXPERIMENT, and imports heavy packages (numba,
# matplotlib) only inside its functions, so that listing stays quick.
_MODULES = (
    "paper.fig1_gridworld_coverage",
    "paper.sequence_probabilities",
    "paper.fig2_chain_durations",
    "paper.chain_census",
    "paper.fig3_deepsea",
    "paper.fig3_gridworld",
    "paper.fig3_mountaincar",
    "paper.fig3_cartpole",
    "paper.appendix_domains",
    "paper.appendix_mountaincar_dense",
    "paper.appendix_deepsea_randomized",
    "paper.limitations",
    "beyond.stopping",
    "beyond.triggers",
    "paper.ablation_readings",
    "paper.cover_times",
    "deep.atari_exploration",
    "deep.sb3_classic_control",
    "beyond.atari_actions",
    "beyond.directions",
    "beyond.continuous",
    "beyond.continuous_learning",
)


@cache
def experiments() -> dict[str, Experiment]:
    """All experiments by id."""
    modules = (importlib.import_module(f"ezgreedy.experiments.{name}") for name in _MODULES)
    return {module.EXPERIMENT.id: module.EXPERIMENT for module in modules}


def find(ids: Sequence[str]) -> list[Experiment]:
    """The experiments with these ids, each once; without ids, all that need only `study`."""
    known = experiments()
    default = [name for name, experiment in known.items() if experiment.is_default]
    return [_find_one(name, known) for name in dict.fromkeys(ids or default)]


def _find_one(name: str, known: dict[str, Experiment]) -> Experiment:
    if name in known:
        return known[name]
    raise require.refuse_name("experiment", "be one that `ezgreedy list` shows", name, known)
