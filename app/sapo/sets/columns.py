"""Finds which column of a table is the text and which the answer: by usual names, else by what stands in them.

Few different short values are answers; long, different ones are texts; numbers that only count are neither.
Where two columns could be either, `Reading.toss_up` says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from app.sapo.sets.bounds import MAX_COLUMNS
from app.sapo.sets.grid import Grid
from app.sapo.sets.question_set import SetError

QUESTION_NAMES: Sequence[str] = re.findall(
    r"\w+",
    "question questions prompt problem instruction input text texts query frage fragen aufgabe wort word term "
    "front message sentence review q",
)
ANSWER_NAMES: Sequence[str] = re.findall(
    r"\w+",
    "answer answers output label labels target completion response solution antwort antworten lösung back "
    "definition category class correct a",
)
"""Usual names, most likely first."""
_TOGETHER = (("instruction", "input"), ("context", "question"), ("passage", "question"))
"""Columns that make one text."""
_OPTION = re.compile(r"(?:(?:option|choice|answer)[ _]?)?([a-f1-6])")
_CHOSEN = ("correct", "answer", "key", "solution", "correct answer", "correct_answer", "label", "target")
_SAMPLE = 2000  # rows looked at, spread over the file
_SHOWN, _SHORT = 5, 40


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """How its owner wants a table read. Columns go by name or number (`column_position`); what is empty is
    guessed."""

    text: tuple[str, ...] = ()
    answer: str = ""
    heading: bool | None = None
    encoding: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How a table was read. `text` and `answer` are positions in `columns`; `shown` are its first rows."""

    columns: tuple[str, ...]
    text: tuple[int, ...]
    answer: int
    heading: bool
    encoding: str
    toss_up: bool = False
    shown: tuple[tuple[str, ...], ...] = ()

    def question(self, row: Sequence[str]) -> str:
        """Returns the text of a row."""
        return row[self.text[0]] if len(self.text) == 1 else join_cells(self.columns, self.text, row)


def join_cells(columns: Sequence[str], text: Sequence[int], row: Sequence[str]) -> str:
    """Returns the text in some columns of a row, a line each; choices go with their names.

    >>> join_cells(("Question", "A", "B"), (0, 1, 2), ("Largest?", "Lake", " Sea"))
    'Largest?\\nA: Lake\\nB: Sea'
    """
    parts = []
    for at in text:
        named = len(text) > 1 and _OPTION.fullmatch(columns[at].casefold())
        if row[at].strip():
            parts.append(f"{columns[at]}: {row[at].strip()}" if named else row[at].strip())
    return "\n".join(parts)


def find_columns(grid: Grid, chosen: Chosen) -> Reading:
    """Returns how a table is to be read: as chosen, the rest guessed. Raises SetError."""
    text = tuple(column_position(grid, name) for name in chosen.text)
    answer = column_position(grid, chosen.answer) if chosen.answer else None
    toss_up = False
    if not text or answer is None:
        if len(grid.columns) < 2:
            raise SetError("This is one column. A table needs a question and an answer, side by side.")
        text, answer, toss_up = _guess(grid, text, answer)
    if answer in text:
        raise SetError("The text and the answer are the same column. Pick another one.")
    return Reading(
        columns=grid.columns,
        text=text,
        answer=answer,
        heading=grid.heading,
        encoding=grid.encoding,
        toss_up=toss_up,
        shown=tuple(tuple(cell[:200] for cell in row) for row in grid.rows[:_SHOWN]),
    )


def column_position(grid: Grid, name: str) -> int:
    """Returns the position of a column: "#2" is the second, also where another has the name "2"; else one with
    this name, or number from 1. Raises SetError."""
    names = [one.casefold() for one in grid.columns]
    wanted = name.strip().casefold()
    number = wanted.removeprefix("#")
    if wanted in names and not (wanted != number and number.isdecimal()):
        return names.index(wanted)
    if number.isdecimal() and number.isascii() and 0 < int(number[:9]) <= len(names):
        return int(number) - 1
    known = ", ".join(grid.columns[:12])
    raise SetError(f"There is no column {name[:40]!r}. There are: {known[:120]}.")


