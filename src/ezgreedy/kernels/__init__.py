"""Whole training runs as compiled loops, for thousands of seeds.

A kernel is an environment's step, `exploration.compiled.explore` and an agent's update in one loop;
none of the three is rewritten here. Every kernel equals, bit for bit, the plain loop over the
Gymnasium environment, the agent object and the core's policy.
"""
