"""The data folder: location, lock, access rights and format version, the node's identity, and one sub-folder
per model.

    HOME/lock               held while a node runs; the system releases it however the node ends
    HOME/format.json        the version of Shoal that used it last
    HOME/identity           32 random bytes of this node, from which its questions are derived
    HOME/logs/trainer.log
    HOME/models/NAME-MARK/  checkpoints/ and history.sqlite of one model's puzzles, and skills/NAME-MARK/ with
                            those of each question set
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b, sha256
from pathlib import Path
from secrets import token_bytes

import msgspec

from app.common import files
from app.common import home as place
from app.common.home import POINTER_FILE
from app.common.home import home as data_folder
from app.install.updates import installed
from app.node.data import contents
from app.node.record.errors import BusyError, NodeError, raising_disk_full

IDENTITY_BYTES = 32
_MARKED_BYTES = 2**20
SKILL_FILE = "skill.json"
SKILLS = "skills"
"""Folder of the skills in a model's folder; each has checkpoints and a history of its own."""


def prepare_data_folder(chosen: Path | None) -> Path:
    """Returns the data folder (see app.common.home), created if missing. Raises NodeError if it cannot be
    created, or its name cannot be told to the trainer."""
    home = data_folder(chosen)
    if (shown := os.fsencode(home).decode("utf-8", "replace")) != str(home):
        raise NodeError(f"The name of the data folder {shown} isn't UTF-8: choose another one with --home.")
    try:
        make_private(home)
    except OSError as error:
        raise NodeError(
            f"The data folder {home} can't be made ({error.strerror}): choose another one with --home."
        ) from error
    if os.name == "posix":
        check_owner(home)
    return home


def check_owner(home: Path) -> None:
    """Raises NodeError, with the command that repairs it, if root would work in another user's folder, or if an
    earlier start as root left files that this user cannot read or write (they would look damaged). Looks at
    what is Shoal's alone: a disk has entries of its own, such as lost+found."""
    owner, user = home.stat().st_uid, os.geteuid()
    if user == 0 and owner != 0:
        raise NodeError(
            f"The data folder {home} belongs to {_user(owner)}, and this is root: start Shoal without sudo."
        )
    for entry in contents.shoal_entries(home):
        inside = (Path(place, name) for place, folders, names in os.walk(entry) for name in (*folders, *names))
        for path in (entry, *inside):
            theirs = os.path.exists(path) and os.stat(path).st_uid != user
            if theirs and not os.access(path, os.R_OK | os.W_OK):
                raise NodeError(
                    f"{_user(user)} may not read and write {path}; nothing is lost. "
                    f"Run sudo chown -R {_user(user)} {shlex.quote(str(home))}, then start Shoal again."
                )


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


