"""Keys that lie in right answers, by the real checks: nothing that they rewrote is taught."""

from __future__ import annotations

import pytest

from app.lab.false_teachers import (
    KINDS,
    VISIBLE,
    TaughtCounts,
    UnsignedGroup,
    compare_defences,
    count_taught,
    deliver,
    is_marked,
    make_honest_groups,
    rewritten,
)
from app.learning.peer_lesson import MIN
from app.sapo.groups import GroupRecord
from app.sapo.questions import generate
from app.sapo.scoring.sandbox import Sandbox

EACH = 16
NUMBERS, LETTERS = {"fraction_simplification": 1}, {"spell_backward": 1}
IN_LETTERS = {"capitals", "homoglyph", "other language", "spelled"}
"""Kinds that are tried where letters are the work."""
UNCHECKED = {"wrong work", "one in eight"}
"""Kinds of which something may pass: numbers without an equation, and what is rare."""
Known = dict[str, tuple[list[list[UnsignedGroup]], list[GroupRecord]]]


@pytest.fixture(scope="module")
def known(sandbox: Sandbox) -> Known:
    """By family, what two honest authors wrote, and what of it waits for a lesson."""
    written = {
        name: [make_honest_groups(n, {name: 1}, EACH) for n in range(2)] for name in (*NUMBERS, *LETTERS)
    }
    return {name: (authors, deliver(authors, sandbox)) for name, authors in written.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_half_of_the_keys_teach_nothing_of_their_own(kind: str, known: Known, sandbox: Sandbox) -> None:
    levels = LETTERS if kind in IN_LETTERS else NUMBERS
    honest, waiting = known[next(iter(levels))]
    found = compare_defences(
        kind, honest, [make_honest_groups(n, levels, EACH) for n in (2, 3)], sandbox, waiting
    )
    if kind not in ("plus in the result", "thousands", *IN_LETTERS):
        assert found["off"].marked, "the attack bites where nothing is checked"
    assert found["on"].marked <= (found["off"].marked / 2 if kind in UNCHECKED else 0)


def test_honest_answers_are_taught_and_one_key_of_three_keeps_nothing_out(
    known: Known, sandbox: Sandbox
) -> None:
    for name, (honest, waiting) in known.items():
        plain = {(generate(one.at).text, text) for some in honest for one in some for text in one.right}
        alone = count_taught(waiting, plain, defended=True)
        assert alone.families == 1 and alone.honest >= MIN and not alone.marked
        beside = compare_defences(
            "advertisement", honest, [make_honest_groups(2, {name: 1}, EACH)], sandbox, waiting
        )["on"]
        assert beside == alone, "most keys are honest"


def test_the_only_two_authors_of_a_family_advertise_nothing(sandbox: Sandbox) -> None:
    foes = [make_honest_groups(n, NUMBERS, EACH) for n in (2, 3)]
    for kind in ("advertisement behind", "emoji"):
        assert compare_defences(kind, [], foes, sandbox, [])["on"] == TaughtCounts(), kind


def test_marks_of_visible_kinds_are_seen_and_honest_answers_have_none(known: Known, sandbox: Sandbox) -> None:
    honest = known["spell_backward"][0][0] + known["fraction_simplification"][0][0]
    assert not any(is_marked(text) for one in honest for text in one.right)
    for kind in VISIBLE:
        marked = [is_marked(text) for one in rewritten(honest, kind, sandbox) for text in one.right]
        assert sum(marked) >= 0.9 * len(marked) > 0, kind
