"""The checks that a peer's group must pass before this node learns from it.

Nothing is believed, neither what its author claims nor the relay that brought it. In this order, the cheapest
first: shape and size, seen before, own, distrusted author; id and signature; age and the author's share;
version, family, length, unsafe characters; then in the sandbox the question is made, held-out ones and near
copies are refused, and the answers are scored: rewards that differ from the author's claim refuse the group.

An envelope becomes a body when its signature holds, and a `GroupRecord` when everything holds. Intake owns what
it remembers of ids, authors and texts, all of it bounded; the buffer behind it owns the groups. One check at a
time, in a thread. Whether a right answer is worth learning from is not judged here, but in the lesson."""

from __future__ import annotations

import secrets
from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from threading import Lock
from typing import TypeAlias, TypeVar

import msgspec

from app.sapo.asking import SHORT_MARK
from app.sapo.families import FAMILIES
from app.sapo.groups import GroupRecord
from app.sapo.questions import QUESTIONS_VERSION, QuestionError, UnmadeQuestion
from app.sapo.scoring.sandbox import Sandbox, SandboxSuspended, score_group
from app.sapo.sets.question_set import is_owners_set
from app.swarm.identity import identity
from app.swarm.intake.reasons import IntakeReason, is_unsafe, reason_of_flaw
from app.swarm.wire.body import Body, Envelope, check_age, unseal
from app.swarm.wire.frames import decode_envelope
from app.swarm.wire.limits import MAX_COMPLETION_CHARS, STALE_AFTER_S, Quotas, Refused, allowance
from app.swarm.wire.shared_sets import SharedSet, is_shared_set_family

SHINGLE_CHARS = 8
SKETCH_HASHES = 128
COPY_SHARE = 0.9
"""Fraction of a sketch in common from which two groups count as copies."""
FIRST_HASHES, FIRST_ALIKE = 24, 0.6
"""The smallest hashes of a sketch are compared first (number, fraction): most groups already differ in
those."""
REMEMBERED_TEXTS = 1024  # a megabyte of sketches
MIN_COMPARED_CHARS = 240
"""A group with fewer characters is too short to be compared with answers to other questions."""

Sketch: TypeAlias = "array[int]"


class SimilarityIndex:
    """The sketches of the latest groups, a kilobyte each. They find one text under many keys, and copies.

    A sketch is the SKETCH_HASHES smallest hashes of all runs of SHINGLE_CHARS characters, keyed with a secret
    of this process. The share of one sketch that is in another estimates how much of one text is in the other
    (Broder, "On the resemblance and containment of documents", 1997). Honest answers of a model that works by
    a fixed pattern may share three quarters, so only COPY_SHARE and more count."""

    __slots__ = ("_latest", "_secret")

    def __init__(self, remembered: int = REMEMBERED_TEXTS) -> None:
        self._latest: deque[Sketch] = deque(maxlen=remembered)
        self._secret = secrets.token_bytes(8)

    def sketch(self, question: str, completions_G: Sequence[str]) -> Sketch:
        """Computes a group's sketch, ignoring case, blanks and the order of the completions. A short group is
        sketched together with its question, because many questions have the answer "#3"."""
        texts = sorted("".join(text.split()).casefold() for text in completions_G)
        about = question if sum(map(len, texts)) < MIN_COMPARED_CHARS else ""
        salt = hash((self._secret, about))
        runs = {
            text[at : at + SHINGLE_CHARS]
            for text in texts
            for at in range(max(1, len(text) - SHINGLE_CHARS + 1))
        }
        if about:  # then the number of equal completions says something, too
            runs |= {f"{texts.count(text)}\0{text}" for text in texts}
        return array(
            "Q", sorted(nsmallest(SKETCH_HASHES, {hash((salt, run)) & 0xFFFF_FFFF_FFFF_FFFF for run in runs}))
        )

    def alike(self, sketch: Sketch) -> bool:
        """True if one of the latest groups is almost identical."""
        mine, first = frozenset(sketch), frozenset(sketch[:FIRST_HASHES])
        return any(
            len(first.intersection(other[:FIRST_HASHES])) >= FIRST_ALIKE * len(first)
            and len(mine.intersection(other)) >= COPY_SHARE * max(len(mine), len(other))
            for other in self._latest
        )

    def remember(self, sketch: Sketch) -> None:
        self._latest.append(sketch)

    def __len__(self) -> int:
        return len(self._latest)


