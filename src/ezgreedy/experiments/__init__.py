"""The figures and tables of the paper, other studies, and the code that runs them.

`paper` holds the paper's small-scale studies, `deep` those with deep agents, and `beyond` those of
its open questions. A new experiment is a module in one of them that defines `EXPERIMENT`, an
`Experiment` of settings and four top-level functions, and a line in `registry`:

    cells(settings)                       the conditions, each a name and its changes
    run_seed(settings, seed)              one condition, one seed: a result that JSON can hold
    summarise(settings, records)          claims with verdicts, and the data behind the figures
    draw(settings, summary, directory)    figures, from that data only

Read `paper.fig1_gridworld_coverage` first.
"""
