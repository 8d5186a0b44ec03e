"""Where are results stored? In an append-only file of JSON lines that survives crashes.

Each record is one line, written by one system call, with its number and a checksum. A process
killed while writing leaves at most an unfinished last line, which readers drop and the next writer
removes; damage anywhere else is an error with file and line number, and is never skipped. Files are
read only if they are regular ones: a pipe in the place of one would be waited for without end.
"""

import errno
import fcntl
import json
import logging
import math
import os
import re
import stat
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ezgreedy import requirements as require

DRAFT_SUFFIX = ".draft"
DAMAGED_SUFFIX = ".damaged"

_OWN_KEYS = ("seq", "crc")
# A line break cannot occur within a JSON string, so this finds nothing inside one.
_ROW_OF_NUMBERS = re.compile(r'\[\n[^\[\]{}"]*\]')
_log = logging.getLogger(__name__)


class InUseError(ValueError):
    """Another process is writing the result file."""


class ResultLog:
    """The only writer of a result file.

    Opening it checks the contents of the file and changes nothing; the first record goes after the
    last finished line, in place of an unfinished one. A second writer is refused.

        with ResultLog(directory / "results.jsonl") as log:
            log.append({"cell": "ez", "seed": 0, "return": 0.5})

    Args:
        path: path of the file, created if there is none; its directory must exist.
        tolerates_damage: whether to open a file with damaged lines, which `rewind` must remove
            before anything is appended.
    """

    def __init__(self, path: Path, *, tolerates_damage: bool = False) -> None:
        self.path = Path(path)
        self._file = _opened_to_write(self.path)
        try:
            self._lock()
            records, self._end, self.damage = _intact_part(self.path, self._contents())
            if self.damage and not tolerates_damage:
                raise ValueError(self.damage)
            self.num_records = len(records)
        except BaseException:
            os.close(self._file)
            raise

    def append(self, record: Mapping[str, Any]) -> None:
        """Appends one record: a mapping that JSON keeps unchanged, so without NaN and tuples."""
        if self.damage:
            raise ValueError(self.damage)
        line = _line(_checked(record), self.num_records)
        if os.fstat(self._file).st_size > self._end:
            os.ftruncate(self._file, self._end)  # an unfinished line
        written = os.write(self._file, line)
        if written < len(line):
            # The disk is full. Removing the partial line undoes this call.
            os.ftruncate(self._file, self._end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self.num_records += 1
        self._end += written

    @property
    def offset(self) -> int:
        """Size of the intact part in bytes, after which the next record starts."""
        return self._end

    def rewind(self, offset: int) -> None:
        """Removes everything after an earlier `offset`, which a resumed run will write again.

        A file with damaged lines is first copied to a name that ends in DAMAGED_SUFFIX.
        """
        data = self._contents()
        if not 0 <= offset <= self._end:
            rule = f"lie in [0, {self._end}], the size of the intact part of {self.path}"
            raise require.refuse("offset", rule, offset)
        if offset and data[offset - 1 : offset] != b"\n":
            raise require.refuse("offset", f"be the start of a line of {self.path}", offset)
        if self.damage:
            self.path.with_name(self.path.name + DAMAGED_SUFFIX).write_bytes(data)
        self.num_records = data.count(b"\n", 0, offset)
        os.ftruncate(self._file, offset)
        self._end, self.damage = offset, None

    def _contents(self) -> bytes:
        return os.pread(self._file, os.fstat(self._file).st_size, 0)

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
    data = _read_regular(Path(path))
    if _finished_length(data) < len(data):
        _log.warning("%s ends in an unfinished line, which is ignored", path)
    records, _, damage = _intact_part(Path(path), data)
    if damage:
        raise ValueError(damage)
    return records


def read_json(path: Path) -> Any:
    """The contents of a JSON file; refuses anything else, naming the file."""
    try:
        return json.loads(_read_regular(path))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: not JSON") from error


def _read_regular(path: Path) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for a writer
    try:
        # First of all: opening a directory to read raises an error that names a number.
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        with os.fdopen(file, "rb", closefd=False) as opened:
            return opened.read()
    finally:
        os.close(file)


def _opened_to_write(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = os.open(path, flags, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:  # writing would change a file somewhere else
            raise OSError(error.errno, "Not written through a symbolic link", str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return file


def write_json_atomically(path: Path, data: Any) -> None:
    """Replaces a JSON file atomically: a crash leaves the old file or the new one.

    It may also leave a hidden file that ends in DRAFT_SUFFIX, which can be ignored.
    """
    text = json.dumps(_finite(Path(path).name, data), indent=2, ensure_ascii=False, allow_nan=False)
    text = _ROW_OF_NUMBERS.sub(lambda row: " ".join(row.group().split()), text)
    write_text_atomically(path, text + "\n")


def create_json(path: Path, data: Any) -> None:
    """Writes a new JSON file as a whole; raises FileExistsError if there is one, from anybody."""
    path = Path(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new{DRAFT_SUFFIX}")
    try:
        write_json_atomically(draft, data)
        os.link(draft, path)  # unlike a rename, refused if the name is taken
    finally:
        draft.unlink(missing_ok=True)


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


def _intact_part(path: Path, data: bytes) -> tuple[list[dict[str, Any]], int, str | None]:
    """The records before the first damaged line, their length in bytes, and what is wrong there."""
    records: list[dict[str, Any]] = []
    end = 0
    for number, line in enumerate(data[: _finished_length(data)].split(b"\n")[:-1]):
        try:
            records.append(_record(path, number, line))
        except ValueError as error:
            return records, end, str(error)
        end += len(line) + 1
    return records, end, None


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    place = f"{path}, line {number + 1}"
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
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
