"""The paper's Rainbow agents: one baseline, and differences from it."""

from dataclasses import replace

from ezgreedy.agents.rainbow.settings import RainbowSettings
from ezgreedy.exploration.durations import Zeta
from ezgreedy.exploration.schedules import Linear

RAINBOW = RainbowSettings("rainbow")

RAINBOW_EPS = replace(
    RAINBOW,
    name="rainbow-eps",
    # Paper: over 4M frames. As in DQN Zoo, they begin once there is something to learn from.
    epsilon=Linear(1.0, 0.01, 1_000_000, first_step=RAINBOW.least_replay),
    evaluation_epsilon=0.001,
)

RAINBOW_EZ = replace(RAINBOW_EPS, name="rainbow-ez", durations=Zeta(mu=2.0, cap=100))

# Our own control, not the paper's: as many exploratory steps as rainbow-eps has.
RAINBOW_EZ_BUDGET = replace(RAINBOW_EZ, name="rainbow-ez-budget", matches_budget=True)

# Our own controls: with the noise that Hessel et al. print, see `RainbowSettings.sigma0`.
RAINBOW_SIGMA05 = replace(RAINBOW, name="rainbow-sigma05", sigma0=0.5)
RAINBOW_EZ_SIGMA05 = replace(RAINBOW_EZ, name="rainbow-ez-sigma05", sigma0=0.5)

RAINBOW_CTS = replace(
    RAINBOW_EPS,
    name="rainbow-cts",
    learner=replace(RAINBOW.learner, num_steps=5, updates_per_target_sync=1),
    sigma0=None,
    bonus_scale=0.0005,
)

RAINBOW_PRESETS = {
    preset.name: preset
    for preset in (
        RAINBOW,
        RAINBOW_EPS,
        RAINBOW_EZ,
        RAINBOW_EZ_BUDGET,
        RAINBOW_CTS,
        RAINBOW_SIGMA05,
        RAINBOW_EZ_SIGMA05,
    )
}
