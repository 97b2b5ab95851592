"""The window's knowledge of the engine of an installed app: whether there is one, what can be had, and how far
an installation is."""

from __future__ import annotations

import msgspec

from app.install.packs import place
from app.install.packs.events import Offered, Pack, PackStatus
from app.ui.language.texts import tr


class PackActivity(msgspec.Struct, frozen=True, kw_only=True):
    """What a process of ours does with engines. `verb` is that of ./shoal pack; `percent` is of the whole,
    `have` of `total` bytes of this `stage`; `note` is why it waits. `offline`: no network is asked."""

    verb: str
    offline: bool = False
    stage: str = ""
    percent: int = 0
    have: int = 0
    total: int = 0
    per_second: float | None = None
    left_s: float | None = None
    note: str = ""


class EnginePack(msgspec.Struct, frozen=True, kw_only=True):
    """`there`: an engine is in use; `named`: it is known which one, though it may be gone. `broken` is a
    sentence when it does not load. `failed` is the sentence of what was done last and did not succeed;
    `failed_offline`: it took its files from a folder."""

    there: bool
    named: bool = False
    broken: str = ""
    standing: PackStatus | None = None
    doing: PackActivity | None = None
    failed: str = ""
    failed_offline: bool = False

    @property
    def usable(self) -> bool:
        return self.there and not self.broken

    @property
    def packs(self) -> list[Pack]:
        return self.standing.packs if self.standing is not None else []

    @property
    def offers(self) -> list[Offered]:
        return self.standing.offers if self.standing is not None else []

    @property
    def current(self) -> Pack | None:
        return next((pack for pack in self.packs if pack.use == "current"), None)

    @property
    def previous(self) -> Pack | None:
        return next((pack for pack in self.packs if pack.use == "previous"), None)

    def offer(self, name: str) -> Offered | None:
        return next((one for one in self.offers if one.name == name), None)

    @property
    def newer(self) -> Offered | None:
        """What belongs to this version of Shoal instead of the one in use."""
        return self.offer(self.standing.newer) if self.standing is not None else None


def lacking() -> str:
    """A sentence where a process that computes could not start, because this installed app has no engine."""
    return tr("The engine isn't installed. You can install it from Overview.") if place.missing() else ""
