"""What does an agent do? A film with one picture per step and exploratory steps marked."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ezgreedy.agents.agent import Policy
from ezgreedy.agents.play import FinishedReturns, Play
from ezgreedy.games.environment import Environment
from ezgreedy.games.lanes import Lanes
from ezgreedy.games.protocol import Frames

MARK_HEIGHT = 8
EXPLORATORY, GREEDY = (230, 97, 1), (60, 60, 60)  # orange and dark grey
_MILLISECONDS = 66  # one step: four frames at sixty a second


def play(
    policy: Policy, lanes: Lanes, num_steps: int, see: Callable[[Frames, bool, float], None]
) -> list[float]:
    """Plays one lane and shows every step; returns the scores of finished episodes.

    Args:
        policy: the policy that plays.
        lanes: a single lane; it is reset.
        num_steps: number of steps.
        see: called after each step with the picture before the action, whether the action was
            exploratory, and the episode's return before it.
    """
    environment: Environment = lanes.environments[0]
    returns = FinishedReturns()
    game, score = Play(policy, lanes, returns), 0.0
    for _ in range(num_steps):
        picture = environment.picture()
        steps = game.step()
        see(picture, bool(policy.exploring[0]), score)
        score = 0.0 if steps.finished[0] else float(steps.episode_returns[0])
    return returns.returns


def marked(picture: Frames, is_exploring: bool) -> Frames:
    """The picture above a stripe, orange if the step is exploratory, [height + 8, width, 3]."""
    stripe = np.empty((MARK_HEIGHT, picture.shape[1], 3), dtype=np.uint8)
    stripe[:] = EXPLORATORY if is_exploring else GREEDY
    return np.concatenate([picture, stripe])


def write_gif(path: Path, pictures: list[Frames]) -> None:
    """Writes a looping film of these pictures, completely or not at all."""
    from PIL import Image

    images = [Image.fromarray(picture).quantize(64) for picture in pictures]
    draft = path.with_name(f".{path.name}.draft")
    try:
        images[0].save(
            draft,
            format="GIF",
            save_all=True,
            append_images=images[1:],
            duration=_MILLISECONDS,
            loop=0,
        )
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
