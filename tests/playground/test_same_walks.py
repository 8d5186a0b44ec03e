"""Walks in the browser are Python's: the same tape, the same durations, the same maps."""

from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from ezgreedy import EpsilonGreedy, EZGreedy, Fixed, Geometric, Uniform, Zeta
from ezgreedy.playground.worlds import WORLDS
from support.browser import Opened

pytestmark = pytest.mark.browser

LAWS: dict[str, tuple[dict[str, Any], Any]] = {
    "the paper's": ({}, Zeta()),
    "zeta with a short tail": ({"mu": 3.3, "cap": 50}, Zeta(3.3, 50)),
    "zeta without decay": ({"mu": 0, "cap": 20}, Zeta(0.0, 20)),
    "one step": ({"cap": 1}, Fixed(1)),
    "exponential": ({"law": "exponential", "decay": 0.95}, Geometric(0.95)),
    "exponential that underflows": ({"law": "exponential", "decay": 0.5}, Geometric(0.5)),
    "exponential of nothing": ({"law": "exponential", "decay": 0}, Geometric(0.0)),
    "uniform": ({"law": "uniform", "cap": 30}, Uniform(30)),
}
LANES, STEPS = 7, 400


def tape(driver: webdriver.Chrome, changes: dict[str, Any], *, is_ez: bool) -> Any:
    changes = {"walkers": LANES, "steps": STEPS, **changes}
    return driver.execute_script("return playground.tape(...arguments)", changes, is_ez)


def python_tape(explore: EZGreedy, greedy: int) -> Any:
    return [explore(np.full(LANES, greedy)).tolist() for _ in range(STEPS)]


@pytest.mark.parametrize("name", LAWS)
def test_durations_have_the_same_tables(opened: Opened, name: str) -> None:
    changes, law = LAWS[name]
    found = opened().execute_script("return playground.law(arguments[0])", changes)
    # Powers come from two libraries, which may round differently.
    np.testing.assert_allclose(found["cumulative"], law.inverse.cumulative, rtol=0, atol=1e-13)
    assert found["mean"] == pytest.approx(law.mean, rel=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**64 - 1, 2**64, 12345 * 2**90 + 7])
def test_every_seed_gives_the_tape_of_python(opened: Opened, seed: int) -> None:
    driver = opened()
    for epsilon in (0.0, 0.05, 0.5, 1.0):
        shared = {"epsilon": epsilon, "seed": str(seed), "world": "mines"}
        found = [tape(driver, shared, is_ez=is_ez) for is_ez in (False, True)]
        assert found[0] == python_tape(EpsilonGreedy(4, epsilon, LANES, seed), 0)
        assert found[1] == python_tape(EZGreedy(4, epsilon, Zeta(), LANES, seed), 0)


@pytest.mark.parametrize("name", LAWS)
def test_every_law_gives_the_tape_of_python(opened: Opened, name: str) -> None:
    changes, law = LAWS[name]
    # MountainCar has three actions, of which the greedy one is the second.
    changes = {"world": "mountain-car", "epsilon": 0.3, "seed": "5", **changes}
    found = tape(opened(), changes, is_ez=True)
    assert found == python_tape(EZGreedy(3, 0.3, law, LANES, 5), 1)


SETTINGS = {
    "pure exploration": "epsilon=1",
    "with greedy steps": "epsilon=0.3&law=exponential&decay=0.8&cap=40",
    "stopping at walls": "epsilon=1&law=uniform&cap=25&stop=yes",
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("world", WORLDS)
def test_the_copied_code_gives_the_maps_of_the_page(
    opened: Opened, world: str, settings: str
) -> None:
    driver = opened(f"#world={world}&{settings}&walkers=8&steps=300&seed=3")
    driver.find_element(By.ID, "to-the-end").click()
    shown = driver.execute_script("return playground.walks.map((walk) => walk.map)")
    means = driver.execute_script("return playground.walks.map((walk) => walk.meanFirstVisit)")
    code = driver.find_element(By.ID, "code").get_attribute("textContent")
    assert code is not None
    found: dict[str, Any] = {}
    exec(compile(code, "copied.py", "exec"), found)
    assert list(found["maps"]) == ["ε-greedy", "εz-greedy"]
    for expected, mean, values in zip(shown, means, found["maps"].values(), strict=True):
        if world == "mountain-car":
            # Cosines of two libraries may differ in the last bit, and move a visit by some steps.
            close = np.isclose(values.ravel(), expected, atol=300 / 8)
            assert close.mean() > 0.95
            assert values.mean() == pytest.approx(mean, rel=1e-3)
        else:
            np.testing.assert_array_equal(values.ravel(), expected)
            assert values.ravel()[found["cells"]].mean() == pytest.approx(mean)
    assert shown[0] != shown[1]


def test_the_car_moves_as_in_python(opened: Opened) -> None:
    from ezgreedy.envs.mountain_car import step

    found = opened().execute_script("""
        const world = makeWorld("mountain-car", 1);
        return Array.from({length: 2000}, (_, at) => {
            world.advance(0, Math.floor(at / 37) % 3);
            const place = [world.positions[0], world.velocities[0], world.hasEnded];
            if (world.hasEnded) world.begin(0);
            return place;
        });
    """)
    position, velocity = -0.5, 0.0
    for at, (its_position, its_velocity, has_ended) in enumerate(found):
        position, velocity, _, terminated = step(position, velocity, at // 37 % 3)
        assert its_position == pytest.approx(position, abs=1e-9)
        assert its_velocity == pytest.approx(velocity, abs=1e-9)
        assert has_ended == terminated
        if terminated:
            position, velocity = -0.5, 0.0
