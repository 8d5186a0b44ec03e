"""The colours of the house, for figures and pages alike; colour-blind readers can tell them apart.

Each policy keeps its own colour everywhere.
"""

EPS_COLOUR = "#d55e00"
EZ_COLOUR = "#0072b2"
OTHER_COLOURS = ("#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
SOON_TO_NEVER = "RdYlBu_r"  # Paper: blue is few steps, red is rarely or never seen

TEXT_COLOUR = "#222222"
FAINT_COLOUR = "#d0d0d0"

POLICY_COLOURS = {"eps": EPS_COLOUR, "ez": EZ_COLOUR}
