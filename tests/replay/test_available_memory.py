"""Which limits of memory are seen? Those of made-up trees of control groups, and the real ones."""

from pathlib import Path

import pytest

from ezgreedy.replay.available_memory import available_bytes

GB = 10**9
UNLIMITED = 9223372036854771712  # as version 1 writes it
MEMINFO = "MemTotal:       16000000 kB\nMemAvailable:   10000000 kB\n"
FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
MOUNTS = {
    1: "35 31 0:32 {top} /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
    "36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
    2: "30 23 0:26 {top} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
}
PLACES = {1: "sys/fs/cgroup/memory", 2: "sys/fs/cgroup"}
LINES = {1: "4:cpuacct,memory:{path}\n3:cpu:/\n", 2: "0::{path}\n"}


def machine(root: Path, versions: dict[int, str], top: str = "/") -> Path:
    """A machine with 10.24 GB available whose process is in these groups, by version."""
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "meminfo").write_text(MEMINFO)
    lines = [LINES[version].format(path=path) for version, path in versions.items()]
    (root / "proc" / "self" / "cgroup").write_text("".join(lines))
    mounts = [MOUNTS[version].format(top=top) for version in versions]
    (root / "proc" / "self" / "mountinfo").write_text("".join(mounts))
    return root


def group(
    root: Path, version: int, path: str, limit: int | str, used: int, cached: int = 0
) -> None:
    """A group with a limit, its use, and the part of it that is only a cache of files."""
    place = root / PLACES[version] / path.lstrip("/")
    place.mkdir(parents=True, exist_ok=True)
    limit_file, used_file, cache = FILES[version]
    (place / limit_file).write_text(f"{limit}\n")
    (place / used_file).write_text(f"{used}\n")
    (place / "memory.stat").write_text(f"anon 5\n{cache} {cached}\nunevictable 0\n")


def test_without_groups_the_machine_s_memory_counts(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text(MEMINFO)
    assert available_bytes(tmp_path) == 10_240_000_000


@pytest.mark.parametrize("version", [1, 2])
def test_the_limit_of_the_own_group_counts_without_its_cache_of_files(tmp_path, version):
    root = machine(tmp_path, {version: "/job"})
    group(root, version, "/job", 4 * GB, 3 * GB, cached=GB)
    assert available_bytes(root) == 2 * GB


@pytest.mark.parametrize("version", [1, 2])
def test_the_narrowest_of_all_groups_above_counts(tmp_path, version):
    root = machine(tmp_path, {version: "/slurm/job_7/step_0/task_1"})
    unlimited = {1: UNLIMITED, 2: "max"}[version]
    group(root, version, "/slurm/job_7/step_0/task_1", unlimited, GB // 2)
    group(root, version, "/slurm/job_7", 3 * GB, 2 * GB)
    group(root, version, "/slurm", 8 * GB, GB)
    assert available_bytes(root) == GB
    group(root, version, "/slurm", 3 * GB, 3 * GB - 7)
    assert available_bytes(root) == 7


@pytest.mark.parametrize("version", [1, 2])
def test_groups_without_a_limit_leave_the_machine_s_memory(tmp_path, version):
    root = machine(tmp_path, {version: "/user"})
    group(root, version, "/user", {1: UNLIMITED, 2: "max"}[version], GB)
    group(root, version, "/", 20 * GB, GB)
    group(root, version, "/other", GB, GB)  # of somebody else
    assert available_bytes(root) == 10_240_000_000


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_that_sees_only_its_own_groups_is_limited_by_them(tmp_path, version):
    root = machine(tmp_path, {version: "/docker/c0ffee/inner"}, top="/docker/c0ffee")
    group(root, version, "/inner", 6 * GB, GB)
    group(root, version, "/", 4 * GB, GB)
    assert available_bytes(root) == 3 * GB


def test_a_group_that_is_not_below_the_mounted_ones_is_limited_by_their_top(tmp_path):
    root = machine(tmp_path, {2: "/../sibling"}, top="/docker/c0ffee")
    group(root, 2, "/", 4 * GB, GB)
    assert available_bytes(root) == 3 * GB


def test_both_versions_count_where_both_are_in_use(tmp_path):
    root = machine(tmp_path, {1: "/a", 2: "/b"})
    group(root, 1, "/a", 5 * GB, GB)
    group(root, 2, "/b", 4 * GB, GB)
    assert available_bytes(root) == 3 * GB


def test_a_group_that_uses_more_than_its_limit_leaves_nothing(tmp_path):
    root = machine(tmp_path, {2: "/job"})
    group(root, 2, "/job", GB, 2 * GB)
    assert available_bytes(root) == 0


def test_this_machine_has_some_memory_and_no_more_than_it_reports():
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    assert 0 < available_bytes() <= int(fields["MemTotal"].split()[0]) * 1024
