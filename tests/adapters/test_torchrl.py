"""TorchRL, with the real library."""

import functools

import numpy as np
import pytest

from support.libraries import library
from support.pages import run_page

library("torchrl", "torchrl.collectors", "torchrl.envs", "torchrl.modules")

import torch  # noqa: E402
from tensordict import TensorDict  # noqa: E402
from tensordict.nn import TensorDictSequential  # noqa: E402
from torch import nn  # noqa: E402
from torchrl.collectors import Collector, MultiSyncCollector  # noqa: E402
from torchrl.data import Bounded, Categorical, Composite, MultiCategorical, OneHot  # noqa: E402
from torchrl.envs import (  # noqa: E402
    ExplorationType,
    GymEnv,
    GymWrapper,
    InitTracker,
    SerialEnv,
    TransformedEnv,
    set_exploration_type,
)
from torchrl.modules import EGreedyModule, QValueActor  # noqa: E402

from ezgreedy import EZGreedy, Fixed, Zeta  # noqa: E402
from ezgreedy.adapters.torchrl import EZGreedyModule  # noqa: E402
from ezgreedy.testing import AdaptedAgent, check_adapter  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
RANDOM, GREEDY = ExplorationType.RANDOM, ExplorationType.DETERMINISTIC


def wrapped(make, categorical):
    return GymWrapper(make(), categorical_action_encoding=categorical)


def envs(trial, categorical=True):
    makers = [
        functools.partial(wrapped, functools.partial(trial.make_env, lane), categorical)
        for lane in range(trial.lanes)
    ]
    return TransformedEnv(SerialEnv(trial.lanes, makers), InitTracker())


def actor_for(env, categorical=True):
    network = nn.Linear(3, 5)
    return QValueActor(
        network,
        in_keys=["observation"],
        spec=env.action_spec_unbatched,
        action_space="categorical" if categorical else "one_hot",
    )


class TorchRLAgent(AdaptedAgent):
    categorical = True

    def __init__(self, trial):
        self.trial, self.batches = trial, []
        self.env = envs(trial, self.categorical)
        first, last = trial.epsilon
        self.actor = actor_for(self.env, self.categorical)
        self.module = EZGreedyModule(
            self.env.action_spec,
            eps_init=first,
            eps_end=last,
            annealing_num_steps=trial.num_steps,
            durations=trial.durations,
            seed=trial.seed,
        )
        self.policy = TensorDictSequential(self.actor, self.module)
        self.collector = None

    def collect(self, num_steps):
        if self.collector is None:
            self.collector = Collector(
                self.env,
                self.policy,
                frames_per_batch=self.trial.lanes,
                total_frames=-1,
                exploration_type=RANDOM,
            )
            self.batch = iter(self.collector)
        for _ in range(num_steps):
            self.batches.append(next(self.batch).cpu())
            self.module.step()

    def epsilon(self, lane):
        return float(self.module.eps)

    def greedy(self, observation):
        with torch.no_grad(), set_exploration_type(GREEDY):
            seen = TensorDict({"observation": torch.as_tensor(observation)[None]}, [1])
            action = self.actor(seen)["action"]
        return int(action if self.categorical else action.argmax(-1))

    def stored(self):
        for batch in self.batches:
            flat = batch.reshape(-1)
            for observation, action in zip(flat["observation"], flat["action"], strict=True):
                yield observation, int(action if self.categorical else action.argmax())

    def evaluate(self, env):
        single = TransformedEnv(GymWrapper(env, categorical_action_encoding=self.categorical))
        with torch.no_grad(), set_exploration_type(GREEDY):
            single.append_transform(InitTracker()).rollout(100, self.policy)

    def exploration_state(self):
        return self.module.get_extra_state()

    def save(self, directory):
        torch.save(self.policy.state_dict(), directory / "policy.pt")

    @classmethod
    def restored(cls, directory, trial):
        agent = cls(trial)
        agent.policy.load_state_dict(torch.load(directory / "policy.pt", weights_only=True))
        return agent


class OneHotAgent(TorchRLAgent):
    categorical = False


@pytest.mark.parametrize("agent", [TorchRLAgent, OneHotAgent])
def test_it_conforms(agent):
    assert not check_adapter(agent).skipped


def test_it_conforms_with_one_environment():
    check_adapter(TorchRLAgent, lanes=1)


# A drop-in for EGreedyModule.


def test_epsilon_and_its_buffers_are_those_of_the_library():
    spec = OneHot(4)
    ours = EZGreedyModule(spec, 0.9, 0.1, 50, device="cpu")
    theirs = EGreedyModule(spec, 0.9, 0.1, 50, device="cpu")
    assert set(theirs.state_dict()) == set(ours.state_dict()) - {"_extra_state"}
    for _ in range(70):
        ours.step(3), theirs.step(3)
        assert ours.eps == theirs.eps
    assert isinstance(ours, EGreedyModule)


