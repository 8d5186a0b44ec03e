"""R2D2 in one process: what it remembers, whom it follows, how often it learns."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from ezgreedy.agents.agent import GameSpec, game_spec
from ezgreedy.agents.play import Play
from ezgreedy.agents.r2d2.actor import SequenceActor, Whereabouts
from ezgreedy.agents.r2d2.agent import R2D2
from ezgreedy.agents.r2d2.bootstrap import ensemble_policy
from ezgreedy.agents.r2d2.learner import initial_priorities
from ezgreedy.agents.r2d2.policy import R2D2Policy
from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
from ezgreedy.exploration.durations import Fixed, Zeta
from ezgreedy.exploration.schedules import ladder
from ezgreedy.games.lanes import Lanes
from ezgreedy.runs.training import Training
from support.small_runs import small_sequence_run

torch.set_num_threads(1)

NEVER = {"least_windows": 75}  # as many as fit: nothing is learned until then


class Recorded:
    """A training whose every value, state and window is written down."""

    def __init__(self, settings):
        self.training = Training(settings)
        self.agent = self.training.agent
        self.lanes = settings.lanes
        self.q, self.states, self.windows, self.starts = {}, {}, [], []
        self.observations = {}
        self._episodes, self._times = [-1] * self.lanes, [0] * self.lanes
        keep = self.agent.replay.add

        def add(window):
            self.windows.append(window)
            return keep(window)

        self.agent.replay.add = add
        act = self.agent.act

        def recorded(observations, starts):
            actions = act(observations, starts)
            self.starts.append(starts.copy())
            h, c = (part.copy() for part in self.agent.actor._recurrence.before)
            for lane in range(self.lanes):
                self._episodes[lane] += starts[lane]
                self._times[lane] = 0 if starts[lane] else self._times[lane] + 1
                where = (lane, self._episodes[lane], self._times[lane])
                self.observations[where] = observations[lane].copy()
                self.q[where] = self.agent.actor._q[lane].copy()
                self.states[where] = (h[lane], c[lane])
            return actions

        self.agent.act = recorded

    def play(self, num_steps):
        for _ in range(num_steps):
            self.training.step()
        return self


@pytest.mark.parametrize("agent", R2D2_PRESETS)
@pytest.mark.parametrize("game", ["minatar/freeway", "minatar/breakout", "memory_chain/5"])
def test_a_stored_window_unrolls_to_the_values_that_were_acted_on(agent, game):
    """With unchanged weights. States of other steps, or after their observation, would show."""
    settings = small_sequence_run(agent, game, preset=NEVER)
    record = Recorded(settings).play(70)
    learner = record.agent.learner
    assert learner.num_updates == 0
    batch = record.agent.replay.sample(4)
    for _ in range(6):
        batch = record.agent.replay.sample(4)
        with torch.no_grad():
            q = learner._unroll(learner.online, learner.windows(batch)).numpy()
        for row, generation in enumerate(batch.generations):
            window = record.windows[generation]
            num_seen = window.length + (0 if window.terminated else 1)
            for step in range(num_seen):
                where = (window.lane, window.episode, window.start + step)
                if where not in record.q:  # the episode was cut off: nobody acted there
                    continue
                acted_on = record.q[where]
                again = q[step, row].reshape(acted_on.shape)
                np.testing.assert_allclose(again, acted_on, rtol=0.0, atol=1e-6)
    if game == "minatar/freeway":
        assert any(window.prefix_length == 2 for window in record.windows)


def test_memories_are_zeros_at_the_start_of_episodes_and_nowhere_else():
    record = Recorded(small_sequence_run("r2d2", "minatar/breakout")).play(80)
    for (_, _, time), (h, c) in record.states.items():
        assert (time == 0) == (not h.any() and not c.any())
    num_episodes = sum(starts.sum() for starts in record.starts)
    assert num_episodes > 10


def test_memories_outlive_a_window_s_end():
    record = Recorded(small_sequence_run("r2d2", "minatar/freeway")).play(30)
    assert [w.start for w in record.windows if w.lane == 0][:3] == [0, 4, 8]
    assert all(record.states[0, 0, time][0].any() for time in range(1, 30))


def test_what_the_network_sees_is_the_last_action_and_its_reward():
    settings = small_sequence_run("r2d2", "memory_chain/3", lanes=2)
    training = Training(settings)
    agent, seen, done = training.agent, [], []
    values = agent.learner.values

    def watched(observations, actions, rewards, state):
        seen.append((actions.copy(), rewards.copy()))
        return values(observations, actions, rewards, state)

    agent.actor._recurrence._values = watched
    for _ in range(12):
        steps = training.step()
        done.append((agent.actor._recurrence._actions.copy(), steps))
    for count in range(1, 12):
        actions, steps = done[count - 1]
        for lane in range(2):
            starts = steps.finished[lane]
            assert seen[count][0][lane] == (-1 if starts else actions[lane])
            assert seen[count][1][lane] == (0.0 if starts else steps.rewards[lane])
    assert any(steps.finished.any() and steps.rewards.any() for _, steps in done)


def test_rewards_are_learned_from_as_they_are():
    record = Recorded(small_sequence_run("r2d2", "memory_chain/2", preset=NEVER)).play(60)
    rewards = np.concatenate([w.blocks[0].rewards for w in record.windows])
    assert set(rewards.tolist()) == {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("agent", ["r2d2", "r2d2-bootstrap"])
@pytest.mark.parametrize("game", ["minatar/breakout", "minatar/freeway"])
def test_first_priorities_are_those_of_the_values_acted_on(agent, game):
    settings = small_sequence_run(agent, game, preset=NEVER)
    settings = replace(settings, protocol=replace(settings.protocol, most_episode_frames=9))
    record = Recorded(settings).play(80)
    preset = settings.agent
    kinds = Counter()
    for window in record.windows:
        ends = (window.lane, window.episode, window.start + window.length)
        if not window.terminated and ends not in record.q:
            kinds["cut"] += 1
            assert window.priority > 0.0
            continue
        kinds["ended" if window.terminated else "going on"] += 1
        places = [(window.lane, window.episode, window.start + t) for t in range(window.length)]
        q = [record.q[place] for place in places]
        q.append(np.zeros_like(q[0]) if window.terminated else record.q[ends])
        actions, rewards = played_in(record, window)
        (expected,) = initial_priorities(
            np.stack(q)[None],
            actions[None],
            rewards[None],
            np.array([window.length]),
            np.array([window.terminated]),
            settings=preset.learner,
            return_settings=preset.returns,
        )
        assert window.priority == pytest.approx(expected, rel=1e-6)
    assert kinds["cut"] > 0
    assert kinds["going on"] > 0
    assert (kinds["ended"] > 0) == (game == "minatar/breakout")


@pytest.mark.parametrize("agent", ["r2d2-rnd", "r2d2-rnd-literal"])
def test_first_priorities_count_bonuses_that_nothing_else_does(agent):
    settings = small_sequence_run(agent, "minatar/freeway", preset=NEVER)
    record = Recorded(settings)
    (rnd,) = record.agent.learning.bonuses
    rnd.moments.update(np.array([-0.1, 0.1]))  # from now on something is paid
    record.play(60)
    assert len(record.windows) > 20
    for window in record.windows:
        places = [(window.lane, window.episode, window.start + t) for t in range(window.length + 1)]
        actions, rewards = played_in(record, window)
        assert set(rewards.tolist()) <= {0.0, 1.0}  # stored as the game paid them
        bonuses = rnd.rewards(np.stack([record.observations[place] for place in places[1:]]))
        assert bonuses.min() > 0.0
        with_bonuses, without = (
            initial_priorities(
                np.stack([record.q[place] for place in places])[None],
                actions[None],
                earned.astype(np.float32)[None],
                np.array([window.length]),
                np.array([False]),
                settings=settings.agent.learner,
                return_settings=settings.agent.returns,
            )[0]
            for earned in (rewards + bonuses, rewards)
        )
        assert with_bonuses != pytest.approx(without, rel=1e-4)
        expected = with_bonuses if agent == "r2d2-rnd" else without
        assert window.priority == pytest.approx(expected, rel=1e-5)


def played_in(record, window):
    """Actions and rewards of a window, put together from the blocks of its episode."""
    blocks = [
        block
        for other in record.windows
        if (other.lane, other.episode) == (window.lane, window.episode)
        for block in other.blocks
    ]
    span = slice(window.start, window.start + window.length)
    actions = np.concatenate([block.actions for block in blocks])[span].astype(np.int64)
    return actions, np.concatenate([block.rewards for block in blocks])[span]


def test_the_value_of_what_follows_a_cut_counts_in_a_first_priority():
    """Otherwise a capped episode's windows would be ranked as if the game had ended there."""
    settings = small_sequence_run("r2d2", "minatar/freeway", preset=NEVER, lanes=1)
    settings = replace(settings, protocol=replace(settings.protocol, most_episode_frames=6))
    record = Recorded(settings)
    learner, ahead = record.agent.learner, []
    values = record.agent.actor._recurrence.ahead

    def watched(observations, lanes):
        ahead.append((observations.copy(), values(observations, lanes)))
        return ahead[-1][1]

    record.agent.actor._recurrence.ahead = watched
    record.play(6)
    (window,) = [w for w in record.windows if w.start == 0]
    batch = record.agent.replay.sample(4)
    row = int(np.flatnonzero(batch.generations == 0)[0])
    with torch.no_grad():
        q = learner._unroll(learner.online, learner.windows(batch)).numpy()
    ((_, following),) = ahead
    np.testing.assert_allclose(q[window.length, row, 0], following[0], atol=1e-6)
    actions, rewards = played_in(record, window)
    q_acted = np.stack([record.q[0, 0, t] for t in range(6)] + [following[0]])
    priorities = [
        initial_priorities(
            q_acted[None],
            actions[None],
            rewards[None],
            np.array([6]),
            np.array([ended]),
            settings=settings.agent.learner,
            return_settings=settings.agent.returns,
        )[0]
        for ended in (False, True)
    ]
    assert window.priority == pytest.approx(priorities[0], rel=1e-6)
    assert abs(priorities[0] - priorities[1]) > 1e-4


