"""Creates the folder `.venv`, completes it if it is unfinished, and replaces it if it is broken.

A set-up may be killed at any moment: it then leaves no stamp, so the next start continues it. Nothing is
removed before its replacement exists, and the stamp is deleted only if something is missing."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from app.install.launcher import install, mirror, pythons, stamp, system
from app.install.launcher.install import ProgressLine, say
from app.install.launcher.pythons import SetupError
from app.install.launcher.stamp import PURPOSES, UNFINISHED
from engines.locks import exclusive_lock


@contextlib.contextmanager
def setup_lock(path: Path, waiting: Callable[[], None]) -> Iterator[int]:
    """Holds the lock file at `path`, yielding its descriptor, and waits for it without end. Handing the
    descriptor to a child process (POSIX) keeps the lock until that child has ended too, so a pip that outlives
    a killed launcher is waited for. Raises SetupError when the file cannot be made or locked."""
    held = contextlib.ExitStack()
    try:
        lock = held.enter_context(exclusive_lock(path, math.inf, waiting))
    except OSError as error:
        raise SetupError(
            f"Shoal cannot write into {path.parent}, where it keeps its Python environment, or that disk has "
            f"no locks ({error.strerror}); make that folder writable or copy Shoal to another disk, then start "
            "it again."
        ) from error
    with held:
        yield lock


MAKING, FILLING = "making", "filling"
"""Content of the marker file. An environment killed while it was being made is useless; one killed while being
filled can be completed."""

TOOLS = ".venv-setup"
"""Folder beside the environment: uv, and during a set-up its cache and temporary files."""

NEEDED_MB = {"cpu": 1_900, "cuda": 5_600}
"""Free disk in MB that a first set-up needs, by the build of PyTorch: packages and temporary files."""

_FOR_CARDS = re.compile(r"(?:nvidia-(?!ml-py\b)[\w-]+|cuda-[\w-]+|triton)(?===)")
"""Matches packages in the lock that only PyTorch's build for NVIDIA cards needs."""

CHECKED = {
    "aiohttp": "aiohttp",
    "msgspec": "msgspec",
    "numpy": "numpy",
    "tokenizers": "tokenizers",
    "torch": "torch",
}
"""Modules imported to check a set-up, by the packages that contain them: what a node needs. Qt is left out:
a computer that shows no window may lack the libraries it loads."""


