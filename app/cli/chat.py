"""`./shoal chat`: a conversation with the model before and after training."""

from __future__ import annotations

import argparse
import sys

from app.cli._frame import opener, reading_home, share
from app.common.text import bounded_integer

SUMMARY = "talk to your model, before and after its training"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from app.chat.messages import MAX_TOKENS

    parser.description = (
        "Talks with the base model and with what it has become, side by side or one of them. It reads the "
        "newest safe point of the data folder, also while a node is learning there, writes nothing, and opens "
        "no network socket. Without --json it is a conversation in this terminal; /help there tells more."
    )
    parser.add_argument(
        "--max-tokens",
        type=bounded_integer(1, MAX_TOKENS),
        metavar="N",
        help="the longest answer, in tokens (the model's own setting)",
    )
    share(parser, "model", "engine", "home", "attached")
    share(
        parser,
        json='JSON lines: {"type":"ask","number":1,"text":".."} or {"type":"draw","number":2,"family":"gcd"} '
        'and {"type":"solve","number":3,"puzzle":2} in, {"type":"growing",..}, {"type":"said",..} and '
        '{"type":"done",..} out; {"type":"stop","number":1} ends an answer',
    )


def main(args: argparse.Namespace) -> int:
    from app.chat.talking import Chat

    data = reading_home(args)

    def open_chat() -> Chat:
        return Chat(args.model, data, opener(args), args.max_tokens)

    if args.json:
        from app.chat.child import serve

        serve(open_chat, args.attached)
    from app.chat.terminal import converse

    return converse(open_chat, sys.stdin)
