"""Relays on the local network, announced and found by DNS-SD over multicast DNS; no packet leaves the network.

A relay announces its swarm, its id and where its websocket is, under a name derived from its id, which tells
nothing about a computer or a person. Anybody can announce anything, so what is found is checked here and in
`hello`.

Only imported where a relay announces itself or a node looks for one: a node that learns alone never does.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import sha256

import ifaddr
import msgspec
import zeroconf
from zeroconf import ServiceStateChange
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from app.swarm.invite.invite import Invite, InviteError
from app.swarm.wire.protocol import SOCKET_PATH, VERSIONS

SERVICE = "_shoal._tcp.local."
FIND_S = 2.0
MAX_FOUND = 32
MAX_ANNOUNCEMENTS = 128
"""Maximum announcements examined; further ones are treated as a flood."""
_NAME = b"shoal-lan-v1\0"
_RESOLVE_S = 1.0
_TXT_VERSION = "1"


class Advert(msgspec.Struct, frozen=True, kw_only=True):
    """A relay's announcement on its network. `private`: not everybody may join; `since_ms`: start of the relay
    in Unix milliseconds."""

    swarm: str
    relay: str
    port: int
    since_ms: int
    private: bool = False


class FoundRelay(msgspec.Struct, frozen=True, kw_only=True):
    """A relay found on this network. `invite` has its address, swarm and id, and no token."""

    invite: Invite
    private: bool
    since_ms: int


class DiscoveryError(Exception):
    """This computer's network does not support announcements; the message says what works instead."""


@asynccontextmanager
async def advertise(
    advert: Advert, addresses: Sequence[str], interfaces: Sequence[str] | None = None
) -> AsyncIterator[None]:
    """Announces a relay inside the context. `addresses`: where other computers reach it; `interfaces`: own
    addresses to send from (None: all). Raises DiscoveryError."""
    name = label(advert.relay)
    service = AsyncServiceInfo(
        SERVICE,
        f"{name}.{SERVICE}",
        parsed_addresses=list(addresses),
        port=advert.port,
        properties={
            "v": _TXT_VERSION,
            "swarm": advert.swarm,
            "relay": advert.relay,
            "proto": ",".join(map(str, VERSIONS)),
            "path": SOCKET_PATH,
            "private": "1" if advert.private else "0",
            "since": str(advert.since_ms),
        },
        server=f"{name}.local.",
    )
    network = _network(interfaces)
    try:
        try:
            await (await network.async_register_service(service, allow_name_change=True))
        except (OSError, zeroconf.Error) as error:
            raise _unheard(error) from error
        yield
    finally:
        with suppress(OSError, zeroconf.Error):
            await network.async_unregister_all_services()
        await network.async_close()


async def find(timeout_s: float = FIND_S, interfaces: Sequence[str] | None = None) -> list[FoundRelay]:
    """Returns the relays that answer within `timeout_s` seconds, oldest first. Raises DiscoveryError if this
    computer has no network."""
    network = _network(interfaces)
    heard: dict[str, asyncio.Task[FoundRelay | None]] = {}

    def hear(*, name: str, state_change: ServiceStateChange, **_: object) -> None:
        if (
            state_change is not ServiceStateChange.Removed
            and name not in heard
            and len(heard) < MAX_ANNOUNCEMENTS
        ):
            heard[name] = asyncio.create_task(_resolve(network.zeroconf, name))

    try:
        browser = AsyncServiceBrowser(network.zeroconf, SERVICE, handlers=[hear])
        await asyncio.sleep(timeout_s)
        await browser.async_cancel()
        answers = await asyncio.gather(*heard.values()) if heard else []
    except (OSError, zeroconf.Error) as error:
        raise _unheard(error) from error
    finally:
        for task in heard.values():
            task.cancel()
        await network.async_close()
    return order(one for one in answers if one is not None)


def order(found: Iterable[FoundRelay]) -> list[FoundRelay]:
    """Removes duplicate addresses and sorts by `rank`, so that all nodes of a network agree on the first
    relay."""
    unique = {one.invite.url: one for one in found}
    return sorted(unique.values(), key=rank)[:MAX_FOUND]


def rank(found: FoundRelay) -> tuple[int, str, str]:
    """Sort key of relays on one network: the oldest first."""
    return found.since_ms, found.invite.relay or "", found.invite.url


def label(relay: str) -> str:
    """The relay's name on the network, derived from its id alone."""
    return "shoal-" + sha256(_NAME + relay.encode()).hexdigest()[:16]


def read_announcement(
    addresses: Iterable[str], port: int | None, txt: Mapping[bytes, bytes | None]
) -> FoundRelay | None:
    """Parses an announcement; None if any part is invalid. Only addresses of private networks are accepted, so
    that an announcement cannot send nodes to the internet; loopback addresses and paths other than a relay's
    are refused, so that it cannot make nodes contact programs on their own computer."""
    entries = {name: value or b"" for name, value in txt.items()}
    host = next(iter(sorted(filter(None, map(_local, addresses)), key=lambda one: ("[" in one, one))), None)
    try:
        versions = entries[b"proto"].decode("ascii").split(",")
        if host is None or not port or entries[b"v"] != _TXT_VERSION.encode():
            return None
        if not {str(version) for version in VERSIONS} & set(versions):
            return None
        if entries[b"path"] != SOCKET_PATH.encode():
            return None
        invite = Invite(
            url=f"ws://{host}{'' if port == 80 else f':{port}'}{SOCKET_PATH}",
            swarm=entries[b"swarm"].decode("ascii"),
            relay=entries[b"relay"].decode("ascii"),
        )
        if not re.fullmatch(rb"[0-9]{1,15}", entries[b"since"]):
            return None
    except (KeyError, UnicodeDecodeError, InviteError):
        return None
    return FoundRelay(invite=invite, private=entries.get(b"private") == b"1", since_ms=int(entries[b"since"]))


def lan_address() -> str | None:
    """This computer's address on its network; None without a network. Sends nothing: only asks the system for
    the route."""
    for towards in ("224.0.0.251", "10.255.255.255", "203.0.113.1"):
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            asked.connect((towards, 9))
            own = ipaddress.IPv4Address(asked.getsockname()[0])
            if not own.is_loopback and not own.is_unspecified:
                return str(own)
    mine = (ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips if isinstance(ip.ip, str))
    return next((one for one in mine if not ipaddress.ip_address(one).is_loopback), None)


async def _resolve(network: zeroconf.Zeroconf, name: str) -> FoundRelay | None:
    service = AsyncServiceInfo(SERVICE, name)
    if not await service.async_request(network, _RESOLVE_S * 1000):
        return None
    return read_announcement(service.parsed_addresses(), service.port, service.properties)


def _local(text: str) -> str | None:
    """An address as written in a URL; None unless it is of a private network."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return None
    if not address.is_private or address.is_unspecified or address.is_link_local or address.is_multicast:
        return None
    if address.is_loopback:
        return None
    return f"[{address}]" if address.version == 6 else str(address)


def _network(interfaces: Sequence[str] | None) -> AsyncZeroconf:
    try:
        return AsyncZeroconf() if interfaces is None else AsyncZeroconf(interfaces=list(interfaces))
    except (OSError, RuntimeError) as error:
        raise _unheard(error) from error


def _unheard(error: Exception) -> DiscoveryError:
    why = (error.strerror if isinstance(error, OSError) else None) or "this computer has no network for them"
    return DiscoveryError(
        f"Relays on this network can be neither found nor announced ({why}): use an invite link instead."
    )
