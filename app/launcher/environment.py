"""The folder `.venv`: whether it is ready, made when missing, completed when half-made, replaced when broken.

A stamp per purpose says what was installed. It is written last, so a set-up that was killed at any moment
leaves none, and the next start goes on. While packages are being written the file UNFINISHED stands there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from app.launcher import install, pythons, system
from app.launcher.lock import lock
from app.launcher.progress import Progress, say
from app.launcher.pythons import SetupError

PURPOSES: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "run": (
        ("base.txt", ("--only-binary", ":all:")),
        # reasoning-gym names two source-only packages that Shoal does not use, so its own list is not followed.
        ("gym.txt", ("--no-deps", "--no-build-isolation")),
    ),
    "test": (("test.txt", ("--only-binary", ":all:")),),
}
"""What is installed for what, in this order: the requirement file and the options pip gets with it."""

UNFINISHED = "shoal-unfinished"
MAKING, FILLING = "making", "filling"
"""What the marker says: an environment killed while being made is worth nothing, one killed while being filled
is."""


class Environment:
    """The virtual environment of one copy of the project, in `root/.venv`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.requirements = root / "packaging" / "requirements"
        self.python = self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def ready(self, purpose: str) -> bool:
        """Whether everything for the purpose is installed. Takes about a millisecond: reads the stamp and the
        requirement files, starts nothing."""
        try:
            stamp = json.loads(self._stamp(purpose).read_bytes())
        except (OSError, ValueError):
            return False
        return (
            self.python.exists()
            and not (self.folder / UNFINISHED).exists()
            and stamp == {"requirements": self.fingerprint(purpose), "python": os.path.realpath(self.python)}
        )

    def fingerprint(self, purpose: str) -> str:
        """A hash of the requirement files of a purpose and of the options they are installed with."""
        digest = hashlib.sha256()
        for name, options in PURPOSES[purpose]:
            digest.update(repr((name, options)).encode() + self._requirement_file(name).read_bytes())
        return digest.hexdigest()

    def ensure(self, purpose: str, check: bool = False) -> None:
        """Returns when everything for the purpose is installed, doing what is missing. `check` looks at the
        installed files even where the stamp says that all is well. Raises SetupError."""
        if self.ready(purpose) and not check:
            return
        with lock(self.root / ".venv.lock", _waiting) as held:
            if self.ready(purpose) and not check:  # the one we waited for did it
                return
            self._make_usable()
            marker = self.folder / UNFINISHED
            if check or marker.exists():
                _forget_damaged(self.folder)
            marker.write_text(FILLING)
            self._stamp(purpose).unlink(missing_ok=True)
            system.provide_libraries()
            self._install(purpose, held)
            self._write_stamp(purpose)
            marker.unlink()

    def _make_usable(self) -> None:
        """Leaves a folder whose Python starts and suits, replacing one where it does not."""
        if self._usable():
            return
        if self.folder.exists():
            say("The Python environment is half-made or its Python is gone; making it anew.")
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
        files = [(self._requirement_file(name), options) for name, options in PURPOSES[purpose]]
        with Progress(total=sum(install.pins(file) for file, _ in files)) as progress:
            for file, options in files:
                install.install(
                    install.pip_of(self.python, pythons.own()),
                    ["-r", str(file), *options],
                    progress,
                    log=self.folder / "shoal-setup.log",
                    keep_open=held,
                )

    def _requirement_file(self, name: str) -> Path:
        file = self.requirements / name
        if not file.is_file():
            raise SetupError(
                f"Shoal's own file {file} is missing, so it is not known what to install; get a complete copy "
                "of Shoal and start that."
            )
        return file

    def _stamp(self, purpose: str) -> Path:
        return self.folder / f"shoal-{purpose}.json"

    def _write_stamp(self, purpose: str) -> None:
        content = {"requirements": self.fingerprint(purpose), "python": os.path.realpath(self.python)}
        written = self._stamp(purpose).with_suffix(".new")
        written.write_text(json.dumps(content))
        written.replace(self._stamp(purpose))


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
