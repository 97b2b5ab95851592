"""Tables and sets of people who mean harm: one sentence, in a moment, and nothing lost."""

from __future__ import annotations

import contextlib
import io
import re
import zipfile
from pathlib import Path

import msgspec
import openpyxl
import pytest
from msgspec.structs import replace

from app.node.data import question_sets
from app.sapo.sets import tables
from app.sapo.sets.amending import amended
from app.sapo.sets.bounds import MAX_GRID_ROWS
from app.sapo.sets.checks import Check, Rule, score_answer
from app.sapo.sets.columns import Chosen, find_columns
from app.sapo.sets.grid import read_grid
from app.sapo.sets.question_set import QuestionSet, Row, SetError, check, encode, examples, family, held_out
from app.sapo.sets.written import table_file

ROWS = tuple(Row(question=f"Mail {n}", answer="spam" if n % 2 else "ham") for n in range(40))
MAILS = QuestionSet(name="Mails", rule=Rule(check=Check.CHOICE, labels=("ham", "spam")), rows=ROWS)


@pytest.mark.parametrize("text", ["1e-10000000", "1e-999999999", "1e400", "1e999999"])
def test_a_tolerance_that_would_take_for_ever_is_refused(text: str) -> None:
    with pytest.raises(SetError, match="no tolerance"):
        check(replace(MAILS, rule=Rule(check=Check.NUMBER, tolerance=text)))


def test_numbers_of_hundreds_of_digits_are_compared() -> None:
    rule = Rule(check=Check.JSON)
    assert score_answer(rule, '{"a":1' + 400 * "0" + "}", '{"a":1.5}') == 0.0
    assert score_answer(rule, '{"a":1.5}', '{"a":1.5}') == 1.0


@pytest.mark.parametrize("aside", [40, 39, 0])
def test_a_set_that_keeps_all_or_nothing_aside_is_refused(aside: int) -> None:
    rows = tuple(replace(row, held_out=n < aside) for n, row in enumerate(ROWS))
    with pytest.raises(SetError, match="kept aside"):
        check(replace(MAILS, rows=rows))


def test_an_old_set_keeps_what_it_kept_aside_when_rows_are_added() -> None:
    old = QuestionSet(
        name="Signs",
        rule=Rule(),
        format=1,
        rows=tuple(Row(question=f"What is {n} - {n % 7}?", answer=str(n)) for n in range(40)),
    )
    grown = amended(old, [Row(question="What is 99 - 1?", answer="98")]).made
    assert (held_out(old) or frozenset()) <= (held_out(grown) or frozenset())
    taught = {one.question for one in examples(old)}
    assert {one.question for one in examples(grown)} - taught <= {"What is 99 - 1?"}


def test_a_set_is_encoded_once_however_many_rows_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(Row(question=f"Mail number {n}", answer="spam" if n % 2 else "ham") for n in range(600))
    encoded = []
    whole = QuestionSet.canonical_json.fget
    assert whole is not None

    def counted(made: QuestionSet) -> bytes:
        encoded.append(len(made.rows))
        return whole(made)

    monkeypatch.setattr(QuestionSet, "canonical_json", property(counted))
    grown = amended(replace(MAILS, rows=rows), [Row(question="One more", answer="spam")]).made
    family(grown)
    assert len(encoded) <= 3


def test_a_number_is_a_column_whatever_the_others_are_called() -> None:
    grid = read_grid(b"2,1\nLargest lake?,Baikal\nLongest river?,Nile\nHighest hill?,Everest\n", heading=True)
    by_number = find_columns(grid, Chosen(text=("#1",), answer="#2"))
    assert (by_number.text, by_number.answer) == ((0,), 1)
    assert find_columns(grid, Chosen(text=("2",), answer="1")).text == (0,), "a name goes before a number"


def test_what_is_not_read_is_said() -> None:
    long = read_grid(("a,b\n" * (MAX_GRID_ROWS + 9)).encode(), heading=False)
    assert len(long.rows) == MAX_GRID_ROWS and any("Only the first" in note for note in long.notes)
    lines = b'{"q":"a","a":"b"}\n' * 9 + b'{"q": broken\n'
    assert any("can't be read as a row" in note for note in read_grid(lines).notes)
    wide = msgspec.json.encode([{f"f{n}": "x" for n in range(300)}] * 3)
    with pytest.raises(SetError, match="300 columns"):
        read_grid(wide)


@pytest.mark.parametrize(
    "content",
    [
        b"x\n" + b" " * 400_000 + b"x\n",
        b"q,a\n" + b"why?,x" + b" " * 400_000 + b"y\n" * 9,
        b"#separator:tab\n" * 80_000,
    ],
    ids=["markdown", "hashes", "anki"],
)
def test_no_text_takes_longer_than_it_is_long(content: bytes) -> None:
    """Each took minutes to hours once; a test's own limit is ten minutes."""
    with contextlib.suppress(SetError):
        tables.read(content, "x")


def test_json_that_unfolds_to_millions_of_cells_is_refused() -> None:
    bomb = [{**{f"f{n}": "" for n in range(2000)}, "x": [{"q": "a"}] * 5000}] * 4
    with pytest.raises(SetError, match="more cells"):
        read_grid(msgspec.json.encode(bomb))


@pytest.mark.parametrize("kind", ["xlsx", "ods"])
def test_a_spreadsheet_with_a_broken_part_is_one_sentence(kind: str) -> None:
    whole = table_file(["q", "a"], [[f"text {n} " * 20, "yes"] for n in range(200)], kind)
    with zipfile.ZipFile(io.BytesIO(whole)) as packed:
        name = next(name for name in packed.namelist() if "sheet1" in name or name == "content.xml")
        place = whole.index(name.encode()) + len(name) + 40
    for at in range(place, place + 400, 7):
        spoiled = bytearray(whole)
        spoiled[at] ^= 0xFF
        with contextlib.suppress(SetError):
            read_grid(bytes(spoiled))


def test_formulas_that_nobody_computed_are_told() -> None:
    """Programs that only write sheets leave their values out, and a spreadsheet program fills them in."""
    book = openpyxl.Workbook()
    for row in [("text", "answer"), ("a", "=1+1"), ("b", "x"), ("c", "=A2")]:
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    grid = read_grid(file.getvalue())
    assert [row[1] for row in grid.rows] == ["", "x", ""] and grid.notes[0].startswith(
        "2 formulas have no value"
    )
    computed = file.getvalue()
    with zipfile.ZipFile(io.BytesIO(computed)) as packed:
        sheet = packed.read("xl/worksheets/sheet1.xml")
    assert not read_grid(_with_sheet(computed, re.sub(rb"<v ?/>|<v></v>", b"<v>2</v>", sheet))).notes


def _with_sheet(content: bytes, sheet: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as packed, zipfile.ZipFile(made, "w") as copy:
        for part in packed.namelist():
            copy.writestr(part, sheet if part == "xl/worksheets/sheet1.xml" else packed.read(part))
    return made.getvalue()


def test_a_class_cannot_say_what_is_kept_aside(tmp_path: object) -> None:

    home = Path(str(tmp_path))
    assert question_sets.store_offered_set(home, encode(MAILS).decode())
    marked = replace(
        MAILS, name="Other", rows=tuple(replace(row, held_out=n < 4) for n, row in enumerate(ROWS))
    )
    assert not question_sets.store_offered_set(home, encode(marked).decode())
