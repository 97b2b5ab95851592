"""The access token for gated models: in HF_TOKEN, or in the system's keyring. Never in a file of ours."""

from __future__ import annotations

import os

import keyring.errors

from app.swarm.identity.keyrings import HUB_TOKEN, SERVICE, real_backend

USER = HUB_TOKEN


class TokenError(Exception):
    """The keyring did not take it; the message is for the owner."""


def read() -> str | None:
    """The token, or None. A keyring that is locked or missing has none."""
    if token := os.environ.get("HF_TOKEN", "").strip():
        return token
    backend = real_backend()
    try:
        return (backend.get_password(SERVICE, USER) or None) if backend else None
    except (keyring.errors.KeyringError, OSError):
        return None


def save(token: str) -> None:
    """Puts it into the keyring. Raises TokenError."""
    text = token.strip()
    if not text.isascii() or not text.isprintable() or not 8 <= len(text) <= 200 or " " in text:
        raise TokenError("That is no access token: copy it from huggingface.co, Settings, Access Tokens.")
    backend = real_backend()
    if backend is None:
        raise TokenError(
            "This computer has no keyring to keep the token in: set HF_TOKEN before you start Shoal."
        )
    try:
        backend.set_password(SERVICE, USER, text)
    except (keyring.errors.KeyringError, OSError) as error:
        raise TokenError(
            f"The keyring did not take the token ({error}): unlock it, or set HF_TOKEN instead."
        ) from error


def forget() -> bool:
    """Whether there was one in the keyring. Raises TokenError."""
    backend = real_backend()
    try:
        if backend is None or not backend.get_password(SERVICE, USER):
            return False
        backend.delete_password(SERVICE, USER)
    except (keyring.errors.KeyringError, OSError) as error:
        raise TokenError(
            f"The keyring did not give the token back ({error}): unlock it and try again."
        ) from error
    return True
