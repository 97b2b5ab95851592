"""The release's own tools: what they sign and check, what they refuse, and that the app believes what they
made."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from app.install.packs import manifest
from app.install.updates import feed
from tests.packs.wheels import encoded, plain, wheel

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "packaging" / "release"
SECRET, OTHER = "11" * 32, "22" * 32
BASE, FEED = "https://example.org/v0.1.0", "https://example.org/latest/shoal-release.json"
VERSION = "0.1.0"


def tool(name: str, *words: object, secret: str = SECRET, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SHOAL_RELEASE_KEY": secret, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, str(TOOLS / name), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert SECRET not in done.stdout + done.stderr
    assert not done.returncode or done.stderr.startswith(("usage", f"packaging/release/{name}: ")), done.stderr
    return done


@pytest.fixture(scope="module")
def public() -> str:
    return tool("sign", "public").stdout.strip()


@pytest.fixture(scope="module")
def notes() -> ModuleType:
    sys.path.insert(0, str(TOOLS))
    try:
        import notes

        return notes
    finally:
        sys.path.remove(str(TOOLS))


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder with what the three systems build, as far as anybody here looks into it."""
    folder = tmp_path / "dist"
    folder.mkdir()
    for name in ("shoal_{}_amd64.deb", "Shoal-{}-x86_64", "shoal-{}-setup.exe", "Shoal-{}-arm64.dmg"):
        (folder / name.format(VERSION)).write_bytes(name.encode() * 100)
    (folder / "pack-linux-cpu.json").write_text("{}", encoding="ascii")
    return folder


def closed(folder: Path, public: str, *more: object) -> subprocess.CompletedProcess[str]:
    return tool("close", folder, "--version", VERSION, "--date", "2026-11-21", "--keys", public, *more)


def test_what_is_signed_is_believed_and_what_was_changed_is_not(public: str, tmp_path: Path) -> None:
    file = tmp_path / "SHA256SUMS"
    file.write_bytes(b"some sums\n")
    assert tool("sign", "sign", file).returncode == 0
    assert re.fullmatch(rb"[0-9a-f]{128}\n", (tmp_path / "SHA256SUMS.sig").read_bytes())
    assert tool("sign", "check", f"{'0' * 64},{public}", file).returncode == 0
    assert "not signed" in tool("sign", "check", "0" * 64, file).stderr
    file.write_bytes(b"some sums!\n")
    assert "not signed" in tool("sign", "check", public, file).stderr
    assert "holds no secret key" in tool("sign", "sign", file, secret="11").stderr


def test_the_app_finds_the_release_and_everybody_can_check_it(public: str, built: Path, tmp_path: Path) -> None:
    done = closed(built, public, "--page", "https://example.org/latest", "--text", tmp_path / "text.md")
    assert done.returncode == 0, done.stderr
    content, signature = ((built / f"shoal-release.json{end}").read_bytes() for end in ("", ".sig"))
    seen = feed.verify(content, signature, (public,), now=datetime.now(UTC))
    assert seen.version == VERSION and seen.page == "https://example.org/latest"
    assert seen.notes["en"] and (tmp_path / "text.md").read_text(encoding="utf-8").startswith("- ")
    listed = dict(line.split("  ")[::-1] for line in (built / "SHA256SUMS").read_text().splitlines())
    others = {path.name for path in built.iterdir()} - {"SHA256SUMS", "SHA256SUMS.sig"}
    assert listed.keys() == {name for name in others if not name.startswith("shoal-release.json")}
    assert tool("sign", "check", public, built / "SHA256SUMS").returncode == 0
    again = tool("close", built, "--renew", "--keys", public)
    fresh = feed.read_feed((built / "shoal-release.json").read_bytes())
    assert again.returncode == 0 and fresh.serial > seen.serial
    assert fresh.expires >= seen.expires


def test_half_a_release_is_refused(public: str, built: Path) -> None:
    assert "none of the public keys" in closed(built, "0" * 64).stderr
    (built / f"Shoal-{VERSION}-arm64.dmg").unlink()
    refused = closed(built, public)
    assert refused.returncode == 1 and "arm64.dmg" in refused.stderr and "setup.exe" not in refused.stderr
    assert not (built / "SHA256SUMS").exists()
    (built / "shoal-release.json").write_text("{}", encoding="ascii")
    assert tool("close", built, "--renew", "--keys", public).returncode == 1


