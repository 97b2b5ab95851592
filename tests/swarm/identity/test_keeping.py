"""Keyrings that work, lie, lock, block and are missing; files; and what is left on the disk."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import keyring.backend
import keyring.errors
import pytest
from keyring.backends.chainer import ChainerBackend

from app.node.data.contents import kind_of_entry
from app.swarm.identity import storage as keeping
from app.swarm.identity.identity import Identity, IdentityError, encode_key
from app.swarm.identity.keyrings import KeyringLocked, KeyringWaiting, real_backend
from app.swarm.identity.storage import (
    KeyStore,
    PublicIdentity,
    StoredIdentity,
    keep,
    open_identity,
    public_identity,
    unseal,
)


class Ring(keyring.backend.KeyringBackend):
    """A keyring in memory."""

    priority = 1.0  # type: ignore[assignment]

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise keyring.errors.PasswordDeleteError("not found")


class Locked(Ring):
    def get_password(self, service: str, username: str) -> str | None:
        raise keyring.errors.KeyringLocked("locked")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise OSError("the bus is gone")


class Forgetful(Ring):
    def set_password(self, service: str, username: str, password: str) -> None:
        pass


def opened(folder: Path, ring: Ring | None) -> StoredIdentity:
    return asyncio.run(open_identity(folder, find=lambda: ring))


def refused(folder: Path, ring: Ring | None = None) -> IdentityError:
    """Why the folder's key can't be opened."""
    with pytest.raises(IdentityError) as caught:
        opened(folder, ring)
    return caught.value


def left(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_key_is_made_silently_and_found_again(tmp_path: Path) -> None:
    ring = Ring()
    first = opened(tmp_path, ring)
    again = opened(tmp_path, ring)
    assert first.where == again.where == KeyStore.KEYRING
    assert again.identity.seed() == first.identity.seed()
    assert first.note == again.note == ""
    assert first.identity.seed().hex().encode() not in left(tmp_path)


@pytest.mark.parametrize("ring", [None, Locked(), Forgetful()])
def test_without_a_keyring_that_keeps_a_key_it_is_in_a_file_for_its_owner_alone(
    tmp_path: Path, ring: Ring | None
) -> None:
    first, again = opened(tmp_path, ring), opened(tmp_path, ring)
    assert first.where == again.where == KeyStore.PLAIN
    assert first.identity == again.identity, "the owner is the same person at every start"
    (file,) = tmp_path.glob("key-*.secret")
    assert str(file) in first.note and again.note == "", "it is said once"
    assert public_identity(tmp_path) == PublicIdentity(
        name=first.identity.name, public_key=first.identity.key.hex(), kept="plain", file=str(file)
    )
    if os.name == "posix":
        assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.skipif(os.name != "posix", reason="rights as POSIX has them")
def test_a_key_is_nobody_elses_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before it has its name, also under an umask that lets everybody read."""
    seen: list[int] = []
    real = os.fsync

    def looking(descriptor: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", looking)
    before = os.umask(0)
    try:
        opened(tmp_path, None)
    finally:
        os.umask(before)
    assert seen == [0o600, 0o600], "the key and the record, each forced to the disk"


@pytest.mark.skipif(os.name != "posix", reason="rights as POSIX has them")
def test_a_file_that_others_can_read_is_closed_to_them_and_that_is_told_once(tmp_path: Path) -> None:
    mine = opened(tmp_path, None).identity
    (file,) = tmp_path.glob("*.secret")
    file.chmod(0o644)
    found = opened(tmp_path, None)
    assert found.identity == mine and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "could read your key" in found.note and "identity new" in found.note
    assert opened(tmp_path, None).note == ""


@pytest.mark.skipif(os.name != "posix", reason="rights as POSIX has them")
def test_a_disk_without_rights_is_told_at_every_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = opened(tmp_path, None).identity
    (file,) = tmp_path.glob("*.secret")
    file.chmod(0o644)
    monkeypatch.setattr(Path, "chmod", lambda *_: None)  # as FAT does
    for _ in range(2):
        found = opened(tmp_path, None)
        assert found.identity == mine and str(file) in found.note


OTHERS = Identity(bytes(range(32)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b'{"v":1',
        b'{"v":1,"public_key":"","seed":"00"}',
        b'{"v":1,"public_key":"%s","seed":"%s"}' % (b"00" * 32, b"11" * 32),
        b'{"v":1,"public_key":"","seed":"' + b"9" * 10**6 + b'"}',
    ],
    ids=["empty", "no text", "cut", "short", "another key", "huge"],
)
def test_a_damaged_file_is_kept_aside_and_the_words_are_named(tmp_path: Path, content: bytes) -> None:
    mine = opened(tmp_path, None).identity
    (file,) = tmp_path.glob("*.secret")
    file.write_bytes(content)
    why = str(refused(tmp_path))
    (aside,) = tmp_path.glob("damaged-*")
    assert aside.read_bytes() == content and kind_of_entry(aside.name) is not None
    assert mine.name in why and aside.name in why and "identity restore" in why
    assert f"{file} isn't there" in str(refused(tmp_path))
    asyncio.run(keep(Identity.from_words(mine.words()), tmp_path, find=lambda: None))
    assert opened(tmp_path, None).identity == mine


def test_another_ones_file_under_this_name_is_not_taken_for_the_key(tmp_path: Path) -> None:
    mine = opened(tmp_path, None).identity
    (file,) = tmp_path.glob("*.secret")
    file.write_bytes(encode_key(OTHERS))
    why = str(refused(tmp_path))
    assert OTHERS.name in why and mine.name in why
    assert file.read_bytes() == encode_key(OTHERS)


def test_a_folder_in_place_of_the_file_is_told_in_a_sentence(tmp_path: Path) -> None:
    opened(tmp_path, None)
    (file,) = tmp_path.glob("*.secret")
    file.unlink()
    file.mkdir()
    why = str(refused(tmp_path))
    assert str(file) in why and "\n" not in why


def test_a_full_disk_is_an_error_and_leaves_no_half_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        opened(tmp_path, None)
    assert list(tmp_path.iterdir()) == []


def test_a_replaced_key_is_deleted_where_it_was(tmp_path: Path) -> None:
    ring, second, third = Ring(), Identity.new(), Identity.new()
    opened(tmp_path, ring)
    asyncio.run(keep(second, tmp_path, find=lambda: ring))
    assert list(ring.kept.values()) == [second.seed().hex()]
    asyncio.run(keep(third, tmp_path, find=Locked))
    assert opened(tmp_path, None).identity == third, "it is in a file"
    asyncio.run(keep(second, tmp_path, find=lambda: ring))
    assert not list(tmp_path.glob("*.secret")) and list(ring.kept.values()) == [second.seed().hex()]
    assert keeping.delete_keyring_entry(tmp_path, find=lambda: ring) == "" and ring.kept == {}


def test_a_record_of_an_earlier_version_opens(tmp_path: Path) -> None:
    ring = Ring()
    mine = opened(tmp_path, ring).identity
    record = {"where": "keyring", "public_key": mine.key.hex(), "name": mine.name, "former": ["ab" * 32]}
    (tmp_path / keeping.RECORD).write_text(json.dumps(record))
    assert opened(tmp_path, ring).identity == mine


def test_while_a_keyring_with_the_key_can_not_be_read_there_is_no_other_name(tmp_path: Path) -> None:
    ring = Ring()
    mine = opened(tmp_path, ring).identity
    for out_of_order in (Locked(), None, Ring()):  # locked, gone, another desktop's
        why = refused(tmp_path, out_of_order)
        assert isinstance(why, KeyringLocked) and not isinstance(why, KeyringWaiting)
        assert opened(tmp_path, ring).identity == mine, "in turn"
    assert public_identity(tmp_path).name == mine.name and keeping.keyring_key_name(tmp_path) == mine.name


@pytest.mark.parametrize("content", ["", "nonsense", "00" * 32])
def test_a_damaged_entry_is_not_taken_for_the_key(tmp_path: Path, content: str) -> None:
    ring = Ring()
    opened(tmp_path, ring)
    ring.kept = dict.fromkeys(ring.kept, content)
    assert "damaged" in str(refused(tmp_path, ring))
    assert set(ring.kept.values()) == {content}


def test_a_dialog_that_nobody_answers_stalls_nothing(tmp_path: Path) -> None:
    """The keyring blocks until the loop has turned, and would block for ever without it."""
    turned = threading.Event()

    class Dialog(Ring):
        def set_password(self, service: str, username: str, password: str) -> None:
            assert turned.wait(60)
            super().set_password(service, username, password)

    ring = Dialog()

    async def run() -> StoredIdentity:
        opening = asyncio.create_task(open_identity(tmp_path, find=lambda: ring))
        for _ in range(3):
            await asyncio.sleep(0)
        turned.set()
        return await opening

    assert asyncio.run(run()).where == KeyStore.KEYRING


def test_patience_ends(tmp_path: Path) -> None:
    release = threading.Event()

    class Silent(Ring):
        def set_password(self, service: str, username: str, password: str) -> None:
            release.wait()

    found = asyncio.run(open_identity(tmp_path, find=Silent, patience_s=0.01))
    release.set()
    assert found.where == KeyStore.PLAIN and "didn't answer" in found.note


def test_a_prompt_for_a_key_that_exists_is_no_reason_for_another_one(tmp_path: Path) -> None:
    ring, release = Ring(), threading.Event()
    mine = opened(tmp_path, ring).identity

    class Silent(Ring):
        def get_password(self, service: str, username: str) -> str | None:
            release.wait()
            return None

    with pytest.raises(KeyringWaiting):
        asyncio.run(open_identity(tmp_path, find=Silent, patience_s=0.01))
    release.set()
    assert opened(tmp_path, ring).identity == mine


def test_a_process_ends_though_the_keyring_still_waits(tmp_path: Path) -> None:
    code = (
        "import asyncio, threading\n"
        "from pathlib import Path\n"
        "from app.swarm.identity.storage import open_identity\n"
        f"opening = open_identity(Path({str(tmp_path)!r}), find=threading.Event().wait, patience_s=0.01)\n"
        "kept = asyncio.run(opening)\n"
        "print(kept.where.value)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "plain" and done.stderr == ""


def named(module: str) -> Ring:
    return type("Keyring", (Ring,), {"__module__": module})()


def test_only_backends_that_encrypt_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    good = [
        named(f"keyring.backends.{one}")
        for one in ("macOS", "Windows", "SecretService", "kwallet", "libsecret")
    ]
    for ring in good:
        assert real_backend(ring) is ring
    bad = [
        named(one) for one in ("keyrings.alt.file", "keyring.backends.null", "keyring.backends.fail", "mine")
    ]
    for ring in bad:
        assert real_backend(ring) is None
    chain = ChainerBackend()
    monkeypatch.setattr(ChainerBackend, "backends", [bad[0], good[2], good[3]])
    assert real_backend(chain) is good[2]
    monkeypatch.setattr(ChainerBackend, "backends", bad)
    assert real_backend(chain) is None


PHRASE, NAME = "a home of format two", "clean-buck-5878"


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """A folder whose key an earlier version sealed with PHRASE."""
    with zipfile.ZipFile(Path(__file__).parents[2] / "data" / "home-format-2.zip") as archive:
        archive.extractall(tmp_path, [one for one in archive.namelist() if "/" not in one])
    return tmp_path


def test_a_sealed_key_opens_once_with_its_passphrase_and_is_never_replaced(sealed: Path) -> None:
    before = left(sealed)
    why = refused(sealed, Ring())
    assert NAME in str(why) and "identity restore" in str(why)
    with pytest.raises(IdentityError, match="doesn't open"):
        unseal(sealed, "wrong horse!")
    assert left(sealed) == before and public_identity(sealed).name == NAME
    mine = unseal(sealed, PHRASE)
    ring = Ring()
    asyncio.run(keep(mine, sealed, find=lambda: ring))
    assert mine.name == NAME and not list(sealed.glob("key-*")) and opened(sealed, ring).identity == mine


def test_a_sealed_file_that_is_gone_names_the_words(sealed: Path) -> None:
    (file,) = sealed.glob("*.sealed")
    file.unlink()
    with pytest.raises(IdentityError, match="recovery words"):
        unseal(sealed, PHRASE)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"v":1,"where":"cloud"}'])
def test_a_damaged_record_is_an_error_and_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    (tmp_path / keeping.RECORD).write_bytes(content)
    with pytest.raises(IdentityError, match="identity restore"):
        opened(tmp_path, Ring())
    assert left(tmp_path) == content
    mine = Identity.new()
    asyncio.run(keep(mine, tmp_path, find=lambda: None))
    (aside,) = tmp_path.glob("damaged-identity.json-*")
    assert aside.read_bytes() == content and opened(tmp_path, None).identity == mine
