"""The address of a swarm: a URL that a person enters, or an invite link with everything needed to join.

    shoal://join/ws/192.168.1.20:8777?swarm=shoal&relay=192.168.1.20:8777
    shoal://join/wss/relay.example?swarm=shoal&relay=relay.example&token=t1.1800000000.any.Jx0..

For a relay at an IPv4 address, as in a classroom, six words that can be read aloud are enough: 49 bits of
address, port and room, and 17 bits of checksum. They are not secret.

A link has scheme, host, port and path of the relay's websocket, then the ids that a client may check and the
token that it shows. All characters stand for themselves in a link, so nothing is ever percent-encoded."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from functools import cache
from hashlib import sha256
from typing import Any

import msgspec
from mnemonic import Mnemonic

from app.swarm.wire.protocol import SOCKET_PATH

PREFIX = "shoal://join/"
MAX_LINK_CHARS = 2000
"""Maximum characters of an address or a link; the longest valid one is shorter."""

_PORTS = {"ws": 80, "wss": 443}
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""Some systems interpret a host name whose last label matches this as an address."""
_PATH = re.compile(rf"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*){{0,14}}{SOCKET_PATH}")
"""A proxy may add a prefix; with another ending, the address could send requests to another program."""
_LONGEST_PATH = 200
_ADDRESS = re.compile(r"(wss?)://([^/?#]*)([^?#]*)")
_ENTRIES = {
    "swarm": (re.compile(r"[a-z0-9][a-z0-9-]{2,63}"), "swarm id"),
    "relay": (re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,127}"), "relay id"),
    "token": (re.compile(r"[A-Za-z0-9._-]{1,512}"), "token"),
    "room": (re.compile(r"class"), "kind of room"),
}


WORD_COUNT, WORD_BITS = 6, 11
"""Number of words of a spoken invite or of a private swarm, and bits per word."""
_SPOKEN_BITS, _SPOKEN_CHECK_BITS = 49, 17
_SPOKEN = b"shoal-spoken-invite-v1\0"
_BETWEEN = re.compile(r"[\s,;\u2010-\u2015-]+")


class InviteError(ValueError):
    """The text is neither an address nor an invite; the message says what is wrong and what to do."""


