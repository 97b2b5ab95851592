"""A skill: what one adapter has learned, under a name. It makes the prompt and reads the reply, for training,
measuring, trying it and every way of asking alike."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cached_property

from app.sapo.asking import Example, Messages, Way, messages
from app.sapo.sets.bounds import MAX_TRUTH
from app.sapo.sets.checks import score_answer
from app.sapo.sets.question_set import OWNERS_PREFIX, QuestionSet, examples, family
from app.sapo.sets.tables import clean_cell

_MIN_TOKENS, _MAX_TOKENS = 8, 256
WORKED_TOKENS = 64
"""Maximum tokens of an answer with its work."""
MAX_CHARACTERS_READ = 500
"""Characters of a text to sort that are read. Mails twice as long were sorted right in 98 of 100 by their
beginning, and a pass over them whole takes nearly twice as long (LOG.md)."""


class Skill:
    """What is learned from one of the owner's question sets. `slug` is its name in other programs."""

    def __init__(self, made: QuestionSet) -> None:
        self.made, self.name, self.slug = made, made.name, slug(made.name)
        self.family, self.labels, self.marked = made.family_name, made.labels, made.marked
        self.origin = f"{OWNERS_PREFIX}{made.mark}"
        """What the rows aside and the order of the lesson are drawn from: it stays when rows are added."""

    @property
    def instruction(self) -> str:
        return self.made.asked_with

    @cached_property
    def examples(self) -> list[Example]:
        """The questions with the answers that it is taught."""
        return examples(self.made)

    @cached_property
    def amended(self) -> list[Example]:
        """Those of the examples whose rows were added or corrected later, the latest first."""
        rows = {row.question for row in self.made.rows if row.amended}
        return [one for one in reversed(self.examples) if one.question in rows]

    @property
    def held_out(self) -> int | None:
        """Number of held-out questions; None if there are too many to count."""
        held = family(self.made).held_out
        return None if held is None else len(held)

    @cached_property
    def way(self) -> Way:
        """How it is asked: the instruction as the system line, the text as it is, the beginning of one to sort,
        and the answer alone unless work comes first."""
        longest = max((len(one.answer.encode()) for one in self.examples), default=MAX_TRUTH)
        most = WORKED_TOKENS if self.marked else min(_MAX_TOKENS, max(_MIN_TOKENS, longest + 2))
        reads = MAX_CHARACTERS_READ if self.labels else None
        return Way(name=self.slug, system=self.instruction, max_tokens=most, marked=self.marked, reads=reads)

    @property
    def max_tokens(self) -> int:
        assert self.way.max_tokens is not None
        return self.way.max_tokens

    def prompt(self, text: str) -> Messages:
        """Returns the question as chat messages."""
        return messages(clean_cell(text), self.way)

    def agree(self, reply: str, taught: str) -> bool:
        """Whether a reply has the answer of one that is taught."""
        said, true = self.read(reply), self.read(taught)
        return said is not None and true is not None and score_answer(self.made.rule, said, true) == 1.0

    def read(self, reply: str) -> str | None:
        """Returns the answer in a reply, None if there is none."""
        return family(self.made).read(reply)


def learned_sentence(skill: Skill, right: float) -> str:
    """Returns the sentence that a skill's rounds bring nothing more, with the share of rows aside that were
    right, and what would help."""
    said = f"{skill.name} is learned as far as its rows go: more rounds bring nothing."
    counts = Counter(one.answer for one in skill.examples)
    if right < 1 and skill.labels:
        rare = min(skill.labels, key=lambda label: counts[label])
        return f"{said} More rows would help, first of {rare}, which has {counts[rare]}."
    return said if right == 1 else f"{said} More rows would help."


def slug(name: str) -> str:
    """Returns a name for use in commands and by other programs: letters, digits and hyphens.

    >>> slug("Country -> continent"), slug("Größe & Maß"), slug("...")
    ('country-continent', 'grosse-mass', 'skill')
    """
    plain = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:48] or "skill"
