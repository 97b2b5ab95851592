"""Exports a trained model from the data folder: checkpoint, card and conversion, with progress. Used by the
command, and by a window, which runs the command as a child process."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from app.common.job import Done, Failed, Progress, Tell
from app.common.text import safe_line
from app.models import catalogue
from app.models.catalogue import STARTER
from app.models.shelf import locate
from app.node.models import card, trained
from app.node.models.skills import find_skill
from app.sapo.probe import Score
from engines.contract import EngineError, Kind
from engines.models.folder import open_folder

PROJECT_LICENCE = "Apache-2.0"


class ExportDone(Done, frozen=True, kw_only=True, tag="exported"):
    """The export is done: its files and folder."""

    folder: str
    format: str
    model: str
    round: int
    files: dict[str, int]
    """File names and sizes in bytes."""
    command: str = ""
    """The command that imports it into Ollama, if there is a Modelfile."""
    pass_at_1: float | None = None
    stderr: float | None = None

    @property
    def score(self) -> Score | None:
        if self.pass_at_1 is None or self.stderr is None:
            return None
        return Score(share=self.pass_at_1, stderr=self.stderr)


class ExportFailed(Failed, frozen=True, kw_only=True, tag="refused"):
    """The export failed."""


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An export as requested by the user; see app.models.export.ExportOrder."""

    model: str
    format: str
    to: Path
    kind: Kind = "f16"
    skill: str = ""
    """A skill's name (app.node.models.skills), to export that instead of the puzzles."""


def export(home: Path, wish: ExportRequest, tell: Tell) -> ExportDone:
    """Exports into the new folder `wish.to`. Raises EngineError or NodeError with one sentence; nothing is left
    then."""
    from app.models import export as exporter  # only here: it imports numpy and gguf

    exporter.check_target(wish.to)
    folder = locate(wish.model, home)
    known = None
    if wish.skill:
        known = find_skill(home, wish.skill, None if wish.model == STARTER else folder)
        folder = known.model
    skill = known.skill if known is not None else None
    with tempfile.TemporaryDirectory(prefix="shoal-export-") as place:
        found = trained.newest(home, folder, Path(place) / "safe", skill.made.mark if skill is not None else "")
        base = base_model(known.model_name if known is not None else wish.model, folder)
        text = card.write(wish.format, base, found, time.strftime("%Y-%m-%d"), skill)
        shares = [0.0]

        def progress(share: float) -> None:
            if share - shares[-1] >= 0.01 or share >= 1.0 > shares[-1]:
                shares.append(share)
                tell(Progress(share=round(share, 3)))

        order = exporter.ExportOrder(
            format=wish.format,
            base=folder,
            adapter=found.folder,
            kind=wish.kind,
            files={"README.md": text},
            system=found.state.way.system,
            about=card.card_metadata(base, found, skill),
        )
        exporter.write(order, wish.to, progress)
    return ExportDone(
        folder=str(wish.to),
        command=ollama_command(wish.to, exporter.MODELFILE) if wish.format == "ollama" else "",
        format=wish.format,
        model=base.name,
        round=found.state.round,
        files={file.name: file.stat().st_size for file in sorted(wish.to.iterdir())},
        pass_at_1=found.last.share if found.last else None,
        stderr=found.last.stderr if found.last else None,
    )


def ollama_command(folder: Path, modelfile: str) -> str:
    """Returns the shell command that imports the export into Ollama, with a name made from the folder's.

    >>> ollama_command(Path("/home/ada/My Minnow-20"), "Modelfile")
    "ollama create my-minnow-20 -f '/home/ada/My Minnow-20/Modelfile'"
    """
    name = "".join(one if one.isascii() and one.isalnum() else "-" for one in folder.name.lower()).strip("-")
    return shlex.join(["ollama", "create", name or "shoal", "-f", str(folder / modelfile)])


def hand_to_ollama(done: ExportDone) -> None:
    """Runs `done.command`, with which Ollama copies the model. Raises EngineError if Ollama is missing or
    rejects it."""
    words = shlex.split(done.command)
    try:
        made = subprocess.run(words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    except OSError as error:
        raise EngineError(
            f"Ollama can't be started here ({error.strerror}); the export itself is in {done.folder}."
        ) from error
    if made.returncode:
        said = safe_line((made.stderr or made.stdout).strip().rpartition("\n")[2], 200).rstrip(".")
        raise EngineError(f"Ollama didn't take it ({said}): start Ollama, then run {done.command}.")


def base_model(model: str, folder: Path) -> card.BaseModel:
    """Returns name and licence of a base model, from the catalogue or its README."""
    if model == STARTER:
        return card.BaseModel(name="Shoal starter", licence=PROJECT_LICENCE)
    name = open_folder(folder).name
    entry = catalogue.find(name)
    if entry is not None:
        return card.BaseModel(name=entry.id, licence=entry.licence, licence_url=entry.licence_url, on_hub=True)
    return card.BaseModel(name=name, licence=_written_licence(folder), on_hub="/" in name)


def _written_licence(folder: Path) -> str:
    """Returns the `license:` field of the README in a model's folder; empty if it has none."""
    if not (folder / "README.md").is_file():
        return ""
    try:
        with (folder / "README.md").open(encoding="utf-8", errors="replace") as file:
            lines = file.read(20_000).splitlines()
    except OSError:
        return ""
    if not lines or lines[0].strip() != "---":
        return ""
    for line in lines[1:]:
        if line.strip() == "---":
            break
        key, _, value = line.partition(":")
        if key.strip() == "license":
            said = value.strip().strip("'\"")
            return said if re.fullmatch(r"[\w.+ -]{1,60}", said) else ""
    return ""
