"""Joins a swarm over an open connection: the relay proves its identity, and the node signs in."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TypeVar

import msgspec

from app.common.text import MAX_QUOTED, safe_line
from app.swarm.client.clock import RelayClock
from app.swarm.client.connection import Connection, ConnectionEnded
from app.swarm.identity.identity import Identity
from app.swarm.invite.invite import Invite
from app.swarm.invite.private import token_to_present
from app.swarm.wire import signin
from app.swarm.wire.limits import Code, Refused
from app.swarm.wire.protocol import Bye, Err, Hello, RelayNotice, Stats, Welcome

SOFTWARE = "shoal/0.1"
ANSWER_S = 20.0
MAX_WORK = 28
"""Maximum bits of work that a node does for a relay: about four minutes of one core."""

T = TypeVar("T")


class ExpectedRelay(msgspec.Struct, frozen=True, kw_only=True):
    """The relay id and swarm that the node expects, as far as known, and the invite to present."""

    relay: str | None = None
    swarm: str | None = None
    invite: Invite | None = None


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    hello: Hello
    welcome: Welcome


class ProofsOfWork:
    """Finds proofs of work in a thread, once a day per relay."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._found: dict[tuple[str, int], tuple[int, str]] = {}

    async def find(self, hello: Hello) -> str | None:
        """Finds a nonce that solves the proof of work in `hello`; None if it asks for none. Cancelling this
        coroutine stops the search. Raises ConnectionEnded if more than MAX_WORK bits are asked for."""
        bits = hello.pow_bits
        if bits == 0:
            return None
        if bits > MAX_WORK:
            raise ConnectionEnded(
                f"{hello.relay} asks newcomers for more work ({bits} bits) than a computer has time for."
            )
        day = (hello.relay, hello.time_ms // signin.DAY_MS)
        known = self._found.get(day)
        if known is None or known[0] < bits:
            self._found = {day: (bits, await self._search(hello))}
        return self._found[day][1]

    async def _search(self, hello: Hello) -> str:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = loop.create_future()
        enough = threading.Event()

        def settle(nonce: str) -> None:
            if not answer.done():
                answer.set_result(nonce)

        def search() -> None:
            nonce = signin.find_work(
                self._key, hello.relay, hello.time_ms, hello.pow_bits, give_up=enough.is_set
            )
            if nonce is not None:
                with suppress(RuntimeError):  # the loop has ended meanwhile
                    loop.call_soon_threadsafe(settle, nonce)

        threading.Thread(target=search, name="proof of work", daemon=True).start()
        try:
            return await answer
        finally:
            enough.set()


async def join(
    connection: Connection, identity: Identity, expected: ExpectedRelay, work: ProofsOfWork, clock: RelayClock
) -> Joined:
    """Signs in at the relay. Raises ConnectionEnded if it refuses or is not the expected one; then nothing is
    signed for it."""
    hello = await _next(connection, Hello)
    clock.forget()
    clock.record_time(hello.time_ms)
    place = connection.place
    if expected.relay is not None and hello.relay != expected.relay:
        raise ConnectionEnded(
            f"At {place} there is now the relay {hello.relay}, not {expected.relay} as before: if that is "
            "right, ask for a new invite or remove the address from relays.json."
        )
    if expected.swarm is not None and hello.swarm != expected.swarm:
        raise ConnectionEnded(
            f"{place} serves the swarm {hello.swarm}, not {expected.swarm} as before: if that is right, ask "
            "for a new invite or remove the address from relays.json."
        )
    try:
        signin.check_hello(hello, connection.opening)
    except Refused as refused:
        raise ConnectionEnded(
            f"{place} doesn't prove that it is the relay {hello.relay}: check its address."
        ) from refused
    try:
        nonce = await work.find(hello)
        shown = token_to_present(expected.invite, hello)
        obeys = expected.invite is not None and expected.invite.room is not None
        auth = signin.sign_in(identity.seed(), hello, SOFTWARE, pow=nonce, invite=shown, obeys=obeys)
    except Refused as refused:
        raise ConnectionEnded(f"{hello.relay}: {refused.sentence} Update Shoal.") from refused
    await connection.send(auth)
    welcome = await _next(connection, Welcome)
    clock.record_time(welcome.time_ms)
    return Joined(hello=hello, welcome=welcome)


async def _next(connection: Connection, kind: type[T]) -> T:
    try:
        async with asyncio.timeout(ANSWER_S):
            while True:
                message = await connection.receive()
                if isinstance(message, kind):
                    return message
                if isinstance(message, Err):
                    raise ConnectionEnded(_refusal(connection.place, message), message.retry_after_ms)
                if isinstance(message, Bye):
                    raise ConnectionEnded(
                        f"{connection.place} says: {safe_line(message.reason, MAX_QUOTED)}",
                        message.reconnect_after_ms,
                    )
                if not isinstance(message, RelayNotice | Stats):
                    raise ConnectionEnded(
                        f"{connection.place} doesn't speak as a relay does: check the address."
                    )
    except TimeoutError as error:
        raise ConnectionEnded(f"{connection.place} says nothing: is it a relay?") from error


def _refusal(place: str, err: Err) -> str:
    what = {
        Code.BLOCKED: "does not let this node in",
        Code.RESTRICTED: "lets in those with an invite only",
        Code.RATE_LIMITED: "lets nobody in just now",
    }.get(err.code, "did not take this node's sign-in")
    said = safe_line(err.msg, MAX_QUOTED)
    return f"{place} {what}" + (f": {said}" if said else ".")
