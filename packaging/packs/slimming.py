"""Prepares a built wheel of llama-cpp-python for packs: small, complete, and named for the systems it runs
on."""

from __future__ import annotations

import base64
import ctypes.util
import hashlib
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)
KEPT = re.compile(
    r"llama_cpp/[a-z_]+\.py|llama_cpp/py\.typed|llama_cpp/lib/[^/]*\.(dylib|dll)|[^/]+\.dist-info/.*"
    r"|llama_cpp/lib/lib(llama|mtmd|ggml[a-z-]*)\.so|llama_cpp/lib/libggml[a-z-]*\.so\.[0-9]+"
)
"""Only the package's own folder: CMake installs every library in two places, under three names each."""
THREADS = "libgomp.so.1"
_GLIBC = re.compile(rb"GLIBC_2\.([0-9]+)\x00")


class SlimError(Exception):
    """The wheel cannot be used; one sentence says what is wrong."""


def slim(built: Path, out: Path) -> Path:
    """Writes the wheel for packs into `out` and returns its path. Raises SlimError and OSError."""
    with zipfile.ZipFile(built) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if KEPT.fullmatch(name)}
    libraries = {name: body for name, body in files.items() if name.startswith("llama_cpp/lib/")}
    if not any("llama." in name for name in libraries):
        raise SlimError(f"{built.name} holds no library of llama.cpp: build it anew.")
    if any(THREADS.encode() in body for body in libraries.values()):
        libraries[f"llama_cpp/lib/{THREADS}"] = _threads().read_bytes()
    files |= libraries
    tag = f"py3-none-{_platform(libraries)}"
    info = next(name.partition("/")[0] for name in files if ".dist-info/" in name)
    text = files[f"{info}/WHEEL"].decode("utf-8")
    files[f"{info}/WHEEL"] = re.sub(r"(?m)^Tag: .*$", f"Tag: {tag}", text).encode("utf-8")
    to = out / f"{info.removesuffix('.dist-info')}-{tag}.whl"
    _write(to, files, f"{info}/RECORD")
    return to


def _write(to: Path, files: dict[str, bytes], record: str) -> None:
    """Writes the wheel reproducibly: the same files give the same bytes."""
    rows = []
    files.pop(record, None)
    for name, body in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(body)}\n")
    files = {**dict(sorted(files.items())), record: "".join([*rows, f"{record},,\n"]).encode("utf-8")}
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, body, zipfile.ZIP_DEFLATED, 9)


def _threads() -> Path:
    """Returns the path of this system's libgomp, GCC's OpenMP library, whose licence allows redistribution.
    Raises SlimError."""
    said = subprocess.run(["gcc", f"-print-file-name={THREADS}"], capture_output=True, text=True).stdout.strip()
    for place in (said, f"/usr/lib/{platform.machine()}-linux-gnu/{THREADS}", f"/usr/lib64/{THREADS}"):
        if place.startswith("/") and Path(place).is_file():
            return Path(place).resolve()
    raise SlimError(f"{THREADS} was not found beside {ctypes.util.find_library('gomp')}: install libgomp1.")


def _platform(libraries: dict[str, bytes]) -> str:
    """Returns the platform tag of the wheel, with the oldest glibc on which all libraries run."""
    machine = {"AMD64": "amd64", "arm64": "arm64"}.get(platform.machine(), platform.machine())
    if sys.platform == "win32":
        return f"win_{machine}"
    if sys.platform == "darwin":
        return f"macosx_14_0_{machine}"
    needed = max(int(found) for body in libraries.values() for found in _GLIBC.findall(body))
    return f"manylinux_2_{needed}_{machine}"
