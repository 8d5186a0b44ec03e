"""Answers to the open questions with which the paper closes: an experiment for each."""
