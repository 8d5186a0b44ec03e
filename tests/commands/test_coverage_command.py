import json
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import ezgreedy.envs  # noqa: F401 (registers our environments)
from ezgreedy import AnyStop, EpsilonGreedy, EZGreedy, StopOnReward, StopOnUnchanged, Zeta
from ezgreedy.analysis import Bins, first_visits, grid_width
from ezgreedy.cli import main
from ezgreedy.commands.coverage_words import shown_share
from ezgreedy.exploration import laws, stops

FIGURES = {
    f"{name}.{kind}"
    for name in ("first_visits_ez", "first_visits_eps", "coverage")
    for kind in ("png", "svg")
}


def coverage(*arguments):
    return main(["coverage", *map(str, arguments)])


def test_mountain_car_gives_figures_numbers_and_a_comparison(tmp_path, capsys):
    out = tmp_path / "new" / "mountain_car"
    arguments = ("MountainCar-v0", "--policy", "ez", "--policy", "eps", "--bins", 12, "--out", out)
    assert coverage(*arguments, "--steps", 400, "--trials", 4) == 0
    assert {file.name for file in out.iterdir()} == FIGURES | {"coverage.json"}
    assert all(file.stat().st_size > 1000 for file in out.iterdir())
    summary = json.loads((out / "coverage.json").read_text())
    for name, explore in (("ez", EZGreedy(3, 1.0, lanes=4)), ("eps", EpsilonGreedy(3, 1.0, 4))):
        found, expected = summary["policies"][name], first_visits("MountainCar-v0", explore, 400)
        np.testing.assert_allclose(found["first_visit_map"], expected.mean_map())
        np.testing.assert_allclose(found["trial_means"], expected.trial_means())
        interval = found["mean_first_visit"]
        assert interval["value"] == pytest.approx(expected.trial_means().mean())
        assert interval["low"] <= interval["value"] <= interval["high"]
        assert found["never_visited"]["value"] == pytest.approx(expected.trial_never().mean())
    means = [summary["policies"][name]["mean_first_visit"]["value"] for name in ("ez", "eps")]
    ratio = summary["comparison"]["mean_first_visit_ez_over_eps"]
    assert ratio["value"] == pytest.approx(means[0] / means[1])
    assert summary["settings"]["steps"] == 400
    printed = capsys.readouterr().out
    assert f"{ratio['value']:.3f}" in printed
    assert "εz-greedy" in printed
    assert "ε-greedy" in printed


def test_the_same_command_may_run_again_and_says_the_same(tmp_path):
    arguments = ("FrozenLake-v1", "--steps", 60, "--trials", 3, "--width", 4, "--out", tmp_path)
    summaries = []
    for _ in range(2):
        assert coverage(*arguments) == 0
        summaries.append(json.loads((tmp_path / "coverage.json").read_text()))
        summaries[-1].pop("seconds")
    assert summaries[0] == summaries[1]


def test_one_policy_is_mapped_without_a_comparison(tmp_path):
    assert (
        coverage("FrozenLake-v1", "--policy", "ez", "--steps", 50, "--trials", 1, "--out", tmp_path)
        == 0
    )
    summary = json.loads((tmp_path / "coverage.json").read_text())
    assert list(summary["policies"]) == ["ez"]
    assert summary["comparison"] == {}


@pytest.mark.parametrize(
    "changed",
    [
        ("--steps", 61),
        ("--trials", 4),
        ("--bins", 5),
        ("--range", 0, -1.0, 1.0),
        ("--dims", 1, 0),
        ("--dims", 2),
        ("--max-episode-steps", 5),
        ("--epsilon", 0.5, "--greedy", 1),
        ("--mu", 1.0),
        ("--cap", 2),
        ("--seed", 1),
    ],
    ids=lambda changed: changed[0],
)
def test_every_setting_changes_the_numbers(tmp_path, changed, monkeypatch):
    monkeypatch.setattr("ezgreedy.figures.coverage_maps.draw_maps", lambda *_: [])
    usual = ("CartPole-v1", "--steps", 60, "--trials", 3, "--range", 1, -3, 3, "--policy", "ez")
    for name, extra in (("usual", ()), ("changed", changed)):
        assert coverage(*usual, *extra, "--out", tmp_path / name) == 0
    usual_numbers, changed_numbers = (
        json.loads((tmp_path / name / "coverage.json").read_text())["policies"]
        for name in ("usual", "changed")
    )
    assert usual_numbers != changed_numbers


