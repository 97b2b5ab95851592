"""The Debian package, built for real and unpacked: its size, what lintian says, and that it starts. And what it
is made with: ICU's tables without those that Qt does not read, and the same bytes from the same commit."""

from __future__ import annotations

import hashlib
import importlib.util
import json
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


@pytest.mark.long
def test_it_is_small(package: Path, unpacked: Path) -> None:
    installed = sum(
        path.stat().st_size for path in unpacked.rglob("*") if path.is_file() and not path.is_symlink()
    )
    assert package.stat().st_size <= DOWNLOAD_MB * 1e6
    assert installed <= INSTALLED_MB * 2**20


@pytest.mark.long
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


@pytest.mark.long
def test_it_starts_without_anything_of_this_project(unpacked: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.defpath, "HOME": str(tmp_path), "SHOAL_PACKS": str(tmp_path / "packs")}
    program = unpacked / "usr" / "bin" / "shoal"
    done = subprocess.run([program, "--help"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0 and "window" in done.stdout
    done = subprocess.run([program, "chat"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 1 and "pack install" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.long
def test_what_ends_a_running_shoal_is_a_script_of_debians(
    unpacked: Path, package: Path, tmp_path: Path
) -> None:
    """prerm, on a system where nothing of Shoal runs: it says what stays, and leaves no trace."""
    subprocess.run(["dpkg-deb", "-e", package, tmp_path / "control"], check=True)
    done = subprocess.run([tmp_path / "control" / "prerm", "remove"], capture_output=True, text=True)
    assert done.returncode == 0 and "~/.local/share/shoal" in done.stdout and done.stderr == ""


TREE = """
import sys
from pathlib import Path
root = Path(sys.argv[1])
sys.path.insert(0, str(root / "packaging"))
from frozen.bundle import WORK, bundle
from linux import tree
tree.lay_out(bundle("/usr/bin/python3"), WORK / "linux")
"""


@pytest.mark.long
def test_the_same_commit_gives_the_same_bytes_in_another_folder(tmp_path: Path) -> None:
    found = []
    for name in ("one", "another folder/here"):
        clone = tmp_path / name
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        done = subprocess.run([sys.executable, "-c", TREE, clone], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        found.append(contents(clone / "build" / "linux"))
    one, another = found
    assert one.keys() == another.keys()
    assert [path for path in one if one[path] != another[path]] == []


def contents(tree: Path) -> dict[str, tuple[int, float, str]]:
    """Rights, date and digest of everything."""
    return {
        str(path.relative_to(tree)): (
            path.lstat().st_mode,
            path.lstat().st_mtime,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in tree.rglob("*")
    }


SORTED = """
import functools, json
from PySide6.QtCore import QCollator, QDateTime, QLocale, QTimeZone
words = "zebra Zoë Äpfel apfel ähre Øre öl ost côte coté cote côté ñandú nube llama luz straße".split()
words += "čaj čas 10 9 中文 日本 Å aa".split()
found = {}
for name in ("C", "en_US", "de_DE", "sv_SE", "da_DK", "cs_CZ", "es_ES", "ja_JP", "zh_CN", "fr_CA", "tr_TR"):
    collator = QCollator(QLocale(name))
    found[name] = sorted(words, key=functools.cmp_to_key(collator.compare))
zone = QTimeZone(b"Europe/Berlin")
for name in ("en_US", "de_DE"):
    kinds = QTimeZone.TimeType.StandardTime, QTimeZone.NameType.LongName
    found["zone " + name] = zone.displayName(*kinds, QLocale(name))
used = [line.split()[-1] for line in open("/proc/self/maps") if "libicudata" in line]
print(json.dumps([used[0], found]))
"""


def test_qt_sorts_as_before_with_few_of_icus_tables(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("PySide6")
    if spec is None or not shutil.which("ld"):
        pytest.skip("PySide6 and the linker of binutils are needed")
    assert spec.origin is not None
    libraries = list((Path(spec.origin).parent / "Qt" / "lib").glob("libicudata.so.*"))
    if not libraries:
        pytest.skip("this Qt brings no tables of ICU's")
    library = tmp_path / libraries[0].name
    shutil.copyfile(libraries[0], library)
    found = importlib.util.spec_from_file_location("tables", ROOT / "packaging" / "linux" / "tables.py")
    assert found is not None and found.loader is not None
    tables = importlib.util.module_from_spec(found)
    found.loader.exec_module(tables)
    tables.shrink(library, {"en", "de"})
    assert library.stat().st_size < libraries[0].stat().st_size / 4
    said = []
    for place in ("", str(tmp_path)):
        environment = {**os.environ, "LD_LIBRARY_PATH": place}
        done = subprocess.run([sys.executable, "-c", SORTED], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        said.append(json.loads(done.stdout))
    assert said[1][0] == str(library) != said[0][0]
    assert said[0][1] == said[1][1]
