"""The data folder on its way to another place, killed at every step; and removed with all that points to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.common import home as place
from app.desktop.login import LinuxAutostart
from app.node.data import contents, moving, removal
from app.node.data.home import lock_data_folder
from app.node.record.errors import NodeError
from tests import inside

ROOT = Path(__file__).parents[3]
CONTENT = {
    "models/starter-1/history.sqlite": b"curve" * 400_000,
    "models/starter-1/checkpoints/000007/adapter_model.safetensors": b"weights" * 100,
    "hub/models--a--b/snapshots/c/config.json": b"{}",
    "cache/gguf/x.gguf": b"g" * 5000,
    "logs/node.log": b"said\n",
    "settings.json": b'{"idle_s": 60}\n',
    "identity": b"i" * 32,
    "lock": b" 1\n",
}


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The usual data folder of a person whose home is below tmp_path."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SHOAL_HOME", raising=False)
    folder = tmp_path / "data" / "shoal"
    fill(folder)
    return folder


def fill(folder: Path) -> None:
    for name, content in CONTENT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "identity").chmod(0o600)


def complete(folder: Path) -> bool:
    return all(
        (folder / name).is_file() and (folder / name).read_bytes() == content
        for name, content in CONTENT.items()
        if name != "lock"
    )


def test_it_is_there_and_no_longer_here(old: Path, tmp_path: Path) -> None:
    (old / "holiday.jpg").write_bytes(b"mine")
    told: list[tuple[int, int]] = []
    to = moving.move(tmp_path / "new" / "Shoal", lambda done, total: told.append((done, total)))
    assert complete(to) and place.home() == to and not (to / moving.UNFINISHED_MARK).exists()
    assert [entry.name for entry in old.iterdir()] == ["holiday.jpg"], "what is not ours stays where it is"
    assert (to / "identity").stat().st_mode & 0o777 == 0o600
    assert told[-1][0] == told[-1][1] and [done for done, _ in told] == sorted(done for done, _ in told)
    assert place.home(tmp_path / "other") == tmp_path / "other", "--home wins"
    os.environ["SHOAL_HOME"] = str(tmp_path / "third")
    assert place.home() == tmp_path / "third", "so does SHOAL_HOME"
    del os.environ["SHOAL_HOME"]
    (old / "holiday.jpg").unlink()
    assert moving.move(old) == old and complete(old) and not place.move_record().exists()


def killed(to: Path, at: int) -> bool:
    """Moves in a process of its own, which is killed at step `at`; False when it was done before."""
    child = os.fork()
    if child == 0:
        count = iter(range(10**9))

        def step(*_: object) -> None:
            if next(count) == at:
                os.kill(os.getpid(), signal.SIGKILL)

        def spied(module: object, name: str) -> None:
            real = getattr(module, name)

            def call(*args: object, **options: object) -> object:
                step()
                made = real(*args, **options)
                step()
                return made

            setattr(module, name, call)

        for module, name in (
            (os, "fsync"),
            (place, "remember_folder"),
            (contents, "remove"),
            (Path, "unlink"),
            (os, "replace"),
        ):
            spied(module, name)
        moving.move(to, step)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 and fork are words of POSIX")
def test_killed_anywhere_one_of_the_two_is_whole(old: Path, tmp_path: Path) -> None:
    to, sides, at = tmp_path / "new", [], 0
    while killed(to, at):
        now = place.home()
        assert complete(now), f"killed at step {at}"
        sides.append(now)
        if now == old:
            moving.move(to)
        moving.empty_old_folder()
        assert complete(to) and not contents.shoal_entries(old) and not (to / moving.UNFINISHED_MARK).exists()
        moving.move(old)
        at += 6  # every step takes a minute: each forces the disk three times over
    assert len(sides) > 8 and sides == sorted(sides, key=lambda side: side == to), "there is one turning point"
    assert {old, to} == set(sides)


def test_where_it_cannot_go_is_said_and_nothing_is_changed(old: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    for to, said in (
        (old, "already is"),
        (old / "inside", "within each other"),
        (old.parent, "within each other"),
        (full, "t empty"),
        (full / "file", "is a file"),
        (full / "file" / "below", "couldn't be copied"),
    ):
        with pytest.raises(moving.MoveError, match=said):
            moving.move(to)
    with lock_data_folder(old), pytest.raises(NodeError, match="Another node"):
        moving.move(tmp_path / "new")
    with pytest.raises(moving.MoveError, match="--home"):
        moving.move(tmp_path / "new", current=tmp_path / "chosen")
    assert complete(old) and place.home() == old


@pytest.mark.parametrize("what", ["room", "verify"])
def test_a_disk_that_does_not_take_it_keeps_the_old_one(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    if what == "room":
        import shutil
        from collections import namedtuple

        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 10, 0))
    else:
        monkeypatch.setattr(moving.shutil, "copystat", lambda source, target: target.write_bytes(b"rotten"))
    with pytest.raises(moving.MoveError, match="too little room" if what == "room" else "read back"):
        moving.move(tmp_path / "new")
    assert complete(old) and place.home() == old
    monkeypatch.undo()
    os.environ.update(XDG_DATA_HOME=str(tmp_path / "data"), XDG_CONFIG_HOME=str(tmp_path / "config"))
    try:
        assert complete(moving.move(tmp_path / "new")), "what was begun there is begun anew"
    finally:
        del os.environ["XDG_DATA_HOME"], os.environ["XDG_CONFIG_HOME"]


def test_a_disk_that_is_gone_is_told_and_nothing_is_begun_anew(old: Path, tmp_path: Path) -> None:
    moving.move(tmp_path / "usb")
    (tmp_path / "usb").rename(tmp_path / "unplugged")
    with pytest.raises(place.HomeError, match="connect its disk"):
        place.home()
    assert place.home(tmp_path / "x") == tmp_path / "x"
    place.move_record().write_text("{damaged")
    assert place.home() == old


def test_the_command_tells_and_moves(old: Path, tmp_path: Path) -> None:
    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return inside.shoal("data", *options)

    said = json.loads(run("--json").stdout)
    assert said["home"] == str(old) and said["kinds"]["cache"] == 5000
    moved = run("--move", str(tmp_path / "new"))
    assert moved.returncode == 0 and str(tmp_path / "new") in moved.stdout and complete(tmp_path / "new")
    refused = run("--move", str(tmp_path / "config"))
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1 and "t empty" in refused.stderr


class Ring:
    """A keyring in memory, as the system's answers."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def set_password(self, service: str, name: str, secret: str) -> None:
        self.kept[service, name] = secret

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


