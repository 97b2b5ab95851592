"""A node's part in a swarm: its key, its connection, publishing own groups, and fetching others'.

Everything here runs beside the rounds. A round takes what is ready and waits for nothing; without a relay
nothing new arrives, and what the node publishes waits in the outbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from random import Random
from statistics import mean
from urllib.parse import urlsplit

from app.common.rate import wait_s
from app.common.text import span
from app.learning.choosing import JudgedGroup, PeerGroup
from app.node.data import question_sets
from app.node.record import events
from app.node.record.errors import DiskFullError
from app.node.record.records import Probe
from app.node.record.snapshot import SwarmView
from app.node.round.peers import OwnGroup
from app.node.swarm.fetching import PeerFetcher
from app.node.swarm.hosting import own_relays, reached_by_others
from app.node.swarm.imported import feed
from app.sapo.families import FAMILIES
from app.sapo.groups import ScoredGroup
from app.sapo.questions import Coordinates
from app.sapo.recipes import Recipe
from app.sapo.scoring.sandbox import Sandbox, SandboxError
from app.sapo.sets.question_set import QuestionSet, is_own
from app.swarm.client.client import Client
from app.swarm.client.outbox import Outbox, OutboxError
from app.swarm.client.receipts import ReceiptCounter
from app.swarm.client.status import ConnectionStatus, Status
from app.swarm.identity.identity import IdentityError, node_name
from app.swarm.identity.keyrings import PATIENCE_S
from app.swarm.identity.storage import StoredIdentity, kept_in_keyring, open_identity
from app.swarm.intake.buffer import PeerBuffer
from app.swarm.intake.intake import Intake
from app.swarm.invite.invite import Invite
from app.swarm.invite.private import is_access_key
from app.swarm.wire.shared_sets import SharedSet

FLUSH_S, FLUSH_ALONE_S = 30.0, 5.0
"""How long the end of a run waits for a relay's answers, and for a relay that is away."""
_LAST_WORDS_S, _CLOSE_S = 0.5, 1.0
"""For answers that are on their way when the owner stops the node, and for the good-bye."""
_REFRESH_S = 0.5
_AGAIN_S, _LONGEST_AGAIN_S = 30.0, 900.0
"""Between two looks at a swarm, a key or a folder that can't be used, doubling. A look may open the keyring's
prompt, so it comes seldom."""
_PROMPT_S, _PROMPT_PATIENCE_S = 2.0, 600.0
"""A keyring that is silent for this long waits for a person, and a key in it is waited for up to the second."""
CLOCKS_S = 300.0
"""Clock differences below this many seconds do no harm, since groups are valid for hours."""
_EARLY = 64
"""Groups kept while the key is still being loaded."""
_GIVEN = 4096
"""Own questions remembered: those of the last hours."""
_LATEST = 0.3
"""Weight of the latest round in the mean length of a round."""

Find = Callable[[], AbstractAsyncContextManager[Sequence[Invite]]]
"""Finds the swarm: relays to try, for as long as the context is open. Entering may take a while. Raises
NowhereError."""


class NowhereError(Exception):
    """No swarm could be joined; the message says why. The node learns alone."""


