"""How exploration becomes part of the `state_dict` of a torch module."""

import warnings
from typing import Any


class OldCheckpoints:
    """For modules with extra state: states saved before they had any load too, with a warning."""

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *arguments: Any) -> None:
        key = f"{prefix}_extra_state"
        if key not in state:
            warnings.warn(
                "this state was saved without εz-greedy: its options begin now, and ε continues",
                stacklevel=4,
            )
            state[key] = None
        super()._load_from_state_dict(state, prefix, *arguments)  # type: ignore[misc]
