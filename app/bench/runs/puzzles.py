"""Measures the families level by level: generation time, share of items that are valid questions, number of
distinct contents and of held-out ones, share solved without reasoning (the best constant answer and the best
shortcut), and the spellings in which the true answer is accepted."""

from __future__ import annotations

import argparse
import contextlib
import re
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import msgspec

from app.bench.harness import BenchError, Figures, Tell
from app.sapo.asking import CLOSE_TAG, OPEN_TAG, extract_answer
from app.sapo.families import FAMILIES
from app.sapo.families.family import Family
from app.sapo.groups import SOLVED_SCORE
from app.sapo.questions import Coordinates, Question, UnsoundQuestion, generate
from app.sapo.seeds import HELD_OUT_SHARE

SUMMARY = "contents, held out, best constant answer and shortcut, accepted spellings of every family and level"

QUESTIONS_PER_FAMILY = 200
SLOW_MS = 20.0
_MAX_TRIED = 40
"""Maximum items tried, as a multiple of those wanted."""
_SPELLED = 8
"""Number of questions per level whose answer is written in every spelling."""
_CANDIDATES = 32
"""Number of solutions, most common first, that are tried as constant answers: a common answer is a common
solution."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_WORD = re.compile(r"[^\W\d_]+")
_GRID = re.compile(r"(?:^[0-9_]+(?: [0-9_]+)*$\n?)+", re.MULTILINE)
Shortcut = Callable[[list[str], list[str]], str]
SHORTCUTS: dict[str, Shortcut] = {
    "first number": lambda numbers, words: numbers[0],
    "second number": lambda numbers, words: numbers[1],
    "last number": lambda numbers, words: numbers[-1],
    "largest number": lambda numbers, words: max(numbers, key=float),
    "smallest number": lambda numbers, words: min(numbers, key=float),
    "how many numbers": lambda numbers, words: str(len(numbers)),
    "how many words": lambda numbers, words: str(len(words)),
    "first word": lambda numbers, words: words[0],
    "last word": lambda numbers, words: words[-1],
}
"""Answers without reasoning, from the numbers and the words of a question in their order."""
COPIES: dict[str, Callable[[str], str]] = {
    "last line": lambda text: text.rpartition("\n")[2],
    "what follows the last colon": lambda text: text.rpartition(":")[2],
    "last list": lambda text: text[text.rfind("[") : text.rfind("]") + 1],
    "last grid": lambda text: ["", *_GRID.findall(text)][-1],
    "last of all": lambda text: text.split()[-1],
}
"""Answers by copying a part of the question."""
MAX_SHORTCUT_SHARE = 0.25
"""Largest share of a level that a shortcut may solve, unless the family declares a higher `guess_rate`."""
MIN_CONTENTS = 200
"""A level with fewer contents is flagged, unless its family holds out more than one in eight."""


SPELLINGS = {
    "plain": "{}",
    "full stop": "{}.",
    "bold": "**{}**",
    "bold with full stop": "**{}.**",
    "boxed": "\\boxed{{{}}}",
    "boxed in dollars": "$\\boxed{{{}}}$.",
    "dollars": "${}$",
    "double dollars": "$${}$$",
    "backticks": "`{}`",
    "code fence": "```\n{}\n```",
    "code fence with language": "```text\n{}\n```",
    "equals": "= {}",
    "double quotes": '"{}"',
    "single quotes": "'{}'",
    "curly quotes": "\u201c{}\u201d",
    "LaTeX brackets": "\\[ {} \\]",
    "LaTeX parentheses": "\\({}\\)",
    "LaTeX text": "\\text{{{}}}",
    "bold, boxed and quoted": "**\\boxed{{`{}`}}.**",
}
"""Ways to write a right answer inside its tags that cannot mean another value."""


class LevelFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one level. Shares are of its questions, except `sound`, which is the share of generated
    items that are valid questions."""

    family: str
    level: int
    questions: int
    sound: float
    p99_ms: float
    texts: int
    """Numbers of distinct texts (`texts`) and distinct contents (`contents`) among the questions."""
    contents: int
    level_contents: int
    """Number of contents of the level, estimated by `richness`."""
    held_out: int
    """Number of drawn contents that are held out."""
    held_out_share: float
    """Share of the questions that are held out."""
    refused: tuple[str, ...]
    """Names of SPELLINGS in which some true answer is not accepted."""
    longest: int
    """Characters of the longest solution."""
    constant: float
    constant_answer: str
    shortcut: float
    shortcut_name: str
    guess_rate: float


