"""The pins: exact, complete, and what is really installed here."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from app.install.launcher.pythons import OLDEST_GLIBC
from app.install.launcher.stamp import PURPOSES, lock_of

FOLDER = Path(__file__).parents[2] / "packaging" / "requirements"

NOT_NEEDED = {"zss", "pycosat", "cellpylib"}
"""Named by reasoning-gym, source-only, and served by stand-ins (app/sapo/library.py)."""


def pinned(name: str) -> dict[str, Requirement]:
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    listed = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    return {canonicalize_name(one.name): one for one in listed}


def applies(requirement: Requirement, extras: set[str]) -> bool:
    return requirement.marker is None or any(
        requirement.marker.evaluate({"extra": one}) for one in extras | {""}
    )


def installed(package: str) -> str:
    """Its version, empty when it is not there."""
    try:
        return Version(importlib.metadata.version(package)).public
    except importlib.metadata.PackageNotFoundError:
        return ""


@pytest.mark.parametrize("name", ["base.txt", "gym.txt", "test.txt", "llamacpp.txt", "mlx.txt", "nats.txt"])
def test_every_line_names_one_exact_version_and_no_place_to_get_it(name: str) -> None:
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9.]*[0-9]( ; .+)?", line), line
        assert "://" not in line and "--" not in line


def test_nothing_is_pinned_twice() -> None:
    assert not pinned("base.txt").keys() & pinned("test.txt").keys()
    for optional in ("gym.txt", "llamacpp.txt", "mlx.txt", "nats.txt"):
        assert not pinned("base.txt").keys() & pinned(optional).keys()


@pytest.mark.skipif(sys.platform != "linux", reason="reads the tags of Linux wheels")
def test_the_oldest_c_library_is_the_one_that_the_installed_window_asks_for() -> None:
    tags = importlib.metadata.distribution("pyside6-essentials").read_text("WHEEL") or ""
    asked = {(int(major), int(minor)) for major, minor in re.findall(r"manylinux_(\d+)_(\d+)_", tags)}
    assert asked == {OLDEST_GLIBC[platform.machine()]}


def test_what_is_installed_is_what_is_pinned() -> None:
    for name, requirement in {**pinned("base.txt"), **pinned("gym.txt"), **pinned("test.txt")}.items():
        if applies(requirement, set()):
            wanted = next(iter(requirement.specifier)).version
            assert Version(importlib.metadata.version(name)).public == Version(wanted).public, name


@pytest.mark.parametrize("optional", [(), ("llamacpp.txt",), ("mlx.txt",)])
def test_nothing_needed_is_left_to_chance(optional: tuple[str, ...]) -> None:
    """Every dependency of a pinned package is pinned too, and the pin satisfies it. On Linux PyTorch's own
    NVIDIA packages are the exception, and PyTorch names those exactly."""
    pins = {**pinned("base.txt"), **pinned("gym.txt"), **pinned("test.txt")}
    for name in optional:
        pins |= pinned(name)
        for package, requirement in pinned(name).items():
            if applies(requirement, set()) and not installed(package):
                pytest.skip(f"{package} is not installed")
    for name in pins:
        if not applies(pins[name], set()):
            continue
        for text in importlib.metadata.requires(name) or []:
            needed = Requirement(text)
            other = canonicalize_name(needed.name)
            if not applies(needed, pins[name].extras) or other in NOT_NEEDED:
                continue
            if name == "torch" and other.startswith(("nvidia-", "cuda-", "triton")):
                continue
            assert other in pins, f"{name} needs {other}, which is pinned nowhere"
            if name != "reasoning-gym":  # installed without its dependencies, see gym.txt
                assert needed.specifier.contains(next(iter(pins[other].specifier)).version, prereleases=True), (
                    text
                )


def locked(file: Path) -> dict[str, tuple[str, int]]:
    """Of each package in a lock its version and how many files it may come as."""
    found: dict[str, tuple[str, int]] = {}
    for block in re.split(r"(?m)^(?=[a-z0-9])", file.read_text(encoding="utf-8")):
        if block.strip():
            name, version = re.match(r"([a-z0-9-]+)==([^ \n]+)", block).groups()  # type: ignore[union-attr]
            assert name not in found, f"{name} twice in {file.name}"
            found[name] = version, len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", block))
    return found


PACKAGING = FOLDER.parent
RELAY = PACKAGING / "relay"


@pytest.mark.parametrize(
    "listed", [*(FOLDER / file for parts in PURPOSES.values() for file, _ in parts), RELAY / "requirements.txt"]
)
def test_every_list_has_a_lock_that_names_the_same_and_hashes_all(listed: Path) -> None:
    lock = locked(Path(lock_of(str(listed))))
    for name, requirement in pinned(str(listed)).items():
        version, files = lock[name]
        assert f"=={version}" == str(requirement.specifier) and files, name
    more = {name for name in lock if name not in pinned(str(listed))}
    assert not more or listed.name == "base.txt", more
    assert all(files for _, files in lock.values())
    assert "://" not in Path(lock_of(str(listed))).read_text()


@pytest.mark.parametrize(
    ("lock", "lists"),
    [
        ("requirements/compile.lock", ["requirements/compile.txt"]),
        ("frozen/packages.lock", ["frozen/packages.txt", "requirements/build.txt"]),
        ("release/packages.lock", ["release/packages.txt"]),
    ],
)
def test_the_tools_that_build_and_release_are_locked_at_the_pinned_versions(
    lock: str, lists: list[str]
) -> None:
    found = locked(PACKAGING / lock)
    assert all(files for _, files in found.values())
    pins = {**pinned("base.txt"), **pinned("build.txt"), **pinned("compile.txt")}
    for listed in lists:
        for name in pinned(str(PACKAGING / listed)):
            assert f"=={found[name][0]}" == str(pins[name].specifier), name


FREE = {
    "packaging/library/pyproject.toml": "builds what lies there, and fetches nothing (--no-deps)",
    "app/swarm/library/export.py": "tells those who program with the library",
    "packaging/packs/resolving.py": "asks what pip would take, and installs nothing (--dry-run)",
    "app/install/launcher/install.py": "hands on what it is told: stamp.listed, and the orders of optional.py",
}


def test_nothing_is_installed_without_a_hash() -> None:
    """Every command of pip that fetches asks for hashes in the same breath."""
    words = re.compile(r"pip[\"',\[\]\s]+(?:install|wheel|download)\b")
    found = set()
    places = [PACKAGING, PACKAGING.parent / ".github", PACKAGING.parent / "app", PACKAGING.parent / "shoal"]
    for file in (one for place in places for one in ([place] if place.is_file() else place.rglob("*"))):
        if not file.is_file() or file.suffix in (".pyc", ".lock", ".txt", ".md", ".svg", ".qm", ".png"):
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        name = file.relative_to(PACKAGING.parent).as_posix()
        for match in words.finditer(text):
            near = text[max(0, match.start() - 700) : match.end() + 900]
            hashed = re.search(r"require-hashes|HASHED|stamp\.listed|\bsource\((?:pip, )?requirements", near)
            found.add(name)
            assert hashed or name in FREE, f"{name}: {match[0]!r} fetches what no hash names"
    assert found >= {
        "packaging/frozen/bundle.py",
        "packaging/relay/Dockerfile",
        ".github/workflows/release.yml",
    }
    assert found >= FREE.keys(), "what no longer installs anything needs no exception"


def test_the_relays_image_takes_files_of_known_hashes_alone() -> None:
    (pip,) = re.findall(r"pip install(?:[^\\\n]|\\\n)*", (RELAY / "Dockerfile").read_text())
    assert "--require-hashes" in pip and "--no-deps" in pip and ":all:" in pip
    assert {Path(word).suffix for word in pip.split() if word.startswith("/tmp/")} == {".lock"}