OWN = """
from dataclasses import dataclass

import gymnasium
import numpy as np
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv

from ezgreedy import DurationLaw, EZGreedy, Fixed, StopWhen
from ezgreedy.exploration.laws import register
from ezgreedy.exploration.stops import StopSettings
from ezgreedy.exploration.stops import register as register_stop

gymnasium.register("own/Cliff-v0", entry_point=CliffWalkingEnv)


@register
@dataclass(frozen=True)
class Even(DurationLaw):
    cap: int = 2

    def _weights(self):
        return np.arange(self.cap) % 2


class Twice:  # every action twice, behind the least interface that there is
    def __init__(self, num_actions, epsilon, lanes, seed):
        self.explore = EZGreedy(num_actions, epsilon, Fixed(2), lanes, seed)
        self.lanes, self.seed = lanes, seed

    def __call__(self, greedy):
        return self.explore(np.zeros(self.lanes, dtype=int))

    def reset(self, finished):
        self.explore.reset(finished)


class Beyond(Twice):
    def __call__(self, greedy):
        return np.full(self.lanes, 99)


class Broken(Twice):
    def __call__(self, greedy):
        return {}["nothing"]


@register_stop
@dataclass(frozen=True)
class Hopeless(StopSettings):
    def rule(self, situation):
        return StopWhen(lambda seen: seen.values.max() > 0, situation.lanes)


number = 3


def few(num_actions):
    return None


def nothing(num_actions, epsilon, lanes, seed):
    return None
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_walks.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EZGREEDY_IMPORT", "")
    monkeypatch.setattr(laws, "_laws", dict(laws._laws))
    monkeypatch.setattr(stops, "_stops", dict(stops._stops))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "out"
    sys.modules.pop("own_walks", None)
    gymnasium.registry.pop("own/Cliff-v0", None)


def test_own_policies_and_laws_are_compared_in_an_own_environment(own_module, capsys):
    policies = ("own_walks:Twice", "Fixed(2)", "Zeta(1.5, cap=20)", "eps")
    named = [part for policy in policies for part in ("--policy", policy)]
    arguments = ("own/Cliff-v0", "--import", "own_walks", "--steps", 80, "--trials", 3)
    assert coverage(*arguments, *named, "--out", own_module) == 0
    summary = json.loads((own_module / "coverage.json").read_text())
    found = summary["policies"]
    assert list(found) == list(policies)
    for key in ("trial_means", "first_visit_map", "visit_map"):
        assert found["own_walks:Twice"][key] == found["Fixed(2)"][key]
    law = first_visits("own/Cliff-v0", EZGreedy(4, 1.0, Zeta(1.5, 20), 3), 80)
    np.testing.assert_allclose(found["Zeta(1.5, cap=20)"]["trial_means"], law.trial_means())
    assert list(summary["comparison"]) == [
        f"mean_first_visit_{name}_over_eps" for name in policies[:-1]
    ]
    assert (own_module / "first_visits_own_walks-Twice.png").exists()
    printed = capsys.readouterr().out
    for title in ("own_walks:Twice", "εz-greedy, Zeta(1.5, cap=20) / ε-greedy"):
        assert title in printed


def test_the_module_of_the_environment_registers_laws_too(own_module, monkeypatch, capsys):
    monkeypatch.setattr("ezgreedy.figures.coverage_maps.draw_maps", lambda *_: [])
    named = ("--policy", "Even(2)", "--policy", "Fixed(2)", "--steps", 20, "--trials", 2)
    assert coverage("CliffWalking-v1", *named, "--out", own_module) == 2
    refused = capsys.readouterr().err
    assert "--policy must be a call of Zeta" in refused
    assert "import the module that registers it with --import" in refused
    assert coverage("own_walks:own/Cliff-v0", *named, "--out", own_module) == 0
    found = json.loads((own_module / "coverage.json").read_text())["policies"]
    assert found["Even(2)"]["first_visit_map"] == found["Fixed(2)"]["first_visit_map"]


def test_rules_behind_a_policy_end_its_options(tmp_path):
    policy = "Zeta(1.5, cap=100); stops=StopOnUnchanged(1), StopOnReward()"
    arguments = ("--policy", "ez", "--policy", policy, "--steps", 300, "--trials", 3)
    assert coverage("ezgreedy/FourRooms-v0", *arguments, "--out", tmp_path) == 0
    summary = json.loads((tmp_path / "coverage.json").read_text())
    stop = AnyStop(StopOnUnchanged(3), StopOnReward(3))
    explore = EZGreedy(4, 1.0, Zeta(1.5, cap=100), lanes=3)
    expected = first_visits("ezgreedy/FourRooms-v0", explore, 300, stops=stop)
    assert summary["policies"][policy]["trial_means"] == expected.trial_means().tolist()
    assert explore.counters.cut_by_caller > 0
    assert summary["titles"][policy].endswith("StopOnUnchanged(1), StopOnReward()")


def test_without_epsilon_greedy_the_first_policy_is_the_reference(tmp_path, monkeypatch):
    monkeypatch.setattr("ezgreedy.figures.coverage_maps.draw_maps", lambda *_: [])
    named = ("--policy", "Fixed(3)", "--policy", "ez")
    arguments = ("MountainCar-v0", "--steps", 30, "--trials", 2, *named)
    assert coverage(*arguments, "--out", tmp_path) == 0
    summary = json.loads((tmp_path / "coverage.json").read_text())
    assert list(summary["comparison"]) == ["mean_first_visit_ez_over_Fixed(3)"]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("own_walks:Thrice", "--policy must name a class or function of own_walks"),
        ("own_walks:number", "--policy must name a class or function of own_walks"),
        ("own_walks:nothing", "--policy own_walks:nothing must have lanes, a call and a reset"),
        ("own_walks:few", "--policy must take num_actions, epsilon, lanes, seed by name"),
        ("nowhere_to_be_found:Policy", "must name a module that can be imported"),
        ("Zeta(-1)", "mu must"),
        ("Normal(1)", "--policy must"),
        ("ez; stops=StopOnUnchange(1)", "of --policy must be a call of StopOnUnchanged"),
        ("ez; stops=StopOnUnchanged(0)", "steps must be at least 1; got 0"),
        ("ez; stops=", "--policy must have stops=RULES after the semicolon"),
        ("ez; ends=StopOnReward()", "--policy must have stops=RULES after the semicolon"),
        ("ez; stops=StopOnDiscrepancy(0.1)", "rules that read observations and rewards only"),
        ("own_walks:nothing; stops=StopOnReward()", "must have lanes, a call and a reset"),
    ],
)
def test_policies_that_cannot_be_had_are_refused(policy, message, own_module, capsys):
    assert coverage("MountainCar-v0", "--steps", 5, "--policy", policy, "--out", own_module) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert not own_module.exists()


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("own_walks:Beyond", "--policy own_walks:Beyond: explore(greedy) must lie in [0, 3)"),
        (
            "ez; stops=Hopeless()",
            "--policy ez; stops=Hopeless(): StopWhen failed: 'NoneType' object has no attribute "
            "'max' (seen.values is None here: nothing is learned)",
        ),
    ],
)
def test_a_policy_that_fails_among_several_is_named(policy, message, own_module, capsys):
    arguments = ("MountainCar-v0", "--import", "own_walks", "--steps", 5, "--trials", 2)
    others = ("--policy", "eps", "--policy", "own_walks:Twice")
    assert coverage(*arguments, *others, "--policy", policy, "--out", own_module) == 2
    assert f"ezgreedy: {message}" in capsys.readouterr().err
    assert not own_module.exists()


def test_a_fault_within_a_policy_keeps_its_traceback_and_is_named(own_module):
    arguments = ("MountainCar-v0", "--steps", 5, "--policy", "eps", "--policy", "own_walks:Broken")
    with pytest.raises(KeyError) as fault:
        coverage(*arguments, "--out", own_module)
    assert fault.value.__notes__ == ["in --policy own_walks:Broken"]


@pytest.mark.parametrize(
    ("env_id", "width"),
    [
        ("FrozenLake-v1", 4),
        ("FrozenLake8x8-v1", 8),
        ("CliffWalking-v1", 12),
        ("ezgreedy/FourRooms-v0", 15),
        ("ezgreedy/DeepSea-v0", 20),
        ("ezgreedy/Chain-v0", None),
        ("MountainCar-v0", None),
    ],
)
def test_grids_are_drawn_as_grids(env_id, width):
    env = gymnasium.make(env_id)
    assert grid_width(env, Bins.of(env.observation_space)) == width


BAD = {
    "an unknown policy": (
        ["MountainCar-v0", "--policy", "epz"],
        r"--policy must be eps, ez, a law .*did you mean e",
    ),
    "an unknown environment": (["MountainCarr-v0"], r"\(did you mean MountainCar-v0"),
    "an unknown namespace": (
        ["nowhere/Maze-v0"],
        r"ENV must be an environment that Gymnasium knows \(--import MODULE adds",
    ),
    "a missing module": (["no_such_module:Maze-v0"], "cannot be made: No module named"),
    "continuous actions": (
        ["Pendulum-v1"],
        r"must have discrete actions \(.* ezgreedy\.analysis\.box_first_visits\); got Box",
    ),
    "unbounded dimensions": (["CartPole-v1"], "--range 1 LOW HIGH"),
    "no trials": (["MountainCar-v0", "--trials", 0], "--trials must be at least 1; got 0"),
    "no steps": (["MountainCar-v0", "--steps", 0], "--steps must be at least 1; got 0"),
    "no bins": (["MountainCar-v0", "--bins", 0], "--bins must be at least 1; got 0"),
    "a negative seed": (["MountainCar-v0", "--seed", -1], "--seed must be at least 0"),
    "ε beyond 1": (["MountainCar-v0", "--epsilon", 2], r"--epsilon must lie in \[0, 1\]"),
    "ε without a greedy action": (["MountainCar-v0", "--epsilon", 0.5], "--greedy ACTION"),
    "an action that is none": (["MountainCar-v0", "--greedy", 3], "--greedy must be one of"),
    "a policy twice": (["MountainCar-v0", "--policy", "ez", "--policy", "ez"], "each policy once"),
    "half a dimension": (["MountainCar-v0", "--range", 0.5, 0, 1], "--range must begin with"),
    "a bad width": (["FrozenLake-v1", "--width", 7], "width must divide"),
    "no cap": (["MountainCar-v0", "--cap", 0], "cap must be at least 1"),
    "no episode": (["MountainCar-v0", "--max-episode-steps", 0], "--max-episode-steps must be"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_in_one_line_and_writes_nothing(name, tmp_path, capsys):
    arguments, message = BAD[name]
    out = tmp_path / "out"
    assert coverage(*arguments, "--out", out) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("ezgreedy: ")
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(printed.err)
    assert not printed.out
    assert not out.exists()


@pytest.mark.parametrize("content", ["notes", '{"command": "coverage"}', "[1]", '{"id": "fig1"}'])
def test_directories_that_hold_something_else_stay_as_they_are(content, tmp_path, capsys):
    for file in ("notes.txt", "coverage.json"):
        out = tmp_path / file.removesuffix(".txt")
        out.mkdir()
        (out / file).write_text(content)
        assert coverage("MountainCar-v0", "--trials", 1, "--steps", 5, "--out", out) == 2
        assert "--out must be empty or hold an earlier coverage" in capsys.readouterr().err
        assert [item.name for item in out.iterdir()] == [file]
        assert (out / file).read_text() == content


def test_another_environments_coverage_is_not_overwritten(tmp_path):
    for env_id, code in (("FrozenLake-v1", 0), ("Blackjack-v1", 2)):
        assert coverage(env_id, "--trials", 1, "--steps", 5, "--out", tmp_path) == code
    assert json.loads((tmp_path / "coverage.json").read_text())["environment"] == "FrozenLake-v1"


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        (("--steps", 6), "steps 5 there, 6 here"),
        (("--policy", "ez"), "policies ['ez', 'eps'] there, ['ez'] here"),
    ],
)
def test_a_coverage_with_other_settings_is_not_overwritten(
    changed, difference, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("ezgreedy.figures.coverage_maps.draw_maps", lambda *_: [])
    usual = ("FrozenLake-v1", "--trials", 1, "--steps", 5, "--out", tmp_path)
    assert coverage(*usual) == 0
    written = (tmp_path / "coverage.json").read_text()
    assert coverage(*usual, *changed) == 2
    refused = capsys.readouterr().err
    assert f"holds a coverage with other settings ({difference}); choose another --out" in refused
    assert (tmp_path / "coverage.json").read_text() == written


def test_a_share_is_shown_within_0_and_100_percent():
    assert shown_share({"value": 0.004, "low": -0.01, "high": 0.018}, 5) == "0.4% [0.0%, 1.8%]"
    assert shown_share({"value": 0.99, "low": 0.97, "high": 1.01}, 5) == "99.0% [97.0%, 100.0%]"


def test_a_file_is_no_directory(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    for out in (file, file / "below"):
        assert coverage("MountainCar-v0", "--out", out) == 2
    assert file.read_text() == "mine"


def test_help_names_all_that_an_imported_module_may_register(capsys):
    with pytest.raises(SystemExit):
        coverage("--help")
    told = " ".join(capsys.readouterr().out.split())
    assert "agents, games, Gymnasium environments, duration laws or stopping rules" in told


def test_help_waits_for_nothing_heavy():
    heavy = "gymnasium", "matplotlib", "rich", "scipy", "numba"
    code = (
        "import sys; from ezgreedy.cli import main\n"
        "try: main(['coverage', '--help'])\nexcept SystemExit: pass\n"
        f"assert not set({heavy}) & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
