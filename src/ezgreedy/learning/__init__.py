"""What is learned: the equations of distributional Q-learning and the networks. Needs torch."""