@pytest.mark.parametrize("ratio", [0.77, 1.5, 6.0])
def test_samples_per_insert_hold_by_construction(ratio):
    settings = small_sequence_run("r2d2", preset={"samples_per_insert": ratio})
    training = Training(settings)
    agent, batch_size = training.agent, settings.agent.learner.batch_size
    for _ in range(120):
        training.step()
        num_inserted = agent.limiter.num_inserted
        assert num_inserted == agent.replay.num_windows
        allowed = max(0.0, (num_inserted - 10) * ratio)
        num_sampled = agent.num_updates * batch_size
        assert allowed - batch_size < num_sampled <= allowed + 1e-9
    assert agent.num_updates >= 5


@pytest.mark.parametrize("agent", ["r2d2", "r2d2-ez"])
def test_each_lane_has_its_rung_of_the_ladder(agent):
    training = Training(small_sequence_run(agent, lanes=5))
    np.testing.assert_array_equal(training.agent.actor.explorer.epsilon, ladder(5))
    law = Zeta(mu=2.0, cap=10_000) if agent == "r2d2-ez" else Fixed(1)
    assert training.agent.actor.explorer.durations == law


def test_an_equal_budget_explores_as_much_as_plain_epsilon_in_every_lane():
    plain = R2D2_PRESETS["r2d2"].epsilons(7)
    matched = replace(R2D2_PRESETS["r2d2-ez"], matches_budget=True)
    mean, epsilon = matched.durations.mean, matched.epsilons(7)
    np.testing.assert_allclose(epsilon * mean / (1.0 - epsilon + epsilon * mean), plain)
    assert (epsilon < plain).all()
    unmatched = replace(R2D2_PRESETS["r2d2"], matches_budget=True)
    np.testing.assert_allclose(unmatched.epsilons(7), plain)