def generate_questions(family: str, level: int, count: int) -> tuple[list[Question], int, list[float]]:
    """Generates `count` questions; returns them, the number of items tried, and the processor seconds of
    each item."""
    found: list[Question] = []
    taken: list[float] = []
    while len(found) < count and len(taken) < _MAX_TRIED * count:
        place = Coordinates(family=family, level=level, seed=2**45 + len(taken) * 2**21, index=0)
        began = time.thread_time()
        with contextlib.suppress(UnsoundQuestion):
            found.append(generate(place))
        taken.append(time.thread_time() - began)
    return found, len(taken), taken


def solved_share(family: Family, answers: Sequence[str], questions: Sequence[Question]) -> float:
    """Share of the questions that are solved by the answers, one for each."""
    pairs = zip(answers, questions, strict=True)
    return sum(family.judge(answer, question.entry) >= SOLVED_SCORE for answer, question in pairs) / len(
        questions
    )


def best_constant(family: Family, questions: Sequence[Question]) -> tuple[float, str]:
    """Returns (share solved, answer) of the constant answer that solves most of the questions."""
    solutions = Counter(family.solution(question.entry) for question in questions)
    return max(
        (solved_share(family, [answer] * len(questions), questions), answer)
        for answer, _ in solutions.most_common(_CANDIDATES)
    )


def best_shortcut(family: Family, questions: Sequence[Question]) -> tuple[float, str]:
    """Returns (share solved, name) of the shortcut that solves most of the questions."""
    read = [(_NUMBER.findall(one.text), _WORD.findall(one.text)) for one in questions]
    answers = {
        **{name: [_taken(one, *parts) for parts in read] for name, one in SHORTCUTS.items()},
        **{name: [copied(one.text).strip() for one in questions] for name, copied in COPIES.items()},
        **{name: [own(one.entry) for one in questions] for name, own in family.shortcuts.items()},
    }
    return max((solved_share(family, written, questions), name) for name, written in answers.items())


def richness(drawn: Sequence[Hashable]) -> int:
    """Estimates the number of kinds from those drawn once and those drawn twice (Chao 1984, bias-corrected); a
    lower bound if some kinds are rarer than others.

    >>> richness("aabbcc"), richness("aabbcd"), richness("abcdef")
    (3, 4, 21)
    """
    times = Counter(Counter(drawn).values())
    return sum(times.values()) + times[1] * (times[1] - 1) // (2 * (times[2] + 1))


def refused_spellings(family: Family, questions: Sequence[Question]) -> tuple[str, ...]:
    """Names of the spellings in which the true answer of some question is not accepted inside the answer's
    tags."""

    def accepted(spelling: str, question: Question) -> bool:
        read = extract_answer(OPEN_TAG + spelling.format(family.solution(question.entry)) + CLOSE_TAG)
        return read is not None and family.judge(read, question.entry) >= SOLVED_SCORE

    return tuple(
        name
        for name, spelling in SPELLINGS.items()
        if not all(accepted(spelling, question) for question in questions)
    )


def _taken(shortcut: Shortcut, numbers: list[str], words: list[str]) -> str:
    try:
        return shortcut(numbers, words)
    except (ValueError, IndexError):
        return ""


