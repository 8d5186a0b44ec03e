"""The paper's Rainbow agents as data: one baseline, and three differences from it.

Counts are agent steps and updates; at four frames a step and four steps an update, 1M steps are 4M
frames and one update is 16.
"""

from dataclasses import dataclass, field, replace

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import DurationLaw, Fixed, Zeta, matched_epsilon
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.exploration.schedules import Linear, Schedule
from ezgreedy.intrinsic.pseudo_counts import FORMS as BONUS_FORMS
from ezgreedy.learning.settings import ATARI_TORSO, Convolution, LearnerSettings
from ezgreedy.replay.prioritized import ImportanceExponent


@dataclass(frozen=True)
class Preset:
    """An agent of the paper; the defaults are its Rainbow.

    Args:
        name: as on a command line.
        learner: how it learns.
        torso: convolutions of the networks, first to last.
        hidden_size: units of the hidden layer of each of a network's two streams.
        shares_hidden: whether both streams have the same hidden layer.
        num_atoms: how many atoms a value's distribution has.
        least_value: the first atom.
        most_value: the last atom.
        sigma0: initial scale of the networks' noise; None for networks without any.
        epsilon: ε in training, constant or by the steps of a lane.
        evaluation_epsilon: ε in evaluation.
        is_noisy_in_evaluation: whether the networks' noise stays on there.
        durations: how long an exploratory action is repeated; `Fixed(1)` is ε-greedy.
        matches_budget: whether to lower ε so far that the share of exploratory steps is what ε
            would be without repeats; if not, ε is how often repeats start, as in the paper.
        bonus_scale: β of the intrinsic reward for rare frames; 0 for none.
        bonus_form: how a pseudo-count becomes a reward, see `intrinsic.pseudo_counts`.
        replay_capacity: how many transitions are remembered.
        least_replay: how many transitions there are before the first update.
        steps_per_update: agent steps from one update to the next.
        priority_exponent: α.
        importance_exponent: β of the importance weights, by transitions added.
    """

    name: str
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
        require.one_of("bonus_form", self.bonus_form, BONUS_FORMS)
        if not isinstance(self.durations, DurationLaw):
            raise require.refuse_type("durations", "be a duration law", self.durations)
        if self.least_replay > self.replay_capacity:
            rule = f"be at most replay_capacity, which is {self.replay_capacity}"
            raise require.refuse("least_replay", rule, self.least_replay)


RAINBOW = Preset("rainbow")

RAINBOW_EPS = replace(
    RAINBOW,
    name="rainbow-eps",
    # Paper: over 4M frames. As in DQN Zoo, they begin once there is something to learn from.
    epsilon=Linear(1.0, 0.01, 1_000_000, first_step=RAINBOW.least_replay),
    evaluation_epsilon=0.001,
)

RAINBOW_EZ = replace(RAINBOW_EPS, name="rainbow-ez", durations=Zeta(mu=2.0, cap=100))

# A control of ours, not of the paper: as many exploratory steps as rainbow-eps has.
RAINBOW_EZ_BUDGET = replace(RAINBOW_EZ, name="rainbow-ez-budget", matches_budget=True)

RAINBOW_CTS = replace(
    RAINBOW_EPS,
    name="rainbow-cts",
    learner=replace(RAINBOW.learner, num_steps=5, updates_per_target_sync=1),
    sigma0=None,
    bonus_scale=0.0005,
)

PRESETS = {
    preset.name: preset
    for preset in (RAINBOW, RAINBOW_EPS, RAINBOW_EZ, RAINBOW_EZ_BUDGET, RAINBOW_CTS)
}


def explorer(
    preset: Preset, num_actions: int, lanes: int = 1, seed: int = 0, *, evaluates: bool = False
) -> EZGreedy:
    """The policy through which an agent acts.

    Args:
        preset: which agent.
        num_actions: how many actions the environment has.
        lanes: how many environments are stepped together. A schedule of ε counts their steps
            together, as frames do.
        seed: any non-negative int.
        evaluates: whether to act with the ε of evaluation; durations are the same.
    """
    epsilon = preset.evaluation_epsilon if evaluates else preset.epsilon
    if isinstance(epsilon, Linear):
        epsilon = replace(
            epsilon,
            steps=max(epsilon.steps // lanes, 1),
            first_step=epsilon.first_step // lanes,
        )
    acted = _matched(epsilon, preset.durations) if preset.matches_budget else epsilon
    return EZGreedy(num_actions, acted, preset.durations, lanes, seed)


def _matched(shares: float | Linear, durations: DurationLaw) -> float | Schedule:
    """The ε whose share of exploratory steps is a given one, at every step."""
    if isinstance(shares, Linear):
        return lambda step: matched_epsilon(shares(step), durations)
    return matched_epsilon(shares, durations)