def test_the_network_is_evaluated_within_options_too():
    settings = small_sequence_run("r2d2-ez", "minatar/freeway", preset={"durations": Fixed(9)})
    record = Recorded(settings).play(40)
    explored = record.agent.actor.explorer.counters.explored
    assert explored > 20
    assert len(record.q) == 40 * settings.lanes
    states = [record.states[0, 0, time][0].tobytes() for time in range(40)]
    assert len(set(states)) == 40


def test_behaviour_probabilities_are_those_of_what_chose_the_action():
    settings = small_sequence_run(
        "r2d2-ez", "minatar/freeway", preset={"durations": Fixed(3), **NEVER}, lanes=2
    )
    record = Recorded(settings).play(40)
    epsilons = record.agent.actor.explorer.epsilon
    found = {0: set(), 1: set()}
    for window in record.windows:
        for block in window.blocks:
            found[window.lane] |= set(block.behaviour_probabilities.tolist())
    for lane, values in found.items():
        epsilon = epsilons[lane]
        possible = [1.0, 1.0 - epsilon + epsilon / 6, epsilon / 6]
        assert all(np.isclose(value, possible, rtol=1e-6).any() for value in values)
    assert 1.0 in found[0]  # within an option nothing else was possible


# Companions.


def test_a_head_is_followed_for_an_episode():
    training = Training(small_sequence_run("r2d2-bootstrap", "memory_chain/4", lanes=4))
    actor, heads, starts = training.agent.actor, [], []
    act = actor.act

    def watched(observations, begins):
        actions = act(observations, begins)
        heads.append(actor.heads.copy())
        starts.append(begins.copy())
        return actions

    training.agent.act = watched
    for _ in range(60):
        training.step()
    changes = [now != before for before, now in itertools.pairwise(heads)]
    for change, begins in zip(changes, starts[1:], strict=True):
        assert not (change & ~begins).any()
    assert sum(change.sum() for change in changes) > 10
    assert {head for row in heads for head in row.tolist()} == {0, 1, 2}


