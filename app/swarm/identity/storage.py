"""Where a key is kept: the system's keyring; where there is none, a file that only its owner may read, which a
passphrase encrypts; or, where the disk takes none either, nowhere but in memory.

`identity.json` beside it says where it lies and whose it is, without a secret.
"""

from __future__ import annotations

import asyncio
import os
import stat
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Literal

import keyring
import keyring.backend
import keyring.errors
import msgspec

from app.common import files, remedy
from app.common.process.secrets import PASSPHRASE
from app.swarm.identity.identity import (
    Identity,
    IdentityError,
    PassphraseNeeded,
    bare,
    decrypt,
    encrypt,
    from_bare,
)
from app.swarm.identity.keyrings import (
    PATIENCE_S,
    SERVICE,
    Find,
    aside,
    ask,
    found,
    put,
    real_backend,
    restoring,
)

RECORD = "identity.json"
_FORMER = 50
"""Earlier keys of a folder that are remembered."""


class Where(StrEnum):
    KEYRING = "keyring"
    FILE = "file"
    """Under a passphrase."""
    PLAIN = "plain"
    """A file without one, for its owner's eyes only."""
    MEMORY = "memory"


PublicKey = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the key of a folder is. `former` are the folder's keys from before, the latest last; they stay
    kept where they were."""

    where: Literal["keyring", "file", "plain"]
    public_key: PublicKey
    name: str
    v: Literal[1] = 1
    former: tuple[PublicKey, ...] = ()


class KeyLocation(msgspec.Struct, frozen=True, kw_only=True):
    """What may be told of an identity; all empty where there is none yet. `kept` is a `Where`, and `file` the
    key's path, empty for the keyring."""

    name: str = ""
    public_key: str = ""
    kept: str = ""
    file: str = ""


class StoredIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """An identity ready for use. `note` is a sentence for the owner when something is not as it should be."""

    identity: Identity
    where: Where
    note: str = ""


async def open_identity(
    folder: Path, *, passphrase: str | None = None, find: Find = real_backend, patience_s: float = PATIENCE_S
) -> StoredIdentity:
    """The folder's identity; made silently the first time and kept as `keep` does.

    A key's file that is damaged costs this session its name, never the kept key: the node goes on with a key in
    memory and the note says so. A key in a file without a passphrase gets the one that is given. Raises
    PassphraseNeeded, and IdentityError for a damaged record, a wrong passphrase, and a keyring that is locked,
    gone or silent: later it may not be.
    """
    record = _read(folder)
    if record is None:
        fresh = Identity.new()
        try:
            return await keep(fresh, folder, passphrase=passphrase, find=find, patience_s=patience_s)
        except OSError as error:
            why = error.strerror or error
            note = f"The key can't be kept in {folder} ({why}). This name lasts until the node ends."
            return StoredIdentity(identity=fresh, where=Where.MEMORY, note=note)
    if record.where == "file":
        return await read_identity(folder, passphrase=passphrase)
    try:
        one = await read_identity(folder, find=find, patience_s=patience_s)
    except IdentityError as error:
        if record.where == "keyring":
            raise
        note = f"{error} Until then, {record.name} stays away and this session has another name."
        return StoredIdentity(identity=Identity.new(), where=Where.MEMORY, note=note)
    if one.where is Where.PLAIN and passphrase is not None:
        await keep_in_file(one.identity, folder, passphrase)
        return StoredIdentity(identity=one.identity, where=Where.FILE, note=one.note)
    return one


async def read_identity(
    folder: Path, *, passphrase: str | None = None, find: Find = real_backend, patience_s: float = PATIENCE_S
) -> StoredIdentity:
    """The identity that the folder has. Raises PassphraseNeeded, and IdentityError where there is none or it
    cannot be had; a damaged file is moved aside then."""
    record = _read(folder)
    if record is None:
        raise IdentityError(
            "There is no identity here yet: Shoal makes one when it first learns with others, and "
            f"{remedy.command('identity new')} does so now."
        )
    match record.where:
        case "keyring":
            identity = await aside(lambda: ask(find, record.public_key, record.name), patience_s)
            return StoredIdentity(identity=identity, where=Where.KEYRING)
        case "file":
            return StoredIdentity(identity=await _from_file(folder, record, passphrase), where=Where.FILE)
        case "plain":
            identity, note = _from_plain(folder, record)
            return StoredIdentity(identity=identity, where=Where.PLAIN, note=note)


