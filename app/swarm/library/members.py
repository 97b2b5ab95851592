"""The two kinds of membership behind a `Sea`: with a relay, and with an archive that is only read.

Everything here runs in the event loop of the sea's thread; what a swarm demands of its members is
`app.swarm.membership`, which the node uses as well."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import islice
from pathlib import Path
from random import Random

import msgspec

from app.sapo.families import FAMILIES
from app.sapo.groups import HUMAN_MODEL, GroupRecord, is_single_right_answer
from app.sapo.questions import Coordinates
from app.sapo.recipes import RECIPES
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.fetching import PeerFetcher
from app.swarm.identity.identity import Identity, IdentityError
from app.swarm.identity.keyrings import real_backend
from app.swarm.identity.storage import keyring_key_name, open_identity
from app.swarm.intake import archive
from app.swarm.intake.archive import ArchivedGroup, ArchiveError
from app.swarm.intake.buffer import MAX_BUFFERED, MAX_PER_PEER, SHORTEST_ROUND_S, PeerBuffer, group_bytes
from app.swarm.intake.intake import Intake
from app.swarm.intake.reasons import IntakeReason
from app.swarm.invite.invite import Invite
from app.swarm.library.records import Group, Status
from app.swarm.membership import Membership
from app.swarm.wire.limits import MAX_SAMPLE_GROUPS, RELAY_FILE, STALE_AFTER_S
from app.swarm.wire.protocol import WantedQuestions

WANTED = 8
"""Groups of others that are kept ready until a sample has said how many it takes."""
RECIPE = msgspec.structs.replace(RECIPES["default"], max_age=None)
"""Authors are chosen as the node chooses them; how old an answer may be depends on rounds, which others do not
have."""
_ANY = Coordinates(family="gcd", level=0, seed=0, index=0)
_AGES_S = 20 * 365 * 24 * 3600
_AT_ONCE = 32
"""Groups of an archive that are checked before the next sample gets its turn."""


class RememberingBuffer(PeerBuffer):
    """A peer buffer that keeps the latest checked groups for `Sea.table`, also once they were sampled."""

    def __init__(self, member: Membership, archived: bool = False) -> None:
        """`archived`: groups have no maximum age, and all of a file fit."""
        super().__init__(
            member._now_ms,
            most=archive.MAX_GROUPS if archived else MAX_BUFFERED,
            most_bytes=2 * archive.MAX_BYTES,
            per_peer=archive.MAX_GROUPS if archived else MAX_PER_PEER,
            oldest_s=_AGES_S if archived else STALE_AFTER_S,
            people=lambda: False,
        )
        self.remembered: dict[str, GroupRecord] = {}
        self._size = 0

    def add(self, group: GroupRecord) -> bool:
        if not super().add(group):
            return False
        self.remember(group)
        return True

    def remember(self, group: GroupRecord) -> None:
        """Keeps a group for the table, and drops the oldest where there are too many."""
        self.remembered[group.id] = group
        self._size += group_bytes(group)
        while len(self.remembered) > archive.MAX_GROUPS or self._size > 2 * archive.MAX_BYTES:
            self._size -= group_bytes(self.remembered.pop(next(iter(self.remembered))))


class SeaMember(Membership):
    """The membership of a trainer that is not a node: it has no rounds, so it fetches when a sample is wanted.
    `identity`: the key that signs, None for an archive, which is only read."""

    def __init__(self, home: Path, sandbox: Sandbox, archived: bool = False) -> None:
        super().__init__(home, RECIPE, WANTED)
        self._sandbox = sandbox
        self.buffer = self.groups = RememberingBuffer(self, archived)
        self.identity: Identity | None = None
        self.families = tuple(FAMILIES)
        self.sentence = ""
        self.finished = False
        """Whether no more groups will come."""

    @property
    def _asked_for(self) -> tuple[str, ...]:
        return self.families

    def _open_intake(self, swarm: str, own_keys: Collection[bytes]) -> Intake:
        return Intake(self._sandbox, swarm, own_keys)

    def _stay_alone(self, why: str) -> None:
        self.sentence = f"{why} It is tried again later."

    async def start(self) -> None:
        """Opens what the folder holds and begins. Raises IdentityError, OutboxError, ArchiveError, OSError."""
        self._life = asyncio.create_task(self._live(), name="swarm")

    async def close(self, flush_s: float, alone_s: float) -> None:
        """Ends the membership. Waits before that for the relay's answers to what was published: at most
        `flush_s` seconds while connected, `alone_s` while not."""
        await self._hand_over(flush_s, alone_s)
        if self._life is not None:
            self._life.cancel()
            await asyncio.wait({self._life}, timeout=1.0)
        if self._outbox is not None:
            self._ledger.traffic.save(at_once=True)
            self._thanked.save()
            self._outbox.close()

    def want(self, count: int, answers: int | None, families: Sequence[str] | None) -> int:
        """Sets what is fetched and kept ready: `count` groups of these families (None: all) with at least
        `answers` completions. Returns how many are ready."""
        self.families = tuple(families) if families is not None else tuple(FAMILIES)
        chosen, least = frozenset(self.families), answers or 2
        self.buffer.wanted = lambda one: one.coordinates.family in chosen and len(one.completions_G) >= least
        if self._fetcher is not None:
            self._fetcher.families, self._fetcher.external = self._asked_for, min(count, MAX_SAMPLE_GROUPS)
            tasks = [WantedQuestions(family=one, level=level) for level in (0, 1) for one in self.families]
            self._fetcher.otherwise = tasks[:MAX_SAMPLE_GROUPS]
        return self.buffer.count_ready(RECIPE)

    def take(self, count: int, rng: Random) -> list[GroupRecord]:
        """Returns at most `count` wanted groups, which are never given out again, and wakes the fetcher."""
        taken = self.buffer.take_groups(RECIPE, count, rng)
        self.buffer.settle_used()
        self._time_round(SHORTEST_ROUND_S)
        if self._fetcher is not None:
            self._fetcher.on_round_over(())
        return taken

    def learned_from(self, groups: Sequence[Group]) -> None:
        """Sends receipts for these groups, and remembers their authors' right answers."""
        for group in groups:
            self.buffer.records.record_use(group.key, sum(group.rewards), 0)
        if self._client is not None:
            self._client.thank(group.id for group in groups)

    def store(self, scored: Sequence[GroupRecord]) -> tuple[int, Counter[str]]:
        """Publishes scored groups of the identity as far as they are mixed and the relay's rate allows; returns
        the number, and why others stayed."""
        assert self.identity is not None and self._client is not None and self._fetcher is not None
        self._fetcher.on_round_over(scored)
        left_out = Counter(why for one in scored if (why := self._unfit(one)))
        lessons = [one for one in scored if not self._unfit(one)]
        stored = self._publish(lessons, {})
        self._keep_out(stored)  # and no others: those may go out later
        for number, own in enumerate(stored, self._published - len(stored)):
            self.groups.remember(
                msgspec.structs.replace(
                    own,
                    author=self.identity.name,
                    key=self.identity.key.hex(),
                    id=f"own-{number}",
                    created_ms=self._now_ms(),
                )
            )
        left_out["rate"] = len(lessons) - len(stored)
        return len(stored), +left_out

    def _unfit(self, scored: GroupRecord) -> str:
        """Why an own group is not published; "" if it is."""
        if scored.model != HUMAN_MODEL:
            return "" if scored.informative else "unmixed"
        if not is_single_right_answer(scored.rewards_G):
            return IntakeReason.WRONG_SHAPE.value
        return "" if self._client is not None and self._client.accepts_human_groups else "no-people"

    def status(self) -> Status:
        client = self._client.status if self._client is not None else None
        return Status(
            name=self.identity.name if self.identity is not None else "",
            connected=client is not None and client.connected,
            relay=(client.relay if client is not None else None) or "",
            swarm=(client.swarm if client is not None else None) or "",
            peers=client.peers if client is not None else None,
            waiting=client.waiting + client.held if client is not None else 0,
            acknowledged=client.acknowledged if client is not None else 0,
            published=self._published,
            received=self.received,
            accepted=self.accepted,
            ready=self.buffer.count_ready(RECIPE),
            refused=dict(self.refused),
            sentence=self.sentence or (client.sentence if client is not None else ""),
        )

    @property
    def received(self) -> int:
        return self._fetcher.received if self._fetcher is not None else 0

    @property
    def accepted(self) -> int:
        return self._fetcher.accepted if self._fetcher is not None else len(self.groups.remembered)

    @property
    def refused(self) -> Counter[str]:
        return self._fetcher.refused if self._fetcher is not None else Counter()


