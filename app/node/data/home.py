"""The data folder: where it is, who holds it, the node's identity, and one sub-folder per model.

HOME/lock               held while a node runs; the system frees it however the node ends
HOME/identity           32 random bytes, this node's own; its questions follow from them
HOME/logs/trainer.log
HOME/models/NAME-MARK/  checkpoints/ and history.sqlite of one model
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import blake2b, sha256
from pathlib import Path
from secrets import token_bytes

from app.common import files
from app.common.home import home as data_folder
from app.node.data import modes
from app.node.record.errors import BusyError, NodeError, room_on_disk

IDENTITY_BYTES = 32
_MARKED_BYTES = 2**20


def folder(chosen: Path | None) -> Path:
    """The data folder (see app.common.home), made if missing. Raises NodeError when it cannot be."""
    home = data_folder(chosen)
    try:
        modes.make(home)
    except OSError as error:
        raise NodeError(
            f"The data folder {home} can't be made ({error.strerror}): choose another one with --home."
        ) from error
    if os.name == "posix":
        check_owner(home)
    return home


def check_owner(home: Path) -> None:
    """Raises NodeError, with the command that repairs it, if root would work in somebody else's folder, or if a
    start as root left files in it that this user may not read or write (which would look like damage)."""
    owner, user = home.stat().st_uid, os.geteuid()
    if user == 0 and owner != 0:
        raise NodeError(
            f"The data folder {home} belongs to {_user(owner)}, and this is root: start Shoal without sudo."
        )
    for place, folders, names in os.walk(home):
        for path in (os.path.join(place, name) for name in (*folders, *names)):
            if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
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
def held(home: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Holds the data folder for this process alone. Raises BusyError if another node still has it after
    `wait_s`, NodeError if it cannot be written."""
    with ExitStack() as held:
        try:
            held.enter_context(files.alone(home / "lock", wait_s))
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
                f"The data folder {home} can't be written ({error.strerror}): choose another one with --home."
            ) from error
        yield


def identity(home: Path, seed: int | None) -> bytes:
    """The 32 bytes from which this node's questions and samples follow; created silently at the first start. A
    `seed` replaces them for repeatable runs, without touching the node's own. Raises NodeError.
    """
    if seed is not None:
        return blake2b(f"shoal seed {seed}".encode(), digest_size=IDENTITY_BYTES).digest()
    path = home / "identity"
    if path.exists():
        own = path.read_bytes()
        if len(own) != IDENTITY_BYTES:
            raise NodeError(f"{path} is damaged: move it away, and a new identity is made at the next start.")
        return own
    own = token_bytes(IDENTITY_BYTES)
    with room_on_disk(home):
        files.write(path, own, private=True)
    return own


def model_folder(home: Path, name: str, mark: str) -> Path:
    """Where one model's checkpoints and history are stored. The name is for people, the mark identifies the
    model."""
    readable = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[-40:] or "model"
    return home / "models" / f"{readable}-{mark}"


def model_mark(model: Path) -> str:
    """Eight characters that change with a model's architecture, tokenizer or weights.

    Of each weight file its size, its first and its last megabyte are read, so that large models do not delay
    the start.
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
