"""packaging/packs/make: pip's own answer becomes a manifest that the app installs from."""

from __future__ import annotations

import doctest
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.install import InstallError
from app.install.packs import manifest, place
from app.install.packs import offered as source
from app.install.packs.installing import PackInstaller
from tests.packs.wheels import Host, wheel, write_out

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "packaging" / "packs" / "make"
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def make(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOL), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={name: value for name, value in os.environ.items() if not name.startswith("PIP_")},
    )


@pytest.fixture
def secret(tmp_path: Path) -> tuple[Path, str]:
    """The file with the secret half, and the public one."""
    path = tmp_path / "secret"
    done = make("keys", path)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_mode & 0o077 == 0 or os.name == "nt"
    return path, done.stdout.strip()


def offered(host: Host) -> str:
    """A page that lists the host's wheels as an index does."""
    rows = [
        f'<a href="{name}#sha256={hashlib.sha256(content).hexdigest()}">{name}</a><br>'
        for name, content in host.files.items()
    ]
    host.files["all.html"] = f"<!DOCTYPE html><html><body>{''.join(rows)}</body></html>".encode()
    return f"{host.url}/all.html"


def test_a_pack_is_made_and_installed(
    host: Host, secret: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, content = wheel("shoal_unwanted")
    host.files[name] = content
    page, out = offered(host), tmp_path / "out"
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("shoal-small==1.0\nshoal-large\nshoal_unwanted\nuv\n")
    options = ["--version", "1.0", "--key", secret[0], "--out", out, "--imports", "shoal_small"]
    command = ["pack", "cpu", *options, "--requirements", wanted, "--without", "shoal-unwanted"]
    done = make(*command, "--", "--no-index", "--find-links", page)
    assert done.returncode == 0, done.stderr
    assert "3 files" in done.stdout and sorted(path.name for path in out.iterdir()) == [
        "cpu.json",
        "cpu.json.sig",
    ]
    found = source.load_manifest(str(out / "cpu.json"), (secret[1],))
    assert [(one.name, one.size, one.url) for one in found.manifest.wheels] == [
        (one, len(host.files[f"{one}-1.0-py3-none-any.whl"]), f"{host.url}/{one}-1.0-py3-none-any.whl")
        for one in ("shoal_large", "shoal_small", "uv")
    ]
    assert found.manifest.pythons == (HERE,) and found.manifest.imports == ("shoal_small",)

    done = make(*command, "--carry", "--", "--no-index", "--find-links", page)
    assert done.returncode == 0, done.stderr
    carried = source.load_manifest(str(out / "cpu.json"), (secret[1],))
    assert {path.name for path in out.glob("*.whl")} == {one.url for one in carried.manifest.wheels}
    monkeypatch.setenv("SHOAL_PACKS", str(tmp_path / "packs"))
    PackInstaller(tmp_path / "packs", lambda _: None).install(carried, out)
    assert place.python() is not None

    trusted = tmp_path / "release.json"
    named = ("--manifest", f"cpu={host.url}/cpu.json", "--out", trusted)
    assert make("trust", secret[1], *named, "--pack", out / "cpu.json").returncode == 0
    told = manifest.trust(trusted)
    assert (told.keys, told.manifests) == ((secret[1],), {"cpu": f"{host.url}/cpu.json"})
    size = sum(wheel.size for wheel in carried.manifest.wheels)
    assert told.offers["cpu"].bytes == size and told.offers["cpu"].version == "1.0"
    done = make("trust", "ab" * 32, *named, "--pack", out / "cpu.json")
    assert done.returncode == 1 and "signed" in done.stderr


@pytest.mark.long
def test_files_of_this_disk_lie_beside_the_manifest(
    host: Host, secret: tuple[Path, str], tmp_path: Path
) -> None:
    """As llama-cpp-python does, of which a release builds its own wheel."""
    folder, out, wanted = tmp_path / "built", tmp_path / "out", tmp_path / "wanted.txt"
    folder.mkdir()
    name, content = wheel("shoal_small")
    (folder / name).write_bytes(content)
    wanted.write_text("shoal_small\nuv\n")
    write_out({}, folder)
    options = ["--version", "1.0", "--key", secret[0], "--out", out, "--imports", "shoal_small"]
    command = ["pack", "cpu", *options, "--requirements", wanted, "--", "--no-index", "--find-links"]
    done = make(*command, folder)
    assert done.returncode == 0, done.stderr
    assert (out / name).read_bytes() == content
    assert source.load_manifest(str(out / "cpu.json"), (secret[1],)).manifest.wheels[0].url == name
    with pytest.raises(InstallError, match="isn't signed"):
        source.load_manifest(str(out / "cpu.json"), ("ab" * 32,))

    done = make(*command, tmp_path / "nowhere")
    assert done.returncode == 1 and "failed" in done.stderr and done.stderr.count("\n") == 1
    assert make("keys", secret[0]).returncode == 1
    assert "no secret key" in make(*command[:5], tmp_path / "none", *command[6:], folder).stderr


def release() -> Any:
    sys.path.insert(0, str(TOOL.parent))  # as when it is a program
    specification = importlib.util.spec_from_file_location("release", TOOL.with_name("release.py"))
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    sys.path.remove(str(TOOL.parent))
    return module


def test_each_file_comes_once_with_the_pythons_it_is_for() -> None:
    tool = release()
    assert doctest.testmod(tool).failed == 0
    both = tool.ResolvedFile("a", "1", "https://example.org/a-1-py3-none-any.whl", "0" * 64)
    older = tool.ResolvedFile(
        "b", "1.0+cpu", "https://example.org/b-1.0%2Bcpu-cp311-cp311-linux_x86_64.whl", "1" * 64
    )
    newer = tool.ResolvedFile(
        "b", "1.0+cpu", "https://example.org/b-1.0%2Bcpu-cp313-cp313-linux_x86_64.whl", "2" * 64
    )
    resolved = {"3.11": [both, older], "3.13": [both, newer]}
    rows = tool.merged(resolved, {found.url: 10 for found in (both, older, newer)})
    assert [(row["file"], row.get("pythons")) for row in rows] == [
        ("a-1-py3-none-any.whl", None),
        ("b-1.0+cpu-cp311-cp311-linux_x86_64.whl", ["3.11"]),
        ("b-1.0+cpu-cp313-cp313-linux_x86_64.whl", ["3.13"]),
    ]
    for row in rows:
        msgspec.convert(row, manifest.Wheel, strict=False)


def uv() -> str:
    """uv, as packaging/build installs it or as it is on the PATH; else the test is skipped."""
    beside = ROOT / "build" / "python" / ("Scripts/uv.exe" if os.name == "nt" else "bin/uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        pytest.skip("uv is not installed: packaging/requirements/build.txt has it")
    return found


@pytest.mark.long
def test_a_pack_for_another_system_is_made_here_and_refused_here(
    host: Host, secret: tuple[Path, str], tmp_path: Path
) -> None:
    """uv chooses the wheels of that system and of each Python; the app says whose they are."""
    name, content = wheel("shoal_native")
    for tag in ("cp312-cp312-macosx_14_0_arm64", "cp313-cp313-macosx_14_0_arm64", "cp313-cp313-win_amd64"):
        host.files[name.replace("py3-none-any", tag)] = content
    host.files.update([wheel("shoal_unwanted")])
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("shoal-native==1.0\nshoal-small\nshoal-unwanted\nuv\n")
    out = tmp_path / "out"
    options = ["--key", secret[0], "--out", out, "--imports", "shoal_small", "--without", "shoal_unwanted"]
    command = ["pack", "mlx", "--version", "1.0", "--for", "macos-aarch64", "--uv", uv(), *options]
    versions = ["--python-version", "3.12", "--python-version", "3.13", "--requirements", wanted]
    index = ["--no-index", "--find-links", offered(host), "--no-cache"]
    done = make(*command, *versions, "--", *index)
    assert done.returncode == 0, done.stderr
    found = source.load_manifest(str(out / "mlx.json"), (secret[1],)).manifest
    assert (found.system, found.machine, found.least) == ("macos", "aarch64", "14.0") and found.made > 0
    assert [(one.file.partition("-1.0-")[2], one.pythons) for one in found.wheels] == [
        ("cp312-cp312-macosx_14_0_arm64.whl", ("3.12",)),
        ("cp313-cp313-macosx_14_0_arm64.whl", ("3.13",)),
        ("py3-none-any.whl", ()),
        ("py3-none-any.whl", ()),
    ]
    if not (sys.platform == "darwin" and os.uname().machine == "arm64"):
        with pytest.raises(InstallError, match="is for macos on aarch64, and this is"):
            manifest.check_here(found)

    done = make(
        *[one if one != "macos-aarch64" else "linux-aarch64" for one in command], *versions, "--", *index
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr


def test_pytorchs_build_is_that_of_the_pack() -> None:
    tool = release()
    for name, system, version, said in (
        ("cpu", "linux-x86_64", "2.13.0", "for NVIDIA cards"),
        ("cpu", "linux-x86_64", "2.13.0+cpu", ""),
        ("cuda", "linux-x86_64", "2.13.0+cpu", "for processors"),
        ("cuda", "linux-x86_64", "2.13.0+cu130", ""),
        ("cpu", "windows-x86_64", "2.13.0", ""),
        ("cuda", "windows-x86_64", "2.13.0", "for processors"),
        ("mlx", "macos-aarch64", "2.13.0", ""),
    ):
        wanted = tool.PackRequest(*[None] * len(tool.PackRequest._fields))._replace(name=name, system=system)
        rows = [tool.ResolvedFile("torch", version, "", "")]
        if said:
            with pytest.raises(tool.ReleaseError, match=said):
                tool._check_torch(wanted, rows)
        else:
            tool._check_torch(wanted, rows)
