"""What Rainbow costs on one thread: the whole training loop against PFRL's and against its parts.

Two sizes: the paper's Rainbow, with the console's 18 actions and an update every 4 steps, and
data-efficient Rainbow (`--scale atari100k`), with an update every step. Every loop plays on the
same emulator with the same network and settings, in turns in one run, each in a process of its own:

- ours: as in `ezgreedy train`, whose process keeps freed memory;
- plain: ours by torch's convolutions, autograd and Adam, which is the formulation it is tested
  against;
- PFRL's Rainbow, as it runs by itself. It is not a dependency of this package; without it that part
  is left out: `pip install --no-deps pfrl gym==0.26.2 gym_notices`.

The ceiling is the time of a bare update on a batch in hand, the emulator's steps and the actions,
each measured alone. CPU seconds. Run with `make bench`, or with the names of games.
"""

import importlib.util
import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from ezgreedy.agents.rainbow.learner import Learner
from ezgreedy.agents.rainbow.presets import RAINBOW
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.games.atari.emulator import Emulator
from ezgreedy.games.protocol import Protocol
from ezgreedy.runs.process_setup import prepare_process
from ezgreedy.runs.training import Training

GAMES = ("Freeway", "Breakout", "MsPacman", "Pong", "UpNDown")
TURNS, STEPS_PER_TURN, PREFILLED = 7, 40, 1_600


def settings_of(size: str, game: str) -> RunSettings:
    """A run of a size, with a replay that is soon filled far enough."""
    if size == "DER":
        return RAINBOW.at_scale("atari100k", game)
    agent = replace(RAINBOW, replay_capacity=20_000, least_replay=PREFILLED)
    return RunSettings(agent, game, protocol=Protocol(has_full_action_set=True))


def make_plain(learner: Learner) -> None:
    """Undo everything that is not torch's own."""
    for network in (learner.online, learner.target, learner._actor):
        network.torso.largest_share = 0.0
    learner._written = None


def our_loop(settings: RunSettings, *, is_plain: bool = False) -> Callable[[], object]:
    """Our training loop once its first updates are made, a step at a time."""
    prepare_process(threads=1)
    training = Training(settings)
    learner = training.agent.learner  # type: ignore[attr-defined]
    if is_plain:
        make_plain(learner)
    while training.agent.num_updates < 4:
        training.step()
    return training.step


def pfrl_network(settings: RunSettings, num_actions: int) -> Any:
    """PFRL's network for Atari, or the same of another size."""
    from pfrl import nn
    from pfrl.q_functions import DistributionalDuelingDQN

    torch.manual_seed(0)  # noqa: TID251
    network = DistributionalDuelingDQN(num_actions, 51, -10, 10)
    if settings.agent.torso != RAINBOW.torso:
        size, layers = settings.agent.hidden_size, []
        channels = 4
        for row in settings.agent.torso:
            layers.append(torch.nn.Conv2d(channels, row.channels, row.size, row.stride))
            channels = row.channels
        network.conv_layers = torch.nn.ModuleList(layers)
        network.main_stream = torch.nn.Linear(576, 2 * size)
        network.a_stream = torch.nn.Linear(size, num_actions * 51)
        network.v_stream = torch.nn.Linear(size, 51)
    nn.to_factorized_noisy(network, sigma_scale=0.5)
    return network


