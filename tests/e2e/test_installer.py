"""The whole way of an owner on Linux: a minimal Debian, `apt install`, a double click, the engine over a
connection that breaks, learning, the tray, a newer version, and everything gone again.

SHOAL_TEST_DEB names a package that is built already; SHOAL_TEST_PACK a folder with an offline pack (cpu.json,
its signature, the wheels, and the public key in `key.pub`). Otherwise both are made, which takes a while.
SHOAL_TEST_PICTURES names a folder for what was on the screen, and SHOAL_TEST_ROOT a file in which the minimal
Debian is kept for the next time.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from app.bench.runs.window import prepare
from app.install.packs import manifest
from app.install.packs.offered import load_manifest
from tests.e2e.debian_root import OWNER, Root, debian, obstacle
from tests.packs.wheels import Host, serving
from tests.ui.screen.real import PRESS, ended, screen

ROOT = Path(__file__).parents[2]
PATIENCE_S = 600.0
FOLDER = f"{OWNER}/Desktop"
DATA = ".local/share/shoal"
ICON = (207, 115)
"""Where the file manager shows the only icon of a folder, in its window at the top left."""
TRAY = (1268, 886)

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(bool(obstacle()), reason=obstacle()),
]


@dataclass
class Desktop:
    """A session of the owner's in the root: a screen, a window manager, a tray, a bus and a file manager."""

    root: Root
    display: str
    variables: dict[str, str]
    at: float = field(default_factory=time.monotonic)
    said: list[str] = field(default_factory=list)

    def outside(self, *command: str) -> str:
        """A program of this computer on the session's screen."""
        environment = {**os.environ, "DISPLAY": self.display}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
        return done.stdout

    def push(self, name: str) -> None:
        """Presses a button as a screen reader does."""
        self.root.do("python3", "-c", PRESS, name, owner=True, variables=self.variables)

    def double_click(self) -> None:
        """On the icon in the file manager, which is opened if need be."""
        if not self.outside("wmctrl", "-l").count("Desktop"):
            self.root.start("pcmanfm", FOLDER, variables=self.variables)
            wait(lambda: "Desktop" in self.outside("wmctrl", "-l"), "the file manager opens")
            self.outside("wmctrl", "-r", "Desktop", "-e", "0,0,0,640,480")
            time.sleep(3)
        self.outside("wmctrl", "-a", "Desktop")
        time.sleep(1)
        self.outside("xdotool", "mousemove", *map(str, ICON), "click", "--repeat", "2", "--delay", "120", "1")

    def tray(self, *keys: str) -> None:
        """Entries of the menu of the only icon in the tray, by their keys."""
        self.outside("xdotool", "mousemove", *map(str, TRAY), "click", "3")
        time.sleep(1.5)
        for key in keys:
            self.outside("xdotool", "key", key)

    def window(self) -> bool:
        found = self.outside("xdotool", "search", "--onlyvisible", "--name", "^Shoal$")
        return bool(found.strip())

    def picture(self, name: str) -> None:
        if folder := os.environ.get("SHOAL_TEST_PICTURES"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            to = str(Path(folder) / f"{name}.png")
            self.outside("import", "-display", self.display, "-window", "root", to)

    def lap(self, what: str) -> None:
        """How long after the double click."""
        self.said.append(f"{time.monotonic() - self.at:6.1f} s  {what}")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of today's code."""
    if named := os.environ.get("SHOAL_TEST_DEB"):
        return Path(named)
    out = tmp_path_factory.mktemp("out")
    done = subprocess.run([ROOT / "packaging" / "build", "linux", "--out", out], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.deb"))


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a whole engine for this processor."""
    if named := os.environ.get("SHOAL_TEST_PACK"):
        return Path(named)
    folder = tmp_path_factory.mktemp("pack")
    make: list[str | Path] = [sys.executable, ROOT / "packaging" / "packs" / "make"]
    public = subprocess.run(
        [*make, "keys", folder / "secret"], capture_output=True, text=True, check=True
    ).stdout
    order: list[str | Path] = [
        "pack",
        "cpu",
        "--version",
        "0.1.0",
        "--key",
        folder / "secret",
        "--out",
        folder,
        "--carry",
    ]
    done = subprocess.run([*make, *order, "--python", "/usr/bin/python3"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(
            "no engine could be fetched here: give one with SHOAL_TEST_PACK=DIR (cpu.json, cpu.json.sig, "
            "wheels, key.pub), made by packaging/packs/make pack cpu --carry "
            f"({done.stderr.strip()[-200:]})"
        )
    (folder / "key.pub").write_text(public)
    return folder


@pytest.fixture(scope="module")
def host(pack: Path) -> Iterator[Host]:
    """Serves the pack, and breaks off once in the middle of the largest file."""
    files = {path.name: path.read_bytes() for path in pack.glob("*.*") if path.suffix != ".pub"}
    largest = max(files, key=lambda name: len(files[name]))
    with serving(Host(files, cut={largest: [len(files[largest]) // 2]})) as one:
        yield one


@pytest.fixture(scope="module")
def packages(built: Path, pack: Path, host: Host, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What was built, knowing this pack; and the same as a higher version."""
    known = trust(pack, host.url)
    out = tmp_path_factory.mktemp("packages")
    return [wrapped(built, out, version, known) for version in ("0.1.0", "0.2.0")]


def trust(pack: Path, url: str) -> dict[str, object]:
    """What the build writes for an app whose only pack is there."""
    key = (pack / "key.pub").read_text().strip()
    offer = manifest.offer(load_manifest(str(pack / "cpu.json"), (key,)).manifest)
    told = {"version": offer.version, "title": offer.title, "bytes": offer.bytes, "disk": offer.disk}
    return {"keys": [key], "manifests": {"cpu": f"{url}/cpu.json"}, "offers": {"cpu": told}}


def wrapped(built: Path, out: Path, version: str, known: dict[str, object]) -> Path:
    """The same package with another version and with these packs, quickly squeezed."""
    tree = out / version
    subprocess.run(["dpkg-deb", "-R", built, tree], check=True)
    control = tree / "DEBIAN" / "control"
    lines = control.read_text(encoding="utf-8").splitlines()
    changed = [f"Version: {version}" if line.startswith("Version:") else line for line in lines]
    control.write_text("\n".join(changed) + "\n", encoding="utf-8")
    source = tree / "usr" / "lib" / "shoal" / "_internal" / "source"
    (source / "VERSION").write_text(f"{version}\n")
    (source / "resources" / "release.json").write_text(json.dumps(known))
    to = out / f"shoal_{version}_amd64.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", tree, to],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shutil.rmtree(tree)
    return to


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    with debian(tmp_path_factory.mktemp("root")) as one:
        yield one


@pytest.fixture
def desktop(root: Root) -> Iterator[Desktop]:
    tools = ("Xvfb", "openbox", "trayer", "wmctrl", "xdotool")
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is needed for a desktop")
    folder = root.home / "Desktop"
    settings = root.home / ".config" / "libfm" / "libfm.conf"
    for place in (folder, settings.parent):
        place.mkdir(parents=True, exist_ok=True)
    settings.write_text("[config]\nsingle_click=0\nquick_exec=1\n")
    root.do("chown", "-R", "owner:owner", OWNER)
    with screen(str(shutil.which("Xvfb"))) as display:
        bus = "unix:path=/tmp/owner-bus"
        variables = {
            "DISPLAY": display,
            "DBUS_SESSION_BUS_ADDRESS": bus,
            "XDG_RUNTIME_DIR": "/tmp/owner-run",
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
            "NO_PROXY": "127.0.0.1",
        }
        root.do("mkdir", "-p", "-m", "700", "/tmp/owner-run", owner=True)
        environment = {**os.environ, "DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}
        edge = ["--edge", "bottom", "--align", "right", "--widthtype", "request", "--height", "28"]
        ours = [
            root.start(
                "dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address={bus}", variables=variables
            ),
            subprocess.Popen(["openbox"], env=environment, stderr=subprocess.DEVNULL),
            subprocess.Popen(["trayer", *edge], env=environment, stderr=subprocess.DEVNULL),
        ]
        wait(lambda: (root.path / "tmp" / "owner-bus").exists(), "the bus is there")
        ours.append(root.start("/usr/libexec/at-spi-bus-launcher", "--launch-immediately", variables=variables))
        time.sleep(1)
        yield Desktop(root, display, variables)
        for process in [*processes(root), *(psutil.Process(one.pid) for one in ours if one.poll() is None)]:
            process.terminate()
        for one in ours:
            one.wait(60)
        ended(processes(root))
        (root.path / "tmp" / "owner-bus").unlink(missing_ok=True)


def processes(root: Root, *words: str) -> list[psutil.Process]:
    """Those that run in the root, with these words in their command lines."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        try:
            inside = os.readlink(f"/proc/{process.pid}/root") == str(root.path)
        except OSError:
            continue
        if inside and all(word in " ".join(process.info["cmdline"] or []) for word in words):
            found.append(process)
    return found


def apps(root: Root) -> list[psutil.Process]:
    """Those of the installed program: the window, its node and their children."""
    program = f"{root.path}/usr/lib/shoal/shoal"
    found = []
    for process in processes(root):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{process.pid}/exe").removesuffix(" (deleted)") == program:
                found.append(process)
    return found


def wait(found: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    end = time.monotonic() + patience_s
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def test_an_owners_whole_way(root: Root, desktop: Desktop, packages: list[Path], host: Host) -> None:
    from app.node.history import history

    data = root.home / DATA
    rounds = lambda: history.read(history.newest(data)).rounds  # noqa: E731
    before, own = root.files(), listing(root.home)
    for package in packages:
        shutil.copy(package, root.path / "root")
    first, second = (f"/root/{package.name}" for package in packages)

    root.apt("install", "--no-install-recommends", first)
    assert "0.1.0" in root.do("dpkg-query", "-W", "shoal")
    settle_in(root)

    desktop.double_click()
    desktop.at = time.monotonic()
    wait(desktop.window, "the window opens")
    desktop.lap("the window is there")
    time.sleep(2)
    desktop.picture("1-welcome")
    assert not processes(root, "--snapshots"), "nothing runs before its owner has said so"
    desktop.push("Learn alone")
    time.sleep(1)
    desktop.picture("2-engine")
    desktop.push("Install the engine")
    desktop.lap("the engine is asked for")
    packs = data / "packs"
    wait(lambda: any(asked.startswith("bytes=") for _, asked in host.asked), "it fetches on after the cut")
    desktop.picture("3-fetching")
    wait(lambda: (packs / "current.json").exists(), "the engine is in use")
    desktop.lap("the engine is in use")
    assert not any(host.cut.values()), "the connection was cut"
    wait(rounds, "the first round is done")
    desktop.lap("the first round is done")
    desktop.picture("4-first-round")
    wait(lambda: len(history.read(history.newest(data)).curve) >= 2, "the curve moves")
    desktop.lap("the curve has two points")
    desktop.picture("5-curve")
    print(*desktop.said, sep="\n")

    desktop.outside("wmctrl", "-c", "Shoal")
    wait(lambda: not desktop.window(), "closed, it stays in the tray")
    desktop.picture("6-tray")
    desktop.tray("Down", "Down", "Return")  # Open Shoal, Contribute when idle
    wait(lambda: not processes(root, "app.node.trainer.process"), "paused from the tray, the trainer is gone")
    desktop.tray("Down", "Down", "Return")
    wait(lambda: processes(root, "app.node.trainer.process"), "it contributes again")

    kept = len(rounds())
    said = root.apt("install", second)
    assert "is being closed" in said and not apps(root), "the old version has ended"
    assert "0.2.0" in root.do("dpkg-query", "-W", "shoal")
    desktop.double_click()
    wait(desktop.window, "the new version opens")
    wait(lambda: len(rounds()) > kept, "and goes on with the history")
    assert [row.round for row in rounds()] == sorted({row.round for row in rounds()})
    desktop.picture("7-updated")

    everything = [*apps(root), *processes(root, "app.node.trainer.process")]
    said = root.apt("purge", "shoal")
    assert "stay in ~/.local/share/shoal" in said and ended(everything)
    left = [name for name in root.files() if "shoal" in name.lower() and not name.startswith("root/")]
    assert left == [], "purge leaves nothing"
    assert len(rounds()) > kept, "what is the owner's stays"

    root.apt("install", second)
    (root.home / "Desktop" / "shoal.desktop").unlink()
    root.do("shoal", "remove", "--everything", "--yes", owner=True, variables=desktop.variables)
    left = [name for name in listing(root.home) - own if "shoal" in name.lower()]
    assert left == [], "the owner's data is removed by the app itself"
    root.apt("purge", "shoal")
    unwanted = [f"-oAPT::AutoRemove::{kind}Important=false" for kind in ("Recommends", "Suggests")]
    root.apt("autoremove", "--purge", *unwanted)
    left = [name for name in root.files() if name not in before and not name.startswith("root/")]
    assert left == [], "nor is anything left of the packages that came with it"


def settle_in(root: Root) -> None:
    """Before the first start: the icon on the desktop. This computer is shared with other tests, so no rule may
    hold learning back."""
    data = root.home / DATA
    data.mkdir(parents=True)
    prepare(data)
    (data / "window-state.json").unlink()
    (data / "window.json").write_text('{"probe_every": 2}')
    shutil.copy(root.path / "usr/share/applications/shoal.desktop", root.home / "Desktop")
    root.do("chown", "-R", "owner:owner", OWNER)


def listing(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*")}
