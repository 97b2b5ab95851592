"""Stores the key: in the system's keyring or, without one, in a file that only its owner can read.

`identity.json` in the data folder records where the key is and its public part, without the secret. A key that
is known to exist is never replaced by a new one unless its owner asks for that: while it can't be read, opening
raises."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Literal

import msgspec

from app.common import files
from app.swarm.identity.identity import Identity, IdentityError, decode_key, decrypt, encode_key
from app.swarm.identity.keyrings import (
    PATIENCE_S,
    SERVICE,
    Find,
    load_key,
    real_backend,
    require_keyring,
    restore_hint,
    run_in_daemon_thread,
    store_key,
)
from engines import remedy

RECORD = "identity.json"


class KeyStore(StrEnum):
    KEYRING = "keyring"
    PLAIN = "plain"
    """An unencrypted file that only its owner can read."""
    SEALED = "file"
    """A file encrypted with a passphrase, written by an earlier version."""


PublicKey = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The storage place of a folder's key. What else earlier versions wrote into it is ignored."""

    where: Literal["keyring", "file", "plain"]
    public_key: PublicKey
    name: str
    v: Literal[1] = 1


class PublicIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The public part of an identity; all fields are empty if there is no key yet. `kept`: a `KeyStore`;
    `file`: the key's path, empty for the keyring."""

    name: str = ""
    public_key: str = ""
    kept: str = ""
    file: str = ""


class StoredIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """An identity ready for use. `note`: a sentence for the owner if something is wrong with its storage."""

    identity: Identity
    where: KeyStore
    note: str = ""


async def open_identity(
    folder: Path, *, find: Find = real_backend, patience_s: float = PATIENCE_S
) -> StoredIdentity:
    """Returns the folder's identity. Creates one on the first call and stores it as `keep` does. Raises OSError
    if the disk fails, and what `read_identity` raises: a folder with a key never gets a second one."""
    if _read(folder) is not None:
        return await read_identity(folder, find=find, patience_s=patience_s)
    return await keep(Identity.new(), folder, find=find, patience_s=patience_s)


async def read_identity(
    folder: Path, *, find: Find = real_backend, patience_s: float = PATIENCE_S
) -> StoredIdentity:
    """Returns the folder's existing identity. Raises KeyringLocked or KeyringWaiting while the keyring with the
    key can't be read (trying again later may help), and IdentityError if there is no key, it is sealed or
    damaged; a damaged file is renamed."""
    record = _read(folder)
    if record is None:
        raise IdentityError(
            "There is no identity here yet: Shoal makes one when it first learns with others, and "
            f"{remedy.command('identity new')} does so now."
        )
    if record.where == "keyring":
        identity = await run_in_daemon_thread(
            lambda: load_key(find, record.public_key, record.name), patience_s
        )
        return StoredIdentity(identity=identity, where=KeyStore.KEYRING)
    if record.where == "file":
        raise IdentityError(
            f"The key of {record.name} is under a passphrase, which Shoal no longer uses: enter the passphrase "
            f"or the recovery words once ({restore_hint()})."
        )
    identity, note = _from_plain(folder, record)
    return StoredIdentity(identity=identity, where=KeyStore.PLAIN, note=note)


async def keep(
    identity: Identity, folder: Path, *, find: Find = real_backend, patience_s: float = PATIENCE_S
) -> StoredIdentity:
    """Makes `identity` the folder's only key, in the keyring or else in a file that only its owner can read;
    the note then says why. Deletes the folder's earlier keys. Raises OSError if the disk fails."""
    try:
        await keep_in_keyring(identity, folder, find=find, patience_s=patience_s)
    except IdentityError as error:
        path = keep_plain(identity, folder)
        note = f"{error} So the key of {identity.name} is in {path}, which only you can read."
        return StoredIdentity(identity=identity, where=KeyStore.PLAIN, note=note)
    return StoredIdentity(identity=identity, where=KeyStore.KEYRING)


async def keep_in_keyring(
    identity: Identity, folder: Path, *, find: Find = real_backend, patience_s: float = PATIENCE_S
) -> None:
    """Writes a key into the keyring, reads it back, and only then makes it the folder's key. Raises
    IdentityError."""
    await run_in_daemon_thread(lambda: store_key(find, identity), patience_s)
    before = _write_record(folder, "keyring", identity)
    _plain_file(folder, identity.key.hex()).unlink(missing_ok=True)
    if before is not None and before.where == "keyring" and before.public_key != identity.key.hex():
        with suppress(IdentityError):
            await run_in_daemon_thread(lambda: _delete(find, before.public_key), patience_s)


def keep_plain(identity: Identity, folder: Path) -> Path:
    """Writes a key unencrypted into a file that only its owner can read, and makes it the folder's key. Returns
    the path. Raises OSError if the disk fails."""
    path = _plain_file(folder, identity.key.hex())
    files.write(path, encode_key(identity), private=True)
    _write_record(folder, "plain", identity)
    return path


