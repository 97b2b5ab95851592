"""A node's part in a swarm: its key, its connection, publishing own groups, and fetching others'.

Everything runs beside the rounds: a round takes the groups that are ready and never waits. Without a relay
nothing new arrives, and published groups wait in the outbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from random import Random
from statistics import mean

from app.common import files
from app.common.rate import backoff_s
from app.learning.choosing import JudgedGroup
from app.node.data import question_sets
from app.node.record import events
from app.node.record.errors import DiskFullError
from app.node.record.records import Probe
from app.node.record.snapshot import SwarmView
from app.node.swarm.fetching import PeerFetcher
from app.node.swarm.imported import feed
from app.node.swarm.reporting import SwarmReporter
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from app.sapo.recipes import Recipe
from app.sapo.scoring.sandbox import Sandbox, SandboxError
from app.sapo.sets.question_set import QuestionSet, is_owners_set
from app.swarm.client.client import Client
from app.swarm.client.outbox import Outbox, OutboxError
from app.swarm.client.places import FILE
from app.swarm.client.receipts import ReceiptCounter
from app.swarm.client.status import ConnectionStatus, Ledger, Status
from app.swarm.client.traffic import TrafficCounter
from app.swarm.identity.identity import IdentityError
from app.swarm.identity.keyrings import PATIENCE_S
from app.swarm.identity.storage import StoredIdentity, keyring_key_name, open_identity
from app.swarm.intake.buffer import PeerBuffer, WaitingGroups
from app.swarm.intake.intake import Intake
from app.swarm.invite.invite import Invite
from app.swarm.invite.private import is_access_key
from app.swarm.wire.shared_sets import SharedSet

WAITING_FILE = "waiting.json"
FLUSH_S, FLUSH_ALONE_S = 30.0, 5.0
"""Maximum seconds that the end of a run waits for a relay's answers, and for a relay that is disconnected."""
_LAST_WORDS_S, _CLOSE_S = 0.5, 1.0
"""Maximum seconds to wait for answers in flight when the owner stops the node, and for the goodbye."""
_REFRESH_S = 0.5
_AGAIN_S, _LONGEST_AGAIN_S = 30.0, 900.0
"""Seconds between two attempts with a swarm, key or folder that cannot be used: at first and at most, doubling.
An attempt may open the keyring's prompt, so they are rare."""
_PROMPT_S, _PROMPT_PATIENCE_S = 2.0, 600.0
"""A keyring that is silent for the first number of seconds is waiting for a person; a key stored in it is
waited for up to the second."""
_EARLY = 64
"""Maximum groups stored while the key is still being loaded."""
_GIVEN = 4096
"""Maximum own questions remembered; they cover the last hours."""
_LATEST = 0.3
"""Weight of the latest round in the running mean of round lengths."""

Find = Callable[[], AbstractAsyncContextManager[Sequence[Invite]]]
"""Finds the swarm: returns a context manager that gives the relays to try while it is open. Entering may take a
while and raises NowhereError."""


class NowhereError(Exception):
    """No swarm could be joined; the message says why. The node then trains alone."""


