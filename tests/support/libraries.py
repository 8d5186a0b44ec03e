"""Libraries that only the adapters need."""

import importlib
import os
import warnings

import pytest

REQUIRED = "EZGREEDY_REQUIRE_ADAPTERS"


def library(name):
    """The imported library; without it the tests of a file are skipped, or fail if it is required.

    What a library warns about while it is imported is not ours to mend.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if os.environ.get(REQUIRED):
            return importlib.import_module(name)
        reason = f"needs {name}: run `make test-adapters`"
        return pytest.importorskip(name, reason=reason, exc_type=ImportError)