class RelayMember(SeaMember):
    """A member of a relay's swarm."""

    def __init__(self, home: Path, sandbox: Sandbox, invite: Invite) -> None:
        super().__init__(home, sandbox)
        self._invite = invite
        self._fresh = True

    async def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        # A key that the app has put into a keyring is found there; a new one goes into a file.
        find = real_backend if keyring_key_name(self._folder) else (lambda: None)
        try:
            self.identity = (await open_identity(self._folder, find=find)).identity
        except OSError as error:
            raise IdentityError(f"{self._folder} can't be used ({error.strerror or error}).") from error
        self._connect(self.identity, [self._invite])
        await super().start()

    async def _share(self) -> None:
        assert self.identity is not None
        self.sentence = ""
        if not self._fresh:
            self._connect(self.identity, [self._invite])
        self._fresh = False
        assert self._client is not None and self._fetcher is not None
        async with asyncio.TaskGroup() as together:
            together.create_task(self._client.run())
            together.create_task(self._fetch(self._fetcher))

    async def _fetch(self, fetcher: PeerFetcher) -> None:
        """Fetches once the sandbox has started, which takes a minute on a busy computer: a relay hands out a
        group only once, so those of a program that ends before would be lost to it."""
        await asyncio.to_thread(self._sandbox.questions, [_ANY])
        await fetcher.run()


