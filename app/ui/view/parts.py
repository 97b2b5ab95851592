"""Parts of the view that other processes supply: the owner's name (never the secret behind it), models, new
versions, the engine of an installed app."""

from __future__ import annotations

from enum import Enum

import msgspec

from app.install.packs import place
from app.install.packs.events import Offered, Pack, PackStatus
from app.install.updates.asking import UpdateOffer
from app.node.data.library import Library
from app.ui.language.texts import tr


class Persona(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is empty if there is none yet; `kept` and `file` are those of
    app.swarm.identity.storage.KeyLocation. `asked`: it was looked up. `busy`: it is being replaced. `failed`
    says why something failed."""

    name: str = ""
    kept: str = ""
    file: str = ""
    asked: bool = False
    busy: bool = False
    failed: str = ""


class Fetch(msgspec.Struct, frozen=True, kw_only=True):
    """A download that this window started. `note` is why it waits, `retry_at` when it retries, in seconds since
    1970; `left_s` and `per_second` are None until they are known, and `total` is 0 until then."""

    name: str
    have: int = 0
    total: int = 0
    per_second: float | None = None
    left_s: float | None = None
    packed: bool = False
    """Whether it comes compressed, in a Python package, so that fewer bytes are downloaded."""
    note: str = ""
    retry_at: float | None = None


class ServedDoor(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint for other programs on this computer: its address, its token, the model's name."""

    url: str
    token: str
    model: str


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """`chosen` learns at the next start. `queue` waits for `fetch` to end. `failed` has the sentence of each
    model that could not be downloaded or removed, `problem` one about all of them."""

    chosen: str
    library: Library | None = None
    fetch: Fetch | None = None
    queue: tuple[str, ...] = ()
    failed: dict[str, str] = {}
    problem: str = ""
    said: str = ""
    """What was done last, for example that the token was stored."""
    door: ServedDoor | None = None
    """The endpoint, if it is open."""
    door_opening: bool = False
    door_problem: str = ""
    command: str = ""
    """The command for the owner to run next, for example in Ollama."""


class UpdateStage(Enum):
    CHECKOUT = "checkout"
    """A checkout, which git updates."""
    IDLE = "idle"
    ASKING = "asking"
    FETCHING = "fetching"
    INSTALLING = "installing"


class UpdateView(msgspec.Struct, frozen=True, kw_only=True):
    """`offer` is None where nothing newer is known; `fetched`: its file is here and was checked. `sentence`
    is why something did not go, `said` what was done; `command` is what the owner types where nothing could
    be started. `answered` is when the list was last read, 0 for never, in seconds since 1970."""

    version: str = ""
    stage: UpdateStage = UpdateStage.CHECKOUT
    form: str = "checkout"
    """See app.install.updates.installed."""
    host: str = ""
    """The host that is asked."""
    request: str = ""
    """The exact request."""
    offer: UpdateOffer | None = None
    fetched: bool = False
    have: int = 0
    per_second: float | None = None
    note: str = ""
    sentence: str = ""
    said: str = ""
    command: str = ""
    answered: float = 0.0
    wanted: bool = False
    """Whether it may look once a day."""
    undecided: bool = False
    """Whether the owner was never asked about that."""
    hidden: str = ""
    """The version that the owner does not want to be reminded of."""


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
        """The offer for this version of Shoal, if it differs from the engine in use."""
        return self.offer(self.standing.newer) if self.standing is not None else None


def lacking() -> str:
    """A sentence if nothing can compute because this installed app has no engine."""
    return tr("The engine isn't installed. You can install it from Overview.") if place.missing() else ""
