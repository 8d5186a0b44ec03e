"""Where experience comes from: the small environments of the paper, for Gymnasium and kernels.

    import gymnasium, ezgreedy.envs
    env = gymnasium.make("ezgreedy/DeepSea-v0", size=30)

Each module holds one environment: its dynamics as compiled functions of scalars, and a Gymnasium
class around them. `ENVIRONMENTS` lists what importing this package registers.
"""

from typing import Any, NamedTuple

import gymnasium

__all__ = ["ENVIRONMENTS", "Registration", "register"]


class Registration(NamedTuple):
    """What Gymnasium needs to know about an environment."""

    entry_point: str  # a name, so that registering compiles and imports nothing
    step_limit: int | None  # after which `gymnasium.make`'s environment truncates
    settings: dict[str, Any]


ENVIRONMENTS = {
    "ezgreedy/Chain-v0": Registration("ezgreedy.envs.chain:Chain", None, {}),
    "ezgreedy/DeepSea-v0": Registration("ezgreedy.envs.deep_sea:DeepSea", None, {}),
    "ezgreedy/GridWorld-v0": Registration("ezgreedy.envs.grid_world:GridWorld", 1000, {}),
    # Figure 1 counts 5,000 steps over any number of episodes: no limit for a single one.
    "ezgreedy/GridWorldDown-v0": Registration(
        "ezgreedy.envs.grid_world:GridWorld", None, {"goal": None, "bottom_ends": True}
    ),
    "ezgreedy/Corridor-v0": Registration(
        "ezgreedy.envs.grid_map:GridMap", None, {"rows": "corridor", "moves": ("left", "right")}
    ),
    "ezgreedy/FourRooms-v0": Registration(
        "ezgreedy.envs.grid_map:GridMap", None, {"rows": "four-rooms"}
    ),
    "ezgreedy/Mines-v0": Registration("ezgreedy.envs.grid_map:GridMap", None, {"rows": "mines"}),
    "ezgreedy/MineField-v0": Registration("ezgreedy.envs.obstacle_maps:mine_field", 1000, {}),
    "ezgreedy/TurningMaze-v0": Registration("ezgreedy.envs.obstacle_maps:turning_maze", 1000, {}),
    "ezgreedy/RepeatedActions-v0": Registration(
        "ezgreedy.envs.obstacle_maps:repeated_actions", 1000, {}
    ),
    "ezgreedy/MountainCarSparse-v0": Registration(
        "ezgreedy.envs.mountain_car:MountainCar", 5000, {}
    ),
    "ezgreedy/MountainCarDense-v0": Registration(
        "ezgreedy.envs.mountain_car:MountainCar", 5000, {"rewards": "dense"}
    ),
    "ezgreedy/CartPoleSwingUpSparse-v0": Registration(
        "ezgreedy.envs.cartpole:CartPoleSwingUpSparse", 1000, {}
    ),
}


def register() -> None:
    """Makes the environments known to `gymnasium.make`; a second call changes nothing."""
    for name, (entry_point, step_limit, settings) in ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point=entry_point,
                max_episode_steps=step_limit,
                kwargs=dict(settings),
            )


register()
