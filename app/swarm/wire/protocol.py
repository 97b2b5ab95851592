"""Protocol v1.1: the messages between nodes and relays over a websocket, one JSON text message per frame.

Every message has its type in `t` and its own decoder. A relay refuses unknown fields; a client ignores them, so
that a newer relay can send more. PROTOCOL.md describes the protocol in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from app.sapo.questions import MAX_INDEX, MAX_SEED
from app.swarm.wire.body import Envelope, FamilyName, Hex32, Hex64, SwarmId
from app.swarm.wire.limits import (
    BATCH_BYTES,
    HANDOUT_CHARS,
    MAX_REPORT_IDS,
    MAX_SAMPLE_GROUPS,
    Code,
    Count,
    Flaw,
    Quotas,
    Refused,
    RelayLimits,
)

SUBPROTOCOL = "sapo.v1.1"
OLD_SUBPROTOCOL = "sapo.v1"
"""The subprotocol of version 1, in which relays proved nothing; a client that offers only this is told to
update."""
OPENING_HEADER = "Shoal-Open"
"""Request header of the websocket with the client's nonce, or its first Noise message, in hex."""
NONCE_BYTES = 32  # no two sessions ever share one
SOCKET_PATH = "/v1/ws"
INFO_PATH = "/v1/info"
VERSIONS = ("1.1",)
ZLIB = "zlib"
STATS_SUB = "stats-sub"
ARCHIVE, ERASE = "archive", "erase"
PEOPLE = "people"
"""The relay accepts groups of one person, which an older relay would call invalid."""
CLASS = "class"
"""The relay serves a classroom: its teacher sees the skills that a node reports, and may pause it. A client
lists it only if the owner joined as a student."""
QUESTIONS = "questions"
"""The teacher of this class hands out a question set. A client lists it only with CLASS."""
RESTING = "resting"
"""The teacher of this class sees which models rest. A client lists it only with CLASS."""
RECEIPTS, LESSONS = "receipts", "lessons"
"""Receipts for groups that were trained on, and for families that a lesson of an author's answers taught."""
CAPABILITIES = (ZLIB, STATS_SUB, ERASE, RECEIPTS, LESSONS, PEOPLE, ARCHIVE, CLASS, QUESTIONS, RESTING)
OF_A_CLASS = (CLASS, QUESTIONS, RESTING)
MAX_CLASS_FAMILIES = 256
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

RelayId = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9.:_-]{0,127}\Z")]
Text = Annotated[str, msgspec.Meta(max_length=500)]
"""Text by a relay's operator or software, shown unchanged and never acted on."""
Capability = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9-]{1,32}\Z")]
Capabilities = Annotated[tuple[Capability, ...], msgspec.Meta(max_length=32)]
Version = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,3}\.[0-9]{1,3}\Z")]
Versions = Annotated[tuple[Version, ...], msgspec.Meta(min_length=1, max_length=16)]
FamilyCounts = Annotated[dict[FamilyName, Count], msgspec.Meta(max_length=256)]
AccessMode = Literal["open", "pow", "invite", "allowlist", "private"]
Wait = Annotated[int, msgspec.Meta(ge=0, le=24 * 3600 * 1000)]
"""Milliseconds until the next try; at most a day."""


class _FromClient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="t"):
    pass


class _FromRelay(msgspec.Struct, frozen=True, kw_only=True, tag_field="t"):
    pass


class Auth(_FromClient, frozen=True, kw_only=True, tag="auth"):
    """Answers `hello`. `sig` is over `auth_bytes`; `client` is the software's name and version."""

    pk: Hex32
    sig: Hex64
    proto: Version
    caps: Capabilities = ()
    client: Annotated[str, msgspec.Meta(pattern=r"\A[a-z]{1,16}/[0-9]+(\.[0-9]+){0,3}\Z", max_length=40)]
    pow: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{1,32}\Z")] | None = None
    invite: Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9._-]{1,512}\Z")] | None = None


class Pub(Envelope, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="t", tag="pub"):
    """Publishes one group: the type and an envelope's fields."""

    @classmethod
    def of(cls, sealed: Envelope) -> Pub:
        return cls(id=sealed.id, pk=sealed.pk, sig=sealed.sig, body=sealed.body, enc=sealed.enc)

    def envelope(self) -> Envelope:
        """The part that the relay stores and gives out."""
        return Envelope(id=self.id, pk=self.pk, sig=self.sig, body=self.body, enc=self.enc)


