"""Where a key is kept: the system's keyring, or a file under a passphrase, or nowhere but in memory.

A key is never written as it is. `identity.json` beside it says where it lies and whose it is, without a secret.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import keyring
import keyring.backend
import keyring.errors
import msgspec
from keyring.backends.chainer import ChainerBackend

from app.swarm.identity import Identity, IdentityError, PassphraseNeeded, decrypt, encrypt

SERVICE = "Shoal"
HUB_TOKEN = "Hugging Face access token"
"""The one other entry that Shoal keeps under that service (app/cli/_hub_token.py)."""
RECORD = "identity.json"
PATIENCE_S = 60.0
"""How long a person may take with the keyring's own dialog before the node goes on without it."""

_REAL = frozenset(
    f"keyring.backends.{one}" for one in ("macOS", "Windows", "SecretService", "kwallet", "libsecret")
)
"""Backends that encrypt. Others exist that write plain files, and would be picked up silently."""

T = TypeVar("T")


class Where(StrEnum):
    KEYRING = "keyring"
    FILE = "file"
    MEMORY = "memory"


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the key of a folder is."""

    v: Literal[1] = 1
    where: Literal["keyring", "file"]
    public_key: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    name: str


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """An identity ready for use. `note` is a sentence for the owner when something is not as it should be."""

    identity: Identity
    where: Where
    note: str = ""


def real_backend(chosen: keyring.backend.KeyringBackend | None = None) -> keyring.backend.KeyringBackend | None:
    """The system's keyring if it is one that encrypts, else None. Follows the person's own choice of backend;
    of a chain the best one that encrypts is taken."""
    current = chosen or keyring.get_keyring()
    chain = list(current.backends) if isinstance(current, ChainerBackend) else [current]
    return next((one for one in chain if type(one).__module__ in _REAL), None)


async def open_identity(
    folder: Path,
    *,
    passphrase: str | None = None,
    find: Callable[[], keyring.backend.KeyringBackend | None] = real_backend,
    patience_s: float = PATIENCE_S,
) -> Kept:
    """The folder's identity; made silently the first time and kept in the keyring if there is one, or in a file
    if a passphrase was given.

    A keyring that is locked, gone or silent costs this session its name, never the kept key: the node goes on
    with a key in memory and the note says so. Raises PassphraseNeeded, and IdentityError for a damaged record
    or a wrong passphrase.
    """
    record = _read(folder)
    if record is None:
        fresh = Identity.new()
        if passphrase is not None:
            await keep_in_file(fresh, folder, passphrase)
            return Kept(identity=fresh, where=Where.FILE)
        try:
            await keep_in_keyring(fresh, folder, find=find, patience_s=patience_s)
        except IdentityError as error:
            return Kept(
                identity=fresh, where=Where.MEMORY, note=f"{error} This name lasts until the node ends."
            )
        return Kept(identity=fresh, where=Where.KEYRING)
    if record.where == "file":
        return Kept(identity=await _from_file(folder, record, passphrase), where=Where.FILE)
    try:
        found = await aside(lambda: _ask(find, record), patience_s)
    except IdentityError as error:
        note = f"{error} Until it opens, {record.name} stays away and this session has another name."
        return Kept(identity=Identity.new(), where=Where.MEMORY, note=note)
    return Kept(identity=found, where=Where.KEYRING)


async def keep_in_keyring(
    identity: Identity,
    folder: Path,
    *,
    find: Callable[[], keyring.backend.KeyringBackend | None] = real_backend,
    patience_s: float = PATIENCE_S,
) -> None:
    """Puts a key into the keyring, reads it back, and only then makes it the folder's. Keys that lie there from
    before stay. Raises IdentityError."""
    await aside(lambda: _put(find, identity), patience_s)
    _write_record(folder, "keyring", identity)


async def keep_in_file(identity: Identity, folder: Path, passphrase: str) -> None:
    """Writes a key into its own encrypted file and makes it the folder's. Raises IdentityError for a short
    passphrase, OSError when the disk does not take it."""
    content = await asyncio.to_thread(encrypt, identity, passphrase)
    _write(_key_file(folder, identity.key.hex()), content)
    _write_record(folder, "file", identity)


def kept_in_keyring(folder: Path) -> str:
    """The name of the folder's key where the system's keyring has it; empty where there is none there."""
    try:
        record = _read(folder)
    except IdentityError:
        return ""
    return record.name if record is not None and record.where == "keyring" else ""


def forget(folder: Path, find: Callable[[], keyring.backend.KeyringBackend | None] = real_backend) -> str:
    """Deletes the folder's key from the keyring. Returns a sentence about what stood in the way. May wait for a
    person."""
    if not (name := kept_in_keyring(folder)):
        return ""
    record = _read(folder)
    assert record is not None
    try:
        _found(find).delete_password(SERVICE, record.public_key)
    except keyring.errors.PasswordDeleteError:
        return ""  # it is not there
    except Exception as error:  # each system's keyring has errors of its own
        return (
            f"The key of {name} is still in the keyring, which refused ({type(error).__name__}): delete the "
            f"entry {SERVICE} there."
        )
    return ""


def forget_token(find: Callable[[], keyring.backend.KeyringBackend | None] = real_backend) -> str:
    """Deletes the access token for models from the keyring, where there is one. Returns a sentence about what
    stood in the way. May wait for a person."""
    try:
        backend = find()
        if backend is not None and backend.get_password(SERVICE, HUB_TOKEN):
            backend.delete_password(SERVICE, HUB_TOKEN)
    except Exception as error:  # each system's keyring has errors of its own
        return (
            f"An access token for models may still be in the keyring, which refused ({type(error).__name__}): "
            f"delete the entry {SERVICE} there."
        )
    return ""


async def aside(call: Callable[[], T], patience_s: float) -> T:
    """Runs a call that may wait for a person, beside the event loop. Its thread ends with the process: nobody
    waits for a dialog that was left open. Raises IdentityError for whatever the keyring raises, and when
    patience ends."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: Exception | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(value)  # type: ignore[arg-type]
        else:
            answer.set_exception(error)

    def work() -> None:
        value: T | None = None
        failure: IdentityError | None = None
        try:
            value = call()
        except IdentityError as error:
            failure = error
        except Exception as error:  # each system's keyring has errors of its own
            failure = IdentityError(f"The system's keyring refused ({type(error).__name__}): unlock it.")
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=work, name="keyring", daemon=True).start()
    try:
        return await asyncio.wait_for(answer, patience_s)
    except TimeoutError as error:
        raise IdentityError("The system's keyring did not answer: unlock it.") from error


