"""εz-greedy as pure functions of JAX: state in, state out.

    from ezgreedy.jax import EZGreedy

    ez = EZGreedy(num_actions=18)
    state = ez.init(seed=0, lanes=8)
    state, actions = ez.step(state, greedy_actions, epsilon=0.1, starts=episode_starts)

`step` can be jitted, vmapped and scanned, and plays the same actions as `ezgreedy.EZGreedy` bit for
bit, with and without JAX's 64-bit mode.
"""

from ezgreedy.adapters.libraries import JAX

JAX.check(__name__)

from ezgreedy.jax.ez_greedy import EZGreedy, State

__all__ = ["EZGreedy", "State"]
