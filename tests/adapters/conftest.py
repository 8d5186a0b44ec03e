"""These tests need the libraries of the adapters: see `make test-adapters`."""

import os

# The networks here are tiny: more threads would only wait for each other.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# Ray reads these when it is imported: it shall listen on the loopback interface only.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
