"""Where are results stored? In an append-only file of JSON lines that survives crashes.

Each record is one line, written by one system call, with its number and a checksum. A process
killed while writing leaves at most an unfinished last line, which readers drop and the next writer
removes; damage anywhere else is an error with file and line number, and is never skipped.
"""

import errno
import fcntl
import json
import logging
import math
import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ezgreedy import requirements as require

DRAFT_SUFFIX = ".draft"

_OWN_KEYS = ("seq", "crc")
# A line break cannot occur within a JSON string, so this finds nothing inside one.
_ROW_OF_NUMBERS = re.compile(r'\[\n[^\[\]{}"]*\]')
_log = logging.getLogger(__name__)


class InUseError(ValueError):
    """Another process is writing the result file."""


class ResultLog:
    """The only writer of a result file.

    Opening it checks the contents of the file, removes an unfinished last line and appends after
    the rest; a second writer is refused.

        with ResultLog(directory / "results.jsonl") as log:
            log.append({"cell": "ez", "seed": 0, "return": 0.5})

    Args:
        path: path of the file, created if there is none; its directory must exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._lock()
            data = self.path.read_bytes()
            self.num_records = len(_parsed(self.path, data))
            os.ftruncate(self._file, _finished_length(data))
        except BaseException:
            os.close(self._file)
            raise

    def append(self, record: Mapping[str, Any]) -> None:
        """Appends one record: a mapping that JSON keeps unchanged, so without NaN and tuples."""
        line = _line(_checked(record), self.num_records)
        written = os.write(self._file, line)
        if written < len(line):
            # The disk is full. Removing the partial line undoes this call.
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self.num_records += 1

    @property
    def offset(self) -> int:
        """Size of the file in bytes, where the next record starts."""
        return os.fstat(self._file).st_size

    def rewind(self, offset: int) -> None:
        """Removes everything after an earlier `offset`, which a resumed run will write again."""
        data = self.path.read_bytes()
        if not 0 <= offset <= len(data):
            rule = f"lie in [0, {len(data)}], the size of {self.path}"
            raise require.refuse("offset", rule, offset)
        if offset and data[offset - 1 : offset] != b"\n":
            raise require.refuse("offset", f"be the start of a line of {self.path}", offset)
        self.num_records = len(_parsed(self.path, data[:offset]))
        os.ftruncate(self._file, offset)

    def sync(self) -> None:
        """Returns once everything appended so far would survive a power cut."""
        os.fsync(self._file)

    def close(self) -> None:
        """Syncs and releases the lock."""
        self.sync()
        os.close(self._file)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InUseError(f"{self.path} is being written by another process") from error

    def __enter__(self) -> "ResultLog":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_results(path: Path) -> list[dict[str, Any]]:
    """All finished records of a file, in order.

    An unfinished last line is dropped with a logged warning; nothing is changed on disk.
    """
    data = Path(path).read_bytes()
    if _finished_length(data) < len(data):
        _log.warning("%s ends in an unfinished line, which is ignored", path)
    return _parsed(Path(path), data)


def write_json_atomically(path: Path, data: Any) -> None:
    """Replaces a JSON file atomically: a crash leaves the old file or the new one.

    It may also leave a hidden file that ends in DRAFT_SUFFIX, which can be ignored.
    """
    text = json.dumps(_finite(Path(path).name, data), indent=2, ensure_ascii=False, allow_nan=False)
    text = _ROW_OF_NUMBERS.sub(lambda row: " ".join(row.group().split()), text)
    write_text_atomically(path, text + "\n")


def write_text_atomically(path: Path, text: str) -> None:
    """Replaces a text file atomically, as `write_json_atomically` does."""
    path = Path(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}{DRAFT_SUFFIX}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _finished_length(data: bytes) -> int:
    """Number of bytes up to and including the last line break."""
    return data.rfind(b"\n") + 1


def _parsed(path: Path, data: bytes) -> list[dict[str, Any]]:
    lines = data[: _finished_length(data)].split(b"\n")[:-1]
    return [_record(path, number, line) for number, line in enumerate(lines)]


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    place = f"{path}, line {number + 1}"
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{place}: damaged, not JSON") from error
    if not isinstance(record, dict):
        raise ValueError(f"{place}: damaged, not a record")
    record = {key: value for key, value in record.items() if key not in _OWN_KEYS}
    # Writing the record again must give the same bytes. This checks the number, the checksum and
    # everything that a lenient parser would accept.
    try:
        rewritten = _line(record, number)
    except ValueError:
        rewritten = b""
    if rewritten != line + b"\n":
        raise ValueError(f"{place}: damaged, its number or checksum is wrong")
    return record


def _line(record: Mapping[str, Any], number: int) -> bytes:
    body = _canonical({**record, "seq": number})
    checksum = zlib.crc32(body.encode("ascii"))
    return f'{body[:-1]},"crc":{checksum}}}\n'.encode("ascii")


def _canonical(data: Any) -> str:
    """The data as canonical ASCII JSON."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _checked(record: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in _OWN_KEYS:
        if key in record:
            raise require.refuse("record", f"leave the key {key!r} to the log", record[key])
    if json.loads(_canonical(_finite("record", dict(record)))) != record:
        raise require.refuse("record", "survive JSON unchanged (str keys, lists)", record)
    return record


def _finite(name: str, data: Any) -> Any:
    """The same data; refuses numbers that are not finite, by name."""
    if isinstance(data, float) and not math.isfinite(data):
        raise require.refuse(name, "be finite", data)
    if isinstance(data, Mapping):
        for key, value in data.items():
            _finite(f"{name}[{key!r}]", value)
    elif isinstance(data, (list, tuple)):
        for position, value in enumerate(data):
            _finite(f"{name}[{position}]", value)
    return data
