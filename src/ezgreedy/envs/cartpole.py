"""CartPole swing-up with a sparse reward: will exploration ever see the pole upright?

The physics are those of dm_control's cartpole, `swingup_sparse`, written out for its two degrees of
freedom: a cart on a rail with soft ends, a hanging capsule for a pole, classic Runge–Kutta steps of
10 ms. The three actions push the cart left, not at all, or right; the reward is 1 on every step
that ends with the pole upright above the middle of the rail. Episodes never terminate.

With x the cart's position and θ the pole's angle from upright,

    (M + m)·ẍ + m·l·cos θ·θ̈ = u − d·ẋ + m·l·sin θ·θ̇² + f
    m·l·cos θ·ẍ + (I + m·l²)·θ̈ = m·g·l·sin θ − d′·θ̇

where f is the push of the rail's end, zero inside the rail.
"""

import math
from typing import Literal

import numpy as np
from gymnasium.spaces import Box

from ezgreedy import requirements as require
from ezgreedy.compilation import jit
from ezgreedy.envs.drawing import AGENT, GOLD, INK, PAPER, STONE, Canvas, Picture
from ezgreedy.envs.study_env import StudyEnv
from ezgreedy.requirements import FloatArray

NUM_ACTIONS = 3
STEP_LIMIT = 1000
STEP_SECONDS = 0.01

# The model, in SI units.
CART_MASS = 1.0
POLE_MASS = 0.1
POLE_LENGTH = 1.0  # length of the capsule's axis, hinge to tip
POLE_RADIUS = 0.045
GRAVITY = 9.81
PUSH = 10.0
CART_DAMPING = 5e-4
HINGE_DAMPING = 2e-6
RAIL_END = 1.8

# The reward's region.
UPRIGHT_COSINE = 0.995
CENTRE_REACH = 0.25

START_SPREAD = 0.01  # standard deviation of every first coordinate around hanging at rest


def _capsule_inertia(mass: float, length: float, radius: float) -> float:
    """A solid capsule's inertia about a transverse axis through its centre: cylinder and ball."""
    cylinder, ball = length, 4.0 / 3.0 * radius  # volumes, in units of π·radius²
    ball_mass = mass * ball / (cylinder + ball)
    return (mass - ball_mass) * (3 * radius**2 + length**2) / 12 + ball_mass * (
        2 / 5 * radius**2 + length**2 / 4 + 3 / 8 * radius * length
    )


# The mass matrix is [[_TOTAL, _COUPLING·cos θ], [_COUPLING·cos θ, _HINGE_INERTIA]].
_TOTAL = CART_MASS + POLE_MASS
_COUPLING = POLE_MASS * POLE_LENGTH / 2
_HINGE_INERTIA = (
    _capsule_inertia(POLE_MASS, POLE_LENGTH, POLE_RADIUS) + POLE_MASS * (POLE_LENGTH / 2) ** 2
)

# The rail's ends are soft, as MuJoCo's joint limits are: a critically damped spring with a time
# constant of 80 ms, whose share of the motion ("impedance") rises from 0.90 to 0.95 within the
# first millimetre. The softness is scaled by the cart's mobility with the pole upright.
_LIMIT_SECONDS = 0.08
_LEAST_IMPEDANCE, _MOST_IMPEDANCE = 0.9, 0.95
_IMPEDANCE_DEPTH = 0.001
_LIMIT_STIFFNESS = 1.0 / (_MOST_IMPEDANCE * _LIMIT_SECONDS) ** 2
_LIMIT_DAMPING = 2.0 / (_MOST_IMPEDANCE * _LIMIT_SECONDS)
_UPRIGHT_MOBILITY = _HINGE_INERTIA / (_TOTAL * _HINGE_INERTIA - _COUPLING**2)


