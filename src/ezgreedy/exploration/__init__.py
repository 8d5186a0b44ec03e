"""How an action departs from greedy: durations, options and policies. NumPy only."""
