"""A whole table, labelled by a skill: each row is asked, and the same table is written to a new file with the
answer and how sure it is.

What was answered is kept beside the new file, in OUT.part, a line of JSON for each text and flushed to disk for
each batch. A run that was stopped, killed or out of disk space goes on from there, if table and skill are the
same. Equal texts are asked once. Only a complete table is written to OUT, which is never overwritten."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from app.chat.skills import MAX_TEXT
from app.common import files
from app.common.job import Done, Failed, JobEvent, Tell
from app.common.rate import TransferSpeed
from app.node.models.skills import KnownSkill, LeftBlank, left_blank
from app.node.record.errors import NodeError
from app.sapo.sets.bounds import MAX_BYTES
from app.sapo.sets.columns import QUESTION_NAMES, column_position, join_cells
from app.sapo.sets.grid import Grid, letter, read_grid
from app.sapo.sets.question_set import SetError
from app.sapo.sets.written import FILE_KINDS, Cell, table_file, xlsx_beside
from app.skills.answering import SkillAnswer, answer
from app.skills.skill import Skill
from engines.contract import Engine

PARTIAL_SUFFIX = ".part"
"""Added to the new file's name, the name of the file with what was answered so far."""
_CHARACTERS, _TEXTS = 6_000, 128
"""Maximum characters of a batch, and texts: a few seconds of work, which a kill loses."""
COLUMN_WORDS = ("answer", "how sure", "empty", "too long", "no answer")
"""What is written into a table: the names of the two columns, and why a row has no answer."""


class TableError(NodeError):
    """A table can't be labelled. The message is one sentence for the owner."""


class TableOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Which table to label. `text`: the columns with the text, by name or number from 1; guessed without any.
    `heading` and `encoding` are guessed if None. `at_least`: answers less sure than this share stay blank.
    `words`: see COLUMN_WORDS. `restart` forgets what an earlier run answered."""

    source: Path
    to: Path
    text: tuple[str, ...] = ()
    heading: bool | None = None
    encoding: str | None = None
    at_least: float = 0.0
    words: tuple[str, ...] = COLUMN_WORDS
    restart: bool = False


class TableFound(JobEvent, frozen=True, kw_only=True, tag="table"):
    """The table was read: its rows, the columns that are asked, the first texts, and what leaving blank costs
    and brings on the rows that the skill kept aside. `have`: rows that an earlier run answered."""

    rows: int
    have: int
    columns: tuple[str, ...]
    text: tuple[str, ...]
    first: tuple[str, ...]
    heading: bool
    blank: LeftBlank | None = None
    notes: tuple[str, ...] = ()


class RowsDone(JobEvent, frozen=True, kw_only=True, tag="progress"):
    """`have` of `total` rows are answered; `left_s`: seconds left, None until that is known."""

    have: int
    total: int
    share: float
    left_s: float | None = None


class TableDone(Done, frozen=True, kw_only=True, tag="labelled"):
    """The new file is written. `answered` of `rows` rows have an answer, `blank` were less sure than wanted."""

    file: str
    rows: int
    answered: int
    blank: int = 0
    empty: int = 0
    too_long: int = 0
    no_answer: int = 0
    changed: bool = False
    """Whether the table that was read has changed meanwhile."""


class TableFailed(Failed, frozen=True, kw_only=True, tag="refused"):
    """The table wasn't labelled."""


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of OUT.part: hashes of the table's content, the skill's set and its checkpoint, and how
    the table was read."""

    table: str
    skill: str
    learned: str
    text: tuple[int, ...]
    heading: bool
    encoding: str


_BEGINS = b'{"table":"'
"""How OUT.part begins."""


class _Told(msgspec.Struct, frozen=True, array_like=True):
    """A line of OUT.part: the answer to the text of a row. None: too long; "": a reply without an answer."""

    row: int
    answer: str | None
    sure: float


class Labelling:
    """The labelling of one table. Raises TableError if the table can't be read or OUT can't be written."""

    def __init__(self, known: KnownSkill, order: TableOrder) -> None:
        self._known, self._order = known, order
        self._kind = order.to.suffix.lower().removeprefix(".")
        if self._kind not in FILE_KINDS:
            raise TableError(
                f"{order.to.name} needs one of these endings: {', '.join(f'.{one}' for one in FILE_KINDS)}."
            )
        if order.to.exists():
            raise TableError(f"{order.to} exists already and isn't overwritten. Name another file.")
        self._content, self.grid = read_table(order.source, known.made.columns, order.heading, order.encoding)
        self._digest = sha256(self._content).hexdigest()
        self._text = text_columns(self.grid, order.text, known.made.columns)
        self._texts = [join_cells(self.grid.columns, self._text, row) for row in self.grid.rows]
        self._first: dict[str, int] = {}
        for place, text in enumerate(self._texts):
            self._first.setdefault(text, place)
        self._told: dict[int, _Told] = {}
        self._part = order.to.with_name(order.to.name + PARTIAL_SUFFIX)

    def run(self, engine: Engine, learned: str, tell: Tell) -> TableDone:
        """Asks the rows that are left and writes the new file. `engine` has the skill loaded, `learned` is the
        mark of its checkpoint. Raises TableError, EngineError and OSError; what was answered is kept."""
        try:
            self._continue(learned)
            tell(self._found())
            self._ask(engine, tell)
            done = self._write()
        except OSError as error:
            raise TableError(files.unwritable_sentence(error, self._order.to, "name another file")) from error
        tell(done)
        return done

    def _continue(self, learned: str) -> None:
        """Reads the answers of an earlier run from OUT.part; without one, begins that file."""
        head = _Head(
            table=self._digest,
            skill=self._known.made.mark,
            learned=learned,
            text=tuple(self._text),
            heading=self.grid.heading,
            encoding=self.grid.encoding,
        )
        lines = self._kept()
        if self._order.restart and lines:
            self._part.unlink()
            lines = []
        if len(lines) < 2:  # missing, or its first line is incomplete
            self._append([head], "wb" if lines else "xb")
            return
        if (changed := _changed(lines[0], head, self._part.name)) is not None:
            raise TableError(f"{changed} Start over (--restart), or name another file.")
        try:
            told = [msgspec.json.decode(line, type=_Told) for line in lines[1:-1]]
        except msgspec.MsgspecError as error:
            sentence = f"{self._part.name} is damaged. Start over (--restart), or name another file."
            raise TableError(sentence) from error
        self._told = {one.row: one for one in told}
        if lines[-1]:  # the disk was full, or the power went, in the middle of a line
            os.truncate(self._part, sum(len(line) + 1 for line in lines[:-1]))

    def _kept(self) -> list[bytes]:
        """Returns the lines of OUT.part. Raises TableError if another program made that file."""
        if not os.path.lexists(self._part):
            return []
        content = b"" if self._part.is_symlink() else self._part.read_bytes()
        if not content.startswith(_BEGINS) and (content or self._part.is_symlink()):
            raise TableError(f"{self._part.name} isn't from Shoal. Name another file.")
        return content.split(b"\n")

    def _ask(self, engine: Engine, tell: Tell) -> None:
        skill, rows = self._known.skill, Counter(self._texts)
        waiting = [text for text, place in self._first.items() if text and place not in self._told]
        waiting.sort(key=len, reverse=True)  # longest first: memory runs short at once or never
        total, left = len(self._texts), sum(map(len, waiting))
        have, asked = total - sum(rows[text] for text in waiting), 0
        speed = TransferSpeed()
        for texts in batches(waiting):
            _, left_s = speed.record(asked, left)
            tell(RowsDone(have=have, total=total, share=round(have / total, 4), left_s=left_s))
            said = zip(texts, skill_answers(engine, skill, texts), strict=True)
            told = [_told(skill, self._first[text], one) for text, one in said]
            self._append(told, "ab")
            self._told.update((one.row, one) for one in told)
            have, asked = have + sum(rows[text] for text in texts), asked + sum(map(len, texts))
        tell(RowsDone(have=have, total=total, share=1.0, left_s=0.0))

    def _append(self, entries: Sequence[object], mode: str) -> None:
        with self._part.open(mode) as file:
            file.write(b"".join(msgspec.json.encode(one) + b"\n" for one in entries))
            file.flush()
            os.fsync(file.fileno())

    def _found(self) -> TableFound:
        order, have = self._order, sum(self._first[text] in self._told for text in self._texts)
        measured = self._known.measured
        return TableFound(
            rows=len(self._texts),
            have=have,
            columns=tuple(self.grid.columns),
            text=tuple(self.grid.columns[at] for at in self._text),
            first=tuple(self._texts[:3]),
            heading=self.grid.heading,
            blank=left_blank(measured, order.at_least) if order.at_least else None,
            notes=tuple(self.grid.notes),
        )

    def _write(self) -> TableDone:
        """Writes the new file in one step and removes what was kept for it."""
        answered, sure, *_ = self._order.words
        names = unused(self.grid.columns, (answered, sure))
        counts: Counter[str] = Counter()
        added = [self._answer(text, counts) for text in self._texts]
        _write_new(self._order.to, self._new(names, added))
        self._part.unlink()
        same = sha256(_content(self._order.source)).hexdigest() == self._digest
        name = self._order.source.name
        note = "" if same else f" {name} changed meanwhile: the rows are as they were at the start."
        return TableDone(
            file=str(self._order.to),
            rows=len(added),
            sentence=f"{counts['']} of {len(added)} rows have an answer, in {self._order.to}.{note}",
            answered=counts[""],
            blank=counts["blank"],
            empty=counts["empty"],
            too_long=counts["too long"],
            no_answer=counts["no answer"],
            changed=not same,
        )

    def _new(self, names: Sequence[str], added: Sequence[Sequence[Cell]]) -> bytes:
        """Returns the content of the new file; where XLSX stays XLSX, the sheet itself with more columns."""
        grid = self.grid
        if self._kind == "xlsx" and self._content.startswith(b"PK"):
            with suppress(ValueError):
                return xlsx_beside(
                    self._content, grid.sheet, names if grid.heading else (), grid.numbers, added
                )
        columns = all_column_names(grid.columns, max(map(len, grid.rows)))
        rows = (
            [*row, *[""] * (len(columns) - len(row)), *more] for row, more in zip(grid.rows, added, strict=True)
        )
        delimiter = self._delimiter()
        return table_file([*columns, *names], rows, self._kind, heading=grid.heading, delimiter=delimiter)

    def _delimiter(self) -> str:
        """Returns the delimiter of the table that was read, as Excel expects its country's; else a comma."""
        cells = self.grid.columns if self.grid.heading else self.grid.rows[0]
        encoding = self.grid.encoding or "utf-8"
        return next(
            (one for one in ",;|" if one.join(cells[:2]).encode(encoding, "replace") in self._content), ","
        )

    def _answer(self, text: str, counts: Counter[str]) -> tuple[str, Cell]:
        """Returns the cells of the two new columns: answer and probability, or nothing and the reason."""
        _, _, empty, too_long, none = self._order.words
        told = self._told.get(self._first[text])
        if told is None:
            counts["empty"] += 1
            return "", empty
        if told.answer is None:
            counts["too long"] += 1
            return "", too_long
        if not told.answer:
            counts["no answer"] += 1
            return "", none
        if told.sure < self._order.at_least:
            counts["blank"] += 1
            return "", told.sure
        counts[""] += 1
        return told.answer, told.sure


