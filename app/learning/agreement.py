"""Selects the right answers of peers that a lesson may teach: those written as more than half of a family's
authors write.

A model that imitates a right answer learns all of it: an advertisement, a foreign alphabet, wrong work, a
number in front. So an answer is taught only if

- its work has no false equation (`app.sapo.reading.expression.has_false_equation`), and its characters are
  plain or occur in its question;
- each word is its question's own, is part of the checked result, or is written by more than half of the
  authors. A word that most of the family's questions contain ("find") is not a question's own. Beyond the words
  of questions only words of calculating (`WORKING_WORDS`) are shared in this way, and those that two trusted
  authors use;
- each three neighbouring signs (`text_pattern`) occur in answers of more than half of the authors;
- it has no habit of its author: three to eight neighbouring characters or signs in far more of this author's
  answers than in those of most authors, such as a number in front of everything or a step that is done twice;
- it shows work, unless most authors mostly answer without, and it is not far longer than most authors' answers.

Words, characters, patterns and habits are counted by author. So half of a family's keys can keep it from being
taught, and more than half decide what is taught. Pure functions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.sapo.asking import extract_answer, shows_work
from app.sapo.groups import GroupRecord, is_single_right_answer
from app.sapo.reading.expression import has_false_equation

WORKING_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
a add added all and answer are as at because both but by calculate check common count difference digit
digits divide divided divides dividing divisible divisor divisors each equal equals even factor factors
false final find first for from get gets give given gives greatest has have hence if in into is it its
largest last least left let letter letters means minus more multiple multiples multiplied multiply next no
not now number numbers odd of on one or over plus product quotient remainder remaining result reverse right
same second simplified simplify since smallest so solution solve step steps subtract subtracted sum take
than that the then there therefore third this three thus times to total true two value we which with word
words yes zero
""",
    )
)
"""Words that work may have in any family once most authors use them: nothing can be sold with these."""
LONGER = 1.5
"""An answer may be this many times as long as the longest answers of most authors."""
HABIT_SHARE, HABIT_TIMES, HABIT_ERRORS = 0.12, 2.5, 4.0
"""A habit is in this share of an author's answers, in this many times the share of most authors, and beyond it
by this many standard errors of the difference."""
PLAIN_SHARE, PLAIN_TIMES, PLAIN_NUMBER = 0.5, 8.0, 4
"""It is one without that error, where an author has few answers: in this share and number of them, and in this
many times the share of most authors."""
_FORM, _RUNS = 3, (3, 5, 8)
"""Neighbouring signs that authors must share, and lengths in which habits are looked for."""


@dataclass(frozen=True)
class _RightAnswer:
    """A right answer and what may be said to its question. `own_words` are the words of this question alone."""

    group: GroupRecord
    text: str
    own_words: frozenset[str]

    @cached_property
    def words(self) -> set[str]:
        """The words of its work that neither its question nor its result explains."""
        own = {word.lower() for word in self.own_words}
        letters = {letter for word in own for letter in word}
        return {word for word in words(_work(self.text)) if word not in own and word not in letters}

    @cached_property
    def forms(self) -> set[str]:
        """Three neighbouring signs each."""
        return _runs(text_pattern(self.text, self.group.question, self.own_words), _FORM)

    @cached_property
    def traits(self) -> set[str]:
        """Its runs of characters, and of signs in which a number is one and in which it is as long as it is."""
        found = {run for n in _RUNS for run in _runs(f"^{self.text}$", n)}
        for lengths in (False, True):
            signs = text_pattern(self.text, self.group.question, self.own_words, lengths)
            found |= {f"\0{run}" for n in _RUNS for run in _runs(signs, n)}
        return found


def teachable(groups: Sequence[GroupRecord], trusted: set[str]) -> dict[str, list[str]]:
    """Returns, by group id, the right answers that a lesson may teach, shortest first, because extra length is
    accidental and costs time. All `groups` are of one family and level; `trusted` are the keys of authors who
    are vouched for."""
    authors = {group.key for group in groups}
    common = _common_words({group.question for group in groups})
    found = [
        _RightAnswer(group, text, _own_words(group.question, common))
        for group in groups
        if not is_single_right_answer(group.rewards_G)
        for text in right_answers(group)
    ]
    by_author: dict[str, list[_RightAnswer]] = {}
    for one in found:
        by_author.setdefault(one.group.key, []).append(one)
    known = _agreed(by_author, lambda one: one.words, len(authors))
    relied = _agreed({key: by_author[key] for key in trusted & by_author.keys()}, lambda one: one.words, 2)
    known &= WORKING_WORDS | common | relied | _LETTERS
    shared = _agreed(by_author, lambda one: one.forms, len(authors))
    habits = _habits(by_author, len(authors))
    direct = [sum(not shows_work(one.text) for one in own) / len(own) for own in by_author.values()]
    unworked = _most(direct, len(authors)) > _HALF
    longest = LONGER * _most([max(len(one.text) for one in own) for own in by_author.values()], len(authors))
    kept: dict[str, list[str]] = {}
    for one in found:
        if (
            len(one.text) <= longest
            and (unworked or shows_work(one.text))
            and not has_false_equation(one.text)
            and set(one.text) <= _PLAIN | set(one.group.question)
            and one.words <= known
            and one.forms <= shared
            and not one.traits & habits[one.group.key]
        ):
            kept.setdefault(one.group.id, []).append(one.text)
    return kept


