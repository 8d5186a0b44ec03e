"""Agents, games and duration laws of other packages, without an edit in this one."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from ezgreedy import DurationLaw, plugins
from ezgreedy.agents import registry as agents
from ezgreedy.agents.rainbow.presets import RAINBOW, RAINBOW_EZ
from ezgreedy.cli import main
from ezgreedy.exploration import laws
from ezgreedy.games import SMALL_WORLD, GameFamily
from ezgreedy.games import registry as games
from ezgreedy.games.deep_sea_images import DeepSeaImages
from ezgreedy.runs.settings_codec import as_plain, from_plain, with_setting

EXAMPLES = Path(__file__).parents[1] / "examples"
SHORT = ["--scale", "laptop", "--frames", "600", "--set", "evaluation.frames=100", "--quiet"]


@dataclass(frozen=True)
class Twos(DurationLaw):
    """One or two steps."""

    share: float = 0.5
    cap: int = 2

    def _weights(self):
        return np.array([1.0 - self.share, self.share])


@pytest.fixture
def registries(monkeypatch):
    """Whatever a test registers is gone after it."""
    for module, name in ((agents, "_agents"), (games, "_families"), (laws, "_laws")):
        monkeypatch.setattr(module, name, dict(getattr(module, name)))


def ezgreedy(*arguments, cwd=EXAMPLES, **variables):
    return subprocess.run(
        [sys.executable, "-m", "ezgreedy", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=cwd,
        env={**os.environ, **variables},
    )


# Registries.


def test_a_registered_agent_is_found_and_a_taken_name_is_refused(registries):
    mine = replace(RAINBOW, name="rainbow-mine")
    agents.register(mine)
    assert agents.agent("rainbow-mine") is mine
    agents.register(mine)  # a module that is imported twice does no harm
    with pytest.raises(ValueError, match="agent must have a name other than rainbow,"):
        agents.register(replace(RAINBOW_EZ, name="rainbow"))
    assert agents.agent("rainbow") is RAINBOW


def test_a_registered_family_makes_its_games_and_a_taken_name_is_refused(registries):
    def make(name, protocol=None, *, rng):
        return DeepSeaImages(name.replace("abyss/", "deep_sea/"), protocol, rng=rng)

    family = GameFamily("abyss", make, lambda name: SMALL_WORLD, "abyss/N", is_small=True)
    games.register(family)
    assert games.family_of("abyss/7") is family
    assert games.make("abyss/7", rng=np.random.default_rng(0)).frame_shape == (1, 7, 7)
    assert RAINBOW.at_scale("paper", "abyss/7").protocol == SMALL_WORLD
    with pytest.raises(ValueError, match="family must have a name other than atari, minatar"):
        games.register(replace(family, name="minatar"))
    with pytest.raises(ValueError, match="name must be a word without a slash; got 'a/b'"):
        replace(family, name="a/b")


def test_a_registered_law_is_written_read_and_named_in_settings(registries):
    settings = RAINBOW_EZ.at_scale("laptop", "deep_sea/5")
    with pytest.raises(
        ValueError, match=r"--set agent\.durations must be a call of Zeta, Geometric"
    ):
        with_setting(settings, "agent.durations", "Twos(0.25)")
    assert laws.register(Twos) is Twos
    changed = with_setting(settings, "agent.durations", "Twos(0.25)")
    assert changed.agent.durations == Twos(0.25)
    assert from_plain(json.loads(json.dumps(as_plain(changed)))) == changed
    with pytest.raises(TypeError, match="law must be a dataclass derived from DurationLaw"):
        laws.register(int)
    with pytest.raises(ValueError, match="law must have a name other than Zeta"):
        laws.register(dataclass(frozen=True)(type("Zeta", (Twos,), {})))


def test_settings_of_an_unknown_kind_are_refused_with_a_way_out(registries):
    plain = as_plain(RAINBOW.at_scale("paper", "deep_sea/5"))
    plain["agent"]["kind"] = "RockingRainbow"
    told = "settings.agent is a 'RockingRainbow', which is not known here: --import"
    with pytest.raises(ValueError, match=told):
        from_plain(plain)


# Ways in.


@pytest.mark.parametrize("position", ["before", "after"])
def test_import_makes_an_agent_known_to_the_help(position):
    option = ["--import", "own_agent"]
    words = ["train", "--help"]
    ran = ezgreedy(*(option + words if position == "before" else words + option))
    assert ran.returncode == 0, ran.stderr
    assert "rainbow-rocking" in ran.stdout.replace("\n", "").replace(" ", "")


def test_a_run_of_an_imported_agent_resumes_and_is_evaluated(tmp_path):
    run = tmp_path / "run"
    words = ["rainbow-rocking", "--game", "deep_sea/5", "--out", run, "--set", "agent.longest=2"]
    ran = ezgreedy("train", "--import", "own_agent", *words, *SHORT)
    assert ran.returncode == 0, ran.stderr
    assert json.loads((run / "config.json").read_text())["settings"]["agent"]["longest"] == 2
    assert ezgreedy("resume", run, "--import", "own_agent").returncode == 0
    said = ezgreedy("evaluate", run, "--import", "own_agent").stdout
    assert "rainbow-rocking on deep_sea/5" in said
    without = ezgreedy("evaluate", run)
    assert without.returncode == 2
    assert "RockingRainbow" in without.stderr
    assert "--import" in without.stderr


def test_processes_of_a_sweep_know_what_was_imported(tmp_path):
    words = ["--games", "corridor/6", "--agents", "rainbow-ez", "--seeds", "1", "--yes"]
    changes = ["--frames", "600", "--set", "evaluation.frames=100", "--probe-seconds", "0"]
    out = ["--scale", "laptop", "--out", tmp_path / "sweep"]
    ran = ezgreedy("sweep", "minatar", "--import", "own_game", *words, *changes, *out)
    assert ran.returncode == 0, ran.stderr
    assert "1 run: 1 done" in ran.stderr


def test_an_installed_package_needs_no_option(tmp_path):
    (tmp_path / "their_laws.py").write_text(
        "from dataclasses import dataclass\n"
        "import numpy as np\n"
        "from ezgreedy import DurationLaw\n"
        "from ezgreedy.exploration.laws import register\n"
        "@register\n"
        "@dataclass(frozen=True)\n"
        "class Threes(DurationLaw):\n"
        "    cap: int = 3\n"
        "    def _weights(self):\n"
        "        return np.array([0.0, 0.0, 1.0])\n"
    )
    info = tmp_path / "their_laws-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-laws\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{plugins.GROUP}]\nlaws = their_laws\n")
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    words = ["rainbow-ez", "--game", "deep_sea/5", "--out", tmp_path / "run", *SHORT]
    law = ["--set", "agent.durations=Threes()"]
    ran = ezgreedy("train", *words, *law, cwd=tmp_path, PYTHONPATH=paths)
    assert ran.returncode == 0, ran.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["settings"]["agent"]["durations"] == {"kind": "Threes", "cap": 3}


def test_a_broken_package_is_a_warning_and_a_broken_import_an_error(tmp_path):
    (tmp_path / "broken.py").write_text("raise RuntimeError('no')\n")
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{plugins.GROUP}]\nbroken = broken\n")
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    ran = ezgreedy("list", PYTHONPATH=paths)
    assert ran.returncode == 0
    assert "the ezgreedy plugin broken failed: RuntimeError('no')" in ran.stderr


def test_a_module_that_is_not_there_is_refused_by_name(capsys):
    assert main(["train", "--import", "no_such_module", "rainbow", "--game", "Pong"]) == 2
    assert plugins.VARIABLE not in os.environ  # processes that start later are not asked for it
    said = capsys.readouterr().err
    assert (
        "--import must name a module that can be imported from here; got 'no_such_module'" in said
    )


def test_commands_that_are_told_name_the_modules_that_were_imported(monkeypatch):
    monkeypatch.setenv(plugins.VARIABLE, "")
    assert plugins.options() == ""
    monkeypatch.setenv(plugins.VARIABLE, "mine,yours.laws")
    assert plugins.options() == " --import mine --import yours.laws"