def read_table(
    source: Path, usual: Sequence[str], heading: bool | None = None, encoding: str | None = None
) -> tuple[bytes, Grid]:
    """Returns a file's content, and the table in it. A first row with the `usual` names of the skill's columns
    is a heading, whatever it looks like. Raises TableError."""
    content = _content(source)
    try:
        grid = read_grid(content, heading=heading, encoding=encoding)
        if heading is None and not grid.heading and usual and grid.rows and {*usual} <= {*grid.rows[0]}:
            grid = read_grid(content, heading=True, encoding=encoding)
        return content, grid
    except SetError as error:
        raise TableError(str(error)) from error


def skill_answers(engine: Engine, skill: Skill, texts: Sequence[str]) -> list[SkillAnswer | None]:
    """Returns the skill's answer to each text, None for one that is longer than the model reads."""
    fits = [len(text) <= MAX_TEXT for text in texts]
    prompts = [skill.prompt(text) for text, one in zip(texts, fits, strict=True) if one]
    said = iter(answer(engine, prompts, skill.labels, skill.max_tokens))
    return [next(said) if one else None for one in fits]


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yields the texts in order, as many at a time as are asked together: at least one.

    >>> [len(batch) for batch in batches(["x" * 3500] * 3 + ["x"] * 200)]
    [1, 1, 128, 73]
    """
    batch: list[str] = []
    for text in texts:
        if batch and (len(batch) == _TEXTS or sum(map(len, batch)) + len(text) > _CHARACTERS):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def text_columns(grid: Grid, wanted: Sequence[str], usual: Sequence[str]) -> list[int]:
    """Returns the places of the columns that are asked: those that are `wanted`, by name or number from 1; else
    the `usual` ones, which made the text of the skill's own table; else the first that is called like a
    question; else the one with the longest texts. Raises TableError."""
    names = [name.strip().casefold() for name in grid.columns]
    if not names or not grid.rows:
        raise TableError("The table has no row to label. Check the file, or say --heading no.")
    if wanted:
        try:
            return [column_position(grid, name) for name in wanted]
        except SetError as error:
            raise TableError(str(error)) from error
    own = [name.strip().casefold() for name in usual]
    if own and {*own} <= {*names}:
        return [names.index(name) for name in own]
    for name in QUESTION_NAMES:
        if name in names:
            return [names.index(name)]
    lengths = [sum(len(row[at]) for row in grid.rows) for at in range(len(names))]
    return [lengths.index(max(lengths))]


def all_column_names(columns: Sequence[str], width: int) -> list[str]:
    """Returns a different name for each of `width` columns: a repeated name gets a number, a column without a
    name its letter.

    >>> all_column_names(["a", "a"], 3)
    ['a', 'a 2', 'C']
    """
    return unused([], [*columns, *(letter(at) for at in range(len(columns), width))])


def unused(columns: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Returns names that no column has yet, with a number where they are taken.

    >>> unused(["Text", "Answer"], ["answer", "how sure"])
    ['answer 2', 'how sure']
    """
    taken = {name.strip().casefold() for name in columns}
    found = []
    for name in wanted:
        free, number = name, 2
        while free.casefold() in taken:
            free, number = f"{name} {number}", number + 1
        taken.add(free.casefold())
        found.append(free)
    return found


