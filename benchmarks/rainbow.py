"""What Rainbow costs on one thread: the whole training loop against PFRL's and against its parts.

Both agents play the same game on the same emulator, 84 × 84 × 4 and 18 actions, batches of 32 and
an update every 4 steps, in turns in one run. PFRL's settings are those it publishes for Atari. The
ceiling is the time of a bare update on a batch in hand, four emulator steps and four actions, each
measured alone. CPU seconds. Ours runs as in `ezgreedy train`, whose process keeps freed memory;
PFRL in another process, as it runs by itself. It is not a dependency of this package; without it
that part is left out: `pip install --no-deps pfrl gym==0.26.2`. Run with `make bench`.
"""

import importlib.util
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ezgreedy.agents.presets import RAINBOW
from ezgreedy.atari.emulator import Emulator
from ezgreedy.atari.protocol import Protocol
from ezgreedy.learning import networks
from ezgreedy.learning.learner import Learner, Update
from ezgreedy.learning.settings import MINATAR_TORSO, LearnerSettings, NetworkSettings
from ezgreedy.replay.memory import Batch
from ezgreedy.running.own_process import prepare_process
from ezgreedy.running.settings import RunSettings
from ezgreedy.running.training import Training

GAME, NUM_ACTIONS, BATCH, STEPS_PER_UPDATE = "Freeway", 18, 32, 4
TURNS, STEPS_PER_TURN, CAPACITY, PREFILLED = 6, 40, 20_000, 1_000
ATARI = NetworkSettings(NUM_ACTIONS)
MINATAR = NetworkSettings(6, (4, 10, 10), MINATAR_TORSO, 128, largest_pixel=1.0)


def cpu_seconds(call: Callable[[], object]) -> float:
    """CPU seconds of a call, or what it tells of another process."""
    begin = time.process_time()
    told = call()
    return told if isinstance(told, float) else time.process_time() - begin


