"""Copycats are found, and models that only think alike are not taken for them."""

from __future__ import annotations

import doctest
from math import log
from random import Random

import pytest

from app.learning import copies
from app.learning.choosing import PeerOffer, Records
from app.learning.copies import Copies
from app.sapo.recipes import RECIPES

G = 8
POLICY = [0.5, 0.2, 0.1, *[0.01] * 15, *[0.0005] * 100]
"""Chances of the answers to a question, as a trained starter's are: some obvious, most hardly ever given."""


def test_the_examples_in_the_docstrings_hold() -> None:
    results = doctest.testmod(copies)
    assert results.attempted >= 1 and results.failed == 0


def drawn(rng: Random) -> list[str]:
    return [str(answer) for answer in rng.choices(range(len(POLICY)), POLICY, k=G)]


def rounds_until_found(rng: Random, copied: float, questions: int) -> int | None:
    """After how many common questions a key of whose answers so many are copied counts as the other."""
    known = Copies()
    for number in range(questions):
        original = drawn(rng)
        copy = [rng.choice(original) if rng.random() < copied else own for own in drawn(rng)]
        answers = [(text, log(POLICY[int(text)])) for text in copy]
        known.compare("copycat", answers, {"author": original, "bystander": drawn(rng)})
        assert known.name("bystander") == "bystander"
        if known.name("copycat") == known.name("author"):
            return number + 1
    return None


@pytest.mark.parametrize("seed", range(5))
def test_who_copies_is_found_and_who_thinks_alike_is_not(seed: int) -> None:
    rng = Random(seed)
    assert rounds_until_found(rng, 0.0, 2000) is None
    for copied, questions in ((1.0, 40), (0.5, 100), (0.2, 600)):
        assert rounds_until_found(rng, copied, questions) is not None


def test_copies_share_one_place_and_one_record() -> None:
    records, recipe = Records(), RECIPES["default"]
    rare = [(f"work {g}", -30.0) for g in range(G)]
    for cat in ("x", "y", "z"):
        records.compare(cat, rare, {"a": [text for text, _ in rare]})
    offers = [PeerOffer(peer=peer, age=0, rewards_G=(1, 0)) for peer in "abcdexyz" for _ in range(8)]
    for seed in range(50):
        chosen = [offers[at].peer for at in records.choose(recipe, offers, 8, Random(seed))]
        assert len(chosen) == 8 and sum(peer in "axyz" for peer in chosen) <= 2
    for _ in range(20):
        records.judge("x", 0, 4)
    doubted = [offers[at].peer for n in range(50) for at in records.choose(recipe, offers, 8, Random(n))]
    assert sum(peer in "axyz" for peer in doubted) < 20
