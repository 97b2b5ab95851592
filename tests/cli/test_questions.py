"""`./shoal questions`: a set comes from a file, is listed, learned by name, handed on and deleted."""

from __future__ import annotations

import io
import json
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from app.cli import questions, run
from app.cli._terminal import UnansweredError, WrongUsage
from app.node.data import question_sets
from app.node.data.contents import DataKind, kind_of_entry
from app.node.record.errors import UsageError
from app.sapo.families import FAMILIES
from app.sapo.sets.question_set import SetError

TABLE = "question,answer\n" + "".join(f"Capital {n}?,City {n}\n" for n in range(30)) + "Capital 3?,Elsewhere\n"


def call(home: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict]:
    from app.cli.__main__ import Parser

    parser = Parser()
    questions.add_arguments(parser)
    code = questions.main(parser.parse_args([*words, "--home", str(home), "--json"]))
    said = capsys.readouterr().out
    return code, json.loads(said) if said else {}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "capitals.csv"
    file.write_text(TABLE)
    return file


def test_a_file_becomes_a_set_that_is_listed_handed_on_and_deleted(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy.json"
    code, added = call(home, capsys, "add", str(table))
    assert code == 0 and added["name"] == "capitals" and added["check"] == "text" and added["check_guessed"]
    assert (added["questions"], added["held_out"], added["contradictions"]) == (30, 6, 1)
    assert added["skipped"] == [{"row": 32, "reason": "another answer to the same question", "like": 5}]
    [file] = (home / "questions").iterdir()
    assert kind_of_entry("questions") is DataKind.QUESTIONS and b"Capital 7?" in file.read_bytes()
    _, listed = call(home, capsys, "list")
    assert [one["family"] for one in listed["sets"]] == [added["family"]] and listed["sets"][0][
        "learned"
    ] is None
    assert call(home, capsys, "show", "CAPITALS")[1]["rows"] == 30
    assert call(home, capsys, "share", "capitals")[1] == {"shared": True}
    assert question_sets.stored_sets(home)[0].shares_answers
    assert call(home, capsys, "share", "capitals", "--stop")[1] == {"shared": False}
    call(home, capsys, "share", "capitals")
    call(home, capsys, "export", "capitals", str(copy))
    assert call(home, capsys, "remove", "capitals", "--yes")[1]["removed"] == added["family"]
    assert call(home, capsys, "list")[1] == {"sets": []} and not any((home / "questions").iterdir())
    other = tmp_path / "other"
    assert call(other, capsys, "add", str(copy), "--name", "Cities")[1]["family"] == added["family"]


def test_what_is_refused_keeps_nothing(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setattr(sys, "stdin", Namespace(buffer=io.BytesIO(b"a,b\nc,d\n"), isatty=lambda: False))
    for words in (
        ["add", "-"],
        ["add", "example:nothing"],
        ["show", "nothing"],
        ["add", str(table), "--tolerance", "x"],
    ):
        with pytest.raises(SetError):
            call(home, capsys, *words)
    assert call(home, capsys, "add", str(table), "--dry-run")[1]["questions"] == 30
    with pytest.raises(WrongUsage, match="Name the file"):
        call(home, capsys, "add")
    assert question_sets.stored_sets(home) == []
    call(home, capsys, "add", str(table))
    with pytest.raises(SetError):
        call(home, capsys, "add", "example:Plural forms", "--name", "Capitals")
    with pytest.raises(UnansweredError, match="--yes"):
        call(home, capsys, "remove", "capitals")
    assert len(question_sets.stored_sets(home)) == 1


def test_sets_are_learned_as_skills_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, added = call(tmp_path, capsys, "add", "example:Times tables")
    sets = question_sets.register_sets(tmp_path)
    (skill,) = run._skills(Namespace(questions=["times tables", added["family"]]), sets)
    assert skill.family == added["family"] and skill.slug == "times-tables" and skill.marked
    assert added["family"] in FAMILIES and added["family"] not in list(FAMILIES)
    with pytest.raises(UsageError):
        run._skills(Namespace(questions=["tables"]), sets)


def test_rows_are_added_to_a_set_that_stays_the_same_one(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, more = tmp_path / "home", tmp_path / "more.csv"
    _, added = call(home, capsys, "add", str(table))
    more.write_text("question,answer\nCapital 3?,Elsewhere\nCapital 4?,City 4\nCapital 99?,City 99\n")
    before = [file.read_bytes() for file in (home / "questions").iterdir()]
    _, tried = call(home, capsys, "add", str(more), "--to", "capitals", "--dry-run")
    assert [file.read_bytes() for file in (home / "questions").iterdir()] == before
    _, done = call(home, capsys, "add", str(more), "--to", "Capitals")
    assert (done["new"], done["corrected"], done["unchanged"], done["rows"]) == (1, 1, 1, 31)
    assert tried == done and done["family"] != added["family"]
    (kept,) = question_sets.stored_sets(home)
    assert kept.file.name == f"{added['family'].removeprefix('own-')}.json"
    assert kept.made.rows[3].answer == "Elsewhere"
    with pytest.raises(SetError, match="changed since"):
        call(home, capsys, "add", str(table))
    with pytest.raises(WrongUsage):
        call(home, capsys, "add", str(more), "--to", "capitals", "--name", "Others")
    with pytest.raises(SetError, match="Did you mean capitals"):
        call(home, capsys, "add", str(more), "--to", "capitls")