def measure(family: Family, level: int, count: int) -> LevelFigures:
    found, tried, taken = generate_questions(family.name, level, count)
    if not found:
        raise BenchError(f"{family.name} has no question at level {level}.")
    constant, answer = best_constant(family, found)
    shortcut, name = best_shortcut(family, found)
    level_contents = richness([one.content for one in found])
    # A lower bound where some contents are rare: more draws come nearer.
    if level_contents < 2 * MIN_CONTENTS and family.held_out_share == HELD_OUT_SHARE:
        level_contents = richness(
            [one.content for one in generate_questions(family.name, level, 10 * count)[0]]
        )
    return LevelFigures(
        family=family.name,
        level=level,
        questions=len(found),
        sound=len(found) / tried,
        p99_ms=1000 * sorted(taken)[int(0.99 * len(taken))],
        texts=len({one.text for one in found}),
        contents=len({one.content for one in found}),
        level_contents=level_contents,
        held_out=len({one.content for one in found if one.held_out}),
        held_out_share=sum(one.held_out for one in found) / len(found),
        refused=refused_spellings(family, found[:_SPELLED]),
        longest=max(len(family.solution(one.entry)) for one in found),
        constant=constant,
        constant_answer=answer,
        shortcut=shortcut,
        shortcut_name=name,
        guess_rate=family.guess_rate,
    )


def _pays(one: LevelFigures) -> bool:
    """True if a constant answer or a shortcut solves more of the level than allowed."""
    return _above(one.constant, one.guess_rate, one.questions) or _above(
        one.shortcut, max(MAX_SHORTCUT_SHARE, one.guess_rate), one.questions
    )


def _above(share: float, limit: float, questions: int) -> bool:
    """True if a share of this many questions exceeds the limit by more than two standard errors."""
    return share > limit + 2.0 * (limit * (1.0 - limit) / questions) ** 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="FAMILY", help="only these (default: all)")
    parser.add_argument(
        "--items", type=int, default=QUESTIONS_PER_FAMILY, help="questions of each level (%(default)s)"
    )


def run(args: argparse.Namespace, tell: Tell) -> Figures:
    """Measures the families; returns the figures. Raises BenchError."""
    unknown = [name for name in args.names if name not in FAMILIES]
    if unknown:
        raise BenchError(f"There is no family {unknown[0]}: choose from {', '.join(sorted(FAMILIES))}.")
    levels = []
    for name in args.names or FAMILIES:
        for level in range(len(FAMILIES[name].levels)):
            tell(f"{name}, level {level + 1}")
            levels.append(measure(FAMILIES[name], level, args.items))
    passed = all(not _pays(one) and one.p99_ms <= SLOW_MS and not one.refused for one in levels)
    return {"levels": msgspec.to_builtins(levels), "passed": passed}


def table(figures: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{'family':<24} level  p99 ms  sound  contents  distinct/drawn  held out  spellings  longest  "
        "best constant answer       best shortcut"
    )
    for one in (msgspec.convert(level, LevelFigures) for level in figures["levels"]):
        held_out_share = FAMILIES[one.family].held_out_share
        marks = "".join(
            mark
            for mark, wrong in (
                ("  slow", one.p99_ms > SLOW_MS),
                ("  few", one.level_contents < MIN_CONTENTS and held_out_share == HELD_OUT_SHARE),
                ("  guessed", _above(one.constant, one.guess_rate, one.questions)),
                ("  shortcut", _above(one.shortcut, max(MAX_SHORTCUT_SHARE, one.guess_rate), one.questions)),
            )
            if wrong
        )
        spelled = f"{len(SPELLINGS) - len(one.refused)}/{len(SPELLINGS)}"
        yield (
            f"{one.family:<24} {one.level + 1:>5}  {one.p99_ms:>6.1f}  {one.sound:>5.0%}"
            f"  {one.level_contents:>8}  {f'{one.contents}/{one.questions}':>14}  {one.held_out:>8}"
            f"  {spelled:>9}  {one.longest:>7}  {one.constant:>5.1%}  {one.constant_answer[:18]!r:<20} "
            f"{one.shortcut:>5.1%}  {one.shortcut_name}{marks}"
        )
