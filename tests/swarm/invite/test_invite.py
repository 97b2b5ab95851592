from __future__ import annotations

import re
import string

import msgspec
import pytest
import rich.pretty
from hypothesis import given
from hypothesis import strategies as st

from app.swarm.invite.invite import MAX_LINK_CHARS, PREFIX, Invite, InviteError, invite_from_text, parse

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABEL, min_size=1, max_size=4).flatmap(
    lambda labels: st.from_regex(r"[a-z][a-z0-9]{0,10}", fullmatch=True).map(
        lambda top: ".".join([*labels, top])
    )
)
V4 = st.ip_addresses(v=4).filter(lambda one: not (one.is_multicast or one.is_unspecified)).map(str)
V6 = (
    st.ip_addresses(v=6)
    .filter(lambda one: not (one.is_multicast or one.is_unspecified))
    .map(lambda one: f"[{one}]")
)
PATHS = st.just("/v1/ws") | st.from_regex(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,8}){0,5}/v1/ws", fullmatch=True)


@st.composite
def invites(draw: st.DrawFn) -> Invite:
    scheme, port = draw(st.sampled_from(("ws", "wss"))), draw(st.none() | st.integers(1, 65_535))
    if port in (None, {"ws": 80, "wss": 443}[scheme]):
        port = None
    host, path = draw(NAMES | V4 | V6), draw(PATHS)
    return Invite(
        url=f"{scheme}://{host}{'' if port is None else f':{port}'}{path}",
        swarm=draw(st.none() | st.from_regex(r"[a-z0-9][a-z0-9-]{2,63}", fullmatch=True)),
        relay=draw(st.none() | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,127}", fullmatch=True)),
        token=draw(st.none() | st.from_regex(r"[A-Za-z0-9._-]{1,512}", fullmatch=True)),
    )


@given(invites())
def test_a_link_says_the_whole_invite(invite: Invite) -> None:
    link = invite.link()
    assert link.startswith(PREFIX) and len(link) <= MAX_LINK_CHARS
    assert re.fullmatch(
        r"[A-Za-z0-9._~:/?&=\[\]-]+", link
    )  # nothing that a chat or a shell would touch but ? and &
    assert parse(link) == invite_from_text(f"  {link}\n") == invite
    assert invite_from_text(invite.url) == Invite(url=invite.url)


@given(V4, st.integers(1, 65_535), st.booleans())
def test_six_words_say_an_address_and_a_class(host: str, port: int, room: bool) -> None:
    invite = invite_from_text(f"{host}:{port}" if port != 443 else f"ws://{host}:443")
    invite = msgspec.structs.replace(invite, room="class" if room else None)
    words = invite.words()
    assert words is not None and len(words.split()) == 6
    assert invite_from_text(f" {words.replace(' ', ', ').title()}\n") == invite


def test_a_wrong_word_leads_nowhere() -> None:
    words = str(Invite(url="ws://192.168.1.20:8777/v1/ws", room="class").words()).split()
    for place, wrong, said in (
        (2, "flie", "Word 3"),
        (2, "zoo", "one is wrong"),
        (4, words[5], "one is wrong"),
    ):
        with pytest.raises(InviteError, match=said):
            invite_from_text(" ".join([*words[:place], wrong, *words[place + 1 :]]))
    with pytest.raises(InviteError, match="these are 5"):
        invite_from_text(" ".join(words[:5]))


@pytest.mark.parametrize(
    "link",
    [
        "shoal://join/wss/192.168.1.20:8777",
        "shoal://join/ws/relay.example:8777",
        "shoal://join/ws/[::1]:8777",
        "shoal://join/ws/10.0.0.1:8777/school/v1/ws",
        "shoal://join/ws/10.0.0.1:8777?token=t1.5.any.0",
    ],
)
def test_what_six_words_cannot_say_has_none(link: str) -> None:
    assert parse(link).words() is None


