"""The command line: `ezgreedy COMMAND`."""


def main() -> int:
    """Runs one command; returns the exit code."""
    return 0
