"""Fetching a model: plan, disk, files, check, and only then its name. Runs in a process of its own.

Whatever ends that process, what has come stays in HUB/.partial and is continued: a kill, a closed lid, a lost
network. A model appears in HUB when all of its files are there and right.
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from engines.contract import EngineError
from engines.models.catalogue import Entry, find
from engines.models.folder import open_folder
from engines.models.hub import Hub, HubError, Plan
from engines.models.needs import DISK_SPARE, gb
from engines.models.settings import FILE as SETTINGS
from engines.models.shelf import SOURCE, STATE, Shelf, Source, Unfinished, held, write
from engines.models.transfer import Damaged, fetch, part_of

TELL_S = 0.25
"""Progress is told at most this often, and at the end of every file."""
HANDOVER_S = 2.0
"""So long one that is just being cancelled may take to end."""
WINDOW_S = 10.0
"""Speed is measured over so long."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=str.lower):
    """What is told, one JSON object a line."""


class Planned(Event, frozen=True):
    """`have` of `total` bytes are here already."""

    model: str
    commit: str
    files: int
    have: int
    total: int


class Progress(Event, frozen=True):
    """Bytes that lie on the disk, of all; `per_second` and `left_s` are None until they are known."""

    have: int
    total: int
    file: str
    per_second: float | None = None
    left_s: float | None = None


class Waiting(Event, frozen=True):
    """It goes on by itself in so many seconds."""

    sentence: str
    seconds: float


class Done(Event, frozen=True):
    model: str
    commit: str
    path: str
    bytes: int


class Failed(Event, frozen=True):
    """What has come is kept; `sentence` says what to do."""

    model: str
    sentence: str


