"""R2D2: its settings, network, learner and roles. Settings and presets do not need torch."""
