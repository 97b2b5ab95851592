"""The view that the window shows: one frozen value, replaced as a whole. Every page is a function of it and
of nothing else.

Moments are seconds of `time.time()`, shares are in [0, 1]. Whatever a node may not know (a swarm, a phase, the
text of a question) is optional, and a page says so instead of inventing it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from app.node.history.milestones import FirstSource
from app.node.history.milestones import Milestone as Reached
from app.node.record.records import GroupRow, Happening, Probe, Round, Run
from app.node.record.snapshot import Phase as Step
from app.node.record.snapshot import Ruling, SwarmView
from app.sapo.questions import Coordinates
from app.ui.view.parts import EnginePack, Holdings, Persona, UpdateView
from engines.contract import EngineInfo


class NodeStatus(Enum):
    """The node's state as its owner sees it. The tray has an icon for each group of these."""

    NEW = "new"
    """Never asked to learn."""
    STARTING = "starting"
    LEARNING = "learning"
    WAITING = "waiting"
    """A rule makes it wait, or it is about to be restarted; `reason` says which."""
    PAUSED = "paused"
    STOPPING = "stopping"
    FAILED = "failed"
    """`problem` says why; it does not continue by itself."""


class Value(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Problem(Value, frozen=True):
    """An error as people see it: a title, what happened, and what to do."""

    title: str
    sentence: str
    remedy: str


class LevelReached(Value, frozen=True):
    """A family reached `level` (from 0) at this moment; level -1 is its first right answer in training."""

    level: int
    at: float


class FamilyView(Value, frozen=True):
    """`latest` of `questions` held-out questions were solved, `first` at the first probe. `solved` and
    `answered` count training answers at this level over the last rounds."""

    name: str
    title: str
    level: int
    levels: int
    kind: str = ""
    """One of `app.sapo.families.family.FamilyKind`; empty if the family is not known here."""
    questions: int = 0
    latest: float | None = None
    first: float | None = None
    solved: int = 0
    answered: int = 0
    milestones: tuple[LevelReached, ...] = ()
    trend: tuple[float, ...] = ()
    """Every probe's share, oldest first."""
    learned_from: tuple[str, ...] = ()
    """Names of the peers whose answers taught it to begin with this family."""


class Today(Value, frozen=True):
    """Counts since local midnight."""

    solved: int = 0
    answered: int = 0
    rounds: int = 0


class View(Value, frozen=True):
    """`round` is the round in flight, `safe_round` the last safe point."""

    state: NodeStatus = NodeStatus.NEW
    reason: str = ""
    """One sentence: why it learns, waits or is stopped."""
    until: float | None = None
    """When that reason ends by itself."""
    willing: bool = False
    """Whether its owner wants it to learn whenever nobody uses the computer. A pause does not change that."""
    ruling: Ruling | None = None
    """The ruling of the node's rules; None while no node runs."""
    questions: Mapping[Coordinates, str] = {}
    """Texts of questions that were regenerated."""
    words: str = ""
    """The six words of the private swarm, if this computer has some."""
    rules: dict[str, Any] = {}
    """The settings of app.node.rules.preferences, by key."""
    problem: Problem | None = None
    news: str = ""
    """The node's latest sentence for its owner."""
    home: str = ""
    solo: bool = True
    model: str = ""
    recipe: str = ""
    engine: EngineInfo | None = None
    step: Step | None = None
    step_since: float | None = None
    round: int = 0
    last_round: int | None = None
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
    """The newest first, a few hundred at most."""
    sources: tuple[FirstSource, ...] = ()
    """Which peer was the first to show which family."""
    milestones: tuple[Reached, ...] = ()
    """The diary, oldest first."""
    rounds: tuple[Round, ...] = ()
    """Oldest first."""
    taken: int = 0
    """Number of peers' groups that all these rounds learned from."""
    runs: tuple[Run, ...] = ()
    happenings: tuple[Happening, ...] = ()
    """Oldest first."""
    today: Today = Today()
    swarm: SwarmView | None = None
    models: Holdings | None = None
    """None until they were asked for."""
    pack: EnginePack | None = None
    """The engine of an installed app; a checkout brings its own."""
    update_view: UpdateView = UpdateView()
    persona: Persona = Persona()

    @property
    def round_s(self) -> float | None:
        """How long the latest round took."""
        return self.rounds[-1].seconds if self.rounds else None


def wilson(share: float, n: int, z: float = 1.0) -> tuple[float, float]:
    """The Wilson interval of a share seen in `n` trials: where the true one plausibly lies, within `z` standard
    errors (Wilson 1927, equation for p).

    >>> wilson(0.5, 100), wilson(0.0, 28)
    ((0.4502, 0.5498), (0.0, 0.0345))
    """
    if n <= 0:
        return 0.0, 1.0
    centre = share + z * z / (2 * n)
    half = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    low, high = (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)
    return round(max(0.0, low), 4), round(min(1.0, high), 4)


def without_past(view: View) -> View:
    """The same view without anything about what a model has learned."""
    return View(
        home=view.home,
        solo=view.solo,
        willing=view.willing,
        rules=view.rules,
        questions=view.questions,
        words=view.words,
        swarm=view.swarm,
        models=view.models,
        pack=view.pack,
        update_view=view.update_view,
        persona=view.persona,
    )
