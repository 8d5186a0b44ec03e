"""Code on pages of the documentation, as it is run."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python_blocks(page):
    """The Python code of a page, block by block."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


def run_page(page, directory, timeout=600):
    """Runs all Python code of a page as one script; returns what it printed."""
    blocks = python_blocks(page)
    assert blocks, f"{page} has no code"
    script = Path(directory) / "page.py"
    script.write_text("\n".join(blocks))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
