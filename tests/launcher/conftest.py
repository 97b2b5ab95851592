"""A project in miniature: the real launcher, a command that tells how it was started, and packages made here.

Nothing is fetched but uv, where this checkout has none yet: both installers are pointed at a folder of wheels
that the tests write themselves.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.install.launcher.environment import TOOLS, Environment
from app.install.launcher.install import ProgressLine
from app.install.launcher.pythons import SetupError

ROOT = Path(__file__).parents[2]

LIMIT = 180
"""Seconds after which a process counts as hung."""

TELLS = """
import importlib.util, json, os, sys, time
packages = ("tinydep", "tinygym", "tinytest")
names = ("TOKENIZERS_PARALLELISM",)
print(json.dumps({
    "arguments": sys.argv[1:],
    "prefix": sys.prefix,
    "folder": os.getcwd(),
    "environment": {name: os.environ.get(name) for name in names},
    "packages": [name for name in packages if importlib.util.find_spec(name)],
}), flush=True)
while os.path.exists(os.environ.get("FAKE_STAYS", "")):
    time.sleep(0.05)
sys.exit(7 if "fail" in sys.argv else 0)
"""


def make_wheel(folder: Path, name: str, version: str = "1.0") -> Path:
    """A pure Python wheel of one module, with a RECORD as the format asks."""
    info = f"{name}-{version}.dist-info"
    contents = {
        f"{name}/__init__.py": f"VERSION = '{version}'\n" + "# filling\n" * 200,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = []
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(text.encode())}\n")
        archive.writestr(f"{info}/RECORD", "".join([*record, f"{info}/RECORD,,\n"]))
    return wheel


def linked(one: str, to: str) -> None:
    """Another name of the same file where that can be, for tools that nobody writes to."""
    try:
        os.link(one, to)
    except OSError:
        shutil.copy2(one, to)


def make_project(folder: Path) -> Path:
    """A copy of the launcher with requirements and a command of its own."""
    (folder / "app" / "cli").mkdir(parents=True)
    shutil.copy2(ROOT / "shoal", folder / "shoal")
    (folder / "app" / "install").mkdir()
    for package in ("app", "app/install"):
        shutil.copy2(ROOT / package / "__init__.py", folder / package / "__init__.py")
    (folder / "app" / "common" / "process").mkdir(parents=True)
    for file in ("__init__.py", "process/__init__.py", "process/surroundings.py"):
        shutil.copy2(ROOT / "app" / "common" / file, folder / "app" / "common" / file)
    shutil.copytree(
        ROOT / "app" / "install" / "launcher",
        folder / "app" / "install" / "launcher",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (folder / "engines").mkdir()
    for file in ("__init__.py", "locks.py"):
        shutil.copy2(ROOT / "engines" / file, folder / "engines" / file)
    (folder / "app" / "cli" / "__init__.py").write_text("")
    (folder / "app" / "cli" / "__main__.py").write_text(TELLS)
    requirements = folder / "packaging" / "requirements"
    requirements.mkdir(parents=True)
    for file, package in (("base.txt", "tinydep"), ("gym.txt", "tinygym"), ("test.txt", "tinytest")):
        (requirements / file).write_text(f"# a comment\n{package}==1.0\n")
    (requirements / "nats.txt").write_text("# a server, which tests of the relay run\n")
    for file in ("uv.txt", "uv.lock"):
        shutil.copy2(ROOT / "packaging" / "requirements" / file, requirements / file)
    if uv := next((ROOT / TOOLS).glob("uv-*"), None):
        shutil.copytree(uv, folder / TOOLS / uv.name, symlinks=True, copy_function=linked)
    return folder


@pytest.fixture(scope="session", autouse=True)
def uv() -> None:
    """uv in this checkout, as a set-up leaves it there."""
    if any((ROOT / TOOLS).glob("uv-*")):
        return
    try:
        with ProgressLine() as progress:
            Environment(ROOT).installer().program(progress)
    except SetupError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for name in ("tinydep", "tinygym", "tinytest"):
        make_wheel(folder, name)
    make_wheel(folder, "tinydep", "2.0")
    return folder


@pytest.fixture(scope="session")
def variables(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which pip finds our wheels and nothing else."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "PYTHON", "OMP_", "TOK"))
    }
    return kept | {
        "HOME": str(tmp_path_factory.mktemp("home")),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_CACHE_DIR": "1",
    }


Launch = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def launch(variables: dict[str, str]) -> Launch:
    """Starts a project's launcher as a process of its own, with pipes for both outputs, or a terminal."""

    def start(
        project: Path,
        *arguments: str,
        cwd: Path | None = None,
        stderr: int = subprocess.PIPE,
        **changes: str | None,
    ) -> subprocess.Popen[str]:
        environment = {name: value for name, value in {**variables, **changes}.items() if value is not None}
        return subprocess.Popen(
            [sys.executable, str(project / "shoal"), *arguments],
            cwd=cwd or project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    return start


@dataclass(frozen=True)
class FirstStart:
    """A project after its very first start, and what that start said."""

    project: Path
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def first_start(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> FirstStart:
    """`./shoal run --json` in a fresh copy. Making the environment takes seconds, so the others start from
    copies."""
    project = make_project(tmp_path_factory.mktemp("installed") / "a folder with spaces")
    done = subprocess.run(
        [sys.executable, project / "shoal", "run", "--json"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    return FirstStart(project, done.returncode, done.stdout, done.stderr)


@pytest.fixture
def ready(first_start: FirstStart, tmp_path: Path) -> Path:
    """A project of one's own that is set up: also a check that a moved folder still works, for it is a copy."""
    to = tmp_path / "ready"
    shutil.copytree(first_start.project, to, symlinks=True, ignore=shutil.ignore_patterns(TOOLS))
    shutil.copytree(first_start.project / TOOLS, to / TOOLS, symlinks=True, copy_function=linked)
    return to


def packages_of(project: Path) -> Path:
    return next((project / ".venv").glob("[lL]ib/**/site-packages"))
