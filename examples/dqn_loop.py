"""A DQN in one file, in the style of CleanRL, with εz-greedy: `explore` is all that was added.

Gymnasium's vector environments restart episodes in one of three ways (`AutoresetMode`), and all of
them work here. By default the step after an episode's end is a dummy that only resets: its action
is ignored, so it must neither count for the option nor be stored.
"""

from collections import deque

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import nn

from ezgreedy import EZGreedy, Linear, Zeta

LANES, STEPS, GAMMA, BATCH = 4, 2000, 0.95, 64


def train(envs, explore, num_steps, seed=0):
    """Runs the loop; returns the replay and the mean length of the last twenty episodes."""
    rng, torch_rng = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    mode, lanes = envs.metadata["autoreset_mode"], envs.num_envs
    network, target = (q_network(envs, torch_rng) for _ in range(2))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    replay, lengths, clocks = deque(maxlen=10_000), deque(maxlen=20), np.zeros(lanes)

    observations, _ = envs.reset(seed=seed)
    finished = np.zeros(lanes, dtype=bool)
    for step in range(num_steps):
        resetting = finished if mode == AutoresetMode.NEXT_STEP else np.zeros(lanes, dtype=bool)
        with torch.no_grad():
            greedy = network(torch.as_tensor(observations)).argmax(1).numpy()
        actions = explore(greedy, active=~resetting)
        reached, rewards, terminated, truncated, infos = envs.step(actions)
        finished = terminated | truncated
        explore.reset(finished)

        following = reached.copy()
        if mode == AutoresetMode.SAME_STEP:
            for lane in np.flatnonzero(finished):  # `reached` is already the next episode's
                following[lane] = infos["final_obs"][lane]
        for lane in np.flatnonzero(~resetting):
            item = observations[lane], actions[lane], rewards[lane], following[lane]
            replay.append((*(np.copy(part) for part in item), terminated[lane]))
        clocks += ~resetting
        lengths.extend(clocks[finished])
        clocks[finished] = 0
        if mode == AutoresetMode.DISABLED and finished.any():
            reached, _ = envs.reset(options={"reset_mask": finished})
        observations = reached.copy()

        if len(replay) >= BATCH:
            learn(
                network,
                target,
                optimiser,
                [replay[i] for i in rng.integers(len(replay), size=BATCH)],
            )
        if step % 200 == 0:
            target.load_state_dict(network.state_dict())
    return replay, float(np.mean(lengths))


def q_network(envs, torch_rng):
    """A small network for the environments' observations and actions."""
    size, actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    network = nn.Sequential(nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, actions))
    for weights in network.parameters():
        nn.init.uniform_(weights, -0.1, 0.1, generator=torch_rng)
    return network


def learn(network, target, optimiser, batch):
    """One step of Q-learning."""
    seen, actions, rewards, following, terminated = (
        torch.as_tensor(np.array(part)) for part in zip(*batch, strict=True)
    )
    with torch.no_grad():
        values = rewards.float() + GAMMA * ~terminated * target(following).max(1).values
    chosen = network(seen).gather(1, actions.long()[:, None])[:, 0]
    loss = nn.functional.smooth_l1_loss(chosen, values)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def main() -> None:
    """Trains on CartPole in each of the three modes."""
    torch.set_num_threads(1)
    for mode in AutoresetMode:
        envs = gymnasium.make_vec(
            "CartPole-v1",
            num_envs=LANES,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": mode},
        )
        explore = EZGreedy(
            envs.single_action_space, Linear(1.0, 0.05, 800), Zeta(cap=20), lanes=LANES, seed=0
        )
        _, length = train(envs, explore, STEPS)
        share = explore.counters.explored / explore.counters.steps
        print(f"{mode.value}: last episodes {length:.0f} steps long, {share:.0%} exploratory")


if __name__ == "__main__":
    main()
