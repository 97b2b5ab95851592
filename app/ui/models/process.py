"""The window's control of models: reading the library, downloading, removing, storing the token. Each is a
process of its own (./shoal models): only the one that downloads opens sockets, and only after the person
agreed."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from app.models.found import lm_studio
from app.models.gguf_shelf import is_gguf
from app.node.data.library import Library
from app.ui.language.spoken import spoken
from app.ui.language.texts import number, percent, tr
from app.ui.process.child import Child, MakeChild, decoded
from app.ui.view.settings import Choices
from app.ui.view.view import Fetch, Holdings, ServedDoor
from app.ui.widgets.pieces import place_to_save

MAX_LINE = 2**22
TICK_MS = 250
"""Minimum milliseconds between updates of the progress shown."""
NODE_ENDS_S = 20
"""Seconds that a node may take to end, before what it learned is changed."""

OLLAMA = "ollama"
"""In place of a format: the whole model, handed to Ollama."""


class Fetching(QObject):
    """`changed` emits the new Holdings."""

    changed = Signal(object)
    resting = Signal()
    """No node may run now: what a model learned is about to be changed."""
    past_changed = Signal()
    awake = Signal()
    """What ran before `resting` may run again."""

    def __init__(self, home: Path, choices: Choices, child: MakeChild = lambda: Child(MAX_LINE)) -> None:
        super().__init__()
        self._home, self._choices = home, choices
        self.holdings = Holdings(chosen=str(choices["model"]))
        self._reader, self._getter, self._doer, self._server = child(), child(), child(), child()
        for one, line, ended in (
            (self._server, self._serves, self._served),
            (self._reader, self._read, self._has_read),
            (self._getter, self._heard, self._fetched),
            (self._doer, self._told, self._did),
        ):
            one.line.connect(line)
            one.ended.connect(ended)
        self._again = False
        self._asked = False
        self._sentence = ""
        self._hands_on: Path | None = None
        """The folder that goes once Ollama has what is in it."""
        self._hears_result: Callable[[str, bool], None] = lambda said, done: None
        self._doing: tuple[str, str] = ("", "")
        self._told_last: dict[str, Any] = {}
        self._tick = QTimer(self, singleShot=True, interval=TICK_MS)
        self._tick.timeout.connect(lambda: self.changed.emit(self.holdings))
        self._second = QTimer(self, interval=1000)
        self._second.timeout.connect(lambda: self.changed.emit(self.holdings))

    def refresh(self) -> None:
        """Reads the library again, in the background."""
        if self._reader.running:
            self._again = True
            return
        self._again = False
        self._reader.start(["models", "list", "--json", "--home", str(self._home)], self._log)

    def get(self, name: str) -> None:
        """Downloads a model, or imports a GGUF file, now or after the current one. The person has agreed."""
        holdings = self.holdings
        if name in holdings.queue or (holdings.fetch is not None and holdings.fetch.name == name):
            return
        failed = {key: said for key, said in holdings.failed.items() if key != name}
        reading = tr("Reading {name}.", name=Path(name).name) if is_gguf(name) else ""
        self._change(failed=failed, problem="", said=reading)
        if holdings.fetch is not None:
            self._change(queue=(*holdings.queue, name))
            return
        model = holdings.library.find(name) if holdings.library is not None else None
        partial = model.partial if model is not None else None
        self._sentence = ""
        self._change(
            fetch=Fetch(name=name, have=partial.have if partial else 0, total=partial.total if partial else 0)
        )
        self._fetch(name)

    def retry(self, name: str) -> None:
        """Retries a waiting download now."""
        fetch = self.holdings.fetch
        if fetch is not None and fetch.name == name:
            self._hear(msgspec.structs.replace(fetch, note="", retry_at=None))
            self._fetch(name)

    def _fetch(self, name: str) -> None:
        mirror = str(self._choices["mirror"])
        self._getter.start(
            ["models", "get", name, "--json", "--attached", "--home", str(self._home)]
            + (["--mirror", mirror] if mirror else []),
            self._log,
        )

    def cancel(self, name: str) -> None:
        """Stops a download; what has arrived is kept."""
        holdings = self.holdings
        if name in holdings.queue:
            self._change(queue=tuple(one for one in holdings.queue if one != name))
        elif holdings.fetch is not None and holdings.fetch.name == name:
            self._getter.end()
            self._next()

    def remove(self, name: str) -> None:
        """Deletes a model, or the part of it that was downloaded, or removes a folder from the list."""
        self._do("remove", name, ["models", "remove", name, "--yes", "--json"])

    def add_folder(self, folder: str) -> None:
        """Adds a folder of the person's own to the list."""
        self._do("add", folder, ["models", "get", folder])

    def export(self, name: str, form: str, to: str) -> None:
        """Writes what a model has learned, for other programs, into the new folder `to`."""
        words = ["--format", "merged-gguf", "--ollama"] if form == OLLAMA else ["--format", form]
        self._hands_on = Path(to).parent if form == OLLAMA else None
        self._do("export", name, ["export", to, *words, "--model", name, "--json"])
        self._change(said=tr("Exporting …"))

    def result(self, said: Callable[[str, bool], None]) -> None:
        """A signed file of what the chosen model learned, and a page beside it in the person's language."""
        to = place_to_save(None, tr("Save a result"), "shoal-result.json")
        if to is None:
            return
        if self._doer.running:
            said(tr("Shoal is busy with another file. Try again in a moment."), False)
            return
        said(tr("Saving …"), True)
        self._hears_result = said
        self._do("result", str(to), ["result", "--out", str(to), "--model", self.holdings.chosen, "--json"])

    def _has_result(self, code: int) -> None:
        """The command's page is English; the person's takes its place."""
        from app.node.models.result import ResultError, read  # only here: a window that saves none does without
        from app.node.models.result_page import page

        done = self._told_last
        try:
            if code or "file" not in done:
                raise ResultError(self._doer.complaint or tr("The result couldn't be saved."))
            made = page(read(Path(str(done["file"]))), tr, number)
            Path(str(done["page"])).write_text(made, encoding="utf-8")
        except (ResultError, OSError) as error:
            self._hears_result(spoken(str(error)), False)
        else:
            self._hears_result(tr("Saved, and {page} beside it.", page=Path(str(done["page"])).name), True)

    def back(self, model: str) -> None:
        """Puts the model back to its best round."""
        self._change_past(model, "back")

    def start_over(self, model: str) -> None:
        self._change_past(model, "start-over")

    def _change_past(self, model: str, verb: str) -> None:
        if self._doer.running:
            return
        self.resting.emit()
        self._do("past", model, ["models", verb, model, "--yes", "--wait", str(NODE_ENDS_S)])

    def keep_token(self, token: str) -> None:
        """Stores the access token in the keyring."""
        self._do("token", "", ["models", "token"], token.strip().encode() + b"\n")

    def choose(self, name: str) -> None:
        """Chooses the model that learns from the next start on. Raises OSError if that cannot be saved."""
        self._choices.put("model", name)
        self._change(chosen=name, said="")

    def host(self) -> str:
        """Where models are downloaded from."""
        mirror = str(self._choices["mirror"]) or os.environ.get("HF_ENDPOINT", "")
        return urlsplit(mirror).hostname or mirror or "huggingface.co"

    def serve(self, on: bool) -> None:
        """Starts or stops the endpoint for other programs on this computer, with the model that is chosen
        now."""
        self._server.end()
        self._change(door=None, door_opening=on, door_problem="")
        if on:
            where = ["--home", str(self._home), "--model", self.holdings.chosen]
            engine = str(self._choices["engine"])
            self._server.start(["serve", "--json", "--attached", *where, "--engine", engine], hear=True)

    def _serves(self, line: bytes) -> None:
        told = decoded(line, dict[str, Any]) or {}
        if told.get("event") == "serving":
            door = ServedDoor(url=told["url"], token=told["token"], model=told["models"][0])
            self._change(door=door, door_opening=False)

    def _served(self, code: int) -> None:
        """The endpoint ended by itself."""
        ended = tr("Other programs can't use your model: the server stopped. Turn it on again.")
        self._change(door=None, door_opening=False, door_problem=spoken(self._server.complaint) or ended)

    def close(self) -> None:
        """For the window's end: returns when every process has ended."""
        self.blockSignals(True)
        self._tick.stop()
        self._second.stop()
        for one in (self._reader, self._getter, self._doer, self._server):
            one.blockSignals(True)
            one.end(wait=True)

    @property
    def _log(self) -> Path | None:
        return self._home / "logs" / "models.log" if self._home.is_dir() else None

    def _do(self, what: str, name: str, arguments: list[str], line: bytes = b"") -> None:
        if self._doer.running:
            return
        self._doing, self._told_last = (what, name), {}
        self._change(problem="", said="", failed={k: v for k, v in self.holdings.failed.items() if k != name})
        self._doer.start([*arguments, "--home", str(self._home)], self._log, hear=what in ("past", "result"))
        if line:
            self._doer.write(line)

    def _told(self, line: bytes) -> None:
        """Reads an export's output; other commands print nothing that is needed."""
        self._told_last = decoded(line, dict[str, Any]) or self._told_last
        if self._doing[0] == "export" and (share := self._told_last.get("share")) is not None:
            self._change(said=tr("Exporting, {share}", share=percent(float(share))))

    def _exported(self, code: int) -> None:
        above, self._hands_on = self._hands_on, None
        if above is not None:
            shutil.rmtree(above, ignore_errors=True)
        if code == 0 and above is not None:
            name = shlex.split(str(self._told_last.get("command", "")))[2:3]
            command = shlex.join(["ollama", "run", *name])
            self._change(said=tr("It's in Ollama now. In a terminal: {command}", command=command))
        elif code == 0:
            folder, command = (str(self._told_last.get(key, "")) for key in ("folder", "command"))
            self._change(said=exported(folder, command), command="" if in_lm_studio(folder) else command)
        else:
            ended = tr("The export failed. The log in Settings says why.")
            self._change(said="", problem=spoken(str(self._told_last.get("sentence", ended))))

    def _did(self, code: int) -> None:
        what, name = self._doing
        if what == "result":
            self._has_result(code)
        elif what == "export":
            self._exported(code)
        elif code == 0:
            said = tr("The access token is in the keyring.") if what == "token" else ""
            if what == "remove" and name == self.holdings.chosen:
                self.choose("starter")
            self._change(said=said)
        elif what == "past":
            failed = self._doer.complaint or tr("That didn't work. Nothing was changed.")
            self._change(failed={**self.holdings.failed, name: failed})
        elif what == "remove":
            failed = tr("It couldn't be deleted. The log in Settings says why.")
            self._change(failed={**self.holdings.failed, name: failed})
        elif what == "add":
            lacks = tr("No model that can learn in that folder. It needs config.json and .safetensors files.")
            self._change(problem=lacks)
        else:
            no = tr("That isn't a valid token, or this computer has no keyring. You can set HF_TOKEN instead.")
            self._change(problem=no)
        if what == "past":
            if code == 0 and name == self.holdings.chosen:
                self.past_changed.emit()
            self.awake.emit()
        self.refresh()

    def _read(self, line: bytes) -> None:
        if (library := decoded(line, Library)) is not None:
            self._asked = True
            self._change(library=library, problem="")

    def _has_read(self, code: int) -> None:
        if code != 0 and not self._asked:
            self._change(problem=tr("The list of models can't be read. The log in Settings says why."))
        if self._again:
            self.refresh()

    def _heard(self, line: bytes) -> None:
        fetch, event = self.holdings.fetch, decoded(line, dict[str, Any])
        if fetch is None or event is None:
            return
        sentence = spoken(str(event.get("sentence", "")))
        told: dict[str, Any] = {}
        match event.get("event"):
            case "planned":
                told = dict(have=event["have"], total=event["total"], note="", retry_at=None)
            case "progress":
                told = {name: event[name] for name in ("have", "total", "per_second", "left_s")}
                told |= dict(note="", retry_at=None)
            case "elsewhere":
                told = dict(note=sentence, retry_at=None, packed=True)
            case "waiting":
                at = time.time() + float(event["seconds"])
                told = dict(note=sentence, retry_at=at, per_second=None, left_s=None)
            case "failed":
                self._sentence = sentence
        self._hear(msgspec.structs.replace(fetch, **told))

    def _hear(self, fetch: Fetch) -> None:
        self.holdings = msgspec.structs.replace(self.holdings, fetch=fetch)
        self._keep_time()
        if not self._tick.isActive():
            self._tick.start()

    def _fetched(self, code: int) -> None:
        fetch = self.holdings.fetch
        if fetch is not None and code != 0:
            ended = tr("The download failed. Nothing is lost: it resumes where it stopped.")
            said = self._sentence or ended
            self._change(failed={**self.holdings.failed, fetch.name: said})
            if is_gguf(fetch.name):  # it may have no row of its own to say that in
                self._change(problem=said)
        elif fetch is not None and is_gguf(fetch.name):
            self._change(said=tr("{name} is in your list now.", name=Path(fetch.name).name))
        self._next()

    def _next(self) -> None:
        queue = self.holdings.queue
        self._change(fetch=None, queue=queue[1:])
        self.refresh()
        if queue:
            self.get(queue[0])

    def _keep_time(self) -> None:
        """Updates the display every second while a download waits."""
        fetch = self.holdings.fetch
        waits = fetch is not None and fetch.retry_at is not None
        if waits != self._second.isActive():
            self._second.start() if waits else self._second.stop()

    def _change(self, **fields: object) -> None:
        gone = {"command": ""} if "said" in fields and "command" not in fields else {}
        self.holdings = msgspec.structs.replace(self.holdings, **gone, **fields)
        self._keep_time()
        self._tick.stop()
        self.changed.emit(self.holdings)


def in_lm_studio(folder: str) -> bool:
    studio = lm_studio()
    return studio is not None and Path(folder).is_relative_to(studio)


def exported(folder: str, command: str) -> str:
    """Where the export is, and the one thing to do there."""
    place = Path(folder)
    if in_lm_studio(folder):
        return tr("It's in LM Studio now: pick {name} there.", name=place.name)
    said = tr("Exported to {folder}", folder=folder)
    return said + "\n" + tr("For Ollama, run this once: {command}", command=command) if command else said
