"""The wheel of the library for other trainers, installed where nothing else of this repository is."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STORY = """
import sys
import shoal_swarm
from shoal_swarm import join
loaded = set(sys.modules)
assert not loaded & {"msgspec", "aiohttp", "asyncio", "app", "engines"}, loaded
with join("ws://127.0.0.1:9", home=sys.argv[1]) as sea:
    assert not set(sys.modules) & {"torch", "numpy", "PySide6", "keyring", "app", "engines", "reasoning_gym"}
    (question,) = sea.questions(1, families=["gcd"], seed=1)
    assert sea.check(question.coordinates, "#no") == 0.0
    told = shoal_swarm.Group(coordinates=question.coordinates, completions=["#1", "#2", "#3", "#6"])
    print(question.coordinates.seed, sum(sea.publish([told]).left_out.values()))
    sea.close(flush_s=0.0)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, ROOT / "packaging/library/wheel.py", out], check=True, cwd=out)
    (built,) = out.glob("*.whl")
    yield built


def test_the_wheel_has_one_package_and_knows_no_other_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        texts = {name: files.read(name).decode() for name in files.namelist()}
    assert {name.partition("/")[0].partition("-")[0] for name in texts} == {"shoal_swarm"}
    for name, text in texts.items():
        for line in text.splitlines() if name.endswith(".py") else ():
            assert not line.strip().startswith(("from app", "from engines", "import app")), (name, line)
    rooms = {name.split("/")[1] for name in texts if name.count("/") > 1 and name.endswith(".py")}
    assert rooms == {"common", "engines", "learning", "sapo", "swarm"}
    (about,) = (text for name, text in texts.items() if name.endswith("METADATA"))
    assert "Name: shoal-swarm" in about and "Requires-Dist: reasoning-gym==0.1.25" in about
    assert "keyring" not in about and "Requires-Dist: pyarrow>=15 ; extra == 'export'" in about


@pytest.mark.long
def test_it_installs_beside_others_and_asks_and_checks(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    bin = place / ("Scripts" if sys.platform == "win32" else "bin")
    python = next(bin.glob("python*"))
    install = ["install", "-q", "--no-deps", "--no-index", "--no-compile", wheel]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install], check=True)
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
    assert {one.name.partition("-")[0] for one in site.iterdir()} >= {"shoal_swarm"}
    assert not (site / "app").exists() and not (site / "engines").exists()
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    told = subprocess.run(
        [python, "-c", STORY, tmp_path / "home"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.split()
    assert int(told[0]) > 2**41 and told[1] in ("0", "1")
