"""`Sea`, through which another trainer takes part in a swarm.

A thread with an event loop of its own runs the membership. The methods hand it small jobs and wait for those,
never for the network: what is not here now is not returned. Own answers are scored in the calling thread, in a
sandbox's child process, which takes about a millisecond an answer. Peers' groups have a sandbox of their own:
an answer made to take long makes no trainer wait."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from app.learning.questions import own_questions
from app.sapo import curriculum
from app.sapo.families import FAMILIES
from app.sapo.groups import HUMAN_MODEL, GroupRecord
from app.sapo.questions import QUESTIONS_VERSION, Coordinates, QuestionError
from app.sapo.scoring.sandbox import Sandbox, SandboxError, score_group
from app.sapo.sets.question_set import is_owners_set
from app.swarm.client.outbox import OutboxError
from app.swarm.identity.identity import IdentityError
from app.swarm.intake.archive import ArchiveError
from app.swarm.intake.reasons import IntakeReason, is_unsafe
from app.swarm.invite.invite import InviteError, invite_from_text
from app.swarm.library import export
from app.swarm.library.members import ArchiveMember, RelayMember, SeaMember
from app.swarm.library.records import (
    Group,
    Published,
    Question,
    SeaError,
    Status,
    as_coordinates,
    model_name,
)
from app.swarm.membership import FLUSH_ALONE_S, FLUSH_S
from app.swarm.wire.limits import MAX_BODY_BYTES, MAX_COMPLETION_CHARS, MAX_COMPLETIONS

T = TypeVar("T")
_POLL_S = 0.05
_ROOM = 1024
"""Bytes of a signed body besides the completions, at most."""
_OWN_SECONDS = 1.0
"""Limit for scoring one own answer, four times that of peers': a busy computer must not make a right answer
wrong, as a group that claims so is false to everybody else."""
_VERDICTS = 4096
"""Latest own verdicts that are remembered, so that nothing is scored twice before it goes out."""


class Sea:
    """A swarm as a trainer sees it; `shoal_swarm.join` opens one. Every method may be called from any thread,
    and raises SeaError, with one sentence, where nothing else is said."""

    def __init__(self, where: str | Path, *, name: str, home: Path) -> None:
        """See `join`."""
        self._model, self._rng = model_name(name), Random()
        self._rounds = itertools.count(time.time_ns())
        self._publishing = threading.Lock()
        with _one_sentence():
            if not str(where).strip():
                raise SeaError("Nothing to join was named: give an invite, a relay's address or an archive.")
            path = Path(where).expanduser()
            archived = isinstance(where, Path) or path.suffix == ".jsonl" or path.exists()
            invite = None if archived else invite_from_text(str(where))
            if invite is not None and invite.room is not None:
                raise SeaError("That invite is for a class, which only Shoal itself can join.")
            self._sandbox, self._checking = Sandbox(_OWN_SECONDS), Sandbox()
        self._verdicts: OrderedDict[tuple[Coordinates, str, bool], int] = OrderedDict()
        self._scoring, self._gate, self._closed = threading.Lock(), threading.Lock(), False
        self._member: SeaMember = (
            ArchiveMember(home, self._checking, path)
            if invite is None
            else RelayMember(home, self._checking, invite)
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="shoal-swarm", daemon=True)
        self._thread.start()
        try:
            with _one_sentence():
                asyncio.run_coroutine_threadsafe(self._member.start(), self._loop).result()
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(FLUSH_S if kind is None else FLUSH_ALONE_S)

    def questions(
        self, count: int, families: Sequence[str] | None = None, *, level: int = 0, seed: int | None = None
    ) -> list[Question]:
        """Returns `count` questions of these families (None: all), each as likely, at this `level` (0 is the
        easiest). Never one on which models are measured. Without `seed` they are new at each call; with one,
        the same home gives the same questions, and another home others: no two labs answer the same."""
        self._check_open()
        with _one_sentence():
            wanted = curriculum.start(dict.fromkeys(families or FAMILIES, level))
            identity = self._member.identity
            made = own_questions(
                wanted,
                identity.key if identity is not None else b"",
                next(self._rounds) if seed is None else seed,
                count,
                self._sandbox.questions,
            )
        return [Question(coordinates=one.coordinates, text=one.text) for one in made]

    def check(self, coordinates: Coordinates | Mapping[str, Any], text: str, *, finished: bool = True) -> float:
        """Returns 1.0 if the answer in `text` is right, else 0.0. `finished`: False if it was cut off, which is
        a wrong answer whatever it contains."""
        return self.check_all(coordinates, [text], finished=[finished])[0]

    def check_all(
        self,
        coordinates: Coordinates | Mapping[str, Any],
        texts: Sequence[str],
        *,
        finished: Sequence[bool] | None = None,
    ) -> list[float]:
        """Returns 1.0 or 0.0 for each of several answers to one question, as `check` does."""
        self._check_open()
        with _one_sentence():
            ended = tuple(finished) if finished is not None else (True,) * len(texts)
            if not all(isinstance(one, str) for one in texts):
                raise SeaError("Answers are texts; leave out what is none.")
            if len(ended) != len(texts):
                raise SeaError(f"{len(texts)} answers have {len(ended)} marks of having ended: give one each.")
            return [float(one) for one in self._score(as_coordinates(coordinates), tuple(texts), ended)]

    def publish(self, groups: Group | Iterable[Group]) -> Published:
        """Publishes own groups: scores them here, and stores those that may go out until a relay has them, also
        over a restart of this program. Whatever rewards the groups bring are ignored. Others can read what goes
        out. Blocks only while it scores what `check` has not scored already. Until this home has met its swarm
        for the first time, its latest 64 groups wait in memory alone."""
        self._check_open()
        left_out: Counter[str] = Counter()
        scored: list[GroupRecord] = []
        with self._publishing, _one_sentence():
            if self._member.identity is None:
                raise SeaError("An archive is only read: join a relay to publish.")
            for group in [groups] if isinstance(groups, Group) else groups:
                verdict = self._prepared(group, {one.coordinates for one in scored})
                if isinstance(verdict, GroupRecord):
                    scored.append(verdict)
                else:
                    left_out[verdict] += 1
            stored, others = self._call(lambda: self._member.store(scored))
        return Published(stored=stored, left_out=dict(left_out + others))

    def sample(
        self,
        count: int,
        *,
        answers: int | None = None,
        families: Sequence[str] | None = None,
        informative: bool = True,
        wait_s: float = 0.0,
    ) -> list[Group]:
        """Returns at most `count` groups of others; no group is returned twice. The question of each was made
        again here from its coordinates, and the rewards were computed here; groups whose author claimed other
        rewards are refused before.

        `answers`: exactly so many completions, a random choice in their order, which is still mixed if
        `informative`; groups with fewer are left where they are. `families`: only these; they are also what is
        fetched from now on. `wait_s`: waits at most so many seconds until `count` are there, for programs that
        have nothing else to do; a trainer leaves it at 0. An archive that is still being checked is waited for
        in any case."""
        if answers is not None and answers < (2 if informative else 1):
            raise SeaError(f"A mixed group has two answers or more, not {answers}: ask for more.")
        if unknown := sorted(set(families or ()) - set(FAMILIES)):
            raise SeaError(f"There is no family called {unknown[0]!r}.")
        member, ends = self._member, time.monotonic() + wait_s

        def ready() -> int:
            return member.want(count, answers, families)

        while self._call(ready) < count and (time.monotonic() < ends or self._reading):
            time.sleep(_POLL_S)
        return [
            _as_group(_cut(one, answers, informative, self._rng), one)
            for one in self._call(lambda: member.take(count, self._rng))
        ]

    def learned_from(self, groups: Iterable[Group]) -> None:
        """Tells the authors of sampled groups that a step was made on them, by receipts without content, as
        the node does; and chooses authors with right answers more often. Call it after the step."""
        chosen = list(groups)
        self._call(lambda: self._member.learned_from(chosen))

    def status(self) -> Status:
        """Returns the state now."""
        return self._call(self._member.status)

    def table(self) -> list[dict[str, Any]]:
        """Returns the groups that were checked so far, and the own ones published in this run, as rows for
        `datasets.Dataset.from_list`; of an archive, all of it, which takes a few seconds per thousand groups.
        Columns: see `app.swarm.library.export`."""
        while self._reading:
            time.sleep(_POLL_S)
        return export.rows(self._call(lambda: list(self._member.groups.remembered.values())))

    def export(self, path: str | Path) -> int:
        """Writes `table` to a file and returns its number of groups: .parquet, for which `pyarrow` must be
        there, or .jsonl."""
        with _one_sentence():
            return export.write(Path(path).expanduser(), self.table())

    def close(self, flush_s: float = FLUSH_S) -> None:
        """Waits for the relay's answers to what was published, at most `flush_s` seconds, or 5 without a relay,
        then ends the thread and the sandbox. What is left is sent when this home joins again."""
        if not self._thread.is_alive():
            return
        with contextlib.suppress(Exception):
            closing = self._member.close(flush_s, min(flush_s, FLUSH_ALONE_S))
            asyncio.run_coroutine_threadsafe(closing, self._loop).result(flush_s + 10.0)
        self._end()

    @property
    def _reading(self) -> bool:
        """Whether an archive is still being checked."""
        return isinstance(self._member, ArchiveMember) and not self._member.finished and self._thread.is_alive()

    def _prepared(self, group: Group, before: set[Coordinates]) -> GroupRecord | str:
        """Returns a group scored and fit to be published, or why it is not."""
        at, texts_G = group.coordinates, group.completions
        finished_G = group.finished or (True,) * len(texts_G)
        if not 0 < len(texts_G) <= MAX_COMPLETIONS or len(finished_G) != len(texts_G):
            return IntakeReason.WRONG_SHAPE.value
        if at.version != QUESTIONS_VERSION:
            return IntakeReason.OTHER_VERSION.value
        if is_owners_set(at.family):
            return IntakeReason.NO_QUESTION.value
        if at in before or self._member.buffer.knows(at):
            return IntakeReason.SEEN.value
        if max(map(len, texts_G)) > MAX_COMPLETION_CHARS:
            return IntakeReason.TOO_LONG.value
        if any(map(is_unsafe, texts_G)):
            return IntakeReason.UNSAFE.value
        if len(msgspec.json.encode(texts_G)) > MAX_BODY_BYTES - _ROOM:
            return IntakeReason.TOO_LARGE.value
        asked = self._sandbox.questions([at])[0]
        if isinstance(asked, QuestionError):
            return IntakeReason.NO_QUESTION.value
        if asked.held_out:
            return IntakeReason.HELD_OUT.value
        model = group.model if group.model == HUMAN_MODEL else model_name(group.model or self._model)
        record = GroupRecord(coordinates=at, completions_G=texts_G, finished_G=finished_G, model=model)
        rewards_G = self._score(at, texts_G, finished_G)
        return msgspec.structs.replace(record, question=asked.text, rewards_G=rewards_G)

    def _score(self, at: Coordinates, texts_G: tuple[str, ...], ended_G: tuple[bool, ...]) -> tuple[int, ...]:
        """Returns 1 or 0 for each answer, and remembers it: what was learned from is what goes out."""
        asked_G = [(at, text, ended) for text, ended in zip(texts_G, ended_G, strict=True)]
        with self._scoring:
            new = [one for one in dict.fromkeys(asked_G) if one not in self._verdicts]
            if new:
                record = GroupRecord(
                    coordinates=at,
                    completions_G=tuple(text for _, text, _ in new),
                    finished_G=tuple(ended for _, _, ended in new),
                    model=self._model,
                )
                self._verdicts.update(zip(new, score_group(self._sandbox, record).rewards_G, strict=True))
            rewards_G = tuple(self._verdicts[one] for one in asked_G)
            while len(self._verdicts) > _VERDICTS:
                self._verdicts.popitem(last=False)
        return rewards_G

    def _call(self, job: Callable[[], T]) -> T:
        """Runs a short job in the loop's thread. Raises SeaError once the sea is closed."""
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(job())
            except BaseException as error:
                answer.set_exception(error)

        with self._gate:  # so every job is in the loop before the order to stop
            self._check_open()
            self._loop.call_soon_threadsafe(run)
        return answer.result()

    def _check_open(self) -> None:
        if self._closed or not self._thread.is_alive():
            raise SeaError("This sea is closed: join again.")

    def _end(self) -> None:
        with self._gate:
            if self._closed:
                return
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._sandbox.close()
        self._checking.close()


