"""Draws docs/images/distinct_fields.svg: what repeats in a batch of frames.

Run from the repository's root: python docs/images/distinct_fields.py
"""

from pathlib import Path

import numpy as np

from ezgreedy.figures import style
from ezgreedy.games.atari.emulator import Emulator
from ezgreedy.learning.distinct_fields import find_fields
from ezgreedy.learning.settings import DER_TORSO

GAMES = ("Freeway", "MsPacman", "Breakout")
STATES = 64


def states_of(game: str) -> np.ndarray:
    """States of a random walk, as a batch draws them."""
    rng = np.random.default_rng(0)
    env = Emulator(game, rng=np.random.default_rng(1))
    seen = [env.reset()]
    for _ in range(1_500):
        step = env.step(int(rng.integers(env.num_actions)))
        seen.append(env.reset() if step.terminated else step.observation)
    return np.stack(seen)[rng.integers(200, len(seen), STATES)]


def main() -> None:
    """A typical state of each game, bright where no other state of its batch shows the same."""
    with style.voice():
        figure = style.new_figure(7.2, 2.9)
        axes = figure.subplots(1, len(GAMES))
        for axis, game in zip(axes, GAMES, strict=True):
            states = states_of(game)
            layer = find_fields(states, DER_TORSO).layers[0]
            num_states = np.zeros(layer.num_distinct, dtype=int)
            for ids in layer.ids:
                num_states[np.unique(ids)] += 1
            is_own = num_states[layer.ids] == 1  # [states, 15, 15]
            typical = np.argsort(is_own.mean(axis=(1, 2)))[len(states) // 2]
            shown = is_own[typical].repeat(5, 0).repeat(5, 1)
            newest = states[typical, -1, :75, :75] / 255.0
            shades = np.where(shown, 0.3 + 0.7 * newest, 0.4 * newest)
            axis.imshow(shades, cmap="gray", vmin=0.0, vmax=1.0)
            axis.set_title(
                f"{game}: {shown.mean():.0%} of this state's fields\nare its own; "
                f"{layer.share:.0%} of all are distinct",
                fontsize=8,
            )
            axis.set_xticks([])
            axis.set_yticks([])
    style.save(figure, Path("docs/images/distinct_fields"))
    Path("docs/images/distinct_fields.png").unlink()


if __name__ == "__main__":
    main()
