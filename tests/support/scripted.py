"""Streams that hand out written uniforms instead of hashed ones."""

import numpy as np

from ezgreedy.exploration.streams import Purpose, Streams

ALMOST_ONE = 1.0 - 2.0**-53


class ScriptedStreams(Streams):
    """Uniforms by (lane, step): a coin, and for heads an action and a duration as well.

    Steps without an entry get a coin that never explores. Asking for an action or duration that is
    not written fails, and `check_used` fails if a written one was never asked for.
    """

    def __init__(self, script: dict[tuple[int, int], tuple[float, ...]], lanes: int = 1) -> None:
        super().__init__(seed=0, lanes=lanes)
        self.script = script
        self.asked: set[tuple[int, int, Purpose]] = set()
        self.num_words = 0

    def words(self, steps, lanes=None):
        lanes = np.arange(self.lanes) if lanes is None else lanes
        # A word is only the address of the cell it stands for.
        words = (np.asarray(steps) * self.lanes + lanes).astype(np.uint64)
        self.num_words += words.size
        return words

    def uniforms(self, words, purpose):
        return np.array([self._uniform(int(word), purpose) for word in words.ravel()])

    def heads(self, words, epsilon):
        coins = self.uniforms(words, Purpose.COIN).reshape(words.shape)
        return coins < epsilon

    def check_used(self) -> None:
        written = {
            (lane, step, Purpose(index))
            for (lane, step), draws in self.script.items()
            for index in range(len(draws))
        }
        assert written <= self.asked, f"never asked for: {sorted(written - self.asked)}"

    def _uniform(self, word: int, purpose: Purpose) -> float:
        step, lane = divmod(word, self.lanes)
        self.asked.add((lane, step, purpose))
        draws = self.script.get((lane, step), (ALMOST_ONE,))
        assert len(draws) > purpose, f"lane {lane}, step {step}: no {purpose.name} was written"
        return draws[purpose]