def _cut(group: GroupRecord, answers: int | None, mixed: bool, rng: Random) -> list[int]:
    """Returns the positions of `answers` completions in their order, drawn at random; if `mixed`, with both a
    right and a wrong one."""
    places = range(len(group.completions_G))
    if answers is None:
        return list(places)
    kept: list[int] = []
    if mixed:
        for reward in (0, 1):
            kept.append(rng.choice([at for at in places if group.rewards_G[at] == reward]))
    others = [at for at in places if at not in kept]
    return sorted(kept + rng.sample(others, answers - len(kept)))


def _as_group(places: Sequence[int], record: GroupRecord) -> Group:
    return Group(
        coordinates=record.coordinates,
        completions=tuple(record.completions_G[at] for at in places),
        rewards=tuple(record.rewards_G[at] for at in places),
        finished=tuple(record.finished_G[at] for at in places),
        model=record.model,
        question=record.question,
        author=record.author,
        key=record.key,
        id=record.id,
        created_ms=record.created_ms,
    )


@contextlib.contextmanager
def _one_sentence() -> Iterator[None]:
    """Turns the errors that a user can mend into SeaError."""
    try:
        yield
    except (SandboxError, QuestionError, InviteError, IdentityError, OutboxError, ArchiveError) as error:
        raise SeaError(str(error)) from error
    except OSError as error:
        what = f"{error.filename} can't be used" if error.filename else "That can't be done"
        raise SeaError(f"{what} ({error.strerror or error}).") from error
