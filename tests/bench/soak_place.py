"""Where a soak runs: on a small disk of its own, under a clock that can be moved, behind a port of its relay
that can be cut."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.bench import Tell

DISK_MB = 320


def clock_library(out: Path) -> Path | None:
    """The library that moves the wall clock; None where nothing compiles it."""
    to = out / "clock.so"
    cc = shutil.which("cc")
    if cc is None:
        return None
    source = Path(__file__).with_name("clock.c")
    done = subprocess.run([cc, "-O2", "-shared", "-fPIC", "-o", to, source], capture_output=True)
    return to if done.returncode == 0 else None


@contextmanager
def disk(out: Path, tell: Tell) -> Iterator[Path]:
    """A small disk with the homes on it, which are kept in OUT/kept between pieces; without the right to mount
    one, that folder itself."""
    kept, place = out / "kept", out / "disk"
    kept.mkdir(exist_ok=True)
    place.mkdir(exist_ok=True)
    mounted = os.path.ismount(place) or _mounts(place)
    if not mounted:
        tell("This user may not mount a small disk: it is never full.")
        yield kept
        return
    if not (place / ".small").exists():
        shutil.copytree(kept, place, dirs_exist_ok=True)
        (place / ".small").touch()
    try:
        yield place
    finally:
        fresh = out / "kept.new"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(place, fresh, ignore=shutil.ignore_patterns(".small", "filler"))
        shutil.rmtree(kept)
        fresh.rename(kept)
        subprocess.run(["umount", place], capture_output=True)


def _mounts(place: Path) -> bool:
    if sys.platform != "linux" or os.geteuid():
        return False
    options = ["-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0700", "soak", str(place)]
    return subprocess.run(["mount", *options], capture_output=True).returncode == 0


class Proxy:
    """A proxy to a relay's port. While it is `cut`, bytes of both directions are kept back and connections stay
    open: no one is told. `carried` counts all bytes that went through, the websocket's own included."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.carried = 0
        self._counting = threading.Lock()
        self._flowing = threading.Event()
        self._flowing.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self._listener.getsockname()[1]}/v1/ws"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._flowing.clear()

    def heal(self) -> None:
        self._flowing.set()

    def close(self) -> None:
        self._listener.close()
        self.heal()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(here,), daemon=True).start()

    def _join(self, here: socket.socket) -> None:
        self._flowing.wait()
        try:
            there = socket.create_connection(("127.0.0.1", self._to))
        except OSError:  # no one is there now
            here.close()
            return
        for one, other in ((here, there), (there, here)):
            threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while content := one.recv(65536):
                self._flowing.wait()
                other.sendall(content)
                with self._counting:
                    self.carried += len(content)
        except OSError:
            pass
        for end in (one, other):
            end.close()
