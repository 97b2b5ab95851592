"""The launcher as owners meet it: a process in a copy of the project, with a real environment and real pip."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.install.launcher import system
from app.install.launcher.environment import FILLING, MAKING, TOOLS, Environment
from app.install.launcher.stamp import UNFINISHED
from tests.interrupting import interruptible
from tests.launcher.conftest import LIMIT, FirstStart, Launch, make_project, make_wheel, packages_of


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=LIMIT)
    return process.returncode, out, err


def test_a_fresh_folder_is_set_up_and_standard_output_belongs_to_the_command(first_start: FirstStart) -> None:
    err = first_start.err
    assert first_start.code == 0, err
    told = json.loads(first_start.out)
    assert told["arguments"] == ["run", "--json"]
    assert Path(told["prefix"]) == first_start.project / ".venv"
    assert told["packages"] == ["tinydep", "tinygym"]
    assert told["environment"] == {"TOKENIZERS_PARALLELISM": "false"}
    assert "putting 1 package in place" in err and "done" in err
    assert not (first_start.project / ".venv" / UNFINISHED).exists()


def test_what_is_there_is_used_without_pip_and_without_a_word(ready: Path, launch: Launch) -> None:
    shutil.rmtree(packages_of(ready) / "pip")  # whoever called it now would fail
    code, out, err = finish(launch(ready, "fail", PIP_FIND_LINKS=None))
    assert (code, err) == (7, "")
    assert json.loads(out)["arguments"] == ["fail"]


def test_through_a_link_and_from_another_folder(
    first_start: FirstStart, tmp_path: Path, launch: Launch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "app").mkdir(parents=True)  # must not be taken for ours
    (elsewhere / "app" / "__init__.py").write_text("raise SystemExit('imported from the current folder')")
    (elsewhere / "shoal").symlink_to(first_start.project / "shoal")
    code, out, err = finish(launch(elsewhere, "run", cwd=elsewhere))
    assert code == 0, err
    assert Path(json.loads(out)["folder"]) == elsewhere
    assert Path(json.loads(out)["prefix"]) == first_start.project / ".venv"


@pytest.mark.skipif(os.name == "nt", reason="the file mode starts it on POSIX only")
def test_the_file_itself_can_be_started(first_start: FirstStart, variables: dict[str, str]) -> None:
    done = subprocess.run(
        [first_start.project / "shoal", "x"], env=variables, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["arguments"] == ["x"]


def test_help_needs_no_set_up(tmp_path: Path, launch: Launch) -> None:
    project = make_project(tmp_path / "project")
    code, out, _ = finish(launch(project, "--help"))
    assert code == 0
    assert json.loads(out)["arguments"] == ["--help"]
    assert not (project / ".venv").exists()


def test_test_requirements_come_with_the_first_test(ready: Path, launch: Launch) -> None:
    assert json.loads(finish(launch(ready, "test", "-k", "x"))[1])["packages"] == [
        "tinydep",
        "tinygym",
        "tinytest",
    ]
    code, _, err = finish(launch(ready, "test", PIP_FIND_LINKS=None))
    assert (code, err) == (0, "")


def test_a_killed_installation_is_completed_and_the_whole_part_kept(ready: Path, launch: Launch) -> None:
    packages = packages_of(ready)
    cut, whole = packages / "tinydep" / "__init__.py", packages / "tinygym" / "__init__.py"
    as_it_was = cut.read_text()
    cut.write_text(as_it_was[:100])  # killed in the middle of a file
    (ready / ".venv" / UNFINISHED).write_text(FILLING)
    kept = whole.stat().st_mtime_ns
    code, _, err = finish(launch(ready, "run"))
    assert code == 0, err
    assert cut.read_text() == as_it_was
    assert whole.stat().st_mtime_ns == kept


def test_setup_repairs_what_the_stamp_does_not_know_of(ready: Path, launch: Launch) -> None:
    (packages_of(ready) / "tinydep" / "__init__.py").unlink()
    assert finish(launch(ready, "setup"))[0] == 0
    assert json.loads(finish(launch(ready, "run"))[1])["packages"] == ["tinydep", "tinygym"]
    assert (packages_of(ready) / "tinydep" / "__init__.py").exists()


def break_environment(folder: Path, harm: str) -> None:
    python, config = folder / "bin" / "python", folder / "pyvenv.cfg"
    if harm == "interpreter gone":
        python.unlink()
        python.symlink_to("/no/such/python")
    elif harm == "killed while being made":
        (folder / UNFINISHED).write_text(MAKING)
    else:
        config.write_text(config.read_text().replace("version = 3.", "version = 3.9"))
        (folder / "shoal-run.stamp").unlink()


HARMS = ["interpreter gone", "killed while being made", "made by another Python"]


def test_a_broken_environment_is_noticed(ready: Path, tmp_path: Path) -> None:
    environment = Environment(ready)
    whole = environment.folder.rename(tmp_path / "whole")
    for harm in HARMS:
        shutil.copytree(whole, environment.folder, symlinks=True, ignore=shutil.ignore_patterns("pip"))
        assert environment.ready("run") and environment._usable()
        break_environment(environment.folder, harm)
        assert not environment.ready("run") and not environment._usable(), harm
        shutil.rmtree(environment.folder)


@pytest.mark.long
@pytest.mark.parametrize("harm", HARMS)
def test_a_broken_environment_is_replaced(harm: str, ready: Path, launch: Launch) -> None:
    break_environment(ready / ".venv", harm)
    (ready / ".venv" / "left over").touch()
    code, out, err = finish(launch(ready, "run"))
    assert code == 0, err
    assert "rebuilding it" in err
    assert json.loads(out)["packages"] == ["tinydep", "tinygym"]
    assert not (ready / ".venv" / "left over").exists()


def test_two_at_once_install_once(ready: Path, launch: Launch) -> None:
    (ready / "packaging" / "requirements" / "base.txt").write_text("tinydep==2.0\n")
    ends = [finish(process) for process in [launch(ready, str(number)) for number in range(2)]]
    assert [code for code, _, _ in ends] == [0, 0], ends
    assert sum("in place" in err for _, _, err in ends) == 1
    assert (
        sum(err == "Another Shoal is setting up this folder; waiting until it is done.\n" for _, _, err in ends)
        == 1
    )
    assert [json.loads(out)["arguments"] for _, out, _ in ends] == [["0"], ["1"]]


@pytest.mark.skipif(os.name == "nt", reason="on Windows a child does not inherit the lock")
def test_killed_while_packages_come_the_next_waits_and_goes_on(ready: Path, launch: Launch) -> None:
    (ready / "packaging" / "requirements" / "base.txt").write_text("tinydep==2.0\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # a package server that never answers
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        first = launch(
            ready, "run", PIP_NO_INDEX=None, PIP_FIND_LINKS=None, PIP_INDEX_URL=address, PIP_RETRIES="0"
        )
        silent.settimeout(LIMIT)
        asked, _ = silent.accept()
        first.send_signal(signal.SIGKILL)
        first.wait(LIMIT)
        second = launch(ready, "run")
        assert second.stderr is not None
        assert "Another Shoal" in second.stderr.readline()
        assert second.poll() is None
        asked.close()
    code, _, err = finish(second)
    assert code == 0, err
    assert "VERSION = '2.0'" in (packages_of(ready) / "tinydep" / "__init__.py").read_text()
    for stream in (first.stdout, first.stderr):
        assert stream is not None
        stream.close()


def test_without_a_network_one_sentence_and_the_next_start_goes_on(ready: Path, launch: Launch) -> None:
    (ready / "packaging" / "requirements" / "base.txt").write_text("tinydep==2.0\n")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
    offline = {"PIP_NO_INDEX": None, "PIP_FIND_LINKS": None, "PIP_INDEX_URL": nobody, "PIP_RETRIES": "1"}
    code, out, err = finish(launch(ready, "run", **offline))
    assert (code, out) == (1, "")
    last = err.splitlines()[-1]
    assert last.startswith("shoal: Shoal could not download its packages because 127.0.0.1:")
    assert "could not be reached" in last
    assert "start Shoal again" in last and "Traceback" not in err
    assert finish(launch(ready, "run"))[0] == 0


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, launch: Launch) -> None:
    project = make_project(tmp_path / "project")
    project.chmod(0o555)
    try:
        code, _, err = finish(launch(project, "run"))
    finally:
        project.chmod(0o755)
    assert code == 1
    assert f"cannot write into {project}" in err


def test_interrupted_it_says_so_and_ends_with_1(ready: Path, launch: Launch) -> None:
    if os.name == "nt":
        pytest.skip("Ctrl-C cannot be sent to one process there")
    (ready / "packaging" / "requirements" / "base.txt").write_text("tinydep==2.0\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        variables = {"PIP_INDEX_URL": address, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
        with interruptible():
            process = subprocess.Popen(
                [sys.executable, ready / "shoal", "run"],
                env={**os.environ, **variables},
                start_new_session=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        silent.settimeout(LIMIT)
        asked, _ = silent.accept()
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        code, _, err = finish(process)
        asked.close()
    assert code == 1
    assert err.splitlines()[-1].startswith("shoal: Stopped.") and "Traceback" not in err


def test_a_repair_without_a_network_leaves_what_is_there(ready: Path, launch: Launch) -> None:
    """Nothing is taken out before what replaces it is here; compiled files of another size are no damage."""
    packages = packages_of(ready)
    compiled = packages / "tinydep" / "__pycache__" / "__init__.cpython-311.pyc"
    compiled.parent.mkdir(exist_ok=True)
    record = next(packages.glob("tinydep-*.dist-info")) / "RECORD"
    record.write_text(record.read_text() + f"{compiled.relative_to(packages)},,12345\n")
    compiled.write_bytes(b"of another Python")
    offline = {"PIP_FIND_LINKS": None, "PIP_NO_INDEX": "1"}
    code, _, err = finish(launch(ready, "setup", **offline))
    assert code == 0, err
    (packages / "tinygym" / "__init__.py").write_text("")
    code, _, err = finish(launch(ready, "setup", **offline))
    assert code == 1 and len(err.splitlines()[-1]) < 400
    code, out, err = finish(launch(ready, "run", **offline))
    assert code == 0 and json.loads(out)["packages"] == ["tinydep", "tinygym"], err


def test_neither_a_stray_module_nor_a_deleted_folder_gets_in_the_way(
    first_start: FirstStart, tmp_path: Path, launch: Launch
) -> None:
    stray = tmp_path / "stray"
    stray.mkdir()
    (stray / "json.py").write_text("raise SystemExit('imported from PYTHONPATH')")
    gone = tmp_path / "gone"
    gone.mkdir()
    started = f"cd {gone}; rmdir {gone}; exec {sys.executable} '{first_start.project}/shoal' run"
    done = subprocess.run(
        ["sh", "-c", started],
        env={**os.environ, "PYTHONPATH": str(stray), "LD_LIBRARY_PATH": str(stray)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A page of wheels on loopback, with PyTorch's two builds in miniature."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, version in (("tinydep", "1.0"), ("torch", "2.13.0"), ("torch", "2.13.0+cpu"), ("triton", "1.0")):
        make_wheel(folder, name, version)
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere PyTorch has one build")
@pytest.mark.parametrize(
    ("card", "on_offer", "version", "compiler"),
    [
        (False, True, "2.13.0+cpu", False),
        pytest.param(False, False, "2.13.0", False, marks=pytest.mark.long),
        (True, True, "2.13.0", True),
    ],
)
def test_pytorch_comes_in_the_build_that_this_computer_needs(
    card: bool,
    on_offer: bool,
    version: str,
    compiler: bool,
    index: str,
    ready: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
) -> None:
    def locked(*pins: str) -> str:
        hashes = {
            pin: hashlib.sha256(
                (tmp_path / "index" / f"{pin.replace('==', '-')}-py3-none-any.whl").read_bytes()
            ).hexdigest()
            for pin in pins
        }
        return "".join(f"{pin} \\\n    --hash=sha256:{digest}\n" for pin, digest in hashes.items())

    requirements = ready / "packaging" / "requirements"
    requirements.joinpath("base.txt").write_text("tinydep==1.0\ntorch==2.13.0\ntriton==1.0\n")
    requirements.joinpath("base.lock").write_text(locked("tinydep==1.0", "torch==2.13.0", "triton==1.0"))
    requirements.joinpath("torch-cpu.lock").write_text(locked("torch==2.13.0+cpu"))
    requirements.joinpath("gym.txt").write_text("# nothing\n")
    if not on_offer:
        next((tmp_path / "index").glob("torch*+cpu*")).unlink()
    for name, text in {**variables, "PIP_FIND_LINKS": index}.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr(system, "has_nvidia_card", lambda: card)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=10**10))
    Environment(ready).ensure("run")
    packages = packages_of(ready)
    assert (packages / f"torch-{version}.dist-info").is_dir()
    assert (packages / "triton").is_dir() == compiler


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk_does_not_stay_full(ready: Path, wheels: Path, tmp_path: Path, launch: Launch) -> None:
    tools, links = ready / TOOLS, tmp_path / "links"
    links.mkdir()
    with zipfile.ZipFile(make_wheel(links, "tinydep", "2.0"), "a") as wheel:
        wheel.writestr("tinydep/large", os.urandom(30_000_000))
    (packages_of(ready) / "torch").mkdir()  # or a first set-up would compare the room with what PyTorch takes
    (ready / "packaging" / "requirements" / "base.txt").write_text("tinydep==2.0\n")
    brought = tools.rename(tmp_path / "brought")
    tools.mkdir()
    size = sum(one.stat().st_size for one in brought.rglob("*") if one.is_file()) + 15_000_000
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", tools]).returncode:
        pytest.skip("may not mount here")
    try:
        shutil.copytree(brought, tools, symlinks=True, dirs_exist_ok=True)
        code, _, err = finish(launch(ready, "run", PIP_FIND_LINKS=f"{links} {wheels}"))
        assert code == 1 and "is full" in err.splitlines()[-1], err
        assert not (tools / "cache").exists() and shutil.disk_usage(tools).free > 10_000_000
    finally:
        subprocess.run(["umount", tools], check=True)
    shutil.copytree(brought, tools, symlinks=True, dirs_exist_ok=True)
    assert finish(launch(ready, "run", PIP_FIND_LINKS=f"{links} {wheels}"))[0] == 0
