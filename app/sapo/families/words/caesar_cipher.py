"""Text whose letters were moved along the alphabet."""

from __future__ import annotations

from app.sapo import reading
from app.sapo.families.family import Content, Entry, Family, FamilyKind


def _score(answer: str, entry: Entry) -> float:
    """1 for the clear text, in any case: the cipher text is all capitals and carries none."""
    return float(answer.isascii() and " ".join(reading.words(answer.upper())) == entry["answer"])


def _sound(entry: Entry) -> bool:
    """Whether the clear text is what the cipher text decodes to (an É does not), and long enough to be
    recognised: half of level 0 is a single letter or `MR`, for which other rotations are as good."""
    metadata = entry["metadata"]
    clear = "".join(
        chr((ord(character) - ord("A") - metadata["rotation"]) % 26 + ord("A")) if character != " " else " "
        for character in metadata["cipher_text"]
    )
    return clear == entry["answer"] and sum(character != " " for character in clear) >= 5


def _clear(entry: Entry) -> str:
    """The few clear texts come with many rotations: who knows them has to recognise one, not to decipher it."""
    return str(entry["answer"])


def _content(entry: Entry) -> Content:
    """The clear text: few come with many rotations, and who knows them has to recognise one, not to decipher
    it."""
    return str(entry["answer"])


FAMILY = Family(
    name="caesar_cipher",
    title="Caesar cipher",
    kind=FamilyKind.WORDS,
    levels=(
        dict(min_words=1, max_words=6, min_rotation=1, max_rotation=3),
        dict(min_words=2, max_words=8, min_rotation=1, max_rotation=8),
        dict(min_words=3, max_words=12),
        dict(min_words=5, max_words=20),
    ),
    content=_content,
    score=_score,
    sound=_sound,
    held_out_share=3,  # the library's text has some 200 short sentences
)
