"""The same tape, bit for bit, from NumPy, from compiled code and from tensors."""

import json

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ezgreedy import EZGreedy, Fixed, Geometric, Linear, PlusOne, Uniform, Zeta, ladder
from ezgreedy.compilation import jit
from ezgreedy.exploration import compiled
from ezgreedy.exploration.streams import Purpose, Streams
from ezgreedy.exploration.tensors import TensorEZGreedy
from support.twins import tape

LAWS = [Zeta(), Zeta(cap=20, tail="clip"), Fixed(3), Geometric(0.9), Uniform(6), PlusOne(Zeta())]
each_law = pytest.mark.parametrize("law", LAWS, ids=repr)


# Compiled code.


@jit
def compiled_tape(stream, epsilon, table, num_actions, num_steps):
    actions = np.zeros(num_steps, dtype=np.int64)
    option_action, remaining = 0, 0
    for step in range(num_steps):
        option_action, remaining, exploring = compiled.explore(
            stream, step, epsilon, table, num_actions, option_action, remaining
        )
        actions[step] = option_action if exploring else 0
    return actions


@each_law
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.5, 1.0])
def test_compiled_code_plays_the_tape_of_numpy(law, epsilon):
    fleet = tape(EZGreedy(18, epsilon, law, lanes=40, seed=5, first_lane=3), 500)
    for lane in (0, 1, 17, 39):
        stream = compiled.lane_stream(5, lane + 3)
        played = compiled_tape(stream, epsilon, law.inverse, 18, 500)
        np.testing.assert_array_equal(played, fleet[:, lane])


@jit
def stopped_compiled_tape(stream, epsilon, table, num_actions, ends):
    actions = np.zeros(len(ends), dtype=np.int64)
    option_action, remaining = 0, 0
    for step in range(len(ends)):
        if ends[step]:
            remaining = 0
        option_action, remaining, exploring = compiled.explore(
            stream, step, epsilon, table, num_actions, option_action, remaining
        )
        actions[step] = option_action if exploring else 0
    return actions


@each_law
def test_a_kernel_ends_an_option_by_setting_its_remaining_plays_to_zero(law):
    explore = EZGreedy(18, 0.5, law, lanes=8, seed=5)
    ends = np.random.default_rng(0).random((300, 8)) < 0.2
    fleet = np.array([explore(np.zeros(8, int), ends=row) for row in ends])
    for lane in range(8):
        stream = compiled.lane_stream(5, lane)
        played = stopped_compiled_tape(stream, 0.5, law.inverse, 18, ends[:, lane])
        np.testing.assert_array_equal(played, fleet[:, lane])


def test_compiled_uniforms_equal_those_of_numpy():
    streams = Streams(99, lanes=4)
    words = streams.words(np.arange(300)[:, None])
    for lane in range(4):
        stream = compiled.lane_stream(99, lane)
        for step in (0, 1, 2, 299):
            word = compiled.step_word(stream, step)
            assert np.uint64(word) == words[step, lane]
            assert (
                compiled.coin(np.uint64(word)) == streams.uniforms(words, Purpose.COIN)[step, lane]
            )
            for purpose in (Purpose.ACTION, Purpose.DURATION):
                drawn = compiled.uniform(np.uint64(word), np.uint64(purpose))
                assert drawn == streams.uniforms(words, purpose)[step, lane]


@each_law
def test_compiled_durations_equal_those_of_numpy(law):
    edges = law.inverse.cumulative[:200]
    u = np.concatenate(
        [np.random.default_rng(0).random(2000), edges, np.nextafter(edges, 0), [0.0, 1 - 2.0**-53]]
    )
    u = u[(u >= 0) & (u < 1)]
    drawn = [compiled.duration(value, law.inverse) for value in u]
    np.testing.assert_array_equal(drawn, law.quantile(u))


# Tensors.


def tensor(value):
    return None if value is None else torch.from_numpy(value)