REMEMBERED_IDS = 8192
REMEMBERED_PEERS = 2048
MAX_STRIKES = 3
"""Number of deliberately bad groups after which an author is ignored, unless at least four times as many were
good."""
DISTRUST_MS = 3600 * 1000  # an hour
_SHARE = Quotas()
"""Limits per author: equal to what one key may publish at a relay."""

V = TypeVar("V")


class IntakeResult(msgspec.Struct, frozen=True, kw_only=True):
    """A checked batch. `reports`: ids to report to the relay, by complaint."""

    checked: tuple[GroupRecord, ...]
    refused: Mapping[IntakeReason, int]
    reports: Mapping[str, tuple[str, ...]]


class _Author:
    """The record of a key that has signed a valid group."""

    __slots__ = ("allowance", "good", "strikes", "until_ms")

    def __init__(self, quotas: Quotas) -> None:
        self.allowance = allowance(quotas.publish_per_min, quotas.publish_burst)
        self.good = 0
        self.strikes = 0
        self.until_ms = 0


class Intake:
    """One node's checks and their bounded memory. Blocks; runs one check at a time."""

    def __init__(
        self,
        sandbox: Sandbox,
        swarm: str,
        own_keys: Iterable[bytes],
        *,
        families: Iterable[str] | None = None,
        sets: Callable[[], Iterable[SharedSet]] = tuple,
        longest: int = MAX_COMPLETION_CHARS,
        oldest_s: int = STALE_AFTER_S,
        per_author: Quotas = _SHARE,
    ) -> None:
        """`own_keys`: all keys that this data folder ever signed with; `families`: those accepted; `sets`:
        returns the question sets also accepted; `longest`: maximum characters of a completion; `per_author`:
        limits per author."""
        self._sandbox, self._swarm, self._longest, self._oldest_s = sandbox, swarm, longest, oldest_s
        self._per_author = per_author
        self._own = frozenset(key.hex() for key in own_keys)
        self._sets = sets
        self._families = frozenset(FAMILIES if families is None else families)
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._authors: OrderedDict[str, _Author] = OrderedDict()
        self._likeness = SimilarityIndex()
        self._one_at_a_time = Lock()

    def check_batch(
        self,
        items: Sequence[bytes | msgspec.Raw | Envelope],
        now_ms: int,
        oldest_s: int | None = None,
    ) -> IntakeResult:
        """Checks every item of a batch, or as many as possible before the sandbox stops. `oldest_s` overrides
        the maximum age, as for an archive. Raises only SandboxError."""
        checked: list[GroupRecord] = []
        refused: Counter[IntakeReason] = Counter()
        reports: dict[str, list[str]] = {}
        for one in items:
            try:
                verdict = self.check(one, now_ms, oldest_s)
            except SandboxSuspended:
                break
            if isinstance(verdict, GroupRecord):
                checked.append(verdict)
                continue
            refused[verdict] += 1
            if verdict.complaint is not None:  # then it could be read
                envelope = one if isinstance(one, Envelope) else decode_envelope(one)
                reports.setdefault(verdict.complaint, []).append(envelope.id)
        return IntakeResult(
            checked=tuple(checked),
            refused=dict(refused),
            reports={complaint: tuple(ids) for complaint, ids in reports.items()},
        )

    def check(
        self,
        one: bytes | msgspec.Raw | Envelope,
        now_ms: int,
        oldest_s: int | None = None,
        *,
        swarm: str | None = None,
    ) -> GroupRecord | IntakeReason:
        """Checks one group; returns its record or the reason for refusing it. `now_ms`: the relay's time in
        Unix milliseconds; `swarm`: overrides the intake's swarm. Raises SandboxError."""
        with self._one_at_a_time:
            try:
                envelope = one if isinstance(one, Envelope) else decode_envelope(one)
                return self._check(envelope, now_ms, oldest_s or self._oldest_s, swarm or self._swarm)
            except Refused as refused:
                return reason_of_flaw(refused.flaw)

    def _check(self, envelope: Envelope, now_ms: int, oldest_s: int, swarm: str) -> GroupRecord | IntakeReason:
        """Raises Refused for what no author can be blamed for: shape, signature and age."""
        if envelope.id in self._ids:
            return IntakeReason.SEEN
        if envelope.pk in self._own:
            return IntakeReason.OWN
        author = self._authors.get(envelope.pk)
        if author is not None and now_ms < author.until_ms:
            return IntakeReason.DISTRUSTED
        body = unseal(envelope, swarm)
        # From here on the author has really signed it: it is remembered, for the author and against it.
        _keep(self._ids, envelope.id, None, REMEMBERED_IDS)
        author = author or _Author(self._per_author)
        _keep(self._authors, envelope.pk, author, REMEMBERED_PEERS)
        verdict = self._signed(envelope, body, author, now_ms, oldest_s)
        if isinstance(verdict, GroupRecord):
            author.good += 1
        elif verdict.deliberate:
            author.strikes += 1
            if author.strikes >= MAX_STRIKES and 4 * author.strikes > author.good:
                author.good = author.strikes = 0
                author.until_ms = now_ms + DISTRUST_MS
        return verdict

    def _signed(
        self, envelope: Envelope, body: Body, author: _Author, now_ms: int, oldest_s: int
    ) -> GroupRecord | IntakeReason:
        check_age(body.created_ms, now_ms, oldest_s)
        if author.allowance.left(now_ms / 1000) < 1:
            return IntakeReason.TOO_MUCH
        author.allowance.take(1, now_ms / 1000)
        group = body.group()
        if is_shared_set_family(body.task.family):
            sets = {one.wire: one for one in self._sets()}
            opened = sets[body.task.family].decrypt_group(group) if body.task.family in sets else None
            if opened is None:
                return IntakeReason.NO_QUESTION
            group = opened
        task = group.coordinates
        family = FAMILIES.get(task.family)
        if task.version != QUESTIONS_VERSION:
            return IntakeReason.OTHER_VERSION
        if family is None or task.level >= len(family.levels):
            return IntakeReason.NO_QUESTION
        if task.family not in self._families and not is_owners_set(task.family):
            return IntakeReason.FAMILY_OFF
        if max(map(len, group.completions_G)) > self._longest:
            return IntakeReason.TOO_LONG
        if any(map(is_unsafe, group.completions_G)):
            return IntakeReason.UNSAFE
        try:
            return self._regenerated(envelope, body, group)
        except UnmadeQuestion:
            return IntakeReason.SLOW_QUESTION
        except QuestionError:
            return IntakeReason.NO_QUESTION

    def _regenerated(self, envelope: Envelope, body: Body, group: GroupRecord) -> GroupRecord | IntakeReason:
        """Regenerates the question in the sandbox, where it can be interrupted, and scores the answers. Raises
        QuestionError."""
        asked = self._sandbox.questions([group.coordinates], worked=True)[0]
        if isinstance(asked, QuestionError):
            raise asked
        text = asked.text
        if asked.held_out:
            return IntakeReason.HELD_OUT
        sketch = self._likeness.sketch(text, group.completions_G)
        if self._likeness.alike(sketch):
            return IntakeReason.LOOK_ALIKE
        scored = score_group(self._sandbox, group)
        if scored.rewards_G != body.rewards:
            return IntakeReason.FALSE_REWARDS
        self._likeness.remember(sketch)
        return msgspec.structs.replace(
            scored,
            id=envelope.id,
            key=envelope.pk,
            author=identity.node_name(bytes.fromhex(envelope.pk)),
            question=text,
            worked=asked.worked or f"{SHORT_MARK}{asked.solution}",
            created_ms=body.created_ms,
        )


def _keep(store: OrderedDict[str, V], key: str, value: V, most: int) -> None:
    """Stores an entry and drops the oldest above `most`."""
    store[key] = value
    store.move_to_end(key)
    while len(store) > most:
        store.popitem(last=False)
