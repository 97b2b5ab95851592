"""Asking a hub what a model consists of. Only the process that downloads imports this: it opens sockets.

Metadata and requests go through huggingface_hub, told to send nothing but the question: no torch version, no
name of the program around it (its "agent"), no token found by itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import msgspec

from engines.contract import EngineError
from engines.remedy import command

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")

import httpx2
from huggingface_hub import HfApi, constants, hf_hub_url
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

QUESTION_S = 20.0
"""So long an answer to a question may take."""
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".msgpack", ".h5")
_WEIGHTS = re.compile(r"(?!adapter|optimizer|consolidated)[\w.-]+\.safetensors")
_SMALL = frozenset(
    f"{name}.json"
    for name in ("config", "generation_config", "tokenizer", "tokenizer_config", "special_tokens_map", "shoal")
) | {"added_tokens.json", "chat_template.jinja", "chat_template.json"}
_OLDER = frozenset(["vocab.json", "merges.txt", "tokenizer.model"])
_LEGAL = re.compile(r"(LICEN[CS]E|NOTICE)(\.txt|\.md)?", re.IGNORECASE)
_RETRY = (408, 425, 429, 500, 502, 503, 504)


class HubError(EngineError):
    """What a hub refused, or why it was not reached. `again` where trying again by itself can help, after
    `wait_s` seconds where the hub said so."""

    def __init__(self, sentence: str, again: bool = False, wait_s: float | None = None) -> None:
        super().__init__(sentence)
        self.again, self.wait_s = again, wait_s


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One file: `digest` is "sha256:..." of a large one, "git:..." (its blob's SHA-1) of a small one."""

    name: str
    size: int
    digest: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All files of a model at one commit, small ones first: what is wrong with a model shows there."""

    id: str
    commit: str
    pieces: tuple[Piece, ...]

    @property
    def total(self) -> int:
        return sum(piece.size for piece in self.pieces)


class Hub:
    """One hub or mirror of it. `token` goes there alone, and never over a line that others can read."""

    def __init__(self, endpoint: str = "", token: str | None = None) -> None:
        self.endpoint = checked_endpoint(endpoint)
        parts = urlsplit(self.endpoint)
        self.host = parts.hostname or self.endpoint
        safe = parts.scheme == "https" or parts.hostname in ("127.0.0.1", "localhost", "::1")
        self._token: str | bool = token if token and safe else False

    def plan(self, id: str, revision: str) -> Plan:
        """The files to fetch. Raises HubError."""
        api = HfApi(endpoint=self.endpoint, token=self._token, library_name="shoal", library_version="1")
        with sentences(self.host, id, bool(self._token)):
            try:
                info = api.model_info(id, revision=revision, files_metadata=True, timeout=QUESTION_S)
                siblings = list(info.siblings or [])
                found = [
                    Piece(
                        name=one.rfilename,
                        size=int(one.lfs.size if one.lfs else one.size),
                        digest=f"sha256:{one.lfs.sha256}" if one.lfs else f"git:{one.blob_id}",
                    )
                    for one in needed([one.rfilename for one in siblings], siblings)
                ]
                commit = str(info.sha)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise HubError(
                    f"What {self.host} says about {id} cannot be understood: check the mirror, or try later."
                ) from error
        if not re.fullmatch(r"[0-9a-f]{40}", commit):
            raise HubError(f"{self.host} does not say which version of {id} it has: check the mirror.")
        check(id, [one.rfilename for one in siblings], found)
        return Plan(id=id, commit=commit, pieces=tuple(sorted(found, key=lambda piece: piece.size)))

    @contextmanager
    def read(
        self, id: str, commit: str, piece: Piece, start: int, patience_s: float
    ) -> Iterator[httpx2.Response]:
        """A file's bytes from `start` on, where the hub can do that. Raises HubError and httpx2's errors."""
        url = hf_hub_url(id, piece.name, revision=commit, endpoint=self.endpoint)
        headers = build_hf_headers(token=self._token, library_name="shoal", library_version="1")
        headers["accept-encoding"] = "identity"
        if start:
            headers["range"] = f"bytes={start}-"
        with (
            sentences(self.host, id, bool(self._token)),
            get_session().stream("GET", url, headers=headers, timeout=patience_s) as response,
        ):
            hf_raise_for_status(response)
            yield response


def needed(names: list[str], siblings: list) -> list:  # type: ignore[type-arg]
    """Of a repository's files those that an engine reads, from its top folder alone."""
    older = set() if "tokenizer.json" in names else _OLDER
    index = "model.safetensors.index.json"
    weights = {name for name in names if _WEIGHTS.fullmatch(name)}
    if named := {name for name in weights if name.startswith("model")}:
        weights = {"model.safetensors"} & named or named
    wanted = weights | _SMALL | older | ({index} if "model.safetensors" not in weights else set())
    return [one for one in siblings if one.rfilename in wanted or _LEGAL.fullmatch(one.rfilename)]


