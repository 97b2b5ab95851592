"""Groups as an intake meets them: honest ones, such as an attacker would sign, and strategies for fuzzing."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st

from app.sapo.questions import Question, QuestionError, draw
from app.swarm.identity.identity import Identity
from app.swarm.wire.body import Envelope, body_id

SWARM = "example-swarm"
NOW_MS = 1_800_000_000_000
ANN, BOB = Identity(bytes(range(32))), Identity(bytes(range(1, 33)))


@cache
def question(number: int = 0, family: str = "gcd", level: int = 0, held_out: bool = False) -> Question:
    """The `number`th question that is (not) held out."""
    left = number
    for seed in range(2**41, 2**41 + 100_000):
        try:
            found = draw(family, level, seed)
        except QuestionError:
            continue
        if found.held_out == held_out:
            if not left:
                return found
            left -= 1
    raise AssertionError(f"{family} has no such question")


def honest(number: int = 0, family: str = "gcd", level: int = 0, held_out: bool = False) -> dict[str, Any]:
    """The body of a group that nobody can object to, as plain JSON values to be spoiled."""
    asked = question(number, family, level, held_out)
    return {
        "v": 1,
        "swarm": SWARM,
        "key_seq": number + 1,
        "created_ms": NOW_MS,
        "task": msgspec.structs.asdict(asked.coordinates),
        "model": "starter",
        "completions": [f"both are {number}, so #{asked.entry['answer']}", "#zzz", f"{number} hm"],
        "finished": [True, True, False],
        "rewards": [1, 0, 0],
    }


def signed(body: dict[str, Any] | bytes, me: Identity = ANN, swarm: str = SWARM, **changes: Any) -> Envelope:
    """An envelope whose id and signature hold, whatever the body is; then with `changes`."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    digest = body_id(swarm, bytes.fromhex(changes.get("pk", me.key.hex())), raw)
    envelope = Envelope(
        id=digest.hex(), pk=me.key.hex(), sig=me.sign(digest).hex(), body=raw.decode("utf-8", "replace")
    )
    return msgspec.structs.replace(envelope, **changes)


numbers = st.sampled_from((0, 1, -1, 2, 63, 64, 2**31, 2**53 - 1, 2**53, 2**64, -(2**63), 10**30, 0.5, 1e308))
texts = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        (
            "",
            "\0",
            "gcd",
            "../../x",
            "\u202e",
            "\ufeff",
            "x" * 5000,
            "null",
            "0.1.25/1",
            "#__import__('os')",
            "a\n" * 300,
        )
    ),
)
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=8
)


@st.composite
def spoiled(draw: st.DrawFn, sound: dict[str, Any]) -> dict[str, Any]:
    """A structure with a few places changed, removed or added, none of them on purpose."""
    value = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, 3))):
        place: Any = value
        while True:
            if isinstance(place, dict) and place:
                key: Any = draw(st.sampled_from(sorted(place)))
            elif isinstance(place, list) and place:
                key = draw(st.integers(0, len(place) - 1))
            else:
                break
            if isinstance(place[key], dict | list) and draw(st.booleans()):
                place = place[key]
                continue
            how = draw(st.integers(0, 5))
            if how == 0:
                del place[key]
            elif how == 1 and isinstance(place, dict):
                place[draw(texts)] = draw(values)
            elif how == 2 and isinstance(place, list):
                place.extend(place[:8])
            else:
                place[key] = draw(values)
            break
    return value


@st.composite
def scratched(draw: st.DrawFn, sound: bytes) -> bytes:
    """Bytes with a piece cut out, doubled or replaced."""
    at = draw(st.integers(0, len(sound)))
    upto = min(len(sound), at + draw(st.sampled_from((0, 1, 2, 40))))
    return sound[:at] + draw(st.one_of(st.binary(max_size=6), st.just(sound[at:upto] * 2))) + sound[upto:]
