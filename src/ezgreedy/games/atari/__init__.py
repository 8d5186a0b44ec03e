"""Atari on the Arcade Learning Environment, and published scores for comparison."""
