"""What Ray costs, and what each role of a fleet costs: the numbers behind docs/scaling.md.

First the same agent on MinAtar in one process and on Ray with two actors, in turns, in environment
steps per second of wall time after start-up: the same lanes, the same samples per insert. Then each
role of R2D2 at full size alone, in CPU seconds on one thread, and the parts of an update. Last the
coordinator's own work in one turn, against actors in virtual time. `python benchmarks/fleet.py`
does all; `engines`, `roles` or `turns` as an argument does one.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ezgreedy.agents.agent import game_spec
from ezgreedy.agents.r2d2.actor import Whereabouts, codec
from ezgreedy.agents.r2d2.presets import R2D2_EZ
from ezgreedy.agents.run_settings import EvaluationSettings
from ezgreedy.fleet.coordinator import FleetTraining
from ezgreedy.fleet.costs import Costs
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.fleet.ray_run_loop import store_megabytes_needed
from ezgreedy.fleet.roles import ActorRole, Key, LearnerRole, ShardRole
from ezgreedy.fleet.session import LocalSession
from ezgreedy.fleet.transport import num_bytes, pack, unpack
from ezgreedy.fleet.virtual_time import VirtualSupervisor
from ezgreedy.games.lanes import Lanes
from ezgreedy.replay.compressed_batch import BatchDecoder
from ezgreedy.runs.training import Training

TURNS, SECONDS_PER_TURN = 5, 8.0
LANES, UPDATE_BATCH = 16, 8
UPDATES = 3
TURNS_MEASURED = 5_000


def small_settings():
    settings = R2D2_EZ.at_scale("laptop", "minatar/breakout")
    return replace(
        settings,
        frames=10**12,
        lanes=LANES,
        evaluation=EvaluationSettings(frames_between=10**12, frames=16, lanes=1),
    )


def steps_per_second(training, seconds: float) -> float:
    begun, frames = time.monotonic(), training.frames
    while time.monotonic() - begun < seconds:
        training.step()
    return (training.frames - frames) / (time.monotonic() - begun)


def warm_up(training) -> None:
    """Until it learns, and has done so for a while."""
    updates = (lambda: training.agent.num_updates) if hasattr(training, "agent") else None
    while (updates() if updates else training.num_updates) < 50:
        training.step()


def compare_engines() -> None:
    settings, fleet = small_settings(), FleetSettings(actors=2)
    embedded = Training(settings)
    warm_up(embedded)
    megabytes = store_megabytes_needed(settings, fleet)
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalSession(fleet.num_processes, megabytes),
        FleetTraining(settings, fleet, Path(directory)) as on_ray,
    ):
        warm_up(on_ray)
        print(f"start-up of Ray and 5 processes, 50 updates: {time.monotonic() - begun:.0f} s")
        ratios = []
        for turn in range(TURNS):
            one = steps_per_second(embedded, SECONDS_PER_TURN)
            other = steps_per_second(on_ray, SECONDS_PER_TURN)
            ratios.append(other / one)
            view = on_ray.gauges.recent.view()
            print(
                f"turn {turn}: embedded {one:,.0f} steps/s, Ray {other:,.0f}, "
                f"learner waits {view['learner_wait_share']:.0%}, load {os.getloadavg()[0]:.1f}"
            )
        print(
            f"Ray with 2 actors / embedded: {np.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}); goal 0.8"
        )


def cpu_seconds(call: Callable[[], object], repeats: int = 1) -> float:
    call()
    begun = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - begun) / repeats


def print_parts(role: LearnerRole, batch) -> None:
    """What an update consists of, from its compressed batch on: CPU time of all threads."""
    learner = role._learner.learner
    spent: dict[str, float] = {}

    def timed(part: str, call: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object) -> object:
            begun = time.process_time()
            result = call(*arguments)
            spent[part] = spent.get(part, 0.0) + time.process_time() - begun
            return result

        return run

    learner._fields = timed("distinct fields", learner._fields)
    learner._unroll = timed("forwards", learner._unroll)
    learner._optimizer.step = timed("optimiser", learner._optimizer.step)
    backward, torch.autograd.backward = (
        torch.autograd.backward,
        timed("backwards", torch.autograd.backward),
    )
    begun = time.process_time()
    for _ in range(UPDATES):
        role.update(batch)
    whole = time.process_time() - begun
    torch.autograd.backward = backward
    parts = ", ".join(f"{part} {seconds / whole:.1%}" for part, seconds in spent.items())
    print(f"of an update: {parts}; everything else {1.0 - sum(spent.values()) / whole:.1%}")


def measure_roles(game: str) -> None:
    torch.set_num_threads(1)
    settings = R2D2_EZ.at_scale("paper", game)
    learner_settings = replace(settings.agent.learner, batch_size=UPDATE_BATCH)
    agent = replace(
        settings.agent, learner=learner_settings, replay_capacity=40_000, least_windows=1
    )
    settings = replace(settings, agent=agent)
    lanes = Lanes(game, LANES, settings.protocol, seed=0)
    lanes.reset()
    rng = np.random.default_rng(0)
    step = cpu_seconds(lambda: lanes.step(rng.integers(lanes.num_actions, size=LANES)), 20)
    actor = ActorRole()
    actor.begin(settings, 0, Whereabouts(LANES, 0, 320), 0, None)
    play = cpu_seconds(lambda: actor.play(10, 0, None), 2) / 10
    print(
        f"{game}: environment step {1e3 * step / LANES:.2f} ms a lane; with network, "
        f"exploration and cutting {1e3 * play / LANES:.2f} ms a lane ({LANES} lanes)"
    )
    windows = []
    while len(windows) < 32:
        packed = actor.play(40, 0, None)[1]
        windows += unpack(packed) if packed is not None else []
    packed = pack(windows)
    per_window = num_bytes(packed) / len(windows)
    packing = cpu_seconds(lambda: unpack(pack(windows)), 5) / len(windows)
    print(
        f"a window travels as {per_window / 1e3:.1f} kB; packing and unpacking "
        f"{1e6 * packing:.0f} µs"
    )
    with tempfile.TemporaryDirectory() as directory:
        shard = ShardRole()
        shard.begin(settings, game_spec(lanes), 0, 1, directory, None)
        begun = time.process_time()
        shard.add(Key(0, 0, 1), packed)
        add = (time.process_time() - begun) / len(windows)
        draw = cpu_seconds(lambda: shard.sample(8), 20) / 8
        print(f"keeping a window {1e3 * add:.2f} ms; drawing one {1e6 * draw:.0f} µs")
        decoder = BatchDecoder(codec(agent, game_spec(lanes)), agent.sequences)
        drawn, memory = shard.sample(8)[1], np.zeros(decoder.shape(8), decoder.dtype)
        decode = cpu_seconds(lambda: decoder(drawn, memory), 5) / 8
        # One at a time: few windows are here, and those of a batch would share blocks.
        alone = np.mean([shard.sample(1)[1].num_bytes for _ in range(200)])
        print(
            f"on its way to the learner it has {alone / 1e3:.1f} kB, and "
            f"{memory[0].nbytes / 1e6:.1f} MB once it is decoded, in {1e3 * decode:.2f} ms"
        )
        learner = LearnerRole()
        learner.begin(settings, game_spec(lanes), None)
        batch = shard.sample(UPDATE_BATCH)[1]
        update = cpu_seconds(lambda: learner.update(batch)) / UPDATE_BATCH
        print(f"an update takes {update:.3f} s for each window of its batch")
        print_parts(learner, batch)
        begun = time.process_time()
        _, weights = learner.weights()
        size = sum(array.nbytes for array in weights.values())
        print(f"weights: {size / 1e6:.1f} MB, {1e3 * (time.process_time() - begun):.0f} ms")


def measure_turns() -> None:
    """CPU time of a turn, all of it: requests, bookkeeping, and the virtual clock besides."""
    times = {}
    for actors in (20, 320, 1000):
        settings = replace(R2D2_EZ.at_scale("paper", "minatar/breakout"), lanes=actors)
        settings = replace(settings, agent=replace(settings.agent, least_windows=10))
        supervisor = VirtualSupervisor(Costs(start=0.0, send=0.0, call=1e-5))
        fleet = FleetSettings(actors=actors, shards=8 if actors >= 8 else 1)
        with FleetTraining(settings, fleet, Path("unused"), supervisor) as training:
            for _ in range(10 * actors):
                training.step()
            asked, begun = supervisor.num_asked, time.process_time()
            for _ in range(TURNS_MEASURED):
                training.step()
            times[actors] = (time.process_time() - begun) / TURNS_MEASURED
            calls = (supervisor.num_asked - asked) / TURNS_MEASURED
        print(
            f"{actors} actors of one lane: {1e3 * times[actors]:.3f} ms a turn, {calls:.1f} calls"
        )
    print(
        f"1,000 actors / 20: {times[1000] / times[20]:.2f}; "
        f"a turn at 1,000: {1e3 * times[1000]:.3f} ms; goal at most 2"
    )


if __name__ == "__main__":
    asked = sys.argv[1:] or ["engines", "roles", "turns"]
    if "turns" in asked:
        measure_turns()
    if "roles" in asked:
        for name in ("Breakout", "MontezumaRevenge"):
            measure_roles(name)
    if "engines" in asked:
        compare_engines()
