"""HTTP routes for the relay's public status page, a classroom's teacher page and the operators' commands."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web

from app.relay import standing
from app.relay.access import Rules
from app.relay.admin import operator
from app.relay.admin.operator import Banned, OrderChecker, Rejected, RelayStatus, Reply, TopPublisher
from app.relay.origin import Origins, scheme
from app.relay.page import page, teacher
from app.relay.session.classroom import MAX_PUPILS, Classroom
from app.relay.session.shared import SOFTWARE, RelayState
from app.relay.store.backing import Unavailable
from app.swarm.identity.identity import node_name
from app.swarm.invite.invite import Invite, invite_from_text
from app.swarm.wire.protocol import SOCKET_PATH

FIGURES_CACHED_S = 1.0
"""Seconds for which the page's figures are cached, independent of the number of visitors."""
READ_S = 5.0  # an order is one small request
TOP_PUBLISHERS = 10  # lines of a terminal's answer


class AdminRoutes:
    """Serves the status page at `/`, the operators' commands at /v1/operator and, in a classroom, the teacher's
    page. `addresses` returns the network address of each connected key."""

    def __init__(
        self, state: RelayState, rules: Rules, origins: Origins, addresses: Callable[[], Mapping[bytes, str]]
    ) -> None:
        self._state = state
        self._rules = rules
        self._origins = origins
        self._addresses = addresses
        self._orders = OrderChecker(rules.operators, state.relay, state.now_ms())
        self._people = teacher.People(rules.people)
        self._view: page.RelayPage | None = None
        self._viewed = 0.0

    def routes(self) -> list[web.RouteDef]:
        routes = [web.get("/", self._page), web.post(operator.PATH, self._order)]
        if self._state.classroom is not None and self._rules.teacher:
            routes += [
                web.get(teacher.PATH + "{token}/{what}", self._class),
                web.post(teacher.PATH + "{token}/names", self._note),
                web.post(teacher.PATH + "{token}/learning", self._learning),
            ]
        return routes

    def _teacher(self, request: web.Request) -> Classroom:
        """Returns the classroom. Raises HTTPNotFound if the request lacks the secret token."""
        room, given = self._state.classroom, request.match_info["token"]
        if room is None or not secrets.compare_digest(given.encode(), self._rules.teacher.encode()):
            raise web.HTTPNotFound(text="There is no such page.\n")
        return room

    async def _class(self, request: web.Request) -> web.Response:
        room, state, what = self._teacher(request), self._state, request.match_info["what"]
        if what in ("skills.csv", "discoveries.csv"):
            content = teacher.skills(room) if what == "skills.csv" else teacher.discoveries(room)
            headers = {**page.HEADERS, "Content-Disposition": f'attachment; filename="{what}"'}
            return web.Response(body=content, headers=headers, content_type="text/csv", charset="utf-8")
        if what == "names":
            return _html(teacher.render_names(room, self._people.names))
        if what != "page":
            raise web.HTTPNotFound(text="There is no such page.\n")
        invite = Invite(
            url=invite_from_text(self._rules.public or self._url(request)).url,
            swarm=state.swarm,
            relay=state.relay,
            room="class",
        )
        shown = teacher.render(
            room,
            state.swarm,
            invite,
            frozenset(self._addresses()),
            state.now_ms() / 1000,
            words=state.access.private is None,
            people=self._people.names,
        )
        return _html(shown)

    async def _learning(self, request: web.Request) -> web.Response:
        """Resumes or pauses training in the whole class. The nodes learn of it from the figures, which are sent
        immediately."""
        room = self._teacher(request)
        content = await _content(request, 64)
        if content not in (b"run=0", b"run=1"):
            return web.Response(status=400, text="Press one of the page's buttons.\n")
        room.learning = content == b"run=1"
        self._state.figures_due.set()
        raise web.HTTPSeeOther("page")

    async def _note(self, request: web.Request) -> web.Response:
        """Notes whose model each is."""
        room = self._teacher(request)
        content = await _content(request, teacher.MAX_NOTES_BYTES)
        try:
            noted = parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=2 * MAX_PUPILS)
            self._people.note(dict(noted), room)
        except ValueError:
            return web.Response(status=400, text="Press one of the page's buttons.\n")
        except OSError as error:
            why = error.strerror or error
            return web.Response(status=507, text=f"The names can't be saved ({why}): make room on the disk.\n")
        raise web.HTTPSeeOther("page")

    async def _page(self, request: web.Request) -> web.Response:
        now = self._state.clock()
        if self._view is None or now - self._viewed >= FIGURES_CACHED_S:
            self._view, self._viewed = self._figures(), now
        view = msgspec.structs.replace(self._view, url=self._rules.public or self._url(request))
        return web.Response(
            body=page.render(view), headers=page.HEADERS, content_type="text/html", charset="utf-8"
        )

    def _url(self, request: web.Request) -> str:
        """The relay's websocket URL with the Host header of the request, since the relay does not know its
        public name."""
        host = request.headers.get("Host", "")
        said = re.fullmatch(r"(?:[A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\])(?::([0-9]{1,5}))?", host)
        if said is None or not 0 < int(said[1] or 80) <= 65_535:
            host = "THIS-RELAY"
        proxied = self._origins.trusts(request.remote or "") and scheme(request.headers) == "https"
        return f"{'wss' if proxied or request.secure else 'ws'}://{host}{SOCKET_PATH}"

    def _figures(self) -> page.RelayPage:
        state = self._state
        stats, oldest = state.stats(), next(iter(state.window), None)
        now = state.clock()
        return page.RelayPage(
            nodes=self._nodes(),
            swarm=state.swarm,
            relay=state.relay,
            url="",
            access=state.access.mode,
            ready=state.store.backing.ready,
            peers=stats.peers,
            relays=stats.relays,
            window=stats.window,
            oldest_s=None if oldest is None else now - oldest.arrived,
            stored=stats.stored,
            software=SOFTWARE,
            uptime_s=now - state.tally.started,
            contact=self._rules.contact,
        )

    def _nodes(self) -> tuple[page.NodeHere, ...]:
        """The nodes listed on the page; without their names if not everybody may join."""
        named = self._state.access.mode in ("open", "pow")
        return tuple(
            page.NodeHere(name=node_name(key) if named else "", here_s=here_s)
            for key, here_s in self._state.presence.oldest(page.MAX_NODES)
        )

    async def _order(self, request: web.Request) -> web.Response:
        if not self._rules.operators:
            return web.Response(status=404, text="This relay knows no operator: see --operator and --state.\n")
        if "Content-Encoding" in request.headers:
            return web.Response(status=415, text="An order is not compressed.\n")
        wait = self._state.quotas.take("order", None, self._origins.of(request.remote or "", request.headers))
        if wait > 0:
            return web.Response(status=429, headers={"Retry-After": str(int(wait) + 1)})
        content = await _content(request, operator.MAX_ORDER_BYTES + 1)
        try:
            if len(content) > operator.MAX_ORDER_BYTES:
                raise Rejected(f"An order has at most {operator.MAX_ORDER_BYTES} bytes.")
            reply = await self.carry_out(self._orders.read(content, self._state.now_ms()))
        except Rejected as rejected:
            return _json(Reply(ok=False, sentence=str(rejected)), 403)
        return _json(reply, 200)

    async def carry_out(self, act: operator.Act) -> Reply:
        """Carries out an operator's command. Raises Rejected."""
        state = self._state
        match act:
            case operator.BanOrder():
                source = operator.parse_source(act.target)
                ban = standing.Ban(
                    until=time.time() + act.for_s, reason=act.reason, by="operator", shadow=act.shadow
                )
                told = await _told(state.ban(source, ban))
                how = "shadowed" if act.shadow else "banned"
                return Reply(ok=True, sentence=f"{operator.source_text(source)} is {how}{told}.")
            case operator.Unban():
                source = operator.parse_source(act.target)
                there = state.standings.bans.of(source, time.time()) is not None
                told = await _told(state.lift(source))
                how = "is free again" if there else "was not banned"
                return Reply(ok=True, sentence=f"{operator.source_text(source)} {how}{told}.")
            case operator.BansOrder():
                bans = state.standings.bans.all(time.time())
                return Reply(ok=True, bans=tuple(_banned(source, ban) for source, ban in bans.items()))
            case operator.StatusOrder():
                return Reply(ok=True, status=self._doing())

    def _doing(self) -> RelayStatus:
        state = self._state
        stats = state.stats()
        addresses = self._addresses()
        most = sorted(state.window.peers, key=lambda key: -state.window.author(key).queue.groups)[
            :TOP_PUBLISHERS
        ]
        return RelayStatus(
            relay=state.relay,
            swarm=state.swarm,
            software=SOFTWARE,
            uptime_s=state.clock() - state.tally.started,
            peers=len(state.presence),
            connections=state.presence.sessions,
            window=stats.window,
            stored=stats.stored,
            answers={str(code): count for code, count in state.counts.items()},
            checks=dict(state.checker.counts) if state.checker is not None else None,
            ended=dict(state.tally.ended),
            bans=len(state.standings.bans.all(time.time())),
            ready=state.store.backing.ready,
            publishers=tuple(self._publisher(key, addresses.get(key, "")) for key in most),
        )

    def _publisher(self, key: bytes, address: str) -> TopPublisher:
        known = self._state.standings.of(key)
        return TopPublisher(
            key=key.hex(),
            name=node_name(key),
            groups=self._state.window.author(key).queue.groups,
            error=round(known.error, 3),
            honest=known.honest,
            address=address,
        )


async def _content(request: web.Request, most: int) -> bytes:
    """Returns the body of a small request, or its beginning if it is longer than the limit. Raises
    HTTPRequestTimeout if it has not arrived within READ_S seconds."""
    content = b""
    try:
        async with asyncio.timeout(READ_S):
            while len(content) < most and not request.content.at_eof():
                content += await request.content.read(most - len(content))
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    return content


async def _told(action: Coroutine[Any, Any, None]) -> str:
    try:
        await action
    except Unavailable:
        return " on this relay, but the others cannot be told now: give the order again later"
    return ""


def _banned(source: standing.Source, ban: standing.Ban) -> Banned:
    return Banned(
        target=operator.source_text(source), until=ban.until, reason=ban.reason, by=ban.by, shadow=ban.shadow
    )


def _html(content: bytes) -> web.Response:
    return web.Response(body=content, headers=teacher.HEADERS, content_type="text/html", charset="utf-8")


def _json(reply: Reply, status: int) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(reply), content_type="application/json")