class Sample(_FromClient, frozen=True, kw_only=True, tag="sample"):
    """Requests up to `k` groups of others with at most `max_bytes` in all; `families` None means any."""

    rid: Count
    k: Annotated[int, msgspec.Meta(ge=1, le=MAX_SAMPLE_GROUPS)]
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=BATCH_BYTES)] = BATCH_BYTES
    families: Annotated[tuple[FamilyName, ...], msgspec.Meta(min_length=1, max_length=256)] | None = None
    max_age_s: Annotated[int, msgspec.Meta(ge=1, le=24 * 3600)] | None = None
    per_key_cap: Annotated[int, msgspec.Meta(ge=1, le=MAX_SAMPLE_GROUPS)] | None = None


class WantedQuestions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks for groups of one question, or of any question of this family and level if `seed` is None."""

    family: FamilyName
    level: Annotated[int, msgspec.Meta(ge=0, le=63)]
    seed: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEED)] | None = None
    index: Annotated[int, msgspec.Meta(ge=0, le=MAX_INDEX)] | None = None


class Recall(_FromClient, frozen=True, kw_only=True, tag="recall"):
    """Requests up to `k` groups of other clients on these tasks from the archive, at most `max_bytes` in all.
    The answer is a SampleReply."""

    rid: Count
    k: Annotated[int, msgspec.Meta(ge=1, le=MAX_SAMPLE_GROUPS)]
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=BATCH_BYTES)] = BATCH_BYTES
    tasks: Annotated[tuple[WantedQuestions, ...], msgspec.Meta(min_length=1, max_length=MAX_SAMPLE_GROUPS)]


class Erase(_FromClient, frozen=True, kw_only=True, tag="erase"):
    """Asks the relay to delete every group that this key has signed."""


class Report(_FromClient, frozen=True, kw_only=True, tag="report"):
    """Reports bad groups. A relay checks before it acts."""

    ids: Annotated[tuple[Hex32, ...], msgspec.Meta(min_length=1, max_length=MAX_REPORT_IDS)]
    reason: Literal["bad_reward", "bad_sig", "unsafe", "dup"]


class Receipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """States that the sending key learned from the group `id`. `sig` is over `receipts.receipt_bytes`."""

    id: Hex32
    sig: Hex64


class LessonReceipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """States that a lesson of answers by `author` (a public key) taught `family` to the sending key's model.
    `sig` is over `receipts.lesson_bytes`."""

    author: Hex32
    family: FamilyName
    sig: Hex64


class Receipts(_FromClient, frozen=True, kw_only=True, omit_defaults=True, tag="receipts"):
    """Lists others' groups that this node learned from and, with the capability LESSONS, the authors that
    taught it a family. Not answered."""

    items: Annotated[tuple[Receipt, ...], msgspec.Meta(max_length=MAX_REPORT_IDS)] = ()
    lessons: Annotated[tuple[LessonReceipt, ...], msgspec.Meta(max_length=MAX_REPORT_IDS)] = ()


class AskStats(_FromClient, frozen=True, kw_only=True, tag="stats"):
    """Requests the swarm's figures: once, or with `subscribe` every 10 seconds until sent again as false."""

    subscribe: bool | None = None


class ClassProgress(_FromClient, frozen=True, kw_only=True, tag="progress"):
    """Reports a model's shares of held-out questions solved, in all and by family. Only in a class."""

    round: Count
    share: Share
    families: Annotated[dict[FamilyName, Share], msgspec.Meta(max_length=MAX_CLASS_FAMILIES)] = {}


class Rest(_FromClient, frozen=True, kw_only=True, tag="rest"):
    """Says that the model rests, or that it learns again. Only in a class."""

    on: bool


class AskQuestions(_FromClient, frozen=True, kw_only=True, tag="questions"):
    """Requests the question set that the teacher hands out. Only in a class."""


class Hello(_FromRelay, frozen=True, kw_only=True, tag="hello"):
    """A relay's first frame. `epoch` changes when it restarts; `challenge` is new for every connection; `relay`
    is derived from `key`; `sig` is over `hello_bytes`."""

    proto: Versions
    relay: RelayId
    key: Hex32
    sig: Hex64
    swarm: SwarmId
    epoch: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    time_ms: Count
    challenge: Hex32
    caps: Capabilities = ()
    limits: RelayLimits
    pow_bits: Annotated[int, msgspec.Meta(ge=0, le=64)] = 0


class Welcome(_FromRelay, frozen=True, kw_only=True, tag="welcome"):
    session: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    quotas: Quotas
    time_ms: Count


