from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from app.install.launcher import pythons
from app.install.launcher.environment import Environment
from app.install.launcher.pythons import SetupError

ROOT = Path(__file__).parents[2]

posix = pytest.mark.skipif(os.name == "nt", reason="uses shell scripts as interpreters")


def interpreter(folder: Path, name: str, answer: str) -> list[str]:
    """Something that answers like a Python of another kind."""
    script = folder / name
    script.write_text(f"#!/bin/sh\n{answer}\n")
    script.chmod(0o755)
    return [str(script)]


def launcher() -> ModuleType:
    loader = SourceFileLoader("shoal_launcher", str(ROOT / "shoal"))
    module = ModuleType(loader.name)
    module.__file__ = str(ROOT / "shoal")
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "bits", "suits"),
    [
        ((3, 10), 64, False),
        ((3, 11), 64, True),
        ((3, 14), 64, True),
        ((3, 15), 64, False),
        ((3, 12), 32, False),
    ],
)
def test_which_pythons_suit(version: tuple[int, int], bits: int, suits: bool) -> None:
    assert pythons.suits(version, bits) is suits


@posix
def test_the_first_suitable_one_is_taken(tmp_path: Path) -> None:
    commands = [
        interpreter(tmp_path, "placeholder", "echo 'command not found' >&2; exit 127"),
        interpreter(tmp_path, "silent", "exit 0"),
        interpreter(tmp_path, "old", "echo 3 9 64; echo /old"),
        interpreter(tmp_path, "narrow", "echo 3 12 32; echo /narrow"),
        [str(tmp_path / "missing")],
        interpreter(tmp_path, "good", "echo 3 12 64; echo /good"),
        interpreter(tmp_path, "later", "echo 3 13 64; echo /later"),
    ]
    assert pythons.find(commands) == "/good"


@posix
def test_without_one_the_sentence_names_what_is_there_and_what_to_do(tmp_path: Path) -> None:
    commands = [interpreter(tmp_path, "old", "echo 3 9 64; echo /old")]
    with pytest.raises(
        SetupError, match=r"between 3\.11 and 3\.14, and this computer has 3\.9; install"
    ) as caught:
        pythons.find(commands)
    assert "\n" not in str(caught.value)
    with pytest.raises(SetupError, match="has none that starts"):
        pythons.find([])


def test_an_unsuitable_python_hands_over_to_a_suitable_one(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[tuple[list[str], str]] = []
    monkeypatch.setattr(pythons, "suits_here", lambda: False)
    monkeypatch.setattr(pythons, "find", lambda: "/usr/bin/better")
    monkeypatch.setattr(pythons, "hand_over", lambda arguments, python: handed.append((arguments, python)) or 5)
    assert launcher().main(["run", "--json"]) == 5
    assert handed == [(["-E", str(ROOT / "shoal"), "run", "--json"], "/usr/bin/better")]


@posix
@pytest.mark.parametrize("spoiled", ["exit 9", "exec /no/python", "python3.6", "no python", "PYTHONHOME"])
def test_the_shell_finds_a_python_that_starts(spoiled: str, tmp_path: Path) -> None:
    """`sh shoal`, where the first `python3` on PATH, or a variable, would end `./shoal`."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    variables = {"PATH": str(tmp_path), "PYTHONWARNINGS": "error"}
    if spoiled == "PYTHONHOME":
        variables["PYTHONHOME"] = "/nowhere"
    elif spoiled == "python3.6":
        old = f'case "$*" in *"< (3, 7)"*) exit 1;; esac; exec "{sys.executable}" "$@"'
        interpreter(tmp_path, "python3", old)
    else:
        interpreter(tmp_path, "python3", spoiled if spoiled[:4] == "exec" else "exit 9")
    if spoiled != "no python":
        interpreter(tmp_path, "python", f'exec "{sys.executable}" "$@"')
    done = subprocess.run(
        ["sh", str(ROOT / "shoal"), "setup", "--help"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if spoiled == "no python":
        assert (done.returncode, done.stdout) == (1, "") and "no Python starts here" in done.stderr
    else:
        assert done.returncode == 0 and done.stdout.startswith("usage: shoal setup"), done.stderr


def test_root_is_asked_by_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    there: set[str] = set()
    monkeypatch.setattr(shutil, "which", lambda name: name if name in there else None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    assert pythons.by_root("apt-get update") == "`su -c 'apt-get update'`"
    there.add("sudo")
    assert pythons.by_root("apt-get update") == "`sudo apt-get update`"


def test_no_python_at_all_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pythons, "suits_here", lambda: False)
    monkeypatch.setattr(pythons, "candidates", list)
    assert launcher().main([]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("shoal: Shoal needs a 64-bit Python") and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "file",
    [
        "shoal",
        *(f"app/{file}.py" for file in ("__init__", "install/__init__", "install/launcher/__init__")),
        *(f"app/common/{file}.py" for file in ("__init__", "process/__init__", "process/surroundings")),
        "app/install/launcher/pythons.py",
    ],
)
def test_what_runs_first_is_readable_for_python_3_7(file: str) -> None:
    ast.parse((ROOT / file).read_text(encoding="utf-8"), feature_version=(3, 7))


@pytest.mark.parametrize(
    ("system", "machine", "c_library", "said"),
    [
        ("linux", "x86_64", "glibc 2.36", ""),
        ("linux", "aarch64", "glibc 2.39", ""),
        ("linux", "aarch64", "glibc 2.36", "2.39"),
        ("linux", "x86_64", "glibc 2.34", ""),
        ("win32", "AMD64", "", ""),
        ("darwin", "arm64", "", ""),
        ("linux", "x86_64", "musl 1.2.5", "glibc"),
        ("linux", "x86_64", "glibc 2.31", "2.31"),
        ("linux", "riscv64", "glibc 2.41", "riscv64"),
        ("darwin", "x86_64", "", "Apple Silicon"),
    ],
)
def test_a_computer_without_ready_made_packages_is_told_before_anything_is_downloaded(
    system: str, machine: str, c_library: str, said: str
) -> None:
    why = pythons.no_wheels(system, machine, c_library)
    assert bool(why) == bool(said) and said in why


@pytest.mark.parametrize(
    ("flags", "lacks"),
    [
        ("fpu ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm avx", ""),
        ("fpu ssse3 cx16 lahf_lm", "popcnt, sse4_1, sse4_2"),  # Intel's of 2006
        ("", ""),  # another system, which names none
    ],
)
def test_a_processor_that_would_stop_at_numpy_is_told(
    flags: str, lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pythons, "processor", lambda: flags)
    why = pythons.no_wheels("linux", "x86_64", "glibc 2.36")
    assert bool(why) == bool(lacks) and lacks in why
    assert pythons.no_wheels("linux", "aarch64", "glibc 2.39") == ""


@posix
def test_nothing_is_made_where_no_package_would_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pythons, "no_wheels", lambda: "No packages for this computer.")
    (tmp_path / "packaging").symlink_to(ROOT / "packaging")
    with pytest.raises(SetupError, match="No packages for this computer"):
        Environment(tmp_path).ensure("run")
    assert [one.name for one in tmp_path.iterdir()] == ["packaging"]
