"""`./shoal translations`: brings the translators' files up to date with the texts in the window's source.

Another language is one more file: `./shoal translations --add fr` makes it, Qt Linguist or an editor fills it
in, and `./shoal translations` compiles it. `./shoal translations --list de` writes every sentence that people
read in the window, with its id, to be read from beginning to end.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.ui.language.translating import SourceText

SUMMARY = "collect the window's texts for translators, and compile or list them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--add", metavar="CODE", type=_code, help="begin a language, such as fr or pt_BR")
    parser.add_argument(
        "--list",
        metavar="CODE",
        nargs="?",
        const="de",
        type=_code,
        help="write all sentences: id, English, German",
    )


def main(args: argparse.Namespace) -> int:
    """Updates the files. Returns 1 if a language is not complete, else 0."""
    from app.ui.language import translating

    if args.add:
        translating.begin(args.add)
    texts = translating.collect()
    if args.list:
        return _list(args.list, texts)
    translating.write_learner()
    incomplete = False
    for path in translating.files():
        missing = translating.update(path, texts)
        translating.compile(path)
        incomplete = incomplete or missing > 0
        said = f"{missing} of them not translated yet" if missing else "complete"
        print(f"{path.name}: {len(texts)} texts, {said}", file=sys.stderr)
    return 1 if incomplete else 0


def _list(code: str, texts: list[SourceText]) -> int:
    """Prints the source texts as tab-separated lines, placeholders in braces. Returns the exit status."""
    from app.ui.language import translating

    path = translating.FOLDER / f"shoal_{code}.ts"
    done = translating.read(path) if path.exists() else {}
    for text in texts:
        print(translating.id_of(text.source), text.source, " / ".join(done.get(text.source, [])), sep="\t")
    return 0 if all(text.source in done for text in texts) else 1


def _code(text: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}(_[A-Z]{2})?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no code of a language such as de or pt_BR")
    return text
