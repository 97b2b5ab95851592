"""Announcements over real multicast DNS on this computer; what they may say, as a pure function."""

from __future__ import annotations

import asyncio
import getpass
import ipaddress
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from app.swarm.invite.discovery import (
    MAX_FOUND,
    SERVICE,
    Advert,
    DiscoveryError,
    FoundRelay,
    advertise,
    find,
    label,
    lan_address,
    order,
    read_announcement,
)
from app.swarm.invite.invite import Invite
from app.swarm.wire.protocol import SOCKET_PATH

ROOT = Path(__file__).parents[3]
TXT = {
    b"v": b"1", b"swarm": b"shoal", b"relay": b"r1", b"proto": b"1.1", b"path": b"/v1/ws", b"private": b"0",
    b"since": b"5",
}  # fmt: skip
LOOPBACK = ["127.0.0.1"]


@asynccontextmanager
async def announced(relay: str, port: int = 8777, **options: Any) -> AsyncIterator[None]:
    """A real announcement, heard on loopback."""
    advert = Advert(swarm="shoal", relay=relay, port=port, since_ms=port, **options)
    async with advertise(advert, ["192.168.77.7"], LOOPBACK):
        yield


async def found(wanted: int) -> list[FoundRelay]:
    """What is found within ten seconds: this machine may be busy."""
    relays: list[FoundRelay] = []
    for _ in range(5):
        relays = [one for one in await find(2.0, LOOPBACK) if (one.invite.relay or "").startswith("test-")]
        if len(relays) >= wanted:
            break
    return relays


@pytest.fixture(scope="module", autouse=True)
def multicast() -> None:
    async def there_and_back() -> bool:
        async with announced("test-0"):
            return bool(await found(1))

    try:
        if asyncio.run(there_and_back()):
            return
    except DiscoveryError as error:
        pytest.skip(f"no multicast on this computer: {error}")
    pytest.skip("multicast does not come back to this computer")


def test_a_relay_is_found_while_it_announces_itself() -> None:
    async def story() -> None:
        async with (
            announced("test-b", port=8002),
            announced("test-a", port=8001),
            announced("test-c", port=8003, private=True),
        ):
            relays = await found(3)
            assert [(one.invite.relay, one.private) for one in relays] == [
                ("test-a", False),
                ("test-b", False),
                ("test-c", True),
            ]
            assert relays[2].invite.url == "ws://192.168.77.7:8003/v1/ws"
        relays = await find(1.0, LOOPBACK)  # perhaps others', never ours
        assert not [one for one in relays if (one.invite.relay or "").startswith("test-")]

    asyncio.run(story())


def test_what_strangers_announce_costs_nothing() -> None:
    hostile: list[dict[str, Any]] = [
        {"properties": {}},
        {"properties": {**TXT, b"swarm": b"\xff\xfe"}},
        {"properties": {**TXT, b"swarm": b"$(reboot)"}},
        {"properties": {**TXT, b"relay": b"a\x1b[31m"}},
        {"properties": {**TXT, b"relay": b"x" * 200}},
        {"properties": {**TXT, b"path": b"/../admin"}},
        {"properties": {**TXT, b"path": b"@evil.example/"}},
        {"properties": {**TXT, b"path": b"/api/delete"}},
        {"properties": TXT, "parsed_addresses": ["127.0.0.1"]},
        {"properties": TXT, "parsed_addresses": ["::1"]},
        {"properties": {**TXT, b"proto": b"99"}},
        {"properties": {**TXT, b"v": b"2"}},
        {"properties": TXT, "parsed_addresses": ["8.8.8.8"]},
        {"properties": TXT, "port": 0},
    ]

    async def story() -> None:
        network = AsyncZeroconf(interfaces=LOOPBACK)
        try:
            for number, one in enumerate(hostile):
                fields = {
                    "parsed_addresses": ["192.168.77.8"],
                    "port": 8777,
                    "server": f"h{number}.local.",
                } | one
                service = AsyncServiceInfo(SERVICE, f"evil {number} \u202e.{SERVICE}", **fields)
                await network.async_register_service(service, cooperating_responders=True)
            async with announced("test-good"):
                assert [one.invite.relay for one in await found(1)] == ["test-good"]
        finally:
            await network.async_unregister_all_services()
            await network.async_close()

    asyncio.run(story())


