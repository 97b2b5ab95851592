"""An operator's commands to a running relay: ban, lift a ban, report the relay's state.

A command is a small JSON text whose exact bytes are signed with a key that the relay knows as an operator's. It
is sent to the relay's HTTP port, so it works alike for a relay on this computer, in a container and behind a
proxy. It contains the relay's id, a time and a nonce: it is valid for one relay, for a minute, once."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Annotated

import msgspec

from app.common import signing
from app.relay.origin import network, proxies
from app.relay.standing import Source
from app.swarm.wire.body import Hex32, Hex64
from app.swarm.wire.limits import Count
from app.swarm.wire.protocol import RelayId

PATH = "/v1/operator"
MAX_ORDER_BYTES = 8 * 1024
"""Maximum size of a signed command in bytes."""
ORDER_VALID_S = 60
"""A command is valid from this many seconds before its time to as many after it."""
LONGEST_BAN_S = 10 * 365 * 86_400  # ten years
_DOMAIN = b"shoal-operator-v1\0"
_ORDERS = 10_000  # nonces remembered for ORDER_VALID_S; further orders are refused

Words = Annotated[str, msgspec.Meta(max_length=200)]
Target = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
"""A public key in hex, an address or a network."""


class _Act(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do"):
    pass


class BanOrder(_Act, frozen=True, kw_only=True, tag="ban"):
    """Bans a key or an address. With `shadow`, its publisher is told that its groups are accepted, but nobody
    receives them."""

    target: Target
    for_s: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_BAN_S)]
    reason: Words = ""
    shadow: bool = False


class Unban(_Act, frozen=True, kw_only=True, tag="unban"):
    target: Target


class BansOrder(_Act, frozen=True, kw_only=True, tag="bans"):
    """Requests the list of bans."""


class StatusOrder(_Act, frozen=True, kw_only=True, tag="status"):
    """Requests the relay's state and the keys that publish most."""


Act = BanOrder | Unban | BansOrder | StatusOrder


class OperatorOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    relay: RelayId
    time_ms: Count
    nonce: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]
    act: Act


class SignedOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command as it is sent: its text and the signature over exactly this text."""

    order: str
    pk: Hex32
    sig: Hex64


class Banned(msgspec.Struct, frozen=True, kw_only=True):
    """A ban in force; `until` in Unix seconds."""

    target: str
    until: float
    reason: str
    by: str
    shadow: bool


class TopPublisher(msgspec.Struct, frozen=True, kw_only=True):
    """A key with many groups in the window, its estimated error rate (0 to 1) and its number of groups found
    honest."""

    key: str
    name: str
    groups: int
    error: float
    honest: int
    address: str = ""


class RelayStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The relay's answer to a StatusOrder."""

    relay: str
    swarm: str
    software: str
    uptime_s: float
    peers: int
    connections: int
    window: int
    stored: int
    answers: dict[str, int]
    checks: dict[str, int] | None
    ended: dict[str, int]
    bans: int
    ready: bool
    publishers: tuple[TopPublisher, ...]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The relay's answer to a command: whether it was carried out, a sentence for the operator, and the
    requested data."""

    ok: bool
    sentence: str = ""
    bans: tuple[Banned, ...] = ()
    status: RelayStatus | None = None


class Rejected(Exception):
    """A command was refused; the message is a sentence for the operator."""


_signed = msgspec.json.Decoder(SignedOrder)
_orders = msgspec.json.Decoder(OperatorOrder)
reply_decoder = msgspec.json.Decoder(Reply)


def encode_order(seed: bytes, relay: str, act: Act, now_ms: int) -> bytes:
    """Encodes and signs a command; returns the bytes to send."""
    text = msgspec.json.encode(OperatorOrder(relay=relay, time_ms=now_ms, nonce=secrets.token_hex(16), act=act))
    return msgspec.json.encode(
        SignedOrder(
            order=text.decode(),
            pk=signing.public_key(seed).hex(),
            sig=signing.sign(seed, _DOMAIN + text).hex(),
        )
    )


class OrderChecker:
    """Verifies commands. Keeps the operators' keys and the nonces of commands that are still valid. Refuses
    commands from before the relay's start, so the nonces need not survive a restart."""

    def __init__(self, operators: frozenset[bytes], relay: str, started_ms: int) -> None:
        self.operators = operators
        self._relay = relay
        self._started_ms = started_ms
        self._seen: OrderedDict[str, int] = OrderedDict()

    def read(self, content: bytes, now_ms: int) -> Act:
        """Verifies and decodes a signed command. Raises Rejected."""
        try:
            signed = _signed.decode(content)
            text = signed.order.encode()
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise Rejected("This is no signed order.") from error
        key = bytes.fromhex(signed.pk)
        if key not in self.operators:
            raise Rejected("This key is no operator's here: name it with --operator when the relay is started.")
        if not signing.verifies(key, _DOMAIN + text, bytes.fromhex(signed.sig)):
            raise Rejected("The signature of the order does not hold.")
        try:
            order = _orders.decode(text)
        except msgspec.MsgspecError as error:
            raise Rejected(f"The relay does not know such an order: {error}.") from error
        if order.relay != self._relay:
            raise Rejected(f"The order is for the relay {order.relay}, and this is {self._relay}.")
        if abs(order.time_ms - now_ms) > ORDER_VALID_S * 1000:
            raise Rejected("The order is not from this minute: is the clock right?")
        if order.time_ms < self._started_ms:  # it may have been carried out before the relay started again
            raise Rejected("The order is from before this relay started: give it again.")
        oldest = now_ms - 2 * ORDER_VALID_S * 1000
        while self._seen and next(iter(self._seen.values())) < oldest:
            self._seen.popitem(last=False)
        if order.nonce in self._seen or len(self._seen) >= _ORDERS:
            raise Rejected("The relay has had this order already.")
        self._seen[order.nonce] = now_ms
        return order.act


def parse_source(target: str) -> Source:
    """Parses the target of a ban. Returns the bytes of a hex key, or the network by which quotas count an
    address. Raises Rejected, also for a wider network."""
    text = target.strip().lower()
    if len(text) == 64 and not set(text) - set("0123456789abcdef"):
        return bytes.fromhex(text)
    try:
        (net,) = proxies((text,))
    except ValueError as error:
        raise Rejected(f"{target[:64]!r} is no key of 64 hex digits, no address and no network.") from error
    if net.is_loopback:
        raise Rejected("This computer itself cannot be banned: ban the key.")
    counted = network(net.network_address)
    if net.prefixlen < int(counted.partition("/")[2]):
        raise Rejected(f"{net} is wider than relays count: ban {counted} and the like one by one.")
    return counted


def source_text(source: Source) -> str:
    return source.hex() if isinstance(source, bytes) else source
