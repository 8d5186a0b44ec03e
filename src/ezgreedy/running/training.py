"""The loop: act, step, observe, and tell now and then how it goes.

A `Training` is everything that a run's future depends on, without files or clocks. It advances
step by step and between steps can be saved and continued, to the bit.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ezgreedy.agents.agent import Agent, Surface
from ezgreedy.agents.sequence_presets import SequencePreset
from ezgreedy.atari.lanes import Lanes, LaneSteps
from ezgreedy.atari.protocol import Frames
from ezgreedy.requirements import BoolArray, IntArray
from ezgreedy.running.evaluation import Evaluation, evaluate
from ezgreedy.running.settings import RunSettings


class Training:
    """An agent and its environments, on their way.

    Args:
        settings: of the run.
    """

    def __init__(self, settings: RunSettings) -> None:
        self.settings = settings
        self.lanes = Lanes(
            settings.game,
            settings.lanes,
            settings.protocol,
            seed=settings.role_seed("environments"),
        )
        self.agent = _agent(settings, surface(self.lanes))
        self.frames = 0  # of training, over all lanes
        self.num_evaluations = 0
        self.num_reports = 0
        self._notices: list[str] = []
        self._returns: list[float] = []  # of episodes that finished since the last report
        self._observations: Frames = self.lanes.reset()
        self._starts: BoolArray = np.ones(settings.lanes, dtype=np.bool_)
        self._counted: IntArray = np.zeros(settings.lanes, dtype=np.int64)

    @property
    def is_finished(self) -> bool:
        """Whether all frames have been played."""
        return self.frames >= self.settings.frames

    @property
    def evaluation_is_due(self) -> bool:
        """Whether to call `evaluate` before the next step; the last one is at the very end."""
        num_due = self.settings.evaluation.num_due(self.frames, self.settings.frames)
        return self.num_evaluations < num_due

    @property
    def report_is_due(self) -> bool:
        """Whether to call `report` before the next step."""
        due_at = (self.num_reports + 1) * self.settings.frames_per_report
        return self.frames >= due_at

    def step(self) -> LaneSteps:
        """One action in every lane, and the learning that is due after it."""
        steps = self.lanes.step(self.agent.act(self._observations, self._starts))
        self._require_finite(steps)
        self.agent.observe(steps)
        self.frames += int((steps.episode_frames - self._counted).sum())
        self._counted = np.where(steps.finished, 0, steps.episode_frames)
        self._returns += steps.episode_returns[steps.finished].tolist()
        self._observations, self._starts = steps.observations, steps.finished
        return steps

    def _require_finite(self, steps: LaneSteps) -> None:
        if np.isfinite(steps.rewards).all():
            return
        from ezgreedy.learning.gradients import NotFiniteError

        lane = int(np.flatnonzero(~np.isfinite(steps.rewards))[0])
        site = f"reward in lane {lane} at frame {self.frames}"
        raise NotFiniteError(site, self.agent.num_updates, self.settings.seed)

    def evaluate(self, stops: Callable[[], bool] | None = None) -> dict[str, Any] | None:
        """The evaluation that is due, as a line of results; None if it was given up."""
        found = evaluation(self.settings, self.agent, self.num_evaluations, stops)
        if found is None:
            return None
        asked = self.settings.evaluation.episodes
        if asked is not None and len(found.returns) < asked:
            self._notices.append(
                f"the evaluation ended after {found.frames:,} frames with {len(found.returns)} of "
                f"{asked} episodes finished (evaluation.frames is the most that it may play)"
            )
        self.num_evaluations += 1
        return {"kind": "evaluation", "frames": self.frames, **found.record()}

    def report(self) -> dict[str, Any]:
        """What happened since the last report, as a line of results."""
        self.num_reports += 1
        returns, self._returns = self._returns, []
        record: dict[str, Any] = {"kind": "training", "frames": self.frames}
        record["episodes"] = len(returns)
        if returns:
            record["mean_return"] = float(np.mean(returns))
        return record | self.agent.measurements()

    def status(self) -> dict[str, float]:
        """Nothing: in one process nobody waits for anybody."""
        return {}

    def take_notices(self) -> list[str]:
        """What a person should know, once."""
        notices, self._notices = self._notices, []
        return notices

    def state_dict(self) -> dict[str, Any]:
        """Everything that the future depends on: plain data, bytes, arrays and `Tail`s."""
        return {
            "agent": self.agent.state_dict(),
            "lanes": self.lanes.state_dict(),
            "observations": self._observations,
            "starts": self._starts,
            "counted": self._counted,
            "frames": self.frames,
            "num_evaluations": self.num_evaluations,
            "num_reports": self.num_reports,
            "returns": self._returns,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of a training with the same settings."""
        self.agent.load_state_dict(state["agent"])
        self.lanes.load_state_dict(state["lanes"])
        self._observations = state["observations"]
        self._starts = state["starts"]
        self._counted = state["counted"]
        self.frames = state["frames"]
        self.num_evaluations = state["num_evaluations"]
        self.num_reports = state["num_reports"]
        self._returns = list(state["returns"])


def surface(lanes: Lanes) -> Surface:
    """What an agent must know about the game in these lanes."""
    return Surface(
        lanes.num_actions,
        lanes.frame_shape,
        lanes.protocol.stacked_frames,
        lanes.largest_pixel,
        lanes.frame_dtype,
    )


def evaluation(
    settings: RunSettings,
    agent: Agent,
    number: int,
    stops: Callable[[], bool] | None = None,
    epsilon: float | None = None,
) -> Evaluation | None:
    """The evaluation of this number: other numbers have other environments and streams.

    Args:
        settings: of the run.
        agent: who plays.
        number: of the evaluation.
        stops: asked now and then whether to give it up.
        epsilon: in place of the agent's own in evaluations.
    """
    seed = settings.role_seed("evaluation", number)
    num_lanes = settings.evaluation.lanes
    lanes = Lanes(settings.game, num_lanes, settings.protocol, seed=seed)
    policy = agent.evaluation_policy(num_lanes, seed, epsilon)
    return evaluate(policy, lanes, settings.evaluation, stops)


def _agent(settings: RunSettings, played: Surface) -> Agent:
    where = {"lanes": settings.lanes, "seed": settings.role_seed("agent")}
    if isinstance(settings.agent, SequencePreset):
        from ezgreedy.agents.r2d2 import R2D2

        return R2D2(settings.agent, played, **where, device=settings.device)
    from ezgreedy.agents.rainbow import Rainbow

    return Rainbow(settings.agent, played, **where, device=settings.device)
