"""Question sets: what files become, how answers are checked, what is held out."""

from __future__ import annotations

import io
import json
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest

from app.sapo.asking import MAX_ANSWER
from app.sapo.families import FAMILIES
from app.sapo.probe import probe_questions
from app.sapo.questions import Coordinates, draw, generate, make
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.sets import templates
from app.sapo.sets.bounds import MAX_ROWS
from app.sapo.sets.checks import Check, Rule, guess_rule, score_answer
from app.sapo.sets.question_set import (
    QuestionSet,
    Row,
    SetError,
    check,
    decode,
    encode,
    family,
    is_owners_set,
    near_duplicate_key,
)
from app.sapo.sets.tables import Preview, SkipReason, preview
from app.sapo.sets.templates import TemplateError
from tests.sapo.scoring.test_hostile import BOMBS, payloads

WORDS = [f"Word {chr(97 + n % 26)}{n} in French?" for n in range(40)]


def read(text: str | bytes, rule: Rule | None = None) -> Preview:
    return preview(text.encode() if isinstance(text, str) else text, "Set", rule)


def rows(found: Preview) -> list[tuple[str, str]]:
    return [(row.question, row.answer) for row in found.made.rows]


def _xlsx(cells: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/workbook.xml", '<workbook><sheets><sheet name="S" r:id="r1"/></sheets></workbook>')
        archive.writestr("xl/worksheets/sheet1.xml", f"<worksheet><sheetData>{cells}</sheetData></worksheet>")
    return file.getvalue()


def _zip_bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"\0" * 2**25)
    return file.getvalue()


BROKEN: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "spaces": lambda: b" \r\n\t\n" * 50,
    "byte order mark alone": lambda: b"\xef\xbb\xbf",
    "200 MB": lambda: b"a,b\n" * (50 * 2**20),
    "XLSX": lambda: b"PK\x03\x04" + b"\0" * 500,
    "zip bomb": _zip_bomb,
    "old Excel": lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500,
    "PDF": lambda: b"%PDF-1.7\n%\xe2\xe3",
    "gzip": lambda: b"\x1f\x8b\x08" + b"\0" * 100,
    "database": lambda: b"SQLite format 3\0" + b"\0" * 100,
    "picture": lambda: b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
    "random bytes": lambda: Random(1).randbytes(100_000),
    "UTF-16 without a mark": lambda: "question,answer\na,b\n".encode("utf-16-le"),
    "XLSX of a billion cells": lambda: _xlsx(
        '<row r="1"><c r="A1"><v>1</v></c><c r="XFD1048576"><v>1</v></c></row>'
    ),
    "half UTF-16": lambda: b"\xff\xfe" + b"\x00\xd8" * 400,
    "HTML": lambda: b"<!DOCTYPE html><html><table><tr><td>1</td></tr></table></html>",
    "XML bomb": lambda: b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "&b;&b;">]><l>&a;</l>',
    "one column": lambda: b"question\n" + b"What?\n" * 30,
    "a million columns": lambda: b"a," * 10**6 + b"b\n" + b"1," * 10**6 + b"2\n",
    "a million unnamed columns": lambda: b"," * 10**6,
    "quotes that never close": lambda: b'question,answer\n"' + b"a,b\n" * 10**6,
    "quotes alone": lambda: b'"' * 10**6,
    "empty cells": lambda: b"question,answer\n" + b",\n" * 1000,
    "no answers": lambda: b"question,answer\n" + b"What is it?,\n" * 1000,
    "control characters": lambda: b"question,answer\n\x07,\x08\n\x0b,\x0c\n",
    "marks of direction": lambda: "question,answer\n\u202e\u200f,\u2066\u202c\n".encode(),
    "deep JSON": lambda: b"[" * 10**6 + b"]" * 10**6,
    "JSON cut off": lambda: b'[{"question": "What?", "answer": "Thi',
    "JSON of other things": lambda: json.dumps([{"name": "a", "age": 1}] * 100).encode(),
    "JSON numbers": lambda: b"[1, 2, 3]",
    "template without an answer": lambda: b"What is {a}?\na: 1-9\nanswer:",
    "template that divides by zero": lambda: b"What is {a}/0?\na: 1-9\nanswer: a/0",
    "template with brackets": lambda: b"What is {a}?\na: 1-9\nanswer: " + b"(" * 10**5 + b"a" + b")" * 10**5,
    "template that calls": lambda: b"What is {a}?\na: 1-9\nanswer: __import__('os').abort()",
    "seven questions": lambda: b"question,answer\n" + b"".join(b"q%d,a%d\n" % (n, n) for n in range(7)),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_file_is_refused_in_one_sentence(broken: str) -> None:
    content = BROKEN[broken]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    with pytest.raises(SetError) as refused:
        check(read(content).made)
    sentence = str(refused.value)
    assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 240
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 * 1024
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - cpu < 60  # the processor's time, not the wall's


