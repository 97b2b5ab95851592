"""The starter's corpus: questions at its levels, answered by guessing or by working them out, partly wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from app.sapo.questions import Coordinates, QuestionError, generate
from app.sapo.seeds import PROBE_SEEDS, TRAINING_SEEDS

MAX_STEPS = 12


class WorkingFailed(Exception):
    """The work cannot be continued (for example after a slip); the example is drawn again."""


class StepWriter:
    """Writes the steps of a worked answer, what a careful solver writes before `#answer`. Each function below
    takes a reasoning-gym entry and a writer, writes its steps and returns the answer that follows from them,
    also after a slip. With probability `slip` a step's integer is wrong by one or by ten."""

    def __init__(self, rng: Random, slip: float) -> None:
        self._rng = rng
        self._slip = slip
        self.words: list[str] = []

    def step(self, before: str, value: int, after: str = "") -> int:
        """Appends `before`, the value and `after` as one word. Returns the value written, which a random slip
        may have changed. Raises WorkingFailed after MAX_STEPS words."""
        if len(self.words) >= MAX_STEPS:
            raise WorkingFailed
        if self._rng.random() < self._slip:
            value += self._rng.choice((-10, -1, 1, 10))
        self.words.append(f"{before}{value}{after}")
        return value

    def note(self, word: str) -> None:
        self.words.append(word)


def _chain_sum(entry: Mapping[str, Any], pen: StepWriter) -> str:
    first, *rest = entry["metadata"]["expression"].split()
    total = int(first)
    for operator, term in zip(rest[::2], rest[1::2], strict=True):
        exact = total + int(term) if operator == "+" else total - int(term)
        total = pen.step(f"{total}{operator}{term}=", exact)
    return str(total)


def _basic_arithmetic(entry: Mapping[str, Any], pen: StepWriter) -> str:
    tokens = re.findall(r"\d+|[-+*()]", entry["metadata"]["expression"].replace(" ", ""))

    def atom() -> int:
        token = tokens.pop(0)
        if token == "-":
            if tokens[0] == "(":
                value = atom()
                return pen.step(f"-({value})=", -value)
            return -atom()
        if token == "(":
            value = total()
            tokens.pop(0)
            return value
        return int(token)

    def product() -> int:
        value = atom()
        while tokens and tokens[0] == "*":
            tokens.pop(0)
            factor = atom()
            value = pen.step(f"{value}*{factor}=", value * factor)
        return value

    def total() -> int:
        value = product()
        while tokens and tokens[0] in "+-":
            operator = tokens.pop(0)
            term = product()
            exact = value + term if operator == "+" else value - term
            value = pen.step(f"{value}{operator}{term}=", exact)
        return value

    return str(total())


def _euclid(a: int, b: int, pen: StepWriter) -> int:
    """Euclid's algorithm: writes the remainders down to 0 and returns the divisor."""
    a, b = max(a, b), min(a, b)
    pen.note(str(a))
    pen.note(str(b))
    while b > 0:
        a, b = b, pen.step("", a % b)
    if b < 0 or a == 0:
        raise WorkingFailed
    return a


def _gcd(entry: Mapping[str, Any], pen: StepWriter) -> str:
    first, *rest = entry["metadata"]["numbers"]
    for number in rest:
        first = _euclid(first, number, pen)
    return str(first)


