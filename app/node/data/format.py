"""Which version of Shoal a data folder was last used by, and whether this one may: HOME/format.json.

A version that keeps something differently raises FORMAT and reads what older ones wrote. One that is older than
the folder changes nothing in it, and says so."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from app.common import files
from app.install.updates import installed
from app.node.record.errors import NodeError

FILE = "format.json"
FORMAT = 3
"""Increases with the format of the history, the checkpoints, the outbox or any other file of the data
folder."""


class Format(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    version: str = ""


class NewerError(NodeError):
    """Something was written by a newer Shoal than this one."""


def check(home: Path) -> None:
    """Raises NewerError if a newer version stores the folder in a way that this one does not know."""
    found = read(home)
    if found is not None and found.format > FORMAT:
        by = f"Shoal {found.version}" if installed.ordered(found.version)[0] else "a newer Shoal"
        raise NewerError(
            f"The data folder {home} was last used by {by}, and this is {installed.version()}, which doesn't "
            "know how it is kept now: install that version or a newer one, or name another folder with "
            "--home. Nothing in it was changed."
        )


def stamp(home: Path) -> None:
    """Records that this version used it. Raises NewerError as `check` does."""
    check(home)
    own = Format(format=FORMAT, version=installed.version())
    if read(home) != own:
        with contextlib.suppress(OSError):  # a full disk is told by the first safe point
            files.write_json(home / FILE, own)


def read(home: Path) -> Format | None:
    """The recorded version. None for an invalid file, and for folders from before there was one."""
    return files.read_json(home / FILE, Format)


def newer(what: str, found: int) -> NewerError:
    """The error for a file that states its own, newer format."""
    return NewerError(
        f"{what} is of format {found}, which this version of Shoal ({installed.version()}) doesn't know: "
        "install the newer version that wrote it, or name another folder with --home. Nothing was changed."
    )