def test_thirty_broken_files() -> None:
    assert len(BROKEN) >= 30


CAPITALS = [("Capital of France?", "Paris"), ("Capital of Spain; now?", "Madrid, city")]
READABLE = {
    "comma": 'Question,Answer\nCapital of France?,Paris\n"Capital of Spain; now?","Madrid, city"\n',
    "semicolon with a mark": "\ufeffquestion;answer\r\nCapital of France?;Paris\r\n"
    '"Capital of Spain; now?";Madrid, city\r\n',
    "tabs": "prompt\tlabel\nCapital of France?\tParis\nCapital of Spain; now?\tMadrid, city\n",
    "other order, more columns": "id,output,problem\n1,Paris,Capital of France?\n"
    '2,"Madrid, city","Capital of Spain; now?"\n',
    "no names": 'Capital of France?,Paris\n"Capital of Spain; now?","Madrid, city"\n',
    "JSON lines": "\n".join(json.dumps({"input": question, "target": answer}) for question, answer in CAPITALS),
    "JSON": json.dumps({"data": [{"Question": question, "Answer": answer} for question, answer in CAPITALS]}),
    "pairs": json.dumps([list(pair) for pair in CAPITALS]),
    "chats": json.dumps(
        [
            {"messages": [{"role": "user", "content": one}, {"role": "assistant", "content": two}]}
            for one, two in CAPITALS
        ]
    ),
}


@pytest.mark.parametrize("form", READABLE)
def test_every_form_of_a_table_gives_the_same_rows(form: str) -> None:
    assert rows(read(READABLE[form])) == CAPITALS


def test_q_and_a_name_the_columns() -> None:
    """The names were taken as a question."""
    assert len(rows(read("q,a\n" + "".join(f"{n}+1,{n + 1}\n" for n in range(12))))) == 12


def test_other_encodings_are_read() -> None:
    text = "question,answer\nVille de l'été?,Sète\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        assert rows(read(text.encode(encoding))) == [("Ville de l'été?", "Sète")]


def test_work_before_four_hashes_is_kept_apart() -> None:
    line = json.dumps({"question": "How many?", "answer": "Half is <<48/2=24>>24.\n48+24=72.\n#### 72"})
    [row] = read(line).made.rows
    assert (row.answer, row.work) == ("72", "Half is 24. 48+24=72.")


def test_what_is_left_out_is_said_with_its_row() -> None:
    table = (
        "question,answer\n2 + 2?,4\n2 + 2?,4\n 2 + 2? ,5\nlone,\n,7\nsum,=SUM(A1:A2)\nhash,a#b\n"
        + f"1,{'x' * 2000}\n3\u202e + 3?,6\n"
    )
    found = read(table, Rule())
    assert [(one.row, one.reason, one.like) for one in found.skipped] == [
        (3, SkipReason.SAME, 2),
        (4, SkipReason.CONTRADICTION, 2),
        (5, SkipReason.NO_ANSWER, 0),
        (6, SkipReason.NO_QUESTION, 0),
        (9, SkipReason.TOO_LONG, 0),
    ]
    assert rows(found) == [("2 + 2?", "4"), ("sum", "=SUM(A1:A2)"), ("hash", "a#b"), ("3 + 3?", "6")]
    assert found.duplicates == found.contradictions == 1 and len(found.notes) == 1


def test_more_rows_than_a_set_holds_are_left_out() -> None:
    found = read("question,answer\n" + "".join(f"q{n},{n}\n" for n in range(MAX_ROWS + 5)))
    assert len(found.made.rows) == MAX_ROWS
    assert {one.reason for one in found.skipped} == {SkipReason.TOO_MANY}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["12", "-3.5", "1,000"], Check.NUMBER),
        (["1,5", "2,25"], Check.NUMBER),
        (["5 km", "12 km"], Check.NUMBER),
        (["spam", "ham", "ham", "spam", "Spam", "ham"], Check.CHOICE),
        (["yes", "no", "no"], Check.TRUE_FALSE),
        (["2026-01-31", "3.5.2026"], Check.DATE),
        (["a | b", "c | d", "e"], Check.ONE_OF),
        (["red, green", "blue, white"], Check.LIST),
        (['{"to": "Ann"}', '{"to": "Bob"}'], Check.JSON),
        (["Paris", "Madrid", "Rome"], Check.TEXT),
    ],
)
def test_the_check_is_guessed_from_the_answers(answers: list[str], expected: Check) -> None:
    rule = guess_rule(answers)
    assert rule.check is expected
    assert all(score_answer(rule, answer.split("|")[0], answer) == 1.0 for answer in answers)


