"""Fetching and handing over: nothing is run that the signed list does not name to the byte."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.common import fetch
from app.common.fetch import part_of
from app.common.rate import RetryLimit
from app.install import InstallError
from app.install.updates import asking as known
from app.install.updates import feed, handing
from app.install.updates import handing as bringing
from app.install.updates.feed import Feed, ReleaseFile
from app.install.updates.handing import NextStep, SystemInstaller
from tests.packs.wheels import Host, wait_until
from tests.updates.releases import BODY, FILES, LIST, plain, signed

QUICK = RetryLimit(attempts=3, first_s=0.01, longest_s=0.05, silent_s=10.0)
POSIX = pytest.mark.skipif(
    os.name == "nt", reason="scripts of the POSIX shell stand in for the system's programs"
)


def read(**changed: Any) -> Feed:
    return feed.read_feed(signed(plain(**changed))[0])


def file_of(form: str, **changed: Any) -> ReleaseFile:
    return next(one for one in read(**changed).files if one.form == form)


def bring(host: Host, home: Path, form: str = "deb", **changed: Any) -> tuple[Path, list[int]]:
    grew: list[int] = []
    one = file_of(form, **changed)
    path = bringing.fetch_update(
        home, read(**changed), one, f"{host.url}/{LIST}", grew.append, lambda *_: None, QUICK
    )
    return path, grew


def refused(host: Host, home: Path, **changed: Any) -> str:
    with pytest.raises(InstallError) as caught:
        bring(host, home, **changed)
    said = str(caught.value)
    assert said.endswith(".") and "\n" not in said
    assert bringing.fetched_file(home, file_of("deb")) is None
    return said


def test_it_arrives_whole_and_is_fetched_once(host: Host, tmp_path: Path) -> None:
    path, grew = bring(host, tmp_path)
    assert path.read_bytes() == BODY and grew == sorted(grew) and grew[-1] == len(BODY)
    host.asked.clear()
    assert bring(host, tmp_path)[0] == path and not host.asked
    assert bringing.fetched_file(tmp_path, file_of("deb")) == path


def test_a_cut_connection_goes_on_where_it_was(host: Host, tmp_path: Path) -> None:
    host.cut[FILES["deb"]] = [50_000, 0]
    bring(host, tmp_path)
    starts = [wanted for _, wanted in host.asked]
    assert starts[0] == "" and all(start.startswith("bytes=") for start in starts[1:]) and len(starts) == 3


def test_what_a_killed_process_left_is_continued(host: Host, tmp_path: Path) -> None:
    part = part_of(tmp_path / "updates", file_of("deb"))
    part.parent.mkdir()
    part.write_bytes(BODY[:123_456])
    bring(host, tmp_path)
    assert host.asked == [(FILES["deb"], "bytes=123456-")]


def test_wrong_bytes_are_refused(host: Host, tmp_path: Path) -> None:
    host.corrupt[FILES["deb"]] = 99
    assert "damaged or another file than was promised" in refused(host, tmp_path)
    host.corrupt.clear()
    host.longer = True
    assert "damaged" in refused(host, tmp_path)
    host.longer = False
    host.files[FILES["deb"]] = BODY[:-1]
    assert "ended the connection early" in refused(host, tmp_path)
    del host.files[FILES["deb"]]
    assert "look for new versions again" in refused(host, tmp_path)


def test_a_mirror_steps_in(host: Host, tmp_path: Path) -> None:
    folder = {"mirrors": [f"{host.url}"]}
    path = bringing.fetch_update(
        tmp_path,
        read(**folder),
        file_of("deb"),
        "http://127.0.0.1:1/x.json",
        lambda _: None,
        lambda *_: None,
        QUICK,
    )
    assert path.read_bytes() == BODY


def test_what_other_versions_left_goes(host: Host, tmp_path: Path) -> None:
    folder = tmp_path / "updates"
    folder.mkdir()
    for name in ("shoal_0.1.5_amd64.deb", "old.deb.0123456789ab.part", "feed.json", ".lock"):
        (folder / name).write_bytes(b"x")
    bring(host, tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "feed.json", FILES["deb"]]
    bringing.clear_fetched(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "feed.json"]


def test_a_full_disk_is_noticed_before_and_meanwhile(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10_000))
    assert "free up some space" in refused(host, tmp_path) and not host.asked
    monkeypatch.undo()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetch, "_write", full)
    assert "is full: free up some space" in refused(host, tmp_path)


def test_it_can_lie_beside_a_list_on_a_stick(host: Host, tmp_path: Path) -> None:
    stick = tmp_path / "a stick, größer"
    stick.mkdir()
    (stick / FILES["deb"]).write_bytes(BODY)
    args = (read(), file_of("deb"), str(stick / LIST), lambda _: None, lambda *_: None)
    assert bringing.fetch_update(tmp_path / "home", *args).read_bytes() == BODY
    (stick / FILES["deb"]).write_bytes(BODY[:-1])
    with pytest.raises(InstallError, match="is damaged"):
        bringing.fetch_update(tmp_path / "other", *args)
    assert not list((tmp_path / "other" / "updates").glob("*.deb"))


def test_only_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        known.one_at_a_time(tmp_path),
        pytest.raises(InstallError, match="wait for it"),
        known.one_at_a_time(tmp_path),
    ):
        pass


@pytest.fixture
def deb(tmp_path: Path) -> tuple[Path, ReleaseFile]:
    path = tmp_path / "a folder" / FILES["deb"]
    path.parent.mkdir()
    path.write_bytes(BODY)
    return path, file_of("deb")


def script(folder: Path, name: str, body: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def system(tmp_path: Path, body: str) -> SystemInstaller:
    """pkexec as a stand-in: it writes down what it was asked to run."""
    note = f'for one in "$@"; do echo "$one" >> "{tmp_path}/asked"; done; env > "{tmp_path}/env"; {body}'
    return SystemInstaller(pkexec=script(tmp_path, "pkexec", note), apt=script(tmp_path, "apt-get", "exit 0"))


def hand(deb: tuple[Path, ReleaseFile], installer: SystemInstaller) -> handing.HandOver:
    return handing.hand_over_update(*deb, Path("/nowhere/shoal"), lambda _: None, installer)


@POSIX
def test_the_package_manager_is_asked_through_polkit(
    deb: tuple[Path, ReleaseFile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/bundle")
    monkeypatch.setenv("PYTHONPATH", "/bundle")
    installer = system(tmp_path, "exit 0")
    assert hand(deb, installer).then is NextStep.RESTART
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[:2] == ["/bin/sh", "-c"]
    assert asked[-4:] == [str(deb[0]), str(len(BODY)), deb[1].sha256, installer.apt]
    assert "/bundle" not in (tmp_path / "env").read_text(), "the bundle's libraries are not the system's"
    with pytest.raises(InstallError, match="wasn't answered"):
        hand(deb, system(tmp_path, "exit 126"))
    with pytest.raises(InstallError, match=r"refused \(E: lock\): try sudo apt install"):
        hand(deb, system(tmp_path, "echo W: unsandboxed >&2; echo E: lock >&2; exit 100"))
    by_hand = hand(deb, system(tmp_path, "exit 127"))
    assert by_hand.then is NextStep.STAY and by_hand.command == f"sudo apt install '{deb[0]}'"
    assert hand(deb, SystemInstaller(pkexec="/nowhere", apt="/nowhere")) == by_hand


@POSIX
def test_a_package_that_is_swapped_before_the_password_is_not_installed(
    deb: tuple[Path, ReleaseFile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program of the owner's changes the file while the system asks for the password."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    apt = script(tmp_path, "apt-get", f'cp "$4" "{tmp_path}/installed"')
    for swap in (f"printf evil > '{deb[0]}'", f"rm '{deb[0]}'", f"ln -sf /etc/hostname '{deb[0]}'"):
        deb[0].unlink(missing_ok=True)
        deb[0].write_bytes(BODY)
        evil = SystemInstaller(pkexec=script(tmp_path, "pkexec", f'{swap}; exec "$@"'), apt=apt)
        with pytest.raises(InstallError):
            hand(deb, evil)
        assert not (tmp_path / "installed").exists()
    with pytest.raises(InstallError, match="was changed after it was checked"):
        deb[0].unlink()
        deb[0].write_bytes(BODY)
        hand(deb, SystemInstaller(pkexec=script(tmp_path, "pkexec", f': > "{deb[0]}"; exec "$@"'), apt=apt))
    deb[0].write_bytes(BODY)
    honest = SystemInstaller(pkexec=script(tmp_path, "pkexec", 'exec "$@"'), apt=apt)
    assert hand(deb, honest).then is NextStep.RESTART
    assert (tmp_path / "installed").read_bytes() == BODY
    assert not list(Path("/var/tmp").glob("shoal-update.*")), "nothing stays behind"


@POSIX
def test_a_window_that_the_package_ends_opens_again(deb: tuple[Path, ReleaseFile], tmp_path: Path) -> None:
    """The asking process is killed in the middle, as the package does with every running Shoal; dpkg goes
    on."""
    program = script(
        tmp_path,
        "shoal",
        f'for one in "$@"; do echo "$one" >> "{tmp_path}/opened.new"; done; '
        f'mv "{tmp_path}/opened.new" "{tmp_path}/opened"',
    )
    installer = system(tmp_path, 'kill -9 "$(cat asker)"; sleep 0.3; echo a line nobody reads any more; exit 0')
    wanted = msgspec.structs.replace(installer, reopen=program, home="/a home/größer")
    code = (
        "import os, sys; from pathlib import Path; import msgspec\n"
        "os.geteuid = lambda: 1000; Path('asker').write_text(str(os.getpid()))\n"
        "from app.install.updates import handing; from app.install.updates.feed import ReleaseFile\n"
        "deb, file, system = (sys.argv[1], *map(msgspec.json.decode, sys.argv[2:]))\n"
        "handing.hand_over_update(Path(deb), msgspec.convert(file, ReleaseFile), Path('x'), print,"
        " msgspec.convert(system, handing.SystemInstaller))\n"
    )
    words = [str(deb[0]), *(msgspec.json.encode(one).decode() for one in (deb[1], wanted))]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path, env=environment, timeout=120)
    assert done.returncode == -9
    wait_until((tmp_path / "opened").exists)
    assert (tmp_path / "opened").read_text().splitlines() == ["window", "--home", "/a home/größer"]


@POSIX
def test_nothing_is_run_as_root(
    deb: tuple[Path, ReleaseFile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    handed = hand(deb, system(tmp_path, "exit 0"))
    assert (
        handed.then is NextStep.STAY
        and "nothing as root" in handed.sentence
        and not (tmp_path / "asked").exists()
    )


@POSIX
def test_what_was_changed_after_it_came_is_not_handed_over(
    deb: tuple[Path, ReleaseFile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    deb[0].write_bytes(BODY[:-1] + b"?")
    with pytest.raises(InstallError, match="download it again"):
        hand(deb, system(tmp_path, "exit 0"))
    deb[0].unlink()
    with pytest.raises(InstallError, match="download it again"):
        hand(deb, system(tmp_path, "exit 0"))
    assert not (tmp_path / "asked").exists()


@POSIX
def test_one_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    """While it runs: the new one starts the next time, and the old one is kept."""
    body = b"#!/bin/sh\necho new\n"
    one = file_of("elf", body=body)
    fresh = tmp_path / "downloaded"
    fresh.write_bytes(body)
    program = Path(script(tmp_path, "shoal größer", "echo begun; read line; echo old"))
    program.chmod(0o750)
    link = tmp_path / "link"
    link.symlink_to(program)
    running = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdout is not None and running.stdout.readline() == b"begun\n"
    handed = handing.hand_over_update(fresh, one, link, lambda _: None)
    assert handed.then is NextStep.RESTART and link.is_symlink()
    assert running.communicate(b"go\n")[0] == b"old\n"
    assert subprocess.run([program], capture_output=True).stdout == b"new\n"
    assert program.stat().st_mode & 0o777 == 0o750
    previous = tmp_path / "shoal größer.previous"
    assert b"echo old" in previous.read_bytes()
    handing.hand_over_update(fresh, one, program, lambda _: None)
    assert b"echo old" in previous.read_bytes(), "twice is once"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


@POSIX
def test_a_place_that_cannot_be_written_keeps_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b"#!/bin/sh\necho new\n"
    (tmp_path / "downloaded").write_bytes(body)
    program = Path(script(tmp_path, "shoal", "echo old"))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(InstallError, match="is full: free up some space"):
        handing.hand_over_update(tmp_path / "downloaded", file_of("elf", body=body), program, lambda _: None)
    assert subprocess.run([program], capture_output=True).stdout == b"old\n"


@pytest.mark.skipif(sys.platform == "win32", reason="it would open the installer there")
def test_other_systems_files_are_not_run(tmp_path: Path) -> None:
    (tmp_path / "x.exe").write_bytes(BODY)
    with pytest.raises(InstallError, match="is for Windows"):
        handing.hand_over_update(tmp_path / "x.exe", file_of("nsis"), Path("shoal"), lambda _: None)
    (tmp_path / "x.dmg").write_bytes(BODY)
    opener = script(tmp_path, "open", f'echo "$1" > "{tmp_path}/opened"')
    handed = handing.hand_over_update(
        tmp_path / "x.dmg", file_of("dmg"), Path("shoal"), lambda _: None, SystemInstaller(show=(opener,))
    )
    assert handed.then is NextStep.QUIT and (tmp_path / "opened").read_text().strip().endswith("x.dmg")