@pytest.mark.parametrize(
    "epsilon", [0.3, ladder(7), Linear(1.0, 0.1, 100)], ids=["number", "ladder", "linear"]
)
@pytest.mark.parametrize("weights", [None, [1, 2, 0, 3, 0.5]], ids=["uniform", "weights"])
@pytest.mark.parametrize("carries", [False, True], ids=["ends", "carries"])
@each_law
def test_tensors_play_the_tape_of_numpy(law, carries, weights, epsilon):
    arguments = (5, epsilon, law, 7, 2**65)
    keywords = {"first_lane": 9, "action_weights": weights, "carries_over_episodes": carries}
    host = EZGreedy(*arguments, **keywords)
    device = TensorEZGreedy(*arguments, **keywords)
    rng = np.random.default_rng(0)
    for _ in range(120):
        greedy = rng.integers(0, 5, 7)
        starts = rng.random(7) < 0.1 if rng.random() < 0.5 else None
        active = rng.random(7) < 0.7 if rng.random() < 0.3 else None
        ends = rng.random(7) < 0.3 if rng.random() < 0.3 else None
        legal = None
        if rng.random() < 0.3:
            legal = rng.random((7, 5)) < 0.7
            legal[np.arange(7), greedy] = legal[:, 0] = True
        stepping = np.ones(7, dtype=bool) if active is None else active
        expected = host(greedy, starts, active, legal, ends)
        masks = [tensor(mask) for mask in (starts, active, legal)]
        actions = device(tensor(greedy), *masks, ends=tensor(ends))
        np.testing.assert_array_equal(actions.numpy()[stepping], expected[stepping])
        np.testing.assert_array_equal(device.exploring.numpy(), host.exploring)
        np.testing.assert_array_equal(device.remaining.numpy(), host.remaining)
        np.testing.assert_array_equal(device.probabilities.numpy(), host.probabilities)
        finished = rng.random(7) < 0.05
        host.reset(finished)
        device.reset(tensor(finished))
    assert device.counters == host.counters
    assert device.state_dict() == host.state_dict()


def test_an_epsilon_on_the_device_is_that_of_the_call():
    host, device = EZGreedy(6, 0.0, lanes=5, seed=1), TensorEZGreedy(6, 0.0, lanes=5, seed=1)
    zeros = torch.zeros(5, dtype=torch.int64)
    for epsilon in (*np.linspace(0, 1, 40).astype(np.float32), *np.tile(ladder(5), (9, 1))):
        host.epsilon = epsilon if np.ndim(epsilon) else float(epsilon)
        actions = device(zeros, epsilon=torch.as_tensor(epsilon))
        np.testing.assert_array_equal(actions.numpy(), host(zeros.numpy()))
    device(zeros, epsilon=torch.tensor(1.5))
    with pytest.raises(ValueError, match="an epsilon beyond 1"):
        device.check()


def test_each_backend_continues_the_checkpoint_of_the_other():
    host, device = EZGreedy(6, 0.3, lanes=5, seed=1), TensorEZGreedy(6, 0.3, lanes=5, seed=1)
    zeros, expected = torch.zeros(5, dtype=torch.int64), EZGreedy(6, 0.3, lanes=5, seed=1)
    for _ in range(4):
        for _ in range(50):
            np.testing.assert_array_equal(host(np.zeros(5, int)), expected(np.zeros(5, int)))
        device.load_state_dict(json.loads(json.dumps(host.state_dict())))
        for _ in range(50):
            np.testing.assert_array_equal(device(zeros).numpy(), expected(np.zeros(5, int)))
        host.load_state_dict(json.loads(json.dumps(device.state_dict())))


def test_a_state_survives_torch_save_with_weights_only(tmp_path):
    explore = EZGreedy(6, 0.3, lanes=5, seed=1)
    tape(explore, 50)
    torch.save(explore.state_dict(), tmp_path / "state.pt")
    assert torch.load(tmp_path / "state.pt", weights_only=True) == explore.state_dict()