R = Rule
WRONG = [
    (R(), "pariss", "Paris"), (R(), "", "Paris"), (R(), "cafe", "café"), (R(), "Paris or Rome", "Paris"),
    (R(check=Check.ONE_OF), "Bank | Ufer", "Bank | Ufer"), (R(check=Check.ONE_OF), "", "a | b"),
    (R(check=Check.NUMBER), "1e3", "1000"), (R(check=Check.NUMBER), "5 miles", "5 km"),
    (R(check=Check.NUMBER), "5 or 6", "5"), (R(check=Check.NUMBER), "٥", "5"),
    (R(check=Check.NUMBER), "1/0", "0"),
    (R(check=Check.NUMBER), "nan", "nan"), (R(check=Check.NUMBER, comma=True), "1.000", "1"),
    (R(check=Check.CHOICE, labels=("ham", "spam")), "ham, spam", "spam"),
    (R(check=Check.TRUE_FALSE), "true false", "true"), (R(check=Check.TRUE_FALSE), "1", "true"),
    (R(check=Check.LIST), "b, a", "a, b"), (R(check=Check.LIST), "a, b, c", "a, b"),
    (R(check=Check.SET), "a", "a, b"),
    (R(check=Check.DATE), "2026-05-04", "2026-05-03"), (R(check=Check.DATE), "31.2.2026", "3.3.2026"),
    (R(check=Check.JSON), '{"a": 1, "b": 2}', '{"a": 1}'), (R(check=Check.JSON), "[" * 500, '{"a": 1}'),
    (R(check=Check.JSON), '{"a": true}', '{"a": 1}'),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "answer", "truth"), WRONG)
def test_wrong_answers_earn_no_point(rule: Rule, answer: str, truth: str) -> None:
    assert 0.0 <= score_answer(rule, answer, truth) < 0.99


TRUTHS = {
    Check.TEXT: "Paris", Check.ONE_OF: "Bank | Ufer", Check.NUMBER: "4711", Check.CHOICE: "spam",
    Check.LIST: "red, green", Check.SET: "red, green", Check.DATE: "2026-05-03", Check.TRUE_FALSE: "correct",
    Check.JSON: '{"to": "Ann", "n": 3}',
}  # fmt: skip


