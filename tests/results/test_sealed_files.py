"""Files that begin with their own checksum: no change of a bit goes unseen."""

import json
from pathlib import Path

import pytest

from ezgreedy.results.store import read_json, read_sealed, write_json_atomically

DATA = {"format": 1, "ε": 1e-05, "settings": {"agent": {"name": "é"}, "list": [1, 2]}, "none": None}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_json_atomically(tmp_path / "config.json", DATA, seals=True)
    return tmp_path / "config.json"


def test_a_sealed_file_gives_back_its_contents_without_the_seal(path):
    assert read_sealed(path) == (DATA, True)
    assert json.loads(path.read_text(encoding="utf-8"))["format"] == 1, "others read it as JSON"


def test_flipped_bits_are_refused_by_the_name_of_the_file(path):
    data = path.read_bytes()
    for number in range(0, 8 * len(data), 3):
        changed = bytearray(data)
        changed[number // 8] ^= 1 << number % 8
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"config\.json is damaged"):
            read_json(path)


def test_every_truncation_is_refused(path):
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(ValueError, match="is damaged"):
            read_json(path)


def test_an_edited_file_is_refused(path):
    path.write_text(path.read_text(encoding="utf-8").replace('"format": 1', '"format": 2'))
    with pytest.raises(ValueError, match="damaged or was edited: its checksum is wrong"):
        read_json(path)
    path.write_text(json.dumps({**DATA, "sha256": "0" * 64}))
    with pytest.raises(ValueError, match="its checksum is not in its place"):
        read_json(path)


def test_files_of_earlier_versions_are_read_and_known_to_have_no_seal(path):
    write_json_atomically(path, DATA)
    assert read_sealed(path) == (DATA, False)
