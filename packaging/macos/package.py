"""Shoal.app of the bundle, and a disk image with it. Signing and the image need a Mac; laying out does not."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from frozen.bundle import WORK, Bundle, run
from macos import information, layout, signing

HERE = Path(__file__).resolve().parent
PICTURES = HERE / "pictures"
"""The icon, and the ground of the disk image's window for plain and for sharp screens: shoal.svg and the light
theme's colours, drawn by what was drawing.py here."""


def refusal(payload: Path | None, platform: str = sys.platform) -> str:
    """Why there is nothing to begin here; empty on a Mac, and where a stand-in is laid out."""
    if platform == "darwin" or payload is not None:
        return ""
    return (
        "The app for macOS is built on a Mac, which signs it: run this there, or lay out a stand-in here with "
        "--payload DIR."
    )


def package(made: Bundle, out: Path) -> list[Path]:
    """The disk image; without a Mac the app alone, unsigned. Raises BuildError."""
    keys = signing.keys(os.environ)
    out.mkdir(parents=True, exist_ok=True)
    work = WORK / "macos"
    work.mkdir(parents=True, exist_ok=True)
    app = application(made, work / "Shoal.app")
    if sys.platform != "darwin":
        shutil.rmtree(out / app.name, ignore_errors=True)
        shutil.copytree(app, out / app.name, symlinks=True)
        print(
            "packaging/build: Shoal.app is laid out but not signed, and has no disk image: those need a Mac.",
            file=sys.stderr,
        )
        return [out / app.name]
    if not keys.identity:
        print(
            "packaging/build: SHOAL_SIGN_IDENTITY is not set, so the app is signed for this Mac alone: others "
            "must allow it under System Settings > Privacy & Security.",
            file=sys.stderr,
        )
    image = out / image_name(made.version)
    for command in steps(app, image, PICTURES / "background.png", made.python, work, keys):
        run(command)
    return [image]


def application(made: Bundle, app: Path) -> Path:
    """Everything but the signature."""
    contents = app / "Contents"
    shutil.rmtree(app, ignore_errors=True)
    layout.lay_out(made.folder, contents)
    information.write(contents, made.version, made.date)
    shutil.copyfile(PICTURES / "shoal.icns", contents / "Resources" / "shoal.icns")
    return app


def steps(
    app: Path, image: Path, background: Path, python: Path, work: Path, keys: signing.Keys
) -> list[signing.Command]:
    """From the app to the image that people get."""
    commands = [*signing.sign_app(app, keys.identity), *signing.check_app(app)]
    if keys.notary:
        commands += signing.notarise_app(app, work, keys)
    commands += [["rm", "-f", str(image)], _image(app, image, background, python)]
    if keys.identity:
        commands += signing.sign_image(image, keys.identity)
    if keys.notary:
        commands += signing.notarise_image(image, keys)
    return commands


def image_name(version: str) -> str:
    return f"Shoal-{version}-arm64.dmg"


def _image(app: Path, image: Path, background: Path, python: Path) -> signing.Command:
    icon = app / "Contents" / "Resources" / "shoal.icns"
    given = {"app": app, "icon": icon, "background": background}
    defined = [word for name, value in given.items() for word in ("-D", f"{name}={value}")]
    settings = str(HERE / "image_settings.py")
    return [str(python), "-m", "dmgbuild", "-s", settings, *defined, "Shoal", str(image)]