def test_masks_are_drawn_for_every_step():
    settings = small_sequence_run("r2d2-bootstrap", "minatar/freeway", preset=NEVER)
    record = Recorded(settings).play(100)
    masks = np.concatenate([block.masks for w in record.windows for block in w.blocks])
    assert masks.max() < 8
    counts = np.bincount(masks, minlength=8)
    assert (counts > 0).all()
    assert abs((masks & 1).mean() - 0.5) < 0.15
    record = Recorded(small_sequence_run("r2d2", preset=NEVER)).play(30)
    assert {m for w in record.windows for b in w.blocks for m in b.masks.tolist()} == {255}


def test_one_bootstrap_head_that_learns_from_everything_is_r2d2():
    settings = small_sequence_run("r2d2")
    ours = Training(settings)
    single = replace(settings.agent, num_heads=1, mask_probability=1.0)
    theirs = Training(replace(settings, agent=single))
    for _ in range(150):
        left, right = ours.step(), theirs.step()
        np.testing.assert_array_equal(left.observations, right.observations)
    assert ours.agent.num_updates == theirs.agent.num_updates > 5
    for mine, other in zip(
        ours.agent.learner.online.parameters(),
        theirs.agent.learner.online.parameters(),
        strict=True,
    ):
        assert torch.equal(mine, other)


