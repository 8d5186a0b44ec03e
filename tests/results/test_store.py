import json
import math
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ezgreedy.results.store import ResultLog, read_results, write_json_atomically

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.dictionaries(st.text().filter(lambda key: key not in ("seq", "crc")), VALUES)

WRITER = """
import sys
from pathlib import Path
from ezgreedy.results.store import ResultLog

log = ResultLog(Path(sys.argv[1]))
number = log.num_records
print("writing", flush=True)
while True:
    log.append({"number": number, "padding": "x" * 5000})
    number += 1
"""


def written(path: Path, records: list[dict]) -> bytes:
    path.unlink(missing_ok=True)
    with ResultLog(path) as log:
        for record in records:
            log.append(record)
    return path.read_bytes()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "results.jsonl"


@given(records=st.lists(RECORDS, max_size=5))
def test_records_come_back_as_they_were_appended(path: Path, records: list[dict]) -> None:
    written(path, records)
    assert read_results(path) == records


@given(records=st.lists(RECORDS, max_size=4), data=st.data())
def test_every_truncation_leaves_a_prefix_that_can_be_continued(
    path: Path, records: list[dict], data: st.DataObject
) -> None:
    whole = written(path, records)
    length = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:length])
    num_whole = whole[:length].count(b"\n")
    assert read_results(path) == records[:num_whole]
    with ResultLog(path) as log:
        for record in records[num_whole:]:
            log.append(record)
    assert path.read_bytes() == whole


def test_every_single_truncation_of_one_file(path: Path) -> None:
    records = [{"cell": "ez", "seed": seed, "return": seed / 7} for seed in range(3)]
    whole = written(path, records)
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        assert read_results(path) == records[: whole[:length].count(b"\n")]


def test_every_flipped_bit_is_refused_or_tears_the_last_line(path: Path) -> None:
    records = [{"name": "ε", "value": 1e-05}, {"value": 0.1}, {"value": [1, 2]}]
    whole = written(path, records)
    for position in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            if position == len(whole) - 1:  # the last line's end: no longer a finished line
                assert read_results(path) == records[:2]
            else:
                with pytest.raises(ValueError, match=r"results\.jsonl, line [123]: damaged"):
                    read_results(path)
                with pytest.raises(ValueError, match="damaged"):
                    ResultLog(path)
                assert path.read_bytes() == bytes(damaged)


def test_a_missing_line_is_refused_by_its_number(path: Path) -> None:
    lines = written(path, [{"a": 0}, {"a": 1}, {"a": 2}]).splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(ValueError, match="line 2: damaged, its number"):
        read_results(path)


def test_lines_hold_their_number_and_checksum(path: Path) -> None:
    lines = written(path, [{"a": 0}, {"a": 1}]).splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [0, 1]
    assert all(isinstance(json.loads(line)["crc"], int) for line in lines)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"curve": [0.0, math.nan]}, r"record\['curve'\]\[1\] must be finite; got nan"),
        ({"a": {"b": math.inf}}, r"record\['a'\]\['b'\] must be finite; got inf"),
        ({"a": (1, 2)}, "must survive JSON unchanged"),
        ({1: "a"}, "must survive JSON unchanged"),
        ({"crc": 3}, "must leave the key 'crc' to the log"),
    ],
)
def test_records_that_json_would_change_are_refused_and_not_written(
    path: Path, record: dict, message: str
) -> None:
    before = written(path, [{"a": 0}])
    with ResultLog(path) as log, pytest.raises(ValueError, match=message):
        log.append(record)
    assert path.read_bytes() == before


def test_an_unfinished_line_is_mentioned(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_bytes(written(path, [{"a": 0}])[:-3])
    assert read_results(path) == []
    assert "ends in an unfinished line" in caplog.text


def test_a_second_writer_is_refused(path: Path) -> None:
    written(path, [{"a": 0}])
    with ResultLog(path), pytest.raises(ValueError, match="written by another process"):
        ResultLog(path)
    ResultLog(path).close()


def test_a_full_disk_leaves_the_earlier_records(tmp_path: Path) -> None:
    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))

    target = tmp_path / "results.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(target)],
        preexec_fn=limited,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert [record["number"] for record in read_results(target)] == [0, 1]
    assert target.read_bytes().endswith(b"\n")


def test_killing_the_writer_leaves_a_file_that_reads_and_continues(tmp_path: Path) -> None:
    target = tmp_path / "results.jsonl"
    counts = []
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        size = target.stat().st_size
        while target.stat().st_size < size + 100_000:
            pass
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        records = read_results(target)
        assert [record["number"] for record in records] == list(range(len(records)))
        counts.append(len(records))
    assert 0 < counts[0] < counts[1] < counts[2]


def test_json_files_are_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_json_atomically(path, {"ε": 0.1})
    with pytest.raises(ValueError, match=r"summary\.json\['ε'\] must be finite"):
        write_json_atomically(path, {"ε": math.nan})
    assert json.loads(path.read_text()) == {"ε": 0.1}
    assert [file.name for file in tmp_path.iterdir()] == ["summary.json"]


@given(data=VALUES)
def test_json_files_read_as_they_were_written(path: Path, data: object) -> None:
    write_json_atomically(path, data)
    assert json.loads(path.read_text(encoding="utf-8")) == data


def test_json_files_keep_rows_of_numbers_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_json_atomically(path, {"map": [[1, 2.5], [None, -3e-07]]})
    assert "[ 1, 2.5 ]," in path.read_text()
