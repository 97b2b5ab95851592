"""The wire format of a group: the signed body, and the envelope that carries it.

A body is signed as exact bytes, so no canonical form of JSON is needed:

    id  = SHA-256("sapo-rollout-v2" 0x00 swarm 0x00 pk body)
    sig = Ed25519(id)

The author's key is part of the id: no one can sign another's body and publish it first. Receivers hash the body
as received, and parse it only after verifying its signature."""

from __future__ import annotations

import binascii
import json
import re
import zlib
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec

from app.common import signing
from app.sapo.groups import HUMAN_MODEL, GroupRecord, informative, is_single_right_answer
from app.sapo.questions import MAX_INDEX, MAX_SEED, Coordinates
from app.sapo.sets.question_set import is_owners_set
from app.swarm.wire.limits import (
    MAX_AHEAD_S,
    MAX_BODY_BYTES,
    MAX_COMPLETION_CHARS,
    MAX_COMPLETIONS,
    SAFE_INTEGER,
    STALE_AFTER_S,
    Flaw,
    Refused,
)

encoded = msgspec.json.Encoder().encode


def has_unique_keys(raw: bytes, read: Any) -> bool:
    r"""True if no key occurs twice in `raw`. JSON readers differ in which of two equal keys they take, so a
    relay and a node could read different texts. `raw` was parsed as `read` and is not deeply nested; it is
    parsed again only if our encoding of `read` differs from it.

    >>> texts = b'{"a":1,"b":{"a":1}}', b'{"a":1,"\\u0061":2}', b'[{"a":1, "a" :1}]'
    >>> [has_unique_keys(raw, msgspec.json.decode(raw)) for raw in texts]
    [True, False, False]
    """
    return encoded(read) == raw or not has_duplicate_key(raw)


def has_duplicate_key(raw: bytes) -> bool:
    """True if a key occurs twice in an object of this JSON."""
    try:
        json.loads(raw, object_pairs_hook=_different)
    except _TwiceError:
        return True
    return False


class _TwiceError(Exception):
    pass


def _different(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _TwiceError


_DOMAIN = b"sapo-rollout-v2\0"

_MODEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?"
LOCAL_MODEL = "local"
"""The published name of every model without a public name."""

Hex32 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Hex64 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{128}\Z")]
SwarmId = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9][a-z0-9-]{2,63}\Z")]
ModelName = Annotated[str, msgspec.Meta(pattern=rf"\A{_MODEL}\Z")]
FamilyName = Annotated[str, msgspec.Meta(pattern=r"\A[a-z][a-z0-9_]{0,47}\Z")]
Encoding = Literal["plain", "zlib"]


class WireTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question's coordinates on the wire. Unlike in `Coordinates`, no field has a default: a missing version
    would become the reader's own. Whether the question exists is checked by `questions.generate`."""

    family: FamilyName
    level: Annotated[int, msgspec.Meta(ge=0, le=63)]
    seed: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEED)]
    index: Annotated[int, msgspec.Meta(ge=0, le=MAX_INDEX)]
    version: Annotated[str, msgspec.Meta(pattern=r"\A[0-9]+(\.[0-9]+){1,3}/[0-9]{1,6}\Z", max_length=32)]

    @classmethod
    def of(cls, where: Coordinates) -> WireTask:
        """Converts coordinates. Raises ValueError for a question of the owner's own sets, which stay on this
        computer."""
        if is_owners_set(where.family):
            raise ValueError("A question of the owner's own has no place in the swarm.")
        return cls(
            family=where.family, level=where.level, seed=where.seed, index=where.index, version=where.version
        )

    def coordinates(self) -> Coordinates:
        return Coordinates(
            family=self.family, level=self.level, seed=self.seed, index=self.index, version=self.version
        )


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One group as its author published it. The rewards are a claim: readers score the completions
    themselves."""

    v: Literal[1] = 1
    swarm: SwarmId
    key_seq: Annotated[int, msgspec.Meta(ge=1, le=SAFE_INTEGER)]
    created_ms: Annotated[int, msgspec.Meta(ge=0, le=SAFE_INTEGER)]
    task: WireTask
    model: ModelName
    completions: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=MAX_COMPLETION_CHARS)], ...],
        msgspec.Meta(min_length=1, max_length=MAX_COMPLETIONS),
    ]
    finished: tuple[bool, ...]
    rewards: tuple[Literal[0, 1], ...]

    def __post_init__(self) -> None:
        if not len(self.completions) == len(self.finished) == len(self.rewards):
            raise ValueError("A group needs as many completions as finished flags and rewards")
        if False in self.finished and any(
            reward and not ended for reward, ended in zip(self.rewards, self.finished, strict=True)
        ):
            raise ValueError("A completion that was cut off earns no reward")
        if self.model == HUMAN_MODEL:
            if not is_single_right_answer(self.rewards):
                raise ValueError("A person's group is one right answer")
        elif not informative(self.rewards):
            raise ValueError("A group whose rewards are all equal teaches nothing and is not sent")

    @classmethod
    def of(
        cls, group: GroupRecord, rewards_G: Sequence[int], swarm: str, key_seq: int, created_ms: int
    ) -> Body:
        """Converts a group to a body, with its model's public name. Raises Refused if the group may not be
        published."""
        task = WireTask.of(group.coordinates)
        body = {
            "v": 1,
            "swarm": swarm,
            "key_seq": key_seq,
            "created_ms": created_ms,
            "task": msgspec.structs.asdict(task),
            "model": public_model_name(group.model),
            "completions": group.completions_G,
            "finished": group.finished_G,
            "rewards": tuple(rewards_G),
        }
        try:
            return msgspec.convert(body, cls)
        except msgspec.ValidationError as error:
            raise Refused(Flaw.WRONG_SHAPE, f"This group does not belong on the wire: {error}.") from error

    def group(self) -> GroupRecord:
        return GroupRecord(
            coordinates=self.task.coordinates(),
            completions_G=self.completions,
            finished_G=self.finished,
            model=self.model,
        )


class Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A body with its id, author's key and signature. `enc`: whether `body` is plain text or base64 of zlib."""

    id: Hex32
    pk: Hex32
    sig: Hex64
    body: str
    enc: Encoding = "plain"