class Environment:
    """The virtual environment of one copy of the project, in `root/.venv`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.tools = root / TOOLS
        self.python = Path(stamp.python_of(str(root)))

    def ready(self, purpose: str) -> bool:
        return stamp.ready(str(self.root), purpose)

    def ensure(self, purpose: str, check: bool = False) -> None:
        """Installs whatever is missing for the purpose. `check` examines the installed files even if the stamp
        says that all is well. Raises SetupError."""
        if self.ready(purpose) and not check:
            return
        if why := pythons.no_wheels():
            raise SetupError(why)
        with setup_lock(self.root / ".venv.lock", _waiting) as held:
            damaged = _damaged(self.folder)
            if self.ready(purpose) and (not check or (not damaged and not self._complaint(purpose))):
                return
            whole = self.ready(purpose)  # so far as its stamp goes: if the repair fails it starts as before
            self._make_usable(purpose)
            marker = self.folder / UNFINISHED
            if not whole:
                marker.write_text(FILLING)
            system.provide_libraries()
            try:
                self._install(purpose, held, damaged)
            except SetupError as error:
                if "is full" in str(error):  # and shall not stay so
                    shutil.rmtree(self.tools / "cache", ignore_errors=True)
                raise
            if complaint := self._complaint(purpose):
                raise SetupError(
                    f"What was installed doesn't work ({complaint}); look into {self._log}, then delete "
                    f"{self.folder} and start Shoal again."
                )
            marker.unlink(missing_ok=True)
            stamp.write(str(self.root), purpose)
            shutil.rmtree(self.tools / "cache", ignore_errors=True)
            shows = purpose == "run" and any(self.folder.glob("[lL]ib*/**/site-packages/PySide6"))
            if shows and (lacking := system.provide_window(os.environ)):
                say(system.without_window(lacking))

    @property
    def _log(self) -> Path:
        return self.folder / "shoal-setup.log"

    def installer(self, held: int | None = None) -> install.Installer:
        """Returns an Installer for this environment. The set-up lock must be held: temporary files of a killed
        set-up are deleted."""
        shutil.rmtree(self.tools / "tmp", ignore_errors=True)
        return install.Installer(
            str(self.root), self.python, pythons.base_python(), self.tools, self._log, held
        )

    def _make_usable(self, purpose: str) -> None:
        """Makes sure that the folder has a suitable Python that starts, else replaces the folder."""
        if self._usable():
            say("Installing what is missing." if purpose == "run" else "Installing what the tests need.")
            return
        if self.folder.exists():
            say("The Python environment is half-made or its Python is gone; rebuilding it.")
            _remove(self.folder)
        say(f"Setting Shoal up in {self.folder}. This is done once.")
        self.folder.mkdir()
        (self.folder / UNFINISHED).write_text(MAKING)
        _make_venv(pythons.base_python(), self.folder)

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

    def _install(self, purpose: str, held: int, damaged: list[str]) -> None:
        with ProgressLine() as progress:
            installer = self.installer(held)
            again = [word for name in damaged for word in ("--reinstall-package", name)]
            again += ["--no-cache"] * bool(damaged)  # what is in place are links into the cache
            if purpose == "run":
                self._install_base(installer, progress, again)
            for name, options in PURPOSES[purpose]:
                if name != "base.txt":
                    file, options = stamp.listed(stamp.requirement_file(str(self.root), name), options)
                    installer.install(["-r", file, *options, *again], progress)

    def _install_base(self, installer: install.Installer, progress: ProgressLine, again: list[str]) -> None:
        """Installs the base packages; on Linux without an NVIDIA card, PyTorch's CPU build if available."""
        (name, options), *_ = PURPOSES["run"]
        file, options = stamp.listed(stamp.requirement_file(str(self.root), name), options)
        text = Path(file).read_text(encoding="utf-8")
        if sys.platform != "linux" or system.has_nvidia_card() or "\ntorch==" not in text:
            if "\ntorch==" in text:
                self._make_room("cuda" if sys.platform == "linux" else "cpu")
            exact = self._listed("base-exact.txt", _without(text, cards=False))
            installer.install(["-r", str(exact), *options, *again], progress)
            return
        cpu = Path(stamp.requirement_file(str(self.root), "torch-cpu.lock"))
        progress.step("looking for PyTorch's build for processors")
        there = any(self.folder.glob("lib/python*/site-packages/torch-*+cpu.dist-info"))
        for backend in ({}, {"UV_TORCH_BACKEND": "cpu"}):
            if there or installer.can_install(["-r", str(cpu), *options], progress, **backend):
                self._make_room("cpu")
                without = self._listed("base-cpu.txt", _without(text, "torch"))
                installer.install(["-r", str(cpu), *options, *again], progress, **backend)
                installer.install(["-r", str(without), *options, *again], progress)
                return
        say("PyTorch's build for processors isn't on offer here, so its larger one is installed: 4.5 GB.")
        self._make_room("cuda")
        file = str(self._listed("base-cuda.txt", _without(text, "triton", cards=False)))
        installer.install(["-r", file, *options, *again], progress)

    def _listed(self, name: str, text: str) -> Path:
        listed = self.tools / name
        listed.write_text(text, encoding="utf-8")
        return listed

    def _make_room(self, build: str) -> None:
        """Raises SetupError if the disk is too full for a first set-up; a later one has PyTorch already."""
        free, needed = shutil.disk_usage(self.root).free // 10**6, NEEDED_MB[build]
        if free < needed and not any(self.folder.glob("lib*/python*/site-packages/torch")):
            raise SetupError(
                f"Shoal needs {needed / 1000:.1f} GB of disk in {self.root}, and {free / 1000:.1f} GB are "
                "free; free some space, then start it again."
            )

    def _complaint(self, purpose: str) -> str:
        """Imports the installed packages in a separate process. Returns the error, or "" if all load."""
        if purpose != "run":
            return ""
        listed = Path(stamp.requirement_file(str(self.root), "base.txt")).read_text(encoding="utf-8")
        names = "; ".join(f"import {name}" for package, name in CHECKED.items() if f"\n{package}==" in listed)
        done = subprocess.run(
            [str(self.python), "-I", "-c", names],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        said = done.stderr.strip().splitlines() or [f"code {done.returncode}"]
        return said[-1][:200] if done.returncode else ""


def _without(text: str, *names: str, cards: bool = True) -> str:
    """A lock's text without some packages and, with `cards`, without those that only NVIDIA cards need."""
    entries = re.findall(r"(?m)^\S.*(?:\n[ \t].*)*", text)
    kept = [
        entry
        for entry in entries
        if re.match(r"[\w.-]+", entry)
        and re.match(r"[\w.-]+", entry)[0] not in names  # type: ignore[index]
        and not (cards and _FOR_CARDS.match(entry))
    ]
    # "==2.13.0" would also take "2.13.0+cpu" from a folder that has it, whose digest is not in this lock.
    return "\n".join(kept).replace("\ntorch==", "\ntorch===") + "\n"


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
    """Creates a virtual environment that can get pip: its own, that of the Python it is made from, or, where
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


_VENV = """
import os, venv
link = os.symlink
def tolerant(to, at, **options):
    try:
        link(to, at, **options)
    except OSError:
        if to != "lib":
            raise
os.symlink = tolerant
venv.main()
"""
"""The standard library's venv, without lib64, which nothing reads, where a disk (FAT, CIFS) has no links; the
interpreter is copied there."""


def _venv(python: str, folder: Path, *options: str) -> str:
    """Runs the standard library's venv. Returns "", or the last line of its error output."""
    done = subprocess.run(
        [python, "-I", "-c", _VENV, *options, str(folder)],
        env=mirror.without_pythons_own(os.environ),  # for its own pip, which it starts without -I
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return "" if done.returncode == 0 else ((done.stdout.strip().splitlines() or ["no reason given"])[-1])


def _damaged(folder: Path) -> list[str]:
    """Packages with files that are missing or have another size. Compiled files don't count: Python rewrites
    them."""
    found = []
    for packages in [*folder.glob("lib/python*/site-packages"), *folder.glob("Lib/site-packages")]:
        for record in packages.glob("*.dist-info"):
            if not _whole(packages, record):
                found.append(record.name.partition("-")[0])
    return found


def _whole(packages: Path, record: Path) -> bool:
    """Whether every file in a package's RECORD (path, hash, size) exists with that size."""
    try:
        lines = (record / "RECORD").read_text(encoding="utf-8").splitlines()
        for line in lines:
            path, _, size = line.rsplit(",", 2)
            path = path.strip('"')
            if size and not path.endswith(".pyc") and os.stat(packages / path).st_size != int(size):
                return False
    except (OSError, ValueError):
        return False
    return bool(lines)