class Invite(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A relay to join. `url` is its websocket address; the other fields are None if not given.

    `swarm` and `relay` are the ids that its `hello` must have. `token` admits newcomers: either a
    token that its operator signed, or a private swarm's access key (`app.swarm.invite.private`), which is a
    secret and never sent. Raises InviteError for an invalid field, so every Invite has a link."""

    url: str
    swarm: str | None = None
    relay: str | None = None
    token: str | None = None
    room: str | None = None
    """"class": anyone who joins with this invite agrees that a teacher sees the model's skills and may pause
    it."""

    def __post_init__(self) -> None:
        if _address(self.url) != self.url:
            raise InviteError(f"The address isn't written in its one way: write {_address(self.url)}.")
        for name, (pattern, what) in _ENTRIES.items():
            value = getattr(self, name)
            if value is not None and not pattern.fullmatch(value):
                raise InviteError(f"The {what} of this invite has characters or a length that none has.")

    def link(self) -> str:
        """The invite as a link. If it contains a token, anyone who reads it can join."""
        scheme, _, place = self.url.partition("://")
        host, _, path = place.partition("/")
        entries = "&".join(f"{name}={value}" for name in _ENTRIES if (value := getattr(self, name)) is not None)
        shown = host if f"/{path}" == SOCKET_PATH else place
        return f"{PREFIX}{scheme}/{shown}" + (f"?{entries}" if entries else "")

    def words(self) -> str | None:
        """Six words for this invite; None if it has a token, or the relay has a host name, an IPv6 address,
        another path or encryption."""
        found = re.fullmatch(rf"ws://([0-9.]+)(?::([0-9]+))?{SOCKET_PATH}", self.url)
        if found is None or self.token is not None:
            return None
        address, port = int(ipaddress.IPv4Address(found[1])), int(found[2] or _PORTS["ws"])
        number = (self.room is not None) << 48 | address << 16 | port
        return words_from_number(number << _SPOKEN_CHECK_BITS | _spoken_check(number))

    def __repr__(self) -> str:
        token = "" if self.token is None else ", with a token"
        return f"<Invite {self.url}, swarm {self.swarm}, relay {self.relay}{token}>"

    __str__ = __repr__

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("", repr(self))]


def invite_from_text(text: str) -> Invite:
    """Parses what a person entered: an invite link, six words, a ws:// or wss:// address, or HOST:PORT. Raises
    InviteError."""
    if (words := try_split_words(text)) is not None:
        return _said(words)
    text = _plain(text)
    scheme, colons, _ = text.partition("://")
    if not colons:
        if re.match(r"(shoal|wss?|https?):", text, re.IGNORECASE):
            raise InviteError("Two slashes are missing after the first colon: copy the address once more.")
        return Invite(url=_bare(text))
    match scheme.lower():
        case "shoal":
            return parse(text)
        case "ws" | "wss":
            return Invite(url=_address(text))
        case "http" | "https":
            raise InviteError("That is a web page: a relay's address begins with ws:// or wss://.")
    raise InviteError(
        "That isn't an invite: it begins with shoal://join/. A relay's address begins with ws:// or wss://."
    )


def try_split_words(text: str) -> list[str] | None:
    """Splits text that looks like six words, even if there are more or fewer; None for a link or an address."""
    words = split_words(text[: MAX_LINK_CHARS + 1])
    return words if len(words) > 3 and len(text) <= MAX_LINK_CHARS and all(map(str.isalpha, words)) else None


def split_words(text: str) -> list[str]:
    """Splits text into words as phones and input methods write them: any case, full-width letters, any hyphen
    between them. Returns them in lower case.

    >>> split_words("Able\u2013BRAVE, \uff43\uff4f\uff44")
    ['able', 'brave', 'cod']
    """
    return _BETWEEN.sub(" ", unicodedata.normalize("NFKC", text).casefold()).split()


def words_from_number(number: int) -> str:
    """Encodes a 66-bit number as six words, separated by blanks."""
    places = [number >> WORD_BITS * place & (1 << WORD_BITS) - 1 for place in reversed(range(WORD_COUNT))]
    return " ".join(_list()[place] for place in places)


def number_from_words(words: list[str]) -> int:
    """Decodes six words to their number. Raises InviteError for another count and for unknown words."""
    if len(words) != WORD_COUNT:
        raise InviteError(f"An invite or a private swarm has {WORD_COUNT} words; these are {len(words)}.")
    number = 0
    for place, word in enumerate(words, 1):
        if word not in _places():
            raise InviteError(f"Word {place} isn't in the list that codes are made of: check its spelling.")
        number = number << WORD_BITS | _places()[word]
    return number


def is_invite_number(number: int) -> bool:
    """True if the six words of this number are an invite: its check bits are right."""
    check = number & (1 << _SPOKEN_CHECK_BITS) - 1
    return check == _spoken_check(number >> _SPOKEN_CHECK_BITS)


def _said(words: list[str]) -> Invite:
    number = number_from_words(words)
    if not is_invite_number(number):
        raise InviteError(
            "These six words aren't an invite: one is wrong, or two are swapped. The words of a private swarm "
            "go with --private."
        )
    said = number >> _SPOKEN_CHECK_BITS
    host, port = ipaddress.IPv4Address(said >> 16 & 0xFFFFFFFF), said & 0xFFFF
    return Invite(url=_address(f"ws://{host}:{port}"), room="class" if said >> 48 else None)


def _spoken_check(number: int) -> int:
    digest = sha256(_SPOKEN + number.to_bytes(_SPOKEN_BITS // 8 + 1, "big")).digest()
    return int.from_bytes(digest[:3], "big") >> (24 - _SPOKEN_CHECK_BITS)


@cache
def _list() -> tuple[str, ...]:
    return tuple(Mnemonic("english").wordlist)


@cache
def _places() -> dict[str, int]:
    return {word: place for place, word in enumerate(_list())}


def parse(link: str) -> Invite:
    """Parses a `shoal://join/` link. Raises InviteError."""
    link = _plain(link)
    if link[: len(PREFIX)].lower() != PREFIX:
        raise InviteError(f"That isn't an invite: it begins with {PREFIX}.")
    if "#" in link:
        raise InviteError("An invite has no # in it: copy it once more.")
    if "%" in link:
        raise InviteError("An invite has no % in it: copy the link itself, not one from a page's address.")
    place, question, query = link[len(PREFIX) :].partition("?")
    scheme, _, rest = place.partition("/")
    scheme = scheme.lower()
    if scheme not in _PORTS:
        raise InviteError("After shoal://join/ an invite says ws/ or wss/: ask for a new link.")
    entries: dict[str, str] = {}
    for entry in query.split("&") if question else ():
        name, equals, value = entry.partition("=")
        if name not in _ENTRIES or not equals:
            raise InviteError(
                "The invite has an entry that this version doesn't know: update Shoal, or ask for a new link."
            )
        if name in entries:
            raise InviteError(f"The invite names its {_ENTRIES[name][1]} twice: ask for a new link.")
        entries[name] = value
    return Invite(url=_address(f"{scheme}://{rest}"), **entries)


def _plain(text: str) -> str:
    """Strips surrounding blanks. Raises InviteError unless the rest is visible ASCII of limited length."""
    text = text.strip()
    if not text:
        raise InviteError("There is no address here: paste an invite or a relay's address.")
    if len(text) > MAX_LINK_CHARS:
        raise InviteError(
            f"That isn't an invite: it is longer than {MAX_LINK_CHARS:,} characters. Copy the link alone."
        )
    if re.search(r"\s", text):
        raise InviteError("That isn't an invite: it has blanks or line breaks. It begins with shoal://join/.")
    if not re.fullmatch(r"[!-~]+", text):
        raise InviteError(
            "That isn't an invite: it has other signs than plain letters and digits. Copy it again."
        )
    return text


def _bare(text: str) -> str:
    """Parses HOST:PORT: encrypted if the port is 443, otherwise unencrypted as on a local network."""
    host = text.partition("/")[0]
    if "@" in host:
        raise InviteError("A relay's address has no user name or password in it: leave out all up to the @.")
    if re.search(r":443$", host):
        return _address(f"wss://{text}")
    if not re.search(r":[0-9]+$", host) or (host.count(":") > 1 and "[" not in host):
        raise InviteError(
            "A relay's address has a host and a port, such as 192.168.1.20:8777: add what is missing."
        )
    return _address(f"ws://{text}")


def _address(url: str) -> str:
    """A relay's address in canonical form. Raises InviteError."""
    found = _ADDRESS.fullmatch(url if "://" not in url else _lower_scheme(url))
    if found is None:
        if "?" in url or "#" in url:
            raise InviteError("A relay's address has no ? or # in it: leave out what begins there.")
        raise InviteError("A relay's address begins with ws:// or wss://: copy it once more.")
    scheme, authority, path = found.groups()
    host, port = _host_and_port(authority)
    if path in ("", "/"):
        path = SOCKET_PATH
    if not _PATH.fullmatch(path) or len(path) > _LONGEST_PATH:
        raise InviteError(f"The path of the relay's address is no path of a relay: it ends in {SOCKET_PATH}.")
    return f"{scheme}://{host}{'' if port in (None, _PORTS[scheme]) else f':{port}'}{path}"


def _lower_scheme(url: str) -> str:
    scheme, colons, rest = url.partition("://")
    return scheme.lower() + colons + rest


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise InviteError("A relay's address has no user name or password in it: leave out all up to the @.")
    found = re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]*))?", authority)
    if found is None:
        raise InviteError("Host and port of the relay's address can't be told apart: write HOST:PORT.")
    host, port = found.groups()
    if port is not None and not (re.fullmatch(r"[1-9][0-9]{0,4}", port) and int(port) < 65_536):
        raise InviteError("The port of the relay's address is no number from 1 to 65535: correct it.")
    return _host(host.lower()), None if port is None else int(port)


def _host(host: str) -> str:
    if not host:
        raise InviteError("The relay's address has no host: copy the whole address.")
    if host.startswith("["):
        try:
            six = ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise InviteError("What stands in brackets is no IPv6 address: correct it.") from None
        if six.scope_id is not None:
            raise InviteError(
                "An IPv6 address with a % holds on one computer only: use another of its addresses."
            )
        _reachable(six)
        return f"[{six}]"
    labels = host.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        try:
            four = ipaddress.IPv4Address(host)
        except ValueError:
            raise InviteError("The host looks like an IPv4 address and is none: correct it.") from None
        _reachable(four)
        return str(four)
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InviteError("The host of the relay's address is no host name: correct it.")
    return host


def _reachable(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if address.is_unspecified:
        raise InviteError(
            f"At {address} a relay listens, but no one can reach it there: use its computer's address."
        )
    if address.is_multicast:
        raise InviteError(f"{address} is no single computer's address: use the relay's own.")