@contextmanager
def lock_data_folder(home: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Locks the data folder for this process. Raises BusyError if another node still holds it after `wait_s`
    seconds, and NodeError if it cannot be written."""
    with ExitStack() as held:
        try:
            held.enter_context(files.exclusive_lock(home / "lock", wait_s))
        except files.LockHeldError as error:
            raise BusyError(
                f"Another node (process {error.holder}) is using {home}: stop it, or give this one its own "
                "--home."
            ) from None
        except OSError as error:
            if (home / "lock").is_symlink():
                raise NodeError(
                    f"{home / 'lock'} is a link, and Shoal doesn't write through links: delete it, then try "
                    "again."
                ) from error
            raise NodeError(
                f"The data folder {home} can't be written, or its disk has no locks ({error.strerror}): choose "
                "another one with --home."
            ) from error
        yield


def identity(home: Path, seed: int | None) -> bytes:
    """Returns the 32 bytes from which this node's questions and samples are derived: those of `HOME/identity`,
    which the first start makes, on this computer and in this folder, so that a copy of the folder practises
    other questions. A `seed` replaces them for repeatable runs. Raises NodeError."""
    if seed is not None:
        return blake2b(f"shoal seed {seed}".encode(), digest_size=IDENTITY_BYTES).digest()
    path = home / "identity"
    if path.exists():
        own = path.read_bytes()
        if len(own) != IDENTITY_BYTES:
            raise NodeError(f"{path} is damaged: move it away, and a new identity is made at the next start.")
    else:
        own = token_bytes(IDENTITY_BYTES)
        with raising_disk_full(home):
            files.write(path, own, private=True)
    here = f"{platform.node()} {home.stat().st_ino}".encode()
    return blake2b(own + here, digest_size=IDENTITY_BYTES).digest()


def model_folder(home: Path, name: str, mark: str) -> Path:
    """Returns the folder of one model's checkpoints and history. The name is for people; the mark identifies
    the model."""
    readable = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[-40:] or "model"
    return home / "models" / f"{readable}-{mark}"


def skill_folder(folder: Path, slug: str, mark: str) -> Path:
    """Returns the folder of what a model learned from the question set with this mark, in the model's
    `folder`: the one that exists, whatever the set was called then, or a new one."""
    known = sorted((folder / SKILLS).glob(f"*-{mark}"))
    return known[0] if known else folder / SKILLS / f"{slug}-{mark}"


class SkillPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A skill's SKILL_FILE: the folder of its base model, and the model's name."""

    model: str
    name: str


def model_mark(model: Path) -> str:
    """Returns eight hex characters that change with a model's architecture, tokenizer or weights.

    Reads the size, the first and the last megabyte of each weight file, so that large models do not delay the
    start.
    """
    digest = sha256()
    for path in sorted(model.iterdir()):
        if path.name in ("config.json", "tokenizer.json") or path.suffix == ".safetensors":
            size = path.stat().st_size
            digest.update(f"{path.name} {size} ".encode())
            with path.open("rb") as file:
                digest.update(file.read(_MARKED_BYTES))
                file.seek(max(0, size - _MARKED_BYTES))
                digest.update(file.read(_MARKED_BYTES))
    return digest.hexdigest()[:8]


def use_folder(to: Path, current: Path) -> None:
    """Makes `to`, created if missing, this computer's data folder from the next start on, instead of `current`.
    Copies and deletes nothing. Raises NodeError."""
    if current != place.default_home():
        raise NodeError(
            f"The data folder {current} was chosen with --home or SHOAL_HOME: name the other one there instead."
        )
    to = Path(os.path.abspath(to))
    try:
        make_private(to)
        place.remember_folder(None if to == place.platform_place() else to)
    except OSError as error:
        raise NodeError(
            f"{to} can't be the data folder ({error.strerror}): choose another one. The folder stays {current}."
        ) from error


_OTHERS = 0o077


def make_private(home: Path) -> None:
    """Creates the data folder if missing and closes it to others: folders have mode 0700, files 0600. New files
    get these modes from `app.common.home.UMASK`; those of an older Shoal are closed here. On Windows the
    platform's own place already belongs to its user, and a folder that --home names keeps its rights. Raises
    OSError if it cannot be created."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix":
        restrict_to_owner(home)


def restrict_to_owner(home: Path) -> None:
    """Removes other users' rights to Shoal's files, and to the folder itself unless it has other contents or
    everybody may write there. Files whose mode the system refuses to change are left as they are."""
    for entry in contents.shoal_entries(home):
        if _open_to_others(entry):
            _close_tree(entry)
    if _open_to_others(home) and all(entry.name == POINTER_FILE for entry in contents.foreign_entries(home)):
        _shut(home)


def _close_tree(entry: Path) -> None:
    """Closes a tree to other users. The folder itself comes last: if the process is killed before, the next
    start repeats it."""
    if stat.S_ISDIR(entry.lstat().st_mode):
        for folder, folders, names in os.walk(entry):
            for name in (*folders, *names):
                _shut(Path(folder) / name)
    _shut(entry)


def _open_to_others(path: Path) -> bool:
    """Whether other users have any rights to `path`. False for links, which have no modes, and for sticky
    folders."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        return not stat.S_ISLNK(mode) and bool(mode & _OTHERS) and not mode & stat.S_ISVTX
    return False


def _shut(path: Path) -> None:
    if _open_to_others(path):
        with suppress(OSError):
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)


FORMAT_FILE = "format.json"
FORMAT = 3
"""Increases with the format of the history, the checkpoints, the outbox or any other file of the data folder.
A version reads what older ones wrote, and changes nothing in a folder of a newer one."""


class Format(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    version: str = ""


class NewerVersionError(NodeError):
    """A file was written by a newer version of Shoal."""


def check_format(home: Path) -> None:
    """Raises NewerVersionError if a newer version of Shoal stores the folder in a format that this one does not
    know."""
    found = read_format(home)
    if found is not None and found.format > FORMAT:
        by = f"Shoal {found.version}" if installed.version_key(found.version)[0] else "a newer Shoal"
        raise NewerVersionError(
            f"The data folder {home} was last used by {by}, and this is {installed.version()}, which doesn't "
            "know how it is kept now: install that version or a newer one, or name another folder with "
            "--home. Nothing in it was changed."
        )


def stamp_format(home: Path) -> None:
    """Records that this version used the folder. Raises NewerVersionError like `check_format`."""
    check_format(home)
    own = Format(format=FORMAT, version=installed.version())
    if read_format(home) != own:
        with contextlib.suppress(OSError):  # a full disk is told by the first safe point
            files.write_json(home / FORMAT_FILE, own)


def read_format(home: Path) -> Format | None:
    """Returns the recorded format and version. None if the file is missing (older folders) or invalid."""
    return files.read_json(home / FORMAT_FILE, Format)


def newer_format_error(what: str, found: int) -> NewerVersionError:
    """Returns the error for a file, named by `what`, whose own format `found` is newer than this version
    knows.
    """
    return NewerVersionError(
        f"{what} is of format {found}, which this version of Shoal ({installed.version()}) doesn't know: "
        "install the newer version that wrote it, or name another folder with --home. Nothing was changed."
    )
