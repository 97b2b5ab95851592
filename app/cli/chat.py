"""`./shoal chat`: a conversation with the model before and after training."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from engines import opening

SUMMARY = "talk to your model, before and after its training"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Talks with the base model and with what it has become, side by side or one of them. It reads the "
        "newest safe point of the data folder, also while a node is learning there, writes nothing, and opens "
        "no network socket. Without --json it is a conversation in this terminal; /help there tells more."
    )
    parser.add_argument(
        "--model", default="starter", help="starter, the name of a downloaded model, or a folder"
    )
    parser.add_argument("--engine", choices=opening.ENGINE_CHOICES, default=opening.AUTO)
    parser.add_argument("--home", type=Path, metavar="DIR", help="where all data lies (also: SHOAL_HOME)")
    parser.add_argument(
        "--max-tokens",
        type=_tokens,
        metavar="N",
        help="the longest answer, in tokens (the model's own setting)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help='JSON lines: {"type":"ask","number":1,"text":".."} or {"type":"draw","number":2,"family":"gcd"} '
        'and {"type":"solve","number":3,"puzzle":2} in, {"type":"growing",..}, {"type":"said",..} and '
        '{"type":"done",..} out; {"type":"stop","number":1} ends an answer',
    )
    parser.add_argument(
        "--attached", action="store_true", help=argparse.SUPPRESS
    )  # for a window: app.chat.child


def main(args: argparse.Namespace) -> int:
    from app.chat.talking import Chat
    from app.common.home import home
    from app.node.trainer import solo
    from engines.contract import Engine

    data = home(args.home)
    os.environ["SHOAL_HOME"] = str(data)  # where engines look for models and keep what they converted
    solo.refuse_network()

    def open_engine(model: Path, rank: int | None) -> Engine:
        return opening.open_engine(args.engine, model, rank=rank)

    def open_chat() -> Chat:
        return Chat(args.model, data, open_engine, args.max_tokens)

    if args.json:
        from app.chat.child import serve

        serve(open_chat, args.attached)
    from app.chat.terminal import converse

    return converse(open_chat, sys.stdin)


def _tokens(text: str) -> int:
    from app.chat.talking import MAX_TOKENS

    if not text.isdecimal() or not 1 <= int(text) <= MAX_TOKENS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MAX_TOKENS}")
    return int(text)
