"""Spoiled messages: valid ones changed in their bytes or in their structure, and such as never were valid.

Everything follows from the random generator that is handed in, so that a case can be made again from its
number."""

from __future__ import annotations

import base64
import contextlib
import json
import zlib
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from app.common import signing
from app.sapo.asking import extract_answer
from app.sapo.families import FAMILIES
from app.sapo.questions import QUESTIONS_VERSION, QuestionError, draw
from app.sapo.seeds import training_seed
from app.swarm.wire.body import Body, body_id, seal
from app.swarm.wire.frames import to_frame
from app.swarm.wire.limits import Code, Quotas, RelayLimits
from app.swarm.wire.protocol import (
    AskStats,
    Auth,
    Bye,
    Err,
    Hello,
    Ok,
    Pub,
    RelayNotice,
    Report,
    Sample,
    SampleReply,
    Stats,
    Welcome,
)

SWARM = "fuzz"
NOW_MS = 1_800_000_000_000
MAX = 1 << 17
"""Bytes of a spoiled message, twice what a frame may have."""

_NUMBERS = (
    0,
    -0.0,
    -1,
    1,
    2,
    63,
    64,
    2**31,
    2**53 - 1,
    2**53,
    2**63,
    2**64,
    -(2**63),
    10**30,
    0.5,
    1e308,
    -1e-308,
)
_TEXTS = (
    "", "\0", "a" * 70, "é", "🐟", "\u202e", "\ufeff", "\ud800", "null", "1", "../../etc/passwd", "NaN",
    "%s%n{0}", "ab" * 32, "AB" * 32, "ab" * 31, "cd" * 64, "pub", "auth", "gcd", "0.1.25/1", "<answer>", "#",
    "<|im_end|>", "x" * 5000, "\u200b" * 40, "\r\n\t\x1b[2J", "plain", "zlib", "__class__", "constructor",
    "__proto__",
)  # fmt: skip
_WORDS = (
    "so", "we", "take", "away", "add", "the", "sum", "is", "then", "left", "right", "carry", "one", "two",
    "step", "again", "check", "hence", "total", "value",
)  # fmt: skip


