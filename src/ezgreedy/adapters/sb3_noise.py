"""Our noises in Stable-Baselines3: `PerEnvironmentNoise` as the `action_noise` of TD3, SAC or DDPG.

    from ezgreedy.adapters.sb3_noise import PerEnvironmentNoise

    pink = ColouredNoise(size=1, scale=0.3, lanes=envs.num_envs, seed=0, length=999)
    model = TD3("MlpPolicy", envs, action_noise=PerEnvironmentNoise(pink))

Every environment has the noise of its own lane. Correlation lasts from one collection to the next
and ends with the environment's episode. The noise is saved and loaded with the model.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.adapters.libraries import SB3
from ezgreedy.exploration.noise import ActionNoise

SB3.check(__name__)

from stable_baselines3.common.noise import VectorizedActionNoise


# SB3 copies any other noise once for each environment: with the seed it would copy the draws too.
class PerEnvironmentNoise(VectorizedActionNoise):
    """A noise of ours in SB3's interface, for as many environments as it has lanes.

    SB3 adds noise to actions that are scaled to [−1, 1], and clips the sum.

    Args:
        noise: any noise of ours, with a lane for every environment and the size of an action.
    """

    def __init__(self, noise: ActionNoise) -> None:
        self.noise = _checked(noise)
        self.n_envs = noise.lanes
        self._ignores_next_reset = False

    def carry_on(self) -> None:
        """Lets the next `learn` continue the noise, if it also continues episodes.

        SB3 resets noise at the start of every `learn`, even with `reset_num_timesteps=False`.
        """
        self._ignores_next_reset = True

    def __call__(self) -> NDArray[np.float32]:
        """The noise of this step, [environments, size]."""
        return self.noise().astype(np.float32).view(_FittingNoise)

    def reset(self, indices: Iterable[int] | None = None) -> None:
        """Ends the correlation in these environments, whose episodes have ended.

        Args:
            indices: numbers of environments; all of them if None.
        """
        if indices is None and self._ignores_next_reset:
            self._ignores_next_reset = False
            return
        finished = np.full(self.n_envs, indices is None)
        for index in () if indices is None else indices:
            finished[require.integer("index", index, least=0, most=self.n_envs - 1)] = True
        self.noise.reset(finished)

    def __repr__(self) -> str:
        noise = self.noise
        name = type(noise).__name__
        return f"PerEnvironmentNoise({name}, lanes={noise.lanes}, scale={noise.scale.tolist()})"


def _checked(noise: object) -> ActionNoise:
    if not isinstance(noise, ActionNoise):
        rule = "be a noise of ezgreedy, such as ColouredNoise"
        raise require.refuse_type("noise", rule, noise)
    return noise


class _FittingNoise(np.ndarray[Any, np.dtype[np.float32]]):
    """Noise that is added to actions of its own shape only: others would silently share draws."""

    def __radd__(self, actions: Any) -> Any:
        if np.shape(actions) != self.shape:
            lanes, size = self.shape
            received = require.Described(f"lanes={lanes}, size={size}")
            raise require.refuse(
                "action_noise",
                f"have a lane for each environment and the size of an action, {np.shape(actions)}",
                received,
            )
        return actions + np.asarray(self)
