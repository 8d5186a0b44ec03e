"""A faster torso for your own Atari agent: compute each distinct receptive field only once.

`Torso` replaces the convolutions of an ordinary DQN. It takes bytes and returns the same features
as a stack of `nn.Conv2d` and ReLU. Its parameters have the same names, so you can load weights from
one into the other. This example trains both on the same frames, prints how far their values differ,
and times them. It needs the `deep` extra.
"""

import copy
import time

import numpy as np
import torch
from torch import nn

from ezgreedy.games.atari.emulator import Emulator
from ezgreedy.learning.settings import ATARI_TORSO, Sight
from ezgreedy.learning.torso import Torso


class DQN(nn.Module):
    """Mnih et al.'s network on top of any module that turns frames into features."""

    def __init__(self, torso: nn.Module, num_actions: int) -> None:
        super().__init__()
        self.torso = torso
        self.head = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, num_actions))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Returns the values of all actions, from bytes [batch, 4, 84, 84]."""
        return self.head(self.torso(frames))


class PlainTorso(nn.Sequential):
    """The same convolutions in plain torch."""

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Returns the features, [batch, 3136]."""
        return super().forward(frames.float() / 255.0).flatten(1)


def frames_of(game: str, num_frames: int) -> tuple[torch.Tensor, int]:
    """Returns what a random player sees, and the number of actions."""
    rng = np.random.default_rng(0)
    env = Emulator(game, rng=np.random.default_rng(1))
    seen = [env.reset()]
    while len(seen) < num_frames:
        step = env.step(int(rng.integers(env.num_actions)))
        seen.append(env.reset() if step.terminated else step.observation)
    return torch.from_numpy(np.stack(seen)), env.num_actions


def train(network: DQN, frames: torch.Tensor, num_updates: int = 20) -> tuple[torch.Tensor, float]:
    """Regresses on random targets; returns the final values and the CPU time of the updates."""
    rng = torch.Generator().manual_seed(0)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    begin = time.process_time()
    for _ in range(num_updates):
        batch = frames[torch.randint(0, len(frames), (32,), generator=rng)]
        loss = (network(batch) - torch.randn(32, 1, generator=rng)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    taken = time.process_time() - begin
    return network(frames[:32]).detach(), taken


def main() -> None:
    """Compares both torsos on one game."""
    torch.set_num_threads(1)
    frames, num_actions = frames_of("Breakout", 500)
    fast = DQN(Torso(Sight((4, 84, 84)), ATARI_TORSO), num_actions)
    layers = [
        nn.Conv2d(4, 32, 8, 4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, 2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1),
        nn.ReLU(),
    ]
    plain = DQN(PlainTorso(*layers), num_actions)
    plain.load_state_dict(copy.deepcopy(fast.state_dict()))
    train(copy.deepcopy(fast), frames, num_updates=1)  # compiles
    ours, seconds = train(fast, frames)
    theirs, plain_seconds = train(plain, frames)
    print(f"largest difference of values after 20 updates: {(ours - theirs).abs().max():.1e}")
    print(f"nn.Conv2d takes {plain_seconds / seconds:.1f} times as long")


if __name__ == "__main__":
    main()
