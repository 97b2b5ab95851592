"""Opens websocket connections, signs in, and hands the plain sockets to another program.

Written by hand, because a websocket library would not release its sockets. Reads only the expected messages: a
socket is handed over only if none of its data is buffered here, which the next reader would miss."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from random import Random
from urllib.parse import urlsplit

from app.bench.harness import BenchError
from app.common import signing
from app.sapo.groups import GroupRecord
from app.sapo.questions import draw
from app.sapo.seeds import training_seed
from app.swarm.wire.body import Body, seal
from app.swarm.wire.frames import decode_relay_frame, to_frame
from app.swarm.wire.limits import BATCH_FRAME
from app.swarm.wire.protocol import NONCE_BYTES, OPENING_HEADER, SUBPROTOCOL, FromRelay, Hello, Pub, Welcome
from app.swarm.wire.signin import sign_in

SWARM = "bench"
FAMILIES = ("gcd", "lcm", "chain_sum", "count_bits")
"""Families that are fast to generate: the benchmark measures transport."""
COMPLETIONS = 8
BODY_BYTES = 3_800
"""Typical size of a body: 4.2 KB as an envelope."""

_WORDS = (
    "first", "we", "take", "the", "numbers", "apart", "and", "look", "at", "what", "remains", "then", "so",
    "it", "is", "divided", "again", "until", "nothing", "left", "check", "this", "once", "more", "carry", "one",
)  # fmt: skip


def seed_of(number: int) -> bytes:
    """The secret seed of the benchmark's key number `number`, the same in every run."""
    return sha256(b"shoal bench %d" % number).digest()


def key_of(number: int) -> bytes:
    return signing.public_key(seed_of(number))


def publish_frames(keys: int, rounds: int, first_seq: int, *, first_key: int = 0) -> Iterator[bytes]:
    """Yields `rounds` encoded `pub` messages with signed groups. Message i is by key first_key + i % keys; the
    sequence numbers of each key start at `first_seq`. The groups are honest, with real questions and true
    rewards, so that a relay which scores a share of them again refuses none."""
    rng = Random(first_seq)
    now_ms = int(time.time() * 1000)
    for round in range(rounds):
        number = first_key + round % keys
        group = _group(number, first_seq + round // keys, rng)
        body = Body.of(group, _REWARDS, SWARM, first_seq + round // keys, now_ms)
        yield to_frame(Pub.of(seal(body, seed_of(number))))


_REWARDS = tuple(int(i % 2 == 0) for i in range(COMPLETIONS))


def _group(number: int, sequence: int, rng: Random) -> GroupRecord:
    family = FAMILIES[(number + sequence) % len(FAMILIES)]
    question = draw(family, 0, training_seed(b"bench %d" % number, sequence, 0))
    answers = [str(question.entry["answer"]) if right else "nothing" for right in _REWARDS]
    return GroupRecord(
        coordinates=question.coordinates,
        completions_G=tuple(f"{text} #{answer}" for text, answer in zip(_texts(rng), answers, strict=True)),
        finished_G=(True,) * COMPLETIONS,
        model="starter",
    )


def _texts(rng: Random) -> Sequence[str]:
    length = (BODY_BYTES - 300) // COMPLETIONS - 8
    line = " ".join(rng.choices(_WORDS, k=120))
    return [line[start : start + length] for start in (rng.randrange(40) for _ in range(COMPLETIONS))]


PATIENCE_S = 60.0
AT_ONCE = 64
"""Connections opened together, so that the relay does not wait for us."""

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


def masked(payload: bytes, opcode: int = _TEXT) -> bytes:
    """Encodes a client's websocket frame. The mask is zero, which is valid, costs nothing, and keeps the
    payload readable.

    >>> masked(b"hi").hex(), masked(b"x" * 126)[:4].hex()
    ('8182000000006869', '81fe007e')
    """
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 1 << 16:
        length = b"\xfe" + size.to_bytes(2, "big")
    else:
        length = b"\xff" + size.to_bytes(8, "big")
    return bytes([0x80 | opcode]) + length + bytes(4) + payload


class BlockingConnection:
    """A connection to `url` with blocking calls. Raises BenchError for every refusal."""

    def __init__(self, url: str) -> None:
        self._where = urlsplit(url)
        self._read = b""
        try:
            self.socket = socket.create_connection(
                (self._where.hostname, self._where.port or 80), timeout=PATIENCE_S
            )
        except OSError as error:
            raise BenchError(
                f"A connection could not be opened ({error.strerror or error}): take fewer --connections."
            ) from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def request_upgrade(self) -> None:
        """Requests a websocket; `finish_upgrade` waits for the response."""
        self.socket.sendall(
            f"GET {self._where.path} HTTP/1.1\r\nHost: {self._where.netloc}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n"
            f"{OPENING_HEADER}: {'0' * 2 * NONCE_BYTES}\r\n\r\n".encode()
        )

    def finish_upgrade(self) -> None:
        while b"\r\n\r\n" not in self._read:
            self._more()
        head, _, self._read = self._read.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101 "):
            raise BenchError(f"The relay took no websocket: {head.splitlines()[0][:80].decode('latin-1')}.")

    def say(self, payload: bytes) -> None:
        self.socket.sendall(masked(payload))

    def hear(self) -> bytes:
        """Returns the next message; answers pings before it."""
        while True:
            opcode, payload = self._frame()
            if opcode == _TEXT:
                return payload
            if opcode == _PING:
                self.socket.sendall(masked(payload, _PONG))
            elif opcode == _CLOSE:
                raise BenchError("The relay closed a connection.")

    def message(self) -> FromRelay:
        return decode_relay_frame(self.hear())

    def release_socket(self) -> socket.socket:
        """Returns the socket for another program. Raises BenchError if its data is buffered here."""
        if self._read:
            raise BenchError("The relay said more than was asked; this bench does not know what.")
        return self.socket

    def close(self) -> None:
        self.socket.close()

    def _frame(self) -> tuple[int, bytes]:
        first, second = self._exactly(2)
        size = second & 0x7F
        if size >= 126:
            size = int.from_bytes(self._exactly(2 if size == 126 else 8), "big")
        if size > BATCH_FRAME:
            raise BenchError("The relay sent a frame that is larger than any allowed.")
        return first & 0x0F, self._exactly(size)

    def _exactly(self, n: int) -> bytes:
        while len(self._read) < n:
            self._more()
        taken, self._read = self._read[:n], self._read[n:]
        return taken

    def _more(self) -> None:
        try:
            came = self.socket.recv(65_536)
        except OSError as error:
            raise BenchError(f"The relay did not answer ({error.strerror or error}).") from error
        if not came:
            raise BenchError("The relay closed a connection before it was signed in.")
        self._read += came


def join(url: str, numbers: Sequence[int], *, signed: bool = True) -> Iterator[BlockingConnection]:
    """Yields connections for the keys of these numbers, signed in; without `signed`, only upgraded to
    websockets."""
    for start in range(0, len(numbers), AT_ONCE):
        some = numbers[start : start + AT_ONCE]
        wires = [BlockingConnection(url) for _ in some]
        for wire in wires:
            wire.request_upgrade()
        for wire, number in zip(wires, some, strict=True):
            wire.finish_upgrade()
            if signed:
                hello = wire.message()
                if not isinstance(hello, Hello):
                    raise BenchError("The relay does not greet with hello.")
                wire.say(to_frame(sign_in(seed_of(number), hello, "bench/1")))
        for wire in wires:
            if signed and not isinstance(welcome := wire.message(), Welcome):
                raise BenchError(f"The relay let a key of the bench not in: {str(welcome)[:200]}.")
            yield wire
