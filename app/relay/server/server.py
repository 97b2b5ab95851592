"""The relay's HTTP application: the websocket at /v1/ws, the info document and the health checks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator
from random import Random

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from app.common.rate import Buckets, Rate
from app.relay.access import Rules
from app.relay.admin.routes import AdminRoutes
from app.relay.limits import ADDRESSES, SOCKETS_PER_ADDRESS, ConnectionLimit, decrement
from app.relay.origin import LOOPBACK, Origins, networks
from app.relay.server.connection import CLOSING_S, RelayConnection, install_guard, open_socket, refuse
from app.relay.session.admission import CONNECTIONS_PER_KEY
from app.relay.session.classroom import KEYS_PER_NETWORK
from app.relay.session.session import Session
from app.relay.session.shared import RelayState
from app.relay.standing import Ban, Source
from app.swarm.wire import noise
from app.swarm.wire.limits import Flaw, Refused
from app.swarm.wire.protocol import (
    INFO_PATH,
    NONCE_BYTES,
    OLD_SUBPROTOCOL,
    OPENING_HEADER,
    SOCKET_PATH,
    SUBPROTOCOL,
    VERSIONS,
)

STATS_EVERY_S = 10.0  # figures for nodes; nobody reads them faster
STRANGERS_PER_ADDRESS = 32
"""Connections of one address that have not signed in: a class joins together."""
FEWEST_STRANGERS = 16
"""Minimum number of connections without a sign-in that a relay of any size allows in total."""
RECONNECT_WITHIN_MS = 10_000
"""Milliseconds over which clients spread their reconnects after a `bye`."""
SIGN_IN_S = 15.0
"""Seconds after which a connection that has neither signed in nor requested figures is closed."""
MAX_VISIT_S = 60.0
"""Seconds after which a connection that has only requested figures is closed."""
STRANGERS_SHARE, KNOWN_SHARE = 8, 4
"""At most 1/8 of all connections may lack a sign-in, and the last 1/4 is reserved for those and for keys with
standing: new keys are refused earlier."""
NEW_WEBSOCKETS = Rate(60 * 200, 400)
"""New websockets of all clients together: 200 a second."""

_log = logging.getLogger(__name__)


class Server:
    """The relay as an aiohttp application; `sockets` limits its open connections."""

    def __init__(self, state: RelayState, rules: Rules | None = None, rng: Random | None = None) -> None:
        rules = rules or Rules()
        self.state = state
        self._rng = rng or Random()
        self._origins = Origins(rules.proxies, rules.unlimited_here)
        # in a class it is keys that count, not their address: a whole school has one
        most = SOCKETS_PER_ADDRESS if state.classroom is None else CONNECTIONS_PER_KEY * KEYS_PER_NETWORK
        self.sockets = ConnectionLimit(self._origins, state.clock, rules.sockets, most)
        self._admin = AdminRoutes(state, rules, self._origins, self._publisher_addresses)
        self._rate = Buckets(NEW_WEBSOCKETS, 1)
        self._connections: set[RelayConnection] = set()
        self._strangers: deque[tuple[float, RelayConnection]] = deque()
        self._visitors: deque[tuple[float, RelayConnection]] = deque()
        self._unsigned: dict[RelayConnection, None] = {}
        self._addresses: Counter[str] = Counter()
        self._ending: set[asyncio.Task[None]] = set()
        self._leaving = False
        state.on_ban = self._banned
        state.on_twins = self._tell_twins
        state.crowded = lambda: len(self.sockets) >= self.sockets.most - self.sockets.most // KNOWN_SHARE

    def application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [
                web.get(SOCKET_PATH, self._socket),
                web.get(INFO_PATH, self._info),
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                *self._admin.routes(),
            ]
        )
        application.cleanup_ctx.append(self._working)
        return application

    @property
    def connections(self) -> int:
        """Open websockets, signed in or not."""
        return len(self._connections)

    async def leave(self) -> None:
        """Shuts down: sends `bye` to all clients, closes their connections and accepts no new ones."""
        self._leaving = True
        await asyncio.gather(*(self._say_bye(connection) for connection in tuple(self._connections)))

    async def _say_bye(self, connection: RelayConnection) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                if connection.pending:
                    await asyncio.wait(connection.pending)
                wait = self._rng.randrange(RECONNECT_WITHIN_MS)
                await connection.send(connection.session.bye("The relay is being stopped.", wait))
                await connection.socket.close(code=WSCloseCode.GOING_AWAY)

    async def _info(self, request: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(self.state.info()), content_type="application/json")

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="alive\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        if self._leaving:
            return web.Response(status=503, text="leaving\n")
        if not self.state.store.backing.ready:
            return web.Response(status=503, text="the store is not ready\n")
        return web.Response(text="ready\n")

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        address = self._origins.of(request.remote or "", request.headers)
        refused = self._turned_away(request, address)
        if refused is not None:
            self.state.tally.ended["refused"] += 1
            return refused
        ws, connection = open_socket(), None
        answer: web.StreamResponse = web.Response(status=400)  # not delivered if the client has disconnected
        self._addresses.update(within := networks(address))
        try:
            session, hello, sealed = self._greet(request, address)
            if sealed is not None:
                ws = open_socket(noise.TAG_BYTES)
            connection = RelayConnection(ws, session, request.transport, sealed)
            session.deliver = connection.send_now
            await ws.prepare(request)
            answer = ws
            before = install_guard(request)
            self._strangers.append((self.state.clock() + SIGN_IN_S, connection))
            await ws.send_frame(hello, WSMsgType.TEXT if sealed is None else WSMsgType.BINARY)
            session.count_sent(len(hello))
            self._connections.add(connection)
            self._meet(connection)
            await connection.converse(before)
        except Refused as error:
            with contextlib.suppress(ConnectionError):
                await ws.prepare(request)
                answer = ws
                await refuse(ws, error)
        except ConnectionError:
            _log.debug("A client was gone before it was greeted.")
        finally:
            if connection is not None:
                self._connections.discard(connection)
                self._unsigned.pop(connection, None)
                connection.session.closed()
            decrement(self._addresses, within)
            if connection is not None and connection.pending:
                await asyncio.sleep(0)  # Python complains of an answer that is cancelled before it began
                for task in connection.pending:
                    task.cancel()
        return answer

    def _meet(self, connection: RelayConnection) -> None:
        """Registers a connection that has not signed in. If there are too many, closes one of the network with
        most of them: a client that signs in promptly is not affected."""
        if connection.session.address == LOOPBACK:
            return
        self._unsigned[connection] = None
        most = max(FEWEST_STRANGERS, self.sockets.most // STRANGERS_SHARE)
        if len(self._unsigned) <= most:
            return
        self._unsigned = {one: None for one in self._unsigned if one.session.key is None}
        if len(self._unsigned) > most:
            crowds = Counter(networks(one.session.address)[-1] for one in self._unsigned)
            (worst, _), *_ = crowds.most_common(1)
            going = next(one for one in self._unsigned if networks(one.session.address)[-1] == worst)
            del self._unsigned[going]
            going.session.count_ended("crowded")
            self._end(going, "Too many connections have not signed in.")

    def _greet(self, request: web.Request, address: str) -> tuple[Session, bytes, noise.CipherPair | None]:
        """Returns the session, the `hello` frame and, in a private swarm, the connection's ciphers. Raises
        Refused."""
        if SUBPROTOCOL not in _offered(request):
            raise Refused(
                Flaw.OTHER_PROTOCOL, f"This relay speaks version {VERSIONS[-1]} of the protocol: update Shoal."
            )
        private = self.state.access.private
        try:
            said = bytes.fromhex(request.headers.get(OPENING_HEADER, ""))
        except ValueError:
            said = b""
        if private is None:
            if len(said) != NONCE_BYTES:
                raise Refused(
                    Flaw.NOT_INVITED,
                    "This relay serves no private swarm: join it without words, as it announces.",
                )
            session = Session(self.state, address, said)
            return session, session.hello(), None
        if len(said) != noise.OPENING_BYTES:
            raise Refused(Flaw.NOT_INVITED, "This swarm is private: join it with its six words.")
        handshake = noise.Responder(private.key, private.prologue)
        try:
            handshake.read_message(said)
            bound = handshake.begin_answer()
        except noise.NoiseError as error:
            raise Refused(
                Flaw.NOT_INVITED, "The six words are not this private swarm's: check them."
            ) from error
        session = Session(self.state, address, bound)
        hello, line = handshake.finish_answer(session.hello())
        return session, hello, line

    def _turned_away(self, request: web.Request, address: str) -> web.Response | None:
        if not {SUBPROTOCOL, OLD_SUBPROTOCOL} & _offered(request):
            return web.Response(status=400, text=f"Ask for the websocket subprotocol {SUBPROTOCOL}.\n")
        if request.protocol._message_tail:
            return web.Response(status=400, text="Wait for the answer before you send frames.\n")
        if self._leaving:
            return _later("The relay is being stopped.", 5)
        if not self.state.store.opened:
            return _later("The relay is starting.", 2)
        if address == LOOPBACK:
            return None
        if any(
            self._addresses[one] >= share * self.sockets.per_address
            or self._addresses[one] - self.state.signed_in[one] >= share * STRANGERS_PER_ADDRESS
            for one, share in zip(networks(address), ADDRESSES, strict=False)
        ):
            return _later("There are too many connections from this address.", 30)
        now = self.state.clock()
        if self._rate.wait("all", 1, now) > 0:
            return _later("Too many connect at once.", self._rng.randrange(5, 30))
        wait = self.state.quotas.take("connect", None, address)
        if wait > 0:
            return _later("This address connects too often.", int(wait) + 1)
        self._rate.take("all", 1, now)
        return None

    async def _working(self, application: web.Application) -> AsyncIterator[None]:
        works = [self._push(), self._end_strangers()]
        if self.state.checker is not None:
            works.append(self.state.checker.run())
        tasks = [asyncio.create_task(work) for work in works]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _end_strangers(self) -> None:
        """Closes connections that did not sign in or request figures in time."""
        while True:
            await asyncio.sleep(1.0)
            now = self.state.clock()
            while self._strangers and self._strangers[0][0] <= now:
                connection = self._strangers.popleft()[1]
                if connection in self._connections and not connection.session.greeted:
                    connection.session.count_ended("no-sign-in")
                    self._end(connection, f"Sign in within {SIGN_IN_S:.0f} seconds.")
                elif connection in self._connections and connection.session.key is None:
                    self._visitors.append((now + MAX_VISIT_S - SIGN_IN_S, connection))
            while self._visitors and self._visitors[0][0] <= now:
                connection = self._visitors.popleft()[1]
                if (
                    connection in self._connections
                    and connection.session.key is None
                    and connection.session.address != LOOPBACK
                ):
                    connection.session.count_ended("visit")
                    self._end(connection, f"A visit lasts {MAX_VISIT_S:.0f} seconds: sign in, or come again.")

    def _banned(self, source: Source, ban: Ban) -> None:
        """Closes the connections of a banned key or address, unless it is a shadow ban."""
        if not ban.shadow:
            for connection in self._connections:
                session = connection.session
                if source in (session.key, session.address) and not session.closing:
                    session.closing = True
                    session.count_ended("banned")
                    self._end(connection, "This key or address is banned here.")

    def _tell_twins(self, loser: Session) -> None:
        twins = [one.session for one in self._connections if one.session.key == loser.key]
        asked = next((one for one in twins if one.asked), loser)
        for one in twins:
            one.tell_of_twin(one is asked)

    def _end(self, connection: RelayConnection, reason: str) -> None:
        task = asyncio.get_running_loop().create_task(connection.end(WSCloseCode.POLICY_VIOLATION, reason))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _publisher_addresses(self) -> dict[bytes, str]:
        sessions = [connection.session for connection in self._connections]
        return {session.key: session.address for session in sessions if session.key is not None}

    async def _push(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.state.figures_due.wait(), STATS_EVERY_S)
            self.state.figures_due.clear()
            takers = [one for one in self._connections if one.session.subscribed and not one.busy]
            if takers:
                frame = takers[0].session.stats()
                await asyncio.gather(*(one.send(frame) for one in takers))


def _offered(request: web.Request) -> set[str]:
    return {word.strip() for word in request.headers.get("Sec-WebSocket-Protocol", "").split(",")}


def _later(sentence: str, wait_s: int) -> web.Response:
    return web.Response(status=503, text=sentence + "\n", headers={"Retry-After": str(wait_s)})
