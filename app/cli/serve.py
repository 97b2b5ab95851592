"""`./shoal serve`: serves the model to other programs on this computer through OpenAI's API."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli._frame import share
from app.common.text import bounded_integer
from engines import opening

if TYPE_CHECKING:
    from app.serve.child import ServedModel

SUMMARY = "use your model in other programs on this computer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serves the model to programs on this computer at an address like OpenAI's: MODEL is the model as it "
        "came, puzzles what it learned from them, and each skill has its own name. It listens on this computer "
        "alone, asks for a token, loads the model at the first request, and frees its memory after ten quiet "
        "minutes. A node that learns in the same data folder pauses while it answers."
    )
    parser.add_argument(
        "--port",
        type=bounded_integer(0, 65535),
        metavar="P",
        help="11777, or the next free one; 0 is any free one",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let pages from there ask too, such as app://obsidian.md or a browser extension's, or let it be "
        "called by another name of this computer, such as host.docker.internal; may be repeated",
    )
    parser.add_argument("--no-token", action="store_true", help="let every program on this computer in")
    share(parser, "model", "engine", "home", "attached")
    share(
        parser,
        json='one JSON object a line: {"event":"serving","url":..,"token":..,"models":[..]}, then notes',
    )
    parser.add_argument("--answers", action="store_true", help=argparse.SUPPRESS)  # app.serve.child


def main(args: argparse.Namespace) -> int:
    from app.node.data.home import prepare_data_folder

    home = prepare_data_folder(args.home)
    os.environ["SHOAL_HOME"] = str(home)
    if args.answers:
        _answers(args, home)
    return asyncio.run(_serve(args, home))


def _answers(args: argparse.Namespace, home: Path) -> None:
    """Becomes the child process with the model."""
    from app.node.trainer import solo
    from app.serve import child
    from engines.contract import Engine, EngineError

    solo.refuse_network()

    told = os.environ.get("SHOAL_THREADS", "")
    threads = int(told) if told.isdecimal() else None

    def open_engine(model: Path, rank: int | None) -> Engine:
        if args.engine == opening.AUTO and opening.choice(model, opening.why_not_installed).way == "torch-cpu":
            # torch learns better with a tiny model, and llama.cpp answers one question in half its time
            with contextlib.suppress(EngineError):
                return opening.open_engine("llamacpp", model, rank=rank, threads=threads)
        return opening.open_engine(args.engine, model, rank=rank, threads=threads)

    def open_model() -> ServedModel:
        return child.ServedModel(args.model, home, open_engine)

    child.serve(open_model)


async def _serve(args: argparse.Namespace, home: Path) -> int:
    from app.common.process.control import when_asked_to_stop, when_input_closes
    from app.models.catalogue import short_name, stored_name
    from app.models.shelf import locate
    from app.node.models.skills import PUZZLES, known_skills
    from app.serve.model import ModelProcess
    from app.serve.openai import usual_sampling
    from app.serve.server import LOOPBACK, Server, bind, serve, token

    model = stored_name(args.model)
    folder = locate(model, home)  # an unknown name is refused now, not at the first request
    secret = "" if args.no_token else token(home)
    name = Path(model).name if Path(model).expanduser().exists() else short_name(model)
    listeners = bind(args.port)
    url = f"http://{LOOPBACK}:{listeners[0].getsockname()[1]}/v1"
    ended = asyncio.Event()
    when_asked_to_stop(ended.set)
    if args.attached:
        loop = asyncio.get_running_loop()
        when_input_closes(lambda: loop.call_soon_threadsafe(ended.set))

    def told(sentence: str) -> None:
        if args.json:
            print(json.dumps({"event": "note", "sentence": sentence}), flush=True)
        else:
            print(sentence, file=sys.stderr, flush=True)

    command = [sys.executable, "-m", "app.cli", "serve", "--answers", "--home", str(home)]
    process = ModelProcess([*command, "--model", model, "--engine", args.engine], home, told)

    def skills() -> list[str]:
        return [one.slug for one in known_skills(home, folder)]

    if args.json:
        models = [name, PUZZLES, *skills()]
        print(json.dumps({"event": "serving", "url": url, "token": secret, "models": models}), flush=True)
    else:
        names = ", ".join([name, *skills(), f"{PUZZLES} (what it learned from them)"])
        print(f"Address  {url}\nToken    {secret or 'none needed'}\nModel    {names}", flush=True)
    server = Server(process, name, secret, skills, usual_sampling(folder), args.allow)
    await serve(listeners, server, process, ended)
    return 0
