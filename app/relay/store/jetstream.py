"""The backing of several relays: NATS JetStream, where every relay mirrors one stream of groups.

A group's id is its JetStream message id, so JetStream refuses a second copy, whichever relay sends it. A group
is acknowledged once JetStream has stored it; with three servers, once two have. Each relay fills its window
from its mirror, also with its own clients' groups. Values are in a key-value bucket, which is mirrored too.
Presence is plain NATS and may get lost. A day of groups is kept by each relay that has a disk, in SQLite."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import struct
import time
from collections import OrderedDict
from collections.abc import Sequence

import msgspec
import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, PubAck, StorageType, StreamConfig
from nats.js.errors import APIError, BadRequestError, NotFoundError

from app.relay.store.backing import (
    ArchivedGroup,
    CheckedGroup,
    GroupsToDelete,
    OnGroup,
    OnPresence,
    OnValue,
    Unavailable,
    Weight,
)
from app.relay.store.mirror import Mirror
from app.relay.store.sqlite import SQLite
from app.relay.store.window import Added, WindowLimits
from app.swarm.wire.protocol import WantedQuestions

PORT = 4222  # of NATS
ANSWER_S, PAUSE_S, TRYING_S = 2.0, 0.25, 6.0
"""`ANSWER_S`: seconds to wait for an answer to a publish; `PAUSE_S`: seconds before it is sent again after that
or after a refusal, which is harmless because of its id; `TRYING_S`: seconds after which the client is told to
try later. This bridges a restart of a server and the election of a leader."""
SHARDS = 16
"""Number of subjects per family, so that a relay can mirror a part of a very large swarm."""
DUPLICATES_S = 600.0
"""Seconds for which JetStream remembers message ids; the mirrored window remembers them for an hour."""
STREAM_BYTES, VALUE_BYTES = 1 << 30, 64 << 20  # 200,000 large groups, and the small values of all relays
REPLICATED_FROM = 3
"""Minimum number of servers at which streams are replicated to three of them."""
PRUNE_EVERY_S = 60.0  # values live for hours
_OUTCOMES = 4096  # publishes whose answer is outstanding
_UNTIL = struct.Struct(">d")
_SALT = "salt"

_records = msgspec.msgpack.Decoder(CheckedGroup)
_log = logging.getLogger(__name__)


def servers(where: str) -> tuple[str, ...]:
    """Parses `nats://HOST[:PORT][,HOST[:PORT]..]` into one URL per server; `tls://` and
    `nats://USER:PASSWORD@HOST` are accepted too. Raises ValueError.

    >>> servers("nats://a,b:4223")
    ('nats://a:4222', 'nats://b:4223')
    """
    scheme, found, rest = where.partition("://")
    if not found or scheme not in ("nats", "tls"):
        raise ValueError("a backplane of NATS is nats://HOST[:PORT][,HOST[:PORT]..]")
    urls = []
    for one in rest.split(","):
        host, colon, port = one.removeprefix(f"{scheme}://").rpartition(":")
        if not colon or "@" in port or "]" in port:
            host, port = one.removeprefix(f"{scheme}://"), str(PORT)
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
            raise ValueError(f"{one[:80] or 'nothing'} is not HOST or HOST:PORT")
        urls.append(f"{scheme}://{host}:{port}")
    return tuple(urls)


class JetStream:
    """One relay's connection to a NATS that only relays can reach."""

    shared = True

    def __init__(
        self,
        where: tuple[str, ...],
        swarm: str,
        *,
        day: SQLite | None = None,
        limits: WindowLimits = WindowLimits(),  # noqa: B008 (frozen)
    ) -> None:
        """`where`: URLs of the servers. `day`: keeps the archive, started and closed by this object."""
        self._servers = where
        self._day = day
        self._limits = limits
        self._replicas = 3 if len(where) >= REPLICATED_FROM else 1
        self._stream = f"SHOAL_{swarm}"
        self._bucket = f"shoal-{swarm}"
        self._groups_subject = f"shoal.v1.{swarm}.group"
        self._presence_subject = f"shoal.v1.{swarm}.relay"
        self._value_subject = f"$KV.{self._bucket}."
        self._relay = secrets.token_hex(8)
        self._nats = Client()
        self._js = JetStreamContext(self._nats, timeout=5)
        self._groups = Mirror(
            self._js, self._stream, f"{self._groups_subject}.>", self._group_came, self._make_groups
        )
        self._values = Mirror(
            self._js, f"KV_{self._bucket}", f"{self._value_subject}>", self._value_came, self._make_values
        )
        self._until: dict[str, float] = {}
        self._outcomes: OrderedDict[int, Added] = OrderedDict()
        """What `on_group` returned for the last groups from the mirror, by stream position."""
        self._pruning: asyncio.Task[None] | None = None
        self._told = False
        self.stored = 0
        self.salt = b""

    @property
    def mirror_resets(self) -> int:
        """Number of mirror restarts because a mirror was silent or its stream had been replaced."""
        return self._groups.resets + self._values.resets

    @property
    def mirror_lag_messages(self) -> int:
        """Number of groups and values that NATS has and this relay has not received yet."""
        return self._groups.lag + self._values.lag

    @property
    def archived(self) -> int | None:
        return None if self._day is None else self._day.archived

    @property
    def ready(self) -> bool:
        return self._nats.is_connected and self._groups.alive and self._values.alive

    async def start(self, on_group: OnGroup, on_value: OnValue, on_presence: OnPresence) -> None:
        """Connects and loads the stored values and groups. Waits for NATS without limit."""
        if self._day is not None:
            await self._day.start(lambda record: "duplicate", lambda key, value: None, on_presence)
        self._on_group, self._on_value, self._on_presence = on_group, on_value, on_presence
        await self._nats.connect(
            list(self._servers),
            name="shoal relay",
            connect_timeout=2,
            reconnect_time_wait=0.25,  # type: ignore[arg-type]  # seconds of asyncio.sleep
            max_reconnect_attempts=-1,
            ping_interval=5,
            max_outstanding_pings=2,
            error_cb=self._failed,
            disconnected_cb=self._disconnected,
            reconnected_cb=self._reconnected,
        )
        self._values.start()
        await self._values.caught_up.wait()
        while not self.salt:
            with contextlib.suppress(nats.errors.Error):
                await self._agree_on_salt()
        self._groups.start()
        await self._groups.caught_up.wait()
        await self._nats.subscribe(f"{self._presence_subject}.*", cb=self._presence_came)
        self._pruning = asyncio.create_task(self._prune(), name="pruning of values")

    async def publish(self, record: CheckedGroup) -> Added:
        ending = time.monotonic() + TRYING_S
        tries = 0
        while True:
            tries += 1
            try:
                answer = await self._send(record)
                break
            except (nats.errors.Error, OSError) as error:
                _log.info("A group was not taken: %r", error)
                if time.monotonic() + PAUSE_S > ending:
                    raise Unavailable("The relay's store does not answer.") from error
            await asyncio.sleep(PAUSE_S)
        self.stored = max(self.stored, answer.seq)
        # The mirror may have brought it before the answer came; then it has decided about it.
        added = self._outcomes.get(answer.seq) or self._take(record)
        return "duplicate" if answer.duplicate and tries == 1 else added

    async def _send(self, record: CheckedGroup) -> PubAck:
        if not self._nats.is_connected:
            raise nats.errors.ConnectionReconnectingError
        return await self._js.publish(
            f"{self._groups_subject}.{record.family}.{record.key[0] % SHARDS}",
            msgspec.msgpack.encode(record),
            timeout=ANSWER_S,
            stream=self._stream,
            headers={"Nats-Msg-Id": record.id.hex()},
        )

    def presence(self, summary: bytes) -> None:
        if self._nats.is_connected:
            asyncio.create_task(self._send_presence(summary))  # noqa: RUF006 (over at once)

    async def kv_put(self, key: str, value: bytes | None, until: float) -> None:
        """Stores a value for all relays. None deletes it: an empty value is stored in its place, and removed
        about a minute later."""
        if not self._nats.is_connected:
            raise Unavailable("The relay has lost its store and is looking for it.")
        raw = _UNTIL.pack(until if value is not None else 0.0) + (value or b"")
        try:
            await self._js.publish(self._value_subject + key, raw)
        except (nats.errors.Error, OSError) as error:
            raise Unavailable("The relay's store does not answer.") from error
        self._on_value(key, value)

    async def recall(
        self, wanted: Sequence[WantedQuestions], k: int, exclude_author: bytes, weight: Weight
    ) -> list[ArchivedGroup]:
        return [] if self._day is None else await self._day.recall(wanted, k, exclude_author, weight)

    async def delete(self, doomed: GroupsToDelete) -> int:
        return 0 if self._day is None else await self._day.delete(doomed)

    async def delete_everywhere(self, doomed: GroupsToDelete) -> int:
        """Finds the key's groups in the stream and has JetStream overwrite them."""
        gone = await self.delete(doomed)
        assert doomed.key is not None
        place, subject = 1, f"{self._groups_subject}.*.{doomed.key[0] % SHARDS}"
        try:
            while True:
                message = await self._js.get_msg(self._stream, seq=place, subject=subject, next=True)
                assert message.seq is not None
                place = message.seq + 1
                record = _records.decode(message.data or b"")
                if record.key == doomed.key and record.arrived_ms < doomed.until_ms:
                    await self._js.delete_msg(self._stream, message.seq)
        except NotFoundError:
            return gone
        except (nats.errors.Error, OSError) as error:
            raise Unavailable("The relay's store does not answer.") from error

    async def close(self) -> None:
        if self._pruning is not None:
            self._pruning.cancel()
        await self._groups.close()
        await self._values.close()
        with contextlib.suppress(nats.errors.Error, OSError):
            await self._nats.close()
        if self._day is not None:
            await self._day.close()

    def _take(self, record: CheckedGroup) -> Added:
        added = self._on_group(record)
        if self._day is not None and added == "accepted":
            self._day.publish(record).add_done_callback(asyncio.Future.exception)  # logged there
        return added

    def _group_came(self, place: int, message: Msg) -> None:
        self.stored = max(self.stored, place)
        try:
            record = _records.decode(message.data)
        except msgspec.DecodeError:
            _log.warning("The stream has something at %d that is no group.", place)
            return
        self._outcomes[place] = self._take(record)
        if len(self._outcomes) > _OUTCOMES:
            self._outcomes.popitem(last=False)

    def _value_came(self, place: int, message: Msg) -> None:
        key, raw = message.subject.removeprefix(self._value_subject), message.data
        if len(raw) < _UNTIL.size:
            return  # not ours
        (until,) = _UNTIL.unpack_from(raw)
        self._until[key] = until
        if key == _SALT:
            self.salt = raw[_UNTIL.size :]
        else:
            self._on_value(key, raw[_UNTIL.size :] if until > time.time() else None)

    async def _presence_came(self, message: Msg) -> None:
        relay = message.subject.rpartition(".")[2]
        if relay != self._relay:
            self._on_presence(relay, message.data)

    async def _send_presence(self, summary: bytes) -> None:
        with contextlib.suppress(nats.errors.Error, OSError):
            await self._nats.publish(f"{self._presence_subject}.{self._relay}", summary)

    async def _agree_on_salt(self) -> None:
        """Publishes a salt unless one exists. All relays use the first one, which arrives through the
        mirror."""
        with contextlib.suppress(BadRequestError):
            await self._js.publish(
                self._value_subject + _SALT,
                _UNTIL.pack(float("inf")) + secrets.token_bytes(16),
                headers={"Nats-Expected-Last-Subject-Sequence": "0"},
            )
        await asyncio.sleep(0.05)

    async def _make_groups(self) -> None:
        await self._make(
            StreamConfig(
                name=self._stream,
                subjects=[f"{self._groups_subject}.>"],
                storage=StorageType.FILE,
                num_replicas=self._replicas,
                max_age=max(self._limits.age_s, self._limits.remember_s),
                max_bytes=STREAM_BYTES,
                discard=DiscardPolicy.OLD,
                duplicate_window=DUPLICATES_S,
                allow_direct=True,
            )
        )

    async def _make_values(self) -> None:
        """Creates the stream of a key-value bucket with the configuration that `nats kv` uses."""
        await self._make(
            StreamConfig(
                name=f"KV_{self._bucket}",
                subjects=[f"{self._value_subject}>"],
                storage=StorageType.FILE,
                num_replicas=self._replicas,
                max_msgs_per_subject=1,
                max_bytes=VALUE_BYTES,
                discard=DiscardPolicy.NEW,
                allow_rollup_hdrs=True,
                deny_delete=True,
                allow_direct=True,
            )
        )

    async def _make(self, config: StreamConfig) -> None:
        """Creates a stream unless it exists. Raises nats.errors.Error if that fails."""
        assert config.name is not None
        try:
            await self._js.stream_info(config.name)
        except NotFoundError:
            try:
                await self._js.add_stream(config)
            except APIError as error:
                level = logging.DEBUG if self._told else logging.WARNING
                _log.log(level, "NATS does not make the stream %s yet: %s", config.name, error.description)
                self._told = True
                raise

    async def _prune(self) -> None:
        """Removes expired values. Every relay does this; a second removal is harmless."""
        while True:
            await asyncio.sleep(PRUNE_EVERY_S * (0.5 + secrets.randbelow(1000) / 1000))
            for key, until in list(self._until.items()):
                if until < time.time() - PRUNE_EVERY_S:
                    with contextlib.suppress(nats.errors.Error, OSError):
                        await self._js.purge_stream(f"KV_{self._bucket}", subject=self._value_subject + key)
                        self._until.pop(key, None)

    async def _failed(self, error: Exception) -> None:
        """nats.py's error callback. Logs only the first error after a working connection as a warning."""
        _log.log(logging.DEBUG if self._told else logging.WARNING, "NATS: %r", error)
        self._told = True

    async def _disconnected(self) -> None:
        _log.warning("The connection to NATS is lost; the relay goes on with what it has.")

    async def _reconnected(self) -> None:
        self._told = False
        _log.warning("NATS is back.")