def test_the_packs_get_the_releases_key_and_the_app_their_addresses(public: str, tmp_path: Path) -> None:
    packs = tmp_path / "packs"
    packs.mkdir()
    for system, name in (("linux", "cpu"), ("linux", "cuda"), ("windows", "cpu"), ("macos", "mlx")):
        content, signature = encoded({**plain(dict([wheel("some")])), "system": system, "name": name})
        (packs / f"pack-{system}-{name}.json").write_bytes(content)
        (packs / f"pack-{system}-{name}.json.sig").write_bytes(signature)
    words = ("--packs", packs, "--base", BASE, "--feed", FEED, "--out", tmp_path / "trust")
    assert "none of the public keys" in tool("seal", *words, "--keys", public, secret=OTHER).stderr
    done = tool("seal", *words, "--keys", public)
    assert done.returncode == 0, done.stderr
    for system, names in (("linux", ["cpu", "cuda"]), ("windows", ["cpu"]), ("macos", ["mlx"])):
        known = feed.trust(tmp_path / "trust" / system / "release.json")
        assert (
            known.feeds == (FEED,)
            and known.keys == (public,)
            and sorted(known.manifests) == names == sorted(known.offers)
        )
        for name, address in known.manifests.items():
            assert address == f"{BASE}/pack-{system}-{name}.json"
            raw = (packs / f"pack-{system}-{name}.json").read_bytes()
            manifest.read_manifest(raw, (packs / f"pack-{system}-{name}.json.sig").read_bytes(), known.keys)
    (packs / "pack-macos-mlx.json").unlink()
    assert "no pack for macos" in tool("seal", *words, "--keys", public).stderr
    (packs / "pack-windows-cpu.json").rename(packs / "pack-macos-cpu.json")
    assert tool("seal", *words, "--keys", public).returncode == 1


def test_only_the_version_that_the_project_has_is_released() -> None:
    right = tool("check", f"v{VERSION}")
    assert right.returncode == 0, right.stderr
    assert re.fullmatch(rf"version={VERSION}\nepoch=\d+\n", right.stdout)
    assert "tag the commit" in tool("check", "v9.9.9").stderr


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for gh is a shell script")
def test_a_python_with_another_digest_is_thrown_away(tmp_path: Path) -> None:
    gh = tmp_path / "gh"
    gh.write_text(
        '#!/bin/sh\nwhile [ "$1" != --pattern ]; do shift; done\necho no python > "$4/$2"\n', encoding="ascii"
    )
    gh.chmod(gh.stat().st_mode | stat.S_IXUSR)
    done = tool("python", "macos", tmp_path / "engine", path=str(tmp_path))
    assert done.returncode == 1 and "another SHA-256" in done.stderr
    assert not list((tmp_path / "engine").iterdir())
    known = json.loads((TOOLS / "python.json").read_text(encoding="utf-8"))["files"]
    assert known.keys() == {"macos", "windows"}


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for the program is a shell script")
def test_a_program_that_does_not_stay_is_not_released(tmp_path: Path) -> None:
    program = tmp_path / "shoal"
    for body, said in (
        ("echo nothing", "names no window"),
        ('case "$1" in --help) echo window ;; *) echo broken; exit 1 ;; esac', "did not stay (broken)"),
    ):
        program.write_text(f"#!/bin/sh\n{body}\n", encoding="ascii")
        program.chmod(0o755)
        assert said in tool("try", "--program", program).stderr
    assert "no installer" in tool("try", tmp_path / "x.zip").stderr


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.skipif(sys.platform != "linux", reason="builds a package of Debian's")
def test_a_whole_release_from_the_tag_to_the_list(tmp_path: Path) -> None:
    """Packs are made of what pip finds; the app is built, started with the sealed pack, and learns a round."""
    wheels = ROOT / ".venv" / "shoal-wheels"
    built = next(wheels.glob("*/*.whl"), None)
    words = ["--wheels", str(built.parent)] if built else []
    words += ["--pip"] if list(Path(os.environ.get("PIP_FIND_LINKS", "/nowhere")).glob("torch-*+cpu-*")) else []
    done = subprocess.run(
        [sys.executable, TOOLS / "rehearse", tmp_path, *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