def test_a_bootstrapped_evaluation_mixes_the_heads_policies():
    settings = small_sequence_run("r2d2-bootstrap", "minatar/freeway")
    training = Training(settings)
    observation = training.lanes.reset()[:1]
    learner, lanes, epsilon = training.agent.learner, 2_000, 0.3
    policy = R2D2Policy(learner, lanes, 0, epsilon)
    repeated = np.repeat(observation, lanes, axis=0)
    counts = np.bincount(policy.act(repeated, np.ones(lanes, dtype=np.bool_)), minlength=6)
    state = learner.online.initial_state(1)
    q, _ = learner.values(observation, np.array([-1]), np.zeros(1, np.float32), state)
    expected = ensemble_policy(q[0], epsilon) * lanes
    assert len(set(q[0].argmax(axis=-1).tolist())) > 1  # heads disagree here
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < 35.9  # χ² of 5 degrees of freedom exceeds it once in 10⁶


@pytest.mark.parametrize(("agent", "num_unpaid"), [("r2d2-rnd", 2), ("r2d2-rnd-literal", 0)])
def test_bonuses_are_learned_from_and_never_seen(agent, num_unpaid):
    training = Training(small_sequence_run(agent))
    agent, batches = training.agent, []
    update = agent.learner.update

    def watched(batch):
        batches.append(batch)
        return update(batch)

    agent.learner.update = watched
    while len(batches) < 7:
        training.step()
    for batch in batches[:num_unpaid]:
        np.testing.assert_array_equal(batch.rewards, batch.inputs)
    for batch in batches[num_unpaid:]:
        trained = batch.is_trained(2)
        assert (batch.rewards[trained] > batch.inputs[trained]).any()
        assert set(batch.inputs[trained].tolist()) <= {0.0, 1.0}  # Breakout's own
    measured = agent.measurements()
    assert measured["bonus"] > 0.0
    assert measured["prediction_error_std"] > 0.0


# Evaluation.


@pytest.mark.parametrize("agent", R2D2_PRESETS)
def test_looking_on_changes_nothing(agent):
    settings = small_sequence_run(agent, "memory_chain/4")
    watched, left_alone = Training(settings), Training(settings)
    for count in range(60):
        if count % 20 == 7:
            watched.evaluate()
        left, right = watched.step(), left_alone.step()
        np.testing.assert_array_equal(left.observations, right.observations)
    for mine, other in zip(
        watched.agent.learner.online.parameters(),
        left_alone.agent.learner.online.parameters(),
        strict=True,
    ):
        assert torch.equal(mine, other)
    assert watched.agent.num_updates > 0


def test_evaluation_never_repeats_an_exploratory_action():
    training = Training(small_sequence_run("r2d2-ez", preset={"durations": Fixed(50)}))
    policy = training.agent.evaluation_policy(2, 0, epsilon=0.5)
    assert policy._explorer.durations == Fixed(1)
    assert policy._explorer.epsilon == 0.5
    policy = training.agent.evaluation_policy(2, 0)
    assert policy._explorer.epsilon == 0.001


def test_an_evaluation_remembers_like_training():
    """With ε = 0 and the same observations, the policy's actions are the agent's greedy ones."""
    settings = small_sequence_run("r2d2", "minatar/freeway", preset={"ladder_base": 0.0, **NEVER})
    training = Training(settings)
    policy = training.agent.evaluation_policy(settings.lanes, 0, epsilon=0.0)
    for _ in range(50):
        observations, starts = training.play.observations, training.play.starts
        expected = policy.act(observations, starts)
        steps = training.step()
        np.testing.assert_array_equal(training.agent.actor._recurrence._actions, expected)
        policy.observe(steps)


# Fleets, palettes, bad input.