@pytest.mark.parametrize("check_", Check)
def test_hostile_and_fuzzed_answers_are_never_run_and_never_paid(check_: Check, tmp_path: Path) -> None:
    canary, rule, rng = tmp_path / "canary", Rule(check=check_), Random(7)
    signs = "0123456789 \n,.+-*/()[]{}'\":_=#%xeEP∧abcdefgrtuw٣½１\0\u200b\u2212|;\ud800"
    fuzzed = ("".join(rng.choices(signs, k=rng.randrange(1, 40))) for _ in range(100_000 // len(Check)))
    for answer in (
        *payloads(canary),
        *BOMBS,
        "[" * MAX_ANSWER,
        "{" * MAX_ANSWER,
        "\ufdfa" * MAX_ANSWER,
        *fuzzed,
    ):
        if len(answer) <= MAX_ANSWER:
            assert score_answer(rule, answer, TRUTHS[check_]) < 0.99, answer
    assert not canary.exists()


def a_set(count: int = 40, **change: object) -> QuestionSet:
    made = QuestionSet(
        name="Words",
        rule=Rule(),
        rows=tuple(Row(question=one, answer=f"mot{n}") for n, one in enumerate(WORDS[:count])),
    )
    return msgspec.structs.replace(made, **change)


def test_a_fifth_is_held_out_and_near_duplicates_lie_on_one_side() -> None:
    double = tuple(Row(question=row.question.upper() + "!", answer=row.answer) for row in a_set().rows)
    made = a_set(rows=a_set().rows + double)
    one = family(made)
    assert made.distinct == 40 and one.held_out is not None and len(one.held_out) == 8
    FAMILIES.enable(one)
    sides: dict[object, set[bool]] = {}
    for seed in range(2000):
        question = draw(one.name, 0, seed)
        sides.setdefault(near_duplicate_key(question.text), set()).add(question.held_out)
    assert len(sides) == 40 and all(len(side) == 1 for side in sides.values())
    probed = probe_questions({one.name: 0}, 64, make)
    assert all(question.held_out for question in probed) and len({question.content for question in probed}) == 8


def test_too_few_questions_are_refused_and_few_are_told() -> None:
    with pytest.raises(SetError):
        check(a_set(7))
    check(a_set(8))
    with pytest.raises(SetError):
        check(a_set(rows=(Row(question="Same?", answer="a"),) * 50))


def test_the_mark_is_the_contents_and_a_file_comes_back_whole() -> None:
    made = a_set()
    assert decode(encode(made)) == made
    assert msgspec.structs.replace(made, name="Other").mark == made.mark != a_set(39).mark
    for broken in (b"", b"{}", b"[" * 10**5, encode(made)[:-9], encode(a_set(format=99))):
        with pytest.raises(SetError):
            decode(broken)


def test_what_somebody_else_hands_on_is_bounded_before_it_is_used() -> None:
    """A file of a set's form need not come from `parse`: a class hands one out over the network."""
    slot = templates.Slot(name="a", low=2, high=12)
    good = templates.Template(question="What is {a}?", answer="a", slots=(slot,))
    made = QuestionSet(name="Set", rule=Rule(check=Check.NUMBER), templates=(good,))
    check(decode(encode(made)))
    change = msgspec.structs.replace
    slots = [change(slot, step=0), change(slot, low=20), change(slot, high=10**12)]
    bad = [change(good, slots=(one,)) for one in slots]
    bad += [change(good, slots=()), change(good, question="{a}" * 900), change(good, slots=(slot,) * 99)]
    for templates_ in (*((one,) for one in bad), (good,) * 5000):
        with pytest.raises(SetError):
            check(decode(encode(change(made, templates=templates_))))
    for rule in (Rule(tolerance="nan"), Rule(tolerance="9" * 99), Rule(labels=("long",) * 5000)):
        with pytest.raises(SetError):
            check(a_set(rule=rule))


def test_a_set_can_be_looked_up_and_is_never_listed() -> None:
    before = list(FAMILIES)
    FAMILIES.enable(one := family(a_set()))
    assert one.name in FAMILIES and FAMILIES[one.name].title == "Words"
    assert list(FAMILIES) == before and len(FAMILIES) == len(before)
    assert is_owners_set(one.name) and not any(map(is_owners_set, before))


@pytest.mark.parametrize("title", templates.EXAMPLES)
def test_the_examples_are_sets(title: str) -> None:
    made = read(templates.EXAMPLES[title]).made
    check(made)
    FAMILIES.enable(one := family(made))
    for seed in range(50):
        question = draw(one.name, 0, seed)
        assert one.judge(one.solution(question.entry), question.entry) == 1.0
        answer = f"#{question.entry['answer']}" if made.marked else question.entry["answer"]
        assert one.worked(question.entry).endswith(answer)
        assert one.read(one.worked(question.entry)) == question.entry["answer"]


@pytest.mark.parametrize(
    "text",
    [
        "What is {b}?\na: 1-9\nanswer: a", "What is it?\na: 1-9\nanswer: a", "What is {a}?\na: 9-1\nanswer: a",
        "What is {a}?\na: 1-9\nanswer: z*2", "What is {a}?\nb b\nanswer: a", "What is {a}?\na: \nanswer: a",
    ],
)  # fmt: skip
def test_a_template_that_cannot_work_is_refused(text: str) -> None:
    with pytest.raises(TemplateError):
        templates.parse(text)


def test_the_same_numbers_in_another_wording_are_one_content() -> None:
    text = "{a} times {b}?\na: 2-9\nb: 2-9\nanswer: a*b\n\n{x} x {y} =\nx: 2-9\ny: 2-9\nanswer: x*y"
    assert read(text).made.distinct == 36


def test_the_scoring_child_knows_the_sets_it_is_given(tmp_path: Path) -> None:
    made = a_set()
    file = tmp_path / "set.json"
    file.write_bytes(encode(made))
    FAMILIES.enable(family(made))
    place = draw(made.family_name, 0, 3).coordinates
    truth = generate(place).entry["answer"]
    with Sandbox(judge_seconds=20.0, sets=(file,)) as sandbox:
        assert sandbox.score(place, [truth, truth.upper(), "other", None]) == [1.0, 1.0, 0.0, 0.0]
        [asked] = sandbox.questions([place], worked=True)
        assert not isinstance(asked, Exception) and asked.worked == truth
        gcd = Coordinates(family="gcd", level=0, seed=1, index=0)
        assert len(sandbox.questions([gcd])) == 1