def check(id: str, names: list[str], pieces: list[Piece]) -> None:
    """Raises HubError for what cannot be used here, before a byte of it is fetched."""
    chosen = {piece.name for piece in pieces}
    if not any(name.endswith(".safetensors") for name in chosen):
        if any(name.endswith(PICKLES) for name in names):
            raise HubError(
                f"{id} has its weights only as pickle files, which can run code and are never fetched: take a "
                "version of the model with .safetensors files."
            )
        if any(name.endswith(".gguf") for name in names):
            raise HubError(
                f"{id} has only GGUF files, which cannot be trained: take the model they were made of."
            )
        raise HubError(f"{id} has no .safetensors weights: choose another model.")
    if "config.json" not in chosen:
        raise HubError(f"{id} has no config.json: choose another model.")
    for piece in pieces:
        digest = piece.digest.partition(":")[2]
        if piece.size < 0 or not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", digest):
            raise HubError(f"The hub gives no size or digest of {piece.name} of {id}: check the mirror.")


def checked_endpoint(endpoint: str) -> str:
    """The address of a mirror, HF_ENDPOINT, or the hub itself. Raises HubError for what is no address."""
    text = (endpoint or constants.ENDPOINT).strip().rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise HubError(f"{text} is no address of a hub: give one such as https://huggingface.co.")
    return text


@contextmanager
def sentences(host: str, id: str, signed_in: bool) -> Iterator[None]:
    """Turns what huggingface_hub and httpx2 raise into one sentence with a remedy."""
    try:
        yield
    except OfflineModeIsEnabled as error:
        raise HubError(
            "HF_HUB_OFFLINE is set, which forbids every download: unset it and try again."
        ) from error
    except HfHubHTTPError as error:
        raise refusal(host, id, signed_in, error) from error
    except httpx2.ProxyError as error:
        raise HubError(
            "The proxy of your network refused the connection: check HTTPS_PROXY and try again.", again=True
        ) from error
    except httpx2.TimeoutException as error:
        raise HubError(
            f"{host} did not answer in time: check the network and try again.", again=True
        ) from error
    except httpx2.TransportError as error:
        if "CERTIFICATE" in str(error).upper():
            raise HubError(
                f"The certificate of {host} is not accepted: check this computer's clock, and your proxy."
            ) from error
        raise HubError(
            f"{host} cannot be reached: check the network, or set a mirror, and try again.", again=True
        ) from error
    except (httpx2.InvalidURL, httpx2.TooManyRedirects, httpx2.DecodingError) as error:
        raise HubError(f"{host} gave an answer that leads nowhere: check the mirror.") from error


def refusal(host: str, id: str, signed_in: bool, error: HfHubHTTPError) -> HubError:
    """What a status code means here."""
    status = error.response.status_code
    gated = isinstance(error, GatedRepoError)
    page = f"huggingface.co/{id}"
    if status == 401 and signed_in:
        return HubError(f"{host} does not know the access token: make a new one and save it again.")
    if gated and signed_in:
        return HubError(
            f"Your account has not been given {id} yet: accept its licence at {page} and try again."
        )
    if gated or status == 401:
        return HubError(
            f"{host} gives {id} only to those who sign in, or has no such model: check the name, accept the "
            f"licence at {page}, and save an access token ({command('models token')}, or HF_TOKEN)."
        )
    if status == 403:
        return HubError(
            f"{host} refuses {id}: your access token has not the right to read it; make one that has."
        )
    if status == 404:
        return HubError(f"{host} has no model {id} in that version: check its name.")
    if status in _RETRY:
        wait = error.response.headers.get("retry-after", "")
        why = "asks for a pause" if status == 429 else f"has trouble of its own (status {status})"
        seconds = float(wait) if re.fullmatch(r"[0-9]{1,4}", wait) else None
        return HubError(f"{host} {why}: try again in some minutes.", again=True, wait_s=seconds)
    return HubError(f"{host} refused the request (status {status}): try again later, or set a mirror.")
