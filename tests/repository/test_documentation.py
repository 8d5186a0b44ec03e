"""The documentation site builds without a warning, and its notebook runs from top to bottom."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = r'<(?:script|img|link|iframe)[^>]*(?:src|href)="([^"]+)"'
NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"


def cells(kind):
    return [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == kind]


def printed(cell):
    return "".join(
        "".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream"
    )


def test_the_notebook_runs_and_prints_what_is_stored_in_it(tmp_path):
    code = "\n".join("".join(cell["source"]) for cell in cells("code"))
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "".join(printed(cell) for cell in cells("code"))


def test_the_notebook_holds_a_picture_and_nothing_of_the_machine():
    kinds = [
        kind
        for cell in cells("code")
        for output in cell["outputs"]
        for kind in output.get("data", {})
    ]
    assert "image/png" in kinds
    assert not re.search(r"/(home|work|root|tmp)/", NOTEBOOK.read_text())


def test_the_readme_is_short_and_begins_with_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 1200
    first_screen = "\n".join(text.splitlines()[:20])
    assert "make reproduce" in first_screen
    assert "make test" in first_screen
    assert ".gif)" in first_screen


def test_every_page_is_listed_in_the_contents():
    listed = (ROOT / "docs" / "index.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        if name != "index" and not name.startswith("adapters/"):
            assert f"\n{name}\n" in listed, f"{name} is in no toctree of docs/index.md"


@pytest.mark.slow  # half a minute
def test_the_site_builds_without_a_warning_and_asks_for_nothing(tmp_path):
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("Sphinx is not installed (pip install '.[docs]')")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    built = subprocess.run(
        [*command, ROOT / "docs", tmp_path],
        capture_output=True,
        text=True,
        timeout=1000,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert not built.stderr
    for page in tmp_path.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link|iframe)[^>]*(?:src|href)="([^"]+)"', page.read_text()
        )
        assert not [address for address in loaded if address.startswith(("http", "//"))], page
    assert "Repeat what you explore" in (tmp_path / "playground" / "index.html").read_text()
    assert "first_visits" in (tmp_path / "api.html").read_text()
