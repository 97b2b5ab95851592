"""The folder `.venv`: made when missing, completed when half-made, replaced when broken.

A set-up may be killed at any moment: it leaves no stamp then, so the next start goes on, and what stands in the
file UNFINISHED tells how much of it can be kept.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from app.install.launcher import install, pythons, stamp, system
from app.install.launcher.lock import lock
from app.install.launcher.progress import ProgressLine, say
from app.install.launcher.pythons import SetupError
from app.install.launcher.stamp import PURPOSES, UNFINISHED

MAKING, FILLING = "making", "filling"
"""What the marker says: an environment killed while being made is worth nothing, one killed while being filled
is."""


class Environment:
    """The virtual environment of one copy of the project, in `root/.venv`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = Path(stamp.python_of(str(root)))

    def ready(self, purpose: str) -> bool:
        return stamp.ready(str(self.root), purpose)

    def ensure(self, purpose: str, check: bool = False) -> None:
        """Returns when everything for the purpose is installed, doing what is missing. `check` looks at the
        installed files even where the stamp says that all is well. Raises SetupError."""
        if self.ready(purpose) and not check:
            return
        with lock(self.root / ".venv.lock", _waiting) as held:
            if self.ready(purpose) and not check:  # the one we waited for did it
                return
            self._make_usable(purpose)
            marker = self.folder / UNFINISHED
            if check or marker.exists():
                _forget_damaged(self.folder)
            marker.write_text(FILLING)
            stamp.remove(str(self.root), purpose)
            system.provide_libraries()
            system.provide_useful()
            self._install(purpose, held)
            marker.unlink()
            stamp.write(str(self.root), purpose)

    def _make_usable(self, purpose: str) -> None:
        """Leaves a folder whose Python starts and suits, replacing one where it does not."""
        if self._usable():
            say("Installing what is missing." if purpose == "run" else "Installing what the tests need.")
            return
        if self.folder.exists():
            say("The Python environment is half-made or its Python is gone; rebuilding it.")
            _remove(self.folder)
        say(f"Setting Shoal up in {self.folder}. This is done once and downloads up to 3 GB.")
        self.folder.mkdir()
        (self.folder / UNFINISHED).write_text(MAKING)
        _make_venv(pythons.own(), self.folder)

    def _usable(self) -> bool:
        try:
            if (self.folder / UNFINISHED).read_text() == MAKING:
                return False
        except OSError:
            pass
        found = pythons.probe([str(self.python)]) if self.python.exists() else None
        if not found or not pythons.suits(found[0], found[1]):
            return False
        # A system upgrade can put another Python under the same name; the packages are those of the old one.
        made_with = re.search(
            r"^version\w* *= *(\d+)\.(\d+)", (self.folder / "pyvenv.cfg").read_text(), re.MULTILINE
        )
        return made_with is None or found[0] == (int(made_with[1]), int(made_with[2]))

    def _install(self, purpose: str, held: int) -> None:
        files = [
            stamp.listed(stamp.requirement_file(str(self.root), name), options)
            for name, options in PURPOSES[purpose]
        ]
        with ProgressLine(total=sum(install.pins(Path(file)) for file, _ in files)) as progress:
            for file, options in files:
                install.install(
                    install.pip_of(self.python, pythons.own()),
                    ["-r", file, *options],
                    progress,
                    log=self.folder / "shoal-setup.log",
                    keep_open=held,
                )


def _waiting() -> None:
    say("Another Shoal is setting up this folder; waiting until it is done.")


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise SetupError(
            f"Shoal cannot replace its broken Python environment {folder} ({error.strerror}); close every "
            "running Shoal, delete that folder and start again."
        ) from error


def _make_venv(python: str, folder: Path) -> None:
    """A virtual environment with a way to get pip: its own, the one of the Python it is made from, or, where
    Debian has split both off, the system's package for it. Raises SetupError."""
    complaint = _venv(python, folder)
    if not complaint:
        return
    if install.has_pip(python):
        complaint = _venv(python, folder, "--without-pip")
        if not complaint:
            return
    elif system.manager() == "apt-get":
        system.install([f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"], "Python's module venv")
        complaint = _venv(python, folder)
        if not complaint:
            return
    raise SetupError(
        f"Shoal could not make a Python environment in {folder} with {python} ({complaint}); install a "
        "complete Python with venv and pip, then start Shoal again."
    )


def _venv(python: str, folder: Path, *options: str) -> str:
    """Runs the standard library's venv. Returns an empty text, or the last line of its complaint."""
    done = subprocess.run(
        [python, "-I", "-m", "venv", *options, str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return "" if done.returncode == 0 else ((done.stdout.strip().splitlines() or ["no reason given"])[-1])


def _forget_damaged(folder: Path) -> None:
    """Drops the record of every package whose files are not all there in their full size, so that pip puts it
    in place again. What is whole stays: after a kill in the middle only the rest is done."""
    for packages in [*folder.glob("lib/python*/site-packages"), *folder.glob("Lib/site-packages")]:
        for left_over in packages.glob("~*"):  # pip renames what it replaces and dies before it deletes
            shutil.rmtree(left_over, ignore_errors=True)
        for record in packages.glob("*.dist-info"):
            if not _whole(packages, record):
                shutil.rmtree(record, ignore_errors=True)


def _whole(packages: Path, record: Path) -> bool:
    """Whether every file in a package's RECORD (path, hash, size) is there, and as long as it was installed."""
    try:
        lines = (record / "RECORD").read_text(encoding="utf-8").splitlines()
        for line in lines:
            path, _, size = line.rsplit(",", 2)
            if size and os.stat(packages / path.strip('"')).st_size != int(size):
                return False
    except (OSError, ValueError):
        return False
    return bool(lines)
