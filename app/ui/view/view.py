"""The View that the window shows: one frozen value, replaced as a whole. Every page is a function of it and of
nothing else.

It begins with parts that other processes find out: the person's name (never the secret behind it), models, new
versions, the engine of an installed app. Times are Unix seconds, shares are in [0, 1]. A value that a node may
not know (a swarm, a phase, the text of a question) is optional, and pages show that it is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from app.install.packs import place
from app.install.packs.place import Offered, Pack, PackStatus
from app.install.updates.asking import UpdateOffer
from app.node.data.library import Library
from app.node.record.records import GroupRow, LogEntry, Probe, Round, Run
from app.node.record.snapshot import FamilyView, Ruling, SwarmView
from app.node.record.snapshot import Phase as Step
from app.sapo.questions import Coordinates
from app.ui.language.texts import tr
from app.ui.view.learned import LearnedToday
from engines.contract import EngineInfo


class Persona(msgspec.Struct, frozen=True, kw_only=True):
    """The person's identity. `name` is empty before there is one; `kept` and `file` are those of
    app.swarm.identity.storage.PublicIdentity. `asked`: it was looked up. `busy`: it is being replaced. `failed`
    says why something failed."""

    name: str = ""
    kept: str = ""
    file: str = ""
    asked: bool = False
    busy: bool = False
    failed: str = ""


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a download or another long job: `have` of `total` bytes, which is 0 until it is known.
    `per_second` and `left_s` are None until they are known. `note` is why it waits, `retry_at` when it tries
    again."""

    have: int = 0
    total: int = 0
    per_second: float | None = None
    left_s: float | None = None
    note: str = ""
    retry_at: float | None = None


class Fetch(Transfer, frozen=True, kw_only=True):
    """A download of a model that this window started."""

    name: str


