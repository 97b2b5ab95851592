"""Families whose answer is a piece of text: spelling, ciphers, other bases, printed output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.sapo.scorers import reading


def exact(answer: str, entry: Mapping[str, Any]) -> float:
    """1 for the truth, character by character: case counts, white space around does not."""
    return float(answer.strip(reading.SPACE) == entry["answer"])


def caesar(answer: str, entry: Mapping[str, Any]) -> float:
    """1 for the clear text, in any case: the cipher text is all capitals and carries none."""
    return float(answer.isascii() and " ".join(reading.words(answer.upper())) == entry["answer"])


def sound_caesar(entry: Mapping[str, Any]) -> bool:
    """Whether the clear text is what the cipher text decodes to (an É does not), and long enough to be
    recognised: half of level 0 is a single letter or `MR`, for which other rotations are as good."""
    metadata = entry["metadata"]
    clear = "".join(
        chr((ord(character) - ord("A") - metadata["rotation"]) % 26 + ord("A")) if character != " " else " "
        for character in metadata["cipher_text"]
    )
    return clear == entry["answer"] and sum(character != " " for character in clear) >= 5


def sound_letters(entry: Mapping[str, Any]) -> bool:
    """Whether it is a letter that is asked for and its count is the same with and without capitals."""
    metadata = entry["metadata"]
    letter = metadata["target_letter"]
    return "a" <= letter <= "z" and "".join(metadata["span"]).count(letter) == int(entry["answer"])
