"""`./shoal models` as people and the window use it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.cli import models as command
from app.cli.models import _list_placed, _row
from app.models.fit import Fit, FitVerdict, MemoryRoom
from app.models.shelf import Shelf, UnfinishedDownload, starter_folder
from app.node.data.home import lock_data_folder, model_folder, model_mark
from app.node.data.library import Library, ModelEntry, Training
from app.node.healing import family_titles
from app.swarm.identity import keyrings
from engines.files import write_json
from tests import inside

ROOT = Path(__file__).parents[2]


def models(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return inside.shoal("models", *arguments, **variables)


def listed(home: Path) -> dict[str, Any]:
    done = models("list", "--json", "--home", home)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_list(tmp_path: Path) -> None:
    found = listed(tmp_path)
    rows = {row["name"]: row for row in found["models"]}
    assert rows["starter"]["installed"] and rows["starter"]["fit"]["verdict"] == "fits"
    llama = rows["meta-llama/Llama-3.2-1B-Instruct"]
    assert not llama["installed"] and "licence" in llama["gated"] and "token" in llama["gated"]
    assert all(row["learning"] > 0 and row["fit"]["sentence"] for row in rows.values())
    usual = {row["round_s"] for row in rows.values()}
    assert usual == {None} or min(usual) == rows["starter"]["round_s"] > 0
    assert [name for name, row in rows.items() if row["recommended"]] == ["starter"]
    assert found["disk_free"] > 0 and "was not asked" in found["known_from"]
    done = models("--home", tmp_path)
    assert done.returncode == 0 and "Qwen3 0.6B  " in done.stdout and "are free" in done.stdout
    assert not (tmp_path / "hub").exists()


def test_the_widest_row_has_80_columns() -> None:
    for verdict in FitVerdict:
        fit = Fit(verdict=verdict, sentence="")
        wide = ModelEntry(
            name="x" * 35, title="", bytes=999_900_000, learning=999_900_000, fit=fit, gated="yes"
        )
        assert len(_row(msgspec.structs.replace(wide, round_s=0.4))) <= 80


def test_a_model_that_begins_with_removed_questions_is_listed() -> None:
    """The list ended with a KeyError."""
    begins = Training(folder="", bytes=0, rounds=1, begins=("own-0123456789ab", "gcd"))
    starter = ModelEntry(name="starter", title="Starter", training=begins)
    memory = MemoryRoom(free=1, most=1)
    library = Library(
        models=(starter,),
        orphans=(),
        disk_free=1,
        hub_bytes=0,
        training_bytes=0,
        memory=memory,
        dtype="float32",
    )
    _list_placed(library)
    assert family_titles(begins.begins) == "removed questions, greatest common divisor"


def test_training_is_counted_and_outlives_its_model(tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(starter_folder(), own)
    home = tmp_path / "home"
    done = models("get", own, "--home", home)
    assert done.returncode == 0 and "stays where it is" in done.stderr
    place = model_folder(home, "own", model_mark(own))
    (place / "checkpoints" / "round-000044").mkdir(parents=True)
    (place / "history.sqlite").write_bytes(bytes(5000))
    row = next(row for row in listed(home)["models"] if row["local"])
    told = {"folder": str(place), "bytes": 5000, "rounds": 44, "round_s": None, "begins": [], "waiting": []}
    told |= {"best": None}
    assert row["training"] == told
    assert models("path", own, "--home", home).stdout.strip() == str(own.resolve())
    refused = models("remove", own, "--home", home)
    assert refused.returncode == 1 and "add --yes" in refused.stderr
    done = models("remove", own, "--yes", "--home", home)
    assert done.returncode == 0 and "round 44" in done.stderr and (own / "config.json").exists()
    found = listed(home)
    assert [row["rounds"] for row in found["orphans"]] == [44] and found["training_bytes"] == 5000


def test_what_was_cut_short_is_listed_with_its_reason(tmp_path: Path) -> None:
    partial = Shelf(tmp_path).partial_folder("Some/Model")
    (partial / "files").mkdir(parents=True)
    (partial / "files" / "model.safetensors.0.part").write_bytes(bytes(300))
    state = UnfinishedDownload(id="Some/Model", revision="main", total=1000, sentence="The line was cut.")
    write_json(partial / "state.json", state)
    row = next(row for row in listed(tmp_path)["models"] if row["name"] == "Some/Model")
    assert (row["partial"]["have"], row["partial"]["total"]) == (300, 1000)
    said = models("--home", tmp_path).stdout
    assert "30 %" in said and "was not finished: The line was cut." in said
    assert models("remove", "Some/Model", "--yes", "--home", tmp_path).returncode == 0
    assert not partial.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["get"], 2, "Name the model to get"),
        (["fetch", "x"], 2, "nvalid choice"),
        (["remove", "starter", "--yes"], 1, "is a part of Shoal"),
        (["remove", "No/Model", "--yes"], 1, "isn't on this computer"),
        (["path", "No/Model"], 1, "./shoal models get No/Model"),
        (["get", "No/Model", "--mirror", "ftp://x"], 1, "no address of a hub"),
        (["get", "No/Model", "--mirror", "http://127.0.0.1:9", "--attempts", "1"], 1, "can't be reached"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    done = models(*arguments, "--home", tmp_path, HF_HUB_OFFLINE="0")
    assert done.returncode == code and words in done.stderr and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


def test_nothing_that_is_no_token_reaches_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "real_backend", lambda: None)
    for text in ("", "short", "hf_two words", "hf_\x1b[2J", "h" * 300):
        with pytest.raises(command.TokenError, match="no access token"):
            command.save_token(text)
    with pytest.raises(command.TokenError, match="HF_TOKEN"):
        command.save_token("hf_looks_like_one")
    monkeypatch.setenv("HF_TOKEN", " hf_from_the_environment ")
    assert command.read_token() == "hf_from_the_environment"
    monkeypatch.delenv("HF_TOKEN")
    assert command.read_token() is None


class Ring:
    """A keyring that keeps in memory."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, user: str) -> str | None:
        return self.kept.get((service, user))

    def set_password(self, service: str, user: str, text: str) -> None:
        self.kept[service, user] = text

    def delete_password(self, service: str, user: str) -> None:
        del self.kept[service, user]


def test_a_token_is_kept_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring()
    monkeypatch.setattr(command, "real_backend", lambda: ring)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    command.save_token(" hf_0123456789 \n")
    assert command.read_token() == "hf_0123456789" and list(ring.kept.values()) == ["hf_0123456789"]
    assert keyrings.forget_token(lambda: ring) == "" and command.read_token() is None  # type: ignore[arg-type,return-value]


def test_a_name_that_nobody_knows_is_refused_at_once_with_the_nearest(tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:9"  # asking it would wait and try again
    done = models("get", "smolm2-135", "--home", tmp_path, HF_ENDPOINT=nobody)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.strip() == "shoal: There's no model called smolm2-135; the nearest is smollm2-135m."
    done = models("get", "smolm2-135", "--json", "--home", tmp_path, HF_ENDPOINT=nobody)
    assert json.loads(done.stdout)["event"] == "failed"


def test_nothing_is_changed_beneath_a_node_that_runs(tmp_path: Path) -> None:
    with lock_data_folder(tmp_path):
        done = models("start-over", "starter", "--yes", "--home", tmp_path)
    assert done.returncode == 1 and "Another node" in done.stderr
