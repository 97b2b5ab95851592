"""Reports a node's part in a swarm: one view, replaced at every change, sentences for the owner, and figures as
events."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from app.common.text import rounded_duration
from app.node.record import events
from app.node.record.snapshot import SwarmView
from app.node.swarm.hosting import address_for_others, own_relays
from app.sapo.families import FAMILIES
from app.sapo.recipes import Recipe
from app.swarm.client.client import Client
from app.swarm.client.receipts import ReceiptCounter
from app.swarm.client.status import ConnectionStatus, Ledger, Peer, Status
from app.swarm.fetching import PeerFetcher
from app.swarm.identity.identity import node_name
from app.swarm.identity.storage import StoredIdentity
from app.swarm.intake.buffer import PeerBuffer
from app.swarm.invite.invite import Invite
from engines import remedy

HARMLESS_CLOCK_ERROR_S = 300.0
"""Clock differences below this many seconds are harmless, since groups are valid for hours."""
_LOOKING = "Looking for a swarm."


class SwarmReporter:
    """Reports for one node. `folder`: the data folder. `thanked`: counts the receipts from models that learned
    from this node. `ledger`: the traffic."""

    def __init__(self, folder: Path, recipe: Recipe, thanked: ReceiptCounter, ledger: Ledger) -> None:
        self._folder, self._recipe, self._thanked, self._ledger = folder, recipe, thanked, ledger
        self._tell: Callable[[events.Event], None] = lambda event: None
        self._show: Callable[[SwarmView], None] = lambda view: None
        self._view = self._apart("", _LOOKING)
        self._explained = ""
        self._clocks_told = self._twin_told = False
        self._acknowledged_before = 0
        self._secret = False

    def open(self, tell: Callable[[events.Event], None], show: Callable[[SwarmView], None]) -> None:
        self._tell, self._show = tell, show
        show(self._view)

    def say(self, sentence: str) -> None:
        """Shows the owner a sentence, while the node is open."""
        self._tell(events.NodeNote(round=0, sentence=sentence))

    def explain(self, sentence: str) -> None:
        """Shows why there is no swarm now. The same sentence is not announced twice in a row."""
        self._view = self._apart(self._view.name, sentence)
        self._show(self._view)
        if sentence != self._explained:
            self.say(sentence)
        self._explained = sentence

    def explain_alone(self, why: str) -> None:
        """Shows why there is no swarm after the error `why`, until the next attempt."""
        self.explain(f"{why} Your model learns on its own meanwhile; Shoal tries again by itself.")

    def introduce(self, kept: StoredIdentity) -> None:
        """Reports the node's public name, once its key is loaded."""
        identity, before = kept.identity, self._view.name
        self._view = self._apart(identity.name, _LOOKING)
        self._show(self._view)
        if before == identity.name:
            return
        self._tell(
            events.IdentityNamed(name=identity.name, public_key=identity.key.hex(), kept=kept.where.value)
        )
        if kept.note:
            self.say(kept.note)

    def _apart(self, name: str, sentence: str) -> SwarmView:
        """The view while no relay is known."""
        sent, received = self._ledger.traffic.hour
        return SwarmView(name=name, sentence=sentence, bytes_per_hour=sent, received_per_hour=received)

    def joined(self, acknowledged: int, secret: bool) -> None:
        """Records that a swarm was found. `acknowledged`: groups that relays acknowledged before. `secret`: the
        node joined with a token, so no invite is shown."""
        self._acknowledged_before, self._secret = acknowledged, secret

    def linked(self, link: ConnectionStatus) -> None:
        """Reports a changed connection to a relay."""
        if link.state == "connected":
            self._explained = ""  # the same problem is reported again
        self._tell(events.LinkChanged(**msgspec.structs.asdict(link)))

    def refresh(self, client: Client, fetcher: PeerFetcher) -> None:
        """Builds the view from the current state and shows it if it has changed."""
        status, buffer, thanked = client.status, fetcher.buffer, self._thanked.today
        sent, received = self._ledger.traffic.hour
        soon = status.next_try_s is not None and status.next_try_s >= 1
        sentence = f"{status.sentence} Next try in {status.next_try_s:.0f} s." if soon else status.sentence
        if clocks := self._compare_clocks(status):
            sentence = f"{sentence} {clocks}"
        if twin := self._meet_twin(status):
            sentence = f"{sentence} {twin}"
        view = SwarmView(
            name=self._view.name,
            helped=len(thanked.keys),
            taught=self._thanked.taught,
            pupils=self._thanked.pupils,
            connected=status.connected,
            relay=status.relay or "",
            sentence=sentence,
            in_class=status.in_class,
            lesson_over=status.lesson_over,
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
            invite=self.invite(status),
            peers=self._peers(fetcher),
            open_port=self._open_port(status),
            relay_name=urlsplit(status.url).netloc if status.connected and status.url else "",
            bytes_per_hour=sent,
            received_per_hour=received,
            messages=self._ledger.messages,
        )
        if view != self._view:
            self._view = view
            self._show(view)

    def _peers(self, fetcher: PeerFetcher) -> tuple[Peer, ...]:
        """The peers, with what was learned from each, or why nothing."""
        buffer = fetcher.buffer
        unused = buffer.why_unused(self._recipe, fetcher.peers)
        return tuple(
            msgspec.structs.replace(peer, learned=buffer.authors[key], unused=unused.get(key, ""))
            for key, peer in fetcher.peers.items()
        )

    def tell_figures(
        self, client: Client | None, fetcher: PeerFetcher | None, buffer: PeerBuffer, published: int, early: int
    ) -> None:
        """Sends the counts as an event: `published` groups of this run, and `early` ones that wait for the
        key.
        """
        status = client.status if client is not None else None
        self._tell(
            events.SwarmDone(
                round=0,
                connected=status is not None and status.connected,
                published=published,
                received=fetcher.received if fetcher else 0,
                accepted=fetcher.accepted if fetcher else 0,
                refused=dict(fetcher.refused) if fetcher else {},
                ready=buffer.count_ready(self._recipe),
                created=status.created if status else 0,
                acknowledged=status.acknowledged if status else 0,
                waiting=status.waiting if status else 0,
                held=(status.held if status else 0) + early,
                dropped=status.dropped if status else 0,
                peers=status.peers if status else None,
                window=status.window if status else None,
                stored=status.stored if status else None,
            )
        )

    def report_pupils(self, told: bool) -> None:
        """Tells the owner, if `told`, which other models report that they learned a family from this one: the
        first for each family, and then each time their number has doubled."""
        news = self._thanked.pop_new_lessons()
        if not news:
            return
        with contextlib.suppress(OSError):
            self._thanked.save()
        for family, key in news if told else ():
            number, title = self._thanked.taught[family], FAMILIES[family].title.lower()
            if number == 1:
                self.say(f"{node_name(bytes.fromhex(key))} says it learned {title} from your model.")
            elif number.bit_count() == 1:
                self.say(f"{number} models say they learned {title} from yours.")

    def _compare_clocks(self, status: Status) -> str:
        """Returns a sentence if this computer's clock and the relay's differ by HARMLESS_CLOCK_ERROR_S or
        more; the owner is told once. Shoal stamps groups with the relay's time, so nothing is lost."""
        if not status.connected or abs(status.clock_offset_ms) < HARMLESS_CLOCK_ERROR_S * 1000:
            return ""
        apart = rounded_duration(abs(status.clock_offset_ms) / 1000)
        sentence = (
            f"This computer's clock and the relay's are {apart} apart. Check this computer's date and time."
        )
        if not self._clocks_told:
            self._clocks_told = True
            self.say(sentence)
        return sentence

    def _meet_twin(self, status: Status) -> str:
        """Returns a sentence while another computer has this one's key, from a copied data folder; the owner is
        told once."""
        if status.twin is None:
            return ""
        name, command = self._view.name, remedy.command("identity new")
        sentence = f"Another computer shares as {name} too. One data folder is a copy of the other."
        if status.twin:
            sentence += (
                f" Take a new name here, under Settings or with {command}. Until then, some answers get lost."
            )
        else:
            sentence += " That computer is asked to take a new name."
        if not self._twin_told:
            self._twin_told = True
            self.say(sentence)
        return sentence

    def _open_port(self, status: Status) -> int | None:
        """Returns the port if this computer hosts the relay in use, else None."""
        url = urlsplit(status.url or "")
        own = status.connected and url.hostname == "127.0.0.1" and status.relay in own_relays(self._folder)
        return url.port if own else None

    def invite(self, status: Status) -> str:
        """Returns a link to the relay in use, for inviting others; empty if the node joined with a personal
        token."""
        if not status.connected or status.url is None or self._secret:
            return ""
        url, room = status.url, "class" if status.in_class else None
        if self._open_port(status) is not None:
            url = address_for_others(url)
        return Invite(url=url, swarm=status.swarm, relay=status.relay, room=room).link()
