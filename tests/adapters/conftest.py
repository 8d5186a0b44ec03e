"""These tests need the libraries of the adapters: see `make test-adapters`."""

import os

# The networks here are tiny: more threads would only wait for each other.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