def steps(*starts, action=0, num_actions=5, mask=None):
    """A batch of environments as the module sees it."""
    count = len(starts)
    entries = {
        "action": torch.full((count,), action),
        "is_init": torch.tensor(starts)[:, None],
    }
    if mask is not None:
        entries["mask"] = mask
    return TensorDict(entries, [count])


def played(module, count, lanes=4, mask=None, starts=False):
    with set_exploration_type(RANDOM):
        return torch.stack(
            [module(steps(*[starts] * lanes, mask=mask))["action"] for _ in range(count)]
        ).numpy()


def test_it_plays_the_tape_of_the_core():
    module = EZGreedyModule(Categorical(5), 0.25, 0.25, durations=Zeta(cap=20), seed=3)
    explore = EZGreedy(5, 0.25, Zeta(cap=20), lanes=4, seed=3)
    expected = np.array([explore(np.zeros(4, dtype=int)) for _ in range(100)])
    np.testing.assert_array_equal(played(module, 100), expected)
    assert module.explore.counters == explore.counters


@pytest.mark.parametrize("kind", [GREEDY, ExplorationType.MODE, ExplorationType.MEAN])
def test_other_exploration_types_change_neither_actions_nor_state(kind):
    module = EZGreedyModule(Categorical(5), 1.0, 1.0, seed=3)
    played(module, 7)
    state = module.get_extra_state()
    with set_exploration_type(kind):
        assert module(steps(False, False, False, False, action=2))["action"].tolist() == [2] * 4
        assert module(steps(True, action=2))["action"].tolist() == [2]  # any number of environments
    assert module.get_extra_state() == state


def test_a_step_asked_about_twice_is_answered_alike_and_counted_once():
    module = EZGreedyModule(Categorical(5), 0.5, 0.5, durations=Fixed(2), seed=3)
    once = EZGreedyModule(Categorical(5), 0.5, 0.5, durations=Fixed(2), seed=3)
    with set_exploration_type(RANDOM):
        for _ in range(20):
            step = steps(False, False, True, False)
            expected = once(step.clone())["action"]
            for greedy in (4, 0):  # lanes that do not explore follow the greedy action at hand
                step["action"].fill_(greedy)
                again = module(step.copy())["action"]
                assert again.where(module.explore.exploring, 0).equal(
                    expected.where(module.explore.exploring, 0)
                )
                assert (again[~module.explore.exploring] == greedy).all()
    assert module.explore.steps.tolist() == [20] * 4


def test_masks_are_respected():
    mask = torch.tensor([[True, False, True, False, False]]).repeat(4, 1)
    module = EZGreedyModule(Categorical(5), 1.0, 1.0, action_mask_key="mask", seed=3)
    assert set(played(module, 60, mask=mask).ravel()) == {0, 2}


def test_nested_keys_and_composite_specs_work():
    spec = Composite({"agent": Composite({"action": Categorical(5)})})
    module = EZGreedyModule(
        spec, 1.0, 1.0, action_key=("agent", "action"), init_key=("agent", "is_init"), seed=3
    )
    nested = TensorDict({"agent": steps(True, False, False)}, [])
    nested["agent"] = steps(True, False, False)
    with set_exploration_type(RANDOM):
        module(nested)
    expected = EZGreedy(5, 1.0, lanes=3, seed=3)(np.zeros(3, dtype=int))
    assert nested["agent", "action"].tolist() == expected.tolist()


def test_batches_of_any_shape_work():
    module = EZGreedyModule(Categorical(5), 1.0, 1.0, durations=Fixed(4), seed=3)
    batch = TensorDict(
        {
            "action": torch.zeros(2, 3, dtype=torch.int64),
            "is_init": torch.zeros(2, 3, 1, dtype=torch.bool),
        },
        [2, 3],
    )
    expected = EZGreedy(5, 1.0, Fixed(4), lanes=6, seed=3)
    with set_exploration_type(RANDOM):
        for _ in range(9):
            actions = module(batch.clone())["action"]
            np.testing.assert_array_equal(actions.numpy().ravel(), expected(np.zeros(6, dtype=int)))
    single = EZGreedyModule(Categorical(5), 1.0, 1.0, seed=3)
    with set_exploration_type(RANDOM):
        alone = TensorDict({"action": torch.tensor(0), "is_init": torch.tensor([True])}, [])
        assert single(alone)["action"].shape == ()


# Collectors and checkpoints.


def test_worker_processes_of_a_collector_explore_differently():
    make = functools.partial(GymEnv, "CartPole-v1", categorical_action_encoding=True)
    env = TransformedEnv(make(), InitTracker())
    actor = QValueActor(
        nn.Linear(4, 2), in_keys=["observation"], spec=env.action_spec, action_space="categorical"
    )
    module = EZGreedyModule(env.action_spec, 1.0, 1.0, durations=Fixed(1), seed=3)
    collector = MultiSyncCollector(
        [functools.partial(tracked, make)] * 2,
        TensorDictSequential(actor, module),
        frames_per_batch=80,
        total_frames=80,
        exploration_type=RANDOM,
        cat_results="stack",
    )
    try:
        actions = next(iter(collector))["action"]
    finally:
        collector.shutdown()
    assert actions.shape == (2, 40)
    assert not actions[0].equal(actions[1])
    assert module.explore is None  # this copy has never explored