class ArchiveMember(SeaMember):
    """The groups of an archive, through the same checks; no socket is opened, and nothing is written."""

    def __init__(self, home: Path, sandbox: Sandbox, path: Path) -> None:
        super().__init__(home, sandbox, archived=True)
        self._path = path
        self._lines: Sequence[ArchivedGroup] = ()
        self._received = 0
        self._refused: Counter[str] = Counter()

    async def start(self) -> None:
        self._lines = await asyncio.to_thread(read, self._path)
        self.sentence = f"{len(self._lines)} groups of {self._path.name} are being checked."
        await super().start()

    def _stay_alone(self, why: str) -> None:
        self.sentence, self.finished = why, True

    async def _share(self) -> None:
        if self.finished:
            await asyncio.Event().wait()
        checking = archive.check_groups(self._lines, self._sandbox, (), self._now_ms())
        while some := await asyncio.to_thread(lambda: list(islice(checking, _AT_ONCE))):
            self._received += len(some)
            for _, verdict in some:
                if isinstance(verdict, GroupRecord):
                    verdict = verdict if self.buffer.add(verdict) else IntakeReason.SEEN
                if isinstance(verdict, IntakeReason):
                    self._refused[verdict.value] += 1
        self.sentence = f"{len(self.groups.remembered)} of {self._received} groups of {self._path.name} hold."
        self.finished = True
        await asyncio.Event().wait()

    @property
    def received(self) -> int:
        return self._received

    @property
    def refused(self) -> Counter[str]:
        return self._refused


def read(path: Path) -> list[ArchivedGroup]:
    """Returns the groups of an archive file, of a relay's folder or of a data folder. Raises ArchiveError and
    OSError."""
    if not path.is_dir():
        return archive.read(path).lines
    if (path / RELAY_FILE).exists():
        return list(islice(archive.read_relay_archive(path), archive.MAX_GROUPS))
    if (path / archive.FILE).exists():
        return archive.read(path / archive.FILE).lines
    raise ArchiveError(f"{path} holds no archive: name a file, a relay's folder, or a data folder.")