def unseal(folder: Path, passphrase: str) -> Identity:
    """Decrypts the key that an earlier version encrypted with a passphrase. Raises IdentityError if the
    passphrase is wrong, or the file damaged or missing."""
    path = Path(public_identity(folder).file)
    try:
        return decrypt(path.read_bytes(), passphrase)
    except OSError as error:
        raise IdentityError(f"{path} can't be read ({error.strerror}): enter the recovery words.") from error


def public_identity(folder: Path) -> PublicIdentity:
    """Reads where the folder's key is, without opening a keyring or reading a secret. Raises IdentityError if
    the record is damaged."""
    record = _read(folder)
    if record is None:
        return PublicIdentity()
    by_place = {"file": _sealed_file, "plain": _plain_file}
    file = by_place[record.where](folder, record.public_key) if record.where in by_place else ""
    return PublicIdentity(name=record.name, public_key=record.public_key, kept=record.where, file=str(file))


def keyring_key_name(folder: Path) -> str:
    """The name of the folder's key if it is in the system's keyring, else ""."""
    try:
        record = _read(folder)
    except IdentityError:
        return ""
    return record.name if record is not None and record.where == "keyring" else ""


def delete_keyring_entry(folder: Path, find: Find = real_backend) -> str:
    """Deletes the folder's key from the keyring. Returns a sentence if that failed, else "". May wait for a
    user's dialog."""
    name = keyring_key_name(folder)
    if not name:
        return ""
    try:
        _delete(find, public_identity(folder).public_key)
    except Exception as error:  # each system's keyring has errors of its own
        return (
            f"The key of {name} is still in the keyring, which refused ({type(error).__name__}): delete "
            f"the entry {SERVICE} there."
        )
    return ""


def _delete(find: Find, public_key: str) -> None:
    """Deletes a key from the keyring, if it is there. Raises the keyring's exceptions."""
    import keyring.errors

    with suppress(keyring.errors.PasswordDeleteError):
        require_keyring(find).delete_password(SERVICE, public_key)


def _from_plain(folder: Path, record: KeyRecord) -> tuple[Identity, str]:
    """Reads the key from its file; also returns a sentence if other users could read it. Renames a damaged
    file. Raises IdentityError."""
    path = _plain_file(folder, record.public_key)
    enter = f"enter the recovery words of {record.name} ({restore_hint()})."
    try:
        note = _closed_to_others(path)
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise IdentityError(f"{path} isn't there: {enter}") from error
    except OSError as error:
        why = error.strerror or error
        raise IdentityError(f"{path} can't be read ({why}): {enter}") from error
    try:
        identity = decode_key(content)
    except IdentityError as error:
        raise IdentityError(
            f"The key of {record.name} is damaged, and its file is kept as {_set_aside(path)}: {enter}"
        ) from error
    if identity.key.hex() != record.public_key:
        raise IdentityError(f"{path} holds the key of {identity.name}, not of {record.name}: {enter}")
    return identity, note


def _closed_to_others(path: Path) -> str:
    """Removes other users' permissions on a file; returns a sentence if there were any. Raises OSError if the
    file is missing."""
    if os.name != "posix" or not stat.S_IMODE(path.stat().st_mode) & 0o077:
        return ""  # on Windows the person's own folder keeps others out
    with suppress(OSError):
        path.chmod(0o600)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        return f"Others on this computer can read your key in {path}: move Shoal's data to a disk of your own."
    return (
        f"Others on this computer could read your key in {path}; now only you can. If one of them may have "
        f"copied it, make a new one: {remedy.command('identity new')}."
    )


def _set_aside(path: Path) -> str:
    """Renames a damaged file; returns its new name."""
    to = path.with_name(f"damaged-{path.name}-{token_hex(2)}")
    with suppress(OSError):
        path.rename(to)
        return to.name
    return path.name


def _sealed_file(folder: Path, public_key: str) -> Path:
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
            f"{path} can't be read, and stays as it is: enter your recovery words ({restore_hint()})."
        ) from error


def _write_record(folder: Path, where: Literal["keyring", "plain"], identity: Identity) -> KeyRecord | None:
    """Records the folder's key, deletes the files of its earlier one and returns that one's record. Renames a
    damaged record."""
    own, before = identity.key.hex(), None
    try:
        before = _read(folder)
    except IdentityError:
        _set_aside(folder / RECORD)
    files.write_json(folder / RECORD, KeyRecord(where=where, public_key=own, name=identity.name), private=True)
    if before is not None:
        _sealed_file(folder, before.public_key).unlink(missing_ok=True)
        if before.public_key != own:
            _plain_file(folder, before.public_key).unlink(missing_ok=True)
    return before
