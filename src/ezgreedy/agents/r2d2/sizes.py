"""How much memory does R2D2 need beside its replay? Arithmetic and a measured share."""

from math import prod
from typing import TYPE_CHECKING

from ezgreedy.agents.network_sizes import (
    COPIES_OF_PARAMETERS,
    FLOAT_BYTES,
    MOST_ACTIONS,
    torso_size,
)
from ezgreedy.agents.r2d2.learner_settings import RecurrentNetworkSettings
from ezgreedy.intrinsic.settings import FRAMES_AT_ONCE, DistillationSettings
from ezgreedy.learning.settings import Sight

if TYPE_CHECKING:
    from ezgreedy.agents.r2d2.settings import R2D2Settings

# Actors and evaluations have copies of the network too, and checkpoints of those of actors.
_COPIES = COPIES_OF_PARAMETERS + 4
# Measured with whole screens: what an update holds, as a multiple of its observations. Only
# distinct receptive fields are computed, so activations are few.
_UPDATE_SHARE = 2.4
# Of a unit above the torso an update keeps gates, states and outputs, three numbers on average.
_ACTIVATIONS_OF_UNIT = 3
# A checkpoint copies the block of each lane and writes the copy out.
_COPIES_OF_BLOCK = 3
# Measured: what RND holds, as a multiple of whitened observations and activations.
_NOVELTY_SHARE = 1.2


def num_parameters(network: RecurrentNetworkSettings) -> int:
    """Number of parameters of a network."""
    torso = torso_size(network.input_shape, network.torso, network.padding)
    features, memory, hidden = network.feature_size, network.memory_size, network.hidden_size
    num_heads, actions = network.num_streams, network.num_actions
    num_memories = 1 if network.shares_memory else num_heads
    recurrent = features * (torso.num_features + 1)
    recurrent += 4 * memory * (features + actions + 1 + memory + 2)
    streams = 2 * hidden * (memory + 1) + (hidden + 1) * (actions + 1)
    return torso.num_parameters + num_memories * recurrent + num_heads * streams


def update_bytes(preset: "R2D2Settings", sight: Sight) -> int:
    """Memory of the networks and of an update of one batch."""
    learner, network = preset.learner, preset.network(sight, MOST_ACTIONS)
    num_frames = learner.batch_size * (learner.burn_in + learner.length + 1)
    frames = _UPDATE_SHARE * num_frames * _observation_bytes(sight)
    units = preset.feature_size + preset.memory_size + preset.hidden_size
    rest = num_frames * network.num_streams * _ACTIVATIONS_OF_UNIT * units * FLOAT_BYTES
    networks = _COPIES * FLOAT_BYTES * num_parameters(network)
    if preset.distillation is not None:
        networks += _novelty_bytes(preset.distillation, sight, learner.batch_size * learner.length)
    return int(frames) + rest + networks


def policy_bytes(preset: "R2D2Settings", sight: Sight) -> int:
    """Memory of the network of an actor or evaluator in a process of its own."""
    return FLOAT_BYTES * num_parameters(preset.network(sight, MOST_ACTIONS))


def lane_bytes(preset: "R2D2Settings", sight: Sight) -> int:
    """Memory of a lane: the block of observations that it fills, also when it is saved."""
    return _COPIES_OF_BLOCK * (preset.stride + 1) * _observation_bytes(sight)


def _novelty_bytes(settings: DistillationSettings, sight: Sight, num_frames: int) -> int:
    """Memory of RND: its networks, and the part of a batch that is computed at once."""
    size = torso_size(sight.input_shape, settings.torso)
    at_once = min(num_frames, FRAMES_AT_ONCE)
    each = prod(sight.input_shape) + size.num_activations
    weights = size.num_parameters + size.num_features * settings.num_outputs
    frames = int(_NOVELTY_SHARE * at_once * each)
    return FLOAT_BYTES * (frames + COPIES_OF_PARAMETERS * weights)


def _observation_bytes(sight: Sight) -> int:
    """Bytes of an observation before compression: codes take two each, vectors are of float32."""
    itemsize = 4 if len(sight.shape) == 1 else 2 if sight.has_codes else 1
    return itemsize * prod(sight.shape)
