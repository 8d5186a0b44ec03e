"""A Rainbow agent as data; the defaults are the paper's.

Counts are agent steps and updates; at four frames per step and four steps per update, 1M steps are
4M frames and one update is 16 frames.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ezgreedy import requirements as require
from ezgreedy.agents.agent import Agent, AgentSettings, GameSpec, kept_bytes
from ezgreedy.agents.network_sizes import (
    COPIES_OF_PARAMETERS,
    FLOAT_BYTES,
    MOST_ACTIONS,
    torso_size,
)
from ezgreedy.agents.rainbow.learner_settings import LearnerSettings
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.exploration.durations import DurationLaw, Fixed, matched_epsilon
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.exploration.schedules import Linear, Schedule
from ezgreedy.exploration.stops import StopSettings, check_stops
from ezgreedy.exploration.temporally_extended import TemporallyExtended
from ezgreedy.games.protocol import Protocol
from ezgreedy.intrinsic.settings import PSEUDO_COUNT_FORMS
from ezgreedy.learning.settings import ATARI_TORSO, Convolution
from ezgreedy.replay.importance import ImportanceExponent

_HURRIED_TRANSITIONS = 10_000  # enough to measure speed


@dataclass(frozen=True)
class RainbowSettings(AgentSettings):
    """An agent of the paper; the defaults are its Rainbow.

    Args:
        name: name on a command line.
        learner: settings of learning.
        torso: convolutions of the networks, first to last.
        hidden_size: units of the hidden layer of each of a network's two streams.
        shares_hidden: whether both streams have the same hidden layer.
        num_atoms: number of atoms in a value's distribution.
        least_value: the first atom.
        most_value: the last atom.
        sigma0: initial scale of the networks' noise; None for networks without noise.
        epsilon: ε in training, constant or by the steps of a lane.
        evaluation_epsilon: ε in evaluation.
        is_noisy_in_evaluation: whether the networks' noise stays on in evaluation.
        durations: law of the repeats of an exploratory action; `Fixed(1)` is ε-greedy.
        matches_budget: whether to lower ε so that the share of exploratory steps is ε, as it would
            be without repeats; if not, ε is the probability of starting one, as in the paper.
        stops: rules that end exploratory repeats early in training, see `exploration.stops`.
        bonus_scale: β of the intrinsic reward for rare frames; 0 for none.
        bonus_form: how a pseudo-count becomes a reward, see `intrinsic.pseudo_counts`.
        replay_capacity: number of transitions remembered.
        least_replay: number of transitions before the first update.
        steps_per_update: agent steps from one update to the next.
        priority_exponent: α of the priorities.
        importance_exponent: β of the importance weights, by transitions added.
    """

    policy_module = "ezgreedy.agents.rainbow.agent"

    learner: LearnerSettings = field(default_factory=LearnerSettings)
    torso: tuple[Convolution, ...] = ATARI_TORSO
    hidden_size: int = 512  # Hessel et al.
    shares_hidden: bool = False  # Hessel et al.
    num_atoms: int = 51  # Hessel et al.
    least_value: float = -10.0  # Hessel et al.
    most_value: float = 10.0  # Hessel et al.
    # Deviation: Hessel et al. print 0.5, and advise 0.1 for noise made on the processor.
    sigma0: float | None = 0.1
    epsilon: float | Linear = 0.0  # table of the paper
    evaluation_epsilon: float = 0.0  # table of the paper
    is_noisy_in_evaluation: bool = True  # DQN Zoo; the paper does not say
    durations: DurationLaw = field(default_factory=lambda: Fixed(1))
    matches_budget: bool = False
    stops: tuple[StopSettings, ...] = ()
    bonus_scale: float = 0.0
    bonus_form: str = "bellemare"  # the paper follows Bellemare et al. (2016)
    replay_capacity: int = 1_000_000  # table of the paper
    least_replay: int = 20_000  # Hessel et al.: 80K frames
    steps_per_update: int = 4  # appendix of the paper
    priority_exponent: float = 0.5  # table of the paper
    # Table of the paper: 0.4 to 1 over 200M frames.
    importance_exponent: ImportanceExponent = field(default_factory=ImportanceExponent)

    def __post_init__(self) -> None:
        if self.sigma0 is not None:
            require.number("sigma0", self.sigma0, 0.0)
        if not isinstance(self.epsilon, Linear):
            require.number("epsilon", self.epsilon, 0.0, 1.0)
        require.number("evaluation_epsilon", self.evaluation_epsilon, 0.0, 1.0)
        require.number("bonus_scale", self.bonus_scale, 0.0)
        for name in ("replay_capacity", "least_replay", "steps_per_update"):
            require.integer(name, getattr(self, name), least=1)
        require.number("priority_exponent", self.priority_exponent, 0.0)
        require.flag("is_noisy_in_evaluation", self.is_noisy_in_evaluation)
        require.flag("matches_budget", self.matches_budget)
        require.flag("shares_hidden", self.shares_hidden)
        require.one_of("bonus_form", self.bonus_form, PSEUDO_COUNT_FORMS)
        if not isinstance(self.durations, DurationLaw):
            raise require.refuse_type("durations", "be a duration law", self.durations)
        check_stops("stops", self.stops)
        if self.least_replay > self.replay_capacity:
            rule = f"be at most replay_capacity, which is {self.replay_capacity}"
            raise require.refuse("least_replay", rule, self.least_replay)

    def scale_table(self) -> Mapping[str, Callable[[Any, str], RunSettings]]:
        """See `rainbow.scales`."""
        from ezgreedy.agents.rainbow.scales import SCALES

        return SCALES

    def build(self, spec: GameSpec, *, lanes: int, seed: int, device: str = "cpu") -> Agent:
        """The agent itself; needs torch."""
        from ezgreedy.agents.rainbow.agent import Rainbow

        return Rainbow(self, spec, lanes=lanes, seed=seed, device=device)

    def explorer(
        self, num_actions: int, lanes: int = 1, seed: int = 0, *, evaluates: bool = False
    ) -> EZGreedy | TemporallyExtended:
        """The policy through which the agent acts; override it to explore in another way.

        Args:
            num_actions: number of actions in the environment.
            lanes: number of environments stepped together. A schedule of ε counts their steps
                together, as frames do.
            seed: any non-negative int.
            evaluates: whether to act with the ε of evaluation; durations are the same.
        """
        return EZGreedy(
            num_actions, self.acted_epsilon(lanes, evaluates), self.durations, lanes, seed
        )

    def acted_epsilon(self, lanes: int, evaluates: bool = False) -> float | Schedule:
        """ε by the steps of one lane, for training or for evaluation."""
        epsilon = self.evaluation_epsilon if evaluates else self.epsilon
        if isinstance(epsilon, Linear):
            epsilon = replace(
                epsilon,
                steps=max(epsilon.steps // lanes, 1),
                first_step=epsilon.first_step // lanes,
            )
        return _matched(epsilon, self.durations) if self.matches_budget else epsilon

    def replay_bytes(self, frame_shape: tuple[int, ...], num_steps: int | None = None) -> int:
        """Bytes of the replay, which keeps each frame once."""
        from ezgreedy.replay.frames import required_bytes

        largest = required_bytes(self.replay_capacity, frame_shape)
        return kept_bytes(largest, self.replay_capacity, num_steps)

    def working_bytes(self, frame_shape: tuple[int, ...], protocol: Protocol, lanes: int) -> int:
        """Networks with their optimiser, and the copies that a checkpoint takes."""
        planes, *sides = frame_shape
        size = torso_size((protocol.stacked_frames * planes, *sides), self.torso)
        num_hidden = 1 if self.shares_hidden else 2
        num_outputs = self.num_atoms * (1 + MOST_ACTIONS)
        weights = self.hidden_size * (num_hidden * size.num_features + num_outputs)
        noisy = weights if self.sigma0 is None else 2 * weights
        return COPIES_OF_PARAMETERS * FLOAT_BYTES * (size.num_parameters + noisy)

    def with_durations(self, durations: DurationLaw) -> Self:
        """The same agent with another law for the repeats of exploratory actions."""
        return replace(self, durations=durations)

    def hurried(self) -> Self:
        """The same agent with a small replay, so that learning starts soon."""
        return replace(
            self,
            least_replay=min(self.least_replay, 10 * self.learner.batch_size),
            replay_capacity=min(self.replay_capacity, _HURRIED_TRANSITIONS),
        )


def _matched(shares: float | Linear, durations: DurationLaw) -> float | Schedule:
    """The ε that gives this share of exploratory steps, at every step."""
    if isinstance(shares, Linear):
        return lambda step: matched_epsilon(shares(step), durations)
    return matched_epsilon(shares, durations)
