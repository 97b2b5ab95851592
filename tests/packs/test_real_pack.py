"""An engine pack as it is released, used for everything that an installed app hands to it.

SHOAL_TEST_PACK names the folder of an offline pack (packaging/packs/make pack cpu --carry ...)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.install.packs import offered, place
from app.install.packs.installing import PackInstaller
from app.models.shelf import starter_folder
from tests.engines.hub import StandIn, model_files, serving

ROOT = Path(__file__).parents[2]
NAMED = os.environ.get("SHOAL_TEST_PACK", "")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not NAMED, reason="SHOAL_TEST_PACK names no offline pack; see packaging/packs/make"),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pack's Python. The key is taken from the environment too: SHOAL_TEST_PACK_KEY is a file."""
    root = tmp_path_factory.mktemp("packs")
    key = Path(os.environ["SHOAL_TEST_PACK_KEY"]).read_text(encoding="ascii").strip()
    signed = offered.load_manifest(str(Path(NAMED) / "cpu.json"), (key,))
    name = PackInstaller(root, lambda _: None).install(signed, Path(NAMED))
    return place.interpreter(root / name)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, python: Path) -> Path:
    """A data folder with two rounds learned by this pack."""
    folder = tmp_path_factory.mktemp("home")
    said = shoal(python, folder, "run", "--solo", "--rounds", "2", "--json")
    rounds = [json.loads(line) for line in said.splitlines() if '"event":"round"' in line]
    assert [row["round"] for row in rounds] == [1, 2] and sum(row["informative_own"] for row in rounds) > 0
    return folder


def shoal(python: Path, home: Path, *arguments: str | Path, code: int = 0, said: str = "", **more: str) -> str:
    """What a command prints with the pack's Python, as packaging/frozen/entry.py starts it."""
    done = subprocess.run(
        [python, "-P", "-m", "app.cli", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "SHOAL_HOME": str(home), **more},
        input=said,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == code, done.stderr[-2000:]
    return done.stdout if code == 0 else done.stderr


def test_doctor_sees_both_engines(python: Path, home: Path) -> None:
    found = json.loads(shoal(python, home, "doctor", "--json"))
    usable = {row["name"]: row["usable"] for row in found["engines"]}
    assert usable["torch-cpu"] and usable["llamacpp"], found["engines"]


def test_a_trial_measures_both(python: Path, home: Path) -> None:
    found = json.loads(shoal(python, home, "trial", "--json").splitlines()[-1])
    measured = [row["name"] for row in found["engines"] if row.get("rounds_per_hour")]
    assert {name.partition("-")[0] for name in measured} == {"torch", "llamacpp"}, found


def test_llamacpp_learns(python: Path, tmp_path: Path) -> None:
    said = shoal(python, tmp_path, "run", "--solo", "--engine", "llamacpp", "--rounds", "1", "--json")
    assert json.loads(said.splitlines()[-1])["reason"] == "rounds"


def test_chat_answers(python: Path, home: Path) -> None:
    assert "after 2 rounds" in shoal(python, home, "chat", said="What is 2 + 2?\n")


def test_puzzles_are_judged(python: Path, home: Path) -> None:
    said = shoal(python, home, "puzzle", "--family", "chain_sum", "--count", "1", said="0\n")
    assert "in all" in said


@pytest.mark.parametrize("form", ["peft", "gguf", "mlx", "merged", "ollama"])
def test_every_export_is_written(form: str, python: Path, home: Path, tmp_path: Path) -> None:
    shoal(python, home, "export", "--format", form, tmp_path / "out")
    assert any(path.suffix in (".safetensors", ".gguf") for path in (tmp_path / "out").iterdir())


def test_the_lab_leaves_its_picture_out(python: Path, home: Path, tmp_path: Path) -> None:
    size = ("--nodes", "2", "--rounds", "1", "--seeds", "1", "--probe-items", "8")
    shoal(python, home, "lab", "--arms", "2/2", *size, "--out", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"summary.json", "curves.csv", "table.md"}
    assert not (tmp_path / "curves.png").exists()


def test_a_picture_says_where_it_can_be_drawn(python: Path, home: Path) -> None:
    said = shoal(python, home, "curve", "run.jsonl", "--out", "a.png", code=1)
    assert "needs matplotlib, which is not part" in said and said.count("\n") == 1


@pytest.fixture
def hub() -> Iterator[StandIn]:
    with serving(StandIn(model_files(starter_folder()))) as one:
        yield one


def test_a_model_is_fetched(python: Path, hub: StandIn, tmp_path: Path) -> None:
    shoal(python, tmp_path, "models", "get", hub.id, "--mirror", hub.url)
    listed = json.loads(shoal(python, tmp_path, "models", "list", "--json"))
    assert next(row for row in listed["models"] if row["name"] == hub.id)["installed"]


def test_a_model_that_needs_more_is_refused_with_a_sentence(python: Path, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "strange"
    folder.mkdir()
    for path in starter_folder().iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "model_type": "falcon_h1"}))
    said = shoal(python, home, "run", "--solo", "--model", folder, "--rounds", "1", code=1)
    assert "needs the package transformers" in said
