"""Answers to the paper's own open questions: one module per study."""
