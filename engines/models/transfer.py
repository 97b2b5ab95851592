"""One file's bytes, from a hub to the disk, exactly.

huggingface_hub's own downloader (2.4.0) begins again after a kill and compares no digests, so its answers are
asked for and the bytes are counted here: a part file is continued at its end, and a file gets its name only
when its digest is right.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from engines.models.hub import Hub, HubError, Piece

READ = 2**20


class Damaged(HubError):
    """What came is not what the hub said it would be; nothing of it is kept."""


class Digest:
    """Of what is read, in the hub's two ways: plain SHA-256, or git's SHA-1 of a blob."""

    def __init__(self, piece: Piece) -> None:
        kind, _, self._wanted = piece.digest.partition(":")
        self._hash: Any = hashlib.sha256() if kind == "sha256" else hashlib.sha1(usedforsecurity=False)
        if kind == "git":
            self._hash.update(b"blob %d\0" % piece.size)
        self.bytes = 0

    def update(self, chunk: bytes) -> None:
        self._hash.update(chunk)
        self.bytes += len(chunk)

    @property
    def right(self) -> bool:
        return bool(self._hash.hexdigest() == self._wanted)


def part_of(folder: Path, piece: Piece) -> Path:
    """The file that a piece grows in. A piece of another digest has another."""
    return folder / f"{piece.name}.{piece.digest.partition(':')[2][:12]}.part"


def fetch(
    hub: Hub, id: str, commit: str, piece: Piece, folder: Path, patience_s: float, tell: Callable[[int], None]
) -> Path:
    """Brings one file into `folder` and returns it, whole and checked. `tell` hears how many of its bytes are
    here. What is already there is kept and continued, also when this is interrupted.

    Raises HubError (the part stays), Damaged (it does not), OSError where the disk refuses."""
    part = part_of(folder, piece)
    for old in folder.glob(f"{piece.name}.*.part"):
        if old != part:
            old.unlink()  # the hub has another file of that name now
    with part.open("ab+", buffering=0) as file:
        digest = _read_again(file, piece)
        tell(digest.bytes)
        while digest.bytes < piece.size or not piece.size:
            digest = _continue(hub, id, commit, piece, file, digest, patience_s, tell)
            if not piece.size:
                break
        file.flush()
        os.fsync(file.fileno())
    if not digest.right:
        part.unlink()
        raise Damaged(f"{piece.name} of {id} arrived damaged: try again, or another mirror.", again=True)
    whole = folder / piece.name
    part.replace(whole)
    return whole


def _read_again(file: Any, piece: Piece) -> Digest:
    """The digest of what an earlier attempt left. Too much of it means that it is worth nothing."""
    digest = Digest(piece)
    file.seek(0)
    while chunk := file.read(READ):
        digest.update(chunk)
    if digest.bytes > piece.size:
        file.truncate(0)
        return Digest(piece)
    return digest


def _continue(
    hub: Hub,
    id: str,
    commit: str,
    piece: Piece,
    file: Any,
    digest: Digest,
    patience_s: float,
    tell: Callable[[int], None],
) -> Digest:
    """One request. Returns the digest of all that is there afterwards; raises HubError when it ended early."""
    with hub.read(id, commit, piece, digest.bytes, patience_s) as response:
        if digest.bytes and not _begins_at(response, digest.bytes):
            file.truncate(0)  # a mirror that knows no ranges gives everything again
            digest = Digest(piece)
        for chunk in response.iter_bytes():
            if digest.bytes + len(chunk) > piece.size:
                file.truncate(0)
                raise Damaged(f"{hub.host} sends more than {piece.name} of {id} has: try another mirror.")
            file.write(chunk)
            digest.update(chunk)
            tell(digest.bytes)
    if digest.bytes < piece.size:
        raise HubError(f"The connection to {hub.host} ended early: it goes on when you try again.", again=True)
    return digest


def _begins_at(response: httpx2.Response, start: int) -> bool:
    found = re.match(r"bytes (\d+)-", response.headers.get("content-range", ""))
    return response.status_code == 206 and found is not None and int(found[1]) == start
