"""One module for each figure or table of the paper, and what runs them.

A new experiment is a module here that defines `EXPERIMENT`, an `Experiment` of settings and four
top-level functions, and a line in `registry`:

    cells(settings)                       the conditions, each a name and what it changes
    run_seed(settings, seed)              one condition, one seed: a result that JSON can hold
    summarise(settings, records)          claims with verdicts, and the data behind the figures
    draw(settings, summary, directory)    figures from that data alone

`fig1_gridworld_coverage` is the one to read first.
"""