@jit
def impedance(depth: float) -> float:
    """The share of a limit that acts at this depth beyond it: an S of two parabolas."""
    share = depth / _IMPEDANCE_DEPTH
    if share >= 1.0:
        return _MOST_IMPEDANCE
    rise = 2.0 * share**2 if share <= 0.5 else 1.0 - 2.0 * (1.0 - share) ** 2
    return _LEAST_IMPEDANCE + rise * (_MOST_IMPEDANCE - _LEAST_IMPEDANCE)


@jit
def limit_push(x: float, x_velocity: float, x_acceleration: float, mobility: float) -> float:
    """The force of the rail's end on the cart.

    MuJoCo's constraint solved in closed form, which one constraint allows: the force that moves
    the acceleration towards that of the damped spring, softened by the impedance; never a pull.

    Args:
        x: the cart's position.
        x_velocity: its velocity.
        x_acceleration: its acceleration without the end.
        mobility: the acceleration that a unit of force adds.
    """
    depth = abs(x) - RAIL_END
    if depth <= 0.0:
        return 0.0
    inward = -1.0 if x > 0.0 else 1.0
    share = impedance(depth)
    softness = (1.0 - share) / share * _UPRIGHT_MOBILITY
    wanted = _LIMIT_STIFFNESS * share * depth - _LIMIT_DAMPING * inward * x_velocity
    return inward * max(0.0, (wanted - inward * x_acceleration) / (mobility + softness))


@jit
def accelerations(
    x: float, theta: float, x_velocity: float, theta_velocity: float, push: float
) -> tuple[float, float]:
    """ẍ and θ̈ under a push on the cart, by the equations above."""
    sine, coupling = math.sin(theta), _COUPLING * math.cos(theta)
    cart_force = push - CART_DAMPING * x_velocity + _COUPLING * sine * theta_velocity**2
    hinge_torque = GRAVITY * _COUPLING * sine - HINGE_DAMPING * theta_velocity
    per_determinant = 1.0 / (_TOTAL * _HINGE_INERTIA - coupling**2)
    mobility = _HINGE_INERTIA * per_determinant
    x_acceleration = mobility * cart_force - coupling * per_determinant * hinge_torque
    cart_force += limit_push(x, x_velocity, x_acceleration, mobility)
    return (
        mobility * cart_force - coupling * per_determinant * hinge_torque,
        (_TOTAL * hinge_torque - coupling * cart_force) * per_determinant,
    )


@jit
def move(
    x: float, theta: float, x_velocity: float, theta_velocity: float, push: float
) -> tuple[float, float, float, float]:
    """The state one step later under a constant push: classic fourth-order Runge–Kutta."""
    h = STEP_SECONDS
    v1, w1 = x_velocity, theta_velocity
    a1, b1 = accelerations(x, theta, v1, w1, push)
    v2, w2 = x_velocity + 0.5 * h * a1, theta_velocity + 0.5 * h * b1
    a2, b2 = accelerations(x + 0.5 * h * v1, theta + 0.5 * h * w1, v2, w2, push)
    v3, w3 = x_velocity + 0.5 * h * a2, theta_velocity + 0.5 * h * b2
    a3, b3 = accelerations(x + 0.5 * h * v2, theta + 0.5 * h * w2, v3, w3, push)
    v4, w4 = x_velocity + h * a3, theta_velocity + h * b3
    a4, b4 = accelerations(x + h * v3, theta + h * w3, v4, w4, push)
    return (
        x + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4),
        theta + h / 6 * (w1 + 2 * w2 + 2 * w3 + w4),
        x_velocity + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4),
        theta_velocity + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4),
    )


@jit
def reward_at(x: float, theta: float) -> float:
    """1 where the pole is upright and the cart central, else 0."""
    return 1.0 if math.cos(theta) > UPRIGHT_COSINE and abs(x) < CENTRE_REACH else 0.0


@jit
def step(
    x: float, theta: float, x_velocity: float, theta_velocity: float, action: int
) -> tuple[float, float, float, float, float, bool]:
    """One step: (x, θ, ẋ, θ̇, reward, terminated); it never terminates. Actions push −1, 0, +1."""
    push = PUSH * (action - 1)
    x, theta, x_velocity, theta_velocity = move(x, theta, x_velocity, theta_velocity, push)
    return x, theta, x_velocity, theta_velocity, reward_at(x, theta), False


