"""What an agent does, as a film: every step a picture, exploratory steps marked."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ezgreedy.agents.agent import Policy
from ezgreedy.atari.environment import Environment
from ezgreedy.atari.lanes import Lanes
from ezgreedy.atari.protocol import Frames

MARK_HEIGHT = 8
EXPLORATORY, GREEDY = (230, 97, 1), (60, 60, 60)  # orange and dark grey
_MILLISECONDS = 66  # of one step: four frames of a console that shows sixty in a second


def play(
    policy: Policy, lanes: Lanes, num_steps: int, see: Callable[[Frames, bool, float], None]
) -> list[float]:
    """Plays one lane and shows every step; returns the scores of episodes that finished.

    Args:
        policy: who plays.
        lanes: a single lane.
        num_steps: for how long.
        see: called with the picture before each action, whether that action explores, and what
            the episode has earned before it.
    """
    environment: Environment = lanes.environments[0]
    observations, starts = lanes.reset(), np.ones(1, dtype=np.bool_)
    score, finished = 0.0, []
    for _ in range(num_steps):
        picture = environment.picture()
        actions = policy.act(observations, starts)
        see(picture, bool(policy.exploring[0]), score)
        steps = lanes.step(actions)
        policy.hear(steps)
        score = float(steps.episode_returns[0])
        if steps.finished[0]:
            finished.append(score)
            score = 0.0
        observations, starts = steps.observations, steps.finished
    return finished


def marked(picture: Frames, is_exploring: bool) -> Frames:
    """The picture over a stripe that is orange where the step explores, [height + 8, width, 3]."""
    stripe = np.empty((MARK_HEIGHT, picture.shape[1], 3), dtype=np.uint8)
    stripe[:] = EXPLORATORY if is_exploring else GREEDY
    return np.concatenate([picture, stripe])


def write_gif(path: Path, pictures: list[Frames]) -> None:
    """An endless film of these pictures, written as a whole or not at all."""
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
