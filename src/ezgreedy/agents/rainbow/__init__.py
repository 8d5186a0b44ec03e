"""Rainbow: its settings, networks, learner and agent. Needs torch, except for the presets."""
