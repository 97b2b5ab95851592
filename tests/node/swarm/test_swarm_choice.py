"""Where a swarm comes from when nothing was named: the decision as a pure function, and two nodes that find
each other on this computer's network for real."""

from __future__ import annotations

import asyncio
import json
import secrets
from pathlib import Path

import msgspec
import pytest

from app.node.swarm import choice as swarm_choice
from app.node.swarm.choice import choose, find_or_host, last_relay, older_relay, on_a_network
from app.swarm.client.places import KnownRelays, forget_classes
from app.swarm.invite.discovery import Advert, DiscoveryError, FoundRelay, advertise, find, lan_address
from app.swarm.invite.invite import Invite, invite_from_text
from app.swarm.invite.private import PrivateSwarm
from app.swarm.wire.signin import relay_id

CODE = PrivateSwarm(bytes(32))
KEPT = relay_id(bytes(32))
WORLD = Invite(url="wss://relay.example/v1/ws", swarm="shoal", relay="relay.example")
HOME = Invite(url="ws://192.168.1.20:8777/v1/ws", swarm="shoal", relay="relay-b")
MOVED = Invite(url="ws://192.168.1.77:8777/v1/ws", swarm="shoal", relay="relay-b")
OTHER = Invite(url="ws://192.168.1.30:8777/v1/ws", swarm="shoal", relay="relay-a")
SECRET = Invite(url="ws://192.168.1.40:8777/v1/ws", swarm=CODE.swarm, relay="relay-c")


def seen(*invites: Invite, private: bool = False) -> list[FoundRelay]:
    """The first is the oldest."""
    return [FoundRelay(invite=one, private=private, since_ms=age) for age, one in enumerate(invites)]


def test_what_was_named_comes_first() -> None:
    choice = choose(named=[HOME, WORLD], remembered=OTHER, reached=True, found=seen(OTHER))
    assert (choice.source, choice.invites) == ("named", (HOME, WORLD))


def test_then_the_relay_of_last_time_if_it_can_be_there() -> None:
    assert choose(remembered=HOME, reached=True, found=seen(OTHER)).invites == (HOME,)
    assert choose(remembered=WORLD, reached=False, found=seen(OTHER)).invites == (WORLD,)
    moved = choose(remembered=HOME, reached=False, found=seen(OTHER, MOVED))
    assert (moved.source, moved.invites) == ("remembered", (MOVED, HOME))
    elsewhere = choose(remembered=HOME, reached=True, found=seen(MOVED))
    assert (elsewhere.source, elsewhere.invites) == ("remembered", (HOME,)), "it is where it was"


def test_a_pupil_waits_for_the_class_until_it_is_left(tmp_path: Path) -> None:
    pupil, moved = (msgspec.structs.replace(one, room="class") for one in (HOME, MOVED))
    assert choose(remembered=pupil, reached=False, found=seen(OTHER)).invites == (pupil,)
    assert choose(remembered=pupil, reached=False, found=seen(MOVED)).invites == (moved, pupil)
    known = KnownRelays(tmp_path / "relays.json")
    known.remember(OTHER.url, KEPT, "shoal")
    known.remember(HOME.url, KEPT, "shoal", obeys=True)
    assert last_relay(tmp_path) == msgspec.structs.replace(pupil, relay=KEPT)
    forget_classes(tmp_path)
    assert last_relay(tmp_path) == msgspec.structs.replace(OTHER, relay=KEPT)


def test_then_one_on_this_network_then_one_of_our_own() -> None:
    gone = choose(remembered=HOME, reached=False, found=seen(OTHER))
    assert (gone.source, gone.invites) == ("network", (OTHER,))
    assert choose(found=seen(OTHER, HOME)).invites == (OTHER,)
    assert choose(remembered=HOME).source == choose().source == "host"


def test_closed_relays_are_for_those_who_hold_the_words_and_open_ones_for_the_others() -> None:
    closed, open_ = seen(SECRET, private=True), seen(OTHER)
    assert choose(found=closed).source == "host"
    assert choose(found=[*closed, *open_]).invites == (OTHER,)
    inside = choose(found=[*open_, *closed], private=CODE, remembered=WORLD)
    assert inside.source == "network"
    assert inside.invites == (Invite(url=SECRET.url, swarm=CODE.swarm, relay="relay-c", token=CODE.token),)
    assert choose(found=open_, private=CODE, remembered=HOME, reached=True).source == "host"
    known = choose(private=CODE, remembered=SECRET, reached=True)
    assert known.source == "remembered" and known.invites[0].token == CODE.token


