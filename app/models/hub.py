"""Requests to a model hub or a mirror of it. They send "shoal" and the access token, and nothing else about the
user."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec

from app.common import fetch
from app.common.connection import Fault
from app.common.rate import RetryLimit
from engines.contract import EngineError
from engines.remedy import command

HUB_URL = "https://huggingface.co"
MAX_DESCRIPTION_BYTES = 16 * 2**20
"""Maximum bytes of a model's description."""
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".msgpack", ".h5")
_WEIGHTS = re.compile(r"(?!adapter|optimizer|consolidated)[\w.-]+\.safetensors")
_SMALL = frozenset(
    f"{name}.json"
    for name in ("config", "generation_config", "tokenizer", "tokenizer_config", "special_tokens_map", "shoal")
) | {"added_tokens.json", "chat_template.jinja", "chat_template.json"}
_OLDER = frozenset(["vocab.json", "merges.txt", "tokenizer.model"])
_LEGAL = re.compile(r"(LICEN[CS]E|NOTICE)(\.txt|\.md)?", re.IGNORECASE)


class HubError(EngineError):
    """The hub refused a request or could not be reached."""


class HubFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file on the hub. `digest` is "sha256:..." for large files, "git:..." (the SHA-1 of the git blob) for
    small ones."""

    file: str
    size: int
    digest: str


class DownloadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All files of a model at one commit, smallest first, so that problems show up before the large
    downloads."""

    id: str
    commit: str
    pieces: tuple[HubFile, ...]

    @property
    def total(self) -> int:
        return sum(piece.size for piece in self.pieces)


class _Large(msgspec.Struct):
    sha256: str
    size: int


class _Sibling(msgspec.Struct, rename={"blob_id": "blobId"}):
    rfilename: str
    size: int = -1
    blob_id: str = ""
    lfs: _Large | None = None

    @property
    def piece(self) -> HubFile:
        if self.lfs is not None:
            return HubFile(file=self.rfilename, size=self.lfs.size, digest=f"sha256:{self.lfs.sha256}")
        return HubFile(file=self.rfilename, size=self.size, digest=f"git:{self.blob_id}")


class _Description(msgspec.Struct):
    sha: str
    siblings: list[_Sibling] = []


def description_url(endpoint: str, id: str, revision: str) -> str:
    return f"{endpoint}/api/models/{id}/revision/{quote(revision, safe='')}?blobs=true"


def file_url(endpoint: str, id: str, commit: str, file: str) -> str:
    """Returns the URL of `file` in model repository `id` at `commit`."""
    return f"{endpoint}/{id}/resolve/{commit}/{quote(file)}"


def parse_description(host: str, id: str, description: bytes) -> DownloadPlan:
    """Decodes a model's description into the files to download. Raises HubError."""
    try:
        found = msgspec.json.decode(description, type=_Description)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise HubError(
            f"What {host} says about {id} can't be understood: check the mirror, or try later."
        ) from error
    if not re.fullmatch(r"[0-9a-f]{40}", found.sha):
        raise HubError(f"{host} doesn't say which version of {id} it has: check the mirror.")
    names = [one.rfilename for one in found.siblings]
    wanted = needed_files(names)
    pieces = [one.piece for one in found.siblings if one.rfilename in wanted]
    check_plan(id, names, pieces)
    return DownloadPlan(id=id, commit=found.sha, pieces=tuple(sorted(pieces, key=lambda piece: piece.size)))


def needed_files(names: list[str]) -> set[str]:
    """Returns which files of a repository to download: those that an engine reads, and licences; all in its top
    folder.

    >>> sorted(needed_files(["config.json", "model.safetensors", "pytorch_model.bin", "README.md"]))
    ['config.json', 'model.safetensors']
    """
    older = set() if "tokenizer.json" in names else _OLDER
    index = "model.safetensors.index.json"
    weights = {name for name in names if _WEIGHTS.fullmatch(name)}
    if named := {name for name in weights if name.startswith("model")}:
        weights = {"model.safetensors"} & named or named
    wanted = weights | _SMALL | older | ({index} if "model.safetensors" not in weights else set())
    return {name for name in names if name in wanted or _LEGAL.fullmatch(name)}


