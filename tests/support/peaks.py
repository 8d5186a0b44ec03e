"""The peak of memory of a command, as Linux counts it."""

import subprocess
import sys

# Read by the process itself: the peak that its parent is told by `wait4` begins with the
# parent's own size, which under pytest may be larger than the run.
TRAIN = """
import re, sys
from ezgreedy.cli import main
code = main(sys.argv[1:])
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read()).group(1))
sys.exit(code)
"""


def peak(arguments):
    """Peak resident memory of a run of the command line, in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return int(done.stdout.split()[-1]) * 1024
