"""Whole runs of Rainbow: as in the paper, fit for a laptop, or on 100,000 steps."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ezgreedy import requirements as require
from ezgreedy.agents.rainbow.learner_settings import LearnerSettings
from ezgreedy.agents.rainbow.settings import RainbowSettings
from ezgreedy.agents.run_settings import EvaluationSettings, RunSettings
from ezgreedy.agents.scales import shortened
from ezgreedy.exploration.schedules import Linear
from ezgreedy.games.atari import atari100k, emulator
from ezgreedy.games.atari.atari57 import game as find_game
from ezgreedy.games.registry import family_of
from ezgreedy.learning.settings import ATARI_TORSO, DER_TORSO, MINATAR_TORSO
from ezgreedy.replay.importance import ImportanceExponent


def paper_scale(agent: RainbowSettings, game: str) -> RunSettings:
    """The paper's settings; games other than Atari's get their own protocol.

    Networks for small games are as large as those of MinAtar's own DQN: 128 hidden units, half of
    them in each stream.
    """
    return RunSettings(_fitted(agent, game), game, protocol=family_of(game).protocol(game))


def laptop_scale(agent: RainbowSettings, game: str) -> RunSettings:
    """A million frames instead of 200 million: the paper's schedules are shortened.

    On Atari, learning is the paper's except for the interval of target updates. MinAtar has its own
    settings, which no paper gives for such a short run; results/README.md says how they were
    selected.
    """
    settings, paper = paper_scale(agent, game), _fitted(agent, game)
    is_small = family_of(game).needs_small_network(settings.protocol)
    short = _SMALL if is_small else _ATARI
    learner = replace(
        paper.learner,
        updates_per_target_sync=min(
            paper.learner.updates_per_target_sync, short.updates_per_target_sync
        ),
        learning_rate=short.learning_rate,
        adam_epsilon=short.adam_epsilon,
    )
    agent = replace(
        paper,
        learner=learner,
        replay_capacity=100_000,
        least_replay=2_000,
        steps_per_update=short.steps_per_update,
        importance_exponent=ImportanceExponent(first_addition=2_000, last_addition=500_000),
        epsilon=_decaying(paper.epsilon, short.steps_of_decay, 2_000),
    )
    return shortened(replace(settings, agent=agent, lanes=short.lanes), is_small)


@dataclass(frozen=True)
class _Laptop:
    """The differences of a run of a million frames."""

    lanes: int
    steps_per_update: int
    updates_per_target_sync: int
    learning_rate: float
    adam_epsilon: float
    steps_of_decay: int


_ATARI = _Laptop(
    lanes=1,
    steps_per_update=4,
    updates_per_target_sync=250,
    learning_rate=LearnerSettings.learning_rate,
    adam_epsilon=LearnerSettings.adam_epsilon,
    steps_of_decay=25_000,
)
_SMALL = _Laptop(
    lanes=16,
    steps_per_update=16,  # a step is a frame, and the paper has 16 frames per update
    updates_per_target_sync=62,  # Young and Tian (2019): 1,000 frames
    learning_rate=1e-3,
    adam_epsilon=3.125e-4,  # Obando-Ceron and Castro (2021)
    steps_of_decay=100_000,  # Young and Tian (2019)
)


def atari100k_scale(agent: RainbowSettings, game: str) -> RunSettings:
    """Data-efficient Rainbow (DER) on 100,000 agent steps, as in van Hasselt et al. (2019).

    Settings not listed here are the paper's, and so also the published DER's: batches of 32, Adam's
    ε of 1.5e-4, gradients clipped at 10, σ0 = 0.1, target updates every 2,000, 51 atoms within
    ±10, α = 0.5, no sticky actions, the minimal action set, grey 84 × 84 × 4. `rainbow-cts` keeps
    its own number of steps and its lack of a target network.
    """
    _require_atari(game)
    return _atari100k_run(_der(agent), game)


def atari100k_dopamine_scale(agent: RainbowSettings, game: str) -> RunSettings:
    """Dopamine's DER, as in its `DER.gin`, where it differs from the published one.

    Its memory of a million holds the whole run, as does ours. Its ε of 0.01 in training is left
    out, as it is unclear whether the noisy agent uses it.
    """
    _require_atari(game)
    der = _der(agent)
    learner = der.learner
    if learner.num_steps == 20:
        learner = replace(learner, num_steps=10)
    agent = replace(
        der,
        learner=replace(learner, largest_gradient_norm=None),
        torso=ATARI_TORSO,
        hidden_size=512,
        shares_hidden=True,
        is_noisy_in_evaluation=False,
        evaluation_epsilon=0.001,
        # Weights are 1/√p throughout the run.
        importance_exponent=ImportanceExponent(0.5, 0.5, 1_600, atari100k.NUM_STEPS),
    )
    return _atari100k_run(agent, game)


SCALES: dict[str, Callable[[RainbowSettings, str], RunSettings]] = {
    "paper": paper_scale,
    "laptop": laptop_scale,
    "atari100k": atari100k_scale,
    "atari100k-dopamine": atari100k_dopamine_scale,
}


def _der(agent: RainbowSettings) -> RainbowSettings:
    learner = agent.learner
    if learner.num_steps == LearnerSettings.num_steps:
        learner = replace(learner, num_steps=20)  # DER
    return replace(
        agent,
        learner=replace(learner, learning_rate=1e-4),  # DER
        torso=DER_TORSO,
        hidden_size=256,  # DER
        replay_capacity=atari100k.NUM_STEPS,  # DER: everything
        least_replay=1_600,  # DER
        steps_per_update=1,  # DER
        # DER: 0.4 to 1 over the run.
        importance_exponent=ImportanceExponent(
            first_addition=1_600, last_addition=atari100k.NUM_STEPS
        ),
        # The paper decays over 2 % of its run, which would be 2,000 steps here. We use the 5,000 of
        # DrQ(ε), the published agent of this benchmark that explores by ε; the end is the paper's.
        epsilon=_decaying(agent.epsilon, 5_000, 1_600),
    )


def _atari100k_run(agent: RainbowSettings, game: str) -> RunSettings:
    return RunSettings(
        agent,
        game,
        frames=atari100k.NUM_FRAMES,
        streams="separate",
        # The final agent over 100 episodes, of 27,000 steps at most each.
        evaluation=EvaluationSettings(
            frames_between=None, frames=100 * 108_000, lanes=10, episodes=100
        ),
        frames_per_report=4_000,
    )


def _fitted(agent: RainbowSettings, game: str) -> RainbowSettings:
    family = family_of(game)
    if family.needs_small_network(family.protocol(game)):
        return replace(agent, torso=MINATAR_TORSO, hidden_size=64)
    return agent


def _require_atari(game: str) -> None:
    if family_of(game) is emulator.FAMILY:
        find_game(game)  # refuses an unknown name, whatever the scale
    else:
        rule = f"be laptop or paper for {game}; Atari-100k is for the games of the console"
        raise require.refuse("--scale", rule, "atari100k")


def _decaying(epsilon: float | Linear, steps: int, first_step: int) -> float | Linear:
    """A schedule of ε over other steps; a constant stays as it is."""
    if not isinstance(epsilon, Linear):
        return epsilon
    return replace(epsilon, steps=steps, first_step=first_step)
