"""The pins: exact, complete, and what is really installed here."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

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


@pytest.mark.parametrize("name", ["base.txt", "gym.txt", "test.txt", "llamacpp.txt", "mlx.txt"])
def test_every_line_names_one_exact_version_and_no_place_to_get_it(name: str) -> None:
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9.]*[0-9]( ; .+)?", line), line
        assert "://" not in line and "--" not in line


def test_nothing_is_pinned_twice() -> None:
    assert not pinned("base.txt").keys() & pinned("test.txt").keys()
    for optional in ("gym.txt", "llamacpp.txt", "mlx.txt"):
        assert not pinned("base.txt").keys() & pinned(optional).keys()


def test_torch_is_pinned_by_itself() -> None:
    assert str(pinned("base.txt")["torch"]) == "torch==2.13.0"


def test_what_is_installed_is_what_is_pinned() -> None:
    for name, requirement in {**pinned("base.txt"), **pinned("gym.txt"), **pinned("test.txt")}.items():
        if applies(requirement, set()):
            wanted = next(iter(requirement.specifier)).version
            assert Version(importlib.metadata.version(name)).public == Version(wanted).public, name


@pytest.mark.parametrize("name", ["llamacpp.txt", "mlx.txt"])
def test_what_is_optional_is_as_pinned_where_it_is_there(name: str) -> None:
    for package, requirement in pinned(name).items():
        if applies(requirement, set()):
            if not installed(package):
                pytest.skip(f"{package} is not installed")
            assert installed(package) == next(iter(requirement.specifier)).version, package


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
