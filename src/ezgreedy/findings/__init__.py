"""What do results mean? Claims, scores, intervals and the paper's tables."""