@pytest.mark.parametrize("agent", ["r2d2-ez", "r2d2-bootstrap"])
def test_what_a_lane_does_depends_on_its_number_in_the_fleet_alone(agent):
    settings = small_sequence_run(agent, "minatar/freeway", lanes=4)
    preset = replace(settings.agent, durations=Zeta(mu=2.0, cap=100))
    tapes = []
    for parts in ([(0, 4)], [(0, 1), (1, 3)]):
        lanes = Lanes(settings.game, 4, settings.protocol, seed=1)
        learner = R2D2(preset, game_spec(lanes), lanes=4, seed=5).learner
        actors = [
            SequenceActor(
                preset, game_spec(lanes), learner.values, Whereabouts(count, first, 4), seed=5
            )
            for first, count in parts
        ]
        observations, starts, tape = lanes.reset(), np.ones(4, dtype=np.bool_), []
        for _ in range(60):
            spans = [slice(first, first + count) for first, count in parts]
            actions = np.concatenate(
                [
                    actor.act(observations[s], starts[s])
                    for actor, s in zip(actors, spans, strict=True)
                ]
            )
            steps = lanes.step(actions)
            windows = []
            for actor, span in zip(actors, spans, strict=True):
                part = type(steps)(**{key: value[span] for key, value in vars(steps).items()})
                actor.observe(part)
                windows += actor.take_windows()
            masks = [(w.lane, w.start, w.blocks[-1].masks.tolist()) for w in windows]
            tape.append((actions.tolist(), sorted(masks)))
            observations, starts = steps.observations, steps.finished
        tapes.append(tape)
    assert tapes[0] == tapes[1]


def test_more_lanes_than_the_fleet_has_are_refused():
    settings = small_sequence_run("r2d2")
    played = game_spec(Lanes(settings.game, 1, settings.protocol, seed=0))
    with pytest.raises(ValueError, match=r"fleet must be at least 6, for the lanes of this actor"):
        SequenceActor(settings.agent, played, None, Whereabouts(4, 2, 5), seed=0)


def test_on_atari_the_network_of_the_whole_agent_has_the_paper_s_size():
    settings = R2D2_PRESETS["r2d2"].at_scale("paper", "MontezumaRevenge")
    lanes = Lanes(settings.game, 1, settings.protocol, seed=0)
    preset = replace(settings.agent, replay_capacity=4_000, least_windows=1)
    agent = R2D2(preset, game_spec(lanes), lanes=1, seed=0)
    assert sum(p.numel() for p in agent.learner.online.parameters()) == 5_705_683
    actions = agent.act(lanes.reset(), np.ones(1, dtype=np.bool_))
    agent.observe(lanes.step(actions))
    assert lanes.frame_dtype == np.uint16


def test_codes_are_seen_as_the_colours_they_stand_for():
    from ezgreedy.games.atari.palette import expand
    from ezgreedy.learning.seeing import Seeing
    from ezgreedy.learning.settings import Sight
    from ezgreedy.learning.tensor_states import tensor

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4335, (5, 2, 7, 6)).astype(np.uint16)
    seen = Seeing(Sight((2, 7, 6), has_codes=True))(tensor(codes, torch.device("cpu")))
    np.testing.assert_array_equal(seen.numpy(), expand(codes).astype(np.float32) / 255.0)


def test_observing_without_acting_is_refused():
    training = Training(small_sequence_run("r2d2"))
    with pytest.raises(RuntimeError, match="observe must follow act"):
        training.agent.observe(None)
    training.agent.act(training.play.observations, training.play.starts)
    with pytest.raises(RuntimeError, match="must not come between act and observe"):
        training.agent.state_dict()


def test_windows_that_nobody_took_are_not_saved_away():
    settings = small_sequence_run("r2d2")
    lanes = Lanes(settings.game, 3, settings.protocol, seed=0)
    agent = R2D2(settings.agent, game_spec(lanes), lanes=3, seed=0)
    play = Play(agent.actor, lanes)
    while not agent.actor._ready:
        play.step()
    with pytest.raises(RuntimeError, match="state_dict must come after take_windows"):
        agent.actor.state_dict()
    assert agent.actor.take_windows()
    agent.actor.state_dict()


def test_convolutions_of_vectors_are_refused_before_anything_is_played():
    settings = small_sequence_run("r2d2")
    vectors = GameSpec(2, (3,), 1, 1.0, np.dtype(np.float32))
    with pytest.raises(ValueError, match="torso must be empty for vectors"):
        R2D2(settings.agent, vectors, lanes=1, seed=0)