class Err(_FromRelay, frozen=True, kw_only=True, tag="err"):
    """Refuses a frame that is not a `pub`, or one so malformed that its id is unknown. `rid` is the id of a
    refused sample."""

    code: Code
    msg: Text = ""
    rid: Count | None = None
    retry_after_ms: Wait | None = None


class Ok(_FromRelay, frozen=True, kw_only=True, tag="ok"):
    """The answer to one `pub`, accepted or not: see `Code.final`."""

    id: Hex32
    code: Code
    msg: Text = ""
    retry_after_ms: Wait | None = None
    time_ms: Count


class SampleReply(_FromRelay, frozen=True, kw_only=True, tag="batch"):
    """The answer to one `sample`; fewer items than requested are normal. Items are decoded separately
    (`decode_envelope`), so that a bad one spoils no other. `window`: groups held; `eligible`: groups that could
    have been drawn; `sources`: number of their keys; `age_p50_s`: median age of the items in seconds."""

    rid: Count
    items: Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(max_length=MAX_SAMPLE_GROUPS)]
    window: Count
    eligible: Count
    sources: Count
    age_p50_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None


class Stats(_FromRelay, frozen=True, kw_only=True, tag="stats"):
    """The swarm's figures. `families`: groups in the window by family; `stored`: groups ever accepted."""

    peers: Count
    relays: Count
    rollouts_min: Annotated[float, msgspec.Meta(ge=0, le=1e12)]
    window: Count
    stored: Count = 0
    families: FamilyCounts
    learning: bool | None = None
    """In a class: False while its teacher has paused training."""


class Erased(_FromRelay, frozen=True, kw_only=True, tag="erased"):
    """The answer to `erase`: the number of deleted groups."""

    groups: Count


class HandedOut(_FromRelay, frozen=True, kw_only=True, tag="handout"):
    """The answer to `questions`: the question set's file, which a student sees before it is stored."""

    content: Annotated[str, msgspec.Meta(max_length=HANDOUT_CHARS)]


class Thanks(_FromRelay, frozen=True, kw_only=True, tag="thanks"):
    """Tells this client that the key `pk`, which has standing, learned from its group `id`."""

    id: Hex32
    pk: Hex32
    sig: Hex64


class Taught(_FromRelay, frozen=True, kw_only=True, tag="taught"):
    """Tells this client that the key `pk` says it learned `family` from its answers. The relay verifies only
    the signature."""

    pk: Hex32
    family: FamilyName
    sig: Hex64


class RelayNotice(_FromRelay, frozen=True, kw_only=True, tag="notice"):
    """A sentence for the node's owner. `twin`: another connection publishes with the same key, which a copied
    data folder has; True at the one that should take a new key."""

    msg: Text
    twin: bool | None = None


class Bye(_FromRelay, frozen=True, kw_only=True, tag="bye"):
    """Announces that the relay is about to close this connection."""

    reason: Text
    reconnect_after_ms: Wait


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    name: Text = ""
    contact: Text = ""
    pk: Hex32 | None = None


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """The document at `GET /v1/info`, readable without signing in. `versions` are versions of the questions."""

    relay: RelayId
    swarm: SwarmId
    proto: Versions
    software: Text
    time_ms: Count
    access: AccessMode
    pow_bits: Annotated[int, msgspec.Meta(ge=0, le=64)] = 0
    caps: Capabilities = ()
    families: Annotated[tuple[FamilyName, ...], msgspec.Meta(max_length=256)]
    versions: Annotated[tuple[Text, ...], msgspec.Meta(max_length=16)]
    limits: RelayLimits
    quotas: Quotas
    operator: Operator = Operator()
    policies: Annotated[tuple[Text, ...], msgspec.Meta(max_length=16)] = ()


FromClient = (
    Auth | Pub | Sample | Recall | Report | Receipts | Erase | AskStats | ClassProgress | Rest | AskQuestions
)
FromRelay = (
    Hello | Welcome | Err | Ok | SampleReply | Stats | Erased | HandedOut | Thanks | Taught | RelayNotice | Bye
)


def highest_common_version(theirs: Sequence[str]) -> str:
    """Returns the highest version that both sides support. Raises Refused if they have none in common."""
    common = set(theirs) & set(VERSIONS)
    if not common:
        raise Refused(
            Flaw.OTHER_PROTOCOL, f"The relay speaks versions {list(theirs)[:8]}, this node {list(VERSIONS)}."
        )
    return max(common, key=lambda version: tuple(map(int, version.split("."))))
