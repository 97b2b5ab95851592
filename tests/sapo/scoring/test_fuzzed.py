"""A hundred thousand fuzzed answers over all families: what is paid is right by another way of looking at it,
and nothing is run.

Where one answer is right, another that is paid has to say the same: the same numbers, words and signs in their
order, whatever case, white space, quotes, brackets and commas stand around them. Where many are right, each is
checked against the puzzle here, not by the scorer.
"""

from __future__ import annotations

import ast
import importlib
import operator
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from app.sapo import library
from app.sapo.families import FAMILIES
from app.sapo.families.family import Entry
from app.sapo.questions import Question, draw

ANSWERS = 100_000
SIGNS = "0123456789 \n,.+-*/()[]{}'\":_=#%xeEjiPQR∧∨¬→↔abcdefgrtuw٣½１\0\u200b\u2212"
RUN = (
    "__import__('os').abort()",
    "exec('1/0')",
    "[x for x in ()]",
    "9**9**9",
    "open('canary','w')",
    "{0.real}",
)
TOKEN = re.compile(r"[0-9]*\.?[0-9]+|[^\W\d_]+|[^\s,'\"\[\]{}()]")


def said(text: str) -> list[object]:
    """Numbers by value, words in small letters, signs but for those around them.

    >>> said("['2.50', X]") == said("2.5 x"), said("-3") == said("3")
    (True, False)
    """
    plain = re.sub(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))", "", text.strip(" \t\r\n$"))
    plain = re.sub(r"(^|(?<=[\s,'\"\[]))\+", "", plain)
    plain = re.sub(r"^-\s*(?=[0.]+$)", "", plain)
    return [Fraction(one) if one[-1].isdecimal() else one.lower() for one in TOKEN.findall(plain)]


