"""Libraries that only the adapters need."""

import importlib
import os
import warnings

import pytest

REQUIRED = "EZGREEDY_REQUIRE_ADAPTERS"


def library(*names):
    """Imports a library; without it the tests of a file are skipped, or fail if it is required.

    What a library warns about while it is imported is not ours to mend.

    Args:
        *names: the library and those of its modules that warn.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            if os.environ.get(REQUIRED):
                importlib.import_module(name)
            else:
                reason = f"needs {name}: run `make test-adapters`"
                pytest.importorskip(name, reason=reason, exc_type=ImportError)
