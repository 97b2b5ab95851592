from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from app.sapo import seeds
from app.sapo.families import FAMILIES
from app.sapo.questions import MAX_SEED

identities = st.binary(max_size=40)
rounds = st.integers(0, 10**9)


@given(identities, rounds, st.integers(0, 10**4), st.integers(0, 200))
def test_training_seeds_stay_in_their_range(identity: bytes, round: int, slot: int, attempt: int) -> None:
    assert 2**41 <= seeds.training_seed(identity, round, slot, attempt) <= MAX_SEED


@given(st.text(max_size=30), st.integers(0, 9), st.integers(0, 10**6))
def test_probe_seeds_stay_in_theirs(family: str, level: int, item: int) -> None:
    assert 0 <= seeds.probe_seed(family, level, item) < 2**40


def test_the_ranges_do_not_meet() -> None:
    assert seeds.PROBE_SEEDS.stop <= seeds.TRAINING_SEEDS.start
    assert seeds.TRAINING_SEEDS.start + 2**52 - 1 in seeds.TRAINING_SEEDS
    assert seeds.TRAINING_SEEDS.stop - 1 == MAX_SEED


def test_nodes_rounds_and_slots_walk_different_lists() -> None:
    drawn = {
        seeds.training_seed(identity, round, slot)
        for identity in (b"a", b"b", b"c")
        for round in range(50)
        for slot in range(8)
    }
    assert len(drawn) == 3 * 50 * 8


def test_parts_are_kept_apart() -> None:
    variants = [("ab", "c"), ("a", "bc"), ("abc",), (b"ab", "c"), (1, 2), (12,), ("1", 2), ("1", "2")]
    assert len({seeds.hashed_seed(*parts) for parts in variants}) == len(variants)


def test_purposes_are_independent() -> None:
    assert len({seeds.sampling_seed(b"n", 3, purpose) for purpose in ("own", "probe", "mix")}) == 3


def test_seeds_are_the_same_in_another_process_and_forever() -> None:
    line = "from app.sapo import seeds; print(seeds.training_seed(b'node', 7, 3))"
    other = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert other.stdout.split() == [str(seeds.training_seed(b"node", 7, 3))]
    assert seeds.training_seed(b"node", 7, 3) == PINNED  # a change would make every node repeat its questions


PINNED = 2437925638392795


def test_a_share_of_contents_is_held_out_and_a_family_may_say_which() -> None:
    chain_sum, coin_flip = FAMILIES["chain_sum"], FAMILIES["coin_flip"]
    contents = [
        chain_sum.content_hash({"answer": f"{n + 1}", "metadata": {"expression": f"{n} + 1"}})
        for n in range(2, 8002)
    ]
    assert 0.11 < sum(map(chain_sum.holds_out, contents)) / 8000 < 0.14
    assert 0.31 < sum(map(coin_flip.holds_out, contents)) / 8000 < 0.36
    assert chain_sum.content_hash({"answer": "3", "metadata": {"expression": "1 + 2"}}) == PINNED_CONTENT


PINNED_CONTENT = 4313255860543041
