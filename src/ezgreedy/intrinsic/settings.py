"""How do bonuses reward? Only the numbers and names, without torch and numba."""

from dataclasses import dataclass

from ezgreedy import requirements as require
from ezgreedy.learning.settings import ATARI_TORSO, INITIALISATIONS, Convolution

# Larger batches of RND are computed in parts: the paper's would take 9 GB at once, 1 GB like this.
FRAMES_AT_ONCE = 512

NORMALISATIONS = ("var", "std", "ngu")

# How a pseudo-count becomes a reward, see `pseudo_counts.bonus`.
PSEUDO_COUNT_FORMS = ("bellemare", "expm1")


@dataclass(frozen=True)
class DistillationSettings:
    """The bonus for observations a network cannot yet predict, by default as the paper words it.

    Read literally, the paper leads to a bonus that becomes the same for all observations; `WORKING`
    is what R2D2+RND uses. The defaults stay as they are, because a run from before a setting was
    added is read with its default (`runs.settings_codec`) and must continue as it began.

    Args:
        scale: β, the factor of bonuses before they are added to rewards.
        normalisation: how to normalise an error e, given the mean μ and variance σ² of errors so
            far: "var" is e/σ², as the paper words it, and grows as errors shrink; "std" is e/σ,
            which does not; "ngu" is (e − μ)/σ, or 0 if that is negative.
        largest_bonus: upper bound of normalised bonuses.
        torso: convolutions of both networks, first to last; none for vectors.
        hidden_sizes: units of hidden layers between torso and outputs, of both networks.
        num_outputs: number of random functions to predict.
        learning_rate: learning rate of the predictor's Adam.
        adam_epsilon: what Adam adds to its divisor. Where gradients are smaller than this, steps
            shrink with them; otherwise they keep their size, and errors rise again in bursts.
        largest_gradient_norm: gradients of a larger norm are scaled down.
        steps_per_window: number of steps, a window's last, that train the predictor; None for all.
        whitening_bound: both networks see observations minus their running mean, divided by their
            running standard deviation, element by element, and clipped to ± this; None to see
            observations as they are.
        whitening_observations: number of observations in the statistics of whitening before the
            predictor learns; without effect if `whitening_bound` is None.
        initialisation: initial parameters of both networks, "uniform" or "orthogonal".
        warm_up_updates: number of updates of the predictor before errors count and are rewarded.
        error_memory: number of updates n over which μ and σ forget: each update takes the share 1/n
            from the weight of all errors before it. None to never forget.
        in_first_priorities: whether actors add bonuses to rewards for a window's first priority, as
            the learner does for later ones.
    """

    scale: float = 0.3  # not in the paper; best of Badia et al. 2020 for this agent
    normalisation: str = "var"  # Paper: "dividing by its variance"
    largest_bonus: float = 5.0  # not in the paper; Badia et al. 2020
    torso: tuple[Convolution, ...] = ATARI_TORSO  # Paper: "DQN-size"
    hidden_sizes: tuple[int, ...] = ()  # Paper: convolutions and "one linear layer"
    num_outputs: int = 128  # table of the paper
    learning_rate: float = 5e-4  # appendix of the paper
    adam_epsilon: float = 1e-8  # torch's own; the paper gives none for the predictor
    largest_gradient_norm: float = 40.0  # not in the paper; Badia et al. 2020
    steps_per_window: int | None = None
    whitening_bound: float | None = None
    whitening_observations: int = 10_000
    initialisation: str = "uniform"
    warm_up_updates: int = 0
    error_memory: int | None = None
    in_first_priorities: bool = False

    def __post_init__(self) -> None:
        require.number("scale", self.scale, 0.0)
        require.one_of("normalisation", self.normalisation, NORMALISATIONS)
        for name in ("largest_bonus", "learning_rate", "adam_epsilon", "largest_gradient_norm"):
            value = getattr(self, name)
            if not require.number(name, value, 0.0) > 0.0:
                raise require.refuse(name, "be positive", value)
        require.integer("num_outputs", self.num_outputs, least=1)
        for size in self.hidden_sizes:
            require.integer("hidden_sizes", size, least=1)
        if self.steps_per_window is not None:
            require.integer("steps_per_window", self.steps_per_window, least=1)
        bound = self.whitening_bound
        if bound is not None and not require.number("whitening_bound", bound, 0.0) > 0.0:
            raise require.refuse("whitening_bound", "be positive", bound)
        # Of one observation there is no deviation yet.
        require.integer("whitening_observations", self.whitening_observations, least=2)
        require.one_of("initialisation", self.initialisation, INITIALISATIONS)
        require.integer("warm_up_updates", self.warm_up_updates, least=0)
        if self.error_memory is not None:
            require.integer("error_memory", self.error_memory, least=2)
        require.flag("in_first_priorities", self.in_first_priorities)


# R2D2+RND as it works over a whole run; docs/decisions.md has the reasons and measurements.
WORKING = DistillationSettings(
    normalisation="ngu",
    adam_epsilon=1e-3,  # table of the paper for R2D2's own Adam
    whitening_bound=5.0,  # Burda et al. 2018
    initialisation="orthogonal",  # Burda et al. 2018
    warm_up_updates=100,
    error_memory=100_000,
    in_first_priorities=True,
)