class Elsewhere:
    """PFRL's loop in a process of its own, which takes a turn when asked."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        context.Process(target=take_turns, args=(theirs,), daemon=True).start()

    def turn(self) -> float:
        """CPU seconds of a turn."""
        self._ours.send(None)
        return self._ours.recv()


def take_turns(asker: Connection) -> None:
    torch.set_num_threads(1)
    step = pfrl_loop()
    while True:
        try:
            asker.recv()
        except EOFError:  # the run is over
            return
        asker.send(cpu_seconds(lambda: [step() for _ in range(STEPS_PER_TURN)]))


def in_turns(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, np.ndarray]:
    """CPU seconds of one call of each, one row for every turn."""
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(TURNS):
        for name, call in calls.items():
            taken = sum(cpu_seconds(call) for _ in range(repeats))
            seconds[name].append(taken / repeats)
    return {name: np.array(taken) for name, taken in seconds.items()}


def spread(ratios: np.ndarray) -> str:
    return f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


def make_batch(settings: NetworkSettings) -> Batch:
    rng = np.random.default_rng(0)
    shape = (BATCH, *settings.input_shape)
    states, next_states = rng.integers(0, int(settings.largest_pixel) + 1, (2, *shape), np.uint8)
    actions = rng.integers(0, settings.num_actions, BATCH)
    returns = rng.normal(0.0, 1.0, BATCH).astype(np.float32)
    discounts = np.full(BATCH, 0.99**3, dtype=np.float32)
    weights = rng.uniform(0.2, 1.0, BATCH)
    return Batch(states, actions, returns, discounts, next_states, weights, np.arange(BATCH))


def whole_weight(
    inputs: Tensor, mean: Tensor, sigma: Tensor, bias: Tensor, noise: Tensor
) -> Tensor:
    num_inputs = mean.shape[1]
    outer = torch.outer(noise[num_inputs:], noise[:num_inputs])
    return functional.linear(inputs, torch.addcmul(mean, sigma, outer), bias)


def two_products(
    inputs: Tensor, mean: Tensor, sigma: Tensor, bias: Tensor, noise: Tensor
) -> Tensor:
    noise_in, noise_out = noise.split_with_sizes(mean.shape[::-1])
    noisy = functional.linear(inputs * noise_in, sigma)
    return torch.addcmul(functional.linear(inputs, mean, bias), noisy, noise_out)


class Variant(Learner):
    """The learner with one of its ideas undone."""

    def __init__(self, settings: NetworkSettings, undone: str) -> None:
        super().__init__(settings, LearnerSettings(), seed=0)
        self.undone = undone
        if undone == "Adam tensor by tensor":
            for group in self._optimizer.param_groups:
                group["fused"], group["foreach"] = False, False
            self._optimizer._step_supports_amp_scaling = False

    def update(self, batch: Batch) -> Update:
        """An update without the idea."""
        other = {"whole noisy weights": whole_weight, "two products": two_products}
        product = networks.noisy_product
        networks.noisy_product = other.get(self.undone, product)
        try:
            return super().update(batch)
        finally:
            networks.noisy_product = product


def ideas() -> None:
    for name, settings, repeats in (("84 × 84 × 4", ATARI, 2), ("10 × 10 × 4", MINATAR, 20)):
        batch = make_batch(settings)
        undone = ("nothing", "Adam tensor by tensor", "whole noisy weights", "two products")
        learners = {idea: Variant(settings, idea) for idea in undone}
        calls = {idea: partial(made.update, batch) for idea, made in learners.items()}
        taken = in_turns(calls, repeats)
        print(f"{name}: an update takes {1e3 * taken['nothing'].min():.1f} ms; undone, times that:")
        for idea in undone[1:]:
            print(f"  {idea}: {spread(taken[idea] / taken['nothing'])}")


def emulator(seed: int) -> Emulator:
    protocol = Protocol(has_full_action_set=True)
    return Emulator(GAME, protocol, rng=np.random.default_rng(seed))


def our_loop() -> Callable[[], object]:
    """Our training loop once its first update is made, a step at a time."""
    agent = replace(RAINBOW, replay_capacity=CAPACITY, least_replay=PREFILLED)
    training = Training(RunSettings(agent, GAME, protocol=Protocol(has_full_action_set=True)))
    while training.agent.num_updates == 0:
        training.step()
    return training.step


def pfrl_loop() -> Callable[[], None]:
    """PFRL's Rainbow, as its Atari example sets it up, a step at a time."""
    from pfrl import agents, explorers, nn, replay_buffers
    from pfrl.q_functions import DistributionalDuelingDQN

    torch.manual_seed(0)  # noqa: TID251
    network = DistributionalDuelingDQN(NUM_ACTIONS, 51, -10, 10)
    nn.to_factorized_noisy(network, sigma_scale=0.5)
    buffer = replay_buffers.PrioritizedReplayBuffer(
        CAPACITY,
        alpha=0.5,
        beta0=0.4,
        betasteps=5e7 / 4,
        num_steps=3,
        normalize_by_max="memory",
    )
    agent = agents.CategoricalDoubleDQN(
        network,
        torch.optim.Adam(network.parameters(), 6.25e-5, eps=1.5e-4),
        buffer,
        gpu=None,
        gamma=0.99,
        explorer=explorers.Greedy(),
        minibatch_size=BATCH,
        replay_start_size=PREFILLED,
        target_update_interval=32_000,
        update_interval=STEPS_PER_UPDATE,
        batch_accumulator="mean",
        phi=lambda frames: np.asarray(frames, dtype=np.float32) / 255,
    )
    game, rng = emulator(0), np.random.default_rng(2)

    def steps() -> Iterator[None]:
        seen, number = game.reset(), 0
        while True:
            action = agent.act(seen)
            if number < PREFILLED:  # as ours does before its first update
                action = int(rng.integers(NUM_ACTIONS))
            step = game.step(action)
            number += 1
            agent.observe(step.observation, step.clipped_reward, step.terminated, step.truncated)
            is_over = step.terminated or step.truncated
            seen = game.reset() if is_over else step.observation
            if number > PREFILLED:
                yield

    played = steps()
    next(played)
    return lambda: next(played)


def loops() -> None:
    ours, calls = our_loop(), {}
    calls["ours"] = lambda: [ours() for _ in range(STEPS_PER_TURN)]
    game, batch, learner = emulator(3), make_batch(ATARI), Learner(ATARI, LearnerSettings(), seed=1)
    state = game.reset()[None]
    calls["update"] = lambda: [
        learner.update(batch) for _ in range(STEPS_PER_TURN // STEPS_PER_UPDATE)
    ]
    calls["emulator"] = lambda: [game.step(0) for _ in range(STEPS_PER_TURN)]
    calls["acting"] = lambda: [learner.greedy(state) for _ in range(STEPS_PER_TURN)]
    if importlib.util.find_spec("pfrl"):
        calls["PFRL"] = Elsewhere().turn
    else:
        print("PFRL is not there: pip install --no-deps pfrl gym==0.26.2", file=sys.stderr)
    taken = in_turns(calls, 1)
    for name, seconds in taken.items():
        print(f"  {name}: {1e3 * seconds.min() / STEPS_PER_TURN:.2f} ms a step")
    alone = taken["update"] + taken["emulator"] + taken["acting"]
    print(f"  share of the ceiling: {spread(alone / taken['ours'])}")
    if "PFRL" in taken:
        print(f"  agent steps a second, times PFRL's: {spread(taken['PFRL'] / taken['ours'])}")


if __name__ == "__main__":
    prepare_process(threads=1)
    ideas()
    print(f"{GAME}, {NUM_ACTIONS} actions:")
    loops()
