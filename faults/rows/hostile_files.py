"""Row g: files made by somebody who wants more than to be read."""

import io
import json
import os
import pickle
import resource
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.checkpoints import manifest
from ezgreedy.cli import main
from ezgreedy.results.store import read_json, write_json_atomically
from faults import base_runs
from faults.commands import Forked, require_sentence
from faults.matrix import Case, Failure, Row
from support import damage

CANARY = "canary"
MOST_MEMORY = 200 * 2**20  # beyond what the process had, and twice the file
DEEP = "[" * 200_000
COMMANDS = ("resume", "evaluate", "report", "collect")


class _Payload:
    """Touches the canary when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self._canary}",)


def _pickled(canary: Path) -> bytes:
    return pickle.dumps(_Payload(canary))


def _torch_file(canary: Path) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", _pickled(canary))
        archive.writestr("archive/version", "3")
    return file.getvalue()


def _npz(canary: Path) -> bytes:
    file = io.BytesIO()
    holder = np.empty(1, dtype=object)
    holder[0] = _Payload(canary)
    np.savez(file, weights=holder)
    return file.getvalue()


def _slipping_zip(canary: Path) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"../../{canary.name}", "out")
    return file.getvalue()


def _zip_bomb(canary: Path) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("arrays", bytes(2**28))
    return file.getvalue()


def _endless_header(canary: Path) -> bytes:
    return struct.pack("<Q", 2**63 - 1) + b"{}"


def _lying_header(canary: Path) -> bytes:
    header = json.dumps(
        {"a": {"dtype": "F64", "shape": [2**40, 2**20], "data_offsets": [0, 8]}}
    ).encode()
    return struct.pack("<Q", len(header)) + header + bytes(8)


def _yaml(canary: Path) -> bytes:
    return f"!!python/object/apply:os.system ['touch {canary}']\n".encode()


def _python(canary: Path) -> bytes:
    return f"__import__('os').system('touch {canary}')\n".encode()


def _deep(canary: Path) -> bytes:
    return DEEP.encode()


def _huge_number(canary: Path) -> bytes:
    return b"9" * 100_000


def _long_text(canary: Path) -> bytes:
    return b'{"a": "' + b"x" * 2**24 + b'"}'


CONTENTS: dict[str, Callable[[Path], bytes]] = {
    "pickle": _pickled,
    "torch file": _torch_file,
    "npz of objects": _npz,
    "slipping zip": _slipping_zip,
    "zip bomb": _zip_bomb,
    "endless header": _endless_header,
    "lying header": _lying_header,
    "YAML tag": _yaml,
    "Python": _python,
    "deep JSON": _deep,
    "huge number": _huge_number,
    "long text": _long_text,
}
FILES = ("config.json", "status.json", "results.jsonl", "meta.json", "arrays.safetensors", "rows")
# What is put in the place of a file or a directory, and leads elsewhere.
PLACES = ("link to a file", "link to a directory", "pipe", "directory", "device")


def _sealed(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """A change of meta.json whose checksum is right again, as an attacker could make it."""

    def apply(run: Path) -> None:
        path = max((run / "checkpoints").glob("checkpoint-*")) / manifest.META
        contents = json.loads(path.read_bytes())["contents"]
        change(contents)
        path.write_bytes(manifest.sealed(json.dumps(contents).encode()))

    return apply


def _tail(meta: dict[str, Any]) -> dict[str, Any]:
    return next(iter(meta["tails"].values()))


def _configured(**values: Any) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        path = run / "config.json"
        config = read_json(path)
        config["settings"].update(values)
        write_json_atomically(path, config, seals=True)

    return apply


SEALED: dict[str, Callable[[Path], None]] = {
    "rows outside": _sealed(lambda m: _tail(m)["segments"][0].__setitem__(2, "../../secret")),
    "rows by full path": _sealed(lambda m: _tail(m)["segments"][0].__setitem__(2, "/etc/passwd")),
    "endless ring": _sealed(lambda m: _tail(m).update(shape=[2**50, 20])),
    "wide rows": _sealed(lambda m: _tail(m).update(shape=[300, 2**40])),
    "no segments": _sealed(lambda m: _tail(m).update(segments=[])),
    "object arrays": _sealed(lambda m: _tail(m).update(dtype="|O")),
    "file outside": _sealed(lambda m: m["files"].update({"../../x": {"size": 1, "sha256": "0"}})),
    "huge file": _sealed(lambda m: m["files"]["arrays.safetensors"].update(size=2**62)),
    "no state": _sealed(lambda m: m.pop("state")),
    "state of text": _sealed(lambda m: m.update(state="x")),
    "deep state": _sealed(lambda m: m.update(state={"dict": [["a", [[[[[[[[]]]]]]]]]]})),
    "unknown tag": _sealed(lambda m: m.update(state={"exec": "import os"})),
    "class of anything": _configured(agent={"class": "os.system", "name": "rainbow"}),
    "class of subprocess": _configured(protocol={"class": "subprocess.Popen"}),
    "game by module": _configured(game="gymnasium/faults.rows.no_such_module:x-v0"),
    "game by path": _configured(game="../../../etc/passwd"),
    "many lanes": _configured(lanes=10**8),
    "huge replay": _configured(frames=2**62),
    "seed of text": _configured(seed="__import__('os')"),
    "device of text": _configured(device="cuda:0; touch canary"),
}
PAYLOADS = (
    *((file, kind) for file in FILES for kind in CONTENTS),
    *((file, kind) for file in (*FILES, "checkpoints", "tensorboard") for kind in PLACES),
    *(("sealed", kind) for kind in SEALED),
)


class HostileFiles(Row):
    """Reading a file runs nothing of it, writes nowhere else, and takes no more memory than it."""

    letter = "g"
    title = "Hostile files"
    goal = "0 executions, 0 writes outside, memory within twice the file and 200 MB"
    others = "SB3's .zip ran the payload; RLlib's checkpoints are pickles; torch: CVE-2025-32434"
    groups = COMMANDS
    quick = 40
    full = len(PAYLOADS) * len(COMMANDS)

    def prepare(self, place: Path) -> None:
        self._base = place / "base"
        base_runs.paused(self._base, base_runs.brief(), 280)

    def run(self, case: Case) -> dict[str, Any]:
        # Payloads in turn, from another one for each seed.
        turn = case.number // len(COMMANDS) * 7 + case.seed
        file, kind = PAYLOADS[turn % len(PAYLOADS)]
        run = shutil.copytree(self._base, case.place / "box" / "run")
        outside = case.place / "outside"
        outside.mkdir()
        canary = outside / CANARY
        secret = outside / "secret"
        secret.write_bytes(b"precious\n" * 100)
        size = _plant(run, file, kind, canary, secret)
        seen = case.place / "seen"
        watched = (case.group, self._base, run.parent, seen, size)
        ended = Forked(case.place, _watched, *watched).ended()
        what = f"{kind} in {file}"
        if canary.exists():
            raise Failure(f"{what} was executed")
        if sorted(path.name for path in outside.iterdir()) != ["secret"]:
            raise Failure(f"{what} wrote outside")
        if secret.read_bytes() != b"precious\n" * 100:
            raise Failure(f"{what} changed a file outside")
        events = seen.read_text() if seen.exists() else ""
        if events:
            raise Failure(f"{what}: {events[:300]}")
        if ended.code not in (0, 2):
            raise Failure(f"{what}: exit code {ended.code}, {ended.err[-300:]}")
        if ended.code == 2:
            require_sentence(ended)
        return {"payload": what, "refused": int(ended.code == 2)}

    def words(self, facts: Sequence[dict[str, Any]]) -> str:
        payloads = len({fact["payload"] for fact in facts})
        return f"{payloads} payloads, {sum(fact['refused'] for fact in facts)} refused"


def _command(name: str, run: Path, out: Path) -> list[str]:
    return {
        "resume": ["resume", str(run), *base_runs.RESUME],
        "evaluate": ["evaluate", str(run), "--frames", "8"],
        "report": ["report", str(run), "--markdown", str(out.with_suffix(".md"))],
        "collect": ["collect", str(run), "--out", str(out)],
    }[name]


def _plant(run: Path, file: str, kind: str, canary: Path, secret: Path) -> int:
    """Put a payload in its place; returns its size."""
    if file == "sealed":
        SEALED[kind](run)
        return 0
    newest = max((run / "checkpoints").glob("checkpoint-*"))
    path = run / file if (run / file).exists() else newest / file
    if file == "rows":
        path = max((run / "checkpoints" / "segments").iterdir())
    if kind in CONTENTS:
        path.write_bytes(CONTENTS[kind](canary))
        return path.stat().st_size
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    if kind == "pipe":
        path.touch()
        damage.become_pipe(path)
    elif kind == "directory":
        path.mkdir()
    else:
        targets = {"link to a file": secret, "link to a directory": secret.parent}
        path.symlink_to(targets.get(kind, Path("/dev/zero")))
    return 0


_SPAWNING = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "os.spawn")
_CONNECTING = ("socket.connect", "socket.bind", "socket.sendto")
_CHANGING = (
    "os.rename",
    "os.mkdir",
    "os.remove",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
)
_DANGEROUS = {"system", "exec", "eval", "popen", "Popen", "__import__"}


def _watched(name: str, intact: Path, box: Path, seen: Path, size: int) -> int:
    """Run a command while every process, connection and change outside is written down."""
    allowed = (str(box), os.environ.get("NUMBA_CACHE_DIR", str(box)), "/dev/null", str(seen))
    note = os.open(seen, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def tell(words: str) -> None:
        os.write(note, (words + "\n").encode(errors="replace"))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _SPAWNING or event in _CONNECTING:
            tell(f"{event} {str(arguments)[:100]}")
        elif event == "pickle.find_class" and arguments[1] in _DANGEROUS:
            tell(f"{event} {arguments}")
        elif event in _CHANGING or (event == "open" and _writes(arguments)):
            path = _absolute(event, arguments)
            if not path.startswith(allowed):
                tell(f"{event} {path}")

    # First on an intact run, so that what comes later is not what imports need.
    main(_command(name, shutil.copytree(intact, box / "intact"), box / "before"))
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _peak()
    resource.setrlimit(resource.RLIMIT_AS, (24 * 2**30, 24 * 2**30))
    sys.addaudithook(hook)
    code = main(_command(name, box / "run", box / "out"))
    grown = _peak() - before
    if grown > 2 * size + MOST_MEMORY:
        tell(f"took {grown / 2**20:.0f} MB for a file of {size / 2**20:.0f} MB")
    return code


# Where the descriptor of the directory is, among the arguments of an event.
_DIRECTORIES = {"os.remove": 1, "os.rmdir": 1, "os.mkdir": 2, "os.rename": 2, "os.link": 2}


def _absolute(event: str, arguments: tuple[Any, ...]) -> str:
    """The path that an event is about; a file that is open already has one as well."""
    name, place = arguments[0], arguments[_DIRECTORIES.get(event, 0)]
    if isinstance(name, int):
        return os.readlink(f"/proc/self/fd/{name}")
    if isinstance(place, int) and place >= 0:
        return os.path.join(os.readlink(f"/proc/self/fd/{place}"), os.fsdecode(name))
    return os.path.abspath(os.fsdecode(name))


def _writes(arguments: tuple[Any, ...]) -> bool:
    mode, flags = arguments[1], arguments[2]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


ROW = HostileFiles()