_bodies = msgspec.json.Decoder(Body)


def public_model_name(model: str) -> str:
    """Returns a model's name for publication: "starter" and hub ids stay, anything that may be a local path
    becomes "local". A local folder can have a name like a hub id: the caller must pass LOCAL_MODEL for such a
    model.

    >>> public_model_name("Qwen/Qwen2.5-0.5B"), public_model_name("/home/ann/cats"), public_model_name("a/../b")
    ('Qwen/Qwen2.5-0.5B', 'local', 'local')
    """
    return model if re.fullmatch(_MODEL, model) else LOCAL_MODEL


def body_id(swarm: str, key: bytes, body: bytes) -> bytes:
    """The 32-byte id of an author's body in a swarm, which the author signs."""
    return sha256(_DOMAIN + swarm.encode() + b"\0" + key + body).digest()


def seal(body: Body, seed: bytes, enc: Encoding = "plain") -> Envelope:
    """Signs a body. Raises Refused if it is too large or contains text that is not Unicode."""
    try:
        raw = msgspec.json.encode(body)
    except UnicodeError as error:
        raise Refused(Flaw.NOT_JSON, "A completion holds half of a character pair.") from error
    _check_size(len(raw))
    key = signing.public_key(seed)
    digest = body_id(body.swarm, key, raw)
    return Envelope(
        id=digest.hex(),
        pk=key.hex(),
        sig=signing.sign(seed, digest).hex(),
        body=raw.decode()
        if enc == "plain"
        else binascii.b2a_base64(zlib.compress(raw), newline=False).decode(),
        enc=enc,
    )


def unseal(envelope: Envelope, swarm: str) -> Body:
    """Checks size, id and signature, and parses the body. Raises Refused. Does not check the age: see
    `check_age`."""
    raw = _raw(envelope)
    key = bytes.fromhex(envelope.pk)
    digest = body_id(swarm, key, raw)
    if digest.hex() != envelope.id:
        raise Refused(Flaw.BAD_ID, "The id does not belong to this author's body in this swarm.")
    if not signing.verifies(key, digest, bytes.fromhex(envelope.sig)):
        raise Refused(Flaw.BAD_SIGNATURE, "The signature does not hold.")
    try:
        body = _bodies.decode(raw)
    except msgspec.ValidationError as error:
        raise Refused(Flaw.WRONG_SHAPE, f"The body is not a group: {error}.") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Refused(Flaw.NOT_JSON, "The body is not JSON.") from error
    if not has_unique_keys(raw, body):
        raise Refused(Flaw.NOT_JSON, "A key stands twice in the body.")
    if body.swarm != swarm:
        raise Refused(Flaw.OTHER_SWARM, "The body names another swarm.")
    return body


class _TaskShape(msgspec.Struct):
    task: WireTask


_tasks = msgspec.json.Decoder(_TaskShape)


def task_of(envelope: Envelope) -> WireTask:
    """The task of a group that was unsealed before. Raises Refused or MsgspecError for anything else."""
    return _tasks.decode(_raw(envelope)).task


def check_age(created_ms: int, now_ms: int, oldest_s: int = STALE_AFTER_S) -> None:
    """Raises Refused for a group that is too old or from the future. Both times in Unix milliseconds."""
    if created_ms < now_ms - oldest_s * 1000:
        raise Refused(Flaw.STALE, f"The group is older than {oldest_s} s.")
    if created_ms > now_ms + MAX_AHEAD_S * 1000:
        raise Refused(Flaw.AHEAD, f"The group is stamped more than {MAX_AHEAD_S} s ahead: is the clock right?")


def _raw(envelope: Envelope) -> bytes:
    if envelope.enc == "plain":
        try:
            raw = envelope.body.encode()
        except UnicodeError as error:
            raise Refused(Flaw.NOT_JSON, "The body holds half of a character pair.") from error
        _check_size(len(raw))
        return raw
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(binascii.a2b_base64(envelope.body, strict_mode=True), MAX_BODY_BYTES + 1)
    except (ValueError, zlib.error) as error:  # binascii.Error is a ValueError
        raise Refused(Flaw.BAD_ENCODING, "The body is not base64 of zlib.") from error
    _check_size(len(raw))
    if not unpacker.eof or unpacker.unused_data:
        raise Refused(Flaw.BAD_ENCODING, "The compressed body is cut off or has something behind it.")
    return raw


def _check_size(size: int) -> None:
    if size > MAX_BODY_BYTES:
        raise Refused(Flaw.TOO_LARGE, f"The body is larger than {MAX_BODY_BYTES} bytes.")
