"""What evaluate and watch restore of a run: the policy that an evaluation of the run has."""

from dataclasses import dataclass, replace

import pytest

from ezgreedy.agents import registry
from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
from ezgreedy.agents.rainbow.presets import RAINBOW_PRESETS
from ezgreedy.agents.rainbow.settings import RainbowSettings
from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.games import lanes as lanes_module
from ezgreedy.replay.sequence_replay import SequenceReplay
from ezgreedy.replay.transition_replay import TransitionReplay
from ezgreedy.runs.evaluation import evaluate_agent
from ezgreedy.runs.restored import restore
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.training import Training
from support.small_runs import small_run


def saved(directory, settings, num_steps=150):
    """A training that was saved after some steps, with updates."""
    place = RunDirectory(directory)
    place.create(settings)
    training = Training(settings)
    for _ in range(num_steps):
        training.step()
    assert training.agent.num_updates > 0
    checkpoints = Checkpoints(place.checkpoints, place.identity())
    checkpoints.save(1, {"training": training.state_dict(), "results_offset": 0})
    return training


@pytest.mark.parametrize("agent", [*RAINBOW_PRESETS, *R2D2_PRESETS])
@pytest.mark.parametrize("epsilon", [None, 0.5])
def test_a_restored_policy_plays_as_the_agent_does(agent, epsilon, tmp_path):
    settings = small_run(agent)
    training = saved(tmp_path / "run", settings)
    restored = restore(tmp_path / "run")
    assert restored.frames == training.frames
    longer = replace(settings, evaluation=replace(settings.evaluation, frames=400))
    for number in (0, 7):
        ours = evaluate_agent(longer, restored, number, epsilon=epsilon)
        assert ours == evaluate_agent(longer, training.agent, number, epsilon=epsilon)


@pytest.mark.parametrize("agent", ["rainbow-ez", "rainbow-cts", "r2d2-rnd"])
def test_only_a_policy_and_its_lanes_are_built(agent, tmp_path, monkeypatch):
    settings = replace(small_run(agent), lanes=5)
    saved(tmp_path / "run", settings)
    made = []
    make = lanes_module.make

    def counted(*arguments, **more):
        made.append(arguments)
        return make(*arguments, **more)

    def refused(self, *arguments, **more):
        raise AssertionError("no replay is needed")

    monkeypatch.setattr(lanes_module, "make", counted)
    for replay in (TransitionReplay, SequenceReplay):
        monkeypatch.setattr(replay, "__init__", refused)
    evaluate_agent(settings, restore(tmp_path / "run"), 0)
    assert len(made) == 1 + settings.evaluation.lanes


@dataclass(frozen=True)
class OwnBuild(RainbowSettings):
    """Settings of a plugin that make another agent."""

    def build(self, spec, *, lanes, seed, device="cpu"):
        made.append(lanes)
        return super().build(spec, lanes=lanes, seed=seed, device=device)


made: list[int] = []


def test_an_agent_of_a_plugin_is_built_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_agents", dict(registry._agents))
    usual = small_run()
    own = OwnBuild(**{**vars(usual.agent), "name": "own"})
    registry.register(own)
    settings = replace(usual, agent=own)
    training = saved(tmp_path / "run", settings)
    made.clear()
    ours = evaluate_agent(settings, restore(tmp_path / "run"), 3)
    assert made == [settings.evaluation.lanes]
    assert ours == evaluate_agent(settings, training.agent, 3)


def test_a_state_of_another_network_is_refused(tmp_path):
    settings = small_run("r2d2")
    saved(tmp_path / "run", settings)
    restored = restore(tmp_path / "run")
    larger = replace(settings, agent=replace(settings.agent, hidden_size=9))
    with pytest.raises(ValueError, match=r"state.online.*must be .* of shape"):
        replace(restored, settings=larger).evaluation_policy(1, 0)