def _put(find: Callable[[], keyring.backend.KeyringBackend | None], identity: Identity) -> None:
    backend = _found(find)
    backend.set_password(SERVICE, identity.key.hex(), identity.seed().hex())
    if backend.get_password(SERVICE, identity.key.hex()) != identity.seed().hex():
        raise IdentityError("The system's keyring did not keep the key.")


def _ask(find: Callable[[], keyring.backend.KeyringBackend | None], record: Record) -> Identity:
    secret = _found(find).get_password(SERVICE, record.public_key)
    if secret is None:
        raise IdentityError(
            f"The key of {record.name} is not in this keyring: log in as before or enter its recovery words."
        )
    try:
        identity = Identity(bytes.fromhex(secret))
        if identity.key.hex() == record.public_key:
            return identity
    except ValueError:  # not hex, or too short
        pass
    raise IdentityError(f"The keyring's entry for {record.name} is damaged: enter its recovery words.")


def _found(find: Callable[[], keyring.backend.KeyringBackend | None]) -> keyring.backend.KeyringBackend:
    backend = find()
    if backend is None:
        raise IdentityError("This system has no keyring: keep the key in a file with a passphrase.")
    return backend


async def _from_file(folder: Path, record: Record, passphrase: str | None) -> Identity:
    path = _key_file(folder, record.public_key)
    if passphrase is None:
        raise PassphraseNeeded(f"The key of {record.name} is under a passphrase: enter it.")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise IdentityError(
            f"{path} cannot be read ({error.strerror}): bring {record.name} back with its recovery words."
        ) from error
    identity = await asyncio.to_thread(decrypt, content, passphrase)
    if identity.key.hex() != record.public_key:
        raise IdentityError(f"{path} holds the key of {identity.name}, not of {record.name}.")
    return identity


def _key_file(folder: Path, public_key: str) -> Path:
    return folder / f"key-{public_key[:16]}.sealed"


def _read(folder: Path) -> Record | None:
    path = folder / RECORD
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise IdentityError(
            f"{path} cannot be read: move it away and bring your key back with its recovery words."
        ) from error


def _write_record(folder: Path, where: Literal["keyring", "file"], identity: Identity) -> None:
    record = Record(where=where, public_key=identity.key.hex(), name=identity.name)
    _write(folder / RECORD, msgspec.json.format(msgspec.json.encode(record)))


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all, and for this person's eyes only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
