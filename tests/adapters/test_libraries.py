"""What adapters share: which releases they know, and states saved with other environments."""

import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch

from ezgreedy import EZGreedy, Fixed
from ezgreedy.adapters import libraries
from ezgreedy.adapters.libraries import Library
from ezgreedy.adapters.saved_lanes import fresh_seed, restore, under_law
from ezgreedy.exploration.tensors import TensorEZGreedy
from support.twins import tape

MAJOR, MINOR = version("numpy").split(".")[:2]
NEXT = f"{MAJOR}.{int(MINOR) + 1}"


def test_a_tested_release_passes_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Library("numpy", "numbers", version("numpy"), NEXT).check("ezgreedy.adapters.numbers")


@pytest.mark.parametrize(("least", "below"), [(NEXT, "99"), ("0.1", version("numpy"))])
def test_an_untested_release_is_warned_about_with_the_range(least, below):
    message = (
        f"numbers is tested with numpy >= {least}, < {below}; found {version('numpy')}. "
        r"Get a tested one with pip install 'ezgreedy\[numbers\]'"
    )
    with pytest.warns(UserWarning, match=message):
        Library("numpy", "numbers", least, below).check("ezgreedy.adapters.numbers")


def test_a_missing_library_is_named_with_its_extra():
    message = r"numbers needs nothing-of-the-kind, .* \(pip install .*\[numbers\]'\)"
    with pytest.raises(ModuleNotFoundError, match=message):
        Library("nothing-of-the-kind", "numbers", "1", "2").check("ezgreedy.adapters.numbers")


