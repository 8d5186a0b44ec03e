"""What `meta.json` says about a checkpoint: its run, its files and their contents.

The file is one JSON object of a fixed outline around its contents, which are preceded by their own
SHA-256, so no byte of it can change unnoticed. That outline stays the same in all versions, so that
a file of a newer one can be distinguished from a damaged one.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from ezgreedy import __version__
from ezgreedy import requirements as require
from ezgreedy.checkpoints.durable_files import DamagedError, Digest, read_small
from ezgreedy.checkpoints.segments import Coverage
from ezgreedy.named_settings import flattened

ARRAYS = "arrays.safetensors"
META = "meta.json"
FORMAT_VERSION = 1
# Arrays are elsewhere, so a large file is a mistake or a trap.
MOST_BYTES = 2**26

_FORMAT = "ezgreedy checkpoint"
_START, _MIDDLE, _END = b'{"sha256":"', b'","contents":', b"}\n"
_HEX = 64


@dataclass(frozen=True)
class Manifest:
    """The contents of meta.json.

    Args:
        step: the checkpoint's number.
        identity: the run's identity.
        files: size and SHA-256 of every file, segments included, by name.
        tails: the segments that cover each tail, by its path in the state.
        tree: the state, from `state_tree.encode`.
    """

    step: int
    identity: Mapping[str, Any]
    files: Mapping[str, Digest]
    tails: Mapping[str, Coverage]
    tree: Any

    def as_bytes(self) -> bytes:
        """The whole file; refused if it would be too large to read again."""
        contents = {
            "format": _FORMAT,
            "version": FORMAT_VERSION,
            "ezgreedy": __version__,
            "step": self.step,
            "identity": self.identity,
            "files": {name: digest._asdict() for name, digest in self.files.items()},
            "tails": {path: tail.as_data() for path, tail in self.tails.items()},
            "state": self.tree,
        }
        data = sealed(json.dumps(contents, separators=(",", ":"), allow_nan=False).encode("ascii"))
        if len(data) > MOST_BYTES:
            rule = f"fit into {MOST_BYTES} bytes of JSON (large data belongs in arrays)"
            raise require.refuse("state", rule, require.Described(f"{len(data)} bytes"))
        return data


def sealed(contents: bytes) -> bytes:
    """Contents as they are in the file, after their checksum."""
    checksum = hashlib.sha256(contents).hexdigest().encode("ascii")
    return _START + checksum + _MIDDLE + contents + _END


def as_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """An identity as JSON gives it back, so that it can be compared with a stored one."""
    for name, value in flattened(dict(identity)).items():
        if isinstance(value, float) and not isfinite(value):
            raise require.refuse(f"identity {name}", "be finite", value)
    try:
        return json.loads(json.dumps(dict(identity), allow_nan=False))
    except TypeError as error:
        raise require.refuse_type("identity", "be plain data", identity) from error


def read_manifest(
    path: Path, step: int, identity: Mapping[str, Any], free: Collection[str] = ()
) -> Manifest:
    """Read and check the file of one checkpoint of one run.

    Raises DamagedError for a file that is not as it was written, and ValueError for an intact one
    of another run or of a newer version.

    Args:
        path: the file.
        step: the checkpoint's number.
        identity: the run's identity.
        free: dotted names in the identity that may differ.
    """
    contents = _contents(path)
    if contents.get("format") != _FORMAT:
        raise ValueError(f"{path} is intact, but is not a checkpoint of ezgreedy")
    version = contents.get("version")
    if type(version) is not int or version > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version!r} and needs a newer ezgreedy: "
            f"{__version__} reads up to {FORMAT_VERSION}"
        )
    try:
        manifest = _parsed(contents)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise DamagedError(path, f"makes no sense ({error!r})") from error
    if manifest.step != step:
        raise DamagedError(path, f"is of step {manifest.step}, in the place of another")
    _require_same_run(path, manifest.identity, identity, free)
    return manifest


def read_identity(path: Path) -> dict[str, Any]:
    """The identity of the run that an intact checkpoint belongs to, whichever it is."""
    identity = _contents(path).get("identity")
    if not isinstance(identity, dict):
        raise DamagedError(path, "has no identity")
    return identity


def _contents(path: Path) -> dict[str, Any]:
    data = read_small(path, MOST_BYTES)
    body = data[len(_START) + _HEX + len(_MIDDLE) : -len(_END)]
    if sealed(body) != data:
        raise DamagedError(path, "is damaged or was not written by ezgreedy")
    try:
        contents = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DamagedError(path, "is not JSON") from error
    if not isinstance(contents, dict):
        raise DamagedError(path, "is not a JSON object")
    return contents


def _parsed(contents: Mapping[str, Any]) -> Manifest:
    return Manifest(
        contents["step"],
        contents["identity"],
        {name: _digest(**fields) for name, fields in contents["files"].items()},
        {path: Coverage.from_data(data) for path, data in contents["tails"].items()},
        contents["state"],
    )


def _digest(size: int, sha256: str) -> Digest:
    if type(size) is not int or type(sha256) is not str:
        raise ValueError("a file is listed without its size and SHA-256")
    return Digest(size, sha256)


def _require_same_run(
    path: Path, there: Mapping[str, Any], here: Mapping[str, Any], free: Collection[str]
) -> None:
    # Compared as text, because to Python True is 1 and 1 is 1.0.
    old = {name: json.dumps(value, sort_keys=True) for name, value in flattened(there).items()}
    new = {name: json.dumps(value, sort_keys=True) for name, value in flattened(here).items()}
    differences = [
        f"{name} (there {old.get(name, 'nothing')}, here {new.get(name, 'nothing')})"
        for name in sorted({*old, *new} - {*free})
        if old.get(name) != new.get(name)
    ]
    if differences:
        raise ValueError(f"{path} is of another run, which differs in {', '.join(differences)}")
