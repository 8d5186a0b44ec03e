"""The house rules, as far as a machine can check them."""

import ast
import importlib
import inspect
import pkgutil
import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ezgreedy
from ezgreedy.adapters import libraries
from support.pages import python_blocks, run_page

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "ezgreedy"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Each room may import itself and the rooms before it.
ROOMS = [
    "requirements",
    "named_settings",
    "packages",
    "units",
    "seeding",
    "plugins",
    "compilation",
    "finite_mdp",
    "checkpoints",
    "envs",
    "games",
    "exploration",
    "adapters",
    "replay",
    "learning",
    "intrinsic",
    "agents",
    "kernels",
    "results",
    "runs",
    "findings",
    "fleet",
    "sweeps",
    "analysis",
    "figures",
    "demonstration",
    "playground",
    "experiments",
    "inspection",
    "report",
    "commands",
    "cli",
    "__main__",
    "testing",
    "jax",
]
HEAVY = {
    "torch",
    "numba",
    "ray",
    "matplotlib",
    "gymnasium",
    "scipy",
    "ale_py",
    "PIL",
    "minatar",
    "zstandard",
    "rich",
    "jinja2",
    "plotly",
    "safetensors",
    "stable_baselines3",
    "sb3_contrib",
    "torchrl",
    "tensordict",
    "tianshou",
    "pfrl",
    "jax",
}
BANNED_NAMES = {"utils", "common", "helpers", "misc"}


def module_id(path):
    return str(path.relative_to(PACKAGE).with_suffix("")).replace("/", ".")


each_module = pytest.mark.parametrize("path", MODULES, ids=module_id)


def room_of(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def imported_modules(path):
    """Modules of the package that a file imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("ezgreedy"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ezgreedy"):
            if node.module == "ezgreedy":
                yield from (f"ezgreedy.{alias.name}" for alias in node.names)
            else:
                yield node.module


@each_module
def test_rooms_import_only_rooms_before_them(path):
    room = module_id(path).split(".")[0]
    if room == "__init__":
        return
    assert room in ROOMS, f"{room} has no place in the order of rooms"
    for module in imported_modules(path):
        target = room_of(module)
        if target in ROOMS:
            assert ROOMS.index(target) <= ROOMS.index(room), f"{room} imports {module}"


@each_module
def test_modules_are_short_and_named_after_something(path):
    assert len(path.read_text().splitlines()) <= 450
    assert path.stem not in BANNED_NAMES
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", path.read_text())


def functions():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield module_id(path), node


def test_only_registries_know_which_agents_and_games_there_are():
    """Others ask a setting or a family what it can do, and never what it is."""
    for path in MODULES:
        text = path.read_text()
        assert not re.search(r"isinstance\([^)]*(RainbowSettings|R2D2Settings)", text), path
        if "games" not in path.parts:
            assert not re.search(r"startswith\([^)]*PREFIX", text), path


def test_functions_are_short_and_take_few_parameters():
    lengths = [node.end_lineno - node.lineno + 1 for _, node in functions()]
    assert statistics.median(lengths) <= 12
    for module, node in functions():
        parameters = [a.arg for a in node.args.args + node.args.kwonlyargs if a.arg != "self"]
        assert len(parameters) <= 8, f"{module}.{node.name} takes {len(parameters)} parameters"


def test_every_module_imports():
    for module in pkgutil.walk_packages(ezgreedy.__path__, "ezgreedy."):
        if module.name.startswith(
            ("ezgreedy.adapters.", "ezgreedy.jax")
        ):  # `make test-adapters` has their libraries
            continue
        importlib.import_module(module.name)


def test_extras_ask_for_the_releases_that_adapters_are_tested_with():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    tested = [value for value in vars(libraries).values() if isinstance(value, libraries.Library)]
    assert tested
    for library in tested:
        wanted = f"{library.distribution}>={library.least},<{library.below}"
        assert wanted in [re.sub(r"\[.*?\]", "", item) for item in extras[library.extra]]


def test_public_names_exist_and_are_documented():
    for name in ezgreedy.__all__:
        assert inspect.getdoc(getattr(ezgreedy, name)), f"{name} has no docstring"
    assert set(ezgreedy.__all__) <= set(dir(ezgreedy))
    with pytest.raises(AttributeError, match="no attribute 'EzGreedy'"):
        ezgreedy.EzGreedy  # noqa: B018


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


def test_importing_the_package_loads_numpy_alone():
    code = (
        "import sys, ezgreedy\n"
        "for name in ezgreedy.__all__: getattr(ezgreedy, name)\n"
        f"loaded = {HEAVY!r} & {{name.partition('.')[0] for name in sys.modules}}\n"
        "assert not loaded, loaded\n"
    )
    result = run_python(code)
    assert result.returncode == 0, result.stderr


def test_the_core_and_the_demo_work_with_numpy_alone():
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {HEAVY!r}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import importlib.util\n"
        "real = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda n, *a: None if n in {HEAVY!r} else real(n, *a)\n"
        "from ezgreedy.cli import main\n"
        "sys.exit(main(['demo', '--steps', '50', '--walks', '3']))\n"
    )
    result = run_python(code)
    assert result.returncode == 0, result.stderr
    assert "no figure: matplotlib is not installed" in result.stdout


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/adapters/conformance.md",
        "docs/beyond.md",
        "docs/concepts.md",
        "docs/coverage.md",
        "docs/recipes.md",
        "docs/start.md",
    ],
)
def test_code_on_pages_runs(page, tmp_path):
    run_page(page, tmp_path)


def test_each_block_of_code_on_a_page_imports_what_it_names(tmp_path):
    """A block is copied alone, while `test_code_on_pages_runs` runs all blocks of a page as one."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for number, block in enumerate(python_blocks(page)):
            (tmp_path / f"{page.parent.name}_{page.stem}_{number}.py").write_text(block)
    undefined = "ruff", "check", "--isolated", "--no-cache", "--select", "F821"
    command = [sys.executable, "-m", *undefined, "--output-format", "concise", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_version_is_said_once_and_the_same():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == ezgreedy.__version__
    assert f'version: "{ezgreedy.__version__}"' in (ROOT / "CITATION.cff").read_text()
    assert f"## [{ezgreedy.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_every_decision_names_a_test_that_exists():
    text = (ROOT / "docs" / "decisions.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    rows = [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    assert len(rows) >= 9
    assert all(re.search(r"`tests/[\w/]+\.py::\w+`", row) for row in rows)
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(), f"{file}::{test}"


def test_pages_link_to_files_that_exist():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_test_files_have_names_of_their_own():
    # pytest imports them by name, and a second one of a name is not collected.
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
