"""What the tabular study costs, as ratios to a C loop and to bsuite, measured in the same run.

DeepSea of size 20, Q-learning with εz-greedy and the paper's settings. All three do the same work:
the C loop and the kernel end with the same table, bit for bit. CPU seconds, in turns, the smallest
of each kept. Last, what more seeds cost and what a second process saves, which is a matter of the
clock on the wall. Needs gcc and bsuite. Run with `make bench`.
"""

import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ezgreedy.envs.deep_sea import DeepSea
from ezgreedy.experiments.paper import fig3_deepsea
from ezgreedy.experiments.workers import Job, Workers
from ezgreedy.exploration.compiled import lane_stream
from ezgreedy.exploration.durations import Fixed, Zeta
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.kernels.policies import Exploration, exploration
from ezgreedy.kernels.q_learning_runs import (
    Budget,
    rule,
    run_deep_sea,
    sea_of,
)

SIZE, NUM_EPISODES, NUM_LOOP_EPISODES = 20, 100_000, 100
EPSILON = 1.0 / (SIZE + 1)
TURNS = 5
NUM_JOBS, NUM_JOB_EPISODES = 64, 2_000_000


def cpu_seconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def compiled_c(directory: Path) -> ctypes.CDLL:
    library = directory / "deep_sea.so"
    source = Path(__file__).with_name("deep_sea.c")
    command = ["gcc", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(library), str(source), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def c_loop(library: ctypes.CDLL, policy: Exploration, num_episodes: int) -> Callable[[], object]:
    """The C loop as a call that returns its table of values."""
    stream, env = lane_stream(0, 0), DeepSea(SIZE)
    real, whole = ctypes.c_double, ctypes.c_int64

    def pointer(array: np.ndarray) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    def run() -> np.ndarray:
        values, returns = np.zeros(((SIZE + 1) * SIZE, 2)), np.zeros(num_episodes)
        library.train(
            ctypes.c_uint64(int(stream.offset)),
            ctypes.c_uint64(int(stream.multiplier)),
            real(policy.epsilon),
            pointer(policy.durations.cumulative),
            pointer(policy.durations.guide),
            pointer(env.mapping),
            whole(SIZE),
            real(env.right_cost),
            real(1.0),
            real(1.0),
            whole(num_episodes),
            pointer(values),
            pointer(returns),
        )
        return values

    return run


def kernel(policy: Exploration, num_episodes: int) -> Callable[[], np.ndarray]:
    sea = sea_of(DeepSea(SIZE))
    return lambda: run_deep_sea(0, sea, policy, rule(1.0), Budget(num_episodes)).values


def bsuite_loop(num_episodes: int) -> Callable[[], object]:
    """The usual script: bsuite's DeepSea, a NumPy table and scalar εz-greedy."""
    from bsuite.environments.deep_sea import DeepSea as BsuiteDeepSea

    def run() -> np.ndarray:
        env = BsuiteDeepSea(SIZE, randomize_actions=False)
        rng, law = np.random.default_rng(0), Zeta()
        values = np.zeros((SIZE, SIZE, 2))
        for _ in range(num_episodes):
            state, remaining, action = env.reset(), 0, 0
            place = divmod(int(state.observation.argmax()), SIZE)
            while not state.last():
                if remaining > 0:
                    remaining -= 1
                elif rng.random() < EPSILON:
                    action = int(rng.integers(2))
                    remaining = int(law.quantile(rng.random(1))[0]) - 1
                else:
                    here = values[place]
                    action = int(rng.choice(np.flatnonzero(here == here.max())))
                state = env.step(action)
                aim = state.reward
                after = place
                if not state.last():
                    after = divmod(int(state.observation.argmax()), SIZE)
                    aim += values[after].max()
                values[place][action] += 1.0 * (aim - values[place][action])
                place = after
        return values

    return run


def plain_loop(num_episodes: int) -> Callable[[], object]:
    """Our own objects: Gymnasium environment, agent and policy."""
    from ezgreedy.agents.q_learning import QLearning

    def run() -> np.ndarray:
        env, explore = DeepSea(SIZE), EZGreedy(2, EPSILON)
        agent = QLearning(env.num_states, 2, 1.0, streams=explore.streams)
        for _ in range(num_episodes):
            (state, _), terminated = env.reset(), False
            while not terminated:
                states = np.array([state])
                actions = explore(agent.greedy(states, explore.steps))
                state, reward, terminated, _, _ = env.step(actions[0])
                ended = np.array([terminated])
                agent.update(states, actions, [reward], np.array([state]), ended)
                explore.reset(ended)
        return agent.values

    return run


def steps_per_second(calls: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(TURNS):
        for name, (call, _) in calls.items():
            best[name] = min(best[name], cpu_seconds(call))
    return {name: calls[name][1] * SIZE / seconds for name, seconds in best.items()}


def run_jobs(num_jobs: int, num_episodes: int, num_processes: int) -> None:
    """Learning curves of Figure 3's DeepSea, one for each seed; all take equally many steps."""
    cell = {"kind": "curve", "policy": "ez", "size": SIZE, "num_curve_episodes": num_episodes}
    cell["num_bins"] = 1  # fewer episodes than bins would leave bins empty
    settings = {**fig3_deepsea.SETTINGS, **cell}
    jobs = [Job(fig3_deepsea.run_seed, "curve ez", settings, seed) for seed in range(num_jobs)]
    with Workers(num_processes) as workers:
        for outcome in workers.outcomes(jobs):
            assert outcome.result is not None, outcome.error


def cost_per_seed() -> str:
    run_jobs(1, 1, 1)
    counts = 4, 16, 64
    costs = dict.fromkeys(counts, float("inf"))
    for _ in range(TURNS):
        for count in counts:
            seconds = cpu_seconds(lambda count=count: run_jobs(count, NUM_EPISODES, 1))
            costs[count] = min(costs[count], seconds / count)
    return ", ".join(f"{cost / costs[4]:.2f}" for cost in costs.values())


def seconds_with(num_processes: int) -> tuple[float, float]:
    """On the wall and, all processes together, of processors; both with starting and ending."""
    begin = time.perf_counter(), sum(os.times()[:4])
    run_jobs(NUM_JOBS, NUM_JOB_EPISODES, num_processes)
    return time.perf_counter() - begin[0], sum(os.times()[:4]) - begin[1]


def report_processes() -> None:
    """What a second process saves on the wall, and what it would with a core for each."""
    load = os.getloadavg()[0]
    (wall, cpu), (wall_of_two, cpu_of_two) = seconds_with(1), seconds_with(2)
    print(f"one process / two, {wall:.0f} s of jobs, load {load:.1f} on {os.cpu_count()} cores:")
    print(f"  on the wall: {wall / wall_of_two:.2f}×  (goal: 1.7)")
    print(f"  by processor time, if each had a core: {2.0 * cpu / cpu_of_two:.2f}×")


def main() -> None:
    laws = {"εz": exploration(EPSILON, Zeta()), "ε": exploration(EPSILON, Fixed(1))}
    with tempfile.TemporaryDirectory() as directory:
        library = compiled_c(Path(directory))
        calls: dict[str, tuple[Callable[[], object], int]] = {}
        for name, policy in laws.items():
            ours, theirs = (
                kernel(policy, NUM_EPISODES),
                c_loop(library, policy, NUM_EPISODES),
            )
            np.testing.assert_array_equal(ours(), theirs())
            calls[f"kernel, {name}"] = ours, NUM_EPISODES
            calls[f"C, {name}"] = theirs, NUM_EPISODES
        calls["bsuite loop, εz"] = bsuite_loop(NUM_LOOP_EPISODES), NUM_LOOP_EPISODES
        calls["plain twin, εz"] = plain_loop(NUM_LOOP_EPISODES), NUM_LOOP_EPISODES
        speeds = steps_per_second(calls)
    print(f"DeepSea N = {SIZE}, Q-learning: steps per CPU second")
    for name, speed in speeds.items():
        print(f"  {name:16s} {speed / 1e6:10.4f} million")
    for name in laws:
        print(f"kernel / C, {name}: {speeds[f'kernel, {name}'] / speeds[f'C, {name}']:.2f}×")
    against_bsuite = speeds["kernel, εz"] / speeds["bsuite loop, εz"]
    print(f"kernel / bsuite loop: {against_bsuite:,.0f}×  (goal: 2,000)")
    policy = laws["εz"]
    growth = [
        min(cpu_seconds(kernel(policy, count)) for _ in range(TURNS)) / count
        for count in (50_000, 250_000, 1_000_000)
    ]
    shown = ", ".join(f"{cost / growth[0]:.2f}" for cost in growth)
    print(f"cost per step at 50, 250 and 1,000 thousand episodes: {shown}")
    print(f"cost per seed with 4, 16 and 64 seeds: {cost_per_seed()}  (goal: 1)")
    report_processes()


if __name__ == "__main__":
    main()
