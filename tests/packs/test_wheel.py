"""llama.cpp's wheel for packs: small, whole, and named for the systems it runs on."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from app.install.packs import place
from app.install.packs.manifest import Wheel
from engines import remedy
from engines.llamacpp import model

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "packaging" / "packs" / "wheel"
INFO = "llama_cpp_python-0.3.36.dist-info"


def built(folder: Path, libraries: dict[str, bytes]) -> Path:
    """What CMake and pip leave: every library in two places, under three names."""
    path = folder / "llama_cpp_python-0.3.36-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("llama_cpp/__init__.py", "")
        archive.writestr("llama_cpp/server/app.py", "")
        archive.writestr("include/llama.h", "")
        archive.writestr(f"{INFO}/METADATA", "Name: llama_cpp_python\nVersion: 0.3.36\n")
        archive.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-linux_x86_64\n")
        archive.writestr(f"{INFO}/RECORD", "")
        for name, body in libraries.items():
            for copy in (f"{name}.so", f"{name}.so.0", f"{name}.so.0.1.2"):
                archive.writestr(f"lib/{copy}", body)
                archive.writestr(f"llama_cpp/lib/{copy}", body)
    return path


def slim(path: Path, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, out, "--from", path], capture_output=True, text=True, timeout=300
    )


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is Linux's")
def test_a_wheel_says_which_glibc_it_needs_and_brings_each_library_once(tmp_path: Path) -> None:
    libraries = {
        "libllama": b"\x00GLIBC_2.17\x00",
        "libggml": b"",
        "libggml-cpu": b"GLIBC_2.4\x00GLIBC_2.29\x00",
    }
    path, out = built(tmp_path, libraries), tmp_path / "out"
    done = slim(path, out)
    assert done.returncode == 0, done.stderr
    (made,) = out.iterdir()
    assert made.name.startswith("llama_cpp_python-0.3.36-py3-none-manylinux_2_29_")
    with zipfile.ZipFile(made) as archive:
        names = set(archive.namelist())
    lib = {f"llama_cpp/lib/{name}" for name in ("libllama.so", "libggml.so", "libggml.so.0", "libggml-cpu.so")}
    info = {f"{INFO}/{name}" for name in ("METADATA", "WHEEL", "RECORD")}
    assert names == {*lib, *info, "llama_cpp/__init__.py", "llama_cpp/lib/libggml-cpu.so.0"}
    content = made.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    Wheel(
        name="llama-cpp-python",
        version="0.3.36",
        file=made.name,
        url=made.name,
        size=len(content),
        sha256=digest,
    )
    assert slim(path, tmp_path / "again").returncode == 0
    assert (tmp_path / "again" / made.name).read_bytes() == content


def test_a_wheel_without_llamacpp_is_refused(tmp_path: Path) -> None:
    done = slim(built(tmp_path, {"libggml": b""}), tmp_path / "out")
    assert done.returncode == 1 and "build it anew" in done.stderr and done.stderr.count("\n") == 1


def test_a_processor_that_the_wheel_is_not_for_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(model, "features", lambda: ())
    monkeypatch.setattr(model.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(model, "library", lambda: None)
    assert remedy.PACK_FILE == place.MARK and model.why_unavailable() == ""  # a checkout's was built here
    (tmp_path / model.PROCESSOR_FILE).write_text("fpu avx2 avx512f avx512_bf16")  # the checkout has moved since
    assert (
        "built for another processor, with avx2 and avx512_bf16 and avx512f: build it"
        in model.why_unavailable()
    )
    (tmp_path / model.PROCESSOR_FILE).unlink()
    (tmp_path / place.MARK).touch()
    assert "needs a processor with AVX2" in model.why_unavailable()
    monkeypatch.setattr(model, "features", lambda: ("avx2",))
    assert model.why_unavailable() == ""
