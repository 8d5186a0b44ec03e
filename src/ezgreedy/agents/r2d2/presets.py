"""The paper's R2D2 agents: one baseline, and differences from it."""

from dataclasses import replace

from ezgreedy.agents.r2d2.settings import R2D2Settings
from ezgreedy.exploration.durations import Zeta
from ezgreedy.intrinsic.settings import WORKING, DistillationSettings

R2D2 = R2D2Settings("r2d2")

# The defaults of DistillationSettings are the paper's words, so that older runs are read as they
# were; those were named r2d2-rnd too, but their directories say how they pay.
R2D2_RND = replace(R2D2, name="r2d2-rnd", distillation=WORKING)

R2D2_RND_LITERAL = replace(R2D2, name="r2d2-rnd-literal", distillation=DistillationSettings())

R2D2_BOOTSTRAP = replace(R2D2, name="r2d2-bootstrap", num_heads=8)  # table of the paper

R2D2_EZ = replace(R2D2, name="r2d2-ez", durations=Zeta(mu=2.0, cap=10_000))

# Our own control, not the paper's, which does not say how the network sees the previous reward.
R2D2_TANH = replace(R2D2, name="r2d2-tanh", reward_input="tanh")

_ALL = (R2D2, R2D2_RND, R2D2_RND_LITERAL, R2D2_BOOTSTRAP, R2D2_EZ, R2D2_TANH)
R2D2_PRESETS = {preset.name: preset for preset in _ALL}