def tracked(make):
    return TransformedEnv(make(), InitTracker())


def test_a_state_mid_option_continues_in_another_module():
    module = EZGreedyModule(Categorical(5), 0.3, 0.3, durations=Fixed(7), seed=3)
    played(module, 30)
    other = EZGreedyModule(Categorical(5), 0.3, 0.3, durations=Fixed(7), seed=99)
    other.load_state_dict(module.state_dict())
    assert other.get_extra_state()["remaining"] == module.get_extra_state()["remaining"]
    np.testing.assert_array_equal(played(other, 50), played(module, 50))


def test_a_state_of_the_librarys_module_loads_with_a_warning():
    theirs, ours = (
        EGreedyModule(Categorical(5), 0.9, 0.1, 50),
        EZGreedyModule(Categorical(5), 0.9, 0.1, 50),
    )
    theirs.step(20)
    with pytest.warns(UserWarning, match="saved without εz-greedy: its options begin now"):
        ours.load_state_dict(theirs.state_dict())
    assert ours.eps == theirs.eps
    nested = TensorDictSequential(ours)
    with pytest.warns(UserWarning, match="saved without εz-greedy"):
        nested.load_state_dict(TensorDictSequential(theirs).state_dict())


def test_another_number_of_environments_continues_with_a_warning():
    module = EZGreedyModule(Categorical(5), 1.0, 1.0, seed=3)
    played(module, 10)
    other = EZGreedyModule(Categorical(5), 1.0, 1.0, seed=3)
    other.load_state_dict(module.state_dict())
    with pytest.warns(UserWarning, match="saved with 4 environments, continued with 2"):
        played(other, 1, lanes=2)
    assert other.explore.steps.tolist() == [11, 11]
    assert other.explore.counters.steps == other.explore.counters.explored == 4 * 10 + 2


# What a module says about itself.


def test_it_shows_its_settings():
    module = EZGreedyModule(
        Categorical(5), 0.9, 0.1, 50, durations=Fixed(3), seed=3, action_mask_key="mask"
    )
    module.step(5)
    settings = (
        "num_actions=5, eps=0.82, eps_init=0.9, eps_end=0.1, annealing_num_steps=50, "
        "durations=Fixed(n=3), seed=3"
    )
    assert module.extra_repr() == settings
    assert repr(module) == (
        f"EZGreedyModule(\n    {settings},\n"
        "    in_keys=['action', 'mask', 'is_init'],\n    out_keys=['action'])"
    )
    assert settings in repr(TensorDictSequential(module))
    assert repr(EZGreedyModule(Categorical(5), seed=3, first_lane=8)).count("seed=3, first_lane=8")
    assert "eps=tensor(..., device='meta'" in repr(module.to("meta"))


def test_the_seed_shown_is_the_one_in_force():
    saved, module = (EZGreedyModule(Categorical(5), 1.0, 1.0, seed=seed) for seed in (3, 4))
    played(saved, 10)
    module.load_state_dict(saved.state_dict())
    assert "seed=3" in repr(module)
    played(module, 1)
    assert "seed=3" in repr(module)


# Bad input.


@pytest.mark.parametrize(
    "spec",
    [Bounded(-1, 1, (2,)), MultiCategorical([2, 3]), Composite({"action": Bounded(0, 1, (1,))})],
)
def test_other_action_specs_are_refused_with_the_way(spec):
    with pytest.raises(TypeError, match=r"(?s)be a OneHot or Categorical .*in a transform"):
        EZGreedyModule(spec)


def test_without_init_tracker_the_way_is_named():
    module = EZGreedyModule(Categorical(5))
    with (
        set_exploration_type(RANDOM),
        pytest.raises(ValueError, match=r"have an entry 'is_init': append InitTracker\(\)"),
    ):
        module(TensorDict({"action": torch.zeros(2, dtype=torch.int64)}, [2]))


def test_environments_that_change_between_calls_are_refused_with_the_way():
    module = EZGreedyModule(Categorical(5), seed=3)
    played(module, 5, lanes=4)
    state = module.get_extra_state()
    message = "be called with 4 environments as before: give every collector .*; got 3"
    with pytest.raises(ValueError, match=message):
        played(module, 1, lanes=3)
    assert module.get_extra_state() == state


def test_settings_out_of_range_are_refused():
    with pytest.raises(TypeError, match="durations must be a duration law"):
        EZGreedyModule(Categorical(5), durations=3)
    with pytest.raises(ValueError, match="first_lane must be at least 0"):
        EZGreedyModule(Categorical(5), first_lane=-1)


def test_the_page_runs(tmp_path):
    assert "exploratory" in run_page("docs/adapters/torchrl.md", tmp_path)
