"""Signing from the inside out, and asking Apple to notarise: the command lines, and who runs them.

SHOAL_SIGN_IDENTITY    "Developer ID Application: ..."; without it the app is signed for this Mac alone
SHOAL_NOTARY_KEY       path of an App Store Connect key (.p8); without it nothing is notarised
SHOAL_NOTARY_KEY_ID    its id
SHOAL_NOTARY_ISSUER    its issuer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from frozen.bundle import BuildError
from macos import layout

ENTITLEMENTS = Path(__file__).resolve().parent / "engine.entitlements"
AT_ONCE = 100
"""Maximum files per call of codesign."""
NOTARY_TIMEOUT = "45m"
"""Maximum wait for Apple's answer, which usually comes after a few minutes."""

Command = list[str]


class Keys(NamedTuple):
    """Signing identity and notary key; empty if not configured. `notary` is (key file, key id, issuer)."""

    identity: str = ""
    notary: tuple[str, str, str] | None = None


def keys(environment: Mapping[str, str]) -> Keys:
    """Reads the keys from the environment. Raises BuildError for an incomplete notary key, or for one without
    an identity, because Apple notarises only signed apps."""
    names = ("SHOAL_NOTARY_KEY", "SHOAL_NOTARY_KEY_ID", "SHOAL_NOTARY_ISSUER")
    identity = environment.get("SHOAL_SIGN_IDENTITY", "")
    given = [environment.get(name, "") for name in names]
    if not any(given):
        return Keys(identity)
    missing = [name for name, value in zip(names, given, strict=True) if not value]
    missing += [] if identity else ["SHOAL_SIGN_IDENTITY"]
    if missing:
        raise BuildError(
            f"The app cannot be notarised without {' and '.join(missing)}: set it, or none of them."
        )
    return Keys(identity, (given[0], given[1], given[2]))


def sign_app(app: Path, identity: str) -> list[Command]:
    """Returns the commands that sign the app from the inside out: libraries, programs, frameworks, then the
    app, which seals the rest.

    The hardened runtime, required by Apple, lets a program load only what the same team signed. An app signed
    for this Mac only has no team, so it goes without."""
    contents = app / "Contents"
    engine = contents / "Resources" / "python" / "bin"
    main = contents / "MacOS"
    plain, engines = [], []
    for path in layout.code(contents):
        if path.parent == engine:
            engines.append(path)
        elif path.parent != main:
            plain.append(path)
    commands = [_codesign(identity, plain[at : at + AT_ONCE]) for at in range(0, len(plain), AT_ONCE)]
    if engines:
        commands.append(_codesign(identity, engines, ENTITLEMENTS))
    commands += [_codesign(identity, [path]) for path in layout.frameworks(contents)]
    return [*commands, _codesign(identity, [app])]


def check_app(app: Path) -> list[Command]:
    return [["codesign", "--verify", "--deep", "--strict", "--verbose=2", str(app)]]


def notarise_app(app: Path, work: Path, keys: Keys) -> list[Command]:
    """Returns the commands that notarise the app and staple the ticket to it, so that it also opens on a Mac
    without a network."""
    archive = work / f"{app.stem}.zip"
    return [
        ["ditto", "-c", "-k", "--keepParent", str(app), str(archive)],
        _submit(archive, keys),
        ["xcrun", "stapler", "staple", str(app)],
        ["spctl", "--assess", "--type", "execute", "--verbose=2", str(app)],
    ]


def sign_image(image: Path, identity: str) -> list[Command]:
    return [["codesign", "--force", "--sign", identity, "--timestamp", str(image)]]


def notarise_image(image: Path, keys: Keys) -> list[Command]:
    return [
        _submit(image, keys),
        ["xcrun", "stapler", "staple", str(image)],
        ["xcrun", "stapler", "validate", str(image)],
    ]


def _codesign(identity: str, paths: Sequence[Path], entitlements: Path | None = None) -> Command:
    how = ["--timestamp", "--options", "runtime"] if identity else ["--timestamp=none"]
    rights = ["--entitlements", str(entitlements)] if entitlements and identity else []
    return ["codesign", "--force", "--sign", identity or "-", *how, *rights, *map(str, paths)]


def _submit(file: Path, keys: Keys) -> Command:
    assert keys.notary is not None
    key, name, issuer = keys.notary
    who = ["--key", key, "--key-id", name, "--issuer", issuer]
    return ["xcrun", "notarytool", "submit", str(file), *who, "--wait", "--timeout", NOTARY_TIMEOUT]
