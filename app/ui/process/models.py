"""The window's control of models: reading the library, downloading, removing, exporting, storing the token,
serving to other programs. Each is a job (./shoal models, export, result, serve): only the one that downloads
opens sockets, and only after the person agreed."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from PySide6.QtCore import QTimer, Signal

from app.common import job
from app.models.found import lm_studio_folder
from app.models.gguf_shelf import is_gguf
from app.node.data.library import Library
from app.ui.language.texts import percent, tr, translated
from app.ui.process.job import Job, JobControl, MakeJob, decoded, updated_transfer
from app.ui.view.settings import Choices
from app.ui.view.view import Fetch, Holdings, ServedDoor

NODE_ENDS_S = 20
"""Seconds for a node to end before its training data is changed."""

INTO_OLLAMA = "into-ollama"
"""An export target beside the formats: hands the whole model to Ollama."""


class ModelControl(JobControl[Holdings]):
    """Controls models. `past_changed` is emitted when the chosen model's training was changed on disk."""

    past_changed = Signal()

    def __init__(self, home: Path, choices: Choices, make: MakeJob = Job) -> None:
        self._opened = ""
        reads = ["models", "list", "--json", "--home", str(home)]
        super().__init__(home, Holdings(chosen=str(choices["model"])), "models.log", make, reads)
        self._choices = choices
        self._getter = self._job(self._heard, self._got)
        self._doer = self._job(self._told, self._did)
        self._server = self._job(self._serves, self._served)
        self._failure = ""
        self._finish: Callable[[int], None] = lambda code: None
        """What follows the command that `_doer` runs; it gets the exit code."""
        self._event: dict[str, Any] = {}
        """The last event of that command."""
        self._second = QTimer(self, interval=1000)
        self._second.timeout.connect(lambda: self.changed.emit(self.state))

    def get(self, name: str) -> None:
        """Downloads a model, or imports a GGUF file, now or after the current download. Call it only after the
        person has agreed."""
        state = self.state
        if name in state.queue or (state.fetch is not None and state.fetch.name == name):
            return
        reading = tr("Reading {name}.", name=Path(name).name) if is_gguf(name) else ""
        self._change(failed=self._failed_without(name), problem="", said=reading)
        if state.fetch is not None:
            self._change(queue=(*state.queue, name))
            return
        model = state.library.find(name) if state.library is not None else None
        partial = model.partial if model is not None else None
        self._failure = ""
        had, total = (partial.have, partial.total) if partial is not None else (0, 0)
        self._change(fetch=Fetch(name=name, have=had, total=total))
        self._download(name)

    def retry(self, name: str) -> None:
        """Retries a waiting download now."""
        fetch = self.state.fetch
        if fetch is not None and fetch.name == name:
            self._follow(msgspec.structs.replace(fetch, note="", retry_at=None))
            self._download(name)

    def _download(self, name: str) -> None:
        mirror = str(self._choices["mirror"])
        words = ["models", "get", name, "--json", "--attached", "--home", str(self._home)]
        self._getter.start([*words, *(["--mirror", mirror] if mirror else [])], self._log)

    def cancel(self, name: str) -> None:
        """Stops a download; the partial download is kept."""
        if name in self.state.queue:
            self._change(queue=tuple(one for one in self.state.queue if one != name))
        elif self.state.fetch is not None and self.state.fetch.name == name:
            self._getter.end()
            self._next()

    def remove(self, name: str) -> None:
        """Deletes a model or a partial download, or removes a folder from the list."""

        def finish(code: int) -> None:
            if code:
                self._fail(name, tr("It couldn't be deleted. The log in Settings says why."))
            elif name == self.state.chosen:
                self.choose("starter")

        self._run(["models", "remove", name, "--yes", "--json"], finish, name)

    def add_folder(self, folder: str) -> None:
        """Adds a folder of the person's own to the list."""
        lacks = tr("No model that can learn in that folder. It needs config.json and .safetensors files.")
        self._run(["models", "get", folder], lambda code: self._change(problem=lacks if code else ""))

    def keep_token(self, token: str) -> None:
        """Stores the access token in the keyring."""
        kept = tr("The access token is in the keyring.")
        no = tr("That isn't a valid token, or this computer has no keyring. You can set HF_TOKEN instead.")

        def finish(code: int) -> None:
            self._change(**{"problem": no} if code else {"said": kept})

        self._run(["models", "token"], finish, line=token.strip().encode() + b"\n")

    def export(self, name: str, form: str, to: str, skill: str = "") -> None:
        """Exports what a model has learned, or one skill of it, into the new folder `to`. For Ollama, that is
        temporary, and deleted with the one around it."""
        if self._doer.running:
            self._change(problem=tr("Shoal is busy with another file. Try again in a moment."))
            return
        words = ["--format", "ollama", "--create"] if form == INTO_OLLAMA else ["--format", form]
        then = self._handed_to_ollama if form == INTO_OLLAMA else self._exported

        def finish(code: int) -> None:
            if form == INTO_OLLAMA:
                shutil.rmtree(Path(to).parent, ignore_errors=True)
            if code:
                ended = tr("The export failed. The log in Settings says why.")
                self._change(said="", problem=translated(str(self._event.get("sentence", ended))))
            else:
                then()

        words += ["--skill", skill] if skill else []
        self._run(["export", to, *words, "--model", name, "--json"], finish, name)
        self._change(said=tr("Exporting …"))

    def _handed_to_ollama(self) -> None:
        name = shlex.split(str(self._event.get("command", "")))[2:3]
        command = shlex.join(["ollama", "run", *name])
        self._change(said=tr("It's in Ollama now. In a terminal: {command}", command=command))

    def _exported(self) -> None:
        folder, command = (str(self._event.get(key, "")) for key in ("folder", "command"))
        self._change(said=export_message(folder, command), command="" if in_lm_studio(folder) else command)

    def result(self, to: Path, say: Callable[[str, bool], None]) -> None:
        """Saves a signed file of what the chosen model learned. `say` gets a sentence and whether it
        succeeded."""
        if self._doer.running:
            say(tr("Shoal is busy with another file. Try again in a moment."), False)
            return
        say(tr("Saving …"), True)

        def finish(code: int) -> None:
            complaint = translated(self._doer.complaint) or tr("The result couldn't be saved.")
            say(complaint if code else tr("Saved: {name}", name=to.name), not code)

        self._run(["result", "--out", str(to), "--model", self.state.chosen, "--json"], finish)

    def back(self, model: str) -> None:
        """Resets the model to its best round."""
        self._change_past(model, "back")

    def start_over(self, model: str) -> None:
        self._change_past(model, "start-over")

    def _change_past(self, model: str, verb: str) -> None:
        if self._doer.running:
            return

        def finish(code: int) -> None:
            if code:
                self._fail(
                    model, translated(self._doer.complaint) or tr("That didn't work. Nothing was changed.")
                )
            elif model == self.state.chosen:
                self.past_changed.emit()
            self.awake.emit()

        self.resting.emit()
        self._run(["models", verb, model, "--yes", "--wait", str(NODE_ENDS_S)], finish, model)

    def choose(self, name: str) -> None:
        """Chooses the model that learns from the next start on. Raises OSError if that cannot be saved."""
        self._choices.put("model", name)
        self._change(chosen=name, said="")

    def host(self) -> str:
        """Returns where models are downloaded from."""
        mirror = str(self._choices["mirror"]) or os.environ.get("HF_ENDPOINT", "")
        return urlsplit(mirror).hostname or mirror or "huggingface.co"

    def serve(self, on: bool) -> None:
        """Starts or stops serving the chosen model to other programs here."""
        self._server.end()
        self._change(door=None, door_opening=on, door_problem="")
        if on:
            self._opened = self.state.chosen
            where = ["--home", str(self._home), "--model", self._opened]
            where += ["--engine", str(self._choices["engine"])]
            allowed = [f"--allow={one}" for one in self._choices["serve_allows"]]
            self._server.start(["serve", "--json", "--attached", *where, *allowed], self._log)

    def _serves(self, line: bytes) -> None:
        told = decoded(line, dict[str, Any]) or {}
        if told.get("event") == "serving":
            door = ServedDoor(
                url=told["url"], token=told["token"], model=told["models"][0], chosen=self._opened
            )
            self._change(door=door, door_opening=False)

    def _served(self, code: int) -> None:
        """Called when the endpoint ended by itself."""
        ended = tr("Other programs can't use your model: the server stopped. Turn it on again.")
        self._change(door=None, door_opening=False, door_problem=translated(self._server.complaint) or ended)

    def _run(
        self, arguments: list[str], finish: Callable[[int], None], name: str = "", line: bytes = b""
    ) -> None:
        """Runs a command, unless one is running already. `name` is the model it concerns, `line` its input."""
        if self._doer.running:
            return
        self._finish, self._event = finish, {}
        self._change(problem="", said="", failed=self._failed_without(name))
        self._doer.start([*arguments, "--home", str(self._home)], self._log)
        self._doer.write(line)

    def _told(self, line: bytes) -> None:
        self._event = decoded(line, dict[str, Any]) or self._event
        if isinstance(event := job.read(line), job.Progress):
            self._change(said=tr("Exporting, {share}", share=percent(event.share)))

    def _did(self, code: int) -> None:
        self._finish(code)
        self.refresh()

    def _fail(self, name: str, sentence: str) -> None:
        self._change(failed={**self.state.failed, name: sentence})

    def _failed_without(self, name: str) -> dict[str, str]:
        return {key: said for key, said in self.state.failed.items() if key != name}

    def _read(self, line: bytes) -> None:
        if (library := decoded(line, Library)) is not None:
            self._change(library=library, problem="")

    def _has_read(self, code: int) -> None:
        if code != 0 and self.state.library is None:
            self._change(problem=tr("The list of models can't be read. The log in Settings says why."))
        super()._has_read(code)

    def _heard(self, line: bytes) -> None:
        fetch, told = self.state.fetch, decoded(line, dict[str, Any])
        if fetch is None or told is None:
            return
        match event := job.read(line):
            case job.Progress() | job.Waiting():
                fetch = updated_transfer(fetch, event)
            case job.Failed():
                self._failure = translated(event.sentence)
        match told.get("event"):
            case "planned":
                have, total = told["have"], told["total"]
                fetch = msgspec.structs.replace(fetch, have=have, total=total, note="", retry_at=None)
            case "elsewhere":
                note = translated(str(told["sentence"]))
                fetch = msgspec.structs.replace(fetch, note=note, retry_at=None)
        self._follow(fetch)

    def _follow(self, fetch: Fetch) -> None:
        self._change_soon(fetch=fetch)
        self._keep_time()

    def _got(self, code: int) -> None:
        fetch = self.state.fetch
        if fetch is not None and code != 0:
            said = self._failure or tr("The download failed. Nothing is lost: it resumes where it stopped.")
            self._fail(fetch.name, said)
            if is_gguf(fetch.name):  # it may have no row of its own to say that in
                self._change(problem=said)
        elif fetch is not None and is_gguf(fetch.name):
            self._change(said=tr("{name} is in your list now.", name=Path(fetch.name).name))
        self._next()

    def _next(self) -> None:
        queue = self.state.queue
        self._change(fetch=None, queue=queue[1:])
        self.refresh()
        if queue:
            self.get(queue[0])

    def _keep_time(self) -> None:
        """Updates the display every second while a download waits."""
        waits = self.state.fetch is not None and self.state.fetch.retry_at is not None
        if waits != self._second.isActive():
            self._second.start() if waits else self._second.stop()

    def _change(self, **fields: object) -> None:
        gone = {"command": ""} if "said" in fields and "command" not in fields else {}
        super()._change(**gone, **fields)
        self._keep_time()


def in_lm_studio(folder: str) -> bool:
    studio = lm_studio_folder()
    return studio is not None and Path(folder).is_relative_to(studio)


def export_message(folder: str, command: str) -> str:
    """Returns the message after an export: its folder, and the command to run for Ollama."""
    place = Path(folder)
    if in_lm_studio(folder):
        return tr("It's in LM Studio now: pick {name} there.", name=place.name)
    said = tr("Exported to {folder}", folder=folder)
    return said + "\n" + tr("For Ollama, run this once: {command}", command=command) if command else said
