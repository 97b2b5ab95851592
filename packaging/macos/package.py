"""Builds Shoal.app from the bundle, and a disk image with it. Signing and the image need a Mac; the layout does
not."""

from __future__ import annotations

import datetime
import os
import plistlib
import re
import shutil
import sys
from pathlib import Path

from frozen.bundle import WORK, Bundle, run
from macos import layout, signing

# The facts that macOS is told about the app before it runs: Info.plist, and its sentences in other languages.

IDENTIFIER = "io.github.shoal.Shoal"
OLDEST_MACOS = "14.0"
"""Oldest supported macOS, required by PyTorch's build for Apple Silicon."""
SERVICE = "_shoal._tcp"
"""The Bonjour service of app.swarm.invite.discovery, without its domain."""
SCHEME = "shoal"

LOCAL_NETWORK = {
    "en": "Shoal looks in your local network for others to learn with, and can be found there when you allow "
    "it.",
    "de": "Shoal sucht in deinem lokalen Netzwerk nach anderen, mit denen es lernen kann, und ist dort zu "
    "finden, wenn du es erlaubst.",
}
"""The reason shown in macOS's permission dialog for the local network, by language."""


def information(version: str, date: datetime.date) -> dict[str, object]:
    """Returns the content of Info.plist. macOS compares versions of up to three numbers, so CFBundleVersion has
    only those."""
    found = re.match(r"\d+(\.\d+){0,2}", version)
    assert found is not None, version
    return {
        "CFBundleIdentifier": IDENTIFIER,
        "CFBundleName": "Shoal",
        "CFBundleDisplayName": "Shoal",
        "CFBundleExecutable": "shoal",
        "CFBundleIconFile": "shoal.icns",
        "CFBundlePackageType": "APPL",
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundleShortVersionString": version,
        "CFBundleVersion": found[0],
        "CFBundleDevelopmentRegion": "en",
        "CFBundleLocalizations": sorted(LOCAL_NETWORK),
        "CFBundleURLTypes": [
            {
                "CFBundleURLName": f"{IDENTIFIER}.invite",
                "CFBundleURLSchemes": [SCHEME],
                "CFBundleTypeRole": "Viewer",
            }
        ],
        "LSApplicationCategoryType": "public.app-category.education",
        "LSArchitecturePriority": ["arm64"],
        "LSMinimumSystemVersion": OLDEST_MACOS,
        "LSRequiresNativeExecution": True,
        "NSBonjourServices": [SERVICE],
        "NSHighResolutionCapable": True,
        "NSHumanReadableCopyright": f"© {date.year} The Shoal authors. Apache License 2.0.",
        "NSLocalNetworkUsageDescription": LOCAL_NETWORK["en"],
        "NSPrincipalClass": "NSApplication",
        "NSRequiresAquaSystemAppearance": False,
        "NSSupportsAutomaticGraphicsSwitching": True,
    }


def write_information(contents: Path, version: str, date: datetime.date) -> None:
    """Writes Info.plist, and InfoPlist.strings for each language below Resources."""
    (contents / "Info.plist").write_bytes(plistlib.dumps(information(version, date)))
    (contents / "PkgInfo").write_bytes(b"APPL????")
    for language, sentence in LOCAL_NETWORK.items():
        folder = contents / "Resources" / f"{language}.lproj"
        folder.mkdir(parents=True, exist_ok=True)
        words = {"NSLocalNetworkUsageDescription": sentence}
        (folder / "InfoPlist.strings").write_bytes(plistlib.dumps(words))


HERE = Path(__file__).resolve().parent
PICTURES = HERE / "pictures"
"""The icon, and the background of the disk image's window for standard and Retina screens, drawn from shoal.svg
and the light theme's colours."""


def refusal(payload: Path | None, platform: str = sys.platform) -> str:
    """Returns why the app cannot be built here; "" on a Mac, or if `payload` is a stand-in."""
    if platform == "darwin" or payload is not None:
        return ""
    return (
        "The app for macOS is built on a Mac, which signs it: run this there, or lay out a stand-in here with "
        "--payload DIR."
    )


def package(made: Bundle, out: Path) -> list[Path]:
    """Builds the disk image; without a Mac, the unsigned app only. Returns the path. Raises BuildError."""
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
    """Builds the app without its signature and returns its path."""
    contents = app / "Contents"
    shutil.rmtree(app, ignore_errors=True)
    layout.lay_out(made.folder, contents)
    write_information(contents, made.version, made.date)
    shutil.copyfile(PICTURES / "shoal.icns", contents / "Resources" / "shoal.icns")
    return app


def steps(
    app: Path, image: Path, background: Path, python: Path, work: Path, keys: signing.Keys
) -> list[signing.Command]:
    """Returns the commands that sign the app and make, sign and notarise the disk image."""
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
