"""A training: an agent that plays, learns, is evaluated and reports.

A `Training` is everything that a run's future depends on, without files or clocks. It advances
step by step; between steps it can be saved and continued bit for bit.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ezgreedy.agents.agent import game_spec
from ezgreedy.agents.play import FinishedReturns, FrameCount, Play
from ezgreedy.agents.registry import policy_state
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.games.lanes import Lanes, LaneSteps
from ezgreedy.runs.evaluation import Stops, evaluate_agent
from ezgreedy.runs.trainable import Trainable


class Training(Trainable):
    """An agent and its environments in training.

    Args:
        settings: settings of the run.
    """

    def __init__(self, settings: RunSettings) -> None:
        super().__init__(settings)
        self.lanes = Lanes(
            settings.game,
            settings.lanes,
            settings.protocol,
            seed=settings.role_seed("environments"),
        )
        self.agent = settings.agent.build(
            game_spec(self.lanes),
            lanes=settings.lanes,
            seed=settings.role_seed("agent"),
            device=settings.device,
        )
        self._frames, self._returns = FrameCount(settings.lanes), FinishedReturns()
        trackers = (self._frames, self._returns)
        self.play = Play(self.agent, self.lanes, *trackers, check=self._require_finite)

    @property
    def is_learning(self) -> bool:
        """Whether the first update has been made."""
        return self.agent.num_updates > 0

    def step(self) -> LaneSteps:
        """Take one action in every lane, and make the updates that are due."""
        steps = self.play.step()
        self.ledger.add(self._frames.take(), self._returns.take(), self._returns.take_lengths())
        return steps

    def _require_finite(self, steps: LaneSteps) -> None:
        if np.isfinite(steps.rewards).all():
            return
        from ezgreedy.learning.gradients import NotFiniteError

        lane = int(np.flatnonzero(~np.isfinite(steps.rewards))[0])
        site = f"reward in lane {lane} at frame {self.frames}"
        raise NotFiniteError(site, self.agent.num_updates, self.settings.seed)

    def evaluate(self, stops: Stops | None = None) -> dict[str, Any] | None:
        """The evaluation that is due, as a line of results; None if it was abandoned."""
        found = evaluate_agent(self.settings, self.agent, self.ledger.num_evaluations, stops)
        return None if found is None else self.ledger.evaluation(found, self.frames)

    def report(self) -> dict[str, Any]:
        """Report on the time since the last report, as a line of results."""
        return self.ledger.report(self.agent.measurements())

    def state_dict(self) -> dict[str, Any]:
        """Everything the future depends on: plain data, bytes, arrays and append-only rings."""
        return {
            "agent": self.agent.state_dict(),
            **self.play.state_dict(),
            "counted": self._frames.counted,
            **self.ledger.state_dict(),
        }

    def final_state(self) -> dict[str, Any]:
        """The policy and the counts: without replay, optimiser and games."""
        agent = policy_state(self.settings.agent, self.agent.state_dict())
        return {"agent": agent, **self.ledger.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a training with the same settings."""
        self.agent.load_state_dict(state["agent"])
        self.play.load_state_dict(state)
        self._frames.counted = state["counted"]
        self.ledger.load_state_dict(state)