@jit
def observe(
    x: float, theta: float, x_velocity: float, theta_velocity: float
) -> tuple[float, float, float, float, float]:
    """The observation (x, cos θ, sin θ, ẋ, θ̇), in dm_control's order."""
    return x, math.cos(theta), math.sin(theta), x_velocity, theta_velocity


@jit
def observe_state(
    x: float, theta: float, x_velocity: float, theta_velocity: float
) -> tuple[float, float, float, float]:
    """The state (x, θ, ẋ, θ̇) itself, with θ in [−π, π): 0 is upright, and the seam is below."""
    turn = 2.0 * math.pi
    return x, theta - turn * math.floor(theta / turn + 0.5), x_velocity, theta_velocity


@jit
def start(
    normal_1: float, normal_2: float, normal_3: float, normal_4: float
) -> tuple[float, float, float, float]:
    """The first (x, θ, ẋ, θ̇) from four standard normal draws: hanging, nearly at rest."""
    return (
        START_SPREAD * normal_1,
        math.pi + START_SPREAD * normal_2,
        START_SPREAD * normal_3,
        START_SPREAD * normal_4,
    )


class CartPoleSwingUpSparse(StudyEnv[FloatArray]):
    """The cart and pole as a Gymnasium environment; observations are float64.

    Args:
        observes: "dm_control" for its five numbers, see `observe`; "state" for the four state
            variables, see `observe_state`.
        render_mode: "rgb_array" or None.
    """

    def __init__(
        self,
        observes: Literal["dm_control", "state"] = "dm_control",
        render_mode: str | None = None,
    ) -> None:
        require.one_of("observes", observes, ("dm_control", "state"))
        self.observes = observes
        # The rail's ends are soft and nothing caps the speeds, so only the angle is bounded.
        angles = [1.0, 1.0] if observes == "dm_control" else [math.pi]
        most = np.array([np.inf, *angles, np.inf, np.inf])
        super().__init__(Box(-most, most, dtype=np.float64), NUM_ACTIONS, render_mode)
        self.physics_state = start(0.0, 0.0, 0.0, 0.0)

    def _begin(self) -> None:
        self.physics_state = start(*self.np_random.standard_normal(4).tolist())

    def _advance(self, action: int) -> tuple[float, bool]:
        *physics_state, reward, terminated = step(*self.physics_state, action)
        x, theta, x_velocity, theta_velocity = physics_state
        self.physics_state = x, theta, x_velocity, theta_velocity
        return reward, terminated

    def _observe(self) -> FloatArray:
        see = observe if self.observes == "dm_control" else observe_state
        return np.array(see(*self.physics_state))

    def _draw(self) -> Picture:
        """The rail with its ends, the rewarded stretch, the cart and the pole."""
        width, height, scale = 600, 400, 125.0
        x, theta = self.physics_state[:2]
        middle, rail_y = width / 2, 210.0
        canvas = Canvas(width, height)
        canvas.box(
            (middle - CENTRE_REACH * scale, 60), (2 * CENTRE_REACH * scale, 150), (252, 236, 198), 8
        )
        end = RAIL_END * scale
        canvas.segment((middle - end - 27, rail_y), (middle + end + 27, rail_y), 3, STONE)
        for side in (-1.0, 1.0):
            post = middle + side * (end + 27)
            canvas.segment((post, rail_y - 16), (post, rail_y + 16), 4, INK)
        hinge = (middle + x * scale, rail_y)
        canvas.box((hinge[0] - 25, rail_y - 14), (50, 28), INK, rounding=6)
        tip = (hinge[0] + scale * math.sin(theta), rail_y - scale * math.cos(theta))
        canvas.segment(hinge, tip, 6, GOLD if reward_at(x, theta) else AGENT)
        canvas.disc(hinge, 4, PAPER)
        return canvas.picture()
