from __future__ import annotations

import msgspec
import pytest

from app.relay.crowd import EXACT, GONE_S, REGISTERS, Crowd, Summary, count, sketch, together, words


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def keys(first: int, last: int) -> list[bytes]:
    return [n.to_bytes(32, "big") for n in range(first, last)]


def test_a_register_holds_the_longest_run_of_zeros() -> None:
    # first 11 bits: the place; then 53 bits: 0001.. is rank 4
    number = (5 << 53) | (1 << 49)
    registers = sketch([number.to_bytes(8, "big"), ((5 << 53) | (1 << 52)).to_bytes(8, "big"), bytes(8)])
    assert (registers[5], registers[0], sum(registers)) == (4, 54, 58)


@pytest.mark.parametrize("n", [0, 1, 100, 2_001, 5_000, 20_000, 60_000])
def test_the_count_is_within_the_known_error(n: int) -> None:
    errors = []
    for trial in range(3):
        registers = sketch(Summary.of(keys(trial << 40, (trial << 40) + n), 0).split()) if n <= EXACT else (
            Summary.of(keys(trial << 40, (trial << 40) + n), 0).registers
        )  # fmt: skip
        errors.append(abs(count(registers) - n) / max(n, 1))
    sigma = 1.04 / REGISTERS**0.5
    assert sum(errors) / 3 < 2 * sigma and max(errors) < 3.5 * sigma


def test_a_union_is_exact_for_few_and_about_for_many() -> None:
    few = [Summary.of(keys(0, 1_500), 1_500), Summary.of(keys(1_000, 2_500), 1_500)]
    assert together(few) == 2_500
    many = Summary.of(keys(2_000, 22_000), 20_000)
    assert not many.prints and len(many.registers) == REGISTERS
    assert abs(together([*few, many]) - 22_000) < 0.08 * 22_000
    assert together([many, many]) == together([many])


def test_relays_come_and_go() -> None:
    clock = Clock()
    crowd = Crowd(clock)
    own = keys(0, 10)
    assert (crowd.relays, crowd.peers(own)) == (0, 10)
    crowd.heard("two", words(keys(5, 20), 15))
    crowd.heard("three", words(keys(100, 101), 1))
    assert (crowd.relays, crowd.peers(own)) == (2, 21)
    clock.now = GONE_S - 1
    crowd.heard("two", words(keys(5, 21), 16))
    assert crowd.peers(own) == 22
    clock.now = GONE_S + 1
    assert (crowd.relays, crowd.peers(own)) == (1, 21)
    clock.now = 3 * GONE_S
    assert (crowd.relays, crowd.peers(own)) == (0, 10)


@pytest.mark.parametrize(
    "summary",
    [
        b"",
        b"\xff",
        msgspec.msgpack.encode({"connections": -1}),
        msgspec.msgpack.encode({"connections": 1, "prints": b"1234567"}),
        msgspec.msgpack.encode({"connections": 1, "registers": b"12"}),
        msgspec.msgpack.encode({"connections": 1, "more": 2}),
        msgspec.msgpack.encode({"connections": 1, "prints": b"12345678" * (EXACT + 1)}),
    ],
)
def test_what_is_no_summary_is_passed_over(summary: bytes) -> None:
    crowd = Crowd(Clock())
    crowd.heard("bad", summary)
    assert crowd.relays == 0
