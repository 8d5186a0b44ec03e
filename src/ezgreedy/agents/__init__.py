"""Who learns: tabular and linear agents, Rainbow and R2D2, and the registry of deep agents."""
