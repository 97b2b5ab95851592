"""The manifest of a pack: its files, with a signature. packaging/packs/make writes and signs it at release
time. It cannot name a path outside the folder of packs."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from app.install import InstallError
from app.install.packs.place import NAME, VERSION
from app.install.signed import Key, Url, check_address, is_address, is_signed, this_platform
from engines import remedy

MANIFEST = 2**20
"""Maximum bytes of a manifest. The largest pack, CUDA for four Pythons, takes a tenth."""
WHEELS = 500
DISK = 2**36
"""Maximum bytes of disk that a pack may ask for."""
TRUST = Path(__file__).resolve().parents[3] / "resources" / "release.json"

_WHEEL_FILE = re.compile(
    r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[A-Za-z0-9_.+!]+)(-[0-9][A-Za-z0-9_]*)?(-[A-Za-z0-9_.]+){3}\.whl"
)
_PYTHON = r"^3\.[0-9]{1,2}\Z"
_MODULE = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,7}\Z"
Python = Annotated[str, msgspec.Meta(pattern=_PYTHON)]


class Wheel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wheel of a pack. `url` is a full address, or a name beside the manifest; `pythons` are the versions it
    serves, empty for all."""

    file: Annotated[str, msgspec.Meta(max_length=255)]
    url: Url
    size: Annotated[int, msgspec.Meta(gt=0, le=2**33)]
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")]
    version: Annotated[str, msgspec.Meta(pattern=r"^[0-9][A-Za-z0-9.+!]{0,63}\Z")]
    pythons: Annotated[tuple[Python, ...], msgspec.Meta(max_length=8)] = ()

    def __post_init__(self) -> None:
        found = _WHEEL_FILE.fullmatch(self.file)
        if found is None or ".." in self.file:
            raise ValueError(f"{self.file!r} is no name of a wheel")
        if normalise_name(found["name"]) != normalise_name(self.name) or found["version"] != self.version:
            raise ValueError(f"{self.file} is not {self.name} {self.version}")
        _check_url(self.url)

    @property
    def digest(self) -> str:
        """The SHA-256 in the form that app.common.fetch expects."""
        return f"sha256:{self.sha256}"

    def addresses(self, base: str, mirrors: Sequence[str]) -> list[str]:
        """The download addresses: beside the manifest at `base`, then in the folders of `mirrors`."""
        first = self.url if is_address(self.url) else urljoin(base, quote(self.url))
        return [first, *(f"{mirror.rstrip('/')}/{quote(self.file)}" for mirror in mirrors)]


class PackManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a pack. `pythons` are the versions that can run it, preferred ones first; `least` is the
    minimum version of glibc on Linux and of macOS; `disk` is the peak bytes needed while it is made."""

    kind: Literal["shoal-pack-1"] = "shoal-pack-1"
    name: Annotated[str, msgspec.Meta(pattern=rf"^{NAME}\Z")]
    version: Annotated[str, msgspec.Meta(pattern=rf"^{VERSION}\Z")]
    title: Annotated[str, msgspec.Meta(max_length=100)]
    made: Annotated[int, msgspec.Meta(ge=0, le=2**40)] = 0
    """Unix time of the release; see app.install.packs.offered."""
    system: Literal["linux", "windows", "macos"]
    machine: Literal["x86_64", "aarch64"]
    least: Annotated[str, msgspec.Meta(pattern=r"^([0-9]{1,3}\.[0-9]{1,3})?\Z")] = ""
    pythons: Annotated[tuple[Python, ...], msgspec.Meta(min_length=1, max_length=8)]
    disk: Annotated[int, msgspec.Meta(gt=0, le=DISK)]
    wheels: Annotated[tuple[Wheel, ...], msgspec.Meta(min_length=1, max_length=WHEELS)]
    imports: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=_MODULE)], ...], msgspec.Meta(min_length=1, max_length=50)
    ]
    mirrors: Annotated[tuple[Url, ...], msgspec.Meta(max_length=8)] = ()
    """Folders on other hosts that hold the same files under the names in `file`."""

    def __post_init__(self) -> None:
        if ".." in self.version or self.version.endswith("."):
            raise ValueError(f"{self.version!r} is no version")
        for mirror in self.mirrors:
            check_address(mirror)
        if not any(wheel.name == "uv" and not wheel.pythons for wheel in self.wheels):
            raise ValueError("it names no uv")
        for python in self.pythons:
            wheels = self.wheels_for(python)
            names = [normalise_name(wheel.name) for wheel in wheels]
            if len(set(names)) != len(names) or len({wheel.file for wheel in wheels}) != len(wheels):
                raise ValueError(f"a package is named twice for Python {python}")
            if not wheels or sum(wheel.size for wheel in wheels) > self.disk:
                raise ValueError(f"the files for Python {python} do not fit the disk that it asks for")

    @property
    def uv(self) -> Wheel:
        """The program that makes the environment; it is not part of it."""
        return next(wheel for wheel in self.wheels if wheel.name == "uv")

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}"

    def wheels_for(self, python: str) -> tuple[Wheel, ...]:
        return tuple(wheel for wheel in self.wheels if not wheel.pythons or python in wheel.pythons)


class SignedManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest with the signed bytes; `base` is the address or folder it came from."""

    manifest: PackManifest
    content: bytes
    base: str = ""


