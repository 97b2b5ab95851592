"""The limits of a container: a real control group where one can be made, else the files as Linux has them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from engines.container import NO_LIMIT, ROOT, cpu_quota, memory_left


def group(folder: Path, **contents: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{content}\n")


def test_the_tightest_limit_of_the_own_group_and_those_above_counts(tmp_path: Path) -> None:
    root, own = tmp_path / "fs", tmp_path / "cgroup"
    own.write_text("0::/slice/shoal\n")
    group(root / "slice", cpu_max="150000 100000", memory_max="9000", memory_current="5000")
    group(root / "slice" / "shoal", cpu_max="max 100000", memory_max="max", memory_current="4000")
    (root / "slice" / "memory.stat").write_text("anon 3000\ninactive_file 1500\nfile 2000\n")
    assert (cpu_quota(root, own), memory_left(root, own)) == (1.5, 5500)
    own.write_text("0::/elsewhere\n")  # no namespace of its own: the root's files are the container's
    group(root, cpu_max="50000 100000")
    assert (cpu_quota(root, own), memory_left(root, own)) == (0.5, NO_LIMIT)


def test_the_first_version_has_a_folder_for_each_controller(tmp_path: Path) -> None:
    root, own = tmp_path / "fs", tmp_path / "cgroup"
    own.write_text("5:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n0::/\n")
    (root / "cpu,cpuacct").mkdir(parents=True)
    group(root / "cpu,cpuacct" / "docker" / "ab")
    for name, content in {"cpu.cfs_quota_us": "200000", "cpu.cfs_period_us": "100000"}.items():
        (root / "cpu,cpuacct" / "docker" / "ab" / name).write_text(content)
    memory = root / "memory" / "docker"
    memory.mkdir(parents=True)
    for name, content in {"memory.limit_in_bytes": "800", "memory.usage_in_bytes": "300"}.items():
        (memory / name).write_text(content)
    (memory / "memory.stat").write_text("inactive_file 0\ntotal_inactive_file 100\n")
    assert (cpu_quota(root, own), memory_left(root, own)) == (2.0, 600)


@pytest.mark.parametrize("told", ["", "0::/../up\n", "rubbish\n", "0::/a\n5:cpu\n"])
def test_without_limits_there_are_none(tmp_path: Path, told: str) -> None:
    own = tmp_path / "cgroup"
    own.write_text(told)
    group(tmp_path / "fs", cpu_max="max 100000", memory_max="rubbish", memory_current="1")
    for root in (tmp_path / "fs", tmp_path / "none"):
        assert (cpu_quota(root, own), memory_left(root, own)) == (math.inf, NO_LIMIT)
    assert cpu_quota(tmp_path, tmp_path / "none") == math.inf


@contextmanager
def real_group(controller: str, **limits: str) -> Iterator[Path]:
    """A control group below this process's own one; the test is skipped where none can be made."""
    base = ROOT / controller if (ROOT / controller).is_dir() else ROOT
    folder = base / f"shoal-test-{os.getpid()}"
    try:
        folder.mkdir()
        for name, value in limits.items():
            (folder / name.replace("_", ".", 1)).write_text(value)
    except OSError as error:
        with suppress(OSError):
            folder.rmdir()
        pytest.skip(f"no control group can be made here ({error})")
    try:
        yield folder
    finally:
        folder.rmdir()


def inside(folder: Path, code: str) -> str:
    """What Python prints in that group."""
    join = f"import os; open({str(folder / 'cgroup.procs')!r}, 'w').write(str(os.getpid())); "
    done = subprocess.run([sys.executable, "-c", join + code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_real_group_with_one_processor_gets_one_thread() -> None:
    old = (ROOT / "cpu").is_dir()
    limits = {"cpu_cfs_quota_us": "100000"} if old else {"cpu_max": "100000 100000"}
    with real_group("cpu", **limits) as folder:
        said = inside(folder, "from engines.facts import cores, usable; print(cores(), usable(64))")
    assert said == "1 1"


def test_a_real_group_s_memory_is_what_is_left() -> None:
    old = (ROOT / "memory").is_dir()
    limit = {"memory_limit_in_bytes" if old else "memory_max": str(2**30)}
    with real_group("memory", **limit) as folder:
        left = int(inside(folder, "from engines.container import memory_left; print(memory_left())"))
    assert 2**29 < left <= 2**30
