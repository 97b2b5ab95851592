"""What a peer showed: claimed where it was so, and nowhere else."""

from __future__ import annotations

from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.node.history.aha import CHANCE, Aha, ahas, all_after, first_within, permuted
from app.node.record.records import Round

PEER, FAMILIES = "cosy-firefly-7467", ("count_bits", "gcd", "lcm", "base_conversion")


def run(rng: Random, rounds: int = 120, taught: bool = True, late: float = 0.015) -> list[Round]:
    """A node that fails at every family until it knows how: from a peer (where it is `taught`), or by itself.
    Peers begin to show a family at some round, and from then on show it often."""
    begins = {family: 1 + int(rng.expovariate(late)) for family in FAMILIES}
    alone = {family: 1 + int(rng.expovariate(late)) for family in FAMILIES}
    made, knows = [], dict.fromkeys(FAMILIES, False)
    for number in range(1, rounds + 1):
        played = {
            family: (1, sum(rng.random() < (0.4 if knows[family] else 0.0) for _ in range(8)), 8)
            for family in FAMILIES
        }
        shown = tuple(
            (PEER, family, 1)
            for family in FAMILIES
            if number == begins[family] or (number > begins[family] and rng.random() < 0.4)
        )
        for family in FAMILIES:
            knows[family] |= number >= alone[family] and not taught
            knows[family] |= taught and any(name == family for _, name, _ in shown)
        made.append(
            Round(
                round=number, at=10.0 * number, seconds=9.0, informative_own=0, train_solved=0.0,
                families=played, shown=shown,
            )
        )  # fmt: skip
    return made


def claimed() -> tuple[list[Round], Aha]:
    """Rounds of which something is claimed, and that."""
    runs = (run(Random(seed)) for seed in range(20))
    return next((rounds, found[0]) for rounds in runs if (found := ahas(rounds)))


def claims(runs: list[list[Round]]) -> int:
    return sum(len(ahas(one)) for one in runs)


def test_what_a_peer_showed_is_found_and_shuffled_peers_showed_nothing() -> None:
    runs = [run(Random(seed)) for seed in range(100)]
    true = claims(runs)
    false = claims([permuted(one, Random(seed)) for seed, one in enumerate(runs)])
    assert true >= 100  # of 400 families, many of which were shown before the node had failed for long
    assert false <= CHANCE * true


def test_who_finds_out_alone_owes_nobody() -> None:
    """Peers show the same, at moments of their own."""
    runs = [run(Random(seed), taught=False) for seed in range(200)]
    assert claims(runs) <= CHANCE * len(runs)


def test_a_claim_says_who_what_and_when() -> None:
    _, aha = claimed()
    assert isinstance(aha, Aha)
    assert aha.peer == PEER and aha.solved == aha.shown + 1 and aha.seconds == 10.0
    assert aha.failed == 8 * aha.shown and 0 < aha.right < aha.answered and aha.p <= CHANCE / 2


def test_few_failures_prove_nothing() -> None:
    """Shown at once, or solved at once: whether it was the peer cannot be told."""
    rounds = run(Random(2))
    assert not ahas(rounds[-30:]) and not ahas([])
    easy = [msgspec.structs.replace(one, families={"gcd": (1, 4, 8)}) for one in rounds]
    assert not ahas(easy)


def test_a_lucky_answer_is_no_success() -> None:
    rounds, aha = claimed()
    for at in range(aha.solved, len(rounds)):
        wrong = rounds[at].families | {aha.family: (1, 0, 8)}
        rounds[at] = msgspec.structs.replace(rounds[at], families=wrong)
    assert aha.family not in {one.family for one in ahas(rounds)}


@given(st.integers(1, 40), st.integers(0, 40), st.data())
def test_the_moments_of_the_first_make_one(rounds: int, shown: int, data: st.DataObject) -> None:
    shown = min(max(1, shown), rounds)
    assert abs(sum(first_within(rounds, shown, at, 1) for at in range(rounds)) - 1) < 1e-9
    before = data.draw(st.integers(0, 30))
    assert 0 < all_after(before, 8, data.draw(st.integers(1, 8))) <= 1