def _told(skill: Skill, row: int, said: SkillAnswer | None) -> _Told:
    if said is None:
        return _Told(row=row, answer=None, sure=0.0)
    return _Told(row=row, answer=skill.read(said.text) or "", sure=round(said.sure, 4))


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise TableError(f"{file} can't be read ({error.strerror or error}). Check its name.") from error


def _changed(line: bytes, head: _Head, part: str) -> str | None:
    """Returns a sentence on what is another than when OUT.part was begun; None if nothing is."""
    try:
        before = msgspec.json.decode(line, type=_Head)
    except msgspec.MsgspecError:
        return f"{part} is damaged."
    if before.table != head.table:
        return f"The table has changed since {part} was begun."
    if before.skill != head.skill:
        return f"{part} was begun with another skill."
    if before.learned != head.learned:
        return f"The skill has learned on since {part} was begun."
    return None if before == head else f"{part} was begun with other columns or another encoding."


def _write_new(path: Path, content: bytes) -> None:
    """Writes a file that doesn't exist yet, in one step. Raises TableError if it exists meanwhile."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with fresh.open("xb") as file:
            file.write(content)
        files.flush(fresh)
        try:
            os.link(fresh, path)
        except FileExistsError:
            raise TableError(f"{path} exists already and isn't overwritten. Name another file.") from None
        except OSError:  # the disk does not support links
            fresh.rename(path)
    finally:
        fresh.unlink(missing_ok=True)
