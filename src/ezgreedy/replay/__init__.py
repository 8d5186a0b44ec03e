"""What is remembered: each frame once, n-step transitions, and which of them to learn from."""
