"""The signed list: what is believed, what is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import nacl.signing
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.install import Checkout, InstallError
from app.install.updates import feed, installed
from app.install.updates.feed import Feed, Trust
from app.install.updates.installed import version_key
from tests.updates.releases import KEY, NOW, PUBLIC, plain, signed

OTHER = nacl.signing.SigningKey(bytes(32))


def refused(content: bytes, signature: bytes, now: Any = NOW) -> str:
    with pytest.raises(InstallError) as caught:
        feed.verify(content, signature, (PUBLIC,), now)
    said = str(caught.value)
    assert said.endswith(".") and "\n" not in said and ": " in said
    return said


def test_what_was_signed_is_believed_also_with_the_files_of_earlier_lists() -> None:
    made = Feed(serial=1, made=NOW, expires=NOW + timedelta(days=1), version="0.2.0", date=NOW.date())
    content, signature = feed.encode(made, bytes(KEY))
    assert feed.verify(content, signature, ("0" * 64, PUBLIC), NOW) == made
    earlier = plain(least="0.1.0", mirrors=[], files=[{"form": "deb", "file": "shoal.deb"}])
    assert feed.verify(*signed(earlier), (PUBLIC,), NOW).page == "https://example.org/shoal"


def test_every_changed_byte_is_noticed() -> None:
    content, signature = signed(plain())
    feed.verify(content, signature, (PUBLIC,), NOW)
    for at in range(0, len(content), 7):
        changed = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        assert "isn't signed" in refused(changed, signature)
    for wrong in (b"", b"0" * 128, signature[:64], b"<html>", signature[:-2] + b"g\n", b"\xff" * 128):
        assert "isn't signed" in refused(content, wrong)
    assert "isn't signed" in refused(*signed(plain(), OTHER))
    assert "isn't signed" in refused(
        *signed(
            plain(
                notes={"en": ["x" * 300] * 20, "de": ["y" * 300] * 20}
                | {"".join((a, b)): ["z" * 300] * 20 for a in "abc" for b in "abc"}
            )
        )
    )  # larger than a list may be, although it is signed


@given(st.binary(max_size=400), st.binary(max_size=200))
def test_whatever_comes_is_refused_with_a_sentence(content: bytes, signature: bytes) -> None:
    refused(content, signature)


def test_a_list_holds_for_a_time() -> None:
    made = signed(plain())
    assert "held until 2027-03-01 and wasn't renewed" in refused(*made, NOW + timedelta(days=101))
    assert "set the clock" in refused(*made, NOW - timedelta(days=30))
    feed.verify(*made, (PUBLIC,), NOW - timedelta(days=1, hours=20))
    assert "expires before" in refused(*signed(plain(expires=NOW - timedelta(days=2))))


@pytest.mark.parametrize(
    "change",
    [
        {"version": "latest"},
        {"version": "0.2.0; rm"},
        {"serial": 0},
        {"serial": 2**53},
        {"made": "2026-11-20T00:00:00"},
        {"notes": {"en": ["two\nlines"]}},
        {"notes": {"en": ["\x1b[2J"]}},
        {"notes": {"en-US": ["x"]}},
        {"page": "shoal://x"},
        {"kind": "shoal-pack-1"},
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    assert "can't be understood" in refused(*signed(plain(**change)))


def test_a_release_tool_cannot_sign_what_the_app_refuses() -> None:
    broken = Feed(serial=1, made=NOW, expires=NOW + timedelta(days=1), version="one", date=NOW.date())
    with pytest.raises(InstallError):
        feed.encode(broken, bytes(KEY))


def test_a_build_knows_whom_to_believe_and_a_checkout_nobody(tmp_path: Path) -> None:
    path = tmp_path / "release.json"
    with pytest.raises(Checkout, match="git pull"):
        feed.trust(path)
    path.write_bytes(Trust(keys=(PUBLIC,), feeds=("https://example.org/shoal-release.json",)).encode())
    assert feed.trust(path).feeds == ("https://example.org/shoal-release.json",)
    for wrong in (
        '{"keys": [], "feeds": ["https://x.org/"]}',
        '{"keys": ["ab"], "feeds": ["https://x.org/"]}',
        "{",
    ):
        path.write_text(wrong)
        with pytest.raises(InstallError, match="install Shoal again"):
            feed.trust(path)
    path.write_bytes(Trust(keys=(PUBLIC,), manifests={"cpu": "https://example.org/cpu.json"}).encode())
    with pytest.raises(Checkout):
        feed.trust(path)


def test_versions_are_ordered_by_number() -> None:
    names = ["0.1.0a1", "0.1.0b2", "0.1.0b10", "0.1.0rc1", "0.1.0", "0.1.1", "0.2", "0.10.0", "1.0"]
    assert sorted(sorted(names), key=version_key) == names
    assert version_key("0.2") == version_key("0.2.0") and version_key("nonsense") < version_key("0.0.1")
    assert version_key(installed.version()) > version_key("0.0.1")