def _guess(grid: Grid, text: tuple[int, ...], answer: int | None) -> tuple[tuple[int, ...], int, bool]:
    names = [one.casefold().split(".")[-1] for one in grid.columns] if grid.heading else []
    told = {place for _, place in grid.named_roles}
    if not text and answer is None and (found := _choices(grid, names)):
        return *found, False
    seen = {at: _Look(grid, at) for at in range(min(len(grid.columns), MAX_COLUMNS)) if at not in told}
    seen = {at: look for at, look in seen.items() if look.filled and at not in text}
    if answer is None:
        known = next((names.index(one) for one in ANSWER_NAMES if one in names), None)
        answer = known if known in seen else None
    if not text:
        for pair in _TOGETHER:
            if all(one in names for one in pair) and (places := tuple(map(names.index, pair))):
                text = tuple(at for at in places if at in seen and at != answer)
                break
        else:
            known = next((names.index(one) for one in QUESTION_NAMES if one in names), None)
            text = (known,) if known in seen and known != answer and known is not None else ()
    left = [at for at in seen if at != answer and at not in text]
    useful = [at for at in left if not seen[at].counts] or left
    toss_up = False
    if answer is None:
        if not useful:
            raise SetError("There is no column with answers. Pick the column with the answers.")
        labels = [at for at in useful if seen[at].labels]
        if text:
            answer = labels[-1] if labels else useful[-1]
            toss_up = len(labels) > 1 or (not labels and len(useful) > 1)
        elif labels and len(labels) < len(useful):
            answer, toss_up = labels[-1], len(labels) > 1
        elif len(useful) < 2:
            raise SetError("There is no column with answers. Pick the column with the answers.")
        elif labels:
            answer, toss_up = useful[-1], True
        else:
            answer = useful[1] if len(useful) == 2 else min(useful[1:], key=lambda at: seen[at].length)
            toss_up = len(useful) > 2
    if not text:
        rest = [at for at in useful if at != answer]
        if not rest:
            raise SetError("There is no column with texts. Pick the column with the texts.")
        text = (max(rest, key=lambda at: (seen[at].length * seen[at].different, -at)),)
    return text, answer, toss_up


def _choices(grid: Grid, names: Sequence[str]) -> tuple[tuple[int, ...], int] | None:
    """Returns the positions of question and choices, and of the answer, in a multiple-choice table; None for
    any other table."""
    options = [at for at, name in enumerate(names) if _OPTION.fullmatch(name)]
    answer = next((names.index(one) for one in _CHOSEN if one in names), None)
    if len(options) < 3 or answer is None or answer in options:
        return None
    others = [at for at in range(len(names)) if at not in options and at != answer]
    named = [at for at in others if names[at] in QUESTION_NAMES]
    if not others:
        return None
    question = (named or [max(others, key=lambda at: _Look(grid, at).length)])[0]
    return (question, *options), answer


class _Look:
    """What a column looks like in a sample of rows."""

    def __init__(self, grid: Grid, at: int) -> None:
        step = max(1, len(grid.rows) // _SAMPLE)  # from the whole file, because it may be sorted
        cells = [row[at].strip() for row in grid.rows[::step] if row[at].strip()]
        total = max(1, len(grid.rows[::step]))
        values = Counter(cell.casefold() for cell in cells)
        self.filled = len(cells) > 0.2 * total or len(grid.columns) == 2
        self.different = len(values) / max(1, len(cells))
        self.length = sum(map(len, cells)) / max(1, len(cells))
        number = sum(bool(_COUNT.fullmatch(cell)) for cell in cells) > 0.9 * len(cells)
        single = all(len(cell.split()) == 1 and any(map(str.isdigit, cell)) for cell in cells[:200])
        most = max(map(len, cells), default=0)
        self.labels = len(cells) > 3 and self.different <= 0.5 and most <= 2 * _SHORT and len(values) > 1
        self.counts = (
            len(grid.columns) > 2 and self.different > 0.9 and (number or (single and self.length > 7))
        )


_COUNT = re.compile(r"#?[0-9]{1,12}")
