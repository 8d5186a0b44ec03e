"""What is remembered: frames once each, n-step transitions, and which of them to learn from."""
