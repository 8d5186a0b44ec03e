"""What came out: stored results and their intervals."""
