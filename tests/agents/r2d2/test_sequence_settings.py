"""What presets and command lines read must not cost them torch."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "ezgreedy.agents.r2d2.learner_settings",
        "ezgreedy.agents.r2d2.bootstrap",
        "ezgreedy.intrinsic.settings",
        "ezgreedy.intrinsic.moments",
        "ezgreedy.replay.sequence_batch",
    ],
)
def test_settings_and_batches_do_without_torch(module):
    code = f"import sys, {module}\nassert 'torch' not in sys.modules"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
