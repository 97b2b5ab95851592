"""What macOS is told about the app before it runs: Info.plist, and its sentences in other languages."""

from __future__ import annotations

import datetime
import plistlib
import re
from pathlib import Path

IDENTIFIER = "io.github.shoal.Shoal"
LEAST = "14.0"
"""PyTorch's build for Apple Silicon, which learns, needs it."""
SERVICE = "_shoal._tcp"
"""Of app.swarm.invite.discovery, without its domain."""
SCHEME = "shoal"

LOCAL_NETWORK = {
    "en": "Shoal looks in your local network for others to learn with, and can be found there when you allow "
    "it.",
    "de": "Shoal sucht in deinem lokalen Netzwerk nach anderen, mit denen es lernen kann, und ist dort zu "
    "finden, wenn du es erlaubst.",
}
"""Why it asks, in macOS's own question."""


def information(version: str, date: datetime.date) -> dict[str, object]:
    """Info.plist. macOS orders versions by up to three numbers, so what comes after them is left out there."""
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
        "LSMinimumSystemVersion": LEAST,
        "LSRequiresNativeExecution": True,
        "NSBonjourServices": [SERVICE],
        "NSHighResolutionCapable": True,
        "NSHumanReadableCopyright": f"© {date.year} The Shoal authors. Apache License 2.0.",
        "NSLocalNetworkUsageDescription": LOCAL_NETWORK["en"],
        "NSPrincipalClass": "NSApplication",
        "NSRequiresAquaSystemAppearance": False,
        "NSSupportsAutomaticGraphicsSwitching": True,
    }


def write(contents: Path, version: str, date: datetime.date) -> None:
    """Info.plist, and InfoPlist.strings for each language below Resources."""
    (contents / "Info.plist").write_bytes(plistlib.dumps(information(version, date)))
    (contents / "PkgInfo").write_bytes(b"APPL????")
    for language, sentence in LOCAL_NETWORK.items():
        folder = contents / "Resources" / f"{language}.lproj"
        folder.mkdir(parents=True, exist_ok=True)
        words = {"NSLocalNetworkUsageDescription": sentence}
        (folder / "InfoPlist.strings").write_bytes(plistlib.dumps(words))
