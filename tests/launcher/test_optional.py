"""llama.cpp built in the background, by the real launcher and pip, with a source package of our own that stands
in: it needs no compiler, and does what FAKE_BUILD says."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import signal
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from app.desktop import apps
from app.install.launcher import optional, pythons, stamp, start
from engines.llamacpp import model as library
from tests.launcher.conftest import LIMIT, FirstStart, Launch, make_wheel, packages_of
from tests.launcher.test_setup import finish

BACKEND = """
import base64, hashlib, os, sys, time, zipfile
sys.path.insert(0, os.path.dirname(__file__))
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = os.path.join(folder, "llama_cpp_python-0.3.36.dist-info")
    os.mkdir(info)
    with open(os.path.join(info, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: llama-cpp-python\\nVersion: 0.3.36\\n")
    return os.path.basename(info)
def build_wheel(folder, config_settings=None, metadata_directory=None):
    trouble, marker = os.environ.get("FAKE_BUILD", ""), os.environ.get("FAKE_MARKER")
    if marker:
        with open(marker, "a") as file:
            tools = [path for path in sys.path if os.path.isdir(os.path.join(path, "tinytool"))]
            before = os.path.isdir(config_settings["build-dir"]) * " continued"
            file.write(f"{os.nice(0)} {config_settings} {tools}{before}\\n")
    os.makedirs(config_settings["build-dir"], exist_ok=True)
    print("[1/20] Building CXX object a.o", flush=True)
    print("[20/20] Linking CXX shared library", flush=True)
    if trouble == "fail":
        print("ggml.c:7:1: error: unknown type name 'float128'", flush=True)
        raise SystemExit(1)
    while trouble == "wait" and os.path.exists(os.environ["FAKE_GATE"]):
        time.sleep(0.05)
    name, info = "llama_cpp_python-0.3.36-py3-none-any.whl", "llama_cpp_python-0.3.36.dist-info"
    files = {
        "llama_cpp/__init__.py": ["VERSION = 1"],
        "llama_cpp/lib/libllama.so": ["built"],
        f"{info}/METADATA": ["Metadata-Version: 2.1", "Name: llama-cpp-python", "Version: 0.3.36"],
        f"{info}/WHEEL": ["Wheel-Version: 1.0", "Generator: t", "Root-Is-Purelib: true", "Tag: py3-none-any"],
    }
    files[f"{info}/RECORD"] = [f"{path},," for path in (*files, f"{info}/RECORD")]
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for path, lines in files.items():
            wheel.writestr(path, "".join(line + "\\n" for line in lines))
    return name
"""

built_here = pytest.mark.skipif(
    os.name == "nt" or stamp.APPLE_SILICON or os.path.exists("/dev/nvidiactl"),
    reason="the stand-in for a compiler is a shell script, and beside a better engine nothing is built",
)


@pytest.fixture
def project(ready: Path, tmp_path: Path) -> Path:
    """A project that is set up and may build."""
    requirements = ready / "packaging" / "requirements"
    (requirements / "llamacpp.txt").write_text("# a comment\nllama-cpp-python==0.3.36\ndiskcache==5.6.3\n")
    (requirements / "llamacpp.cmake").write_text("")
    return ready


@pytest.fixture
def world(wheels: Path, tmp_path: Path) -> dict[str, str]:
    """Variables: where pip finds the source package, and a compiler that is there."""
    links = tmp_path / "links"
    links.mkdir()
    make_wheel(links, "diskcache", "5.6.3")
    for wheel in wheels.iterdir():
        (links / wheel.name).write_bytes(wheel.read_bytes())
    source = tmp_path / "llama_cpp_python-0.3.36"
    source.mkdir()
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (source / "backend.py").write_text(BACKEND)
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: llama-cpp-python\nVersion: 0.3.36\n")
    with tarfile.open(links / "llama_cpp_python-0.3.36.tar.gz", "w:gz") as archive:
        archive.add(source, source.name)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "c++").write_text("#!/bin/sh\n")
    (tools / "c++").chmod(0o755)
    return {
        "PIP_FIND_LINKS": str(links),
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "SHOAL_LLAMACPP": "now",
        "FAKE_MARKER": str(tmp_path / "marker"),
        "FAKE_GATE": str(tmp_path / "gate"),
    }


def until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < ends, "it never happened"
        time.sleep(0.05)


def builds(world: dict[str, str]) -> list[str]:
    marker = Path(world["FAKE_MARKER"])
    return marker.read_text().splitlines() if marker.exists() else []


def says(project: Path) -> str:
    file = project / ".venv" / optional.SAYS
    return file.read_text() if file.exists() else ""


def is_there(project: Path) -> bool:
    return stamp.ready(str(project), "llamacpp")


@built_here
def test_the_first_start_goes_on_at_once_while_it_is_built(
    project: Path, world: dict[str, str], launch: Launch
) -> None:
    """The build is announced once, and its end is said in the terminal that it was started from."""
    gate = Path(world["FAKE_GATE"])
    gate.touch()
    screen, terminal = pty.openpty()
    words = ("--home", str(project), "--json")
    code, out, _ = finish(launch(project, *words, stderr=terminal, FAKE_BUILD="wait", **world))
    assert code == 0 and json.loads(out)["arguments"] == [*words]  # pip still builds
    assert os.read(screen, 4096).decode().split("\r\n") == [start.COMPILES, ""]
    until(lambda: bool(builds(world)))
    assert "in the background" in says(project)
    nice, _, settings = builds(world)[0].partition(" ")
    (child,) = psutil.Process(int((project / ".venv" / optional.PID).read_text())).children()
    assert {child.pid} < apps.builder_processes(project / ".venv" / optional.PID)  # not the load of others
    assert nice == "19" and "'cmake.define.GGML_NATIVE': 'ON'" in settings and "llamacpp.cmake" in settings
    code, _, err = finish(launch(project, "run", FAKE_BUILD="wait", **world))  # a second start leaves it alone
    assert code == 0 and err == ""
    gate.unlink()
    until(lambda: is_there(project))
    assert os.read(screen, 4096).decode().split() == optional.DONE.split()
    assert len(builds(world)) == 1 and says(project) == ""
    assert (packages_of(project) / "llama_cpp" / "__init__.py").exists()
    assert (packages_of(project) / "diskcache" / "__init__.py").exists()
    assert not (project / ".venv" / "shoal-build").exists()
    until(lambda: not (project / ".venv" / optional.PID).exists())


@built_here
def test_nothing_is_built_alone_or_where_it_is_unwanted_or_without_a_compiler(
    project: Path, world: dict[str, str], launch: Launch, tmp_path: Path
) -> None:
    assert finish(launch(project, "run", "--solo", **world))[0] == 0
    assert finish(launch(project, "doctor", **world))[0] == 0
    assert finish(launch(project, "run", **{**world, "SHOAL_LLAMACPP": "never"}))[0] == 0
    time.sleep(1.0)
    assert not (project / ".venv" / optional.LOG).exists() and not builds(world)
    bare = tmp_path / "bare"
    bare.mkdir()
    code, _, err = finish(launch(project, "setup", "--engine", "llamacpp", **{**world, "PATH": str(bare)}))
    assert code == 1 and "no C++ compiler: install one" in err.splitlines()[-1]
    assert "no C++ compiler" in says(project) and not builds(world)


@built_here
def test_a_failed_build_is_told_and_not_repeated_until_asked_for(
    project: Path, world: dict[str, str], launch: Launch
) -> None:
    code, out, err = finish(launch(project, "test", "-k", "x", FAKE_BUILD="fail", **world))
    assert code == 0 and json.loads(out)["arguments"] == ["test", "-k", "x"], "tests go on without it"
    assert "could not be built" in err and "are skipped" in err
    assert "error: unknown type name" in says(project) and "setup --engine llamacpp tries again" in says(
        project
    )
    assert stamp.is_put_off(str(project), "llamacpp")
    assert finish(launch(project, "run", **world))[0] == 0
    time.sleep(1.0)
    assert len(builds(world)) == 1 and not is_there(project)
    code, _, err = finish(launch(project, "setup", "--engine", "llamacpp", **world))
    assert code == 0 and "building llama.cpp: file 20 of 20" in err, err
    assert is_there(project) and says(project) == ""


@pytest.mark.long
@built_here
def test_it_ends_with_shoal_and_is_continued(project: Path, world: dict[str, str], launch: Launch) -> None:
    gate, stays = Path(world["FAKE_GATE"]), project / "stays"
    gate.touch()
    stays.touch()
    del world["SHOAL_LLAMACPP"]
    source = project / "app" / "install" / "launcher" / "optional.py"
    text = source.read_text()
    assert 'group.write("19")' in text
    source.write_text(text.replace('group.write("19")', "pass"))  # on a busy computer it would not move at all
    shoal = launch(project, "run", FAKE_BUILD="wait", FAKE_STAYS=str(stays), **world)
    until(lambda: "file 20 of 20" in says(project))
    builder = psutil.Process(int((project / ".venv" / optional.PID).read_text()))
    children = builder.children(recursive=True)
    stays.unlink()
    assert finish(shoal)[0] == 0
    _, alive = psutil.wait_procs([builder, *children], timeout=LIMIT)
    assert not alive and not is_there(project)
    gate.unlink()
    assert finish(launch(project, "run", **{**world, "SHOAL_LLAMACPP": "now"}))[0] == 0
    until(lambda: is_there(project))
    first, second = builds(world)
    assert second == f"{first} continued", "the same source, compiled further in the same folder"
    assert not (project / ".venv" / "shoal-build").exists()


@built_here
def test_who_waits_goes_on_at_full_speed_from_what_is_compiled(
    project: Path, world: dict[str, str], launch: Launch
) -> None:
    Path(world["FAKE_GATE"]).touch()
    assert finish(launch(project, "run", FAKE_BUILD="wait", **world))[0] == 0
    until(lambda: "file 20 of 20" in says(project))
    code, _, err = finish(launch(project, "test", **world))  # the background build would wait for ever
    assert code == 0 and "Another Shoal is at it" in err and is_there(project), err
    polite, quick = builds(world)
    assert (polite[:3], quick[:2]) == ("19 ", "0 ") and quick.endswith(" continued")
    assert not (project / ".venv" / optional.AWAITED).exists()


@built_here
def test_other_compile_flags_are_another_build(project: Path, world: dict[str, str], launch: Launch) -> None:
    for flags, count in (("", 1), ("set(A ON)\n", 2)):
        (project / "packaging" / "requirements" / "llamacpp.cmake").write_text(flags)
        assert not is_there(project)
        assert finish(launch(project, "test", **world))[0] == 0
        assert is_there(project) and len(builds(world)) == count


@built_here
def test_killed_half_way_the_next_start_continues(project: Path, world: dict[str, str], launch: Launch) -> None:
    Path(world["FAKE_GATE"]).touch()
    assert finish(launch(project, "run", FAKE_BUILD="wait", **world))[0] == 0
    until(lambda: bool(builds(world)))
    for process in psutil.process_iter(["cmdline"]):  # the builder and its pip, as a shutdown ends both
        if str(project) in " ".join(process.info["cmdline"] or []) and process.pid != os.getpid():
            process.send_signal(signal.SIGKILL)
    assert not is_there(project)
    assert finish(launch(project, "run", **world))[0] == 0
    until(lambda: is_there(project))
    assert len(builds(world)) == 2


def lock(requirements: Path, links: Path, spoiled: str = "") -> None:
    """Locks for what `links` has; the hash of `spoiled` is that of another file."""
    make_wheel(links, "tinytool")
    (requirements / "compile.txt").write_text("tinytool==1.0\n")
    files = {
        "compile": {"tinytool": "tinytool-1.0-py3-none-any.whl"},
        "llamacpp": {
            "diskcache": "diskcache-5.6.3-py3-none-any.whl",
            "llama-cpp-python": "llama_cpp_python-0.3.36.tar.gz",
        },
    }
    for name, packages in files.items():
        lines = []
        for package, file in packages.items():
            digest = hashlib.sha256((links / file).read_bytes() + b"!" * (package == spoiled)).hexdigest()
            lines += [
                f"{package}=={file.split('-')[1].removesuffix('.tar.gz')} \\",
                f"    --hash=sha256:{digest}",
            ]
        (requirements / f"{name}.lock").write_text("\n".join([*lines, ""]))


@built_here
def test_what_builds_it_what_is_built_and_what_it_needs_have_their_hashes(
    project: Path, world: dict[str, str], launch: Launch
) -> None:
    for spoiled in ("tinytool", "llama-cpp-python", "diskcache", ""):
        lock(project / "packaging" / "requirements", Path(world["PIP_FIND_LINKS"]), spoiled)
        code, _, err = finish(launch(project, "setup", "--engine", "llamacpp", **world))
        assert (code == 0) == is_there(project) == (not spoiled), err
        assert bool(builds(world)) == (spoiled in ("", "diskcache")), spoiled
    assert str(project / ".venv" / "shoal-build" / "tools") in builds(world)[0]
    assert (packages_of(project) / "diskcache" / "__init__.py").exists()


def test_setup_knows_its_engines(first_start: FirstStart, launch: Launch) -> None:
    code, out, err = finish(launch(first_start.project, "setup", "--engine", "tensorflow"))
    assert (code, out) == (2, "") and "tensorflow" in err and "llamacpp" in err


def test_the_build_is_for_this_processor_and_says_which(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("model name\t: x\nflags\t\t: fpu avx avx2\n\nflags\t\t: fpu\n")
    assert optional.PROCESSOR == library.PROCESSOR_FILE, "the launcher may import nothing of the engines"
    assert pythons.processor(str(info)) == "fpu avx avx2" and pythons.processor(str(tmp_path / "missing")) == ""
    assert optional.jobs() >= 1
