"""The command of a run: reading it gives the run's settings again."""

import shlex
from dataclasses import replace

import pytest

from ezgreedy.agents.presets import PRESETS
from ezgreedy.agents.sequence_presets import SEQUENCE_PRESETS
from ezgreedy.cli import _parser
from ezgreedy.commands.training import _settings
from ezgreedy.exploration.durations import Geometric, PlusOne, Zeta
from ezgreedy.running.command_line import Spread, train_command
from ezgreedy.running.plain import as_plain, from_plain, with_later_settings, with_setting
from ezgreedy.running.scales import laptop_scale, paper_scale
from support.small_runs import small_run


def read(command):
    return _settings(_parser().parse_args([*shlex.split(command)[1:], "--out", "run"]))


@pytest.mark.parametrize("agent", PRESETS)
@pytest.mark.parametrize("scale", [paper_scale, laptop_scale])
@pytest.mark.parametrize("game", ["Freeway", "minatar/breakout"])
def test_reading_the_command_gives_the_settings_again(agent, scale, game):
    settings = replace(scale(PRESETS[agent], game), seed=4, frames=123_456)
    for changed in (
        settings,
        with_setting(settings, "agent.learner.learning_rate", "0.001"),
        with_setting(settings, "agent.sigma0", "none"),
        with_setting(settings, "protocol.has_full_action_set", "no"),
        with_setting(settings, "agent.durations", "Zeta(mu=1.5)"),
        with_setting(settings, "agent.epsilon", "Linear(1, 0.5, 77)"),
        replace(settings, device="cuda", threads=2),
        small_run(agent, game),
    ):
        assert read(train_command(changed)) == changed


def test_a_default_run_needs_few_words():
    assert train_command(laptop_scale(PRESETS["rainbow"], "minatar/breakout")) == (
        "ezgreedy train rainbow --game minatar/breakout --scale laptop"
    )


def test_a_run_on_ray_has_the_command_that_spreads_it_alike():
    settings = laptop_scale(SEQUENCE_PRESETS["r2d2-ez"], "minatar/breakout")
    alone = "ezgreedy train r2d2-ez --game minatar/breakout --scale laptop"
    assert settings.lanes == 16
    assert train_command(settings, Spread(2)) == f"{alone} --engine ray --actors 2"
    more = train_command(replace(settings, lanes=60, seed=3), Spread(20, 4))
    assert more == f"{alone} --seed 3 --engine ray --actors 20 --lanes-per-actor 3 --shards 4"
    uneven = train_command(replace(settings, lanes=5), Spread(2))
    assert uneven == f"{alone} --engine ray --actors 2 --set lanes=5"
    parsed = _parser().parse_args([*shlex.split(more)[1:], "--out", "run"])
    assert (parsed.engine, parsed.actors, parsed.shards) == ("ray", 20, 4)
    assert replace(_settings(parsed), lanes=20 * 3) == replace(settings, lanes=60, seed=3)


def test_what_no_command_can_say_has_none():
    settings = paper_scale(PRESETS["rainbow-ez"], "Freeway")
    nested = replace(settings.agent, durations=PlusOne(Zeta(2.0)))
    assert train_command(replace(settings, agent=nested)) is None
    own = replace(settings.agent, name="mine", durations=Geometric(0.5))
    assert train_command(replace(settings, agent=own)) is None


def test_settings_of_an_earlier_version_get_the_defaults_of_later_ones():
    settings = laptop_scale(PRESETS["rainbow"], "minatar/breakout")
    plain = as_plain(settings)
    del plain["protocol"]["colour"]
    del plain["evaluation"]
    with pytest.raises(ValueError, match="must have the settings"):
        from_plain(plain)
    assert from_plain(with_later_settings(plain)).protocol == settings.protocol
    del plain["game"]
    with pytest.raises(ValueError, match="must have the settings"):
        from_plain(with_later_settings(plain))
