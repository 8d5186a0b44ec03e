"""What is said when an optional package is not installed."""

import json
import re
import sys
from pathlib import Path

import pytest

from ezgreedy import packages
from ezgreedy.packages import imported, install_command, require_installed


def test_all_missing_packages_are_named_with_how_to_install_them():
    require_installed("report", ["json", "numpy"], "study")
    with pytest.raises(ValueError, match=r"^report needs nope, which is not installed \(pip"):
        require_installed("report", ["json", "nope"], "study")
    way = re.escape(install_command("study,deep"))
    told = rf"needs nope and nada, which are not installed \({way}\)$"
    with pytest.raises(ValueError, match=told):
        require_installed("fig1", ["nope", "json", "nada"], "study,deep")


def test_a_module_is_imported_or_its_package_named():
    assert imported("json.decoder", "a game", "deep") is sys.modules["json.decoder"]
    told = rf"minatar/x needs nope, which .* \({re.escape(install_command('minatar'))}\)"
    with pytest.raises(ValueError, match=told):
        imported("nope.environments.x", "minatar/x", "minatar")


def test_an_installed_package_that_lacks_something_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "lacking.py").write_text("import something_else_that_is_missing\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_else_that_is_missing"):
        imported("lacking", "a game", "deep")


def test_the_command_adds_an_extra_to_the_installation_that_runs(tmp_path, monkeypatch):
    checkout = Path(packages.__file__).parents[2]
    monkeypatch.chdir(tmp_path)
    assert install_command("study") == f"pip install -e '{checkout}[study]'"
    monkeypatch.chdir(checkout)
    assert install_command("study,deep") == "pip install -e '.[study,deep]'"


@pytest.mark.parametrize("kind", ["wheel", "index", "gone", "another machine"])
def test_outside_a_checkout_the_command_names_where_the_package_came_from(
    kind, tmp_path, monkeypatch
):
    wheel = tmp_path / "ez greedy-1.whl"
    if kind != "gone":
        wheel.touch()
    urls = {"wheel": wheel.as_uri(), "gone": wheel.as_uri(), "another machine": "ssh://x/y"}
    place = tmp_path / "site-packages"
    information = place / "ezgreedy-1.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: ezgreedy\nVersion: 1\n")
    if kind in urls:
        (information / "direct_url.json").write_text(json.dumps({"url": urls[kind]}))
    monkeypatch.syspath_prepend(place)
    monkeypatch.setattr(packages, "__file__", str(place / "ezgreedy" / "packages.py"))
    origin = str(wheel) if kind == "wheel" else "ezgreedy"
    assert install_command("study") == f"pip install '{origin}[study]'"
