"""Random network distillation: what a network cannot yet predict is new (Burda et al., 2018).

A predictor learns the outputs of a fixed random network on the observations in a learner's batches,
and its error there is a reward. This stands between memory and learner and changes only the rewards
to learn from. The learner does not know about it, and networks still see the rewards of the game.
Needs torch.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ezgreedy import requirements as require
from ezgreedy.intrinsic.novelty import Novelty
from ezgreedy.intrinsic.settings import FRAMES_AT_ONCE, DistillationSettings
from ezgreedy.learning import tensor_states
from ezgreedy.learning.gradients import NotFiniteError, clip_gradients
from ezgreedy.learning.settings import Sight
from ezgreedy.replay.sequence_batch import Float32Array, SequenceBatch
from ezgreedy.requirements import BoolArray, FloatArray


class RandomNetworkDistillation(Novelty):
    """Adds a bonus to the rewards of batches, and learns from the same batches.

    The bonus of step t is for the observation after it, even the last of a game, and comes from
    the predictor before it learns from this batch. With scale 0 rewards stay as they are, and the
    predictor still learns.

    Nothing is paid at first: batches count for the statistics of whitening until these have seen
    enough observations, then the predictor warms up, and only after that do errors count.

    Args:
        settings: settings of the networks, their learning and the rewards for errors.
        sight: format of the observations.
        burn_in: the longest prefix of a window; its observations are neither learned nor rewarded.
        seed: any non-negative int; determines both networks.
        device: device of the networks.
    """

    def __init__(
        self,
        settings: DistillationSettings,
        sight: Sight,
        *,
        burn_in: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        super().__init__(settings, sight, seed=seed, device=device)
        self.burn_in = require.integer("burn_in", burn_in, least=0)
        self.num_updates = 0  # updates of the predictor
        self._optimizer = tensor_states.adam(
            self.predictor, settings.learning_rate, settings.adam_epsilon
        )

    def __call__(self, batch: SequenceBatch) -> SequenceBatch:
        """The batch with bonuses in the rewards to learn from; networks see the game's rewards.

        Raises:
            NotFiniteError: errors or gradients are not finite. Nothing has changed.
        """
        is_trained = batch.is_trained(self.burn_in)
        reached = np.zeros((len(is_trained), is_trained.shape[1] + 1), dtype=np.bool_)
        reached[:, 1:] = is_trained
        frames = batch.observations[reached]
        rewards: Float32Array = batch.rewards.copy()
        received = batch._replace(rewards=rewards, seen_rewards=batch.inputs)
        if self._only_looks(frames):
            return received
        errors = self._learn(frames, self._teaches(batch, is_trained))
        self._look(frames)
        if self.num_updates > self.settings.warm_up_updates:
            self.moments.update(errors)
        rewards[is_trained] += (self.settings.scale * self.bonuses(errors)).astype(np.float32)
        return received

    def measurements(self) -> dict[str, float]:
        """The moments of errors so far, by which bonuses are divided."""
        return {
            "prediction_error": self.moments.mean,
            "prediction_error_std": self.moments.std,
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything that later bonuses depend on: copies, nested."""
        return {**tensor_states.copied(self._state()), "moments": self.moments.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of an object with the same settings and any seed."""
        own = self._state()
        tensors = {name: part for name, part in state.items() if name != "moments"}
        tensor_states.check_like("state", tensors, own)
        self.moments.load_state_dict(state["moments"])
        self.num_updates = int(state["num_updates"])
        for part in own.keys() - {"num_updates"}:
            tensor_states.copy_into(own[part], state[part])

    def _state(self) -> dict[str, Any]:
        """The tensors themselves, where there are any."""
        return {
            **self._parts(),
            "optimizer": tensor_states.moments(self._optimizer, self.predictor),
            "num_updates": torch.tensor(self.num_updates),
        }

    def _only_looks(self, frames: NDArray[Any]) -> bool:
        """Count a batch for the statistics of whitening alone, while they have seen too little."""
        whitening = self.whitening
        if whitening is None or whitening.count >= self.settings.whitening_observations:
            return False
        for part in _parts(len(frames)):
            self._require_finite("observations", self._seen(frames[part]))
        self._look(frames)
        return True

    def _look(self, frames: NDArray[Any]) -> None:
        """Count a batch for the statistics of whitening, if there is any."""
        if self.whitening is not None:
            for part in _parts(len(frames)):
                self.whitening.update(self._seen(frames[part]))

    def _learn(self, frames: NDArray[Any], teaches: BoolArray) -> FloatArray:
        """Update the predictor; return all errors before that."""
        try:
            errors = self._differentiate(frames, teaches)
        except BaseException:
            self._optimizer.zero_grad(set_to_none=True)
            raise
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.num_updates += 1
        return errors

    def _teaches(self, batch: SequenceBatch, is_trained: BoolArray) -> BoolArray:
        """Which of the trained steps also train the predictor, [steps of all windows]."""
        ends = self.burn_in + batch.lengths[:, None]
        positions = np.arange(is_trained.shape[1])
        most = self.settings.steps_per_window or is_trained.shape[1]
        return (positions >= ends - most)[is_trained]

    def _differentiate(self, frames: NDArray[Any], teaches: BoolArray) -> FloatArray:
        """Leave clipped gradients of the mean error in the predictor; return all errors."""
        num_taught, errors = int(teaches.sum()), []
        for part in _parts(len(frames)):
            inputs = self._inputs(self._seen(frames[part]))
            errors.append(self._add_gradients(inputs, teaches[part], num_taught))
        clip_gradients(
            self.predictor, self.settings.largest_gradient_norm, self.num_updates, self.seed
        )
        return torch.cat(errors).double().cpu().numpy()

    def _add_gradients(self, inputs: Tensor, teaches: BoolArray, num_taught: int) -> Tensor:
        """Add this part's share of the gradients; return its errors."""
        if teaches.all():
            errors = taught = self._errors(inputs)
        else:
            with torch.no_grad():
                errors = self._errors(inputs)
            taught = self._errors(inputs[self._tensor(teaches)])
        self._require_finite("errors", errors.detach())
        torch.autograd.backward(taught.sum() / num_taught)
        return errors.detach()

    def _require_finite(self, site: str, values: Tensor) -> None:
        if not torch.isfinite(values).all():
            raise NotFiniteError(site, self.num_updates, self.seed)


def _parts(num_frames: int) -> list[slice]:
    """The frames of a batch in parts that are computed one after the other."""
    starts = range(0, num_frames, FRAMES_AT_ONCE)
    return [slice(start, start + FRAMES_AT_ONCE) for start in starts]
