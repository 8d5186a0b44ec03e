"""Where are results stored? In an append-only file of JSON lines that survives crashes.

Each record is one line, written by one system call, with its number and a checksum. A process
killed while writing leaves at most an unfinished last line, which readers drop and the next writer
removes; damage anywhere else is an error with file and line number, and is never skipped. The
records of a training run also name their run, so that those of another cannot stand in for them.
Files are read only if they are regular ones: a pipe in the place of one would be waited for without
end.
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
from typing import Any, NamedTuple

from ezgreedy import requirements as require
from ezgreedy.results.sealed import Contents, unsealed, with_seal

DRAFT_SUFFIX = ".draft"
DAMAGED_SUFFIX = ".damaged"

_OWN_KEYS = ("seq", "crc", "run")
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
        run: name of the run in every record; None for results of something else, and for runs of
            versions that did not write it.
    """

    def __init__(
        self, path: Path, *, tolerates_damage: bool = False, run: str | None = None
    ) -> None:
        self.path, self._run = Path(path), run
        self._file = _opened_to_write(self.path)
        try:
            self._lock()
            intact = _intact_part(self.path, self._contents(), run)
            self._end, self.damage = intact.end, intact.damage
            if self.damage and not tolerates_damage:
                raise ValueError(self.damage)
            self.num_records = len(intact.records)
        except BaseException:
            os.close(self._file)
            raise

    def append(self, record: Mapping[str, Any]) -> None:
        """Appends one record: a mapping that JSON keeps unchanged, so without NaN and tuples."""
        if self.damage:
            raise ValueError(self.damage)
        line = _line(_checked(record), self.num_records, self._run)
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

    def num_records_before(self, offset: int) -> int:
        """Number of records in the first `offset` bytes."""
        return self._contents().count(b"\n", 0, offset)

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


class IntactPart(NamedTuple):
    """The records before the first damaged line."""

    records: list[dict[str, Any]]
    end: int  # their length in bytes
    damage: str | None  # what is wrong with the next line; None if there is nothing
    names_run: bool  # whether every record names its run


def read_results(path: Path, run: str | None = None) -> list[dict[str, Any]]:
    """All finished records of a file, in order.

    An unfinished last line is dropped with a logged warning; nothing is changed on disk.

    Args:
        path: the file.
        run: name of the run that its records must not contradict; None for any.
    """
    found = intact_part(path, run)
    if found.damage:
        raise ValueError(found.damage)
    return found.records


def intact_part(path: Path, run: str | None = None) -> IntactPart:
    """The finished records of a file up to the first damaged line; see `read_results`."""
    data = _read_regular(Path(path))
    if _finished_length(data) < len(data):
        _log.warning("%s ends in an unfinished line, which is ignored", path)
    return _intact_part(Path(path), data, run)


def read_json(path: Path) -> Any:
    """The contents of a JSON file; refuses anything else, and a broken seal, naming the file."""
    return read_sealed(path).data


def read_sealed(path: Path) -> Contents:
    """The same, and whether the file is sealed; those of earlier versions are not."""
    raw = _read_regular(path)
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: not JSON") from error
    return unsealed(path, raw, data)


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


def write_json_atomically(path: Path, data: Any, *, seals: bool = False) -> None:
    """Replaces a JSON file atomically: a crash leaves the old file or the new one.

    It may also leave a hidden file that ends in DRAFT_SUFFIX, which can be ignored.

    Args:
        path: the file.
        data: its new contents.
        seals: whether to begin with a checksum, so that no later change goes unseen; the data is
            then a mapping with at least one entry.
    """
    text = json.dumps(_finite(Path(path).name, data), indent=2, ensure_ascii=False, allow_nan=False)
    text = _ROW_OF_NUMBERS.sub(lambda row: " ".join(row.group().split()), text) + "\n"
    write_text_atomically(path, with_seal(text) if seals else text)


def create_json(path: Path, data: Any) -> None:
    """Writes a new sealed file as a whole; raises FileExistsError if there is one, from anybody."""
    path = Path(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new{DRAFT_SUFFIX}")
    try:
        write_json_atomically(draft, data, seals=True)
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


def _intact_part(path: Path, data: bytes, run: str | None) -> IntactPart:
    records: list[dict[str, Any]] = []
    end, names_run = 0, True
    for number, line in enumerate(data[: _finished_length(data)].split(b"\n")[:-1]):
        try:
            record, named = _record(path, number, line)
            if run is not None and named not in (None, run):
                settings = "its settings are not those of config.json"
                raise ValueError(f"{path}, line {number + 1}: of another run ({settings})")
        except ValueError as error:
            return IntactPart(records, end, str(error), names_run)
        records.append(record)
        names_run = names_run and named is not None
        end += len(line) + 1
    return IntactPart(records, end, None, names_run)


def _record(path: Path, number: int, line: bytes) -> tuple[dict[str, Any], str | None]:
    """A record and the run that it names."""
    place = f"{path}, line {number + 1}"
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: damaged, not JSON") from error
    if not isinstance(record, dict):
        raise ValueError(f"{place}: damaged, not a record")
    run = record.get("run")
    record = {key: value for key, value in record.items() if key not in _OWN_KEYS}
    # Writing the record again must give the same bytes. This checks the number, the checksum and
    # everything that a lenient parser would accept.
    try:
        rewritten = _line(record, number, run)
    except ValueError:
        rewritten = b""
    if rewritten != line + b"\n":
        raise ValueError(f"{place}: damaged, its number or checksum is wrong")
    return record, run


def _line(record: Mapping[str, Any], number: int, run: str | None) -> bytes:
    named = {} if run is None else {"run": run}
    body = _canonical({**record, **named, "seq": number})
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
