"""Releases made here: a signed list, its files, and whom to believe."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import nacl.signing

from app.install.signed import this_platform
from app.install.updates.feed import Trust

KEY = nacl.signing.SigningKey(bytes(range(1, 33)))
PUBLIC = bytes(KEY.verify_key).hex()
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
LIST = "shoal-release.json"
FILES = {
    "deb": "shoal_0.2.0_amd64.deb",
    "elf": "shoal-0.2.0",
    "nsis": "Shoal-0.2.0.exe",
    "dmg": "Shoal-0.2.0.dmg",
}
BODY = hashlib.shake_128(b"a new version").digest(300_000)


def plain(body: bytes = BODY, **changed: Any) -> dict[str, Any]:
    """A list as plain data: every kind of file, for this computer."""
    system, machine = this_platform()
    row = {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    return {
        "kind": "shoal-release-1",
        "serial": 5,
        "made": NOW - timedelta(days=1),
        "expires": NOW + timedelta(days=100),
        "version": "0.2.0",
        "date": "2026-11-20",
        "least": "0.1.0",
        "notes": {"en": ["Learns faster."], "de": ["Lernt schneller."]},
        "page": "https://example.org/shoal",
        "files": [
            {"system": system, "machine": machine, "form": form, "file": name, "url": name, **row}
            for form, name in FILES.items()
        ],
        **changed,
    }


def signed(content: dict[str, Any], key: nacl.signing.SigningKey = KEY) -> tuple[bytes, bytes]:
    raw = msgspec.json.encode(content)
    return raw, key.sign(raw).signature.hex().encode() + b"\n"


def release(body: bytes = BODY, **changed: Any) -> dict[str, bytes]:
    """What a host gives out."""
    raw, signature = signed(plain(body, **changed))
    return {LIST: raw, f"{LIST}.sig": signature, **dict.fromkeys(FILES.values(), body)}


def trust(*feeds: str) -> Trust:
    return Trust(keys=(PUBLIC,), feeds=feeds)
