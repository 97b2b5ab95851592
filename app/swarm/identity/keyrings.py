"""The system's keyring: which backends encrypt, the entries in it, and calls that may wait for a user's
dialog."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from app.swarm.identity.identity import Identity, IdentityError
from engines import remedy

if TYPE_CHECKING:
    import keyring.backend

SERVICE = "Shoal"
HUB_TOKEN = "Hugging Face access token"
"""The only other entry under that service (app/cli/models.py)."""
PATIENCE_S = 60.0
"""Seconds that the user may take for the keyring's dialog before the node starts without it."""
_REAL = frozenset(
    f"keyring.backends.{one}" for one in ("macOS", "Windows", "SecretService", "kwallet", "libsecret")
)
"""Backends that encrypt. Others write plain files and would be selected silently."""
Find: TypeAlias = "Callable[[], keyring.backend.KeyringBackend | None]"
T = TypeVar("T")


class KeyringLocked(IdentityError):
    """The key cannot be read now, perhaps later: the keyring is locked, missing or another one, or refuses."""


class KeyringWaiting(KeyringLocked):
    """The keyring's dialog is open and unanswered."""


def real_backend(chosen: keyring.backend.KeyringBackend | None = None) -> keyring.backend.KeyringBackend | None:
    """The system's keyring if it encrypts, else None. Respects the user's choice of backend; of a chain, the
    first one that encrypts. The library for other trainers (app.swarm.library) comes without the module."""
    try:
        import keyring
        from keyring.backends.chainer import ChainerBackend
    except ModuleNotFoundError:
        return None
    current = chosen or keyring.get_keyring()
    chain = list(current.backends) if isinstance(current, ChainerBackend) else [current]
    return next((one for one in chain if type(one).__module__ in _REAL), None)


def forget_token(find: Find = real_backend) -> str:
    """Deletes the model hub's access token from the keyring, if present. Returns a sentence if that failed,
    else "". May wait for a user's dialog."""
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


async def run_in_daemon_thread(call: Callable[[], T], patience_s: float) -> T:
    """Runs `call` in a daemon thread, which doesn't keep the process alive while the system shows a dialog.
    Raises KeyringLocked if the keyring raises anything, and KeyringWaiting if there is no answer within
    `patience_s` seconds."""
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
            failure = KeyringLocked(f"The system's keyring refused ({type(error).__name__}): unlock it.")
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=work, name="keyring", daemon=True).start()
    try:
        return await asyncio.wait_for(answer, patience_s)
    except TimeoutError as error:
        raise KeyringWaiting("The system's keyring didn't answer: unlock it.") from error


def store_key(find: Find, identity: Identity) -> None:
    """Writes a key into the keyring and reads it back. Raises IdentityError."""
    backend = require_keyring(find)
    backend.set_password(SERVICE, identity.key.hex(), identity.seed().hex())
    if backend.get_password(SERVICE, identity.key.hex()) != identity.seed().hex():
        raise IdentityError("The system's keyring didn't keep the key.")


def load_key(find: Find, public_key: str, name: str) -> Identity:
    """Reads a key from the keyring. `name` is for messages. Raises KeyringLocked if the keyring or the entry is
    missing now, and IdentityError if the entry is damaged."""
    secret = require_keyring(find).get_password(SERVICE, public_key)
    if secret is None:
        raise KeyringLocked(
            f"The key of {name} isn't in this keyring: log in as before, or enter its recovery words "
            f"({restore_hint()})."
        )
    try:
        identity = Identity(bytes.fromhex(secret))
        if identity.key.hex() == public_key:
            return identity
    except ValueError:  # not hex, or too short
        pass
    raise IdentityError(
        f"The keyring's entry for {name} is damaged: enter its recovery words ({restore_hint()})."
    )


def require_keyring(find: Find) -> keyring.backend.KeyringBackend:
    """Returns the system's keyring. Raises KeyringLocked if the system has none."""
    backend = find()
    if backend is None:
        raise KeyringLocked("This computer has no keyring.")
    return backend


def restore_hint() -> str:
    """The command line that restores a key from recovery words."""
    return remedy.command("identity restore")
