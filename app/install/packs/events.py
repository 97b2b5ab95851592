"""The events of a pack that is being installed, and the state of installed ones."""

from __future__ import annotations

from enum import Enum

import msgspec

from app.common.job import Done


class PackStage(Enum):
    """In this order; the value is the percentage of the whole at which the stage begins."""

    DISK = 0
    FETCH = 1
    MAKE = 76
    FILL = 78
    CHECK = 94
    SWITCH = 99

    @property
    def end(self) -> int:
        stages = list(PackStage)
        following = stages.index(self) + 1
        return stages[following].value if following < len(stages) else 100


class PackDone(Done, frozen=True, kw_only=True, tag="done"):
    """`pack` is in use."""

    pack: str
    python: str


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """An installed pack. `use` is "current", "previous" or empty; `whole` is False for a half-made one;
    `python` is the version that it runs with, as "3.11"."""

    pack: str
    name: str
    version: str
    title: str
    use: str
    whole: bool
    bytes: int
    python: str = ""


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """One that can be installed here. `bytes` are fetched, of which `have` are here already; `disk` is the room
    that is needed meanwhile. What is not known before it is looked up is empty or 0. `carried` is the folder it
    comes from where the app brought it, and then nothing is fetched."""

    name: str
    version: str = ""
    title: str = ""
    bytes: int = 0
    disk: int = 0
    have: int = 0
    carried: str = ""


class PackStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How it stands with engines: those in `folder`, with `free` bytes left on its disk, and those that can be
    had, the best for this computer first. `newer` of these belongs to this version of Shoal instead of the one
    in use. `problem` says why no pack is available."""

    folder: str
    packs: list[Pack]
    offers: list[Offered] = []
    newer: str = ""
    free: int = 0
    problem: str = ""
