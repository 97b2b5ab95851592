"""`./shoal models`: what models there are, fetching them, and making room again.

`get` is the only part of Shoal that talks to a model hub. The window runs it as a process of its own.
"""

from __future__ import annotations

import argparse
import getpass
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec

from app import remedy
from app.cli import _hub_token
from app.cli._stopped import stop_quietly
from app.home import home as data_folder
from app.node.home import folder as made_folder
from app.node.library import Library, Model
from app.node.survey import survey
from engines.contract import EngineError
from engines.models.catalogue import STARTER, catalogue, find
from engines.models.locate import locate
from engines.models.needs import gb
from engines.models.shelf import Shelf

SUMMARY = "list, fetch and remove models"
VERBS = ("list", "get", "remove", "path", "token")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "verb", nargs="?", choices=VERBS, default="list", metavar="{list,get,remove,path,token}", help="list"
    )
    parser.add_argument("model", nargs="?", help="a name from the list, Owner/Name on the hub, or a folder")
    parser.add_argument("--home", type=Path, metavar="DIR", help="where all data lies (also: SHOAL_HOME)")
    parser.add_argument("--json", action="store_true", help="JSON on standard output; get: one object a line")
    parser.add_argument("--yes", action="store_true", help="remove: without asking")
    parser.add_argument(
        "--mirror", default="", metavar="URL", help="get: from here, not huggingface.co (also: HF_ENDPOINT)"
    )
    parser.add_argument("--revision", metavar="R", help="get: this version instead of the catalogue's")
    parser.add_argument("--forget", action="store_true", help="token: take it out of the keyring")
    parser.add_argument("--attempts", type=int, default=8, help=argparse.SUPPRESS)
    parser.add_argument("--attached", action="store_true", help=argparse.SUPPRESS)  # ends with its input


def main(args: argparse.Namespace) -> int:
    """0 when done, 1 with a sentence when not, 2 for wrong usage."""
    if args.verb in ("get", "remove", "path") and not args.model:
        print(
            f"shoal models: Name the model to {args.verb}; {remedy.command('models')} lists them.",
            file=sys.stderr,
        )
        return 2
    home = data_folder(args.home)
    return {"list": _list, "get": _get, "remove": _remove, "path": _path, "token": _token}[args.verb](
        args, home
    )


def _list(args: argparse.Namespace, home: Path) -> int:
    library = survey(home)
    if args.json:
        print(msgspec.json.encode({"known_from": catalogue().known_from, **_plain(library)}).decode())
        return 0
    width = max(len(_shown(model)) for model in library.models)
    print(f"{'model':{width}}  {'size':>8}  {'memory':>8}  {'learned':>9}  here    fits")
    for model in library.models:
        learned = f"{model.training.rounds} rounds" if model.training else ""
        fit = model.fit.verdict.value if model.fit else "unknown"
        print(
            f"{_shown(model):{width}}  {gb(model.bytes) if model.bytes else '':>8}  "
            f"{gb(model.least) if model.least else '':>8}  {learned:>9}  {_here(model):6}  {fit}"
            + (", gated" if model.gated and not model.installed else "")
        )
    for model in library.models:
        if model.partial is not None and model.partial.sentence:
            print(f"\n{model.name} was not finished: {model.partial.sentence}")
    if library.orphans:
        kept = sum(row.bytes for row in library.orphans)
        print(f"\nTraining of models that are not here: {gb(kept)} in {home / 'models'}.")
    print(
        f"\nModels take {gb(library.hub_bytes)}, training {gb(library.training_bytes)}; "
        f"{gb(library.disk_free)} are free. Memory for models: {gb(library.memory.free)} now, "
        f"{gb(library.memory.most)} at most."
    )
    return 0


def _plain(library: Library) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(library)
    return found


def _shown(model: Model) -> str:
    return model.name


def _here(model: Model) -> str:
    if model.installed:
        return "yes"
    if model.partial is not None and model.partial.total:
        return f"{100 * model.partial.have // model.partial.total} %"
    return "no"