def _expression(text: str) -> tuple[Fraction, list[int]]:
    """The value, and the numbers in it, by Python's own grammar, which wants no zeros in front."""
    doing: dict[type, Callable[[Any, Any], Any]] = {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
    }
    numbers: list[int] = []

    def value(node: ast.expr) -> Fraction:
        match node:
            case ast.Constant(value=int(number)):
                numbers.append(number)
                return Fraction(number)
            case ast.BinOp(left=left, op=sign, right=right):
                return Fraction(doing[type(sign)](value(left), value(right)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return value(operand)
        raise AssertionError(ast.dump(node))

    bare = re.sub(r"\b0+(?=[0-9])", "", text.strip())
    return value(ast.parse(bare, mode="eval").body), sorted(numbers)


def _countdown(text: str, entry: Entry) -> bool:
    metadata = entry["metadata"]
    return _expression(text) == (metadata["target"], sorted(metadata["numbers"]))


def _queens(text: str, entry: Entry) -> bool:
    rows = [line.split() for line in text.strip().split("\n")]
    columns = [row.index("Q") for row in rows if row.count("Q") == 1 and set(row) <= {"Q", "_"}]
    puzzle = entry["metadata"]["puzzle"]
    apart = all(
        columns[a] != columns[b] and abs(columns[a] - columns[b]) != b - a
        for b in range(len(columns))
        for a in range(b)
    )
    given = all(rows[r][c] == "Q" for r, row in enumerate(puzzle) for c, sign in enumerate(row) if sign == "Q")
    return len(columns) == len(puzzle) and apart and given


def _colored(text: str, entry: Entry) -> bool:
    puzzle = entry["metadata"]["puzzle"]
    pairs = [pair.split(":") for pair in re.sub(r"['\"{}]", "", text.strip()).split(",")]
    colors = {int(vertex): int(color) for vertex, color in pairs}
    whole = len(pairs) == len(colors) == len(puzzle["vertices"])
    allowed = set(colors.values()) <= set(puzzle["color_options"])
    return whole and allowed and all(colors[a] != colors[b] for a, b in puzzle["edges"])


def _ladder(text: str, entry: Entry) -> bool:
    steps = [word.strip().upper() for word in text.strip().strip("[]").split(",")]
    steps = [word.strip("'\"") for word in steps]
    near = all(sum(a != b for a, b in zip(*pair, strict=True)) == 1 for pair in pairwise(steps))
    listed = entry["question"].partition("at most once: ")[2].partition(".\n")[0].split(", ")
    ends = (steps[0], steps[-1]) == (entry["metadata"]["ladder"][0], entry["metadata"]["ladder"][-1])
    return near and ends and set(steps) <= {*listed} and len(steps) == len(set(steps))


def _palindrome(text: str, entry: Entry) -> bool:
    found = text.strip().lower()
    return found == found[::-1] and sorted(found) == sorted(str(entry["answer"]).lower())


def _way(text: str, entry: Entry) -> bool:
    theirs = library.gym().get_score_answer_fn("shortest_path")
    return bool(theirs(" ".join(text.lower().split()), entry) == 1)


def _follows(text: str, entry: Entry) -> bool:
    """From the premises together, from none alone, by the library's own reading of formulas."""
    theirs = importlib.import_module("reasoning_gym.logic.propositional_logic").Expression
    variables = entry["metadata"]["variables"]
    rows = [
        {name: bool(row >> i & 1) for i, name in enumerate(variables)} for row in range(1 << len(variables))
    ]
    table = [theirs.from_string(text).evaluate(row) for row in rows]
    premises = [
        [theirs.from_string(one).evaluate(row) for row in rows] for one in entry["metadata"]["premises"]
    ]
    together = all(right for right, *given in zip(table, *premises, strict=True) if all(given))
    alone = any(all(r for r, p in zip(table, one, strict=True) if p) for one in premises)
    return together and not alone and not all(table)


def _fraction(text: str, entry: Entry) -> bool:
    """Plain or in LaTeX, one number over the other; or whole."""
    solution = FAMILIES["fraction_simplification"].solution(entry)
    return _over(text) == _over(solution)


def _over(text: str) -> list[int]:
    numbers = [int(number) for number in re.findall(r"[0-9]+", text)]
    assert re.fullmatch(r"[\s$/{}+.0-9]*", re.sub(r"\\d?frac", "", text)), text
    return numbers[:1] if numbers[1:] in ([1], [0]) else numbers


def _chance(text: str, entry: Entry) -> bool:
    return Fraction(re.sub(r"[ \t\r\n$]", "", text)) == Fraction(FAMILIES["coin_flip"].solution(entry))


def _complex(text: str, entry: Entry) -> bool:
    """Term by term."""

    def terms(text: str) -> tuple[Fraction, Fraction]:
        parts = {"": Fraction(), "i": Fraction()}
        for sign, number, kind in re.findall(r"([+-]?)([0-9.]*)(i?)", re.sub(r"\s", "", text)):
            if number or kind:
                parts[kind] += Fraction(f"{sign}{number or 1}")
        return parts[""], parts["i"]

    return terms(text) == terms(FAMILIES["complex_arithmetic"].solution(entry))


def _factors(text: str, entry: Entry) -> bool:
    """In any order."""
    return sorted(map(int, re.split("[×x*]", text))) == sorted(entry["metadata"]["factors"])


def _power(text: str, entry: Entry) -> bool:
    return float(text) == float(FAMILIES["power_function"].solution(entry))


def _span(text: str, entry: Entry) -> bool:
    """The same numbers between colons; or so many days, with the word or without."""
    told, solution = text.strip(), FAMILIES["time_intervals"].solution(entry)
    if ":" in solution:
        return [int(part) for part in told.split(":")] == [int(part) for part in solution.split(":")]
    return int(told.removesuffix("s").removesuffix(" day")) == int(solution.split()[0])


def _roles(text: str, entry: Entry) -> bool:
    """Everybody's, in any order, with a full stop at the end or not."""
    told = re.findall(r"(\w+) is an? (\w+)", " ".join(text.lower().split()))
    return sorted(told) == sorted(re.findall(r"(\w+) is an? (\w+)", str(entry["answer"]).lower()))


def _thousandth(text: str, entry: Entry) -> bool:
    """The numbers have three decimals; what floating point adds behind them says nothing."""
    return abs(float(text.replace(",", "")) - float(entry["metadata"]["solution"])) < 0.0006


MANY: dict[str, Callable[[str, Entry], bool]] = {
    "countdown": _countdown,
    "n_queens": _queens,
    "graph_color": _colored,
    "word_ladder": _ladder,
    "palindrome_generation": _palindrome,
    "shortest_path": _way,
    "propositional_logic": _follows,
    "coin_flip": _chance,
    "fraction_simplification": _fraction,
    "complex_arithmetic": _complex,
    "prime_factorization": _factors,
    "power_function": _power,
    "knights_knaves": _roles,
    "time_intervals": _span,
    "number_format": _thousandth,
}
"""Where more than one answer is right, or one in other forms than `said` reads."""


@cache
def asked(family: str) -> list[Question]:
    levels = len(FAMILIES[family].levels)
    return [draw(family, number % levels, number * 10**7 + 7) for number in range(4 * levels)]


def changed(text: str, rng: Random) -> str:
    """One to three characters inserted, removed, replaced, doubled or exchanged; or all of them shuffled."""
    if rng.random() < 0.15:
        return "".join(rng.sample(text, len(text)))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        new = rng.choice([*SIGNS, "", text[at : at + 1] * 2, text[at : at + 1].swapcase()])
        text = text[:at] + new + text[at + rng.randint(0, 1) :]
    return text


def answers(family: str, count: int) -> list[tuple[str, Question]]:
    """Fuzzed answers: half near the truth, the others any signs, another one's truth, or what would run."""
    rng, questions = Random(f"{family} fuzzed"), asked(family)
    made = []
    for _ in range(count):
        question, other = rng.choice(questions), rng.choice(questions)
        solution = FAMILIES[family].solution(question.entry)
        kind = rng.random()
        if kind < 0.6:
            text = changed(solution, rng)
        elif kind < 0.75:
            text = "".join(rng.choices(SIGNS, k=rng.randint(0, 60)))
        elif kind < 0.9:
            text = FAMILIES[family].solution(other.entry) + rng.choice(["", "", " ", "\n" + solution])
        else:
            text = changed(solution + rng.choice(RUN), rng)
        made.append((text, question))
    return made


def right(family: str, text: str, question: Question) -> bool:
    if family in MANY:
        return MANY[family](text, question.entry)
    return said(text) == said(FAMILIES[family].solution(question.entry))


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_paid_is_right_and_nothing_is_run(family: str) -> None:
    fuzz = answers(family, ANSWERS // len(FAMILIES) + 1)
    ran: list[str] = []
    watching = False

    def watch(event: str, _: object) -> None:
        if watching and event in ("exec", "compile", "open", "os.system", "subprocess.Popen"):
            ran.append(event)

    sys.addaudithook(watch)
    for question in asked(family):  # a first right answer may have word lists read
        FAMILIES[family].judge(FAMILIES[family].solution(question.entry).lower() + " ", question.entry)
    watching = True
    scores = [FAMILIES[family].judge(text, question.entry) for text, question in fuzz]
    watching = False
    assert not ran
    paid = [one for one, score in zip(fuzz, scores, strict=True) if score >= 0.99]
    assert len(paid) > 10
    for text, question in paid:
        assert right(family, text, question), (text, question.coordinates)
