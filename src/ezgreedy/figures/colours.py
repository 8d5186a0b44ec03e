"""The project's colours, for figures and pages; colour-blind readers can distinguish them.

Each policy keeps its own colour everywhere.
"""

from collections.abc import Mapping

EPS_COLOUR = "#d55e00"
EZ_COLOUR = "#0072b2"
OTHER_COLOURS = ("#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
SOON_TO_NEVER = "RdYlBu_r"  # Paper: blue is few steps, red is rarely or never seen
FEW_TO_MANY = "cividis"

TEXT_COLOUR = "#222222"
FAINT_COLOUR = "#d0d0d0"
NEVER_COLOUR = "#d9d9dc"  # for cells outside the colour scale
REFERENCE_COLOUR = "#777777"

POLICY_COLOURS = {"eps": EPS_COLOUR, "ez": EZ_COLOUR, "ez, equal budget": OTHER_COLOURS[0]}
# Noise for continuous actions: held noise has the colour of εz-greedy, white noise of ε-greedy.
NOISE_COLOURS = {
    "white": EPS_COLOUR,
    "pink": "#cc79a7",
    "ou": "#e69f00",
    "held": EZ_COLOUR,
    "held, at most 16": "#56b4e9",
    "uniform": "#009e73",
}
# The paper's deep agents: those that differ only in the policy have the policies' colours.
AGENT_COLOURS = {
    "rainbow": "#009e73",
    "rainbow-eps": EPS_COLOUR,
    "rainbow-ez": EZ_COLOUR,
    "rainbow-ez-budget": "#56b4e9",
    "rainbow-cts": "#cc79a7",
    "r2d2": "#e69f00",
    "r2d2-ez": "#56b4e9",
    "r2d2-rnd": "#8c564b",
    "r2d2-bootstrap": "#6a51a3",
}


def colours_of(agents: Mapping[str, str]) -> dict[str, str]:
    """The colour of each agent; a second group of the same agent takes an unused one.

    Args:
        agents: names of agents by label.
    """
    known = AGENT_COLOURS
    owned = {known.get(agent) for agent in agents.values()}
    spare = [colour for colour in (*OTHER_COLOURS, *known.values()) if colour not in owned]
    taken: dict[str, str] = {}
    for label, agent in agents.items():
        wanted = [known[agent], *spare] if agent in known else spare
        free = [colour for colour in wanted if colour not in taken.values()]
        taken[label] = free[0] if free else REFERENCE_COLOUR
    return taken