class PackOffer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Figures shown before any network access: `bytes` to download, and the peak `disk` bytes needed."""

    version: Annotated[str, msgspec.Meta(pattern=rf"^{VERSION}\Z")]
    title: Annotated[str, msgspec.Meta(max_length=100)]
    bytes: Annotated[int, msgspec.Meta(gt=0)]
    disk: Annotated[int, msgspec.Meta(gt=0, le=DISK)]
    made: int = 0


class Trust(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What this version of Shoal trusts: public keys (hexadecimal); addresses of the list of new versions,
    the first and its mirrors; addresses of packs' manifests, and the packs' figures, by pack name."""

    keys: Annotated[tuple[Key, ...], msgspec.Meta(min_length=1, max_length=8)]
    feeds: Annotated[tuple[Url, ...], msgspec.Meta(max_length=8)] = ()
    manifests: dict[Annotated[str, msgspec.Meta(pattern=rf"^{NAME}\Z")], str] = {}
    offers: dict[str, PackOffer] = {}

    @property
    def host(self) -> str:
        """The host that is asked for new versions, for people."""
        return urlsplit(self.feeds[0]).hostname or self.feeds[0]

    @property
    def request(self) -> str:
        """The two requests that every check for new versions sends, as text for people."""
        found = urlsplit(self.feeds[0])
        lines = (f"Host: {found.netloc}", "User-Agent: shoal", "Accept: */*", "Accept-Encoding: identity")
        asked = (f"GET {found.path}{end} HTTP/1.1" for end in (".sig", ""))
        return "\n\n".join("\n".join([one, *lines]) for one in asked)

    def encode(self) -> bytes:
        """The content of resources/release.json. Raises msgspec.ValidationError for values that the app
        refuses."""
        content = msgspec.json.encode(self)
        msgspec.json.decode(content, type=Trust)
        return msgspec.json.format(content, indent=1) + b"\n"


def trust(path: Path | None = None) -> Trust:
    """Reads what the build wrote into resources. Raises InstallError; a checkout has no such file."""
    path = path or TRUST
    try:
        return msgspec.json.decode(path.read_bytes(), type=Trust)
    except FileNotFoundError:
        start = f"start it with {remedy.command()}, which installs what it needs"
        how = "install one that has been released" if remedy.installed() else start
        raise InstallError(
            f"This copy of Shoal comes without engine packs: {how}, or name a key with --key."
        ) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise InstallError(f"{path} can't be read ({error}): install Shoal again.") from error


def read_manifest(content: bytes, signature: bytes, keys: tuple[str, ...], base: str = "") -> SignedManifest:
    """Decodes a manifest that one of `keys` signed. Raises InstallError."""
    if len(content) > MANIFEST:
        raise InstallError(
            f"The manifest has {len(content)} bytes and {MANIFEST} are allowed: nothing was installed."
        )
    if not is_signed(content, signature, keys):
        raise InstallError(
            "The manifest isn't signed by the makers of this Shoal, so nothing was installed: take the one "
            "that "
            "belongs to this version."
        )
    try:
        manifest = msgspec.json.decode(content, type=PackManifest)
    except msgspec.MsgspecError as error:
        raise InstallError(
            f"The manifest can't be understood ({error}), so nothing was installed: update Shoal, then try "
            "again."
        ) from error
    return SignedManifest(manifest=manifest, content=content, base=base)


def offer(manifest: PackManifest) -> PackOffer:
    """Returns a pack's figures, for the Python version that needs the most bytes."""
    most = max(sum(wheel.size for wheel in manifest.wheels_for(python)) for python in manifest.pythons)
    return PackOffer(
        version=manifest.version, title=manifest.title, bytes=most, disk=manifest.disk, made=manifest.made
    )


def check_here(manifest: PackManifest) -> None:
    """Raises InstallError if the pack does not run on this computer."""
    system, machine = this_platform()
    if (manifest.system, manifest.machine) != (system, machine):
        raise InstallError(
            f"{manifest.title} is for {manifest.system} on {manifest.machine}, and this is {system} on "
            f"{machine}: "
            "take the pack for this computer."
        )
    own = system_version()
    if manifest.least and own and _numbers(own) < _numbers(manifest.least):
        what = "glibc" if system == "linux" else "macOS"
        raise InstallError(
            f"{manifest.title} needs {what} {manifest.least} or newer, and this system has {own}: update the "
            "system, or use Shoal on a newer one."
        )


def system_version() -> str:
    """Returns the version of glibc or macOS; empty if unknown."""
    if sys.platform == "darwin":
        return platform.mac_ver()[0]
    return platform.libc_ver()[1] if sys.platform == "linux" and platform.libc_ver()[0] == "glibc" else ""


def normalise_name(name: str) -> str:
    """Normalises a package's name as the package index does.

    >>> normalise_name("Typing_Extensions"), normalise_name("a.b--c")
    ('typing-extensions', 'a-b-c')
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _check_url(url: str) -> None:
    """Raises ValueError unless `url` is an address or a wheel's file name."""
    if is_address(url):
        check_address(url)
    elif not _WHEEL_FILE.fullmatch(url) or ".." in url:
        raise ValueError(f"{url[:100]!r} is no address")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
