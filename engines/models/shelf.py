"""Where fetched models lie: HOME/hub, laid out as Hugging Face's own cache, so that its tools read it too.

HUB/models--Owner--Name/snapshots/COMMIT/   the model's files, whole and checked
HUB/models--Owner--Name/refs/main           which of them counts
HUB/models--Owner--Name/source.json         where it came from (Source)
HUB/.partial/Owner--Name/                   what is under way or was cut short (Unfinished)
HUB/folders.json                            folders elsewhere that the owner chose as models
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

import msgspec

from engines.contract import EngineError
from engines.remedy import command

FOLDER = "hub"
PARTIAL = ".partial"
SOURCE, STATE, FOLDERS = "source.json", "state.json", "folders.json"
Content = TypeVar("Content")


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model came from. `revision` was asked for, `commit` is what it was; `digests` are SHA-256 of
    large files and git's own of small ones, by name."""

    id: str
    revision: str
    commit: str
    endpoint: str
    fetched: float
    bytes: int
    digests: dict[str, str]


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """A download under way or cut short. `done` are files that are whole and checked; `sentence` says why it
    stopped, empty while it runs and where it was killed."""

    id: str
    revision: str
    commit: str = ""
    total: int = 0
    done: dict[str, str] = {}
    sentence: str = ""


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is here: its name for `locate`, its folder, its bytes on disk; `local` where the folder is
    the owner's own."""

    name: str
    folder: str
    bytes: int
    local: bool = False
    source: Source | None = None


class Partial(msgspec.Struct, frozen=True, kw_only=True):
    """`have` of `total` bytes lie here; `running` while a process fetches it."""

    id: str
    have: int
    total: int
    sentence: str
    running: bool


class Shelf:
    """The models of one data folder. Nothing is made before something is put there."""

    def __init__(self, home: Path) -> None:
        self.root = home / FOLDER

    def place(self, id: str) -> Path:
        """Where a hub's model lies, or would."""
        return self.root / f"models--{_flat(id)}"

    def partial(self, id: str) -> Path:
        return self.root / PARTIAL / _flat(id)

    def find(self, id: str) -> Path | None:
        """The folder of a fetched model."""
        place = self.place(id)
        try:
            commit = (place / "refs" / "main").read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return None
        folder = place / "snapshots" / commit
        return folder if commit.isalnum() and (folder / "config.json").is_file() else None

    def source(self, id: str) -> Source | None:
        return _read(self.place(id) / SOURCE, Source)

    def installed(self) -> list[Installed]:
        """Fetched models by name, then the owner's own folders that still exist."""
        found = []
        for place in sorted(self.root.glob("models--*--*")):
            id = _name(place.name.removeprefix("models--"))
            folder = self.find(id)
            if folder is not None:
                found.append(Installed(name=id, folder=str(folder), bytes=size(place), source=self.source(id)))
        for path in self.folders():
            found.append(Installed(name=str(path), folder=str(path), bytes=size(path), local=True))
        return found

    def unfinished(self) -> list[Partial]:
        """What was cut short, and what is being fetched."""
        found = []
        for place in sorted((self.root / PARTIAL).glob("*--*")):
            state = _read(place / STATE, Unfinished)
            if state is None:
                continue
            found.append(
                Partial(
                    id=state.id,
                    have=sum(file.stat().st_size for file in _files(place / "files")),
                    total=state.total,
                    sentence=state.sentence,
                    running=busy(place),
                )
            )
        return found

    def folders(self) -> list[Path]:
        """The owner's own model folders."""
        kept = _read(self.root / FOLDERS, list[str]) or []
        return [Path(text) for text in kept if Path(text).is_dir()]

    def add_folder(self, folder: Path) -> Path:
        """Remembers a folder as a model. Raises EngineError when it is none, and OSError."""
        from engines.models.folder import open_folder  # safetensors, which the window does without

        path = open_folder(folder.expanduser().resolve()).path
        kept = {str(one) for one in self.folders()} | {str(path)}
        write(self.root / FOLDERS, sorted(kept))
        return path

    def remove(self, name: str) -> int:
        """Deletes a fetched model and what was begun of it, or forgets a folder of the owner's, which itself
        stays. Returns the bytes freed. Raises EngineError when there is none, or while it is being fetched."""
        folder = Path(name).expanduser()
        if folder.is_absolute() or "/" not in name:
            return self._forget(folder)
        place, partial = self.place(name), self.partial(name)
        if not place.is_dir() and not partial.is_dir():
            raise EngineError(f"{name} is not on this computer: {command('models')} lists what is.")
        if busy(partial):
            raise EngineError(f"{name} is being fetched right now: cancel that first.")
        freed = 0
        for path in (place, partial):
            freed += size(path)
            _discard(path)
        return freed

    def _forget(self, folder: Path) -> int:
        kept = [str(path) for path in self.folders()]
        wanted = str(folder.resolve())
        if wanted not in kept:
            raise EngineError(f"{folder} is no model of this data folder: {command('models')} lists them.")
        write(self.root / FOLDERS, [one for one in kept if one != wanted])
        return 0

    def tidy(self, id: str) -> None:
        """After a model was put in its place: what it was made from goes, and earlier versions of it."""
        _discard(self.partial(id))
        folder = self.find(id)
        for other in self.place(id).glob("snapshots/*") if folder is not None else ():
            if other != folder:
                _discard(other)

    def free(self) -> int:
        """Bytes free on the disk that holds it."""
        here = self.root
        while not here.exists():
            here = here.parent
        return shutil.disk_usage(here).free


@contextlib.contextmanager
def held(partial: Path, wait_s: float = 0.0) -> Iterator[bool]:
    """Holds a download for this process; False where another still has it after `wait_s`. The system frees it
    however we end."""
    from filelock import FileLock, Timeout

    partial.mkdir(parents=True, exist_ok=True)
    lock = FileLock(_lock(partial))
    try:
        lock.acquire(timeout=wait_s)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def busy(partial: Path) -> bool:
    """Whether a process fetches this right now."""
    if not _lock(partial).exists() or not partial.is_dir():
        return False
    with held(partial) as ours:
        return not ours


def _lock(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.lock")


def write(path: Path, content: object) -> None:
    """A JSON file, replaced as a whole and flushed. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(content), indent=1))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(file.stat().st_size for file in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*") if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            if path.is_file() and not path.is_symlink():
                yield path


def _discard(folder: Path) -> None:
    """Under another name first: what is half deleted is never taken for a model."""
    if folder.is_dir():
        doomed = folder.with_name(f".removing-{token_hex(4)}")
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def _read(path: Path, kind: type[Content]) -> Content | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def _flat(id: str) -> str:
    return id.replace("/", "--")


def _name(flat: str) -> str:
    return flat.replace("--", "/", 1)
