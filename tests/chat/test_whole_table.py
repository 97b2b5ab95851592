"""A table is labelled row by row into a new file, goes on where it was stopped, and runs nothing in a sheet."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from app.chat import whole_table
from app.chat.whole_table import Labelling, RowsDone, TableError, TableFound, TableOrder
from app.common.job import JobEvent
from app.node.history.measured import AnsweredQuestion, MeasuredAnswers
from app.node.models.skills import KnownSkill
from app.sapo.sets import tables
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.columns import Chosen
from app.sapo.sets.grid import read_grid
from app.sapo.sets.question_set import QuestionSet, Row, decode, encode
from app.sapo.sets.written import table_file
from engines.contract import Engine, EngineError, Messages, TokenSequence

ROWS = tuple(Row(question=f"Mail {n}?", answer="spam" if n % 2 else "ham") for n in range(20))
MADE = QuestionSet(name="mails", rule=Rule(check=Check.CHOICE, labels=("ham", "spam")), rows=ROWS)


@dataclass
class Fake:
    """An engine that takes texts with an odd number of characters for spam, the surer the longer they are."""

    asked: list[str] = field(default_factory=list)
    info: Any = field(default_factory=lambda: SimpleNamespace(context=0))

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        text = prompt[-1]["content"]
        if len(text) > 300:
            raise EngineError("too long")
        odd = len(text) % 2
        likely = (completion == "spam") == bool(odd)
        if completion == "ham":
            self.asked.append(text)
        return TokenSequence(prompt_T=[len(text)], completion_T=[int(likely)])

    def logprobs(self, sequences: Sequence[TokenSequence]) -> list[list[float]]:
        return [[one.prompt_T[0] / 10 if one.completion_T[0] else 0.0] for one in sequences]


def known(tmp_path: Path, measured: MeasuredAnswers | None = None) -> KnownSkill:
    return KnownSkill(
        made=MADE, slug="mails", folder=tmp_path, model=tmp_path, model_name="starter", measured=measured
    )


def label(
    tmp_path: Path, content: bytes, out: str = "out.csv", engine: Fake | None = None, **more: Any
) -> tuple[list[list[str]], list[JobEvent]]:
    source = tmp_path / "in.csv"
    source.write_bytes(content)
    order = TableOrder(source=source, to=tmp_path / out, **more)
    told: list[JobEvent] = []
    Labelling(known(tmp_path), order).run(cast(Engine, engine or Fake()), "mark", told.append)
    return list(csv.reader(io.StringIO(order.to.read_text("utf-8-sig")))) if out.endswith("csv") else [], told


def test_the_same_table_comes_back_with_two_columns_and_every_row_says_what_became_of_it(
    tmp_path: Path,
) -> None:
    table = "id,Text,answer\n1,abc,x\n2,,y\n3,ab,z\n4,abc,\n5," + "q" * 400 + ",\n"
    engine = Fake()
    rows, told = label(tmp_path, table.encode(), engine=engine, at_least=0.56)
    assert rows[0] == ["id", "Text", "answer", "answer 2", "how sure"]
    assert [row[3:] for row in rows[1:]] == [
        ["spam", "57 %"],
        ["", "empty"],
        ["", "54 %"],
        ["spam", "57 %"],
        ["", "too long"],
    ]
    assert [row[:2] for row in rows[1:4]] == [["1", "abc"], ["2", ""], ["3", "ab"]]
    assert sorted(engine.asked) == ["ab", "abc"]  # equal texts once
    found, done = told[0], told[-1]
    assert isinstance(found, TableFound) and found.text == ("Text",)
    assert (done.answered, done.blank, done.empty, done.too_long) == (2, 1, 1, 1)  # type: ignore[attr-defined]
    with pytest.raises(TableError, match="exists already"):
        label(tmp_path, table.encode())


def test_columns_are_chosen_by_name_or_number_and_joined_and_else_guessed(tmp_path: Path) -> None:
    table = b"id,subject,body,n\n1,ab,cdefgh,5\n"
    engine = Fake()
    label(tmp_path, table, "a.csv", engine, text=("Subject", "3"))
    label(tmp_path, table, "b.csv", engine)
    assert engine.asked == ["ab\ncdefgh", "cdefgh"]
    label(tmp_path, "id;Grüße\n1;ab\n".encode("cp1252"), "d.csv", encoding="cp1252")
    assert (tmp_path / "d.csv").read_text("utf-8-sig") == "id;Grüße;answer;how sure\n1;ab;ham;54 %\n"
    with pytest.raises(TableError, match=r"no column 'x'.*subject"):
        label(tmp_path, table, "c.csv", text=("x",))
    with pytest.raises(TableError, match=r"\.xlsx"):
        label(tmp_path, table, "c.doc")


def test_the_columns_of_the_skills_own_table_are_found_again(tmp_path: Path) -> None:
    table = b"Nr,Subject,Body,Folder\n" + b"".join(
        f"{n},Mail {n},Body {n},{n % 2}\n".encode() for n in range(20)
    )
    made = tables.read(table, "mails", chosen=Chosen(text=("Subject", "Body"))).made
    assert made.columns == ("Subject", "Body") and made.mark == replace(made, columns=()).mark
    assert decode(encode(made)) == made
    new = read_grid(b"Body,Question,Subject\na,b,c\nd,e,f\n")
    assert whole_table.text_columns(new, (), made.columns) == [2, 0]
    assert whole_table.text_columns(new, ("1",), made.columns) == [0]
    assert whole_table.text_columns(read_grid(b"Body,Question\na,b\n"), (), made.columns) == [1]
    (tmp_path / "one.csv").write_bytes(b"Country\nPersia\nSiam\n")  # nothing tells a heading of one word
    assert [
        len(whole_table.read_table(tmp_path / "one.csv", usual)[1].rows) for usual in ((), ("Country",))
    ] == [3, 2]


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx", "ods", "jsonl"])
def test_each_kind_is_read_back_as_it_was_written_and_formulas_are_text(tmp_path: Path, kind: str) -> None:
    cells = ["=1+1", "@cmd", "-5", "+x", 'a,"b"\tc', "two\nlines", " x  y ", "01123", "ä €"]
    lines = io.StringIO()
    csv.writer(lines).writerows([["text"], *[[cell] for cell in cells]])
    label(tmp_path, lines.getvalue().encode(), f"out.{kind}")
    content = (tmp_path / f"out.{kind}").read_bytes()
    if kind in ("xlsx", "ods"):
        import python_calamine

        sheet = python_calamine.load_workbook(io.BytesIO(content)).get_sheet_by_index(0).to_python()
        cells[2] = -5.0  # type: ignore[call-overload]
        if kind == "ods":
            cells[4] = 'a,"b"c'  # calamine skips a tab, which LibreOffice reads
        assert sheet[0] == ["text", "answer", "how sure"] and [row[0] for row in sheet[1:]] == cells
        assert all(isinstance(row[2], float) and row[1] in ("ham", "spam") for row in sheet[1:])
    elif kind == "jsonl":
        objects = [json.loads(line) for line in content.splitlines()]
        assert [one["text"] for one in objects] == cells and isinstance(objects[0]["how sure"], float)
    else:
        read = csv.reader(io.StringIO(content.decode("utf-8-sig")), delimiter="\t" if kind == "tsv" else ",")
        safe = ["'=1+1", "'@cmd", "-5", "'+x", *cells[4:]]
        assert [row[0] for row in read] == ["text", *safe]


def test_an_xlsx_stays_as_it_was_with_two_columns_beside_its_table(tmp_path: Path) -> None:
    from openpyxl import Workbook, load_workbook
    from openpyxl.styles import Font

    book, source = Workbook(), tmp_path / "in.xlsx"
    sheet = book.active
    sheet.append(["Mails of May"])
    sheet.append([])
    sheet.append(["Nr", "Text"])
    for row in ([1, "abc"], [], [2, "ab"]):
        sheet.append(row)
    sheet["B3"].font, sheet.column_dimensions["B"].width = Font(bold=True), 40
    book.create_sheet("Other")["A1"] = "kept"
    book.save(source)
    order = TableOrder(source=source, to=tmp_path / "out.xlsx")
    Labelling(known(tmp_path), order).run(cast(Engine, Fake()), "mark", lambda event: None)
    read = load_workbook(order.to)
    told = [[cell.value for cell in row] for row in read.worksheets[0].iter_rows(min_row=3)]
    assert told[0] == ["Nr", "Text", "answer", "how sure"] and read["Other"]["A1"].value == "kept"
    assert [row[:3] for row in told[1:]] == [[1, "abc", "spam"], [None] * 3, [2, "ab", "ham"]]
    first = read.worksheets[0]
    assert first["C3"].font.bold and first.column_dimensions["B"].width == 40
    assert first["D4"].number_format == "0%" and first["D4"].value == pytest.approx(0.574, abs=0.001)


RUN = """
import sys, time
from pathlib import Path
from tests.chat.test_whole_table import Fake, known
from app.chat import whole_table
whole_table._TEXTS = 5
class Slow(Fake):
    def logprobs(self, sequences):
        print(len(sequences), flush=True)
        time.sleep(0.05)
        return super().logprobs(sequences)