def _get(args: argparse.Namespace, home: Path) -> int:
    home = made_folder(args.home)
    shelf, name = Shelf(home), args.model
    if name == STARTER:
        print("The starter comes with Shoal; there is nothing to fetch.", file=sys.stderr)
        return 0
    if Path(name).expanduser().is_dir():
        path = shelf.add_folder(Path(name))
        print(f"{path} is in the list of models now; it stays where it is.", file=sys.stderr)
        return 0
    from engines.models.download import Done, Event, Failed, Patience, download

    show = _json_lines if args.json else _Line(sys.stderr.isatty()).show
    entry = find(name)
    if entry is not None and entry.gated and not args.json and not shelf.find(entry.id):
        print(entry.gated, file=sys.stderr)
    done: list[Done] = []

    def tell(event: Event) -> None:
        show(event)
        if isinstance(event, Done):
            done.append(event)

    stop_quietly("models", args.attached)
    try:
        path = download(
            name,
            home,
            tell,
            endpoint=args.mirror or os.environ.get("HF_ENDPOINT") or _mirror(home),
            token=_hub_token.read(),
            revision=args.revision,
            patience=Patience(attempts=max(1, args.attempts)),
        )
    except EngineError as error:
        if args.json:
            _json_lines(Failed(model=name, sentence=str(error)))
        raise
    if not args.json:
        print(path)
    return 0


def _mirror(home: Path) -> str:
    """The mirror that the window's settings name."""
    try:
        kept = msgspec.json.decode((home / "window.json").read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        return ""
    return str(kept.get("mirror") or "")


def _json_lines(event: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    sys.stdout.buffer.flush()


class _Line:
    """Progress on one line of a terminal, or now and then a line where it is none."""

    def __init__(self, live: bool) -> None:
        self._live, self._tenth = live, -1

    def show(self, event: object) -> None:
        from engines.models.download import Done, Planned, Progress, Waiting

        match event:
            case Planned():
                had = f", {gb(event.have)} of them are here already" if event.have else ""
                print(f"{event.model}: {event.files} files, {gb(event.total)}{had}", file=sys.stderr)
            case Progress():
                self._progress(event.have, event.total, event.per_second, event.left_s)
            case Waiting():
                self._end()
                print(f"{event.sentence} Trying again in {event.seconds:.0f} s.", file=sys.stderr)
            case Done():
                self._end()

    def _progress(self, have: int, total: int, speed: float | None, left_s: float | None) -> None:
        rate = f", {gb(int(speed))}/s" if speed else ""
        left = f", {left_s:.0f} s left" if left_s else ""
        line = f"{gb(have)} of {gb(total)}{rate}{left}"
        tenth = 10 * have // total if total else 10
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{line[:width]:{width}}", end="", file=sys.stderr, flush=True)
        elif tenth != self._tenth:
            print(line, file=sys.stderr, flush=True)
        self._tenth = tenth

    def _end(self) -> None:
        if self._live:
            print(file=sys.stderr)


def _remove(args: argparse.Namespace, home: Path) -> int:
    entry = find(args.model)
    name = entry.id if entry else args.model
    if name == STARTER:
        raise EngineError("The starter is a part of Shoal and stays: remove another model.")
    local = Path(name).expanduser().is_absolute() or "/" not in name
    name = str(Path(name).expanduser().resolve()) if local else name
    model = next((one for one in survey(home).models if one.name == name), None)
    if model is None or not (model.installed or model.partial):
        raise EngineError(f"{name} is not on this computer: {remedy.command('models')} lists what is.")
    what = f"{name} leaves the list; the folder itself stays." if local else f"{name} is deleted."
    kept = f" What it learned ({model.training.rounds} rounds) is kept." if model.training else ""
    if not args.yes and not _agreed(what + kept):
        print("Nothing was removed.", file=sys.stderr)
        return 1
    freed = Shelf(home).remove(name)
    if args.json:
        print(msgspec.json.encode({"removed": name, "freed": freed}).decode())
    else:
        print(f"{what}{kept} {gb(freed)} are free again.", file=sys.stderr)
    return 0


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise EngineError("Removing asks first, and nobody can answer here: add --yes.")
    print(f"{question} Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _path(args: argparse.Namespace, home: Path) -> int:
    entry = find(args.model)
    found = locate(entry.id if entry else args.model, home)
    print(msgspec.json.encode({"path": str(found)}).decode() if args.json else found)
    return 0


def _token(args: argparse.Namespace, home: Path) -> int:
    if args.forget:
        gone = _hub_token.forget()
        print("The token is forgotten." if gone else "There was no token.", file=sys.stderr)
        return 0
    ask = "Access token from huggingface.co (it is not shown): "
    text = getpass.getpass(ask) if sys.stdin.isatty() else sys.stdin.readline()
    _hub_token.save(text)
    print("The token is in the keyring.", file=sys.stderr)
    return 0
