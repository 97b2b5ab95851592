"""An AppImage: the tree as it is, with what the format asks for at its root, packed by appimagetool."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

from frozen.bundle import WORK, BuildError, Bundle
from linux import tree

RUN = """#!/bin/sh
exec "$APPDIR/usr/lib/shoal/shoal" "$@"
"""


def folder(laid_out: Path, made: Bundle) -> Path:
    """The AppDir."""
    place = WORK / "Shoal.AppDir"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(laid_out, place, symlinks=True)
    share = place / "usr" / "share"
    (place / "shoal.desktop").symlink_to("usr/share/applications/shoal.desktop")
    (place / "shoal.png").symlink_to("usr/share/icons/hicolor/256x256/apps/shoal.png")
    (place / ".DirIcon").symlink_to("shoal.png")
    shutil.rmtree(share / "lintian")
    (place / "AppRun").write_text(RUN, encoding="ascii")
    (place / "AppRun").chmod(0o755)
    tree.settle(place, made)
    return place


def package(laid_out: Path, made: Bundle, out: Path) -> Path:
    """Raises BuildError, also where appimagetool is missing."""
    place = folder(laid_out, made)
    tool = os.environ.get("APPIMAGETOOL") or shutil.which("appimagetool")
    if tool is None:
        raise BuildError(
            "The AppImage cannot be made without appimagetool: install it, or name it with APPIMAGETOOL."
        )
    machine = platform.machine()
    to = out / f"Shoal-{made.version}-{machine}.AppImage"
    date = str(tree.epoch(made))
    tree.output(tool, "--no-appstream", place, to, ARCH=machine, VERSION=made.version, SOURCE_DATE_EPOCH=date)
    to.chmod(0o755)
    return to
