"""`./shoal questions`: the user's own question sets, which a model learns like puzzles."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from app.cli._frame import share, tell
from app.cli._terminal import WrongUsage, confirm, json_line
from app.common.home import home as data_folder
from app.node.data import question_sets
from app.node.data.home import SKILLS, prepare_data_folder
from app.node.data.question_sets import KeptSet
from app.node.history import history
from app.sapo.sets import checks, tables, templates
from app.sapo.sets.amending import amended
from app.sapo.sets.bounds import MAX_BYTES
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.columns import Chosen, Reading
from app.sapo.sets.question_set import ROUGH_CURVE_QUESTIONS, QuestionSet, SetError, encode, family
from app.sapo.sets.tables import Preview
from engines import remedy

SUMMARY = "bring questions of your own for your model to learn"
VERBS = ("list", "add", "show", "share", "remove", "export")
_SHOWN = 10
"""Rows shown in a preview."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of the model measured last on a set's held-out questions: shares solved in its first and
    latest measurement, and the round of the latest."""

    model: str
    round: int
    first: float
    latest: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Question sets of your own. A file has a text and an answer in each row: CSV, XLSX, ODS, JSON, "
        "Markdown and others, or a template with slots. Sets stay on this computer. Learn one with run "
        "--questions NAME. "
        "In a private swarm, share NAME swaps answers with members who have the same file."
    )
    parser.add_argument("verb", nargs="?", choices=VERBS, default="list", metavar=f"{{{','.join(VERBS)}}}")
    parser.add_argument(
        "what",
        nargs="?",
        help="add: a file, - for standard input, example:TITLE, or class:NAME, which a class offers; else a "
        "set's name",
    )
    parser.add_argument("file", nargs="?", type=Path, help="export: where to write it")
    parser.add_argument("--name", help="add: what to call it (the file's name)")
    parser.add_argument(
        "--to", metavar="NAME", help="add: to the set of this name; a question that it has gets the new answer"
    )
    parser.add_argument(
        "--check",
        choices=tuple(Check),
        metavar="KIND",
        help=f"add: how answers are checked ({', '.join(Check)}); guessed",
    )
    parser.add_argument("--ignore", metavar="A,B", default="", help="add: accents and articles don't count")
    parser.add_argument("--instruction", metavar="TEXT", help="add: the line that every question is asked with")
    parser.add_argument("--tolerance", default="0", metavar="D", help="add: how far a number may be off (0)")
    parser.add_argument("--text", metavar="COL[,COL]", default="", help="add: columns of the text; guessed")
    parser.add_argument("--answer", metavar="COL", default="", help="add: the column of the answer; guessed")
    parser.add_argument(
        "--heading", choices=("yes", "no"), help="add: whether the first row names the columns; guessed"
    )
    parser.add_argument("--encoding", metavar="E", default="", help="add: the file's encoding; guessed")
    parser.add_argument("--dry-run", action="store_true", help="add: show what it would be, and keep nothing")
    parser.add_argument("--stop", action="store_true", help="share: no longer")
    share(parser, "yes", "home", "json")


def main(args: argparse.Namespace) -> int:
    """Returns 0 when done, 1 after printing an error, 2 for wrong usage. Raises SetError."""
    if (args.verb != "list" and not args.what) or (args.verb == "export" and not args.file):
        what = (
            "the file to add" if args.verb == "add" else "the set" + " and the file" * (args.verb == "export")
        )
        raise WrongUsage(f"Name {what}; {remedy.command('questions --help')} tells more.")
    home = data_folder(args.home)
    if args.verb == "add":
        return _add(args, home)
    sets = question_sets.register_sets(home)
    if args.verb == "list":
        return _list(args, home, sets)
    one = question_sets.find(sets, args.what)
    if args.verb == "show":
        return _show(args, Preview(made=one.made, guessed=False))
    if args.verb == "share":
        return _share(args, one)
    if args.verb == "remove":
        return _remove(args, one)
    args.file.write_bytes(encode(one.made))
    tell(args, f"{one.made.name} is in {args.file}. Others add it with questions add.", file=str(args.file))
    return 0


def described(found: Preview) -> dict[str, Any]:
    """Returns a set and its preview as plain data for JSON."""
    made = found.made
    share, answer = made.constant_share()
    puzzle = family(made)
    return {
        "name": made.name,
        "family": made.family_name,
        "check": made.rule.check.value,
        "check_guessed": found.guessed,
        "instruction": made.asked_with,
        "rows": len(made.rows),
        "templates": len(made.templates),
        "questions": made.distinct,
        "held_out": len(puzzle.held_out) if puzzle.held_out is not None else None,
        "rough": made.distinct < ROUGH_CURVE_QUESTIONS,
        "constant_share": round(share, 4),
        "constant_answer": answer,
        "skipped": [
            {"row": one.row, "reason": one.reason.value, "like": one.like or None} for one in found.skipped
        ],
        "skipped_counts": {reason.value: count for reason, count in found.counts.items()},
        "duplicates": found.duplicates,
        "contradictions": found.contradictions,
        "table": _reading(found.reading),
        "notes": list(found.notes),
    }


def _reading(reading: Reading | None) -> dict[str, Any] | None:
    if reading is None:
        return None
    return {
        "columns": list(reading.columns),
        "text": [reading.columns[at] for at in reading.text],
        "answer": reading.columns[reading.answer],
        "heading": reading.heading,
        "encoding": reading.encoding,
        "toss_up": reading.toss_up,
        "first_rows": [list(row) for row in reading.shown],
    }


def _chosen(args: argparse.Namespace) -> Chosen:
    return Chosen(
        text=tuple(one.strip() for one in args.text.split(",") if one.strip()),
        answer=args.answer,
        heading=None if args.heading is None else args.heading == "yes",
        encoding=args.encoding,
    )


def _add(args: argparse.Namespace, home: Path) -> int:
    if args.to:
        return _amend(args, home)
    found = _read(args, home, _rule(args))
    if not found.usable:
        if not (args.dry_run and args.json):
            raise SetError(tables.skip_reasons(found))
        return _show(args, found)
    if args.dry_run:
        question_sets.check(found.made)
        return _show(args, found)
    question_sets.add(prepare_data_folder(args.home), found.made)
    return _show(
        args, found, "Added. Learn it with " + remedy.command(f'run --questions "{found.made.name}"') + "."
    )


def _amend(args: argparse.Namespace, home: Path) -> int:
    """Adds the rows of a file to a set."""
    if args.name or args.check or args.instruction or args.ignore or args.tolerance != "0":
        raise WrongUsage("--to keeps the set's name, check and instruction: leave those options out.")
    one = question_sets.find(question_sets.stored_sets(home), args.to)
    read = _read(args, home, one.made.rule)
    if not read.usable:
        raise SetError(tables.skip_reasons(read))
    rows = read.made.rows
    found = amended(one.made, rows) if args.dry_run else question_sets.amend(home, one.made.mark, rows)
    if args.json:
        json_line(
            described(msgspec.structs.replace(read, made=found.made, guessed=False))
            | {name: getattr(found, name) for name in ("new", "new_held_out", "corrected", "unchanged")}
        )
        return 0
    aside = f", {found.new_held_out} of them kept aside for measuring" if found.new_held_out else ""
    known = f"{found.corrected} corrected, {found.unchanged} unchanged"
    print(f"{found.made.name}: {found.new} new{aside}; {known}.")
    _show_skipped(read)
    if not args.dry_run and (found.new or found.corrected):
        print("Learn on with " + remedy.command(f'run --questions "{found.made.name}"') + ".")
    return 0


def _read(args: argparse.Namespace, home: Path, rule: Rule | None) -> Preview:
    """Reads a set from a file, standard input, an example, or a class's offer; `rule`: how its answers are
    checked, None to let them decide. Raises SetError and OSError."""
    if args.what.startswith("class:"):
        one = question_sets.find(
            question_sets.pending_class_sets(home), args.what.removeprefix("class:").strip()
        )
        named = msgspec.structs.replace(one.made, name=args.name or one.made.name)
        return Preview(made=named, guessed=False)
    if args.what.startswith("example:"):
        title = args.what.removeprefix("example:").strip()
        known = {name.casefold(): name for name in templates.EXAMPLES}
        if title.casefold() not in known:
            raise SetError(
                f"There is no example {title[:40]!r}: choose one of {', '.join(templates.EXAMPLES)}."
            )
        title = known[title.casefold()]
        return tables.preview(templates.EXAMPLES[title].encode(), args.name or title, rule)
    if args.what == "-":
        content, name = sys.stdin.buffer.read(MAX_BYTES + 1), "questions"
    else:
        with Path(args.what).expanduser().open("rb") as file:
            content, name = file.read(MAX_BYTES + 1), Path(args.what).stem
    found = tables.read(content, args.name or name, rule, _chosen(args))
    named = msgspec.structs.replace(
        found.made, name=args.name or found.made.name, instruction=args.instruction or found.made.instruction
    )
    return msgspec.structs.replace(found, made=named)


def _rule(args: argparse.Namespace) -> Rule | None:
    """Returns the check that the options ask for; None lets the answers decide. Raises SetError."""
    ignored = {word.strip() for word in args.ignore.split(",") if word.strip()}
    if ignored - {"accents", "articles"}:
        raise SetError("--ignore takes accents and articles.")
    try:
        checks.tolerance(args.tolerance)
    except ValueError as error:
        raise SetError(str(error)) from error
    if args.check is None and not ignored and args.tolerance == "0":
        return None
    check = Check(args.check) if args.check else Check.NUMBER if args.tolerance != "0" else Check.TEXT
    return Rule(
        check=check,
        accents="accents" not in ignored,
        articles="articles" not in ignored,
        tolerance=args.tolerance,
    )


def _show(args: argparse.Namespace, found: Preview, last: str = "") -> int:
    said = described(found)
    if args.json:
        json_line(said)
        return 0
    made = found.made
    count = f"{said['questions']} different questions"
    aside = "" if said["held_out"] is None else f", {said['held_out']} of them kept aside for measuring"
    print(f"{made.name}: {count}{aside}")
    guessed = " Guessed from the answers; --check changes it." if found.guessed else ""
    print(f"Checked as {made.rule.check}. {checks.DESCRIPTIONS[made.rule.check]}{guessed}")
    print(f"Asked with: {made.asked_with}")
    if (reading := found.reading) is not None:
        named = " + ".join(reading.columns[at] for at in reading.text)
        print(f"Columns: {', '.join(reading.columns)}")
        print(f"Text: {named}. Answer: {reading.columns[reading.answer]}. --text and --answer change it.")
        first = "names the columns" if reading.heading else "is a row like the others"
        print(f"The first row {first} (--heading). Encoding: {reading.encoding or 'a spreadsheet has none'}.")
    for row in made.rows[:_SHOWN]:
        print(f"  {' '.join(row.question.split())[:70]}  ->  {row.answer[:40]}")
    for template in made.templates[:_SHOWN]:
        print(f"  {template.question[:70]}  ->  {template.answer[:40]}")
    _show_skipped(found)
    for sentence in (*found.notes, *warnings(made)):
        print(sentence)
    if last:
        print(last)
    return 0


def _show_skipped(found: Preview) -> None:
    for one in found.skipped[:_SHOWN]:
        print(f"  row {one.row} left out: {one.reason}" + (f" (row {one.like})" if one.like else ""))
    if (left := sum(found.counts.values())) > _SHOWN:
        print(f"  {left} rows left out: " + ", ".join(f"{one} ({n})" for one, n in found.counts.items()))


def warnings(made: QuestionSet) -> list[str]:
    """Returns warnings for the user to read before the model learns the set."""
    said = []
    share, answer = made.constant_share()
    if share >= 0.2:
        said.append(f"{answer!r} alone would be right in {100 * share:.0f} of 100.")
    if made.distinct < ROUGH_CURVE_QUESTIONS:
        said.append(f"With fewer than {ROUGH_CURVE_QUESTIONS} questions the curve will be rough.")
    return said


def _list(args: argparse.Namespace, home: Path, sets: list[KeptSet]) -> int:
    learned = progress(home)
    offers = question_sets.pending_class_sets(home)
    if args.json:
        told = [
            described(Preview(made=one.made, guessed=False))
            | {"learned": msgspec.to_builtins(learned.get(one.made.mark)), "shared": one.shares_answers}
            for one in sets
        ]
        json_line({"sets": told} | ({"offered": [one.made.name for one in offers]} if offers else {}))
        return 0
    for one in offers:
        command = remedy.command(f'questions add "class:{one.made.name}" --dry-run')
        print(f"Your class offers {one.made.name}, {one.made.distinct} questions. See it: {command}")
    if not sets:
        print("No question sets yet. Add one with " + remedy.command("questions add FILE") + ", or an example:")
        for title in templates.EXAMPLES:
            print("  " + remedy.command(f'questions add "example:{title}"'))
        return 0
    for one in sets:
        now = learned.get(one.made.mark)
        solved = (
            f"{now.model} solves {100 * now.latest:.0f} of 100 new ones ({100 * now.first:.0f} when it started)"
            if now
            else "not learned yet"
        )
        print(f"{one.made.name}  {one.made.distinct} questions, {one.made.rule.check}; {solved}")
    return 0


def _share(args: argparse.Namespace, one: KeptSet) -> int:
    one.share(not args.stop)
    sentence = f"{one.made.name} stays on this computer."
    if one.shares_answers:
        sentence = (
            f"In a private swarm, members who have the same file share answers to {one.made.name}. No one else "
            "can read them."
        )
    tell(args, sentence, shared=one.shares_answers)
    return 0


def _remove(args: argparse.Namespace, one: KeptSet) -> int:
    sentence = f"What your model learned from it goes too. Delete {one.made.name}?"
    if not confirm(sentence, args.yes):
        return 1
    question_sets.remove(data_folder(args.home), one)
    tell(args, f"{one.made.name} is deleted.", removed=one.made.family_name)
    return 0


def progress(home: Path) -> dict[str, Progress]:
    """Returns the Progress of every question set that was learned, by its mark."""
    found: dict[str, tuple[float, Progress]] = {}
    for folder in sorted(home.glob(f"models/*/{SKILLS}/*")):
        mark, curve = folder.name.rpartition("-")[2], history.read(folder).curve
        if curve and curve[-1].at >= found.get(mark, (0.0,))[0]:
            model, last = history.model_of(folder) or folder.name, curve[-1]
            now = Progress(model=model, round=last.round, first=curve[0].share, latest=last.share)
            found[mark] = last.at, now
    return {mark: one for mark, (_, one) in found.items()}
