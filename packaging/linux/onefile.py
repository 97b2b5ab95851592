"""Builds the single-file app for distributions without a package: onefile.c with the program's folder appended.

PyInstaller's own single-file format is not used, because it unpacks itself at every start into a folder that a
killed app leaves behind, and prints no clear error on a system that is too old."""

from __future__ import annotations

import hashlib
import lzma
import os
import platform
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

from frozen.bundle import WORK, BuildError, Bundle
from linux import tree

HERE = Path(__file__).resolve().parent
ONEFILE_MARKER_NAME = "onefile"
"""A file beside the unpacked program that a running app keeps open, which marks its folder as in use."""
TRAILER = struct.Struct("<48sIIQQ8s")
TRAILER_MAGIC = b"SHOALONE"
_FILTERS: dict[str, list[dict[str, int]]] = {"x86_64": [{"id": lzma.FILTER_X86}]}
"""LZMA filters that make machine code compress better."""


def package(laid_out: Path, made: Bundle, out: Path) -> Path:
    """Builds the single-file app and returns its path. Raises BuildError, also if the compiler or the static xz
    library is missing."""
    folder = WORK / "onefile"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(laid_out / "usr" / "lib" / "shoal", folder, symlinks=True)
    shutil.copytree(laid_out / "usr" / "share" / "doc" / "shoal", folder / "doc")
    shutil.copyfile(laid_out / "usr/share/icons/hicolor/256x256/apps/shoal.png", folder / "shoal.png")
    (folder / ONEFILE_MARKER_NAME).write_text(
        "This folder was unpacked from one file and can be deleted.\n", encoding="ascii"
    )
    to = out / f"Shoal-{made.version}-{platform.machine()}"
    write(folder, made.version, tree.newest_symbol(folder), to)
    return to


def write(folder: Path, version: str, library: tuple[int, int], to: Path) -> None:
    """Writes the executable that unpacks `folder` and starts `shoal` in it; `library` is the oldest glibc
    version it runs on. Raises BuildError."""
    own = _FILTERS.get(platform.machine(), [])
    squeeze = lzma.LZMACompressor(filters=[*own, {"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 32 << 20}])
    digest, whole, packed = hashlib.sha256(), 0, []
    for piece in entries(folder):
        digest.update(piece)
        whole += len(piece)
        packed.append(squeeze.compress(piece))
    stream = b"".join([*packed, squeeze.flush()])
    name = f"{version[:30]}-{digest.hexdigest()[:12]}".encode("ascii")
    fresh = to.with_name(f".{to.name}")
    fresh.write_bytes(starter() + stream + TRAILER.pack(name, *library, len(stream), whole, TRAILER_MAGIC))
    fresh.chmod(0o755)
    fresh.replace(to)


def entries(folder: Path) -> Iterator[bytes]:
    """Yields the archive in pieces; onefile.c describes its format."""
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder)).encode()
        if path.is_symlink():
            kind, content = b"l", os.readlink(path).encode()
        elif path.is_dir():
            kind, content = b"d", b""
        else:
            kind, content = b"x" if path.stat().st_mode & 0o100 else b"f", path.read_bytes()
        yield kind + struct.pack("<HQ", len(name), len(content)) + name
        yield content
    yield b"e"


def starter() -> bytes:
    """Compiles onefile.c and returns the program. Raises BuildError."""
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "starter"
        options = ("-std=c11", "-Os", "-Wall", "-static", "-s", "-Wl,--build-id=none")
        try:
            tree.output("cc", *options, "-o", program, HERE / "onefile.c", "-llzma")
        except BuildError as error:
            raise BuildError(
                f"The one file needs a C compiler and a static liblzma ({error}): install gcc, liblzma-dev."
            ) from error
        return program.read_bytes()
