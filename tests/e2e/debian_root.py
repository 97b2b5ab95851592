"""A minimal Debian in a folder, with a person in it, for trying out what is installed there. It is made from
the packages that this computer's own apt would take, and its processes can be seen from outside."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

TOOLS = ("at-spi2-core", "dbus", "fonts-dejavu-core", "pcmanfm", "python3-pyatspi", "shared-mime-info")
"""A session bus, a screen reader's access and a file manager: what a desktop has."""
OWNER = "/home/Åsa 鯨"
_BASH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
_LIVES = ("proc", "sys", "dev", "tmp", "run", "home", "var/lib/dpkg", "var/lib/apt", "var/cache", "var/log")
"""What changes by itself, or is the package manager's own."""


def obstacle() -> str:
    """Why no root can be made here; empty where it can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "a Debian root can only be made by root"
    missing = [tool for tool in ("mmdebstrap", "apt-get", "chroot", "mount") if not shutil.which(tool)]
    if missing:
        return f"{', '.join(missing)} is needed for a minimal Debian root"
    return "" if _mirror() else "apt names no mirror of Debian here"


class Root:
    def __init__(self, path: Path) -> None:
        self.path = path

    def run(
        self,
        *command: str | Path,
        owner: bool = False,
        variables: Mapping[str, str] | None = None,
        limit: float = 900,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._inside(command, owner, variables or {}),
            capture_output=True,
            text=True,
            timeout=limit,
            errors="replace",
        )

    def start(
        self, *command: str | Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """As the owner."""
        return subprocess.Popen(self._inside(command, True, variables or {}), stdout=subprocess.DEVNULL)

    def do(self, *command: str | Path, **more: object) -> str:
        """Standard output and error of what has to succeed."""
        done = self.run(*command, **more)  # type: ignore[arg-type]
        assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout + done.stderr

    def apt(self, *words: str | Path) -> str:
        variables = {"DEBIAN_FRONTEND": "noninteractive", **_proxies()}
        return self.do("apt-get", "-y", "-q", *words, variables=variables)

    @property
    def home(self) -> Path:
        """The owner's, seen from outside."""
        return self.path / OWNER.lstrip("/")

    def files(self) -> dict[str, tuple[int, int]]:
        """Kind and size of everything but what changes by itself."""
        found: dict[str, tuple[int, int]] = {}
        for folder, folders, names in os.walk(self.path):
            inside = os.path.relpath(folder, self.path)
            folders[:] = [one for one in folders if os.path.normpath(f"{inside}/{one}") not in _LIVES]
            for name in [*folders, *names]:
                info = os.lstat(os.path.join(folder, name))
                path = os.path.normpath(f"{inside}/{name}")
                found[path] = (info.st_mode, 0 if name in folders else info.st_size)
        return found

    def _inside(
        self, command: Sequence[str | Path], owner: bool, variables: Mapping[str, str]
    ) -> list[str | Path]:
        home = {"HOME": OWNER if owner else "/root", "USER": "owner" if owner else "root"}
        named = [f"{name}={value}" for name, value in {**_BASH, **home, **variables}.items()]
        who = ["--userspec=owner:owner"] if owner else []
        return ["chroot", *who, self.path, "env", "-i", *named, *command]


@contextmanager
def debian(place: Path) -> Iterator[Root]:
    """Gone afterwards. SHOAL_TEST_ROOT names a file that it is kept in, as it was at first."""
    root = Root(place / "debian")
    kept = os.environ.get("SHOAL_TEST_ROOT", "")
    archive = Path(kept) if kept else place / "debian.tar"
    if not archive.exists():
        fresh = archive.with_suffix(".fresh.tar")
        options = ["--quiet", "--variant=apt", f"--include={','.join(TOOLS)}"]
        command: list[str | Path] = ["mmdebstrap", *options, _release(), fresh, _mirror()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stderr[-2000:]
        fresh.replace(archive)
    root.path.mkdir()
    subprocess.run(["tar", "-xpf", archive, "-C", root.path, "--numeric-owner"], check=True)
    with ExitStack() as mounted:
        for kind, to in (("proc", "proc"), ("sysfs", "sys"), ("tmpfs", "dev/shm")):
            (root.path / to).mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", kind, kind, root.path / to], check=True)
            mounted.callback(_unmount, root.path / to)
        root.do("useradd", "--create-home", "--home-dir", OWNER, "--shell", "/bin/sh", "owner")
        root.apt("update")
        yield root
    shutil.rmtree(root.path, ignore_errors=True)


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "-l", place], check=True)


def _release() -> str:
    text = Path("/etc/os-release").read_text(encoding="utf-8")
    return next(
        (line[17:].strip('"') for line in text.splitlines() if line.startswith("VERSION_CODENAME=")), "stable"
    )


def _mirror() -> str:
    """Where this computer's own apt would take a package of Debian from."""
    asked = ["apt-get", "download", "--print-uris", "base-files"]
    done = subprocess.run(asked, capture_output=True, text=True, cwd="/")
    address = done.stdout.partition("'")[2].partition("'")[0]
    return address.partition("/pool/")[0] if "/pool/" in address else ""


def _proxies() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.lower() in ("http_proxy", "https_proxy")}
