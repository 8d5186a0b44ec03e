"""What do the scales of all agents share? The length and evaluations of a laptop run."""

from dataclasses import replace

from ezgreedy.agents.run_settings import EvaluationSettings, RunSettings

LAPTOP_FRAMES = 1_000_000
ATARI_EVALUATION = EvaluationSettings(frames_between=100_000, frames=50_000, lanes=4)
# Some games of MinAtar always take 2,500 frames.
SMALL_EVALUATION = EvaluationSettings(frames_between=200_000, frames=48_000, lanes=16)


def shortened(settings: RunSettings, is_small: bool) -> RunSettings:
    """A run of a million frames instead of the paper's 200 or 30,000 million.

    Args:
        settings: the run at full length.
        is_small: whether the game is small, so that more of it is evaluated at once.
    """
    return replace(
        settings,
        frames=LAPTOP_FRAMES,
        evaluation=SMALL_EVALUATION if is_small else ATARI_EVALUATION,
        frames_per_report=10_000,
    )