def pfrl_loop(settings: RunSettings) -> Callable[[], None]:
    """PFRL's Rainbow with the same settings, a step at a time."""
    from pfrl import agents, explorers, replay_buffers

    torch.set_num_threads(1)
    preset, learner = settings.agent, settings.agent.learner
    game = Emulator(settings.game, settings.protocol, rng=np.random.default_rng(0))
    network = pfrl_network(settings, game.num_actions)
    buffer = replay_buffers.PrioritizedReplayBuffer(
        preset.replay_capacity,
        alpha=0.5,
        beta0=0.4,
        betasteps=1e5,
        num_steps=learner.num_steps,
        normalize_by_max="memory",
    )
    agent = agents.CategoricalDoubleDQN(
        network,
        torch.optim.Adam(network.parameters(), learner.learning_rate, eps=learner.adam_epsilon),
        buffer,
        gpu=None,
        gamma=learner.discount,
        explorer=explorers.Greedy(),
        minibatch_size=learner.batch_size,
        replay_start_size=preset.least_replay,
        target_update_interval=2_000 * preset.steps_per_update,
        update_interval=preset.steps_per_update,
        batch_accumulator="mean",
        phi=lambda frames: np.asarray(frames, dtype=np.float32) / 255,
    )
    rng, num_random = np.random.default_rng(2), preset.least_replay + learner.num_steps + 4
    seen, number = game.reset(), 0

    def step() -> None:
        nonlocal seen, number
        action = agent.act(seen)
        if number < num_random:  # as ours before its first update
            action = int(rng.integers(game.num_actions))
        made = game.step(action)
        number += 1
        agent.observe(made.observation, made.clipped_reward, made.terminated, made.truncated)
        seen = game.reset() if made.terminated or made.truncated else made.observation

    for _ in range(num_random):
        step()
    return step


def parts(settings: RunSettings) -> Callable[[], None]:
    """What a step cannot do without: its share of an update, the emulator, an action."""
    prepare_process(threads=1)
    training = Training(settings)
    while training.agent.num_updates < 4:
        training.step()
    agent: Any = training.agent
    batch = agent.replay.sample(settings.agent.learner.batch_size)
    actions, period = np.zeros(1, dtype=np.int64), settings.agent.steps_per_update
    count = 0

    def step() -> None:
        nonlocal count
        agent.learner.greedy(training.play.observations)
        training.lanes.step(actions)
        count += 1
        if count % period == 0:
            agent.learner.update(batch)

    return step


LOOPS: dict[str, Callable[[RunSettings], Callable[[], object]]] = {
    "ours": our_loop,
    "plain": lambda settings: our_loop(settings, is_plain=True),
    "its parts": parts,
    "PFRL": pfrl_loop,
}


class Elsewhere:
    """A loop in a process of its own, which takes a turn when asked."""

    def __init__(self, name: str, size: str, game: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        arguments = (theirs, name, size, game)
        self._process = context.Process(target=take_turns, args=arguments, daemon=True)
        self._process.start()
        self._ours.recv()

    def turn(self) -> float:
        """CPU seconds of a step."""
        self._ours.send(None)
        return self._ours.recv()

    def end(self) -> None:
        """Ends the process."""
        self._ours.close()
        self._process.join()


def take_turns(asker: Connection, name: str, size: str, game: str) -> None:
    step = LOOPS[name](settings_of(size, game))
    for _ in range(8):
        step()
    asker.send(None)
    while True:
        try:
            asker.recv()
        except EOFError:  # the run is over
            return
        begin = time.process_time()
        for _ in range(STEPS_PER_TURN):
            step()
        asker.send((time.process_time() - begin) / STEPS_PER_TURN)


def spread(ratios: np.ndarray) -> str:
    return f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


def compare(size: str, game: str) -> dict[str, np.ndarray]:
    """CPU seconds of a step of every loop, turn by turn."""
    names = [name for name in LOOPS if name != "PFRL" or importlib.util.find_spec("pfrl")]
    loops = {name: Elsewhere(name, size, game) for name in names}
    taken: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(TURNS):
        for name, loop in loops.items():
            taken[name].append(loop.turn())
    for loop in loops.values():
        loop.end()
    return {name: np.array(seconds) for name, seconds in taken.items()}


def main(games: tuple[str, ...]) -> None:
    if not importlib.util.find_spec("pfrl"):
        print("PFRL is not there: pip install --no-deps pfrl gym==0.26.2 gym_notices")
    for size in ("DER", "full size"):
        medians = []
        for game in games:
            taken = compare(size, game)
            ours = taken["ours"]
            print(f"{size}, {game}: a step takes {1e3 * ours.min():.2f} ms; times that:")
            for name in ("plain", "PFRL"):
                if name in taken:
                    print(f"  {name}: {spread(taken[name] / ours)}")
            print(f"  share of the ceiling of its parts: {spread(taken['its parts'] / ours)}")
            if "PFRL" in taken:
                medians.append(float(np.median(taken["PFRL"] / ours)))
        if medians:
            print(f"{size}: PFRL, median over games: {np.median(medians):.2f}")


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or GAMES)
