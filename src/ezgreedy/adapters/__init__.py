"""εz-greedy in the agents of other libraries; each module needs its library and extra.

`ezgreedy.testing.check_adapter` checks all of them, and your own.
"""
