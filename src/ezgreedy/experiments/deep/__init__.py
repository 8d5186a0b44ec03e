"""Studies with deep agents, on Atari and in classic control: one module per study."""