@pytest.mark.parametrize(
    ("least", "tested"), [("2.9", True), ("2.9.1", True), ("2.10", False), ("3", False)]
)
def test_releases_are_compared_as_numbers(monkeypatch, least, tested):
    monkeypatch.setattr("ezgreedy.adapters.libraries.version", lambda name: "2.9.2rc1+cpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Library("numpy", "numbers", least, "4").check("ezgreedy.adapters.numbers")
    assert bool(caught) != tested


ADAPTERS = {
    "ezgreedy.adapters.sb3": libraries.SB3,
    "ezgreedy.adapters.sb3_contrib": libraries.SB3_CONTRIB,
    "ezgreedy.adapters.sb3_noise": libraries.SB3,
    "ezgreedy.adapters.torchrl": libraries.TORCHRL,
    "ezgreedy.adapters.tianshou": libraries.TIANSHOU,
    "ezgreedy.adapters.pfrl": libraries.PFRL,
    "ezgreedy.adapters.rllib": libraries.RLLIB,
    "ezgreedy.adapters.gymnasium": libraries.GYMNASIUM,
    "ezgreedy.jax": libraries.JAX,
}
FOLDER = Path(libraries.__file__).parent
# The release is asked for before the library is imported, so it need not be there.
IMPORT = """
import importlib, sys, warnings
from ezgreedy.adapters import libraries
libraries.version = lambda name: sys.argv[2]
warnings.simplefilter("error", UserWarning)
importlib.import_module(sys.argv[1])
"""


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_every_adapter_warns_about_an_untested_release(adapter):
    library = ADAPTERS[adapter]
    command = [sys.executable, "-c", IMPORT, adapter, library.below]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    tested = (
        f"{adapter} is tested with {library.distribution} >= {library.least}, < {library.below}"
    )
    assert f"UserWarning: {tested}; found {library.below}." in ran.stderr
    assert f"pip install 'ezgreedy[{library.extra}]'" in ran.stderr


def test_every_adapter_is_known_here():
    modules = {f"ezgreedy.adapters.{path.stem}" for path in FOLDER.glob("*.py")} | {"ezgreedy.jax"}
    shared = {"__init__", "libraries", "saved_lanes", "torch_checkpoints"}
    assert modules - {f"ezgreedy.adapters.{name}" for name in shared} == set(ADAPTERS)


def test_seeds_are_kept_or_fresh():
    assert fresh_seed(5) == 5
    assert fresh_seed(None) != fresh_seed(None)
    with pytest.raises(ValueError, match="seed must be at least 0; got -1"):
        fresh_seed(-1)


@pytest.mark.parametrize("lanes", [2, 5])
def test_lanes_that_both_have_continue_and_others_begin(lanes):
    saved = EZGreedy(6, 0.4, lanes=3, seed=1)
    tape(saved, 40)
    explore = EZGreedy(6, 0.4, lanes=lanes, seed=1)
    with pytest.warns(UserWarning, match=f"saved with 3 environments, continued with {lanes}"):
        restore(explore, saved.state_dict())
    played, common = tape(explore, 60), min(lanes, 3)
    np.testing.assert_array_equal(played[:, :common], tape(saved, 60)[:, :common])
    alone = tape(EZGreedy(6, 0.4, lanes=5, seed=1), 60)
    np.testing.assert_array_equal(played[:, common:], alone[:, common:lanes])


@pytest.mark.parametrize("lanes", [1, 5])
@pytest.mark.parametrize("kind", [EZGreedy, TensorEZGreedy])
def test_counters_keep_what_lanes_did_that_are_gone(kind, lanes):
    saved = EZGreedy(6, 0.4, Fixed(70), lanes=3, seed=1)
    explored = played = 0
    for _ in range(40):
        saved(np.zeros(3, dtype=int))
        explored += int(saved.exploring.sum())
    running = np.count_nonzero(saved.remaining[lanes:])
    assert (running > 0) == (lanes == 1)
    explore = kind(6, 0.4, Fixed(70), lanes=lanes, seed=1)
    with pytest.warns(UserWarning, match="saved with 3 environments"):
        restore(explore, saved.state_dict())
    greedy = np.zeros(lanes, dtype=int)
    for _ in range(20):
        explore(torch.from_numpy(greedy) if kind is TensorEZGreedy else greedy)
        explored += int(explore.exploring.sum())
        played += lanes
    counters = explore.counters
    assert (counters.steps, counters.explored) == (3 * 40 + played, explored)
    assert counters.cut_by_episode_ends == running
    again = kind(6, 0.4, Fixed(70), lanes=lanes, seed=1)
    again.load_state_dict(explore.state_dict())
    assert again.counters == counters


def test_the_same_lanes_continue_in_silence():
    saved = EZGreedy(6, 0.4, Fixed(4), lanes=3, seed=1)
    tape(saved, 40)
    explore = EZGreedy(6, 0.4, Fixed(4), lanes=3, seed=1)
    restore(explore, saved.state_dict())
    assert explore.state_dict() == saved.state_dict()


@pytest.mark.parametrize(
    "settings", [{}, {"action_weights": [1, 2, 3, 4, 5, 6]}, {"carries_over_episodes": True}]
)
def test_under_another_law_steps_continue_and_options_end(settings):
    first = EZGreedy(6, 0.4, Fixed(9), lanes=3, seed=1, first_lane=2, **settings)
    tape(first, 40)
    before, running = first.state_dict(), first.remaining
    assert running.any()
    changed = under_law(first, before, Fixed(2))
    assert first.state_dict() == before
    assert changed.counters.cut_by_caller == np.count_nonzero(running)
    assert changed.counters.plays_cut - first.counters.plays_cut == running.sum()
    assert changed.counters.explored == first.counters.explored
    # From the same step on it plays what a policy plays that has had the new law all along.
    twin = EZGreedy(6, 0.4, Fixed(2), lanes=3, seed=1, first_lane=2, **settings)
    tape(twin, 40)
    ends = np.ones(3, dtype=np.bool_)
    greedy = np.zeros(3, dtype=int)
    np.testing.assert_array_equal(changed(greedy), twin(greedy, ends=ends))
    np.testing.assert_array_equal(tape(changed, 60), tape(twin, 60))
