"""Where packs are stored, and the records of which one is in use. A pack belongs to the installation, not to
one data folder.

PACKS/current.json         the pack in use; replaced atomically
PACKS/cpu-1.0/             its Python environment, with the manifest it was made from
PACKS/.work/cpu-1.0/       files downloaded so far
PACKS/seen.json            release time of the newest pack ever seen, by name
PACKS/.lock                held while a pack is installed, repaired or removed
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path

import msgspec

from app.common import files
from app.common.home import platform_place, settings_place
from app.common.job import Done
from app.install import InstallError, disk_error
from engines import remedy

NAME = r"[a-z][a-z0-9_]{0,31}"
VERSION = r"[0-9][0-9a-z.]{0,31}"
_FOLDER = re.compile(rf"(?P<name>{NAME})-(?P<version>{VERSION})(-r(?P<repair>[1-9][0-9]{{0,3}}))?")
MARK = "shoal-pack.json"
"""File in the environment with the manifest it was made from."""
VARIABLE = "SHOAL_PACKS"
POINTER = "engine-folder.json"


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """Folder name of the pack in use, empty for none, and the version of its Python, as "3.11"."""

    current: str = ""
    python: str = ""

    def __post_init__(self) -> None:
        if self.current and not is_pack(self.current):
            raise ValueError(f"{self.current!r} is no pack")


def folder() -> Path:
    """Returns the folder of packs: SHOAL_PACKS, else the one the user chose, else the platform's data folder.
    Does not create it."""
    if named := os.environ.get(VARIABLE, ""):
        return Path(named).expanduser().absolute()
    return _chosen() or platform_place() / "packs"


def packs_folder_setting() -> Path:
    """The file in which an earlier version of Shoal kept the folder that the user chose."""
    return settings_place(sys.platform, os.environ, Path.home()) / POINTER


def _chosen() -> Path | None:
    """Returns the folder that the user chose; None if the file is missing or invalid."""
    try:
        found = Path(msgspec.json.decode(packs_folder_setting().read_bytes(), type=dict[str, str])["packs"])
    except (OSError, msgspec.MsgspecError, KeyError, ValueError):
        return None
    return found if found.is_absolute() else None


def installed() -> bool:
    """Whether this is an installed app, whose engine is a pack. A checkout computes with its own .venv."""
    return bool(getattr(sys, "frozen", False))


def carried() -> Path | None:
    """Returns the folder of the offline pack that came with the app; None if it has none."""
    bundle = getattr(sys, "_MEIPASS", "")
    found = Path(bundle) / "packs"
    return found if bundle and found.is_dir() else None


def python() -> Path | None:
    """Returns the interpreter of the pack in use; None without a pack, or if its file is gone."""
    place = folder()
    used = current(place).current
    found = interpreter(place / used) if used else None
    return found if found is not None and found.exists() else None


def engine_problem() -> str:
    """Returns a sentence if an installed app has no engine; else empty."""
    return no_engine_sentence() if installed() and python() is None else ""


def no_engine_sentence() -> str:
    """Returns the sentence that no engine is installed."""
    return f"The engine isn't installed: open Shoal's window, or run {remedy.command('pack install')}."


def interpreter(environment: Path) -> Path:
    """Returns the path of a virtual environment's interpreter."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_pack(name: str) -> bool:
    """
    >>> is_pack("cpu-1.0"), is_pack("cpu-1.0-r2"), is_pack("../cpu-1.0"), is_pack(".work"), is_pack("cpu-..")
    (True, True, False, False, False)
    """
    return _FOLDER.fullmatch(name) is not None and ".." not in name and not name.endswith(".")


def parts(name: str) -> tuple[str, str, int]:
    """Splits a pack's folder name into name, version and number of repairs.

    >>> parts("cpu-1.0"), parts("cuda-2.1-r3")
    (('cpu', '1.0', 0), ('cuda', '2.1', 3))
    """
    found = _FOLDER.fullmatch(name)
    assert found is not None, name
    return found["name"], found["version"], int(found["repair"] or 0)


def current(place: Path) -> Current:
    """Reads which pack is in use; returns an empty Current if the file is missing or invalid."""
    return files.read_json(place / "current.json", Current) or Current()


def packs(place: Path) -> list[str]:
    """Returns the names of packs' folders, finished or not."""
    with contextlib.suppress(OSError):
        return sorted(entry.name for entry in place.iterdir() if is_pack(entry.name) and entry.is_dir())
    return []


@contextlib.contextmanager
def alone(place: Path, waiting: Callable[[], None], wait_s: float) -> Iterator[int]:
    """Holds the folder of packs for this process, yielding the lock's descriptor. A child process that inherits
    it (POSIX) keeps the lock, so that a uv that outlives a killed installation is waited for. Raises
    InstallError if another process still has it after `wait_s`, or the folder cannot be made."""
    held = contextlib.ExitStack()
    try:
        place.mkdir(parents=True, exist_ok=True)
        lock = held.enter_context(files.exclusive_lock(place / ".lock", wait_s, waiting))
    except files.LockHeldError:
        raise InstallError(
            "An engine is being installed or removed by another process: wait for it, then try again."
        ) from None
    except OSError as error:
        raise disk_error(error, place) from error
    with held:
        yield lock


# What others are told of packs: installed ones, those that can be had, and the work on one.


class PackStage(Enum):
    """Stages of an installation in order; the value is the percentage at which the stage begins."""

    FETCH = 0
    MAKE = 80
    CHECK = 94

    @property
    def end(self) -> int:
        stages = list(PackStage)
        following = stages.index(self) + 1
        return stages[following].value if following < len(stages) else 100


class PackDone(Done, frozen=True, kw_only=True, tag="done"):
    """Reports that the installation has succeeded; `pack` is now in use."""

    pack: str
    python: str


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """The installed pack; `python` is the version that runs it, as "3.11"."""

    pack: str
    name: str
    version: str
    title: str
    bytes: int
    python: str = ""
    use: str = "current"
    whole: bool = True


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """A pack that can be installed here. `bytes` are downloaded, `have` of them are here already; `disk` is the
    peak space needed. Values that are not known yet are empty or 0. `carried` is the folder with the pack's
    files if the app brought them; then nothing is downloaded."""

    name: str
    version: str = ""
    title: str = ""
    bytes: int = 0
    disk: int = 0
    have: int = 0
    carried: str = ""


class PackStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The engines in `folder`, with `free` bytes left on its disk, and those that can be installed, most
    suitable first. `newer` names the offer of this version of Shoal if the engine in use is another one.
    `problem` says why no pack is available."""

    folder: str
    packs: list[Pack]
    offers: list[Offered] = []
    newer: str = ""
    free: int = 0
    problem: str = ""
