"""`./shoal translations`: brings the translators' files up to date with the texts in the window's source.

Another language is one more file: `./shoal translations --add fr` makes it, Qt Linguist or an editor fills it
in, and `./shoal translations` compiles it.
"""

from __future__ import annotations

import argparse
import re
import sys

SUMMARY = "collect the window's texts for translators, and compile what they wrote"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--add", metavar="CODE", type=_code, help="begin a language, such as fr or pt_BR")


def main(args: argparse.Namespace) -> int:
    """Exit code 1 where a language is not complete."""
    from app.ui import translating

    if args.add:
        translating.begin(args.add)
    texts = translating.collect()
    incomplete = False
    for path in translating.files():
        missing = translating.update(path, texts)
        translating.compile(path)
        incomplete = incomplete or missing > 0
        said = f"{missing} of them not translated yet" if missing else "complete"
        print(f"{path.name}: {len(texts)} texts, {said}", file=sys.stderr)
    return 1 if incomplete else 0


def _code(text: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}(_[A-Z]{2})?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no code of a language such as de or pt_BR")
    return text