def _lcm(entry: Mapping[str, Any], pen: StepWriter) -> str:
    first, *rest = entry["metadata"]["numbers"]
    for number in rest:
        large, small = max(first, number), min(first, number)
        divisor = _euclid(large, small, pen)
        part = pen.step(f"{small}/{divisor}=", small // divisor)
        first = pen.step(f"{large}*{part}=", large * part)
    return str(first)


def _fraction(entry: Mapping[str, Any], pen: StepWriter) -> str:
    top, bottom = entry["metadata"]["numerator"], entry["metadata"]["denominator"]
    divisor = _euclid(bottom, top, pen)
    top = pen.step(f"{top}/{divisor}=", top // divisor)
    bottom = pen.step(f"{bottom}/{divisor}=", bottom // divisor)
    return f"{top}/{bottom}"


def _simple_equations(entry: Mapping[str, Any], pen: StepWriter) -> str:
    left, right = entry["metadata"]["equation"].replace(" ", "").split("=")
    value = int(right)
    factor, constant = 0, 0
    for term in re.findall(r"[-+]?[^-+]+", left):
        if entry["metadata"]["variable"] in term:
            digits = re.sub(r"[^-0-9]", "", term)
            factor += int(digits + "1") if digits in ("", "-") else int(digits)
        else:
            constant += int(term)
    if factor == 0:
        raise WorkingFailed
    if constant > 0:
        value = pen.step(f"{value}-{constant}=", value - constant)
    elif constant < 0:
        value = pen.step(f"{value}+{-constant}=", value - constant)
    return str(pen.step(f"{value}/{factor}=", round(value / factor)))


def _base_conversion(entry: Mapping[str, Any], pen: StepWriter) -> str:
    """Converts to decimal digit by digit (Horner), then writes quotient `r` remainder down to 0."""
    meta = entry["metadata"]
    value = 0
    for digit in meta["source_repr"]:
        value = pen.step("", value * meta["source_base"] + int(digit, 36))
    answer = ""
    while value > 0:
        value, remainder = divmod(value, meta["target_base"])
        answer = _DIGITS[remainder] + answer
        value = pen.step("", value, f"r{_DIGITS[remainder]}")
    if not answer or value < 0:
        raise WorkingFailed
    return answer


def _spell_backward(entry: Mapping[str, Any], pen: StepWriter) -> str:
    """Numbers the letters from the front, then reads them from the back."""
    word = entry["metadata"]["word"]
    pen.note("".join(f"{letter}{place}" for place, letter in enumerate(word, start=1)))
    return str(word[::-1])


def _count_bits(entry: Mapping[str, Any], pen: StepWriter) -> str:
    """Writes the repeated halves with their remainders and counts the remainders."""
    value, ones = entry["metadata"]["number"], 0
    while value > 0:
        bit = value % 2
        ones += bit
        pen.note(f"{value}:{bit}")
        value //= 2
    return str(ones)


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

WORK: Mapping[str, Callable[[Mapping[str, Any], StepWriter], str]] = {
    "chain_sum": _chain_sum,
    "basic_arithmetic": _basic_arithmetic,
    "gcd": _gcd,
    "lcm": _lcm,
    "fraction_simplification": _fraction,
    "simple_equations": _simple_equations,
    "base_conversion": _base_conversion,
    "spell_backward": _spell_backward,
    "count_bits": _count_bits,
}
"""The starter's families, each with the function that works out its questions."""


def worked(family: str, entry: Mapping[str, Any], rng: Random, slip: float) -> str:
    """A worked answer: `4-1=3 3-7=-4 #-4`. Raises WorkingFailed if the work cannot be finished."""
    pen = StepWriter(rng, slip)
    answer = WORK[family](entry, pen)
    return " ".join([*pen.words, f"#{answer}"])


CORPUS_SEEDS = (PROBE_SEEDS.stop, TRAINING_SEEDS.start)


class DataMix(msgspec.Struct, frozen=True, kw_only=True):
    """What the starter's training corpus is made of. Shares are probabilities; `level_shares[k]` is the
    probability of level k."""

    worked_share: float = 0.2
    """Share of answers that are worked out; the rest are guesses."""
    slip: float = 0.03
    """Probability that a step of the work is wrong."""
    wrong_guess: float = 0.6
    """Probability that a guess is wrong."""
    level_shares: tuple[float, ...] = (0.35, 0.55, 0.1)
    max_characters: int = 60
    """Longer worked answers are dropped."""


class CorpusExample(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the corpus: a question's text and the completion that the starter is trained on."""

    family: str
    question: str
    completion: str


def examples(mix: DataMix, seed: int, families: Sequence[str] = tuple(sorted(WORK))) -> Iterator[CorpusExample]:
    """Yields examples without end, families uniformly. Held-out questions never appear."""
    rng = Random(seed)
    while True:
        family = rng.choice(families)
        (level,) = rng.choices(range(len(mix.level_shares)), weights=mix.level_shares)
        try:
            question = generate(
                Coordinates(family=family, level=level, seed=rng.randrange(*CORPUS_SEEDS), index=0)
            )
            if question.held_out:
                continue
            if rng.random() < mix.worked_share:
                completion = worked(family, question.entry, rng, mix.slip)
            else:
                completion = guess(family, question.entry, rng, mix.wrong_guess)
        except (WorkingFailed, QuestionError):
            continue
        if len(completion) <= mix.max_characters:
            yield CorpusExample(family=family, question=question.text, completion=completion)


def guess(family: str, entry: Mapping[str, Any], rng: Random, wrong: float) -> str:
    """A direct answer, `#-4`; with probability `wrong` a plausible wrong one."""
    answer = str(entry["answer"])
    if rng.random() < wrong:
        answer = _spoil(answer, rng)
    return f"#{answer}"


def _spoil(answer: str, rng: Random) -> str:
    """A plausible wrong answer: one digit changed, or two letters swapped."""
    places = [place for place, character in enumerate(answer) if character.isdigit()]
    if places:
        place = rng.choice(places)
        digit = rng.choice([d for d in "0123456789" if d != answer[place]])
        return answer[:place] + digit + answer[place + 1 :]
    place = rng.randrange(max(1, len(answer) - 1))
    return answer[:place] + answer[place : place + 2][::-1] + answer[place + 2 :]