def right_answers(scored: GroupRecord) -> list[str]:
    """Returns a group's distinct right answers that were finished, shortest first."""
    found = {
        completion
        for completion, reward, finished in zip(
            scored.completions_G, scored.rewards_G, scored.finished_G, strict=True
        )
        if reward and finished
    }
    return sorted(found, key=lambda text: (len(text), text))


def words(text: str) -> list[str]:
    """Returns the runs of letters in a text, in lower case.

    >>> words("So 3 x 4 = 12. It's done #12")
    ['so', 'x', 'it', 's', 'done']
    """
    return _WORD.findall(text.lower())


def numbers(text: str) -> set[str]:
    """Returns the runs of digits in a text."""
    return set(_NUMBER.findall(text))


def text_pattern(text: str, question: str, own_words: Iterable[str], lengths: bool = False) -> str:
    """Returns a text between ^ and $ with a sign for each number and word. A number is q if it is in the
    question, z if it has a superfluous zero, r if it is in the result, else 0. A word is w if it is one of
    `own_words`, a letter of one, or in the result, else a, A or T by its case. With `lengths` a number has as
    many signs as digits, three at most.

    >>> text_pattern("54=2*027 2 So GO #2", "54 and 6?", [])
    '^q=r*z r T A #r$'
    >>> text_pattern("4 = 5 - 1.50 #4", "5 - 1.5", [], lengths=True)
    '^r = q - q.zz #r$'
    >>> text_pattern("p1e2n3 #nep", "Spell this: pen", ["pen"])
    '^w0w0w0 #w$'
    """
    result = extract_answer(text) or ""
    asked, earned, named = numbers(question), numbers(result), set(_WORD.findall(result))
    own = {*own_words, *(letter for word in own_words for letter in word)}
    signs: list[str] = []
    before = ""
    for part in _PART.findall(text):
        if part[0].isdigit():
            sign = "q" if part in asked else "z" if _spare(part, before) else "r" if part in earned else "0"
            signs.append(sign * (min(len(part), _LONG) if lengths else 1))
        elif _WORD.fullmatch(part):
            single = len(part) == 1
            case = "a" if part.islower() else "A" if part.isupper() and not single else "T"
            signs.append("w" if part in own or part in named else case)
        else:
            signs.append(part)
        before = part
    return f"^{''.join(signs)}$"


def _spare(number: str, before: str) -> bool:
    """Whether digits have a zero too many: in front, or at the end behind a point."""
    return len(number) > 1 and number[0] == "0" if before != "." else number[-1] == "0"


def _runs(text: str, length: int) -> set[str]:
    return {text[at : at + length] for at in range(max(1, len(text) - length + 1))}


def _work(completion: str) -> str:
    """The answer's text without the result, which was checked; in families of words the result is a word that
    the question lacks."""
    result = extract_answer(completion)
    at = completion.rfind(result) if result else -1
    return completion[:at] + completion[at + len(result or "") :] if at >= 0 else completion


def _own_words(question: str, common: set[str]) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(question) if word.lower() not in common)


def _common_words(questions: set[str]) -> set[str]:
    """Words in lower case that more than half of the questions have."""
    counts = Counter(word for question in questions for word in set(words(question)))
    return {word for word, number in counts.items() if 2 * number > len(questions)}


def _agreed(
    by_author: Mapping[str, Sequence[_RightAnswer]], of: Callable[[_RightAnswer], set[str]], authors: int
) -> set[str]:
    """What more than half of this many authors have in their right answers."""
    counts = Counter(one for own in by_author.values() for one in set().union(*map(of, own)))
    return {one for one, number in counts.items() if 2 * number > authors}


def _most(figures: Iterable[float], authors: int) -> float:
    """The figure that more than half of the authors reach, 0 if fewer have one.

    >>> _most([1.0, 4.0, 3.0], 3), _most([1.0, 4.0], 2), _most([4.0], 2)
    (3.0, 1.0, 0.0)
    """
    ranked = sorted(figures, reverse=True)
    return ranked[authors // 2] if len(ranked) > authors // 2 else 0.0


def _habits(by_author: Mapping[str, Sequence[_RightAnswer]], authors: int) -> dict[str, set[str]]:
    """By author, the traits that its answers have far more often than those of most authors. They spoil no one
    else's answers, or a key that writes what others write now and then would keep these out."""
    counts = {key: Counter(trait for one in own for trait in one.traits) for key, own in by_author.items()}
    sizes = {key: len(own) for key, own in by_author.items()}
    found: dict[str, set[str]] = {key: set() for key in counts}
    for key, own in counts.items():
        for trait, number in own.items():
            share = number / sizes[key]
            if share < HABIT_SHARE:
                continue
            ranked = sorted(((counts[one][trait] / sizes[one], sizes[one]) for one in counts), reverse=True)
            usual, size = ranked[authors // 2] if len(ranked) > authors // 2 else (0.0, 1)
            pooled = (number + usual * size) / (sizes[key] + size)
            error = math.sqrt(pooled * (1 - pooled) * (1 / sizes[key] + 1 / size))
            plain = share >= PLAIN_SHARE and number >= PLAIN_NUMBER and share > PLAIN_TIMES * usual
            if plain or (share > HABIT_TIMES * usual and share - usual > HABIT_ERRORS * error):
                found[key].add(trait)
    return found


_HALF = 0.5  # a majority of authors
_LONG = 3  # longer parts count as this long
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]+")
_PART = re.compile(r"\d+|[^\W\d_]+|.", re.DOTALL)
_PLAIN = frozenset(map(chr, range(32, 127))) | frozenset("\n\u00d7\u00f7\u2212")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
