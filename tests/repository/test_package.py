"""What is published: a wheel and an sdist that work without the checkout."""

import importlib.util
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = {".html", ".css", ".js", ".csv", ".typed"}

pytestmark = pytest.mark.slow  # builds packages, and installs them into a new environment


def run(*command, **settings):
    ran = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        **settings,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if importlib.util.find_spec("build") is None:
        pytest.skip("build is not installed (pip install '.[dev]')")
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "-o", out, ROOT)
    return out


def wheel(built):
    (file,) = built.glob("*.whl")
    return file


def test_the_wheel_holds_every_module_template_and_table(built):
    names = set(zipfile.ZipFile(wheel(built)).namelist())
    package = ROOT / "src" / "ezgreedy"
    wanted = [path for path in package.rglob("*") if path.suffix in DATA | {".py"}]
    assert {path.relative_to(package.parent).as_posix() for path in wanted} <= names
    assert "ezgreedy/py.typed" in names


def test_the_sdist_holds_tests_examples_and_documentation(built):
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("README.md", "docs/conf.py", "tests/conftest.py", "examples/own_game.py"):
        assert name in names


def test_the_wheel_works_in_a_new_environment_with_numpy_alone(built, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    outside = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run(python, "-m", "pip", "install", "--quiet", wheel(built), env=outside)
    command = tmp_path / "env" / "bin" / "ezgreedy"
    assert run(command, "--version", env=outside, cwd=tmp_path).startswith("ezgreedy ")
    shown = run(command, "demo", "--steps", "50", "--walks", "3", env=outside, cwd=tmp_path)
    assert "no figure: matplotlib is not installed" in shown


def test_pages_are_made_from_the_wheel_s_own_templates(built, tmp_path):
    zipfile.ZipFile(wheel(built)).extractall(tmp_path / "installed")
    inside = os.environ | {"PYTHONPATH": str(tmp_path / "installed")}
    where = "import ezgreedy; print(ezgreedy.__file__)"
    assert str(tmp_path) in run(sys.executable, "-c", where, env=inside, cwd=tmp_path)
    for arguments in (["playground"], ["report", ROOT / "results", "--to", "report.html"]):
        run(sys.executable, "-m", "ezgreedy", *arguments, env=inside, cwd=tmp_path)
    assert (tmp_path / "playground.html").stat().st_size > 50_000
    assert (tmp_path / "report.html").stat().st_size > 1_000_000