class SwarmMember:
    """A node's connection to a swarm; implements `NodeSwarm` (app.node.round.peers). `folder` holds the key's
    record, the outbox and the known relays. `find(say)` opens a context that yields invites to the relays to
    try; `say` shows the owner a sentence. With `find` None the node uses no relay: it learns from imported
    groups alone and publishes nothing. `external` is the number of peer groups wanted per round."""

    def __init__(
        self,
        folder: Path,
        find: Callable[[Callable[[str], None]], AbstractAsyncContextManager[Sequence[Invite]]] | None,
        *,
        recipe: Recipe,
        external: int,
        families: Sequence[str],
        receipts: Callable[[], bool] = lambda: True,
        people: Callable[[], bool] = lambda: True,
        shared: Callable[[], Iterable[QuestionSet]] = tuple,
    ) -> None:
        """Callbacks for the owner's choices: `receipts`, whether to send and accept thanks for groups;
        `people`, whether to learn from people's answers; `shared`, the question sets that the owner shares now,
        used only in a private swarm."""
        self._folder, self._find = folder, find
        self._recipe, self._external = recipe, external
        self._known = self._families = _puzzles(families)
        self._own = tuple(family for family in families if is_owners_set(family))
        self._agreed, self._private = shared, False
        self._imitated: tuple[str, ...] = ()
        self._swarm: str | None = None
        self._resting = self._in_class = False
        self._probe: Probe | None = None
        self._early: deque[GroupRecord] = deque(maxlen=_EARLY)
        self._keeping: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._fetcher: PeerFetcher | None = None
        self.buffer = PeerBuffer(self._now_ms, people=people)
        self._outbox: Outbox | None = None
        self._given: deque[Coordinates] = deque()
        self._published = 0
        self._round_s: float | None = None
        self._settled_at: float | None = None
        self._rng = Random()
        self._receipts = receipts
        self._thanked = ReceiptCounter(folder)
        self._ledger = Ledger(TrafficCounter(folder))
        self.reporter = SwarmReporter(folder, recipe, self._thanked, self._ledger)
        self._life: asyncio.Task[None] | None = None

    def open(
        self, sandbox: Sandbox, tell: Callable[[events.Event], None], show: Callable[[SwarmView], None]
    ) -> None:
        self._sandbox = sandbox
        self._feeding = asyncio.create_task(feed(self._folder, sandbox, self.buffer))
        if self._find is not None:
            self.reporter.open(tell, show)
            self._life = asyncio.create_task(self._live(), name="swarm")

    def practise_families(self, families: Iterable[str]) -> None:
        families = tuple(families)
        self._families = _puzzles(families)
        self._own = tuple(family for family in families if is_owners_set(family))
        self.buffer.set_trained_families(families)
        if self._fetcher is not None:
            self._fetcher.families = self._asked_for

    def want_to_imitate(self, families: Sequence[str]) -> None:
        self._imitated = _puzzles(families)
        if self._fetcher is not None:
            self._fetcher.imitated = self._imitated

    def count_taught(self, ids: Collection[str]) -> None:
        self.buffer.count_taught(ids)

    def thank_for_family(self, family: str) -> None:
        new = self.buffer.learned_from(family)
        if self._client is not None and self._receipts():
            self._client.thank([group.id for group in new])
            skills = sorted({(group.key, group.coordinates.family) for group in new})
            self._client.thank_for_lessons(one for one in skills if one[0] not in self.buffer.imported)
        self._save_waiting()
        self._refresh()

    def settle_round(
        self, own_P: Sequence[GroupRecord], seconds: float, judged_P: Sequence[JudgedGroup] = ()
    ) -> None:
        shared = {one.family for one in self._shared}
        own_P = [
            own for own in own_P if (family := own.coordinates.family) in shared or not is_owners_set(family)
        ]
        self._keep_out(own_P)
        self._publish(own_P)
        now = time.monotonic()
        length = seconds if self._settled_at is None else now - self._settled_at  # with rest and probes
        self._settled_at = now
        before = length if self._round_s is None else self._round_s
        self._round_s = self.buffer.round_s = (1 - _LATEST) * before + _LATEST * length
        learned = self.buffer.settle_used(judged_P)
        if self._fetcher is not None:
            self._fetcher.families = self._asked_for
            self._fetcher.on_round_over([own for own in own_P if not is_owners_set(own.coordinates.family)])
            if self._client is not None and self._receipts():
                self._client.thank(learned)
            with contextlib.suppress(OSError):  # only a figure; the next round writes it again
                self._thanked.save()
        self._refresh()
        self._tell_figures()

    def _now_ms(self) -> int:
        """Returns the relay's time, or this computer's before the first connection (Unix ms)."""
        return self._client.now_ms if self._client is not None else time.time_ns() // 1_000_000

    def report_probe(self, probe: Probe) -> None:
        families = {name: probe.families[name] for name in _puzzles(probe.families)}
        if not families:
            return
        share = probe.share if len(families) == len(probe.families) else mean(families.values())
        self._probe = probe
        if self._client is not None:
            self._client.progress(probe.round, share, families)

    def share(self, scored: GroupRecord) -> bool:
        client = self._client
        if (
            is_owners_set(scored.coordinates.family)
            or client is None
            or not client.accepts_human_groups
            or not client.publish(scored, scored.rewards_G)
        ):
            return False
        self._published += 1
        self._given.append(scored.coordinates)
        self.buffer.remember_used([scored.coordinates])
        return True

    def pause_fetching(self, paused: bool) -> None:
        self._resting = paused
        if self._fetcher is not None and self._client is not None:
            self._fetcher.resting = paused
            self._client.rest(paused)

    async def flush(self) -> None:
        await self._hand_over(FLUSH_S, FLUSH_ALONE_S)

    async def _hand_over(self, connected_s: float, alone_s: float) -> None:
        began = time.monotonic()
        while self._client is not None and self._life is not None and not self._life.done():
            status = self._client.status
            patience = connected_s if status.connected else alone_s
            if not status.waiting + status.held or time.monotonic() - began > patience:
                return
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        await self._hand_over(_LAST_WORDS_S, 0.0)
        self._tell_figures()
        self._save_waiting()
        ending = {task for task in (self._life, self._feeding) if task is not None}
        for task in ending:
            task.cancel()
        await asyncio.wait(ending, timeout=_CLOSE_S)
        self._ledger.traffic.save(at_once=True)
        if self._outbox is not None:
            self._outbox.close()

    async def _live(self) -> None:
        """Runs until it is cancelled. An error here never costs a round: after a wait, key, folder and swarm
        are reopened."""
        failures = 0
        while True:
            began = time.monotonic()
            try:
                await self._share()
            except* (IdentityError, NowhereError, OutboxError, SandboxError) as errors:
                why = str(_first(errors))
            except* Exception as errors:  # a mistake of this program's
                traceback.print_exception(errors, file=sys.stderr)
                why = f"Sharing stopped because of a mistake in Shoal ({type(_first(errors)).__name__})."
            steady = time.monotonic() - began > _LONGEST_AGAIN_S
            failures = 1 if steady else failures + 1
            self.reporter.explain_alone(why)
            await asyncio.sleep(backoff_s(failures, first_s=_AGAIN_S, longest_s=_LONGEST_AGAIN_S))

    async def _share(self) -> None:
        """Takes part in the swarm until an error. Raises IdentityError, NowhereError, OutboxError and
        SandboxError, alone or in an ExceptionGroup."""
        assert self._find is not None
        kept = await self._key()
        self.reporter.introduce(kept)
        async with self._find(self.reporter.say) as invites, asyncio.TaskGroup() as together:
            client, fetcher = self._join(kept, invites)
            together.create_task(client.run())
            together.create_task(fetcher.run())
            together.create_task(self._keep_showing())

    async def _key(self) -> StoredIdentity:
        """Loads the key. Tells the owner if the keyring waits for a password. Raises IdentityError."""
        patience_s = _PROMPT_PATIENCE_S if keyring_key_name(self._folder) else PATIENCE_S
        opening = asyncio.create_task(open_identity(self._folder, patience_s=patience_s))
        try:
            if not (await asyncio.wait({opening}, timeout=_PROMPT_S))[0]:
                self.reporter.explain(
                    "Sharing waits for your system's keyring: answer its prompt. Your model learns meanwhile."
                )
            return await opening
        except OSError as error:
            raise IdentityError(f"{self._folder} can't be used ({error.strerror or error}).") from error
        finally:
            opening.cancel()

    def _join(self, kept: StoredIdentity, invites: Sequence[Invite]) -> tuple[Client, PeerFetcher]:
        identity = kept.identity
        self._private = bool(invites) and all(is_access_key(invite.token) for invite in invites)
        if self._outbox is None:
            self._outbox = Outbox(self._folder / "outbox.sqlite")
        outbox = self._outbox
        own_keys = {identity.key} | outbox.keys()
        client = Client(
            invites,
            identity,
            outbox,
            memory=self._folder / FILE,
            tell=self._linked,
            thanked=self._thanked,
            handed=self._handed_out,
            ledger=self._ledger,
        )
        self.reporter.joined(client.status.acknowledged, any(invite.token is not None for invite in invites))
        fetcher = PeerFetcher(
            client,
            lambda swarm: self._open_intake(swarm, own_keys),
            self.buffer,
            self._recipe,
            self._external,
            self._asked_for,
        )
        fetcher.resting = self._resting
        client.rest(self._resting)
        fetcher.imitated = self._imitated
        self._client, self._fetcher = client, fetcher
        early = tuple(self._early)
        self._early.clear()
        self._publish(early)
        return client, fetcher

    def _open_intake(self, swarm: str, own_keys: Collection[bytes]) -> Intake:
        """Returns the checks for groups of a swarm, after adding those that waited when the node last ended."""
        self._swarm = swarm
        saved = files.read_json(self._folder / WAITING_FILE, WaitingGroups)
        if saved is not None and saved.swarm == swarm:
            self.buffer.restore_waiting(saved)
        return Intake(self._sandbox, swarm, own_keys, families=self._known, sets=lambda: self._shared)

    def _save_waiting(self) -> None:
        if self._swarm is not None:
            with contextlib.suppress(OSError):  # a relay could send them again later
                files.write_json(self._folder / WAITING_FILE, self.buffer.save_waiting(self._swarm))

    @property
    def _shared(self) -> tuple[SharedSet, ...]:
        """The question sets whose groups may be published; none outside a private swarm."""
        return tuple(map(SharedSet.of, self._agreed())) if self._private else ()

    @property
    def _asked_for(self) -> tuple[str, ...]:
        """The active families by their names in the protocol."""
        return self._families + tuple(one.wire for one in self._shared if one.family in self._own)

    def _keep_out(self, own_P: Sequence[GroupRecord]) -> None:
        """Makes the intake refuse copies of groups that this node published, under any signature."""
        for own in own_P:
            if len(self._given) == _GIVEN:
                self.buffer.used.discard(self._given.popleft())
            self._given.append(own.coordinates)
        self.buffer.remember_used(self._given)

    def _publish(self, own_P: Sequence[GroupRecord]) -> None:
        """Publishes as many of a round's informative groups as the relay accepts, chosen at random."""
        lessons = [own for own in own_P if own.informative]
        if self._client is None:
            self._early.extend(lessons)
            return
        sealing = {one.family: one.encrypt_group for one in self._shared}
        for own in self._rng.sample(lessons, min(len(lessons), self._client.groups_to_publish())):
            group = sealing[family](own) if is_owners_set(family := own.coordinates.family) else own
            self._published += self._client.publish(group, own.rewards_G)

    def _linked(self, link: ConnectionStatus) -> None:
        self.reporter.linked(link)
        self._refresh()

    async def _keep_showing(self) -> None:
        while True:
            self._refresh()
            self._ledger.traffic.save()
            await asyncio.sleep(_REFRESH_S)

    def _refresh(self) -> None:
        if self._client is None or self._fetcher is None:
            return
        self._meet_class(self._client.status)
        self.reporter.report_pupils(self._receipts())
        self.reporter.refresh(self._client, self._fetcher)

    def _tell_figures(self) -> None:
        if self._life is not None:
            waiting = len(self._early)
            self.reporter.tell_figures(self._client, self._fetcher, self.buffer, self._published, waiting)

    def _meet_class(self, status: Status) -> None:
        """Reports the model's skills to the class each time it connects."""
        in_class = status.in_class and status.connected
        if in_class and not self._in_class:
            self.reporter.say(
                "You're in a class: its teacher sees your model's made-up name, its skills and whether it "
                "learns, and can pause it."
            )
            if self._probe is not None:
                self.report_probe(self._probe)
        self._in_class = in_class

    def _handed_out(self, content: str) -> None:
        """Stores a question set handed out by the class, for the owner to look at. It is parsed in a
        thread, and one at a time, however many come."""
        if self._keeping is not None and not self._keeping.done():
            return

        def keep() -> None:
            if question_sets.store_offered_set(self._folder, content):
                loop.call_soon_threadsafe(
                    self.reporter.say,
                    "Your teacher offers you questions. Look at them on Skills before you add them.",
                )

        async def kept() -> None:
            with contextlib.suppress(DiskFullError, OSError):  # it is offered again at the next connection
                await asyncio.to_thread(keep)

        loop = asyncio.get_running_loop()
        self._keeping = loop.create_task(kept())


def _puzzles(families: Iterable[str]) -> tuple[str, ...]:
    """Returns the families without the owner's question sets, of which not even the names may leave this
    computer."""
    return tuple(family for family in families if not is_owners_set(family))


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
