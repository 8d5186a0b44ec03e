"""What else is in the paper? Figures, tables, definitions and sentences that no experiment judges.

Together with the statements of the experiments this covers the whole paper: `tests/findings` checks
that every figure, table, property, definition and algorithm has a row in one of them. An item is
held by a test or a module of ours, or was not run, for a stated reason and with the command that
would run it. An item goes from this list once an experiment judges it.
"""

from typing import NamedTuple

_RAINBOW = "needs 228 billion frames (57 games × 4 agents × 5 seeds of 200 million)"
_R2D2 = "needs 20,520 billion frames (57 games × 4 agents × 3 seeds of 30 billion)"
_BOTH = "needs 228 billion frames for Rainbow and 20,520 billion for R2D2"
_SWEEP_RAINBOW = "ezgreedy sweep atari57-rainbow --out DIR"
_SWEEP_R2D2 = "ezgreedy sweep atari57-r2d2 --out DIR"


class PaperItem(NamedTuple):
    """A figure, table, definition or sentence of the paper.

    Args:
        place: section, figure or table.
        says: what it shows or states.
        held_by: the test or module that holds it, if it is not a result to reproduce.
        not_run: why it was not run; empty if it is held.
        command: the command that would run it; empty if there is none.
    """

    place: str
    says: str
    held_by: str = ""
    not_run: str = ""
    command: str = ""


ITEMS = (
    PaperItem(
        "Section 4.1, Property 1",
        "An option set has full coverage if every state-action pair is visited with non-zero "
        "probability; primitive actions, or Markov options that can take every action, suffice; "
        "options that all last a multiple of k steps do not.",
        held_by="tests/exploration/test_full_coverage.py",
    ),
    PaperItem(
        "Section 4.1, Definition 1",
        "The cover time: steps after which every state-action pair was visited with probability "
        "1/2. The paper gives no numbers; ours are in `cover-times`.",
        held_by="tests/analysis/test_cover_time.py",
    ),
    PaperItem(
        "Section 4.2",
        "When z puts all mass on n = 1, εz-greedy is ε-greedy.",
        held_by="tests/exploration/test_ez_greedy.py",
    ),
    PaperItem(
        "Section 5.2 and Figure 4a",
        "Rainbow on Atari-57: εz-greedy improves the median and the human-gap; pseudo-counts (CTS) "
        "lose on the whole suite.",
        not_run=_RAINBOW,
        command=_SWEEP_RAINBOW,
    ),
    PaperItem(
        "Section 5.2 and Figure 4b",
        "R2D2 on Atari-57: εz-greedy improves the median and the human-gap; RND and Bootstrap do "
        "so less or not at all.",
        not_run=_R2D2,
        command=_SWEEP_R2D2,
    ),
    PaperItem(
        "Section 5.2 and Figure 5",
        "On selected games intrinsic motivation is often ahead where exploration is hard and "
        "behind elsewhere; εz-greedy improves exploration without that loss.",
        not_run=_R2D2,
        command=_SWEEP_R2D2,
    ),
    PaperItem(
        "Table 1",
        "Atari-57: final scores of eight agents.",
        "",
        _BOTH,
        f"{_SWEEP_RAINBOW}; {_SWEEP_R2D2}",
    ),
    PaperItem(
        "Section 6",
        "Both policies are guaranteed to converge, eventually, in the finite case: they cover all "
        "state-action pairs.",
        held_by="tests/exploration/test_full_coverage.py",
    ),
    PaperItem(
        "Appendix A, DeepSea",
        "The largest return is 0.99, and exactly one sequence of actions earns it.",
        held_by="tests/envs/test_deep_sea.py",
    ),
    PaperItem(
        "Appendix B, Algorithm 1",
        "Pseudo-code of εz-greedy. As printed it plays n + 1 times, which contradicts the text; "
        "the text is the default.",
        held_by="tests/exploration/test_ez_greedy.py",
    ),
    PaperItem(
        "Table 2",
        "Hyper-parameters of the Rainbow agents.",
        held_by="tests/agents/rainbow/test_presets.py",
    ),
    PaperItem(
        "Table 3",
        "Hyper-parameters of the R2D2 agents.",
        held_by="tests/agents/r2d2/test_sequence_presets.py",
    ),
    PaperItem(
        "Appendix C, Table 4",
        "Trials, steps and bins of the first-visit maps.",
        held_by="src/ezgreedy/experiments/paper/fig1_gridworld_coverage.py",
    ),
    PaperItem(
        "Table 5",
        "Atari-57: final and best scores.",
        "",
        _BOTH,
        f"{_SWEEP_RAINBOW}; {_SWEEP_R2D2}",
    ),
    PaperItem(
        "Appendix A, Figure 6",
        "The five environments.",
        held_by="results/appendix-domains",
    ),
    PaperItem(
        "Appendix D, Figure 8",
        "Atari-57: summary curves.",
        not_run=_BOTH,
        command=f"{_SWEEP_RAINBOW}; {_SWEEP_R2D2}",
    ),
    PaperItem(
        "Appendix D, Figure 9",
        "Atari-57 by game: Rainbow.",
        not_run=_RAINBOW,
        command=_SWEEP_RAINBOW,
    ),
    PaperItem(
        "Appendix D, Figure 10", "Atari-57 by game: R2D2.", not_run=_R2D2, command=_SWEEP_R2D2
    ),
)
