"""Asks pip or uv what they would install: each file with its URL and digest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

_MIN = re.compile(r"(?:manylinux|macosx)_(\d+)_(\d+)_")
_OLDER = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
UV_PLATFORMS = {
    "linux-x86_64": "x86_64-manylinux_2_34",
    "linux-aarch64": "aarch64-manylinux_2_34",
    "windows-x86_64": "x86_64-pc-windows-msvc",
    "macos-aarch64": "aarch64-apple-darwin",
}
OLDEST_MACOS = "14.0"
"""Oldest macOS that PyTorch's wheel runs on."""


class ReleaseError(Exception):
    """The release cannot continue; one sentence says what is missing and what to do."""


class ResolvedFile(NamedTuple):
    """A file that pip or uv would install."""

    name: str
    version: str
    url: str
    sha256: str

    @property
    def file(self) -> str:
        return unquote(urlsplit(self.url).path).rpartition("/")[2]


def locked(uv: str, system: str, python: str, requirements: Path, options: Sequence[str]) -> list[ResolvedFile]:
    """Returns what uv would install on another system, wheels only. Raises ReleaseError."""
    fixed = ["--quiet", "--no-progress", "--format", "pylock.toml", "--only-binary", ":all:", "--no-header"]
    platform = ["--python-platform", UV_PLATFORMS[system], "--python-version", python]
    # Torch's wheel for Macs is refused by uv unless it may be as new as that asks for.
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": OLDEST_MACOS}
    said = output([uv, "pip", "compile", *fixed, *platform, *options, str(requirements)], environment)
    rows = []
    for one in tomllib.loads(said).get("packages", []):
        wheels = one.get("wheels", [])
        if not wheels:
            raise ReleaseError(
                f"There is no wheel of {one['name']} for Python {python} on {system}: build one with "
                "packaging/packs/wheel, or leave it out with --without."
            )
        best = min(wheels, key=lambda wheel: _reach(wheel.get("url") or wheel["path"]))
        url = best.get("url") or Path(requirements.parent, best["path"]).resolve().as_uri()
        digest = best.get("hashes", {}).get("sha256", "")
        if not digest and not url.startswith("file:"):
            raise ReleaseError(f"The index names no SHA-256 for {one['name']}: take one that does.")
        rows.append(ResolvedFile(one["name"], one["version"], url, digest or _digest(url)))
    return rows


def resolve(python: str, requirements: Path, options: Sequence[str]) -> list[ResolvedFile]:
    """Returns what this Python's pip would install for a requirement file, wheels only. Raises ReleaseError."""
    fixed = [
        "--dry-run",
        "--ignore-installed",
        "--quiet",
        "--no-input",
        "--only-binary",
        ":all:",
        "--report",
        "-",
    ]
    report = json.loads(output([python, "-m", "pip", "install", *fixed, *options, "-r", str(requirements)]))
    rows = []
    for one in report["install"]:
        info: dict[str, Any] = one["download_info"]
        digest = info.get("archive_info", {}).get("hashes", {}).get("sha256", "")
        name = one["metadata"]["name"]
        if not digest and not info["url"].startswith("file:"):
            raise ReleaseError(f"The index names no SHA-256 for {name}: take one that does.")
        found = ResolvedFile(name, one["metadata"]["version"], info["url"], digest or _digest(info["url"]))
        if not found.file.endswith(".whl"):
            raise ReleaseError(
                f"There is no wheel of {name} {found.version} for {python}: build one, then add it."
            )
        rows.append(found)
    return rows


def least(files: Iterable[str]) -> str:
    """Returns the oldest system version on which all of these wheels run: of glibc on Linux, of macOS itself;
    "" if none is named.

    >>> least(["a-1-py3-none-any.whl", "b-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    ...        "c-1-cp311-cp311-manylinux_2_28_x86_64.whl"]), least(["a-1-py3-none-any.whl"])
    ('2.28', '')
    """
    needed = []
    for file in files:
        tags = file.removesuffix(".whl").rpartition("-")[2].split(".")
        versions = [(int(found[1]), int(found[2])) for tag in tags if (found := _MIN.match(tag))]
        versions += [version for tag in tags for name, version in _OLDER.items() if tag.startswith(f"{name}_")]
        needed += [min(versions)] if versions else []
    return "{}.{}".format(*max(needed)) if needed else ""


def _reach(url: str) -> tuple[int, ...]:
    """Returns a sort key for wheels that all fit: wheels for older systems first, then wheels for this Python
    before those for any."""
    file = unquote(urlsplit(url).path).rpartition("/")[2]
    needed = tuple(int(part) for part in least([file]).split(".") if part) or (0, 0)
    return (*needed, int("-abi3-" in file or "-none-" in file))


def _digest(url: str) -> str:
    import hashlib

    with open(url2pathname(urlsplit(url).path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def output(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Runs `command` and returns its stdout. Raises ReleaseError with the last line of stderr (or stdout) if it
    fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment
        )
    except OSError as error:
        raise ReleaseError(
            f"{command[0]} does not start ({error.strerror}): name another with --python or --uv."
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing said"]
        raise ReleaseError(f"{' '.join(command[:4])} failed ({said[-1][:300]}).")
    return done.stdout
