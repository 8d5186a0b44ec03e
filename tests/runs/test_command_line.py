"""The command of a run: reading it gives the run's settings again."""

import shlex
from dataclasses import replace

import pytest

from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
from ezgreedy.agents.rainbow.presets import RAINBOW_PRESETS
from ezgreedy.cli import _parser
from ezgreedy.commands.train import _settings
from ezgreedy.exploration.durations import Geometric, PlusOne, Zeta
from ezgreedy.runs.command_line import Spread, train_command
from ezgreedy.runs.settings_codec import as_plain, from_plain, with_later_settings, with_setting
from support.small_runs import small_run


def read(command):
    return _settings(_parser().parse_args([*shlex.split(command)[1:], "--out", "run"]))


@pytest.mark.parametrize("agent", RAINBOW_PRESETS)
@pytest.mark.parametrize("scale", ["paper", "laptop"])
@pytest.mark.parametrize("game", ["Freeway", "minatar/breakout"])
def test_reading_the_command_gives_the_settings_again(agent, scale, game):
    settings = replace(RAINBOW_PRESETS[agent].at_scale(scale, game), seed=4, frames=123_456)
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
    assert train_command(RAINBOW_PRESETS["rainbow"].at_scale("laptop", "minatar/breakout")) == (
        "ezgreedy train rainbow --game minatar/breakout --scale laptop"
    )


def test_a_run_on_ray_has_the_command_that_spreads_it_alike():
    settings = R2D2_PRESETS["r2d2-ez"].at_scale("laptop", "minatar/breakout")
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
    settings = RAINBOW_PRESETS["rainbow-ez"].at_scale("paper", "Freeway")
    nested = replace(settings.agent, durations=PlusOne(Zeta(2.0)))
    assert train_command(replace(settings, agent=nested)) is None
    own = replace(settings.agent, name="mine", durations=Geometric(0.5))
    assert train_command(replace(settings, agent=own)) is None


def test_settings_of_an_earlier_version_get_the_defaults_of_later_ones():
    settings = RAINBOW_PRESETS["rainbow"].at_scale("laptop", "minatar/breakout")
    plain = as_plain(settings)
    del plain["protocol"]["colour"]
    del plain["evaluation"]
    with pytest.raises(ValueError, match="must have the settings"):
        from_plain(plain)
    assert from_plain(with_later_settings(plain)).protocol == settings.protocol
    del plain["game"]
    with pytest.raises(ValueError, match="must have the settings"):
        from_plain(with_later_settings(plain))
