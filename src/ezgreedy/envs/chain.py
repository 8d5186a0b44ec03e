"""The chain of Figure 2a: how far right must an agent go, without pause, to find a good stop?

States 0, 1, 2, …; "right" moves on for nothing, "down" terminates with the state's reward. Rewards
follow the pattern of n zeros and then n: 0, 1, 0, 0, 2, 0, 0, 0, 3, … With γ = 0.99 the best stop
is state 53, worth 9 · 0.99⁵³ = 5.28.
"""

import math

from ezgreedy import requirements as require
from ezgreedy.compilation import jit
from ezgreedy.envs.drawing import AGENT, GOLD, INK, MIST, STONE, Canvas, Picture
from ezgreedy.envs.finite import FiniteEnv

RIGHT, DOWN = 0, 1
NUM_ACTIONS = 2
FIRST_STATE = 0

_SHOWN_STATES = 10


@jit
def stop_reward(state: int) -> float:
    """The reward for going down: n in the states n(n + 3)/2 − 1, and 0 in all others."""
    # The root is exact where it matters: 8(state + 1) + 9 is then the square of 2n + 3.
    n = (int(math.sqrt(8 * state + 17)) - 3) // 2
    return float(n) if n * (n + 3) == 2 * (state + 1) else 0.0


@jit
def step(state: int, action: int, length: int, down: int = DOWN) -> tuple[int, float, bool]:
    """One step of the chain: (state, reward, terminated). State `length` is the end.

    The paper's chain is endless. Ours is finite, and right of its last state there is nothing:
    the episode terminates there with reward 0.

    Args:
        state: number of the state.
        action: `down` terminates; the other one moves right.
        length: number of states before the end.
        down: number of the action that terminates.
    """
    if action == down:
        return length, stop_reward(state), True
    return state + 1, 0.0, state + 1 == length


class Chain(FiniteEnv):
    """The chain as a Gymnasium environment.

    Args:
        length: number of states before the end.
        down: number of the action that terminates, 1 as in the paper. With 0, an agent that takes
            the first of equally good actions terminates where it would otherwise move on.
        render_mode: "rgb_array" or None.
    """

    first_state = FIRST_STATE

    def __init__(
        self, length: int = 1000, down: int = DOWN, render_mode: str | None = None
    ) -> None:
        self.length = require.integer("length", length, least=1, most=2**40)
        self.down = require.integer("down", down, least=0, most=NUM_ACTIONS - 1)
        super().__init__(self.length + 1, NUM_ACTIONS, render_mode)

    def transition(self, state: int, action: int) -> tuple[int, float, bool]:
        """See `step`."""
        return step(state, action, self.length, self.down)

    def _draw(self) -> Picture:
        """Some states around the agent, their numbers above and their rewards below."""
        pitch, margin, middle, stop = 72, 48, 84.0, 168.0
        shown = min(_SHOWN_STATES, self.length)
        is_over = self.state == self.length
        focus = self.previous_state if is_over else self.state
        first = min(max(focus - 3, 0), self.length - shown)
        canvas = Canvas(2 * margin + (shown - 1) * pitch, 216)
        for position in range(shown):
            state, x = first + position, float(margin + position * pitch)
            reward = int(stop_reward(state))
            if state > 0:
                _arrow(canvas, (x - pitch + 22.0, middle), (x - 22.0, middle))
            _arrow(canvas, (x, middle + 22.0), (x, stop - 18.0))
            canvas.disc((x, middle), 22.0, INK)
            canvas.disc((x, middle), 20.0, MIST)
            canvas.box((x - 18, stop - 18), (36, 36), GOLD if reward else MIST, rounding=7)
            canvas.number(reward, (x, stop), 15.0, INK if reward else STONE)
            canvas.number(state, (x, 36.0), 12.0, STONE)
        if first + shown < self.length:
            x = float(margin + shown * pitch)
            _arrow(canvas, (x - pitch + 22.0, middle), (x - 22.0, middle))
        x = float(margin + (focus - first) * pitch)
        if is_over:
            canvas.disc((x, stop + 30.0), 8.0, AGENT)
        else:
            canvas.disc((x, middle), 13.0, AGENT)
        return canvas.picture()


def _arrow(canvas: Canvas, start: tuple[float, float], tip: tuple[float, float]) -> None:
    """An arrow along an axis, right or down."""
    right, down = float(tip[0] > start[0]), float(tip[1] > start[1])
    back_x, back_y = tip[0] - 9.0 * right, tip[1] - 9.0 * down
    canvas.segment(start, (back_x, back_y), 1.5, STONE)
    side_x, side_y = 5.0 * down, 5.0 * right
    canvas.triangle(
        (tip, (back_x + side_x, back_y + side_y), (back_x - side_x, back_y - side_y)), STONE
    )