class SwarmMember:
    """The `NodeSwarm` of a node with a relay (app.node.round.peers). `folder` holds the key's record, the
    outbox and the relays met before; `find` gets a function that says a sentence to the owner."""

    def __init__(
        self,
        folder: Path,
        find: Callable[[Callable[[str], None]], AbstractAsyncContextManager[Sequence[Invite]]],
        *,
        recipe: Recipe,
        external: int,
        families: Sequence[str],
        receipts: Callable[[], bool] = lambda: True,
        people: Callable[[], bool] = lambda: True,
        shared: Callable[[], Iterable[QuestionSet]] = tuple,
    ) -> None:
        """The owner's choices: `receipts`, to send and accept thanks for groups that were learned from;
        `people`, to learn from people's answers; `shared`, the question sets that the owner shares now, in a
        private swarm and nowhere else."""
        self._folder, self._find = folder, find
        self._recipe, self._external = recipe, external
        self._known = self._families = _puzzles(families)
        self._own = tuple(family for family in families if is_own(family))
        self._agreed, self._private = shared, False
        self._for_lessons: tuple[str, ...] = ()
        self._view = SwarmView(sentence="Looking for a swarm.")
        self._explained = ""
        self._clocks_told = False
        self._resting = self._in_class = False
        self._probe: Probe | None = None
        self._early: deque[OwnGroup] = deque(maxlen=_EARLY)
        self._client: Client | None = None
        self._fetcher: PeerFetcher | None = None
        self._buffer = PeerBuffer(self._now_ms)
        self._outbox: Outbox | None = None
        self._given: deque[Coordinates] = deque()
        self._guarded = False
        self._vouched: set[str] = set()
        """Authors in files that the owner imported."""
        self._published = self._acknowledged_before = 0
        self._round_s: float | None = None
        self._settled_at: float | None = None
        self._rng = Random()
        self._receipts, self._people = receipts, people
        self._thanked = ReceiptCounter(folder)

    def open(
        self, sandbox: Sandbox, tell: Callable[[events.Event], None], show: Callable[[SwarmView], None]
    ) -> None:
        self._sandbox, self._tell, self._show = sandbox, tell, show
        show(self._view)
        self._life = asyncio.create_task(self._live(), name="swarm")
        self._feeding = asyncio.create_task(feed(self._folder, sandbox, self._buffer, self._vouched))

    def practise_families(self, families: Iterable[str]) -> None:
        families = tuple(families)
        self._families = _puzzles(families)
        self._own = tuple(family for family in families if is_own(family))
        self._buffer.practise(families)
        if self._fetcher is not None:
            self._fetcher.families = self._asked_for

    def want_for_lessons(self, families: Sequence[str]) -> None:
        self._for_lessons = _puzzles(families)
        if self._fetcher is not None:
            self._fetcher.for_lessons = self._for_lessons

    def waiting_groups(self) -> list[PeerGroup]:
        return self._buffer.waiting_groups()

    def vouches(self, key: str) -> bool:
        return self._guarded or key in self._vouched or self._buffer.records.stands(key)

    def settle_lesson(self, groups: Sequence[str]) -> None:
        taught = self._buffer.settle_lesson(groups)
        if self._client is not None and self._receipts():
            self._client.thank(list(groups))
            self._client.thank_for_lessons(one for one in taught if one[0] not in self._vouched)
        self._refresh()

    def solved_families(self) -> frozenset[str]:
        status = self._client.status if self._client is not None else None
        return self._buffer.solved | frozenset(status.families or () if status else ())

    def remember_used(self, used: Iterable[Coordinates]) -> None:
        self._buffer.used.update(used)

    def take_groups(self, recipe: Recipe, most: int, rng: Random) -> list[PeerGroup]:
        if self._fetcher is not None:
            self._fetcher.on_take()
        return self._buffer.take_groups(recipe, most, rng, self._people())

    def give_back(self, blamed: bool = True) -> None:
        self._buffer.give_back(blamed)

    def settle_round(
        self, own_P: Sequence[OwnGroup], seconds: float, judged_P: Sequence[JudgedGroup] = ()
    ) -> None:
        shared = {one.family for one in self._shared}
        own_P = [
            own for own in own_P if (family := own.question.coordinates.family) in shared or not is_own(family)
        ]
        self._keep_out(own_P)
        self._publish(own_P)
        now = time.monotonic()
        length = seconds if self._settled_at is None else now - self._settled_at  # with rest and probes
        self._settled_at = now
        mean = length if self._round_s is None else self._round_s
        self._round_s = self._buffer.round_s = (1 - _LATEST) * mean + _LATEST * length
        learned = self._buffer.settle_used(judged_P)
        if self._fetcher is not None:
            self._fetcher.families = self._asked_for
            self._fetcher.on_round_over([own for own in own_P if not is_own(own.question.coordinates.family)])
            if self._client is not None and self._receipts():
                self._client.thank(learned)
            with contextlib.suppress(OSError):  # a figure, which the next round writes again
                self._thanked.save()
        self._refresh()
        self._tell(self._figures())

    def _now_ms(self) -> int:
        """The relay's clock, or this computer's before the first connection."""
        return self._client.now_ms if self._client is not None else time.time_ns() // 1_000_000

    def report_probe(self, probe: Probe) -> None:
        families = {name: probe.families[name] for name in _puzzles(probe.families)}
        if not families:
            return
        share = probe.share if len(families) == len(probe.families) else mean(families.values())
        self._probe = probe
        if self._client is not None:
            self._client.progress(probe.round, share, families)

    def share(self, scored: ScoredGroup) -> bool:
        client = self._client
        if (
            is_own(scored.group.coordinates.family)
            or client is None
            or not client.takes_people
            or not client.publish(scored.group, scored.rewards_G)
        ):
            return False
        self._published += 1
        self._given.append(scored.group.coordinates)
        self._buffer.used.add(scored.group.coordinates)
        return True

    def rest(self, resting: bool) -> None:
        self._resting = resting
        if self._fetcher is not None:
            self._fetcher.resting = resting

    async def flush(self) -> None:
        await self._hand_over(FLUSH_S, FLUSH_ALONE_S)

    async def _hand_over(self, connected_s: float, alone_s: float) -> None:
        began = time.monotonic()
        while self._client is not None and not self._life.done():
            status = self._client.status
            patience = connected_s if status.connected else alone_s
            if not status.waiting + status.held or time.monotonic() - began > patience:
                return
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        await self._hand_over(_LAST_WORDS_S, 0.0)
        self._tell(self._figures())
        self._life.cancel()
        self._feeding.cancel()
        await asyncio.wait({self._life, self._feeding}, timeout=_CLOSE_S)
        if self._outbox is not None:
            self._outbox.close()

    async def _live(self) -> None:
        """Runs until it is cancelled. An error here never costs a round: after a wait, key, folder and swarm
        are opened again."""
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
            self._alone(why)
            await asyncio.sleep(wait_s(failures, first_s=_AGAIN_S, longest_s=_LONGEST_AGAIN_S))

    async def _share(self) -> None:
        """Runs until an error. Raises IdentityError, NowhereError, OutboxError and SandboxError, in an
        ExceptionGroup or alone."""
        kept = await self._key()
        self._introduce(kept)
        async with self._find(self.say) as invites, asyncio.TaskGroup() as together:
            client, fetcher = self._join(kept, invites)
            together.create_task(client.run())
            together.create_task(fetcher.run())
            together.create_task(self._keep_showing())

    async def _key(self) -> StoredIdentity:
        """Loads the key. Tells the owner immediately if the keyring waits for a password. Raises
        IdentityError."""
        patience_s = _PROMPT_PATIENCE_S if kept_in_keyring(self._folder) else PATIENCE_S
        opening = asyncio.create_task(open_identity(self._folder, patience_s=patience_s))
        try:
            if not (await asyncio.wait({opening}, timeout=_PROMPT_S))[0]:
                self._explain(
                    "Sharing waits for your system's keyring: answer its prompt. Your model learns meanwhile."
                )
            return await opening
        except OSError as error:
            raise IdentityError(f"{self._folder} can't be used ({error.strerror or error}).") from error
        finally:
            opening.cancel()

    def _introduce(self, kept: StoredIdentity) -> None:
        identity = kept.identity
        before = self._view.name
        self._view = SwarmView(name=identity.name, sentence="Looking for a swarm.")
        self._show(self._view)
        if before == identity.name:
            return
        self._tell(
            events.IdentityNamed(name=identity.name, public_key=identity.key.hex(), kept=kept.where.value)
        )
        if kept.note:
            self.say(kept.note)

    def _join(self, kept: StoredIdentity, invites: Sequence[Invite]) -> tuple[Client, PeerFetcher]:
        identity = kept.identity
        self._guarded = any(invite.token is not None for invite in invites)
        self._private = bool(invites) and all(is_access_key(invite.token) for invite in invites)
        if self._outbox is None:
            self._outbox = Outbox(self._folder / "outbox.sqlite")
        outbox = self._outbox
        own_keys = {identity.key} | outbox.keys()
        client = Client(
            invites,
            identity,
            outbox,
            memory=self._folder / "relays.json",
            tell=self._linked,
            thanked=self._thanked,
            handed=self._handed_out,
        )
        self._acknowledged_before = client.status.acknowledged
        fetcher = PeerFetcher(
            client,
            lambda swarm: Intake(
                self._sandbox, swarm, own_keys, families=self._known, sets=lambda: self._shared
            ),
            self._buffer,
            self._recipe,
            self._external,
            self._asked_for,
        )
        fetcher.resting = self._resting
        fetcher.for_lessons = self._for_lessons
        self._client, self._fetcher = client, fetcher
        early = tuple(self._early)
        self._early.clear()
        self._publish(early)
        return client, fetcher

    @property
    def _shared(self) -> tuple[SharedSet, ...]:
        """The sets whose groups may leave this computer: none outside a private swarm."""
        return tuple(map(SharedSet.of, self._agreed())) if self._private else ()

    @property
    def _asked_for(self) -> tuple[str, ...]:
        """The families in play by their names on the wire."""
        return self._families + tuple(one.wire for one in self._shared if one.family in self._own)

    def _keep_out(self, own_P: Sequence[OwnGroup]) -> None:
        """Makes the check refuse copies of what this node published, under whatever name."""
        for own in own_P:
            if len(self._given) == _GIVEN:
                self._buffer.used.discard(self._given.popleft())
            self._given.append(own.question.coordinates)
        self._buffer.used.update(self._given)

    def _publish(self, own_P: Sequence[OwnGroup]) -> None:
        """Publishes as many of a round's informative groups as the relay accepts, chosen at random. Rounds
        never draw held-out questions, so none is published."""
        lessons = [own for own in own_P if own.scored.informative and not own.question.held_out]
        if self._client is None:
            self._early.extend(lessons)
            return
        sealing = {one.family: one.sealed for one in self._shared}
        for own in self._rng.sample(lessons, min(len(lessons), self._client.room())):
            group = own.scored.group
            if is_own(family := group.coordinates.family):
                group = sealing[family](group)
            self._published += self._client.publish(group, own.scored.rewards_G)

    def _linked(self, link: ConnectionStatus) -> None:
        if link.state == "connected":
            self._explained = ""  # the same trouble is news again
        self._tell(
            events.LinkChanged(
                state=link.state,
                url=link.url,
                relay=link.relay,
                swarm=link.swarm,
                sentence=link.sentence,
                retry_s=link.retry_s,
            )
        )
        self._refresh()

    async def _keep_showing(self) -> None:
        while True:
            self._refresh()
            await asyncio.sleep(_REFRESH_S)

    def _refresh(self) -> None:
        if self._client is None or self._fetcher is None:
            return
        status, fetcher, buffer = self._client.status, self._fetcher, self._buffer
        self._meet_class(status)
        self._tell_pupils()
        soon = status.next_try_s is not None and status.next_try_s >= 1
        sentence = f"{status.sentence} Next try in {status.next_try_s:.0f} s." if soon else status.sentence
        if clocks := self._compare_clocks(status):
            sentence = f"{sentence} {clocks}"
        thanked = self._thanked.today
        view = SwarmView(
            name=self._view.name,
            helped=len(thanked.keys),
            helped_with=thanked.groups,
            taught=self._thanked.taught,
            pupils=self._thanked.pupils,
            connected=status.connected,
            relay=status.relay or "",
            sentence=sentence,
            in_class=status.in_class,
            class_paused=status.learning is False,
            online=max(0, (status.peers or 1) - 1),
            ready=buffer.count_ready(self._recipe),
            taken=buffer.taken,
            taken_last=buffer.taken_last,
            sources=len(buffer.authors),
            given=status.acknowledged - self._acknowledged_before,
            given_ever=status.acknowledged,
            waiting=status.waiting + status.held,
            received=fetcher.received,
            refused=dict(fetcher.refused),
            invite=self._invite(status),
            peers=tuple(fetcher.peers.values()),
            open_port=self._open_port(status),
            relay_name=urlsplit(status.url).netloc if status.connected and status.url else "",
            bytes_per_hour=self._client.ledger.sent_bytes,
            received_per_hour=self._client.ledger.received_bytes,
            messages=self._client.ledger.messages,
        )
        if view != self._view:
            self._view = view
            self._show(view)

    def _compare_clocks(self, status: Status) -> str:
        """A sentence if this computer's clock and the relay's differ by CLOCKS_S or more, told once. Shoal
        stamps groups with the relay's time, so nothing is lost by it."""
        if not status.connected or abs(status.clock_offset_ms) < CLOCKS_S * 1000:
            return ""
        apart = span(abs(status.clock_offset_ms) / 1000)
        sentence = (
            f"This computer's clock and the relay's are {apart} apart. Check this computer's date and time."
        )
        if not self._clocks_told:
            self._clocks_told = True
            self.say(sentence)
        return sentence

    def _meet_class(self, status: Status) -> None:
        """Tells the class what the model can do, each time it connects."""
        if status.in_class and not self._in_class:
            self.say(
                "You're in a class: its teacher sees your model's made-up name and skills, and can pause it."
            )
            if self._probe is not None:
                self.report_probe(self._probe)
        self._in_class = status.in_class

    def _tell_pupils(self) -> None:
        """Says which other models say that they learned a family from this one: the first of each, and then
        when there are twice as many."""
        news = self._thanked.news()
        if not news:
            return
        with contextlib.suppress(OSError):
            self._thanked.save()
        if not self._receipts():
            return
        for family, key in news:
            number, title = self._thanked.taught[family], FAMILIES[family].title.lower()
            if number == 1:
                self.say(f"{node_name(bytes.fromhex(key))} says it learned {title} from your model.")
            elif number.bit_count() == 1:
                self.say(f"{number} models say they learned {title} from yours.")

    def _handed_out(self, content: str) -> None:
        """The class's question set waits for its owner to look at it."""

        def keep() -> None:
            if question_sets.offer(self._folder, content):
                loop.call_soon_threadsafe(
                    self.say, "Your teacher offers you questions. Look at them on Skills before you add them."
                )

        async def kept() -> None:
            with contextlib.suppress(DiskFullError, OSError):  # it is offered again at the next connection
                await asyncio.to_thread(keep)

        loop = asyncio.get_running_loop()
        self._keeping = loop.create_task(kept())

    def _open_port(self, status: Status) -> int | None:
        """The port, if the relay in use is hosted by this computer."""
        url = urlsplit(status.url or "")
        own = status.connected and url.hostname == "127.0.0.1" and status.relay in own_relays(self._folder)
        return url.port if own else None

    def _invite(self, status: Status) -> str:
        """The invite to the relay in use. A personal token is not passed on."""
        if not status.connected or status.url is None or self._guarded:
            return ""
        url, room = status.url, "class" if status.in_class else None
        if self._open_port(status) is not None:
            url = reached_by_others(url)
        return Invite(url=url, swarm=status.swarm, relay=status.relay, room=room).link()

    def _figures(self) -> events.SwarmDone:
        status = self._client.status if self._client is not None else None
        fetcher = self._fetcher
        return events.SwarmDone(
            round=0,
            connected=status is not None and status.connected,
            published=self._published,
            received=fetcher.received if fetcher else 0,
            accepted=fetcher.accepted if fetcher else 0,
            refused=dict(fetcher.refused) if fetcher else {},
            ready=self._buffer.count_ready(self._recipe),
            created=status.created if status else 0,
            acknowledged=status.acknowledged if status else 0,
            waiting=status.waiting if status else 0,
            held=(status.held if status else 0) + len(self._early),
            dropped=status.dropped if status else 0,
            peers=status.peers if status else None,
            window=status.window if status else None,
            stored=status.stored if status else None,
        )

    def _alone(self, why: str) -> None:
        self._explain(f"{why} Your model learns on its own meanwhile; Shoal tries again by itself.")

    def _explain(self, sentence: str) -> None:
        """Shows why there is no swarm now. A sentence that was just told is shown but not told again."""
        self._view = SwarmView(name=self._view.name, sentence=sentence)
        self._show(self._view)
        if sentence != self._explained:
            self.say(sentence)
        self._explained = sentence

    def say(self, sentence: str) -> None:
        """Tells the owner a sentence, while the node is open."""
        self._tell(events.NodeNote(round=0, sentence=sentence))


def _puzzles(families: Iterable[str]) -> tuple[str, ...]:
    """The families without the owner's question sets, not even whose names leave this computer."""
    return tuple(family for family in families if not is_own(family))


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