Tell = Callable[[Event], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Patience:
    """How long to go on by oneself: so many attempts without a new byte, with growing pauses between."""

    attempts: int = 8
    first_s: float = 2.0
    longest_s: float = 60.0
    answer_s: float = 20.0

    def pause_s(self, attempt: int, asked: float | None) -> float:
        """
        >>> [Patience().pause_s(attempt, None) for attempt in (1, 2, 6)], Patience().pause_s(1, 30.0)
        ([2.0, 4.0, 60.0], 30.0)
        """
        return (
            min(300.0, asked) if asked is not None else min(self.longest_s, self.first_s * 2 ** (attempt - 1))
        )


class Speed:
    """Bytes a second over the last seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def at(self, have: int) -> float | None:
        now = self._clock()
        self._seen.append((now, have))
        while len(self._seen) > 2 and now - self._seen[0][0] > WINDOW_S:
            self._seen.popleft()
        then, had = self._seen[0]
        return (have - had) / (now - then) if now - then > 0.5 and have >= had else None

    def restart(self) -> None:
        self._seen.clear()


def download(
    id: str,
    home: Path,
    tell: Tell,
    *,
    endpoint: str = "",
    token: str | None = None,
    revision: str | None = None,
    patience: Patience | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Path:
    """Fetches a model into the data folder and returns its folder; at once when it is there already.

    Raises EngineError, one sentence; what has come is kept, and why it stopped is written beside it."""
    shelf, entry = Shelf(home), find(id)
    id = entry.id if entry else id
    partial = shelf.partial(id)
    with held(partial, wait_s=HANDOVER_S) as ours:
        if not ours:
            raise EngineError(f"{id} is being fetched by another process already: wait, or cancel that one.")
        wanted = revision or (entry.revision if entry else "main")
        there = shelf.find(id)
        if there is not None and wanted in (there.name, "main"):
            tell(Done(model=id, commit=there.name, path=str(there), bytes=_bytes(there)))
            return there
        work = _Work(shelf, entry, id, wanted, partial, tell, patience or Patience(), sleep)
        try:
            return work.run(lambda: Hub(endpoint, token))
        except OSError as error:
            raise work.stopped(_disk(error, shelf.root)) from error
        except EngineError as error:
            raise work.stopped(str(error)) from error


class _Work:
    """One download in this process."""

    def __init__(
        self,
        shelf: Shelf,
        entry: Entry | None,
        id: str,
        revision: str,
        partial: Path,
        tell: Tell,
        patience: Patience,
        sleep: Callable[[float], None],
    ) -> None:
        self._shelf, self._entry, self._id, self._revision = shelf, entry, id, revision
        self._partial, self._files = partial, partial / "files"
        self._tell, self._patience, self._sleep = tell, patience, sleep
        self._speed = Speed()
        self._told = 0.0
        self._state = self._earlier()

    def run(self, connect: Callable[[], Hub]) -> Path:
        self._keep(sentence="")
        hub = connect()
        plan = self._again(lambda: hub.plan(self._id, self._state.commit or self._revision))
        self._check(plan)
        self._files.mkdir(exist_ok=True)
        done = {
            piece.name: piece.digest
            for piece in plan.pieces
            if self._state.done.get(piece.name) == piece.digest and (self._files / piece.name).is_file()
        }
        self._keep(commit=plan.commit, total=plan.total, done=done)
        have = self._have(plan)
        self._room(plan.total - have)
        self._tell(
            Planned(model=self._id, commit=plan.commit, files=len(plan.pieces), have=have, total=plan.total)
        )
        for piece in plan.pieces:
            if piece.name in self._state.done:
                continue
            before = sum(one.size for one in plan.pieces if one.name in self._state.done)

            def heard(count: int, name: str = piece.name, before: int = before) -> None:
                self._progress(before + count, plan.total, name)

            part = part_of(self._files, piece)
            self._again(
                lambda piece=piece, heard=heard: fetch(  # type: ignore[misc]
                    hub, self._id, plan.commit, piece, self._files, self._patience.answer_s, heard
                ),
                lambda part=part: part.stat().st_size if part.exists() else 0,  # type: ignore[misc]
            )
            self._keep(done={**self._state.done, piece.name: piece.digest})
            if piece.name == "config.json":
                self._look_at_config()
        self._progress(plan.total, plan.total, "", at_once=True)
        return self._publish(plan, hub.endpoint)

    def stopped(self, sentence: str) -> EngineError:
        """Writes down why, so that it can be said later too."""
        with contextlib.suppress(OSError):
            self._keep(sentence=sentence)
        return EngineError(sentence)

    def _again(self, attempt: Callable[[], Result], size: Callable[[], int] = lambda: 0) -> Result:
        """Does it until it is done, waiting between attempts; those that brought something do not count."""
        failures, damaged, seen = 0, 0, size()
        while True:
            try:
                return attempt()
            except HubError as error:
                damaged += isinstance(error, Damaged)
                failures = 1 if size() > seen else failures + 1
                seen = size()
                if not error.again or damaged > 1 or failures >= self._patience.attempts:
                    raise
                pause = self._patience.pause_s(failures, error.wait_s)
                self._tell(Waiting(sentence=str(error), seconds=pause))
                self._speed.restart()
                self._sleep(pause)

    def _check(self, plan: Plan) -> None:
        """The weights must be those of the catalogue, whoever gives them out."""
        known = self._entry.weights_sha256 if self._entry else None
        weights = [piece for piece in plan.pieces if piece.name == "model.safetensors"]
        if known and self._revision != "main" and (not weights or weights[0].digest != f"sha256:{known}"):
            raise EngineError(
                f"The weights of {self._id} on offer are not the ones that Shoal's catalogue names, so nothing "
                "was fetched: check the mirror."
            )

    def _have(self, plan: Plan) -> int:
        have = 0
        for piece in plan.pieces:
            part = part_of(self._files, piece)
            if piece.name in self._state.done:
                have += piece.size
            elif part.exists():
                have += min(piece.size, part.stat().st_size)
        return have

    def _room(self, missing: int) -> None:
        free = self._shelf.free()
        if missing + DISK_SPARE > free:
            raise EngineError(
                f"{self._id} takes {gb(missing)} more and {gb(free)} are free on the disk that holds "
                f"{self._shelf.root}: make some room, or move the data folder."
            )

    def _look_at_config(self) -> None:
        """Whether it can be trained at all, before its weights are fetched."""
        config = msgspec.json.decode((self._files / "config.json").read_bytes())
        if isinstance(config, dict) and "quantization_config" in config:
            raise EngineError(
                f"{self._id} is quantised, and that cannot be trained here: take the unquantised model."
            )

    def _progress(self, have: int, total: int, file: str, at_once: bool = False) -> None:
        now = time.monotonic()
        if not at_once and now - self._told < TELL_S and have < total:
            return
        self._told = now
        speed = self._speed.at(have)
        left = (total - have) / speed if speed else None
        self._tell(Progress(have=have, total=total, file=file, per_second=speed, left_s=left))

    def _publish(self, plan: Plan, endpoint: str) -> Path:
        if self._entry is not None and not (self._files / SETTINGS).exists():
            write(self._files / SETTINGS, self._entry.settings)
        open_folder(self._files)
        place = self._shelf.place(self._id)
        folder = place / "snapshots" / plan.commit
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists():
            folder.rename(self._partial / f"before-{time.time_ns()}")
        self._files.rename(folder)
        source = Source(
            id=self._id,
            revision=self._revision,
            commit=plan.commit,
            endpoint=endpoint,
            fetched=time.time(),
            bytes=plan.total,
            digests={piece.name: piece.digest for piece in plan.pieces},
        )
        write(place / SOURCE, source)
        reference = place / "refs" / "main"
        reference.parent.mkdir(exist_ok=True)
        reference.write_text(plan.commit, "ascii")  # from here on it is found
        self._shelf.tidy(self._id)
        self._tell(Done(model=self._id, commit=plan.commit, path=str(folder), bytes=plan.total))
        return folder

    def _earlier(self) -> Unfinished:
        """What an earlier process left, if it wanted the same."""
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            found = msgspec.json.decode((self._partial / STATE).read_bytes(), type=Unfinished)
            if found.revision == self._revision:
                return found
        return Unfinished(id=self._id, revision=self._revision)

    def _keep(self, **changed: object) -> None:
        self._state = msgspec.structs.replace(self._state, **changed)
        write(self._partial / STATE, self._state)


def _disk(error: OSError, root: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk that holds {root} is full: make some room; the download goes on where it stopped."
    return f"{root} cannot be written ({error.strerror or error}): check that it is yours to write."


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