async def keep(
    identity: Identity,
    folder: Path,
    *,
    passphrase: str | None = None,
    find: Find = real_backend,
    patience_s: float = PATIENCE_S,
) -> StoredIdentity:
    """Makes a key the folder's: in a file under the passphrase where one is given, else in the keyring, else in
    a file that only its owner may read, and the note says why. Keys from before stay. Raises IdentityError for
    a short passphrase, OSError when the disk does not take it."""
    if passphrase is not None:
        await keep_in_file(identity, folder, passphrase)
        return StoredIdentity(identity=identity, where=Where.FILE)
    try:
        await keep_in_keyring(identity, folder, find=find, patience_s=patience_s)
    except IdentityError as error:
        path = keep_plain(identity, folder)
        note = (
            f"{error} So the key of {identity.name} is in {path}, which only you can read. "
            f"Set {PASSPHRASE} to encrypt it."
        )
        return StoredIdentity(identity=identity, where=Where.PLAIN, note=note)
    return StoredIdentity(identity=identity, where=Where.KEYRING)


def key_location(folder: Path) -> KeyLocation:
    """Asks no keyring and reads no secret. Raises IdentityError for a damaged record."""
    record = _read(folder)
    if record is None:
        return KeyLocation()
    files = {"file": _key_file, "plain": _plain_file}
    file = files[record.where](folder, record.public_key) if record.where in files else ""
    return KeyLocation(name=record.name, public_key=record.public_key, kept=record.where, file=str(file))


async def keep_in_keyring(
    identity: Identity,
    folder: Path,
    *,
    find: Find = real_backend,
    patience_s: float = PATIENCE_S,
) -> None:
    """Puts a key into the keyring, reads it back, and only then makes it the folder's. Keys that lie there from
    before stay. Raises IdentityError."""
    await aside(lambda: put(find, identity), patience_s)
    _write_record(folder, "keyring", identity)


async def keep_in_file(identity: Identity, folder: Path, passphrase: str) -> None:
    """Writes a key into its own encrypted file and makes it the folder's. Raises IdentityError for a short
    passphrase, OSError when the disk does not take it."""
    content = await asyncio.to_thread(encrypt, identity, passphrase)
    files.write(_key_file(folder, identity.key.hex()), content, private=True)
    _write_record(folder, "file", identity)
    _plain_file(folder, identity.key.hex()).unlink(missing_ok=True)


def keep_plain(identity: Identity, folder: Path) -> Path:
    """Writes a key as it is into a file for its owner's eyes only and makes it the folder's. Returns the file.
    Raises OSError when the disk does not take it."""
    path = _plain_file(folder, identity.key.hex())
    files.write(path, bare(identity), private=True)
    _write_record(folder, "plain", identity)
    return path


def kept_in_keyring(folder: Path) -> str:
    """The name of the folder's key where the system's keyring has it; empty where there is none there."""
    try:
        record = _read(folder)
    except IdentityError:
        return ""
    return record.name if record is not None and record.where == "keyring" else ""


def forget(folder: Path, find: Find = real_backend) -> str:
    """Deletes the folder's key, and those it had before, from the keyring. Returns a sentence about what stood
    in the way. May wait for a person."""
    try:
        record = _read(folder)
    except IdentityError:
        return ""
    if record is None:
        return ""
    keys = [*record.former, *([record.public_key] if record.where == "keyring" else [])]
    if not keys:
        return ""
    try:
        backend = found(find)
        for key in keys:
            with suppress(keyring.errors.PasswordDeleteError):  # it is not there
                backend.delete_password(SERVICE, key)
    except Exception as error:  # each system's keyring has errors of its own
        if record.where != "keyring":
            return ""  # the former ones are most likely not there either
        return (
            f"The key of {record.name} is still in the keyring, which refused ({type(error).__name__}): delete "
            f"the entry {SERVICE} there."
        )
    return ""