def test_nothing_of_the_computer_or_its_owner_is_told() -> None:
    sent = []

    async def story() -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("", 5353))
        member = socket.inet_aton("224.0.0.251") + socket.inet_aton("127.0.0.1")
        listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        listener.setblocking(False)
        with listener:
            async with announced("test-quiet"):
                assert await found(1)
                while True:
                    try:
                        sent.append(listener.recv(9000))
                    except BlockingIOError:
                        break

    asyncio.run(story())
    ours = [packet for packet in sent if label("test-quiet").encode() in packet]
    assert ours
    for packet in ours:
        for name in (socket.gethostname(), getpass.getuser()):
            assert len(name) < 5 or name.encode() not in packet


def test_an_announcement_becomes_an_invite() -> None:
    relay = read_announcement(["fe80::1", "fd00::2", "192.168.1.20"], 8777, TXT)
    assert relay == FoundRelay(
        invite=Invite(url="ws://192.168.1.20:8777/v1/ws", swarm="shoal", relay="r1"), private=False, since_ms=5
    )
    six = read_announcement(["fd00::2"], 80, {**TXT, b"private": b"1", b"more": None})
    assert six == FoundRelay(
        invite=Invite(url="ws://[fd00::2]/v1/ws", swarm="shoal", relay="r1"), private=True, since_ms=5
    )
    for address in (
        "8.8.8.8",
        "2606:4700::1111",
        "0.0.0.0",
        "224.0.0.1",
        "fe80::1%eth0",
        "169.254.1.1",
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "::ffff:127.0.0.1",
        "nonsense",
    ):
        assert read_announcement([address], 8777, TXT) is None, address
    for name in (b"v", b"swarm", b"relay", b"proto", b"path", b"since"):
        for value in (None, b"", b"\xff", b"a b", b"?x", b"#", b"/api/delete"):
            assert read_announcement(["10.0.0.1"], 8777, {**TXT, name: value}) is None, (name, value)
    assert read_announcement(["10.0.0.1"], None, TXT) is None


@given(
    st.lists(st.text(max_size=40) | st.ip_addresses().map(str), max_size=4),
    st.none() | st.integers(0, 65_535),
    st.dictionaries(st.sampled_from(sorted(TXT)) | st.binary(max_size=9), st.none() | st.binary(max_size=255)),
)
def test_no_announcement_breaks_the_reader(
    addresses: list[str], port: int | None, txt: dict[bytes, Any]
) -> None:
    for entries in (txt, {**TXT, **txt}, {**txt, **TXT}):
        relay = read_announcement(addresses, port, entries)
        if relay is not None:
            host = re.sub(r"^ws://\[?|\]?(:\d+)?/.*$", "", relay.invite.url)
            assert ipaddress.ip_address(host).is_private and not ipaddress.ip_address(host).is_loopback
            assert relay.invite.url.endswith(SOCKET_PATH)
            assert relay.invite.token is None


def test_all_nodes_agree_on_the_order() -> None:
    relays = [
        FoundRelay(
            invite=Invite(url=f"ws://10.0.0.{n}:1/v1/ws", swarm="shoal", relay=f"r{n:03}"),
            private=False,
            since_ms=n,
        )
        for n in range(1, 100)
    ]
    assert order([*reversed(relays), *relays]) == relays[:MAX_FOUND]
    together = [msgspec.structs.replace(one, since_ms=7) for one in relays[:9]]
    assert order(reversed(together)) == together


def test_the_address_for_others_is_this_computer_s() -> None:
    address = lan_address()
    if address is None:
        pytest.skip("this computer has no network")
    with socket.socket() as own:
        own.bind((address, 0))


def test_only_who_looks_for_a_network_loads_what_it_takes() -> None:
    look = "import sys, app.cli.run, app.cli.relay, app.node.node; print('zeroconf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.skipif(shutil.which("unshare") is None, reason="takes a network away, which Linux lets us do")
def test_without_a_network_one_sentence_says_so() -> None:
    look = (
        "import asyncio\nfrom app.swarm.invite.discovery import DiscoveryError, find, lan_address\n"
        "try:\n    print(lan_address(), asyncio.run(find(0.5)))\n"
        "except DiscoveryError as error:\n    print(lan_address(), error)\n"
    )
    alone = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", look]
    done = subprocess.run(alone, cwd=ROOT, capture_output=True, text=True, timeout=120)
    if "unshare" in done.stderr:
        pytest.skip(f"no network namespaces here: {done.stderr.strip()}")
    assert done.stdout.startswith("None Relays on this network can be neither found nor announced"), done.stderr
    assert done.stdout.strip().endswith("use an invite link instead.")
