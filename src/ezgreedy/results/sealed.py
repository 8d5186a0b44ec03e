"""Has this file changed since it was written? JSON files that begin with their own checksum.

The first entry of a sealed file is the SHA-256 of all its other bytes. A file of an earlier version
has none: it is read, and cannot be verified.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

SEAL = "sha256"

_START = b"{\n"
_HEAD = re.compile(rb'\{\n  "sha256": "([0-9a-f]{64})",\n')
_CHECKSUM = re.compile(r"[0-9a-f]{64}")


class Contents(NamedTuple):
    """The contents of a JSON file without its seal, and whether it had one."""

    data: Any
    is_sealed: bool


def with_seal(text: str) -> str:
    """The text of a JSON object, one entry in a line, with its checksum as the first entry."""
    body = text.encode("utf-8").removeprefix(_START)
    return f'{{\n  "{SEAL}": "{_checksum(body)}",\n' + body.decode("utf-8")


def unsealed(path: Path, raw: bytes, data: Any) -> Contents:
    """The contents of a file; refused if its seal is broken.

    Args:
        path: the file, for errors.
        raw: its bytes.
        data: what they say as JSON.
    """
    head = _HEAD.match(raw)
    if head is not None:
        if _checksum(raw[head.end() :]) != head[1].decode("ascii"):
            raise ValueError(f"{path} is damaged or was edited: its checksum is wrong")
        return Contents({key: value for key, value in data.items() if key != SEAL}, True)
    if isinstance(data, Mapping) and _had_seal(data):
        raise ValueError(f"{path} is damaged or was edited: its checksum is not in its place")
    return Contents(data, False)


def _had_seal(data: Mapping[str, Any]) -> bool:
    """Whether an entry may have been a seal before the damage; no other one looks like it."""
    return SEAL in data or any(
        isinstance(value, str) and _CHECKSUM.fullmatch(value) for value in data.values()
    )


def _checksum(body: bytes) -> str:
    return hashlib.sha256(_START + body).hexdigest()
