"""Small files that stand for gigabytes or hours: refused or read within seconds and 300 MB, and what each does
without its bound."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from app.cli import __main__ as cli
from app.node.data import question_sets
from app.sapo.reading.expression import evaluate
from app.sapo.sets import bounds, records, tables, templates
from app.sapo.sets.checks import Rule
from app.sapo.sets.question_set import QuestionSet, Row, SetError, check, decode

SECONDS, BYTES = 4, 300 * 2**20


def long_words() -> bytes:
    words = ", ".join(f"{n}" + "x" * 40_000 for n in range(60))
    return f"{'{a}' * 300}?\nanswer: {{a}}\na: {words}".encode()


def wide_range() -> bytes:
    return b"What is {a}?\na: 1-1000000000\nanswer: a*2"


def spaces_in_a_sheet() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet1.xml", '<c r="A1"><f>1</f>' + " " * 10**6 + "x</c>")
    return made.getvalue()


def exponent() -> bytes:
    rows = [{"question": f"What is {n}?", "answer": str(n)} for n in range(20)]
    rule = {"check": "number", "tolerance": "1e-100000000"}
    return json.dumps({"name": "Sums", "rule": rule, "rows": rows}).encode()


def unfolding() -> bytes:
    return json.dumps([{"text": "x" * 2 * 10**6, "of": [{"answer": str(n)} for n in range(5000)]}]).encode()


def honest() -> bytes:
    """A file of every kind that comes near: fifty factors, a wide range, long words, a list as answer."""
    factors = f"What is {{a}} times itself?\na: 1-900\nanswer: {'*'.join('a' * 50)}"
    words = f"Where is {{w}}?\nw: {', '.join('Llan' * 100 + str(n) for n in range(90))}\nanswer: {{w}}"
    return f"{factors}\n\n{words}\n\n{wide_range().decode()}".encode()


WITHOUT = {
    long_words: "templates.MAX_FILLED = templates.MAX_ANSWER = 10**12",
    wide_range: "templates.Template.all_fillings = lambda one: map(one.filled, "
    "itertools.product(*(range(slot.size) for slot in one.slots)))",
    spaces_in_a_sheet: r"workbook._NO_VALUE = re.compile(rb'</f>\s*(?:<v\s*/>)?\s*</c>')",
    exponent: "checks.MAX_EXPONENT = 10**9",
    unfolding: "records.MAX_UNPACKED = 10**15",
}


def read(*made: str, without: str = "") -> subprocess.CompletedProcess[str]:
    """Reads, checks and registers files in a process that has little memory and time."""
    code = f"""
import itertools, re, resource, sys
from app.sapo.sets import checks, question_set, records, tables, templates, workbook
from tests.sapo.sets import test_bounds
{without}
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + {BYTES}, used + {BYTES}))
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS} + 1))
for name in {made!r}:
    try:
        found = tables.read(getattr(test_bounds, name)(), "x").made
        question_set.check(found)
        question_set.family(found)
        question_set.examples(found)
        print(name, "read")
    except question_set.SetError as error:
        print(name, error)
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process")
def test_a_small_file_takes_little() -> None:
    found = read(*(one.__name__ for one in WITHOUT), "honest")
    said = dict(line.split(" ", 1) for line in found.stdout.splitlines())
    assert found.returncode == 0, found.stderr[-2000:]
    assert said["wide_range"] == said["honest"] == "read", "what an honest owner writes"
    assert "filled" in said["long_words"] and "no tolerance" in said["exponent"]
    assert "more cells" in said["unfolding"] and "spreadsheet" in said["spaces_in_a_sheet"]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process")
@pytest.mark.parametrize("made", WITHOUT, ids=lambda made: made.__name__)
def test_without_its_bound_each_ends_the_process(made: object) -> None:
    name = getattr(made, "__name__", "")
    assert read(name, without=WITHOUT[made]).returncode != 0  # type: ignore[index]


def test_expressions_are_worked_out_some_thousand_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def counting(text: str, *given: Any) -> Fraction:
        counted.append(text)
        return evaluate(text, *given)

    monkeypatch.setattr(templates, "evaluate", counting)
    one = f"What is {{a}} to the 50th?\na: 1-9000\nanswer: {'*'.join('a' * 30)}"
    check(tables.read("\n\n".join([one] * bounds.MAX_TEMPLATES).encode(), "x").made)
    assert len(counted) <= 2 * bounds.MAX_FILLINGS + bounds.MAX_TEMPLATES


def test_lists_in_lists_become_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = "[" * 900 + '"x"' + "]" * 900
    table = "[" + ",".join(f'{{"question": "q{n}", "answer": {deep}}}' for n in range(9)) + "]"
    two = table.replace(deep, '[["a", "b"], "c"]')
    assert tables.read(two.encode(), "x").made.rows[0].answer == "a, b, c"
    assert tables.read(table.encode(), "x").made.rows[0].answer == "\u2026"
    monkeypatch.setattr(records, "MAX_DEPTH", 10**6)
    with pytest.raises(RecursionError):
        tables.read(table.encode(), "x")


HALF: dict[str, dict[str, Any]] = {
    "step": {"templates": [{"question": "{a}", "answer": "a", "slots": [{"name": "a", "high": 9, "step": 0}]}]},
    "no rows": {"rows": []},
    "slots": {"templates": [{"question": "{a} {b}", "answer": "a", "slots": [{"name": "a", "high": 9}]}]},
    "pairs": {
        "templates": [{"question": "{a}", "answer": "{a}", "slots": [{"name": "a", "words": [["", ""]]}]}]
    },
    "labels": {
        "rule": {"check": "choice", "labels": [""] * 20_000},
        "rows": [{"question": "q", "answer": "z"}],
    },
}


@pytest.mark.parametrize("part", HALF.values(), ids=HALF)
def test_a_damaged_set_is_none(part: dict[str, Any]) -> None:
    with pytest.raises(SetError):
        decode(json.dumps({"name": "x", "rule": {}} | part).encode())


def test_a_damaged_set_in_the_data_folder_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A step of 0 ended `questions` and `run` in a traceback."""
    folder = tmp_path / question_sets.FOLDER
    folder.mkdir()
    for number, part in enumerate((*HALF.values(), {"rows": "x"})):
        (folder / f"{number:012}.json").write_text(json.dumps({"name": f"bad {number}", "rule": {}} | part))
    (folder / "broken.json").write_bytes(b"\xff{")
    rows = tuple(Row(question=f"What is {n}?", answer=str(n)) for n in range(20))
    question_sets.add(tmp_path, QuestionSet(name="Good", rule=Rule(), rows=rows))
    assert [one.made.name for one in question_sets.register_sets(tmp_path)] == ["Good"]
    for verb in (["list"], ["show", "Good"], ["list", "--json"]):
        assert cli.main(["questions", *verb, "--home", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "Good" in shown and "bad" not in shown
