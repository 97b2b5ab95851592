"""Files are whole or not there, whoever reads, writes or kills meanwhile."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.common import files
from app.node.data.home import lock_data_folder
from app.node.record.errors import NodeError

HOLDS = """
import sys
from pathlib import Path
from engines.files import exclusive_lock
with exclusive_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
"""Another process that holds a lock until it is killed or told to end."""


def another(lock: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDS, str(lock)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_on_windows_a_reader_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, real = [], os.replace

    def refuses_twice(fresh: Path, path: Path) -> None:
        asked.append(path)
        if len(asked) < 3:
            raise PermissionError(13, "in use")
        real(fresh, path)

    monkeypatch.setattr(os, "replace", refuses_twice)
    (tmp_path / "new").write_text("new")
    (tmp_path / "old").write_text("old")
    files.replace(tmp_path / "new", tmp_path / "old", "win32")
    assert (tmp_path / "old").read_text() == "new" and len(asked) == 3
    asked.clear()
    (tmp_path / "new").write_text("newer")
    with pytest.raises(PermissionError):
        files.replace(tmp_path / "new", tmp_path / "old", "linux")


def test_what_is_written_takes_the_old_ones_place_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a"
    for content in (b"one", b"two"):
        files.write(path, content)
    assert path.read_bytes() == b"two" and list(path.parent.iterdir()) == [path]


def test_it_is_flushed_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def spy(*given: object, name: str = name, real: object = real) -> object:
            done.append(name)
            return real(*given)  # type: ignore[operator]

        monkeypatch.setattr(os, name, spy)
    files.write(tmp_path / "a", b"one")
    assert done == ["fsync", "replace"]


@pytest.mark.parametrize("refusing", ["fsync", "replace"])
def test_a_disk_that_refuses_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusing: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    files.write(tmp_path / "a", b"old")
    monkeypatch.setattr(os, refusing, full)
    with pytest.raises(OSError, match="No space"):
        files.write(tmp_path / "a", b"new")
    with pytest.raises(ValueError, match="mine"), files.staged(tmp_path / "a") as fresh:
        fresh.write_bytes(b"half")
        raise ValueError("mine")
    assert (tmp_path / "a").read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such rights")
def test_what_is_private_is_so_from_its_first_byte(tmp_path: Path) -> None:
    (tmp_path / f".a-{os.getpid()}").write_bytes(b"left by a killed one, open to all")
    files.write(tmp_path / "a", b"secret", private=True)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert (tmp_path / "a").read_bytes() == b"secret"


def test_json_that_says_nothing_sensible_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert files.read_json(path, list[int]) is None
    files.write_json(path, [1, 2])
    assert files.read_json(path, list[int]) == [1, 2] and path.read_text().endswith("]\n")
    assert files.read_json(path, dict[str, int]) is None and files.read_json(path, list[int], 3) is None
    path.write_bytes(b'["\xff"]')
    assert files.read_json(path, list[str]) is None


def test_damaged_json_is_moved_aside_and_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert files.read_or_set_aside(path, list[int]) == (None, "")
    path.write_text("[1, ")
    found, sentence = files.read_or_set_aside(path, list[int])
    (aside,) = tmp_path.iterdir()
    assert found is None and aside.read_text() == "[1, "
    assert sentence.startswith("a.json can't be read (") and f"is kept as {aside.name}" in sentence


def test_a_lock_says_who_has_it_and_is_free_however_that_one_ended(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    other = another(lock)
    try:
        told: list[str] = []
        with (
            pytest.raises(files.LockHeldError) as caught,
            files.exclusive_lock(lock, 0.2, lambda: told.append("waiting")),
        ):
            pass
        assert caught.value.holder == str(other.pid) and told == ["waiting"]
    finally:
        other.kill()
        other.wait()
    with files.exclusive_lock(lock), pytest.raises(files.LockHeldError), files.exclusive_lock(lock):
        pass
    with files.exclusive_lock(lock):
        pass


NO_LOCKS = """
import errno, fcntl, os, sys
def refused(*args):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
fcntl.flock = refused
if "both" in sys.argv:
    fcntl.lockf = refused
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has one kind of lock")
def test_a_disk_with_one_kind_of_lock_uses_it_and_one_without_is_named(tmp_path: Path) -> None:
    lock, first = tmp_path / "lock", NO_LOCKS + HOLDS
    holder = subprocess.Popen(
        [sys.executable, "-c", first, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        late = subprocess.run(
            [sys.executable, "-c", first, str(lock)], capture_output=True, text=True, input=""
        )
        assert f"LockHeldError: {lock}" in late.stderr or str(holder.pid) in late.stderr, late.stderr
    finally:
        holder.kill()
        holder.wait()
    opens = NO_LOCKS + (
        "from pathlib import Path\nfrom app.node.data.home import lock_data_folder\n"
        "with lock_data_folder(Path(sys.argv[1])):\n    print('held')\n"
    )
    done = subprocess.run([sys.executable, "-c", opens, str(tmp_path), "both"], capture_output=True, text=True)
    assert "NodeError" in done.stderr and "no locks" in done.stderr and "BusyError" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="links need a right on Windows")
def test_neither_a_lock_nor_a_log_writes_through_a_link(tmp_path: Path) -> None:
    """HOME/lock as a link emptied another file of the owner's at every start."""
    other = tmp_path / "thesis.txt"
    other.write_text("years of work")
    for name in ("lock", "node.log"):
        (tmp_path / name).symlink_to(other)
    with pytest.raises(OSError), files.exclusive_lock(tmp_path / "lock"):
        pass
    with pytest.raises(NodeError, match="is a link"), lock_data_folder(tmp_path):
        pass
    with files.prepare_log(tmp_path / "node.log").open("ab") as log:
        log.write(b"a line")
    assert other.read_text() == "years of work" and (tmp_path / "node.log").read_bytes() == b"a line"


@pytest.mark.skipif(os.name == "nt", reason="Windows hands no locks on")
def test_a_child_that_was_handed_the_lock_keeps_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with files.exclusive_lock(lock) as descriptor:
        child = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            pass_fds=(descriptor,),
        )
    with pytest.raises(files.LockHeldError), files.exclusive_lock(lock):
        pass
    child.communicate()
    with files.exclusive_lock(lock):
        pass
