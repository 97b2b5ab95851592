"""Prompt styles ("ways of asking"): how a question is put to a model, and how its answer is extracted. The only
place for both.

Three answer marks are accepted from everyone: `<answer>...</answer>`, `\\boxed{...}`, and the short form `#...`
at the end of a line of work. Only marked answers are trained on; `extract_leniently` also reads unmarked
answers, to tell whether a model lacks the skill or only the form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

import msgspec

SYSTEM = (
    "Solve the puzzle. Work it out briefly, then give the final answer alone between <answer> and </answer>."
)

OPEN_TAG, CLOSE_TAG, SHORT_MARK, _BOXED = "<answer>", "</answer>", "#", "\\boxed{"

MAX_ANSWER = 512
"""Maximum characters of an answer. A longer one is never scored and counts as wrong."""

Messages = list[dict[str, str]]


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt style: a system line that requests one form of answer, worked examples, and a maximum length."""

    name: str
    system: str = SYSTEM
    examples: int = 0
    """Number of worked examples before a question during placement; 0 in training."""
    max_tokens: int | None = None
    """Maximum tokens of an answer; None uses the model's own setting."""
    marked: bool = True
    """Whether the answer stands behind a mark, after the work; otherwise the whole reply is the answer."""
    reads: int | None = None
    """Maximum characters of a question that are read, its first ones; None reads all."""

    def token_limit(self, usual: int) -> int:
        """Returns the maximum tokens of an answer: the style's, or `usual`, the model's own setting."""
        return self.max_tokens or usual


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A question with a correctly written answer (`Family.worked`)."""

    question: str
    answer: str


TAGGED = Way(name="tagged")
"""For the starter, which was trained on it, and for models that can follow longer instructions."""
BRIEF = Way(name="brief", system="Write a short calculation, then # and the result.", examples=4, max_tokens=48)
"""For small models, whose answers get worse with a long system line."""
WAYS = {way.name: way for way in (TAGGED, BRIEF)}


def messages(question: str, way: Way = TAGGED, examples: Sequence[Example] = ()) -> Messages:
    """Returns a question as chat messages, after turns with the examples. The model's chat template turns them
    into tokens."""
    turns = [
        {"role": role, "content": content}
        for example in examples
        for role, content in (("user", example.question), ("assistant", example.answer))
    ]
    asked = {"role": "user", "content": question[: way.reads]}
    return [{"role": "system", "content": way.system}, *turns, asked]


def read_answer(completion: str, marked: bool) -> str | None:
    """Returns the answer in a completion, or None without one. A `marked` answer is the text behind the mark
    (`extract_answer`), any other the whole completion, trimmed.

    >>> read_answer("4+3=7 #7", True), read_answer(" ham\\n", False), read_answer(" ", False)
    ('7', 'ham', None)
    """
    if marked:
        return extract_answer(completion)
    answer = completion.strip()
    return answer if 0 < len(answer) <= MAX_ANSWER else None


def work_and_answer(reply: str) -> tuple[str, str]:
    """Returns the work in a marked reply, and the answer; the whole reply as the answer if there is no mark.

    >>> work_and_answer("4*7=28. #28"), work_and_answer("It's <answer>5</answer>"), work_and_answer("hello")
    (('4*7=28.', '28'), ("It's", '5'), ('', 'hello'))
    """
    answer = extract_answer(reply)
    if answer is None:
        return "", reply
    if (end := reply.rfind(CLOSE_TAG)) >= 0:
        start = reply.rfind(OPEN_TAG, 0, end)
    else:
        start = max(reply.rfind(SHORT_MARK), reply.rfind(_BOXED))
    return reply[: max(0, start)].strip(), answer


def match_answer_mark(worked: str, like_G: Sequence[str]) -> str:
    """Rewrites a worked answer in the short form with the mark that the model's own completions use.

    >>> match_answer_mark("7 * 8 = 56 #56", ["<answer>54</answer>"])
    '7 * 8 = 56 <answer>56</answer>'
    >>> match_answer_mark("#spam", ["#ham", "ham"])
    '#spam'
    """
    work, _, answer = worked.rpartition(SHORT_MARK)
    return f"{work}{OPEN_TAG}{answer}{CLOSE_TAG}" if any(CLOSE_TAG in one for one in like_G) else worked


def extract_answer(completion: str) -> str | None:
    """Returns the answer of a completion: the last closed `<answer>` pair, else the text after the last `#` on
    its line (with the rows of a grid below it) or the last `\\boxed`, whichever comes later.

    None if there is none, or if it is empty or longer than MAX_ANSWER. Only one candidate is taken, so listing
    many answers earns nothing. Marks that chat models put around a result are removed.

    >>> extract_answer("4-1=3 3-7=-4 #-4"), extract_answer("<answer>1</answer> no, <answer> 2 </answer>")
    ('-4', '2')
    >>> extract_answer("so \\\\boxed{\\\\frac{1}{2}}."), extract_answer("# **\u22127**."), extract_answer("7")
    ('\\\\frac{1}{2}', '-7', None)
    >>> extract_answer("4*7=28. #28\\n\\nSolve"), extract_answer("#9 5\\n0 5\\nSolve this")
    ('28', '9 5\\n0 5')
    """
    end = completion.rfind(CLOSE_TAG)
    if end >= 0:
        start = completion.rfind(OPEN_TAG, 0, end)
        found = completion[start + len(OPEN_TAG) : end] if start >= 0 else ""
    else:
        short, boxed = completion.rfind(SHORT_MARK), completion.rfind(_BOXED)
        if max(short, boxed) < 0:
            return None
        found = _braced(completion, boxed + len(_BOXED)) if boxed > short else _on_line(completion[short + 1 :])
    answer = _bare(found)
    return answer if 0 < len(answer) <= MAX_ANSWER else None


def extract_leniently(completion: str) -> str | None:
    """Returns what a person looking for the result would read: `extract_answer`, else the last number, else the
    last line. For display only, never trained on.

    >>> [extract_leniently(text) for text in ("4 plus 3 is 7.", "It is\\nMonday", "7 #8", " ")]
    ['7', 'Monday', '8', None]
    """
    if (marked := extract_answer(completion)) is not None:
        return marked
    if numbers := _NUMBER.findall(completion[-4 * MAX_ANSWER :].replace("\u2212", "-")):
        return str(numbers[-1])
    lines = completion.strip().splitlines()
    answer = _bare(lines[-1]) if lines else ""
    return answer if 0 < len(answer) <= MAX_ANSWER else None


def shows_work(completion: str) -> bool:
    """Whether there is any text before the answer, in any of its forms.

    >>> shows_work("4-1=3 #3"), shows_work("#3"), shows_work("3 is <answer>3</answer>"), shows_work("hm")
    (True, False, True, False)
    """
    end = max(completion.rfind(mark) for mark in (SHORT_MARK, OPEN_TAG, _BOXED))
    return end > 0 and bool(completion[:end].strip())


def _on_line(text: str) -> str:
    """Returns the first line that is not blank, with the lines below it that belong to it: rows of a grid with
    equally many cells, or further numbers. Later text is not part of the answer. Returns the whole text if the
    first line is only a mark, such as the start of a code block."""
    first, *below = text.lstrip().split("\n")
    if first.startswith("```") or not any(map(str.isalnum, first)):
        return text
    width = len(first.split())
    cells = _cells if width > 1 else _numbers
    rows = takewhile(lambda line: cells(line) == width, below)
    return "\n".join([first, *rows]) if cells(first) else first


def _cells(line: str) -> int:
    """Returns the number of cells in a row of a grid; 0 if a word is too long for a cell.

    >>> _cells("_ Q _ _"), _cells("[1, 10],"), _cells("Solve 2 + 3")
    (4, 2, 0)
    """
    words = line.split()
    return len(words) if all(len(word) <= _WIDEST_CELL for word in words) else 0


def _numbers(line: str) -> int:
    return int(_NUMBER.fullmatch(line.strip()) is not None)


_WIDEST_CELL = 4  # characters: grids have numbers and short marks
_NUMBER = re.compile(r"-?\d{1,40}(?:[./]\d{1,40})?")


_AROUND = {"```": "```", "**": "**", "`": "`", '"': '"', "'": "'"} | {
    "\u201c": "\u201d",
    "\u2018": "\u2019",
    "\\(": "\\)",
    "\\[": "\\]",
}
_DOLLARS = re.compile(r"(\$+)([^$]+|\\boxed\{.+\})\1", re.DOTALL)
_IN_BRACES = (_BOXED, "\\text{")
_MAX_WRAPPED = 2 * MAX_ANSWER
"""Maximum characters of an answer with what stands around it."""
_LANGUAGE = re.compile(r"[A-Za-z]*\n")


def _bare(answer: str) -> str:
    """Removes what people and models write around a result, in any order: a final full stop, `=` before it,
    bold, code and math marks, quotes. A typographic minus becomes a plain one.

    >>> _bare(" $-3$. "), _bare("**7.**"), _bare("= `\\\\boxed{7}`."), _bare("3.5")
    ('-3', '7', '7', '3.5')
    >>> _bare("```text\\n1 0\\n0 1\\n```")
    '1 0\\n0 1'
    >>> _bare("'6', '7'"), _bare("$1$ or $2$"), _bare("\\\\frac{1}{2}"), _bare("...")
    ("'6', '7'", '$1$ or $2$', '\\\\frac{1}{2}', '')
    """
    before, answer = None, answer.strip().replace("\u2212", "-")
    if len(answer) > _MAX_WRAPPED:  # each pass takes one mark off: a hostile text has thousands
        return ""
    while before != answer:
        before, answer = answer, _peeled(answer.strip())
    return answer


def _peeled(answer: str) -> str:
    """Removes the outermost mark, if one encloses the whole text."""
    for opening, closing in _AROUND.items():
        inner = answer[len(opening) : -len(closing)]
        once = opening not in inner and closing not in inner
        if answer == f"{opening}{inner}{closing}" and inner and (once or inner[0] + inner[-1] in ("[]", "{}")):
            return _LANGUAGE.sub("", inner, count=1) if opening == "```" and _LANGUAGE.match(inner) else inner
    if dollars := _DOLLARS.fullmatch(answer):
        return dollars[2]
    for opening in _IN_BRACES:
        inner = answer[len(opening) : -1]
        if answer.startswith(opening) and answer.endswith("}") and inner == _braced(answer, len(opening)):
            return inner
    return answer.removesuffix(".").removeprefix("=")


def _braced(text: str, start: int) -> str:
    """Returns the text up to the brace that closes the one before `start`; empty if it is never closed."""
    depth = 1
    for place in range(start, min(len(text), start + MAX_ANSWER + 1)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return text[start:place]
    return ""