def test_who_follows_an_announcement_is_told_that_anybody_can_make_one() -> None:
    assert swarm_choice._found(OTHER, None).endswith("only an invite tells whose it is.")
    assert "invite" not in swarm_choice._found(SECRET, CODE), "whoever does not know the words cannot be joined"


def test_of_several_hosts_all_but_one_give_way() -> None:
    for one, other in ((HOME, OTHER), (OTHER, HOME)):
        assert older_relay(one, seen(SECRET, other, one)) == other
        assert older_relay(other, seen(SECRET, other, one)) is None
    at_once = [msgspec.structs.replace(one, since_ms=5) for one in seen(HOME, OTHER)]
    assert (older_relay(HOME, at_once), older_relay(OTHER, at_once)) == (OTHER, None)
    assert older_relay(HOME, seen(OTHER)) is None
    assert older_relay(HOME, []) is None


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("192.168.1.20:8777", True), ("[fd00::1]:8777", True), ("127.0.0.1:1", True), ("localhost:1", True),
        ("host.local:1", True), ("wss://relay.example", False), ("8.8.8.8:1", False), ("[2600::1]:1", False),
    ],
)  # fmt: skip
def test_what_ends_with_the_network(address: str, local: bool) -> None:
    assert on_a_network(invite_from_text(address)) is local


def test_a_home_does_not_remember_itself(tmp_path: Path) -> None:
    assert last_relay(tmp_path) is None
    KnownRelays(tmp_path / "relays.json").remember(HOME.url, "relay-b", "shoal")
    assert last_relay(tmp_path) is None, "an id of version 1 proves nothing"
    KnownRelays(tmp_path / "relays.json").remember(HOME.url, KEPT, "shoal")
    assert last_relay(tmp_path) == msgspec.structs.replace(HOME, relay=KEPT)
    (tmp_path / "relay" / "shoal").mkdir(parents=True)
    (tmp_path / "relay" / "shoal" / "hosted.json").write_text(json.dumps({"port": 8777, "relay": KEPT}))
    assert last_relay(tmp_path) is None


@pytest.fixture(scope="module")
def network() -> None:
    """Skips, visibly, where announcements do not come back to this computer."""
    address, relay = lan_address() or "192.168.77.7", f"test-{secrets.token_hex(4)}"

    async def heard() -> bool:
        async with advertise(Advert(swarm=relay, relay=relay, port=9, since_ms=1, private=True), [address]):
            for _ in range(3):
                if any(one.invite.relay == relay for one in await find()):
                    return True
        return False

    try:
        if asyncio.run(heard()):
            return
    except DiscoveryError as error:
        pytest.skip(f"no multicast on this computer: {error}")
    pytest.skip("multicast does not come back to this computer")


def test_the_first_node_hosts_and_the_second_finds_it(tmp_path: Path, network: None) -> None:
    private, said = PrivateSwarm(secrets.token_bytes(32)), ([], [])  # type: tuple[PrivateSwarm, tuple[list[str], list[str]]]

    async def story() -> None:
        async with find_or_host(tmp_path / "a", private=private, say=said[0].append)() as first:
            assert "Shoal started one" in said[0][-1] and "unencrypted" in said[0][-1]
            async with find_or_host(tmp_path / "b", private=private, say=said[1].append)() as second:
                assert "found on this network" in said[1][-1]
                assert second[0].relay == first[0].relay
                assert second[0].token == private.token

    asyncio.run(story())


def test_a_forged_announcement_takes_nobody_away_from_a_relay_that_is_where_it_was(
    tmp_path: Path, network: None
) -> None:
    relay = relay_id(secrets.token_bytes(32))

    async def story() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/ws"
        KnownRelays(tmp_path / "relays.json").remember(url, relay, "shoal")
        forged = Advert(swarm="shoal", relay=relay, port=9, since_ms=0)
        async with (
            server,
            advertise(forged, [lan_address() or "192.168.77.7"]),
            find_or_host(tmp_path, say=lambda _: None, host=False)() as invites,
        ):
            assert invites == (Invite(url=url, swarm="shoal", relay=relay),)

    asyncio.run(story())


@pytest.mark.long
def test_nodes_that_start_together_end_up_in_one_swarm(tmp_path: Path, network: None) -> None:
    private = PrivateSwarm(secrets.token_bytes(32))

    async def live(name: str, others: asyncio.Barrier) -> str:
        async with find_or_host(tmp_path / name, private=private, say=lambda _: None)() as invites:
            await others.wait()
            return invites[0].relay or ""

    async def story() -> None:
        others = asyncio.Barrier(2)
        relays = await asyncio.gather(live("a", others), live("b", others))
        assert len(set(relays)) == 1

    asyncio.run(story())