class NoReadback(TorchDispatchMode):
    """Fails on any operation that would wait for the device or whose shape depends on values."""

    BANNED = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero", "equal")

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        assert not any(name.startswith(word) for word in self.BANNED), f"{name} reads back"
        assert name != "index" or all(i is None or i.dtype != torch.bool for i in args[1]), (
            "indexing by a mask reads back"
        )
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("epsilon", [0.3, ladder(4), Linear(1.0, 0.1, 50)])
def test_a_tensor_step_never_reads_back_from_the_device(epsilon):
    explore = TensorEZGreedy(5, epsilon, lanes=4, seed=0)
    greedy, mask = torch.zeros(4, dtype=torch.int64), torch.tensor([True, False, True, True])
    legal = torch.ones(4, 5, dtype=torch.bool)
    with NoReadback():
        for _ in range(10):
            explore(greedy)
            explore(greedy, starts=mask, active=mask, legal=legal)
            explore(greedy, epsilon=torch.tensor(0.1))
            _ = explore.exploring, explore.remaining, explore.probabilities
            explore.reset(mask)


def test_reading_back_would_be_noticed():
    with NoReadback(), pytest.raises(AssertionError, match="reads back"):
        torch.ones(1).item()


def test_a_function_of_the_step_works_while_lanes_step_together():
    schedule = Linear(1.0, 0.2, 60)
    host = EZGreedy(5, lambda step: schedule(step), lanes=4, seed=0)
    device = TensorEZGreedy(5, lambda step: schedule(step), lanes=4, seed=0)
    for _ in range(100):
        actions = device(torch.zeros(4, dtype=torch.int64)).numpy()
        np.testing.assert_array_equal(actions, host(np.zeros(4, int)))
    with pytest.raises(ValueError, match="epsilon must be a number, an array or Linear once lanes"):
        device(torch.zeros(4, dtype=torch.int64), active=torch.tensor([True, True, False, True]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"greedy": np.zeros(3, int)}, TypeError, "greedy must be a tensor; got ndarray"),
        ({"greedy": torch.zeros(3)}, TypeError, "greedy must be int64, not torch.float32"),
        ({"greedy": torch.zeros(2, dtype=torch.int64)}, ValueError, r"have shape \(3,\)"),
        ({"starts": torch.zeros(3)}, TypeError, "starts must be a bool tensor"),
        ({"active": torch.ones(2, dtype=torch.bool)}, ValueError, r"active must have shape \(3,\)"),
        ({"ends": torch.ones(2, dtype=torch.bool)}, ValueError, r"ends must have shape \(3,\)"),
        ({"legal": torch.ones(3, 9, dtype=torch.bool)}, ValueError, r"legal must have shape"),
        (
            {"greedy": torch.zeros(3, dtype=torch.int64, device="meta")},
            ValueError,
            "greedy must be on cpu; got device",
        ),
    ],
)
def test_bad_tensors_are_refused_by_name_and_change_nothing(arguments, error, message):
    explore = TensorEZGreedy(4, 0.5, lanes=3)
    explore(torch.zeros(3, dtype=torch.int64))
    state = explore.state_dict()
    with pytest.raises(error, match=message):
        explore(**({"greedy": torch.zeros(3, dtype=torch.int64)} | arguments))
    assert explore.state_dict() == state


@pytest.mark.parametrize(
    ("greedy", "legal"),
    [
        ([0, 1, 4], None),
        ([0, -1, 2], None),
        ([0, 1, 2], [[True] * 4, [True, False, True, True], [True] * 4]),
        ([0, 1, 2], [[True] * 4, [False] * 4, [True] * 4]),
    ],
)
def test_values_out_of_range_are_raised_when_something_is_read_back(greedy, legal):
    explore = TensorEZGreedy(4, 0.0, lanes=3)
    mask = None if legal is None else torch.tensor(legal)
    explore(torch.tensor(greedy), legal=mask)
    with pytest.raises(ValueError, match=r"greedy must lie in \[0, 4\)"):
        explore.state_dict()
