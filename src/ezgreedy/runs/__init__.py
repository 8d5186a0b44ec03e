"""One run: its settings, its directory, the loop that trains and evaluates, and its progress."""
