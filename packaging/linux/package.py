"""Builds the packages for Linux: a Debian package, and the single-file app for other distributions."""

from __future__ import annotations

import hashlib
import lzma
import os
import platform
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from frozen.bundle import WORK, BuildError, Bundle
from linux import tree

HERE = Path(__file__).resolve().parent
DEPENDS = (
    "python3 (>= 3.11)",
    "ca-certificates",
    "libstdc++6",
    "libegl1",
    "libgl1",
    "libxkbcommon0",
    "libfontconfig1",
    "libdbus-1-3",
    "libglib2.0-0 | libglib2.0-0t64",
    "libxcb-cursor0",
    "libxcb-icccm4",
    "libxcb-keysyms1",
    "libxcb-shape0",
    "libxcb-xkb1",
    "libxkbcommon-x11-0",
    "libxss1",
)
"""Python is for the engine pack, ca-certificates for downloading it; the libraries are needed by Qt."""
RECOMMENDS = ("libwayland-client0", "libwayland-cursor0", "libgomp1")
SCRIPTS = ("prerm",)
DESCRIPTION = """Train a small reasoning model on your own computer
 Shoal trains a small model with reinforcement learning while you are away. The
 model practises puzzles, checks its own answers and learns from them, alone or
 together with other people's models. Only answers to generated puzzles travel,
 as text: no account, no telemetry."""


def debian_package(laid_out: Path, made: Bundle, out: Path) -> Path:
    """Builds the .deb of a tree and returns its path. Raises BuildError."""
    machine = tree.output("dpkg", "--print-architecture")
    library = "libc6 (>= {}.{})".format(*tree.newest_symbol(laid_out))
    place = WORK / "deb"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(laid_out, place, symlinks=True)
    control = place / "DEBIAN"
    control.mkdir()
    for name in SCRIPTS:
        shutil.copyfile(HERE / name, control / name)
        (control / name).chmod(0o755)
    lines = [
        "Package: shoal",
        f"Version: {made.version}",
        "Section: science",
        "Priority: optional",
        f"Architecture: {machine}",
        f"Installed-Size: {tree.size(laid_out) // 1024}",
        "Maintainer: The Shoal authors <shoal@example.org>",
        f"Depends: {', '.join([library, *DEPENDS])}",
        f"Recommends: {', '.join(RECOMMENDS)}",
        f"Description: {DESCRIPTION}",
    ]
    (control / "control").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tree.set_permissions_and_dates(place, made)
    to = out / f"shoal_{made.version}_{machine}.deb"
    same = {"SOURCE_DATE_EPOCH": str(tree.epoch(made)), "DPKG_DEB_THREADS_MAX": "1"}  # on any number of cores
    tree.output("dpkg-deb", "--root-owner-group", "-Zxz", "-b", place, to, **same)
    return to


ONEFILE_MARKER_NAME = "onefile"
"""A file beside the unpacked program that a running app keeps open, which marks its folder as in use."""
TRAILER = struct.Struct("<48sIIQQ8s")
TRAILER_MAGIC = b"SHOALONE"
_FILTERS: dict[str, list[dict[str, int]]] = {"x86_64": [{"id": lzma.FILTER_X86}]}
"""LZMA filters that make machine code compress better."""


def single_file_app(laid_out: Path, made: Bundle, out: Path) -> Path:
    """Builds the single-file app for distributions without a package, onefile.c with the program's folder
    appended, and returns its path. Raises BuildError, also if the compiler or the static xz library is missing.

    PyInstaller's own single-file format is not used, because it unpacks itself at every start into a folder
    that a killed app leaves behind, and prints no clear error on a system that is too old."""
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


def package(made: Bundle, out: Path) -> list[Path]:
    """Builds the installers and returns their paths. Prints what cannot be built with the tools installed here;
    raises BuildError if not even the Debian package can."""
    out.mkdir(parents=True, exist_ok=True)
    laid_out = tree.lay_out(made, WORK / "linux")
    done = [debian_package(laid_out, made, out)]
    try:
        done.append(single_file_app(laid_out, made, out))
    except BuildError as error:
        print(f"packaging/build: {error}", file=sys.stderr)
    return done
