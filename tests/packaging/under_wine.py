"""Programs of Windows, run by Wine in a prefix and on a display of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

TOOLS = ("wine", "wineserver", "Xvfb", "makensis", "x86_64-w64-mingw32-gcc")
HERE = Path(__file__).parent / "windows"
T = TypeVar("T")


def missing(*further: str) -> str:
    """The programs that are not here, as a reason to skip; empty where all are."""
    absent = [name for name in (*TOOLS, *further) if shutil.which(name) is None]
    return f"{', '.join(absent)} not installed" if absent else ""


def built(source: str, to: Path, *options: str) -> Path:
    """A program or library of Windows, made of tests/packaging/windows/SOURCE."""
    to.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["x86_64-w64-mingw32-gcc", "-O1", "-o", to, HERE / source, *options], check=True)
    return to


class Wine:
    """Makes a prefix that says it is Windows 10. `close` ends everything that runs in it."""

    def __init__(self, folder: Path) -> None:
        self.prefix = folder / "prefix"
        reader, writer = os.pipe()
        self._screen = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writer), "-screen", "0", "900x640x24", "-nolisten", "tcp"],
            pass_fds=(writer,),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(writer)
        with open(reader) as said:
            self.display = f":{said.readline().strip()}"
        self.run("wineboot", "-i", timeout=300)
        # as Windows 10
        self.run("reg", "add", r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f")

    def environment(self, **variables: str) -> dict[str, str]:
        quiet = {"WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe=d"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "QT_"))}
        return {**kept, **quiet, "WINEPREFIX": str(self.prefix), "DISPLAY": self.display, **variables}

    def run(
        self, *words: str | Path, timeout: float = 180, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Its streams are pipes: Wine gives a program no console of which it could be told."""
        return subprocess.run(
            ["wine", *map(str, words)],
            input="",
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=self.environment(**variables),
            timeout=timeout,
        )

    def start(self, *words: str | Path, **variables: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["wine", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.environment(**variables),
        )

    @property
    def local(self) -> Path:
        """%LOCALAPPDATA%."""
        (found,) = self.prefix.glob("drive_c/users/*/AppData/Local")
        return found

    def values(self, key: str) -> dict[str, str]:
        """Of a key below HKEY_CURRENT_USER; empty where there is none. Numbers are hexadecimal."""
        out = self.prefix / "drive_c" / "values.reg"
        out.unlink(missing_ok=True)
        self.run("reg", "export", f"HKCU\\{key}", r"C:\values.reg", "/y")
        if not out.exists():
            return {}
        text = (
            out.read_text("utf-16").replace("\r", "").split("\n[")[1]
        )  # the key itself, before those below it
        found = re.findall(r'^(@|"(?:[^"\\]|\\.)*")=(?:dword:|")(.*?)"?$', text, re.MULTILINE)
        return {name.strip('"'): re.sub(r"\\(.)", r"\1", value) for name, value in found}

    def set(self, key: str, name: str, value: str) -> None:
        self.run("reg", "add", f"HKCU\\{key}", "/v", name, "/d", value, "/f")

    def unix(self, path: str) -> Path:
        """Of a path on drive C."""
        assert path[:3].casefold() == "c:\\", path
        return self.prefix / "drive_c" / path[3:].replace("\\", "/")

    def settle(self) -> None:
        """Returns when everything that was started has ended."""
        subprocess.run(["wineserver", "-w"], env=self.environment(), timeout=180)

    def close(self) -> None:
        subprocess.run(["wineserver", "-k"], env=self.environment(), timeout=60)
        self._screen.terminate()
        self._screen.wait(30)
        shutil.rmtree(self.prefix, ignore_errors=True)


def until(look: Callable[[], T], seconds: float = 60) -> T:
    """The first answer that is true. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > end:
            raise TimeoutError(f"nothing within {seconds:.0f} s")
        time.sleep(0.1)
    return found
