"""One module for each figure or table of the paper, and the code that runs them.

A new experiment is a module here that defines `EXPERIMENT`, an `Experiment` of settings and four
top-level functions, and a line in `registry`:

    cells(settings)                       the conditions, each a name and its changes
    run_seed(settings, seed)              one condition, one seed: a result that JSON can hold
    summarise(settings, records)          claims with verdicts, and the data behind the figures
    draw(settings, summary, directory)    figures, from that data only

Read `fig1_gridworld_coverage` first.
"""
