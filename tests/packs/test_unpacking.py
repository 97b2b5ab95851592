"""Wheels are unpacked into the same files as pip's, and nothing is written anywhere else."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.install import InstallError
from app.install.packs import wheels as wheel_files
from app.install.packs.manifest import Wheel
from app.install.packs.programs import damaged_file

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
SKIP = ("*/include/*", "*.pyi")


def made(folder: Path, name: str = "odd", files: dict[str, bytes] | None = None, **changed: Any) -> Wheel:
    """A wheel with all that wheels can have."""
    info = f"{name}-1.0.dist-info"
    data = f"{name}-1.0.data"
    body = {
        f"{name}/__init__.py": b"",
        f"{name}/deep/er/größe, with a comma.py": b"A = 1\n",
        f"{name}/large.bin": hashlib.shake_128(b"x").digest(6_000_000),
        f"{name}/include/a.h": b"int a;\n",
        f"{name}/types.pyi": b"A: int\n",
        f"{data}/purelib/{name}_more.py": b"B = 2\n",
        f"{data}/platlib/{name}_most.py": b"C = 3\n",
        f"{data}/data/share/{name}/note.txt": b"note",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **(files or {}),
    }
    rows = []
    for path, content in body.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        written = f'"{path}"' if "," in path else path
        rows.append(f"{written},sha256={digest},{len(content)}")
    body[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,\n"]).encode()
    body = {path: content for path, content in body.items() if path not in changed.get("without", ())}
    file = f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder / file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in body.items():
            one = zipfile.ZipInfo(path)
            one.external_attr = (changed.get("modes", {}).get(path) or stat.S_IFREG | 0o644) << 16
            one.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(one, content)
    content = (folder / file).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return Wheel(name=name, version="1.0", file=file, url=file, size=len(content), sha256=digest)


def filled(tmp_path: Path, wheels: list[Wheel], skip: tuple[str, ...] = ()) -> tuple[Path, list[int]]:
    """An environment's folder, and how the bytes grew."""
    environment = tmp_path / "umgebung, größer"
    tasks = wheel_files.plan_unpacking(wheels, tmp_path, environment, HERE, skip)
    grew: list[int] = []
    wheel_files.unpack(tasks, grew.append)
    assert grew[-1] == sum(sum(task.sizes) for task in tasks)
    return environment, grew


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def packages(environment: Path) -> Path:
    return environment / ("Lib" if os.name == "nt" else f"lib/python{HERE}") / "site-packages"


def test_the_same_files_as_pips(tmp_path: Path) -> None:
    """pip is the reference; what it adds is its own note of how a package came."""
    program = "odd/bin/tool"
    wheel = made(tmp_path, files={program: b"#!x"}, modes={program: stat.S_IFREG | 0o755})
    environment, grew = filled(tmp_path, [wheel])
    theirs = tmp_path / "theirs"
    command = ["install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--prefix", theirs]
    subprocess.run([sys.executable, "-m", "pip", *command, tmp_path / wheel.file], check=True)
    expected, found = files_below(theirs), files_below(environment)
    notes = {
        name for name in expected if name.rpartition("/")[2] in ("INSTALLER", "REQUESTED", "direct_url.json")
    }
    assert found.keys() == expected.keys() - notes
    record = next(name for name in found if name.endswith("/RECORD"))
    assert {name: body for name, body in found.items() if name != record} == {
        name: body for name, body in expected.items() if name not in {record, *notes}
    }
    ours = [row.replace("\\", "/") for row in found[record].decode().splitlines()]
    added = [row for row in expected[record].decode().splitlines() if not any(one in row for one in ours)]
    assert all(any(note.rpartition("/")[2] in row for note in notes) for row in added), added
    assert not damaged_file(environment) and grew == sorted(grew) and len(grew) > 2
    assert os.name == "nt" or os.access(packages(environment) / program, os.X_OK)


def test_what_nobody_needs_is_left_out_and_not_missed(tmp_path: Path) -> None:
    environment, _ = filled(tmp_path, [made(tmp_path)], SKIP)
    names = files_below(packages(environment)).keys()
    assert "odd/__init__.py" in names and not any(name.endswith((".h", ".pyi")) for name in names)
    assert not damaged_file(environment)
    (packages(environment) / "odd_more.py").write_text("B = 3\n")
    assert damaged_file(environment) == "odd_more.py is damaged"
    (packages(environment) / "odd_more.py").unlink()
    assert damaged_file(environment) == "odd_more.py is missing"


HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("no wheel may hold", {"files": {"../evil.py": b""}}),
    ("no wheel may hold", {"files": {"/evil.py": b""}}),
    ("no wheel may hold", {"files": {"odd//evil.py": b""}}),
    ("no wheel may hold", {"files": {"odd/..\\..\\evil.py": b""}}),
    ("no wheel may hold", {"files": {"C:evil.py": b""}}),
    ("no wheel may hold", {"files": {"odd-1.0.data/data/../../evil": b""}}),
    ("no wheel may hold", {"files": {"odd/link": b"/etc"}, "modes": {"odd/link": stat.S_IFLNK | 0o777}}),
    ("isn't what its name says", {"files": {"other-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\n"}}),
    ("isn't what its name says", {"files": {"odd-1.0.dist-info/WHEEL": b"Wheel-Version: 2.0\n"}}),
    ("is damaged", {"without": ("odd-1.0.dist-info/WHEEL",)}),
    ("is damaged", {"without": ("odd-1.0.dist-info/RECORD",)}),
]


@pytest.mark.parametrize("said, changed", HOSTILE, ids=str)
def test_a_wheel_never_writes_elsewhere(said: str, changed: dict[str, Any], tmp_path: Path) -> None:
    wheel = made(tmp_path, **changed)
    with pytest.raises(InstallError, match=said) as caught:
        wheel_files.plan_unpacking([wheel], tmp_path, tmp_path / "to", HERE)
    assert str(caught.value).endswith(".") and not (tmp_path / "to").exists()


def test_two_packages_never_write_over_each_other(tmp_path: Path) -> None:
    one = made(tmp_path, "one", {"shared/__init__.py": b""})
    wheel_files.plan_unpacking(
        [one, made(tmp_path, "two", {"shared/__init__.py": b""})], tmp_path, tmp_path / "to", HERE
    )
    for path in ("shared/__init__.py", "Shared/__INIT__.py"):
        two = made(tmp_path, "two", {path: b"evil"})
        with pytest.raises(InstallError, match="write over"):
            wheel_files.plan_unpacking([one, two], tmp_path, tmp_path / "to", HERE)


def test_damage_is_found_before_the_file_is_used(tmp_path: Path) -> None:
    wheel = made(tmp_path)
    environment = tmp_path / "to"
    tasks = wheel_files.plan_unpacking([wheel], tmp_path, environment, HERE)
    content = bytearray((tmp_path / wheel.file).read_bytes())
    content[-40] ^= 1
    (tmp_path / wheel.file).write_bytes(content)
    with pytest.raises(InstallError, match="is damaged or another file"):
        wheel_files.unpack(tasks, lambda _: None)
    assert not environment.exists()
    (tmp_path / wheel.file).write_bytes(b"no zip")
    with pytest.raises(InstallError, match="is damaged"):
        wheel_files.plan_unpacking([wheel], tmp_path, environment, HERE)