async def _keep(folder: Path, ring: Ring) -> None:
    from app.swarm.identity import storage

    await storage.keep_in_keyring(storage.Identity.new(), folder, find=lambda: ring)  # type: ignore[arg-type,return-value]


def test_everything_goes_also_what_points_here(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    from app.swarm.identity import storage

    ring = Ring()
    asyncio.run(_keep(old, ring))
    assert len(ring.kept) == 1
    real = storage.delete_keyring_entry
    monkeypatch.setattr(storage, "delete_keyring_entry", lambda folder: real(folder, find=lambda: ring))  # type: ignore[arg-type,return-value]
    login = LinuxAutostart(tmp_path / "autostart")
    login.turn_on([sys.executable, "window"])
    to = moving.move(tmp_path / "new")
    (to / "thesis.odt").write_bytes(b"mine")
    plan = removal.plan(to, login)
    assert plan.key and plan.login == login.where and plan.pointer and plan.stays == ("thesis.odt",)
    assert plan.bytes >= sum(len(content) for name, content in CONTENT.items() if name != "lock")
    done = removal.remove(to, login)
    assert done.failed == () and done.stays == (str(to / "thesis.odt"),)
    assert ring.kept == {} and login.command() is None and not place.move_record().exists()
    assert [entry.name for entry in to.iterdir()] == ["thesis.odt"]


@pytest.mark.parametrize("moved", [False, True])
def test_the_engine_of_an_installed_app_goes_with_the_usual_folder_alone(
    moved: bool, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOAL_PACKS", raising=False)
    engine = old / "packs"
    fill(tmp_path / "other")
    (engine / "cpu-1.0").mkdir(parents=True)
    (engine / "cpu-1.0" / "torch").write_bytes(b"t" * 5000)
    (engine / "current.json").write_text('{"current": "cpu-1.0"}')
    home = moving.move(tmp_path / "new") if moved else old
    login = LinuxAutostart(tmp_path / "autostart")
    assert removal.plan(tmp_path / "other", login).engine == ""
    removal.remove(tmp_path / "other", login)
    assert engine.is_dir()
    plan = removal.plan(home, login)
    assert plan.engine == str(engine) and plan.engine_bytes > 5000 and plan.stays == ()
    done = removal.remove(home, login)
    assert done.failed == () == done.stays and not home.exists() and not old.exists()


def test_the_command_asks_and_names_what_goes_and_what_stays(old: Path) -> None:
    def run(*options: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        return inside.shoal("remove", *options, said=answer, HOME=str(old.parent))

    assert run().returncode == 2
    asked = run("--everything", answer="no\n")
    assert asked.returncode == 1 and complete(old)
    for part in (str(old), "Downloaded models", "2.0 MB", "the program itself", "other folders"):
        assert part in asked.stderr
    done = run("--everything", "--yes")
    assert done.returncode == 0 and not old.exists(), done.stderr
