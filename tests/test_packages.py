"""What is said when an optional package is not installed."""

import sys

import pytest

from ezgreedy.packages import imported, require_installed


def test_all_missing_packages_are_named_with_how_to_install_them():
    require_installed("report", ["json", "numpy"], "study")
    with pytest.raises(ValueError, match=r"^report needs nope, which is not installed \(pip"):
        require_installed("report", ["json", "nope"], "study")
    told = r"needs nope and nada, which are not installed \(pip install 'ezgreedy\[study,deep\]'\)$"
    with pytest.raises(ValueError, match=told):
        require_installed("fig1", ["nope", "json", "nada"], "study,deep")


def test_a_module_is_imported_or_its_package_named():
    assert imported("json.decoder", "a game", "deep") is sys.modules["json.decoder"]
    told = r"minatar/x needs nope, which is not installed \(pip install 'ezgreedy\[minatar\]'\)"
    with pytest.raises(ValueError, match=told):
        imported("nope.environments.x", "minatar/x", "minatar")


def test_an_installed_package_that_lacks_something_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "lacking.py").write_text("import something_else_that_is_missing\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_else_that_is_missing"):
        imported("lacking", "a game", "deep")