def check_plan(id: str, names: list[str], pieces: list[HubFile]) -> None:
    """Raises HubError for a model that cannot be used here, before any of its files is downloaded."""
    chosen = {piece.file for piece in pieces}
    if not any(name.endswith(".safetensors") for name in chosen):
        if any(name.endswith(PICKLE_SUFFIXES) for name in names):
            raise HubError(
                f"{id} has its weights only as pickle files, which can run code and are never downloaded: "
                "take a version of the model with .safetensors files."
            )
        if any(name.endswith(".gguf") for name in names):
            raise HubError(
                f"{id} has only GGUF files: download one and give Shoal that file, or take the model it was "
                "made of."
            )
        raise HubError(f"{id} has no .safetensors weights: choose another model.")
    if "config.json" not in chosen:
        raise HubError(f"{id} has no config.json: choose another model.")
    for piece in pieces:
        digest = piece.digest.partition(":")[2]
        if piece.size < 0 or not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", digest):
            raise HubError(f"The hub gives no size or digest of {piece.file} of {id}: check the mirror.")


def checked_endpoint(endpoint: str) -> str:
    """Returns the URL of a mirror, or the hub's own if `endpoint` is empty. Raises HubError for an invalid
    URL."""
    text = (endpoint or HUB_URL).strip().rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise HubError(f"{text} is no address of a hub: give one such as {HUB_URL}.")
    return text


def refusal_sentence(host: str, id: str, status: int, code: str, signed_in: bool) -> str:
    """Returns a sentence for an HTTP status of the hub; "" if the general one is good enough. `code` is the
    hub's own error word."""
    gated, page = code == "GatedRepo", f"huggingface.co/{id}"
    if status == 401 and signed_in:
        return f"{host} doesn't know the access token: make a new one and save it again."
    if gated and signed_in:
        return f"Your account hasn't been given {id} yet: accept its licence at {page} and try again."
    if gated or status == 401:
        return (
            f"{host} gives {id} only to those who sign in, or has no such model: check the name, accept the "
            f"licence at {page}, and save an access token ({command('models token')}, or HF_TOKEN)."
        )
    if status == 403:
        return f"{host} refuses {id}: your access token hasn't the right to read it; make one that has."
    if status == 404:
        return f"{host} has no model {id} in that version: check its name."
    return ""


class Hub:
    """Client of a model hub. `token` is sent only to this hub, and only over https or to loopback. Raises
    HubError."""

    def __init__(self, endpoint: str = "", token: str | None = None) -> None:
        self.endpoint = checked_endpoint(endpoint)
        parts = urlsplit(self.endpoint)
        self.host = parts.hostname or self.endpoint
        safe = parts.scheme == "https" or parts.hostname in ("127.0.0.1", "localhost", "::1")
        self.headers = {"Authorization": f"Bearer {token}"} if token and safe else {}
        if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
            raise HubError("HF_HUB_OFFLINE is set, which forbids every download: unset it and try again.")

    def plan(self, id: str, revision: str, patience: RetryLimit, waiting: fetch.Waiting) -> DownloadPlan:
        """Returns the files to download. Raises HubError."""
        with self._sentences(id):
            asked = description_url(self.endpoint, id, revision)
            (description,) = fetch.download_contents(
                [(asked, MAX_DESCRIPTION_BYTES)], patience, waiting, self.headers
            )
        return parse_description(self.host, id, description)

    def download(
        self,
        plan: DownloadPlan,
        to: Path,
        heard: fetch.Heard,
        waiting: fetch.Waiting,
        patience: RetryLimit,
        came: Callable[[fetch.Piece], object],
    ) -> None:
        """Downloads all files of a plan (see app.common.fetch). Raises HubError, and OSError."""
        orders = [fetch.PieceOrder(piece, [self._address(plan, piece)]) for piece in plan.pieces]
        with self._sentences(plan.id):
            fetch.download(orders, to, heard, waiting, patience, self.headers, came)

    def _address(self, plan: DownloadPlan, piece: HubFile) -> str:
        return file_url(self.endpoint, plan.id, plan.commit, piece.file)

    @contextmanager
    def _sentences(self, id: str) -> Iterator[None]:
        """Converts download errors in the block into HubError."""
        try:
            yield
        except Fault as caught:
            said = refusal_sentence(self.host, id, caught.status, caught.code, bool(self.headers))
            raise HubError(said or str(caught)) from caught
