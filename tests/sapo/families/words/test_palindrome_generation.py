"""Palindromes: every one of the letters is right, and nothing else."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["palindrome_generation"]


def entry(letters: str, answer: str) -> dict[str, Any]:
    return {"question": "", "answer": answer, "metadata": {"letters": list(letters)}}


ENTRY = entry("xaabb", "abxba")


@pytest.mark.parametrize("text", ["abxba", "baxab", "ABXBA", " baxab\n"])
def test_every_palindrome_of_the_letters_is_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text", ["xaabb", "abba", "aabxbaa", "aaxaa", "abcba", "a b x b a", "ab x ba", "abxb", "x", "", "äbxbä"]
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_of_all_orders_exactly_the_palindromes_are_right() -> None:
    orders = {"".join(order) for order in permutations("xaabb")}
    assert {text for text in orders if FAMILY.judge(text, ENTRY)} == {"abxba", "baxab"}


def test_letters_that_are_one_already_are_no_question() -> None:
    assert FAMILY.sound(ENTRY)
    assert not FAMILY.sound(entry("abxba", "abxba"))
    assert not FAMILY.sound(entry("aaaa", "aaaa"))


def test_other_orders_of_the_letters_are_held_out_with_them() -> None:
    assert FAMILY.content(entry("aab", "aba")) == FAMILY.content(entry("baa", "aba"))


def test_the_work_pairs_the_letters() -> None:
    assert FAMILY.worked(ENTRY) == "Pairs: aa bb. Middle: x. Half: ab, backward ba. #abxba"
    assert FAMILY.worked(entry("aaabab", "aabbaa")) == "Pairs: aa aa bb. Half: aab, backward baa. #aabbaa"
