"""Runs that differ only in seed belong together, also those of earlier versions."""

from dataclasses import replace
from pathlib import Path

import pytest

from ezgreedy.findings.variants import variants
from ezgreedy.results.runs import ADDED_SETTINGS, read_run, run_directories
from ezgreedy.runs.settings_codec import _default, kinds, with_later_settings

DEEP = Path(__file__).parents[2] / "results" / "deep"


def test_an_added_setting_stands_for_what_runs_without_it_did():
    defaults = {
        kind: {
            name: _default(kinds()[kind].__dataclass_fields__[name])
            for name in ADDED_SETTINGS[kind]
        }
        for kind in ADDED_SETTINGS
    }
    assert defaults == ADDED_SETTINGS


def test_committed_runs_are_the_same_with_the_settings_of_today():
    earlier = [read_run(path) for path in run_directories(DEEP)]
    today = [replace(run, settings=with_later_settings(run.settings)) for run in earlier]
    assert sum(run.settings != other.settings for run, other in zip(earlier, today, strict=True))
    assert [run.identity() for run in earlier] == [run.identity() for run in today]


@pytest.mark.parametrize("agent", ["rainbow-eps", "rainbow-ez"])
def test_seeds_of_two_versions_are_one_group_with_a_plain_name(agent):
    runs = [read_run(path) for path in run_directories(DEEP)]
    own = [run for run in runs if run.agent == agent and run.game == "minatar/freeway"]
    assert len({tuple(sorted(run.settings["agent"])) for run in own}) > 1
    assert {name: len(alike) for name, alike in variants(own).items()} == {agent: 5}


def test_a_setting_with_another_value_tells_groups_apart():
    run = next(read_run(path) for path in run_directories(DEEP) if "rainbow-ez" in path.name)
    changed = replace(run, settings=with_later_settings(run.settings) | {"streams": "separate"})
    assert list(variants([run, changed])) == ["rainbow-ez", "rainbow-ez (streams separate)"]
