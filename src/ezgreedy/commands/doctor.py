"""`ezgreedy doctor`: what is installed, what works, what is missing and how to get it.

Every part is tried in a process of its own, so that one that crashes or hangs is reported like any
other failure. Nothing is installed or changed.
"""

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata

from ezgreedy import __version__
from ezgreedy.packages import install_command

_TIME_LIMIT = 180  # seconds for each trial
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

_COMPILES = """
import numba
assert numba.njit(lambda n: n + 1)(1) == 2
"""
_DRAWS = """
import io
from matplotlib.figure import Figure
Figure().savefig(io.BytesIO())
"""
_WALKS = """
import ezgreedy.envs, gymnasium
env = gymnasium.make("ezgreedy/FourRooms-v0")
env.reset(seed=0)
env.step(0)
"""
_LEARNS = """
import torch
weights = torch.ones(3, requires_grad=True)
(weights @ torch.arange(3.0)).backward()
assert weights.grad.tolist() == [0.0, 1.0, 2.0]
print("CUDA" if torch.cuda.is_available() else "CPU only")
"""
_PLAYS = """
from ale_py import ALEInterface, LoggerMode, roms
ALEInterface.setLoggerMode(LoggerMode.Error)
game = ALEInterface()
game.loadROM(roms.get_rom_path("freeway"))
game.act(0)
assert game.getScreen().shape == (210, 160)
"""
_STEPS = """
from minatar import Environment
game = Environment("freeway")
game.reset()
game.act(0)
"""
_SHARES = """
import ray
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
assert ray.get(ray.remote(lambda: 2).remote()) == 2
"""


@dataclass(frozen=True)
class Part:
    """Something that ezgreedy can use.

    Args:
        extra: extra that installs it.
        module: module to look for.
        package: package whose version is shown.
        use: what it is for.
        trial: code that uses it; its last printed line is shown.
    """

    extra: str
    module: str
    package: str
    use: str
    trial: str


PARTS = (
    Part("study", "numba", "numba", "compiled environments and kernels", _COMPILES),
    Part("study", "gymnasium", "gymnasium", "environments", _WALKS),
    Part("study", "matplotlib", "matplotlib", "figures", _DRAWS),
    Part("study", "scipy", "scipy", "exact analyses", "import scipy.sparse"),
    Part("study", "plotly", "plotly", "interactive figures", "import plotly.offline"),
    Part("study", "jinja2", "jinja2", "the report's page", "import jinja2"),
    Part("deep", "torch", "torch", "networks", _LEARNS),
    Part("deep", "ale_py", "ale-py", "Atari games", _PLAYS),
    Part("deep", "safetensors", "safetensors", "checkpoints", "import safetensors.numpy"),
    Part("minatar", "minatar", "MinAtar", "MinAtar games", _STEPS),
    Part("ray", "ray", "ray", "many processes", _SHARES),
    Part(
        "sb3", "stable_baselines3", "stable-baselines3", "adapter", "import ezgreedy.adapters.sb3"
    ),
    Part("torchrl", "torchrl", "torchrl", "adapter", "import ezgreedy.adapters.torchrl"),
    Part("tianshou", "tianshou", "tianshou", "adapter", "import ezgreedy.adapters.tianshou"),
    Part("pfrl", "pfrl", "pfrl", "adapter", "import ezgreedy.adapters.pfrl"),
    # Every Ray has RLlib's code, but only its extra brings what the code needs, such as pyarrow.
    Part("rllib", "pyarrow", "ray", "adapter for RLlib", "import ezgreedy.adapters.rllib"),
    Part("jax", "jax", "jax", "pure functions", "import ezgreedy.jax"),
    Part("completion", "argcomplete", "argcomplete", "the tab key", "import argcomplete"),
    Part("docs", "sphinx", "sphinx", "the documentation site", "import sphinx, myst_nb, furo"),
)


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    parser = commands.add_parser(
        "doctor",
        help="show what is installed, what works and what is missing",
        description="Tries every optional part in a process of its own: compiles a function, plays "
        "a step of an Atari game, starts Ray and a browser. Ends with exit code 1 if something is "
        "installed but does not work.",
    )
    parser.set_defaults(run=_doctor)


def _doctor(parsed: argparse.Namespace) -> int:
    numpy = metadata.version("numpy")
    print(f"ezgreedy {__version__}, Python {platform.python_version()}, NumPy {numpy}")
    print("Every part is tried, some for several seconds.\n", flush=True)
    failures = [_examine(part) for part in PARTS]
    failures.append(_examine_browser())
    return 1 if any(failures) else 0


def _examine(part: Part) -> bool:
    """Reports on one part; returns whether it is there and does not work."""
    if not _is_installed(part):
        _report("–", part.package, part.use, f"missing: {install_command(part.extra)}")
        return False
    said, reason = _tried([sys.executable, "-c", part.trial])
    version = metadata.version(part.package)
    if reason:
        _report("✗", f"{part.package} {version}", part.use, f"does not work: {reason}")
        return True
    _report("✓", f"{part.package} {version}", part.use, said)
    return False


def _is_installed(part: Part) -> bool:
    try:
        metadata.version(part.package)
    except metadata.PackageNotFoundError:
        return False
    return importlib.util.find_spec(part.module) is not None


def _examine_browser() -> bool:
    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    use = "tests of pages"
    if found is None:
        _report("–", "Chromium", use, "missing: apt-get install chromium chromium-driver")
        return False
    flags = ["--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")
    said, reason = _tried([found, *flags, "--dump-dom", "data:text/html,<p>works</p>"])
    if reason or "works" not in said:
        _report("✗", "Chromium", use, f"does not work: {reason or 'it showed nothing'}")
        return True
    driver = "" if shutil.which("chromedriver") else "; chromedriver is missing"
    _report("✓", "Chromium", use, driver.lstrip("; "))
    return False


def _tried(command: Sequence[str]) -> tuple[str, str]:
    """The last line that a command printed, and why it failed; empty if it did not."""
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return "", f"no answer after {_TIME_LIMIT} s"
    if ran.returncode:
        return "", _last_line(ran.stderr) or f"exit code {ran.returncode}"
    return _last_line(ran.stdout), ""


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def _report(sign: str, name: str, use: str, note: str) -> None:
    print(f"{sign} {name:<26} {use:<36} {note}".rstrip(), flush=True)
