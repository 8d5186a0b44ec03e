"""`python -m ezgreedy` is the command `ezgreedy`."""

import sys

from ezgreedy.cli import main

if __name__ == "__main__":
    sys.exit(main())
