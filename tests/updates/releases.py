"""Releases made here: a signed notice, and whom to believe."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import nacl.signing

from app.install.updates.feed import Trust

KEY = nacl.signing.SigningKey(bytes(range(1, 33)))
PUBLIC = bytes(KEY.verify_key).hex()
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
LIST = "shoal-release.json"


def plain(**changed: Any) -> dict[str, Any]:
    """A notice as plain data."""
    return {
        "kind": "shoal-release-1",
        "serial": 5,
        "made": NOW - timedelta(days=1),
        "expires": NOW + timedelta(days=100),
        "version": "0.2.0",
        "date": "2026-11-20",
        "notes": {"en": ["Learns faster."], "de": ["Lernt schneller."]},
        "page": "https://example.org/shoal",
        **changed,
    }


def signed(content: dict[str, Any], key: nacl.signing.SigningKey = KEY) -> tuple[bytes, bytes]:
    raw = msgspec.json.encode(content)
    return raw, key.sign(raw).signature.hex().encode() + b"\n"


def release(**changed: Any) -> dict[str, bytes]:
    """What a host gives out."""
    raw, signature = signed(plain(**changed))
    return {LIST: raw, f"{LIST}.sig": signature}


def trust(*feeds: str) -> Trust:
    return Trust(keys=(PUBLIC,), feeds=feeds)