place = Path(sys.argv[1])
order = whole_table.TableOrder(source=place / "in.csv", to=place / "out.csv")
whole_table.Labelling(known(place), order).run(Slow(), "mark", lambda event: None)
"""


def test_a_killed_run_goes_on_and_writes_what_an_undisturbed_one_does(tmp_path: Path) -> None:
    table = ("text\n" + "".join(f"{'x' * (n % 70)} {n}\n" for n in range(200))).encode()
    label(tmp_path, table, "whole.csv")
    root = Path(whole_table.__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", RUN, tmp_path], stdout=subprocess.PIPE, cwd=root, env={**os.environ}
    )
    assert child.stdout is not None
    for _ in range(8):
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait()
    part = tmp_path / "out.csv.part"
    assert not (tmp_path / "out.csv").exists() and part.read_bytes().count(b"\n") >= 30
    with part.open("ab") as file:
        file.write(b'[7,"sp')  # as a power cut leaves it
    engine = Fake()
    _, told = label(tmp_path, table, engine=engine)
    assert 100 < len(engine.asked) < 180 and cast(TableFound, told[0]).have >= 30
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes() and not part.exists()


def test_another_table_skill_or_checkpoint_is_said_and_restart_begins_anew(tmp_path: Path) -> None:
    source, to = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("text\nabc\nab\n")
    order = TableOrder(source=source, to=to)

    def stop(event: JobEvent) -> None:
        if isinstance(event, RowsDone):
            raise KeyboardInterrupt

    def run(learned: str = "mark", **more: Any) -> None:
        changed = TableOrder(**{**{"source": source, "to": to}, **more})
        Labelling(known(tmp_path), changed).run(cast(Engine, Fake()), learned, lambda event: None)

    with pytest.raises(KeyboardInterrupt):
        Labelling(known(tmp_path), order).run(cast(Engine, Fake()), "mark", stop)
    with pytest.raises(TableError, match="learned on since"):
        run("other")
    source.write_text("text\nabc\nabcd\n")
    with pytest.raises(TableError, match=r"table has changed.*\(--restart\)"):
        run()
    run(restart=True)
    assert "abcd" in to.read_text()


def test_a_full_disk_is_one_sentence_and_what_is_done_is_kept(tmp_path: Path) -> None:
    table = ("text\n" + "".join(f"row {n}\n" for n in range(2000))).encode()
    label(tmp_path, table, "whole.csv")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(table) + 1, hard))
    try:
        with pytest.raises(TableError, match=r"out\.csv"):
            label(tmp_path, table)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    engine = Fake()
    label(tmp_path, table, engine=engine)
    assert 0 < len(engine.asked) < 2000
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_table_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("text\nabc\n")
    told: list[JobEvent] = []

    def tell(event: JobEvent) -> None:
        told.append(event)
        source.write_text("text\nother\n")

    order = TableOrder(source=source, to=tmp_path / "out.csv")
    Labelling(known(tmp_path), order).run(cast(Engine, Fake()), "mark", tell)
    assert told[-1].changed and "changed meanwhile" in told[-1].sentence and "abc" in order.to.read_text()  # type: ignore[attr-defined]


def test_what_leaving_blank_costs_and_brings_is_told_before_it_starts(tmp_path: Path) -> None:
    answers = tuple(
        AnsweredQuestion(question="", answer="", solved=n > 3, content=n, sure=n / 10) for n in range(10)
    )
    source = tmp_path / "in.csv"
    source.write_text("text\nabc\n")
    order = TableOrder(source=source, to=tmp_path / "out.csv", at_least=0.5)
    told: list[JobEvent] = []
    skill = known(tmp_path, MeasuredAnswers(round=1, answers=answers))
    Labelling(skill, order).run(cast(Engine, Fake()), "mark", told.append)
    blank = cast(TableFound, told[0]).blank
    assert blank is not None and (blank.of, blank.answered, blank.right, blank.right_of_all) == (10, 5, 5, 6)


def test_what_is_written_has_no_character_that_xml_cannot_hold() -> None:
    for kind in ("xlsx", "ods"):
        assert table_file(["a"], [["x\x00\ud800"]], kind).startswith(b"PK")


def test_a_file_of_another_program_is_not_touched(tmp_path: Path) -> None:
    part = tmp_path / "out.csv.part"
    for content in (b"somebody's only copy", b"a,b\n1,2\n"):
        part.write_bytes(content)
        for restart in (False, True):
            with pytest.raises(TableError, match="isn't from Shoal"):
                label(tmp_path, b"text\nMail?\n", restart=restart)
        assert part.read_bytes() == content
    part.unlink()
    theirs = tmp_path / "theirs.txt"
    theirs.write_text("precious")
    part.symlink_to(theirs)
    with pytest.raises(TableError, match="isn't from Shoal"):
        label(tmp_path, b"text\nMail?\n", restart=True)
    assert theirs.read_text() == "precious"


def test_a_damaged_line_of_what_was_answered_is_one_sentence(tmp_path: Path) -> None:
    table = b"text\n" + b"".join(b"Mail %d?\n" % n for n in range(5))
    source, to = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(table)
    labelling = Labelling(known(tmp_path), TableOrder(source=source, to=to))
    labelling._continue("mark")
    with labelling._part.open("ab") as file:
        file.write(b"[0,not json]\n")
    with pytest.raises(TableError, match="damaged"):
        Labelling(known(tmp_path), TableOrder(source=source, to=to))._continue("mark")


def test_choices_are_asked_as_they_were_taught(tmp_path: Path) -> None:
    table = b"Question,A,B,C,Correct\n" + b"".join(b"Q %d?,one,two,three,A\n" % n for n in range(12))
    made = tables.read(table, "quiz").made
    (tmp_path / "in.csv").write_bytes(b"Question,A,B,C\nQ 3?,one,two,three\n")
    skill = replace(known(tmp_path), made=made)
    assert made.columns == ("Question", "A", "B", "C")
    order = TableOrder(source=tmp_path / "in.csv", to=tmp_path / "out.csv")
    labelling = Labelling(skill, order)
    assert labelling._texts == [made.rows[3].question] == ["Q 3?\nA: one\nB: two\nC: three"]
