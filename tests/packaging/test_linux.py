"""The Debian package, built for real and unpacked: its size, what lintian says of it, and that it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOWNLOAD_MB, INSTALLED_MB = 50, 150

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        sys.platform != "linux" or not shutil.which("dpkg-deb"), reason="builds a package of Debian's"
    ),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    out = tmp_path_factory.mktemp("out")
    done = subprocess.run([ROOT / "packaging" / "build", "linux", "--out", out], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = out.glob("*.deb")
    yield made


@pytest.fixture(scope="module")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("root with a space, ä")
    subprocess.run(["dpkg-deb", "-x", package, to], check=True)
    return to


def test_it_is_small(package: Path, unpacked: Path) -> None:
    installed = sum(
        path.stat().st_size for path in unpacked.rglob("*") if path.is_file() and not path.is_symlink()
    )
    assert package.stat().st_size <= DOWNLOAD_MB * 1e6
    assert installed <= INSTALLED_MB * 2**20


def test_debians_own_judges_have_nothing_to_say(package: Path, unpacked: Path) -> None:
    if not shutil.which("lintian"):
        pytest.skip("lintian is not installed")
    done = subprocess.run(["lintian", "--fail-on", "error", package], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    for tool, *files in (
        ("desktop-file-validate", "usr/share/applications/shoal.desktop"),
        ("appstreamcli", "usr/share/metainfo/io.github.shoal.Shoal.metainfo.xml"),
    ):
        if shutil.which(tool):
            words = ["validate", "--no-net"] if tool == "appstreamcli" else []
            subprocess.run([tool, *words, *(unpacked / file for file in files)], check=True)


def test_it_starts_without_anything_of_this_project(unpacked: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.defpath, "HOME": str(tmp_path), "SHOAL_PACKS": str(tmp_path / "packs")}
    program = unpacked / "usr" / "bin" / "shoal"
    done = subprocess.run([program, "--help"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0 and "window" in done.stdout
    done = subprocess.run([program, "chat"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 1 and "pack install" in done.stderr and len(done.stderr.splitlines()) == 1
