"""A node's part in a swarm: its key, its connection, publishing own groups, and fetching others'.

Everything runs beside the rounds: a round takes the groups that are ready and never waits. Without a relay
nothing new arrives, and published groups wait in the outbox.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from statistics import mean

from app.common import files
from app.learning.choosing import JudgedGroup
from app.node.data import question_sets
from app.node.record import events
from app.node.record.errors import DiskFullError
from app.node.record.records import Probe
from app.node.record.snapshot import SwarmView
from app.node.swarm.imported import feed
from app.node.swarm.reporting import SwarmReporter
from app.sapo.groups import GroupRecord
from app.sapo.recipes import Recipe
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.sets.question_set import QuestionSet, is_owners_set
from app.swarm.client.client import Client
from app.swarm.client.status import ConnectionStatus, Status
from app.swarm.fetching import PeerFetcher
from app.swarm.identity.identity import IdentityError
from app.swarm.identity.keyrings import PATIENCE_S
from app.swarm.identity.storage import StoredIdentity, keyring_key_name, open_identity
from app.swarm.intake.buffer import WaitingGroups
from app.swarm.intake.intake import Intake
from app.swarm.invite.invite import Invite
from app.swarm.invite.private import is_access_key
from app.swarm.membership import FLUSH_ALONE_S, FLUSH_S, Membership
from app.swarm.wire.shared_sets import SharedSet

WAITING_FILE = "waiting.json"
_LAST_WORDS_S, _CLOSE_S = 0.5, 1.0
"""Maximum seconds to wait for answers in flight when the owner stops the node, and for the goodbye."""
_REFRESH_S = 0.5
_PROMPT_S, _PROMPT_PATIENCE_S = 2.0, 600.0
"""A keyring that is silent for the first number of seconds is waiting for a person; a key stored in it is
waited for up to the second."""
_EARLY = 64
"""Maximum groups stored while the key is still being loaded."""

Find = Callable[[], AbstractAsyncContextManager[Sequence[Invite]]]
"""Finds the swarm: returns a context manager that gives the relays to try while it is open. Entering may take a
while and raises NowhereError."""


class SwarmMember(Membership):
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
        super().__init__(folder, recipe, external, people=people)
        self._find = find
        self._known = self._families = _puzzles(families)
        self._own = tuple(family for family in families if is_owners_set(family))
        self._agreed, self._private = shared, False
        self._imitated: tuple[str, ...] = ()
        self._swarm: str | None = None
        self._resting = self._in_class = False
        self._probe: Probe | None = None
        self._early: deque[GroupRecord] = deque(maxlen=_EARLY)
        self._keeping: asyncio.Task[None] | None = None
        self._receipts = receipts
        self.reporter = SwarmReporter(folder, recipe, self._thanked, self._ledger)

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
        self._publish_lessons(own_P)
        self._time_round(seconds)
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

    async def _share(self) -> None:
        assert self._find is not None
        kept = await self._key()
        self.reporter.introduce(kept)
        async with self._find(self.reporter.say) as invites, asyncio.TaskGroup() as together:
            client, fetcher = self._join(kept, invites)
            together.create_task(client.run())
            together.create_task(fetcher.run())
            together.create_task(self._keep_showing())

    def _stay_alone(self, why: str) -> None:
        self.reporter.explain_alone(why)

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
        self._private = bool(invites) and all(is_access_key(invite.token) for invite in invites)
        client, fetcher = self._connect(kept.identity, invites)
        self.reporter.joined(client.status.acknowledged, any(invite.token is not None for invite in invites))
        fetcher.resting = self._resting
        client.rest(self._resting)
        fetcher.imitated = self._imitated
        early = tuple(self._early)
        self._early.clear()
        self._publish_lessons(early)
        return client, fetcher

    def _open_intake(self, swarm: str, own_keys: Collection[bytes]) -> Intake:
        """Adds those that waited when the node last ended, too."""
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

    def _publish_lessons(self, own_P: Sequence[GroupRecord]) -> None:
        """Publishes a round's informative groups, or keeps them until the key is loaded."""
        lessons = [own for own in own_P if own.informative]
        if self._client is None:
            self._early.extend(lessons)
        else:
            self._publish(lessons, {one.family: one.encrypt_group for one in self._shared})

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
