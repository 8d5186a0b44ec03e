"""An agent that shares nothing with Rainbow or R2D2 goes through all that they go through."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from ezgreedy import EpsilonGreedy
from ezgreedy.agents import registry
from ezgreedy.agents.agent import AgentSettings
from ezgreedy.agents.rainbow.settings import RainbowSettings
from ezgreedy.agents.run_settings import EvaluationSettings, RunSettings
from ezgreedy.cli import main
from ezgreedy.games.registry import family_of
from ezgreedy.results.store import read_results
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.training import Training
from ezgreedy.sweeps.definitions import find, members
from ezgreedy.sweeps.forecast import forecast, frame_shapes, hasty


class Coin:
    """Acts at random and learns nothing; agent and policy in one."""

    num_updates = 0

    def __init__(self, num_actions, lanes, seed):
        self._num_actions = num_actions
        self._explorer = EpsilonGreedy(num_actions, 1.0, lanes, seed)
        self._lanes = lanes

    @property
    def exploring(self):
        return self._explorer.exploring

    def act(self, observations, starts):
        return self._explorer(np.zeros(self._lanes, dtype=np.int64), starts=starts)

    def observe(self, steps):
        """Nothing is learned."""

    def evaluation_policy(self, lanes, seed, epsilon=None):
        return Coin(self._num_actions, lanes, seed)

    def measurements(self):
        return {"updates": 0.0}

    def state_dict(self):
        return {"explorer": self._explorer.state_dict()}

    def load_policy(self, state):
        """There is nothing to load."""

    def load_state_dict(self, state):
        self._explorer.load_state_dict(state["explorer"])


@dataclass(frozen=True)
class CoinSettings(AgentSettings):
    """A random agent."""

    weight: int = 3  # to have something to set

    def scale_table(self):
        return {"laptop": CoinSettings.short_run}

    def short_run(self, game):
        evaluation = EvaluationSettings(frames_between=400, frames=100, lanes=2)
        protocol = family_of(game).protocol(game)
        return RunSettings(
            self, game, 1_000, protocol=protocol, evaluation=evaluation, frames_per_report=200
        )

    def build(self, spec, *, lanes, seed, device="cpu"):
        return Coin(spec.num_actions, lanes, seed)

    def replay_bytes(self, frame_shape, num_steps=None):
        return 0

    def hurried(self):
        return self


@pytest.fixture
def coin(monkeypatch):
    monkeypatch.setattr(registry, "_agents", dict(registry._agents))
    settings = CoinSettings("coin")
    registry.register(settings)
    return settings


def test_it_trains_resumes_and_is_evaluated_from_the_command_line(coin, tmp_path, capsys):
    run = tmp_path / "run"
    words = ["coin", "--game", "deep_sea/6", "--scale", "laptop", "--set", "agent.weight=5"]
    assert main(["train", *words, "--out", str(run), "--quiet"]) == 0
    settings = RunDirectory(run).settings()
    assert settings.agent == replace(coin, weight=5)
    kinds = [record["kind"] for record in read_results(run / "results.jsonl")]
    assert kinds.count("evaluation") == 4  # at 0, 400, 800 and 1,000 frames
    assert kinds.count("training") == 5
    assert main(["resume", str(run), "--quiet"]) == 0
    assert main(["evaluate", str(run)]) == 0
    assert "coin on deep_sea/6 after 1,00" in capsys.readouterr().out


def test_it_continues_to_the_bit(coin):
    settings = coin.at_scale("laptop", "deep_sea/6")
    whole, halves = Training(settings), Training(settings)
    for _ in range(40):
        whole.step()
    for _ in range(20):
        halves.step()
    state, halves = halves.state_dict(), Training(settings)
    halves.load_state_dict(state)
    for _ in range(20):
        halves.step()
    np.testing.assert_equal(halves.state_dict(), whole.state_dict())


def test_sweeps_and_forecasts_take_it(coin, tmp_path):
    sweep = replace(
        find("minatar"), games=("deep_sea/6",), agents=("coin",), num_seeds=2, frames=500
    )
    runs = members(sweep)
    assert [run.settings.seed for run in runs] == [0, 1]
    cost = forecast(runs, {}, frame_shapes(runs), {"coin": 100.0}, 1, tmp_path)
    assert cost.frames == 1_000
    assert hasty(runs[0].settings).agent == coin
    with pytest.raises(ValueError, match="agent must have durations to vary; got 'coin'"):
        members(replace(find("small-durations"), agents=("coin",), games=("deep_sea/6",)))


def test_what_it_cannot_do_is_refused_by_name(coin, tmp_path, capsys):
    words = ["train", "coin", "--game", "deep_sea/6", "--out", str(tmp_path / "run")]
    assert main([*words, "--scale", "paper"]) == 2
    assert "--scale must be laptop for coin (paper is for rainbow" in capsys.readouterr().err
    assert main([*words, "--scale", "laptop", "--engine", "ray"]) == 2
    assert (
        "agent must be one of r2d2, r2d2-rnd, r2d2-rnd-literal, r2d2-bootstrap, r2d2-ez, r2d2-tanh "
        "for --engine ray; got" in capsys.readouterr().err
    )


def test_settings_that_build_another_agent_do_not_inherit_a_policy():
    class Renumbered(RainbowSettings):
        pass

    class Rebuilt(RainbowSettings):
        def build(self, spec, *, lanes, seed, device="cpu"):
            return Coin(spec.num_actions, lanes, seed)

    assert Renumbered.policy_module == RainbowSettings.policy_module is not None
    assert Rebuilt.policy_module is None