class ServedDoor(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint for other programs on this computer: its address, its token, the model's name there and
    here."""

    url: str
    token: str
    model: str
    chosen: str = ""


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """The models. `chosen` learns at the next start. `queue` waits for `fetch` to end. `failed` has the
    sentence of each model that could not be downloaded or removed, `problem` one about all of them."""

    chosen: str
    library: Library | None = None
    fetch: Fetch | None = None
    queue: tuple[str, ...] = ()
    failed: dict[str, str] = {}
    problem: str = ""
    said: str = ""
    """A sentence on the last action, for example that the token was stored."""
    door: ServedDoor | None = None
    """The endpoint, if it is open."""
    door_opening: bool = False
    door_problem: str = ""
    command: str = ""
    """A command for the person to run next, for example in Ollama."""


class UpdateStage(Enum):
    CHECKOUT = "checkout"
    """This is a checkout, which git updates."""
    IDLE = "idle"
    ASKING = "asking"


class UpdateView(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of new versions of Shoal. `offer`: a newer version, None if none is known. `sentence` says
    why a check failed. `answered`: when the notice was last read, 0 for never."""

    version: str = ""
    stage: UpdateStage = UpdateStage.CHECKOUT
    host: str = ""
    """The host that checks ask."""
    request: str = ""
    """The exact request that a check sends."""
    offer: UpdateOffer | None = None
    sentence: str = ""
    answered: float = 0.0
    wanted: bool = False
    """Whether Shoal may check once a day."""
    undecided: bool = False
    """Whether the person was never asked about the daily check."""
    hidden: str = ""
    """The version that the person does not want to be reminded of."""


class PackActivity(Transfer, frozen=True, kw_only=True):
    """A running `./shoal pack`. `verb` is its verb; `percent` is of the whole, the bytes are those of this
    `stage`. `offline`: the files come from a folder, without network access."""

    verb: str
    offline: bool = False
    stage: str = ""
    percent: int = 0


class EnginePack(msgspec.Struct, frozen=True, kw_only=True):
    """The engine of an installed app. `there`: an engine is in use; `named`: it is known which one, even if its
    files are gone. `broken` is a sentence if it does not load. `failed` is the sentence of the last action if
    that failed; `failed_offline`: it took its files from a folder."""

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
    def offers(self) -> list[Offered]:
        return self.standing.offers if self.standing is not None else []

    @property
    def current(self) -> Pack | None:
        return next(iter(self.standing.packs), None) if self.standing is not None else None

    def offer(self, name: str) -> Offered | None:
        return next((one for one in self.offers if one.name == name), None)

    @property
    def newer(self) -> Offered | None:
        """The offer for this version of Shoal, if it differs from the engine in use."""
        return self.offer(self.standing.newer) if self.standing is not None else None


def missing_engine_sentence() -> str:
    """Returns a sentence if this is an installed app without an engine, so that nothing can compute; else
    empty."""
    return tr("The engine isn't installed. You can install it from Overview.") if place.engine_problem() else ""


class NodeStatus(Enum):
    """The node's state as people see it; the tray has an icon for each group of states."""

    NEW = "new"
    """Learning was never started."""
    STARTING = "starting"
    LEARNING = "learning"
    WAITING = "waiting"
    """A rule makes it wait, or it is about to be restarted; `reason` says which."""
    PAUSED = "paused"
    STOPPING = "stopping"
    FAILED = "failed"
    """The node ended and does not continue by itself; `problem` says why."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error as people see it: a title, what happened, and what to do."""

    title: str
    sentence: str
    remedy: str


class Today(msgspec.Struct, frozen=True, kw_only=True):
    """Counts since local midnight."""

    solved: int = 0
    answered: int = 0
    rounds: int = 0
    learned: LearnedToday = LearnedToday()


class ModelState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one model: what its node does, and what it has learned. `round` is the current round,
    `safe_round` the last saved one."""

    state: NodeStatus = NodeStatus.NEW
    reason: str = ""
    """A sentence on why the model learns, waits or is stopped."""
    until: float | None = None
    """Unix time when `reason` ends by itself."""
    ruling: Ruling | None = None
    """The ruling of the node's rules; None while no node runs."""
    problem: Problem | None = None
    news: str = ""
    """The node's latest sentence for its owner."""
    model: str = ""
    recipe: str = ""
    engine: EngineInfo | None = None
    step: Step | None = None
    step_since: float | None = None
    round: int = 0
    last_round: int | None = None
    lesson: bool = False
    """Whether it learns from others' answers now, not from a round's."""
    done: int = 0
    total: int = 0
    left_s: float | None = None
    safe_round: int = 0
    safe_at: float | None = None
    curve: tuple[Probe, ...] = ()
    families: tuple[FamilyView, ...] = ()
    waiting: tuple[str, ...] = ()
    """Titles of families that are still too hard."""
    groups: tuple[GroupRow, ...] = ()
    """The newest groups, newest first, a few hundred at most."""
    rounds: tuple[Round, ...] = ()
    """Rounds, oldest first."""
    taken: int = 0
    """Number of peers' groups that `rounds` learned from."""
    runs: tuple[Run, ...] = ()
    happenings: tuple[LogEntry, ...] = ()
    """Log entries, oldest first."""
    today: Today = Today()

    @property
    def round_s(self) -> float | None:
        """Seconds that the latest round took; None before the first."""
        return self.rounds[-1].seconds if self.rounds else None


class View(ModelState, frozen=True):
    """Everything that the window shows: the model's state, and what other processes found out."""

    home: str = ""
    skill: str = ""
    """The family of the question set that is learned; empty for puzzles."""
    solo: bool = True
    willing: bool = False
    """Whether the person wants learning whenever nobody uses the computer, paused or not."""
    rules: dict[str, Any] = {}
    """The settings of app.node.rules.preferences, by key."""
    questions: Mapping[Coordinates, str] = {}
    """Texts of questions that were regenerated."""
    words: str = ""
    """The six words of the private swarm; empty if this computer has none."""
    swarm: SwarmView | None = None
    models: Holdings | None = None
    """The models; None until they were read."""
    pack: EnginePack | None = None
    """The engine of an installed app; a checkout has its own."""
    update_view: UpdateView = UpdateView()
    persona: Persona = Persona()


def with_model_state(view: View, **state: object) -> View:
    """Returns the view with these fields of ModelState; its other fields go back to their defaults."""
    return msgspec.structs.replace(view, **(msgspec.structs.asdict(ModelState()) | state))