async def _from_file(folder: Path, record: KeyRecord, passphrase: str | None) -> Identity:
    path = _key_file(folder, record.public_key)
    if passphrase is None:
        raise PassphraseNeeded(f"The key of {record.name} is under a passphrase: set {PASSPHRASE} to it.")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise IdentityError(
            f"{path} can't be read ({error.strerror}): enter the recovery words of {record.name} "
            f"({restoring()})."
        ) from error
    identity = await asyncio.to_thread(decrypt, content, passphrase)
    if identity.key.hex() != record.public_key:
        raise IdentityError(f"{path} holds the key of {identity.name}, not of {record.name}.")
    return identity


def _from_plain(folder: Path, record: KeyRecord) -> tuple[Identity, str]:
    """With a sentence where others could read it. A file that is damaged is moved aside. Raises
    IdentityError."""
    path = _plain_file(folder, record.public_key)
    enter = f"enter the recovery words of {record.name} ({restoring()})."
    try:
        note = _closed_to_others(path)
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise IdentityError(f"{path} isn't there: {enter}") from error
    except OSError as error:
        why = error.strerror or error
        raise IdentityError(f"{path} can't be read ({why}): {enter}") from error
    try:
        identity = from_bare(content)
    except IdentityError as error:
        raise IdentityError(
            f"The key of {record.name} is damaged, and its file is kept as {_set_aside(path)}: {enter}"
        ) from error
    if identity.key.hex() != record.public_key:
        raise IdentityError(f"{path} holds the key of {identity.name}, not of {record.name}: {enter}")
    return identity, note


def _closed_to_others(path: Path) -> str:
    """Takes others' rights to a file away; returns a sentence where they had some. Raises OSError where there
    is no such file."""
    if os.name != "posix" or not stat.S_IMODE(path.stat().st_mode) & 0o077:
        return ""  # on Windows the person's own folder keeps others out
    with suppress(OSError):
        path.chmod(0o600)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        return f"Others on this computer can read your key in {path}: set {PASSPHRASE} to encrypt it."
    return (
        f"Others on this computer could read your key in {path}; now only you can. If one of them may have "
        f"copied it, make a new one: {remedy.command('identity new')}."
    )


def _set_aside(path: Path) -> str:
    """Gives a damaged file another name, and returns the one it has then."""
    to = path.with_name(f"damaged-{path.name}-{token_hex(2)}")
    with suppress(OSError):
        path.rename(to)
        return to.name
    return path.name


def _key_file(folder: Path, public_key: str) -> Path:
    return folder / f"key-{public_key[:16]}.sealed"


def _plain_file(folder: Path, public_key: str) -> Path:
    return folder / f"key-{public_key[:16]}.secret"


def _read(folder: Path) -> KeyRecord | None:
    path = folder / RECORD
    try:
        return msgspec.json.decode(path.read_bytes(), type=KeyRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise IdentityError(
            f"{path} can't be read, and stays as it is: enter your recovery words ({restoring()})."
        ) from error


def _write_record(folder: Path, where: Literal["keyring", "file", "plain"], identity: Identity) -> None:
    """A damaged record that it replaces is moved aside."""
    own, former = identity.key.hex(), tuple[str, ...]()
    try:
        before = _read(folder)
    except IdentityError:
        _set_aside(folder / RECORD)
    else:
        if before is not None:
            former = tuple(key for key in (*before.former, before.public_key) if key != own)[-_FORMER:]
    record = KeyRecord(where=where, public_key=own, name=identity.name, former=former)
    files.write_json(folder / RECORD, record, private=True)
