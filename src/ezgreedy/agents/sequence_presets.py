"""The paper's R2D2 agents as data: one baseline, and three differences from it.

Counts are agent steps, windows of them and updates; at four frames a step and 40 steps from one
window to the next, a window is 160 frames.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import DurationLaw, Fixed, Zeta, matched_epsilon
from ezgreedy.exploration.schedules import ladder
from ezgreedy.intrinsic.rnd_settings import DistillationSettings
from ezgreedy.learning.sequence_settings import (
    R2D2_TORSO,
    RecurrentNetworkSettings,
    ReturnSettings,
    SequenceLearnerSettings,
)
from ezgreedy.learning.settings import Convolution, Sight
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.requirements import FloatArray


@dataclass(frozen=True)
class SequencePreset:
    """An agent of the paper that learns from sequences; the defaults are its R2D2.

    Args:
        name: as on a command line.
        learner: how it learns, and how long windows and their prefixes are.
        returns: what it learns.
        stride: steps from the start of one window to that of the next.
        torso: convolutions of the network, first to last; none for vectors.
        padding: of these, "valid" or "same".
        feature_size: units of the layer between torso and memory.
        memory_size: units of the LSTM.
        hidden_size: units of the hidden layer of each of the duelling streams.
        reward_input: how the network sees the previous reward: "raw" or through "tanh".
        forget_bias: what the forget gates' biases start as.
        has_memory: False for a control that sees nothing but the observation.
        num_heads: of a bootstrapped agent; None for one that is not.
        shares_memory: whether heads share all but the duelling streams.
        mask_probability: that a head learns from a step.
        ladder_base: ε of the first lane of the fleet.
        ladder_exponent: α; ε of the last lane is base^(1 + α).
        matches_budget: whether to lower every lane's ε so far that the share of exploratory steps
            is what it would be with durations of 1: the control for longer exploration that is
            more exploration too.
        durations: how long an exploratory action is repeated; `Fixed(1)` is ε-greedy.
        evaluation_epsilon: ε of evaluation, where nothing is repeated.
        distillation: the bonus for what is new; None for none.
        replay_capacity: how many observations are remembered.
        least_windows: how many windows are kept before the first is learned from.
        samples_per_insert: how many windows are drawn for each that is kept thereafter.
        priority_exponent: of priorities.
        importance_exponent: of the weights that make up for them.
    """

    name: str
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
    ladder_base: float = 0.4  # Horgan et al. (Ape-X), whom R2D2 follows
    ladder_exponent: float = 7.0  # likewise
    matches_budget: bool = False
    durations: DurationLaw = field(default_factory=lambda: Fixed(1))
    evaluation_epsilon: float = 0.001  # not in the paper for R2D2; its Rainbow agents have it
    distillation: DistillationSettings | None = None
    replay_capacity: int = 4_000_000  # table of the paper: 1e5 windows
    least_windows: int = 6_250  # not in the paper; Badia et al. 2020: 250k steps
    # Rates of Kapturowski et al.: 5 updates of 64 windows, 256 actors at 260 frames, each second.
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
        capacity = require.integer("replay_capacity", self.replay_capacity, self.sequences.stride)
        most = capacity // self.stride
        if require.integer("least_windows", self.least_windows, least=1) > most:
            rule = f"be at most replay_capacity // stride, which is {most}"
            raise require.refuse("least_windows", rule, self.least_windows)
        self.network(Sight((3, 210, 160) if self.torso else (1,)), num_actions=1)  # is checked

    @property
    def sequences(self) -> SequenceSettings:
        """How episodes are cut into windows."""
        return SequenceSettings(self.learner.length, self.learner.burn_in, self.stride)

    def network(self, sight: Sight, num_actions: int) -> RecurrentNetworkSettings:
        """The network of an agent that sees this and has so many actions."""
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

    def epsilons(self, fleet: int) -> FloatArray:
        """ε of every lane of a fleet, constant for the run, [fleet]."""
        epsilons = ladder(fleet, self.ladder_base, self.ladder_exponent)
        if not self.matches_budget:
            return epsilons
        return np.array([matched_epsilon(share, self.durations) for share in epsilons.tolist()])


R2D2 = SequencePreset("r2d2")

R2D2_RND = replace(R2D2, name="r2d2-rnd", distillation=DistillationSettings())

R2D2_BOOTSTRAP = replace(R2D2, name="r2d2-bootstrap", num_heads=8)  # table of the paper

R2D2_EZ = replace(R2D2, name="r2d2-ez", durations=Zeta(mu=2.0, cap=10_000))

SEQUENCE_PRESETS = {preset.name: preset for preset in (R2D2, R2D2_RND, R2D2_BOOTSTRAP, R2D2_EZ)}
