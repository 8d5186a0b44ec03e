"""What is published: a wheel and an sdist that work without the checkout, and a lock file."""

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import numpy
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ezgreedy.commands.doctor import PARTS

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.lock"
DATA = {".html", ".css", ".js", ".csv", ".typed"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BRIEFLY = ["--scale", "laptop", "--frames", "200", "--set", "evaluation.frames=100"]
# What a user of an extra does first, besides `ezgreedy doctor`.
FIRST_STEPS = {
    "study": [
        ["playground"],
        ["coverage", "FrozenLake-v1", "--steps", "30", "--trials", "2", "--out", "lake"],
        ["report", "lake"],
        ["reproduce", "fig3-gridworld", "--quick", "--seeds", "2", "--jobs", "1", "--out", "some"],
        ["report", "some"],
    ],
    "deep": [
        ["train", "rainbow-ez", "--game", "Freeway", *BRIEFLY, "--out", "run"],
        ["watch", "run", "--steps", "5"],
    ],
    "deep,minatar": [
        ["train", "r2d2-ez", "--game", "minatar/breakout", *BRIEFLY, "--out", "run"],
    ],
    "deep,ray": [["fleet", "simulate", "--help"]],
    "completion": [["completion", "bash"]],
    "docs": [],
    "sb3": [],
    "torchrl": [],
    "tianshou": [],
    "pfrl": [],
    "jax": [],
    "gymnasium": [],
    "rllib": [],
}
# Modules of adapters that `ezgreedy doctor` does not try.
MODULES = {
    "sb3": "ezgreedy.adapters.sb3_contrib",
    "gymnasium": "ezgreedy.adapters.gymnasium",
}
NOT_FOR_USERS = {"oracles", "dev"}


def run(*command, **settings):
    ran = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
        **settings,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
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
    for name in (
        *("README.md", "LICENSE", "requirements.lock", "Makefile", "pyproject.toml"),
        *("docs/conf.py", "tests/conftest.py", "examples/own_game.py"),
        *("src/ezgreedy/py.typed", "src/ezgreedy/report/page.html"),
    ):
        assert name in names


def test_the_wheel_works_with_numpy_alone(built, tmp_path):
    venv.create(tmp_path / "env", with_pip=False)
    (place,) = (tmp_path / "env").glob("lib/python*/site-packages")
    for part in Path(numpy.__file__).parents[1].glob("numpy*"):
        (place / part.name).symlink_to(part)
    zipfile.ZipFile(wheel(built)).extractall(place)
    command = [tmp_path / "env" / "bin" / "python", "-I", "-m", "ezgreedy"]
    version = f"ezgreedy {PROJECT['version']}\n"
    assert run(*command, "--version", cwd=tmp_path) == version
    shown = run(*command, "demo", "--steps", "50", "--walks", "3", cwd=tmp_path)
    assert "no figure: matplotlib is not installed (pip install 'ezgreedy[study]')" in shown
    assert "fig3-deepsea" in run(*command, "list", cwd=tmp_path)
    for words in ("report .", "reproduce", "train rainbow --game Pong --out run"):
        ran = subprocess.run(
            [*command, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 2
        assert "(pip install 'ezgreedy[" in ran.stderr
        assert ran.stderr.count("\n") == 1


@pytest.mark.slow  # it makes the whole page
def test_pages_are_made_from_the_wheel_s_own_templates(built, tmp_path):
    zipfile.ZipFile(wheel(built)).extractall(tmp_path / "installed")
    inside = os.environ | {"PYTHONPATH": str(tmp_path / "installed")}
    where = "import ezgreedy; print(ezgreedy.__file__)"
    assert str(tmp_path) in run(sys.executable, "-c", where, env=inside, cwd=tmp_path)
    for arguments in (["playground"], ["report", ROOT / "results", "--to", "report.html"]):
        run(sys.executable, "-m", "ezgreedy", *arguments, env=inside, cwd=tmp_path)
    assert (tmp_path / "playground.html").stat().st_size > 50_000
    assert (tmp_path / "report.html").stat().st_size > 1_000_000


def test_every_extra_for_users_is_tried():
    tried = {extra for extras in FIRST_STEPS for extra in extras.split(",")}
    assert tried == PROJECT["optional-dependencies"].keys() - NOT_FOR_USERS


# Gigabytes are installed from the package index: `make test-package`.


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
@pytest.mark.parametrize("extra", FIRST_STEPS)
def test_an_extra_works_in_a_new_environment(extra, kind, built, tmp_path):
    asked = os.environ.get("EZGREEDY_TEST_EXTRAS", "")
    if asked != "all" and extra not in asked.split():
        pytest.skip("gigabytes to install (make test-package)")
    if kind == "sdist" and extra != "study":
        pytest.skip("the sdist is installed once, with study")
    (file,) = built.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    venv.create(tmp_path / "env", with_pip=True)
    outside = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    python = tmp_path / "env" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet"]
    # RLlib asks for an older Gymnasium than the lock file's.
    versions = [f"torch=={locked()['torch']}"] if extra == "rllib" else ["-c", LOCK]
    run(*pip, f"{file}[{extra}]", *versions, env=outside)
    command = tmp_path / "env" / "bin" / "ezgreedy"
    place = "import ezgreedy; print(ezgreedy.__file__)"
    assert str(tmp_path) in run(python, "-c", place, env=outside, cwd=tmp_path)
    shown = run(command, "doctor", env=outside, cwd=tmp_path)
    for part in PARTS:
        if part.extra in extra.split(","):
            assert f"✓ {part.package} " in shown
    if extra in MODULES:
        run(python, "-c", f"import {MODULES[extra]}", env=outside, cwd=tmp_path)
    for words in FIRST_STEPS[extra]:
        run(command, *words, env=outside, cwd=tmp_path)


# The lock file.


ADAPTER_LOCKS = {
    "shared": ("sb3", "torchrl", "tianshou", "pfrl", "jax", "gymnasium"),
    "rllib": ("rllib",),
}
LOCKS = [LOCK, *(ROOT / f"tests/adapters/{name}.lock" for name in ADAPTER_LOCKS)]


def locked(file=LOCK):
    lines = file.read_text().splitlines()
    pins = [line.partition("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in pins}


@pytest.mark.parametrize(
    ("file", "names"),
    list(zip(LOCKS, [("study", "deep", "minatar", "ray"), *ADAPTER_LOCKS.values()], strict=True)),
    ids=[file.name for file in LOCKS],
)
def test_a_lock_file_pins_all_that_the_extras_ask_for_within_their_ranges(file, names):
    pins = locked(file)
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pins.values())
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"]]
    for extra in names:
        asked += extras[extra]
    for text in asked:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), text


@pytest.mark.parametrize("file", LOCKS, ids=[file.name for file in LOCKS])
def test_a_lock_file_names_no_host(file):
    assert "://" not in file.read_text()
