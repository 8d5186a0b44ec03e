"""An R2D2 agent as data; the defaults are the paper's.

Counts are in agent steps, windows of steps, and updates. With four frames to a step and 40 steps
from one window to the next, a window stands for 160 frames.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, prod
from typing import Any, Self

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.agents.agent import Agent, AgentSettings, GameSpec, kept_bytes
from ezgreedy.agents.r2d2.learner_settings import (
    R2D2_TORSO,
    RecurrentNetworkSettings,
    ReturnSettings,
    SequenceLearnerSettings,
)
from ezgreedy.agents.r2d2.sizes import lane_bytes, update_bytes
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.exploration.durations import DurationLaw, Fixed, matched_epsilon
from ezgreedy.exploration.schedules import ladder
from ezgreedy.exploration.stops import StopSettings, check_stops
from ezgreedy.games.protocol import Protocol
from ezgreedy.intrinsic.settings import DistillationSettings
from ezgreedy.learning.settings import Convolution, Sight
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.replay.sequence_sizes import BYTES_PER_OBSERVATION, sequence_sizes
from ezgreedy.requirements import FloatArray

_HURRIED_OBSERVATIONS = 100_000  # enough to measure speed
# A replay that holds this share of its capacity is not reported: shards hold whole windows.
_ENOUGH_OF_CAPACITY = 0.95


@dataclass(frozen=True)
class R2D2Settings(AgentSettings):
    """An agent of the paper that learns from sequences; the defaults are its R2D2.

    Args:
        name: name on the command line.
        learner: settings of the learner, with the lengths of windows and their prefixes.
        returns: settings of the targets.
        stride: steps from the start of one window to that of the next.
        torso: convolutions of the network, first to last; none for vectors.
        padding: padding of the convolutions, "valid" or "same".
        feature_size: units of the layer between torso and memory.
        memory_size: units of the LSTM.
        hidden_size: units of the hidden layer of each of the duelling streams.
        reward_input: form of the previous reward as an input: "raw" or "tanh".
        forget_bias: initial bias of the forget gates.
        has_memory: False for a control that sees only the observation.
        num_heads: number of bootstrap heads; None for an agent without.
        shares_memory: whether heads share all but the duelling streams.
        mask_probability: probability that a head learns from a step.
        ladder_base: ε of the first lane of the fleet.
        ladder_exponent: α; ε of the last lane is base^(1 + α).
        matches_budget: whether to lower every lane's ε so that the share of exploratory steps is
            the same as with durations of 1: a control, since longer exploration is also more
            exploration.
        durations: duration law of exploratory actions; `Fixed(1)` is ε-greedy.
        stops: rules that end exploratory repeats early in training, see `exploration.stops`.
        evaluation_epsilon: ε of evaluation, where actions are not repeated.
        distillation: settings of the novelty bonus; None for no bonus.
        replay_capacity: number of observations that the replay holds.
        replay_bytes_per_observation: bytes set aside for each of them, compressed. If they take
            more, the replay holds fewer, and says so.
        least_windows: number of windows in the replay before learning starts.
        samples_per_insert: number of windows sampled for each window inserted after that.
        priority_exponent: exponent of the priorities.
        importance_exponent: exponent of the importance weights.
    """

    engines = ("embedded", "ray")
    policy_module = "ezgreedy.agents.r2d2.policy"

    learner: SequenceLearnerSettings = field(default_factory=SequenceLearnerSettings)
    returns: ReturnSettings = field(default_factory=ReturnSettings)
    stride: int = 40  # Kapturowski et al.
    torso: tuple[Convolution, ...] = R2D2_TORSO
    padding: str = "valid"  # not in the paper; as DQN Zoo, by authors of both
    feature_size: int = 512  # table of the paper
    memory_size: int = 512  # table of the paper
    hidden_size: int = 512  # table of the paper
    reward_input: str = "raw"  # not in the paper, which clips no rewards
    forget_bias: float = 1.0  # not in the paper; the usual default, but not torch's
    has_memory: bool = True
    num_heads: int | None = None
    shares_memory: bool = False
    mask_probability: float = 0.5  # table of the paper
    ladder_base: float = 0.4  # Horgan et al. (Ape-X), as in R2D2
    ladder_exponent: float = 7.0  # as ladder_base
    matches_budget: bool = False
    durations: DurationLaw = field(default_factory=lambda: Fixed(1))
    stops: tuple[StopSettings, ...] = ()
    evaluation_epsilon: float = 0.001  # not in the paper for R2D2; that of its Rainbow agents
    distillation: DistillationSettings | None = None
    replay_capacity: int = 4_000_000  # table of the paper: 1e5 windows
    replay_bytes_per_observation: int = BYTES_PER_OBSERVATION
    least_windows: int = 6_250  # not in the paper; Badia et al. 2020: 250k steps
    # Rates of Kapturowski et al.: 5 updates of 64 windows, 256 actors at 260 frames, per second.
    samples_per_insert: float = 0.77
    priority_exponent: float = 0.9  # table of the paper
    importance_exponent: float = 0.6  # table of the paper

    def __post_init__(self) -> None:
        require.number("ladder_base", self.ladder_base, 0.0, 1.0)
        require.number("ladder_exponent", self.ladder_exponent, 0.0)
        for name in ("mask_probability", "evaluation_epsilon", "importance_exponent"):
            require.number(name, getattr(self, name), 0.0, 1.0)
        require.number("priority_exponent", self.priority_exponent, 0.0)
        if not require.number("samples_per_insert", self.samples_per_insert, 0.0) > 0.0:
            raise require.refuse("samples_per_insert", "be positive", self.samples_per_insert)
        require.flag("matches_budget", self.matches_budget)
        if not isinstance(self.durations, DurationLaw):
            raise require.refuse_type("durations", "be a duration law", self.durations)
        check_stops("stops", self.stops)
        capacity = require.integer("replay_capacity", self.replay_capacity, self.sequences.stride)
        most = capacity // self.stride
        if require.integer("least_windows", self.least_windows, least=1) > most:
            rule = f"be at most replay_capacity // stride, which is {most}"
            raise require.refuse("least_windows", rule, self.least_windows)
        each = self.replay_bytes_per_observation
        require.integer("replay_bytes_per_observation", each, least=1)
        _ = self._state_shape  # checks the network

    @property
    def sequences(self) -> SequenceSettings:
        """How episodes are cut into windows."""
        return SequenceSettings(self.learner.length, self.learner.burn_in, self.stride)

    def network(self, sight: Sight, num_actions: int) -> RecurrentNetworkSettings:
        """Settings of a network with this input and number of actions."""
        return RecurrentNetworkSettings(
            num_actions=num_actions,
            input_shape=sight.input_shape,
            torso=self.torso,
            padding=self.padding,
            feature_size=self.feature_size,
            memory_size=self.memory_size,
            hidden_size=self.hidden_size,
            largest_pixel=sight.largest_pixel,
            reward_input=self.reward_input,
            forget_bias=self.forget_bias,
            num_heads=self.num_heads,
            shares_memory=self.shares_memory,
            has_codes=sight.has_codes,
            has_memory=self.has_memory,
        )

    @property
    def _state_shape(self) -> tuple[int, ...]:
        """Shape of each half of a recurrent state."""
        sight = Sight((3, 210, 160) if self.torso else (1,))
        return self.network(sight, num_actions=1).state_shape

    def epsilons(self, fleet: int) -> FloatArray:
        """ε of every lane of a fleet, constant for the run, [fleet]."""
        epsilons = ladder(fleet, self.ladder_base, self.ladder_exponent)
        if not self.matches_budget:
            return epsilons
        return np.array([matched_epsilon(share, self.durations) for share in epsilons.tolist()])

    def scale_table(self) -> Mapping[str, Callable[[Any, str], RunSettings]]:
        """See `r2d2.scales`."""
        from ezgreedy.agents.r2d2.scales import SCALES

        return SCALES

    def build(self, spec: GameSpec, *, lanes: int, seed: int, device: str = "cpu") -> Agent:
        """The agent itself, all its roles in one process; needs torch."""
        from ezgreedy.agents.r2d2.agent import R2D2

        return R2D2(self, spec, lanes=lanes, seed=seed, device=device)

    def replay_bytes(self, frame_shape: tuple[int, ...], num_steps: int | None = None) -> int:
        """Memory used by the replay: compressed observations and the other data of windows."""
        itemsize = 1 if len(frame_shape) > 1 else 4  # vectors are of float32
        sizes = sequence_sizes(
            self.replay_capacity,
            self.sequences,
            prod(frame_shape) * itemsize,
            prod(self._state_shape),
            self.replay_bytes_per_observation,
        )
        return kept_bytes(sizes.num_bytes, self.replay_capacity, num_steps)

    def working_bytes(self, frame_shape: tuple[int, ...], protocol: Protocol, lanes: int) -> int:
        """Networks with their optimisers, a batch and what an update keeps of it, open blocks."""
        sight = Sight(frame_shape, has_codes=protocol.colour == "palette")
        return update_bytes(self, sight) + lanes * lane_bytes(self, sight)

    def warning(self, measured: Mapping[str, float]) -> str | None:
        """Say so if the replay's bytes hold fewer observations than its capacity."""
        fitting = measured.get("effective_replay_capacity")
        if fitting is None or measured["windows_held"] < self.least_windows:
            return None
        if fitting >= _ENOUGH_OF_CAPACITY * self.replay_capacity:
            return None
        each, capacity = self.replay_bytes_per_observation, self.replay_capacity
        needed = ceil(each * capacity / max(fitting, 1.0))
        return (
            f"the replay has room for about {fitting:,.0f} of {capacity:,} observations; with "
            f"agent.replay_bytes_per_observation={needed} instead of {each} it would hold them all"
        )

    def with_durations(self, durations: DurationLaw) -> Self:
        """The same agent with another duration law for exploratory actions."""
        return replace(self, durations=durations)

    def hurried(self) -> Self:
        """The same agent with a small replay and early updates."""
        capacity = min(self.replay_capacity, _HURRIED_OBSERVATIONS)
        return replace(self, least_windows=1, replay_capacity=capacity)

    @property
    def hurried_lanes(self) -> int:
        """Few: every lane must play the length of a window before it has one."""
        return 16

    def require_protocol(self, protocol: Protocol) -> None:
        """Refuse lives as episodes: a window can end only with the game."""
        if protocol.zeroes_discount_on_life_loss:
            rule = f"be False for {self.name}, to which lives mean nothing"
            raise require.refuse("zeroes_discount_on_life_loss", rule, True)