class Spoiler:
    """Makes messages. `canary` is a file that no text of a message may ever bring into being."""

    def __init__(self, rng: Random, canary: Path) -> None:
        self._rng = rng
        self._seed = bytes(range(32))
        self._code = payloads(canary)
        self._questions = _questions(rng)

    def one_of(self, valid: list[bytes]) -> bytes:
        """A valid message, or more often one made from it."""
        rng = self._rng
        raw = rng.choice(valid)
        kind = rng.random()
        if kind < 0.05:
            return raw
        if kind < 0.15:
            return self._noise()
        if kind < 0.45:
            for _ in range(rng.choice((1, 1, 1, 2, 5))):
                raw = self._cut(raw)
            return raw[:MAX]
        value = json.loads(raw)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            value = self._bend(value)
        return self._text(value)

    def envelope(self) -> bytes:
        """An envelope, whose signature mostly holds: what is wrong lies deeper."""
        rng = self._rng
        if rng.random() < 0.3:
            self._seed = rng.randbytes(32)
        body = self._group()
        kind = rng.random()
        if kind < 0.5:
            pass
        elif kind < 0.85:
            for _ in range(rng.choice((1, 1, 2, 3))):
                place = rng.choice((body, body, body.get("task", body)))
                if isinstance(place, dict) and place:
                    key = rng.choice(sorted(place))
                    place[key] = self._value(place[key])
        else:
            body = self._bend(body)
        raw = self._text(body)
        if rng.random() < 0.05:
            raw = self._cut(raw)
        sealed = self._seal(raw)
        if rng.random() < 0.15:
            sealed = self._bend(sealed)
        return self._text(sealed)

    def valid_group(self) -> dict[str, Any]:
        """A body that an intake may well take: a question of ours with answers that earn what they claim."""
        rng = self._rng
        where, answer = rng.choice(self._questions)
        rewards = [int(rng.random() < 0.5) for _ in range(rng.randrange(2, 9))]
        rewards[0], rewards[-1] = 1, 0
        completions = [
            f"{' '.join(rng.choices(_WORDS, k=20))} <answer>{answer if right else 'no'}</answer>"
            for right in rewards
        ]
        assert all(map(extract_answer, completions))
        return {
            "v": 1,
            "swarm": SWARM,
            "key_seq": rng.randrange(1, 2**50),
            "created_ms": NOW_MS + rng.randrange(-60_000, 60_000),
            "task": dict(where),
            "model": "starter",
            "completions": completions,
            "finished": [True] * len(rewards),
            "rewards": rewards,
        }

    def _group(self) -> dict[str, Any]:
        rng, body = self._rng, self.valid_group()
        if rng.random() < 0.3:
            place = rng.randrange(len(body["completions"]))
            code = rng.choice(self._code)
            body["completions"][place] = rng.choice((f"<answer>{code}</answer>", f"#{code}", code))
            if body["rewards"][place] and rng.random() < 0.5:
                body["rewards"][place] = 0
        if rng.random() < 0.1:
            body["task"]["seed"] = rng.randrange(2**53)
            body["task"]["index"] = rng.randrange(2**20)
        return body

    def _seal(self, raw: bytes) -> dict[str, Any]:
        rng = self._rng
        digest = body_id(SWARM, signing.public_key(self._seed), raw)
        sealed = {
            "id": digest.hex(),
            "pk": signing.public_key(self._seed).hex(),
            "sig": signing.sign(self._seed, digest).hex(),
            "body": raw.decode("utf-8", "replace"),
            "enc": "plain",
        }
        kind = rng.random()
        if kind < 0.25:
            packed = zlib.compress(raw, rng.choice((0, 1, 9)))
            if kind < 0.05:
                packed = rng.choice(
                    (
                        packed[:-3],
                        packed + b"x",
                        packed * 2,
                        zlib.compress(bytes(50_000_000 if kind < 0.002 else 40_000)),
                    )
                )
            sealed |= {"enc": "zlib", "body": base64.b64encode(packed).decode()}
        elif kind < 0.28:
            sealed["sig"] = ("01" + "00" * 31) + "00" * 32
            sealed["pk"] = "01" + "00" * 31
        return sealed

    def _bend(self, value: Any) -> Any:
        """The same structure with one place changed."""
        rng = self._rng
        if isinstance(value, dict) and value and rng.random() < 0.9:
            key = rng.choice(list(value))
            bent = dict(value)
            how = rng.random()
            if how < 0.12:
                del bent[key]
            elif how < 0.24:
                bent[rng.choice(_TEXTS[:16]) + rng.choice(("", "_", key))] = self._random(2)
            elif how < 0.3:
                bent[key.upper()] = bent.pop(key)
            else:
                bent[key] = self._bend(bent[key])
            return bent
        if isinstance(value, list) and value and rng.random() < 0.8:
            at = rng.randrange(len(value))
            how = rng.random()
            if how < 0.15:
                return value[:at] + value[at + 1 :]
            if how < 0.25:
                return value * rng.choice((2, 3, 20))
            return [*value[:at], self._bend(value[at]), *value[at + 1 :]]
        return self._value(value)

    def _value(self, value: Any) -> Any:
        """Something else in the place of a value."""
        rng = self._rng
        how = rng.random()
        if how < 0.3:
            return self._random(2)
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float):
            return rng.choice((value + 1, value - 1, -value, value * 2, rng.choice(_NUMBERS), str(value)))
        if isinstance(value, str):
            if how < 0.5:
                return rng.choice((*self._code, *_TEXTS))
            at = rng.randrange(len(value) + 1)
            return value[:at] + rng.choice(_TEXTS) + value[at + rng.randrange(3) :]
        return self._random(2)

    def _random(self, depth: int) -> Any:
        rng = self._rng
        kind = rng.randrange(8 if depth else 5)
        if kind < 2:
            return rng.choice(_NUMBERS)
        if kind < 4:
            return rng.choice(_TEXTS)
        if kind == 4:
            return rng.choice((None, True, False))
        if kind == 5:
            return [self._random(depth - 1) for _ in range(rng.randrange(4))]
        return {rng.choice(_TEXTS): self._random(depth - 1) for _ in range(rng.randrange(4))}

    def _text(self, value: Any) -> bytes:
        rng = self._rng
        text = json.dumps(value, ensure_ascii=rng.random() < 0.3, separators=(",", ":"))
        if rng.random() < 0.05:
            text = text.replace('"v":1', '"v":1,"v":1').replace('{"t":', '{"t":"pub","t":', 1)
        if rng.random() < 0.03:
            text = rng.choice(("\ufeff", " ", "\n", "[", '"')) + text + rng.choice(("", " ", "}", "\0", "{}"))
        return text.encode("utf-8", "surrogatepass")[:MAX]

    def _cut(self, raw: bytes) -> bytes:
        rng = self._rng
        at = rng.randrange(len(raw) + 1)
        upto = min(len(raw), at + rng.choice((1, 1, 2, 8, 64)))
        how = rng.randrange(7)
        if how == 0:
            return raw[:at]
        if how == 1:
            return raw[:at] + raw[upto:]
        if how == 2:
            return raw[:upto] + raw[at:]
        if how == 3:
            return raw[:at] + rng.randbytes(rng.choice((1, 2, 8))) + raw[at:]
        if how == 4 and at < len(raw):
            return raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1 :]
        if how == 5:
            return (
                raw[:at]
                + rng.choice((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\\ud800", b"\\u0000"))
                + raw[at:]
            )
        return (
            raw[:at] + rng.choice((b"[" * 5000, b'{"a":' * 2000, b"-", b"1e999", b"9" * 400, b"\0")) + raw[at:]
        )

    def _noise(self) -> bytes:
        rng = self._rng
        how = rng.randrange(3)
        if how == 0:
            return rng.randbytes(rng.randrange(200))
        if how == 1:
            return self._text(self._random(4))
        return bytes(rng.choices(b'{}[]":,0123456789.eE+-tfnul \\abct', k=rng.randrange(120)))


def _questions(rng: Random) -> list[tuple[dict[str, Any], str]]:
    """Some of every family and level, as coordinates and answer."""
    found = []
    for family in sorted(FAMILIES):
        for level in range(len(FAMILIES[family].levels)):
            for _ in range(8):
                with contextlib.suppress(QuestionError):
                    question = draw(family, level, training_seed(b"fuzz", rng.getrandbits(40), 0))
                    found.append((msgspec.structs.asdict(question.coordinates), str(question.entry["answer"])))
    return found


def payloads(canary: Path) -> list[str]:
    """Code that would leave a file behind if anything ran it."""
    write = f"__import__('pathlib').Path({str(canary)!r}).touch()"
    return [
        write,
        f"[{write}]",
        f"[[{write}]]",
        f"({write}, 1)[1]",
        f"(lambda: {write})()",
        f'f"{{{write}}}"',
        f"exec({write!r})",
        f"[x for x in [{write}]]",
        f"\\frac{{{write}}}{{1}}",
        f"{write}/1",
        f"${{{write}}}",
        f"{{{{{write}}}}}",
    ]


def from_client() -> list[bytes]:
    """One valid message of every kind that a client sends."""
    sealed = seal(_BODY, bytes(range(32)))
    packed = seal(_BODY, bytes(range(32)), "zlib")
    some = (
        Auth(
            pk=sealed.pk,
            sig=sealed.sig,
            proto="1.1",
            caps=("zlib",),
            client="shoal/0.1",
            pow="ff",
            invite="a.b-c_d",
        ),
        Pub.of(sealed),
        Pub.of(packed),
        Sample(rid=1, k=8, families=("gcd", "lcm"), max_age_s=60, per_key_cap=1),
        Report(ids=(sealed.id,), reason="bad_reward"),
        AskStats(subscribe=True),
    )
    return [to_frame(one) for one in some]


def from_relay() -> list[bytes]:
    """One valid message of every kind that a relay sends."""
    sealed = seal(_BODY, bytes(range(32)))
    item = msgspec.Raw(msgspec.json.encode(sealed))
    some = (
        Hello(
            proto=("1.1",),
            relay="relay.example",
            key=sealed.pk,
            sig=sealed.sig,
            swarm=SWARM,
            epoch="e",
            time_ms=5,
            challenge="0f" * 32,
            limits=RelayLimits(),
        ),
        Welcome(session="s", quotas=Quotas(), time_ms=5),
        Err(code=Code.RATE_LIMITED, msg="slower", rid=1, retry_after_ms=100),
        Ok(id=sealed.id, code=Code.ACCEPTED, time_ms=5),
        SampleReply(rid=1, items=(item, item), window=9, eligible=5, sources=3, age_p50_s=1.5),
        Stats(peers=2, relays=1, rollouts_min=2.5, window=9, families={"gcd": 9}),
        RelayNotice(msg="Maintenance at noon"),
        Bye(reason="restart", reconnect_after_ms=1000),
    )
    return [to_frame(one) for one in some]


_BODY = msgspec.convert(
    {
        "v": 1,
        "swarm": SWARM,
        "key_seq": 7,
        "created_ms": NOW_MS,
        "task": {"family": "gcd", "level": 0, "seed": 2**41, "index": 0, "version": QUESTIONS_VERSION},
        "model": "starter",
        "completions": ("first this, then that #1", "#2"),
        "finished": (True, True),
        "rewards": (1, 0),
    },
    Body,
)
