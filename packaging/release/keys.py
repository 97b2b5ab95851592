"""The release's key: an Ed25519 pair whose secret half is 64 hexadecimal digits, in a file or in an environment
variable.

A signature covers a file's exact bytes; FILE.sig holds 128 hexadecimal digits and a newline. Packs, checksums
and the list of releases are signed the same way, so one public key in the app is enough. The secret is never
printed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import nacl.exceptions
import nacl.signing

VARIABLE = "SHOAL_RELEASE_KEY"
_KEY = re.compile(r"[0-9a-f]{64}")


class ReleaseError(Exception):
    """The release cannot continue; one sentence says what is missing and what to do."""


def secret(file: Path | None = None) -> bytes:
    """Reads the secret key from a file, or from the environment variable without one. Raises ReleaseError."""
    try:
        text = file.read_text(encoding="ascii") if file else os.environ.get(VARIABLE, "")
    except (OSError, UnicodeDecodeError):
        text = ""
    if not _KEY.fullmatch(text.strip()):
        where = file or f"The variable {VARIABLE}"
        raise ReleaseError(f"{where} holds no secret key: make one with packaging/packs/make keys.")
    return bytes.fromhex(text.strip())


def public(secret: bytes) -> str:
    return bytes(nacl.signing.SigningKey(secret).verify_key).hex()


def listed(text: str) -> tuple[str, ...]:
    """Parses public keys, separated by spaces or commas. Raises ReleaseError."""
    found = tuple(text.replace(",", " ").split())
    if not found or not all(_KEY.fullmatch(key) for key in found):
        raise ReleaseError(
            "A public key has 64 hexadecimal digits, and one at least is needed: check what was given."
        )
    return found


def sign(path: Path, secret: bytes) -> Path:
    """Signs a file, writes FILE.sig and returns its path."""
    to = path.with_name(f"{path.name}.sig")
    to.write_bytes(nacl.signing.SigningKey(secret).sign(path.read_bytes()).signature.hex().encode() + b"\n")
    return to


def check(path: Path, keys: Sequence[str]) -> None:
    """Raises ReleaseError unless one of these keys signed the file."""
    try:
        signature = bytes.fromhex(path.with_name(f"{path.name}.sig").read_text(encoding="ascii").strip())
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{path} or its signature cannot be read ({error}).") from error
    for key in keys:
        try:
            nacl.signing.VerifyKey(bytes.fromhex(key)).verify(content, signature)
            return
        except (nacl.exceptions.BadSignatureError, nacl.exceptions.ValueError):
            continue
    raise ReleaseError(f"{path.name} is not signed by any of the keys that were named.")
