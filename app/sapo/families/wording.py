"""Helpers for our own wordings of questions whose text in the library is broken or ambiguous. A wording changes
what is read, never which item is at some coordinates or what its true answer is."""

from __future__ import annotations

import re
from collections.abc import Callable

from app.sapo.families.family import Entry

_ARTICLE = re.compile(r"\b([Aa])(n?) (?=([A-Za-z][A-Za-z-]*))")
_SOUNDS_LIKE_A_CONSONANT = re.compile(r"(?:uni|use|eu|one\b|once\b)", re.IGNORECASE)
_SOUNDS_LIKE_A_VOWEL = re.compile(r"(?:hour|honest|heir|honou?r)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.?!] )[a-z]")


def replaced(*pairs: tuple[str, str]) -> Callable[[Entry], str]:
    """Returns a wording: the library's text with the first text of each pair replaced by the second."""

    def wording(entry: Entry) -> str:
        text = str(entry["question"])
        for old, new in pairs:
            text = text.replace(old, new)
        return text

    return wording


def counted(number: int, one: str, many: str = "") -> str:
    """
    >>> counted(1, "brother"), counted(2, "brother"), counted(3, "butterfly", "butterflies")
    ('1 brother', '2 brothers', '3 butterflies')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"


def fix_articles(text: str) -> str:
    """Corrects every "a" and "an" to fit the pronunciation of the next word.

    >>> fix_articles("A apple, an pear, a hour and an union"), fix_articles("plan a trip")
    ('An apple, a pear, an hour and a union', 'plan a trip')
    """
    return _ARTICLE.sub(lambda found: f"{found[1]}{'n' if _vowel(found[3]) else ''} ", text)


def _vowel(word: str) -> bool:
    if _SOUNDS_LIKE_A_CONSONANT.match(word):
        return False
    return word[0].lower() in "aeiou" or _SOUNDS_LIKE_A_VOWEL.match(word) is not None


def sentences(text: str) -> str:
    """Returns the text with each sentence capitalised.

    >>> sentences("It costs $5. croissants cost $1.")
    'It costs $5. Croissants cost $1.'
    """
    return _SENTENCE.sub(lambda found: found[0].upper(), text)