@given(st.text(max_size=80) | st.text(alphabet=string.printable, max_size=80))
def test_any_other_text_is_refused_with_a_sentence(text: str) -> None:
    for read, entered in (
        (invite_from_text, text),
        (parse, text),
        (parse, PREFIX + text),
        (invite_from_text, f"ws://{text}"),
    ):
        try:
            invite = read(entered)
        except InviteError as error:
            sentence = str(error)
            assert (
                sentence.endswith(".") and ": " in sentence and sentence.isprintable() and len(sentence) < 160
            )
        else:
            assert parse(invite.link()) == invite


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:8777", "ws://127.0.0.1:8777/v1/ws"),
        ("relay.example:443", "wss://relay.example/v1/ws"),
        ("[2001:DB8::1]:8777", "ws://[2001:db8::1]:8777/v1/ws"),
        ("relay.example:8777/team/v1/ws", "ws://relay.example:8777/team/v1/ws"),
        ("WSS://Relay.Example:443/", "wss://relay.example/v1/ws"),
        ("ws://relay.example:443", "ws://relay.example:443/v1/ws"),
        ("SHOAL://join/WS/h:1", "ws://h:1/v1/ws"),
    ],
)
def test_addresses_have_one_way_of_writing(text: str, url: str) -> None:
    assert invite_from_text(text).url == url
    assert invite_from_text(url).url == url


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no address"),
        ("relay.example", "a port"),
        ("http://relay.example:8777", "web page"),
        ("https://relay.example", "web page"),
        ("javascript:alert(1)", "a port"),
        ("file:///etc/passwd", "address begins with ws://"),
        ("ssh://host:22", "address begins with ws://"),
        ("ws:/host:1", "slashes"),
        ("shoal:join/ws/host", "slashes"),
        ("ws://user:secret@host:1", "password"),
        ("user@host:1", "password"),
        ("shoal://join/ws/user@host:1", "password"),
        ("ws://host:0", "port"),
        ("ws://host:65536", "port"),
        ("ws://host:08", "port"),
        ("ws://host:", "port"),
        ("ws://host:8777:1", "told apart"),
        ("ws://", "no host"),
        ("ws://:8777", "no host"),
        ("ws://1.2.3:1", "IPv4"),
        ("ws://256.1.1.1:1", "IPv4"),
        ("ws://0x7f000001:1", "IPv4"),
        ("ws://2130706433:1", "IPv4"),
        ("ws://[1::2::3]:1", "IPv6"),
        ("ws://[fe80::1%eth0]:1", "one computer"),
        ("ws://0.0.0.0:8777", "no one can reach"),
        ("ws://[::]:8777", "no one can reach"),
        ("ws://224.0.0.251:8777", "no single"),
        ("ws://-host:1", "host name"),
        ("ws://ho_st:1", "host name"),
        ("ws://host.:1", "host name"),
        (f"ws://{'a' * 64}.example:1", "host name"),
        ("ws://host\\@evil:1", "password"),
        ("ws://host\\evil:1", "host name"),
        ("ws://host/../admin", "path"),
        ("ws://host/a//b", "path"),
        ("ws://127.0.0.1:8080/api/delete", "path"),
        ("shoal://join/ws/192.168.1.1/reboot", "path"),
        ("ws://host/v1/ws/more", "path"),
        ("ws://host/%2e%2e", "path"),
        (f"ws://host/{'a' * 201}", "path"),
        ("ws://host/ws?token=x", "no ?"),
        ("ws://host#x", "no ?"),
        ("ws://ho\nst:1", "blanks"),
        ("ws://host:1/v1/ws ws://other:1", "blanks"),
        ("ws://ho\0st:1", "plain letters"),
        ("ws://ho\x1b[31mst:1", "plain letters"),
        ("ws://host\u202e:1", "plain letters"),
        ("ws://exаmple.org:1", "plain letters"),
        ("ws://" + "a" * MAX_LINK_CHARS, "longer"),
        ("shoal://evil/ws/host:1", "begins with shoal://join/"),
        ("shoal://join/", "ws/ or wss/"),
        ("shoal://join/http/host:1", "ws/ or wss/"),
        ("shoal://join/ws/", "no host"),
        ("shoal://join/ws/host#x", "no #"),
        ("shoal://join/ws/host?swarm=a%62c", "no %"),
        ("shoal://join/ws/host?swarm=ab", "swarm id"),
        ("shoal://join/ws/host?swarm=Shoal", "swarm id"),
        ("shoal://join/ws/host?swarm=", "swarm id"),
        ("shoal://join/ws/host?relay=-x", "relay id"),
        ("shoal://join/ws/host?token=a/b", "token"),
        (f"shoal://join/ws/host?token={'a' * 513}", "token"),
        ("shoal://join/ws/host?swarm=abc&swarm=abc", "twice"),
        ("shoal://join/ws/host?exec=rm", "doesn't know"),
        ("shoal://join/ws/host?", "doesn't know"),
        ("shoal://join/ws/host?swarm=abc&", "doesn't know"),
    ],
)  # fmt: skip
def test_every_defect_has_its_own_sentence(text: str, word: str) -> None:
    with pytest.raises(InviteError, match=re.escape(word)):
        invite_from_text(text)


def test_an_invite_made_by_hand_is_checked_as_well() -> None:
    for wrong in ("ws://HOST/v1/ws", "ws://host", "host:1", "ws://host:80/v1/ws", "http://host/v1/ws"):
        with pytest.raises(InviteError):
            Invite(url=wrong)
    with pytest.raises(InviteError):
        Invite(url="ws://host/v1/ws", token="a b")


def test_a_token_is_never_shown() -> None:
    invite = Invite(url="ws://host/v1/ws", token="t1.secret")
    for shown in (repr(invite), str(invite), f"{invite}", f"{[invite]}", rich.pretty.pretty_repr(invite)):
        assert "secret" not in shown and "host" in shown
    assert "t1.secret" in invite.link()


def test_ids_that_the_protocol_allows_fit_into_an_invite() -> None:
    longest = Invite(
        url=f"wss://{'.'.join(['a' * 61] * 4)}:65535/{'p' * 193}/v1/ws",
        swarm="s" * 64,
        relay="r" * 128,
        token="t" * 512,
    )
    assert parse(longest.link()) == longest
