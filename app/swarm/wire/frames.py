"""Encodes and decodes messages: frames are parsed strictly, and written no larger than the receiver accepts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from app.swarm.wire.body import Envelope, encoded, has_duplicate_key, has_unique_keys
from app.swarm.wire.limits import (
    BATCH_FRAME,
    FRAME_BYTES,
    FRAME_TYPE,
    Flaw,
    Refused,
)
from app.swarm.wire.protocol import FromClient, FromRelay, HandedOut, Info, SampleReply

_HEAD = b'{"t":"pub",'


class _Kind(msgspec.Struct):
    t: str


def _table(types: Iterable[type[msgspec.Struct]]) -> dict[str, msgspec.json.Decoder[Any]]:
    return {str(one.__struct_config__.tag): msgspec.json.Decoder(one) for one in types}


_kinds = msgspec.json.Decoder(_Kind)


_client = _table(get_args(FromClient))


_relay = _table(get_args(FromRelay))


_items = msgspec.json.Decoder(Envelope)


_infos = msgspec.json.Decoder(Info)


def from_client(frame: bytes) -> FromClient:
    """Decodes a client's frame. Raises only Refused, for anything that is not exactly valid."""
    return decode_client_frame(frame)[0]


def decode_client_frame(frame: bytes) -> tuple[FromClient, bytes]:
    """Decodes a client's frame; also returns the message in our own encoding. Raises Refused."""
    message: FromClient = _read(frame, _client, FRAME_BYTES)
    written = encoded(message)
    if written != frame and has_duplicate_key(frame):
        raise Refused(Flaw.NOT_JSON, "A key stands twice in the message.")
    return message, written


def decode_relay_frame(frame: bytes) -> FromRelay:
    """Decodes a relay's frame. Raises Refused; clients ignore a refused frame of an unknown type."""
    message: FromRelay = _read(frame, _relay, BATCH_FRAME)
    if not isinstance(message, SampleReply | HandedOut):
        _check_size(len(frame), FRAME_BYTES)
    return message


def decode_envelope(raw: bytes | msgspec.Raw) -> Envelope:
    """Decodes one envelope of a batch. Raises Refused."""
    _check_size(len(memoryview(raw)), FRAME_BYTES)
    envelope: Envelope = _decode(bytes(raw), _items)
    if not has_unique_keys(bytes(raw), envelope):
        raise Refused(Flaw.NOT_JSON, "A key stands twice in the envelope.")
    return envelope


def decode_info(document: bytes) -> Info:
    """Decodes a relay's info document. Raises Refused."""
    _check_size(len(document), FRAME_BYTES)
    read: Info = _decode(document, _infos)
    return read


def to_frame(message: FromClient | FromRelay) -> bytes:
    """Encodes a message. Raises Refused if it is larger than its receiver accepts."""
    try:
        frame = msgspec.json.encode(message)
    except UnicodeError as error:
        raise Refused(Flaw.NOT_JSON, "The message holds half of a character pair.") from error
    _check_size(len(frame), BATCH_FRAME if isinstance(message, SampleReply | HandedOut) else FRAME_BYTES)
    return frame


def envelope_of(written: bytes) -> bytes:
    """Extracts the envelope's bytes from a publish that was encoded by `to_frame` or `decode_client_frame`.

    >>> from app.swarm.wire.protocol import Pub
    >>> pub = Pub(id="0" * 64, pk="1" * 64, sig="2" * 128, body="{}")
    >>> envelope_of(to_frame(pub)) == msgspec.json.encode(pub.envelope())
    True
    """
    return b"{" + written[len(_HEAD) :]


def _read(frame: bytes, decoders: dict[str, msgspec.json.Decoder[Any]], limit: int) -> Any:
    _check_size(len(frame), limit)
    first = FRAME_TYPE.match(frame)  # then it is read only once
    decoder = decoders.get(first[1].decode()) if first else None
    if decoder is None:
        kind: _Kind = _decode(frame, _kinds)
        decoder = decoders.get(kind.t)
    if decoder is None:
        raise Refused(Flaw.UNKNOWN_TYPE, "There is no message of this type here.")
    return _decode(frame, decoder)


def _decode(raw: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise Refused(Flaw.WRONG_SHAPE, f"The message has another shape: {error}.") from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refused(Flaw.NOT_JSON, "The message is not JSON in UTF-8.") from error


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise Refused(Flaw.TOO_LARGE, f"The message is larger than {limit} bytes.")
