"""Texts that say what they mean: their English, one meaning each, and forms that the text leaves open."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import pytest

from app.sapo.families import FAMILIES
from app.sapo.families.rows import rivals
from app.sapo.questions import MAX_INDEX, _dataset, draw
from tests.sapo.levels import spread

FAULTS = {
    "a before a vowel": r"(?<!of )\b[Aa] (?!one\b|once\b|uni|use|eu)[aeio]\w+|\b[Aa] un[^i]\w+",
    "an before a consonant": r"\b[Aa]n (?!hour|honest|heir)[b-df-hj-np-tv-z]\w+",
    "no space after a sentence": r"[.?!](?=[A-Z][a-z])",
    "two stops": r"(?<![.])[.,;:?!][.;:?!](?![.])|[.?!],(?<!e\.g\.,)(?<!etc\.,)",
    "space before a stop": r"(?<=[A-Za-z)]) [.,;?!](?=\s|$)",
    "one of many": r"\b(?<![.-])1 (?!is\b|has\b|bits\b)[a-z]+s\b",
    "many of one": r"\b(?:[2-9]|[1-9][0-9]) (?:slice|brother|sister|friend|head|animal|day|year)\b",
    "plural": r"\b(?:deers|sheeps|shrimps|\w+[b-df-hj-np-tv-z]ys|\w+(?:[er]ch|oach|sh)s|mantiss|heros)\b",
    "spelling": r"hexidecimal|unsramble|compliment\b|Provide you |is determine|dices?\b(?=\.)|a arith",
    "either of two": r"\(s\)",
    "ordinal": r"[0-9]-(?:st|nd|rd|th)\b",
    "preposition": r"\b(?:yearns|pines) (?!for)|\b(?:exults|dotes) (?!in|on)",
    "odds": r"\bodds\b",
}
OF_OTHERS = re.compile(r'(?s)```.*?```|"[^"]*"|: [^:]*$')
"""Mazes, quoted text, and what follows the last colon."""
STRANGE = {"bf": "", "caesar_cipher": "", "rectangle_count": ""}
"""Nothing but signs and cipher text."""


@spread(1)
def test_the_english_of_a_text(family: str, level: int) -> None:
    for seed in range(12):
        text = draw(family, level, (seed + 31) * 10**7).text
        said = OF_OTHERS.sub(" ", text) if family in ("maze", "letter_counting", "letter_jumble") else text
        for fault, pattern in FAULTS.items() if family not in STRANGE else ():
            found = re.search(pattern, said)
            assert found is None, (fault, found and said[max(0, found.start() - 30) : found.end() + 30])


def changed(family: str, **metadata: Any) -> dict[str, Any]:
    entry = draw(family, 0, 10**8).entry
    return {**entry, "metadata": {**entry["metadata"], **metadata}}


def test_a_negative_base_stands_in_parentheses() -> None:
    texts = [draw("power_function", level, seed * 10**7).text for level in range(4) for seed in range(60)]
    assert sum("(-" in text for text in texts) > 30
    assert not any(re.search(r"(?<!\()-[0-9.]+\^", text) for text in texts)


def test_no_date_is_read_in_two_ways() -> None:
    texts = [draw("calendar_arithmetic", level, seed * 10**7).text for level in range(3) for seed in range(300)]
    dates = [found for text in texts if (found := re.search(r"([0-9]{2})/([0-9]{2})/[0-9]{4}", text))]
    assert len(dates) > 20 and all(found[2] > "12" or found[1] == found[2] for found in dates)


def test_a_maze_says_how_one_steps() -> None:
    assert all("up, down, left or right" in draw("maze", level, 5).text for level in range(3))


@pytest.mark.parametrize(
    ("shown", "answer"),
    [([-1, -1, -2, -2, -3], -4), ([2, 5, 7, 12, 19], 26), ([10, 5, 2, 1], 0), ([3, 4, 3, 4, 3], 5)],
)
def test_a_sequence_with_a_second_plain_rule_is_no_question(shown: list[int], answer: int) -> None:
    entry = {"question": "", "answer": str(answer), "metadata": {"sequence": [*shown, answer]}}
    assert not FAMILIES["number_sequence"].sound(entry)


@pytest.mark.parametrize("level", range(3))
def test_no_plain_rule_gives_a_row_another_output(level: int) -> None:
    """Some rows of the library have two, and none of ours."""
    dataset, dropped = _dataset("arc_1d", level), 0
    for item in range(150):
        dataset.seed = item * MAX_INDEX
        metadata = dataset[0]["metadata"]
        seen = [(one["input"], one["output"]) for one in metadata["train_examples"]]
        test = metadata["test_example"]
        if rivals(seen, test["input"], test["output"]):
            dropped += 1
            assert not FAMILIES["arc_1d"].accepts(level, dataset[0])
    assert 0 < dropped < 15


def test_nobody_eats_more_pieces_than_there_are() -> None:
    for seed in range(400):
        question = draw("gsm_symbolic", 0, seed * 10**7)
        if pieces := re.search(r"into ([0-9]+) pieces", question.text):
            assert int(question.entry["answer"]) <= int(pieces[1])


@pytest.mark.parametrize(
    ("answer", "score"),
    [("P → R", 1), ("¬P ∨ R", 1), ("P → Q", 0.25), ("P ∨ ¬P", 0), ("R", 0), ("(P → Q) ∧ (Q → R)", 0.25)],
)
def test_the_rule_of_a_conclusion_is_the_one_in_the_text(answer: str, score: float) -> None:
    entry = changed("propositional_logic", premises=["(P → Q)", "(Q → R)"], variables=["P", "Q", "R"])
    text = FAMILIES["propositional_logic"].wording(entry)
    assert "1. (P → Q)\n2. (Q → R)\n" in text
    assert "from none of them alone" in text and "fewer letters than the two shortest" in text
    assert FAMILIES["propositional_logic"].judge(answer, entry) == score


LISTED = ["BAT", "CAT", "COG", "COT", "DOG", "DOT"]


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("CAT,COT,COG,DOG", 1),
        ("cat, cot, dot, dog", 1),
        ("CAT,BAT,CAT,COT,COG,DOG", 0),  # a word twice
        ("CAT,CAG,COG,DOG", 0),  # an English word that is not listed
        ("COT,COG,DOG", 0),  # without the first word
    ],
)
def test_a_ladder_has_the_words_that_the_text_lists_each_once(answer: str, score: float) -> None:
    text = draw("word_ladder", 0, 10**8).text
    assert "Use only these words, each at most once: " in text and "Give all words from " in text
    entry = changed("word_ladder", ladder=["CAT", "COT", "COG", "DOG"], words=LISTED)
    assert FAMILIES["word_ladder"].judge(answer, entry) == score


OPEN_FORMS = {
    "coin_flip": lambda truth: f"{float(Fraction(truth) * 100)}%",
    "complex_arithmetic": lambda truth: f"({truth})",
    "base_conversion": str.upper,
    "spell_backward": str.capitalize,
    **dict.fromkeys(
        ("binary_matrix", "rotate_matrix", "mini_sudoku", "manipulate_matrix", "arc_1d"),
        lambda truth: json.dumps([[int(cell) for cell in row.split()] for row in truth.split("\n")]),
    ),
}
"""The truth in a form that the text does not exclude."""


@pytest.mark.parametrize("family", OPEN_FORMS)
def test_what_the_text_does_not_say_does_not_decide(family: str) -> None:
    record = FAMILIES[family]
    for level in range(len(record.levels)):
        for seed in range(20):
            entry, other = (draw(family, level, number * 10**7).entry for number in (seed, seed + 50))
            written = OPEN_FORMS[family](record.solution(entry))
            assert record.judge(written, entry) == 1.0, written
            if record.judge(record.solution(other), entry) == 0.0:
                assert record.judge(OPEN_FORMS[family](record.solution(other)), entry) == 0.0
