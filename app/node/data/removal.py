"""Removes everything that Shoal put on this computer, and reports what it leaves."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import msgspec

from app.common import files
from app.common import home as place
from app.desktop import links
from app.desktop.choose import autostart
from app.desktop.login import Autostart, AutostartError
from app.install import InstallError
from app.install.packs import place as packs
from app.install.updates import installed
from app.node.data import contents
from app.node.data.home import lock_data_folder


class RemovalPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What would be removed: `folder` with `sizes`, the key named `key` in the system's keyring, the autostart
    entry `login`, the file that names a chosen folder, the installed app's `engine`, the link handlers in
    `links`, and the files that a single-file build unpacked (`unpacked`). What would stay: other people's files
    in the data folder (`stays`), and the program itself (`program`, installed as `form`; `removal` says how to
    remove it)."""

    folder: str
    sizes: tuple[contents.DataSize, ...]
    key: str = ""
    login: str = ""
    pointer: str = ""
    engine: str = ""
    engine_bytes: int = 0
    links: tuple[str, ...] = ()
    unpacked: str = ""
    unpacked_bytes: int = 0
    stays: tuple[str, ...] = ()
    program: str = ""
    form: str = "checkout"
    removal: str = ""

    @property
    def bytes(self) -> int:
        """The total size of what is removed."""
        return sum(size.bytes for size in self.sizes) + self.engine_bytes + self.unpacked_bytes


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """The result. `failed`: sentences about what could not be removed; `stays`: what is left in the data
    folder."""

    failed: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()


def plan(home: Path, login: Autostart | None = None) -> RemovalPlan:
    """Collects what `remove` would remove; changes nothing."""
    from app.swarm.identity.storage import keyring_key_name

    login = login or autostart()
    try:
        starts = login.where if login.command() is not None else ""
    except AutostartError:
        starts = ""
    engine = packs.folder() if _is_usual(home) and packs.folder().is_dir() else None
    pointers = (place.POINTER_FILE, packs.POINTER)
    opener = links.links()
    unpacked = _unpacked() if _is_usual(home) else None
    others = [
        entry for entry in contents.foreign_entries(home) if entry.name not in pointers and entry != engine
    ]
    return RemovalPlan(
        folder=str(home),
        sizes=contents.sizes(home),
        key=keyring_key_name(home),
        login=starts,
        pointer=str(place.choice_file()) if place.choice_file().exists() and _is_usual(home) else "",
        engine=str(engine) if engine else "",
        engine_bytes=files.size_on_disk(engine) if engine else 0,
        links=opener.where if _is_usual(home) else (),
        unpacked=str(unpacked) if unpacked else "",
        unpacked_bytes=files.size_on_disk(unpacked) if unpacked else 0,
        stays=tuple(entry.name for entry in others),
        program=installed.visible_path(),
        form=installed.form(),
        removal=installed.removal(),
    )


def remove(home: Path, login: Autostart | None = None) -> Removed:
    """Removes everything: first what refers to the folder from elsewhere, then the folder. What cannot be
    removed is reported and does not stop the rest. May wait for a dialog of the keyring. Raises NodeError while
    a node uses the data folder."""
    from app.swarm.identity.keyrings import forget_token
    from app.swarm.identity.storage import delete_keyring_entry

    failed: list[str] = []
    usual = _is_usual(home)  # read once: the folder that the pointer names is deleted below
    if home.is_dir():
        with lock_data_folder(home):
            failed += filter(None, [delete_keyring_entry(home)])
    if home.is_dir() or usual:
        try:
            (login or autostart()).turn_off()
        except AutostartError as error:
            failed.append(str(error))
    if usual:
        failed += filter(None, [forget_token()])
        links.links().forget()
        failed += filter(None, [_remove_engine()])
        with suppress(OSError):
            packs.packs_folder_setting().unlink(missing_ok=True)
    left = contents.remove(home)
    if usual:
        try:
            place.remember_folder(None)
        except OSError as error:
            failed.append(f"{place.choice_file()} can't be deleted ({error.strerror}): delete it yourself.")
        with suppress(OSError):  # another program may keep files there
            place.choice_file().parent.rmdir()
        failed += filter(None, [_remove_unpacked()])
    return Removed(failed=tuple(failed), stays=tuple(map(str, left)))


def _remove_engine() -> str:
    """Removes the installed engine. Returns a sentence if that fails, else an empty string."""
    from app.install.packs.installing import (
        PackInstaller,  # the window, which looks at this file, need not load it
    )

    folder = packs.folder()
    if not folder.is_dir():
        return ""
    try:
        PackInstaller(folder, lambda _: None, wait_s=5.0).remove()
    except InstallError as error:
        return str(error)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.parent == place.platform_place():
        with suppress(OSError):  # it may contain other files
            folder.parent.rmdir()
    return f"{folder} can't be deleted: delete it yourself." if folder.exists() else ""


def _unpacked() -> Path | None:
    """Returns the folder that a single-file build unpacked and runs from; None for other installations."""
    folder = installed.unpacked()
    return folder if folder is not None and folder.is_dir() else None


def _remove_unpacked() -> str:
    """Removes that folder; called last, because this process may run from it. Returns a sentence if that fails,
    else an empty string."""
    folder = _unpacked()
    if folder is None:
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.parent.name == "shoal":
        with suppress(OSError):
            folder.parent.rmdir()
    return f"{folder} can't be deleted: delete it yourself." if folder.exists() else ""


def _is_usual(home: Path) -> bool:
    try:
        return home == place.default_home()
    except place.HomeError:
        return False
