"""`./shoal ask SKILL TEXT`: asks what the model learned from a table; with --file, every row of another one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli._frame import opener, reading_home, share
from app.cli._terminal import TerminalLine, WrongUsage, json_line, report_failure, stop_quietly
from app.common.text import safe_line

if TYPE_CHECKING:
    from app.chat.whole_table import RowsDone, TableFound
    from app.common.job import JobEvent
    from app.node.models.skills import KnownSkill

SUMMARY = "ask a skill that your model has learned"
_MAX_TEXT = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Asks a skill as a row of its table is written, and prints the answer and how sure it is. With --file "
        "it asks each row of a table (CSV, TSV, XLSX, XLS, ODS or JSON lines) and writes the table with the "
        "answers to a new file; a run that was stopped continues with the same command. It reads the best safe "
        "point, also while a node is learning, and opens no network socket."
    )
    parser.add_argument("skill", metavar="SKILL", help="its name, or its short name in other programs")
    parser.add_argument(
        "question", nargs="?", metavar="TEXT", help="the question; - reads it from standard input"
    )
    parser.add_argument("--file", type=Path, metavar="IN", help="a table: every row is asked")
    parser.add_argument(
        "--out", type=Path, metavar="OUT", help="the new table: .csv, .tsv, .xlsx, .ods or .jsonl"
    )
    parser.add_argument(
        "--text", metavar="COL[,COL]", help="the columns of IN with the text, by name or number"
    )
    parser.add_argument("--heading", choices=("yes", "no"), help="whether IN's first row names the columns")
    parser.add_argument("--encoding", metavar="E", help="IN's encoding, such as cp1251")
    parser.add_argument(
        "--at-least", type=float, default=0.0, metavar="P", help="leave answers below P %% blank"
    )
    parser.add_argument(
        "--least-sure", type=int, metavar="N", help="instead of OUT: the N texts of IN that it is least sure of"
    )
    parser.add_argument("--restart", action="store_true", help="don't continue what an earlier run began")
    parser.add_argument("--words", metavar="A,B,C,D,E", help=argparse.SUPPRESS)
    parser.add_argument("--model", metavar="NAME", help="the base model, if several have learned it")
    share(parser, "engine", "home", "attached")
    share(
        parser,
        json='{"answer":..,"sure":..,"labels":{..},..}; with --file {"event":"progress","have":..} while it '
        'runs, then {"event":"labelled",..} or {"event":"refused","sentence":..}',
    )


def main(args: argparse.Namespace) -> int:
    from app.models.catalogue import stored_name
    from app.models.shelf import locate
    from app.node.models.skills import find_skill
    from app.node.record.errors import NodeError
    from engines.contract import EngineError

    if (args.question is None) == (args.file is None):
        raise WrongUsage("Give a TEXT, or a table with --file IN.")
    if args.file is not None and (args.out is None) == (args.least_sure is None):
        raise WrongUsage("--file needs the name of the new table, --out OUT, or --least-sure N.")
    data = reading_home(args)
    model = locate(stored_name(args.model), data) if args.model else None
    if args.file is None:
        return _ask(args, find_skill(data, args.skill, model), data)
    from app.chat.whole_table import TableFailed

    with report_failure(args.json, EngineError, NodeError, kind=TableFailed):
        do = _label if args.out is not None else _least_sure
        return do(args, find_skill(data, args.skill, model), data)


def _ask(args: argparse.Namespace, known: KnownSkill, data: Path) -> int:
    from app.chat.skills import ask_skill, open_skill

    text = args.question
    if text == "-":
        text = sys.stdin.buffer.read(_MAX_TEXT).decode("utf-8", "replace")
    (said,) = ask_skill(open_skill(known, data, opener(args)), known, [text])
    if args.json:
        json_line(said)
        return 0
    if said.work:
        print(said.work)
    print(said.answer)
    print(f"{100 * said.sure:.0f} % sure{_kept(said.right, said.of)}", file=sys.stderr)
    for label, likely in sorted(said.labels.items(), key=lambda one: -one[1]):
        print(f"  {label}  {100 * likely:.1f} %", file=sys.stderr)
    return 0


def _label(args: argparse.Namespace, known: KnownSkill, data: Path) -> int:
    from app.chat.skills import load_skill, open_skill
    from app.chat.whole_table import COLUMN_WORDS, Labelling, RowsDone, TableFound, TableOrder

    if not 0 <= args.at_least <= 100:
        raise WrongUsage("--at-least is a number of percent, 0 to 100.")
    words = tuple(args.words.split(",")) if args.words else COLUMN_WORDS
    if len(words) != len(COLUMN_WORDS):
        raise WrongUsage(f"--words needs {len(COLUMN_WORDS)} words with commas between them.")
    order = TableOrder(
        source=args.file.expanduser().absolute(),
        to=args.out.expanduser().absolute(),
        text=tuple(args.text.split(",")) if args.text else (),
        heading=None if args.heading is None else args.heading == "yes",
        encoding=args.encoding,
        at_least=args.at_least / 100,
        words=words,
        restart=args.restart,
    )
    labelling = Labelling(known, order)
    stop_quietly("ask", args.attached)
    line = TerminalLine()

    def tell(event: JobEvent) -> None:
        if args.json:
            json_line(event)
        elif isinstance(event, RowsDone):
            line.progress(_progress(event), int(10 * event.share))
        elif isinstance(event, TableFound):
            line.say(*_found(event))
        else:
            line.say(str(getattr(event, "sentence", "")))

    engine = open_skill(known, data, opener(args))
    labelling.run(engine, load_skill(engine, data, known), tell)
    return 0


def _least_sure(args: argparse.Namespace, known: KnownSkill, data: Path) -> int:
    """Prints the texts of a table of which the skill is least sure: their answers would teach it most."""
    from app.chat.asking_about import ask_about
    from app.chat.skills import open_skill
    from app.chat.whole_table import read_table, text_columns
    from app.sapo.sets.columns import join_cells

    if args.least_sure < 1:
        raise WrongUsage("--least-sure is a number of rows, 1 or more.")
    heading = None if args.heading is None else args.heading == "yes"
    _, grid = read_table(args.file.expanduser(), known.made.columns, heading, args.encoding)
    places = text_columns(grid, args.text.split(",") if args.text else (), known.made.columns)
    texts = [join_cells(grid.columns, places, row) for row in grid.rows]
    for one in ask_about(open_skill(known, data, opener(args)), known.skill, texts, args.least_sure):
        if args.json:
            json_line(one)
        else:
            print(f"{100 * one.sure:3.0f} %  {safe_line(one.answer, 40):<16}  {safe_line(one.text, 90)}")
    return 0


def _found(event: TableFound) -> list[str]:
    said = [*event.notes, f"{event.rows} rows; the text is in {' and '.join(event.text)}."]
    said += [f"{event.have} rows are answered already."] if event.have else []
    return [*said, *([event.blank.sentence] if event.blank is not None else [])]


def _progress(event: RowsDone) -> str:
    from app.common.text import rounded_duration

    left = f", {rounded_duration(event.left_s)} left" if event.left_s else ""
    return f"{event.have} of {event.total} rows{left}"


def _kept(right: int, of: int) -> str:
    return f"; of {of} rows kept aside that were about as sure, {right} were right" if of else ""
