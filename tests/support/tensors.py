"""Nested states of learners, compared tensor by tensor."""

import torch


def flat(state, prefix=""):
    """A nested state as pairs of names and tensors."""
    for name, part in state.items():
        if isinstance(part, dict):
            yield from flat(part, f"{prefix}{name}/")
        else:
            yield prefix + name, part


def assert_same(state, other):
    """To the last bit."""
    ours, theirs = dict(flat(state)), dict(flat(other))
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name
