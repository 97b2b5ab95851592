"""The newest safe point is found and taken, also while a node replaces it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.chat import learned
from app.chat.learned import Checkpoints
from app.node.data.home import model_folder, model_mark
from app.node.history import checkpoint
from app.node.record.state import NodeState
from app.sapo import curriculum
from engines.contract import AdapterError

MARK_FILES = ("config.json", "tokenizer.json")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "a-model"
    folder.mkdir()
    for name in MARK_FILES:
        (folder / name).write_text("{}")
    return folder


def save(home: Path, model: Path, number: int, rank: int = 4, name: str = "a-model") -> Path:
    """A safe point as a node writes it."""
    mark = model_mark(model)
    root = model_folder(home, name, mark) / "checkpoints"
    unfinished = checkpoint.begin(root, number)
    (unfinished / "adapter_config.json").write_text(f'{{"r": {rank}}}')
    (unfinished / "adapter_model.safetensors").write_bytes(b"weights of round %d" % number)
    state = NodeState(round=number, curriculum=curriculum.start({"gcd": 1}), identity="x")
    checkpoint.seal(unfinished, mark, state)
    return checkpoint.publish(unfinished, root, number)


class Loads:
    """An engine that remembers what it was given; `meanwhile` happens before it can read."""

    def __init__(self, *meanwhile: object) -> None:
        self.folders: list[str] = []
        self._meanwhile = list(meanwhile)

    def load(self, folder: Path) -> None:
        if self._meanwhile:
            self._meanwhile.pop(0)()  # type: ignore[operator]
        if not (folder / "adapter_model.safetensors").exists():
            raise AdapterError(f"adapter_model.safetensors in {folder} is missing or damaged.")
        self.folders.append(folder.name)


def test_without_a_safe_point_nothing_was_learned(tmp_path: Path, model: Path) -> None:
    found = Checkpoints(tmp_path / "home", model)
    assert found.rank() is None and found.refresh(Loads(), None) is None  # type: ignore[arg-type]
    assert not (tmp_path / "home").exists(), "nothing is written"


def test_the_newest_is_taken_once_and_the_next_one_when_it_is_there(tmp_path: Path, model: Path) -> None:
    save(tmp_path, model, 3)
    save(tmp_path, model, 4, rank=12)
    found, engine = Checkpoints(tmp_path, model), Loads()
    assert found.rank() == 12
    state = found.refresh(engine, None)  # type: ignore[arg-type]
    assert state is not None and state.round == 4
    assert found.refresh(engine, state) is state and engine.folders == ["round-000004"]  # type: ignore[arg-type]
    save(tmp_path, model, 5)
    after = found.refresh(engine, state)  # type: ignore[arg-type]
    assert after is not None and after.round == 5
    assert engine.folders == ["round-000004", "round-000005"]


def test_a_damaged_one_gives_way_to_the_one_before_and_is_left_alone(tmp_path: Path, model: Path) -> None:
    save(tmp_path, model, 3)
    newest = save(tmp_path, model, 4)
    (newest / "adapter_model.safetensors").write_bytes(b"cut")
    state = Checkpoints(tmp_path, model).refresh(Loads(), None)  # type: ignore[arg-type]
    assert state is not None and state.round == 3
    assert newest.is_dir(), "setting aside is the node's business"


def test_one_that_is_replaced_while_it_is_read_is_looked_for_again(tmp_path: Path, model: Path) -> None:
    first = save(tmp_path, model, 7)

    def replaced() -> None:
        for number in (8, 9):
            save(tmp_path, model, number)
        assert not first.exists()

    engine = Loads(replaced)
    state = Checkpoints(tmp_path, model).refresh(engine, None)  # type: ignore[arg-type]
    assert state is not None and state.round == 9 and engine.folders == ["round-000009"]


def test_when_none_can_be_read_there_is_one_sentence(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned, "_PAUSE_S", 0.0)
    (save(tmp_path, model, 1) / "state.json").write_text("{")
    with pytest.raises(AdapterError) as refusal:
        Checkpoints(tmp_path, model).refresh(Loads(), None)  # type: ignore[arg-type]
    assert "can't be read" in str(refusal.value) and str(refusal.value).count("\n") == 0


def test_another_model_s_safe_points_are_not_taken(tmp_path: Path, model: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(model, other)
    (other / "config.json").write_text('{"other": 1}')
    save(tmp_path, other, 9)
    assert Checkpoints(tmp_path, model).refresh(Loads(), None) is None  # type: ignore[arg-type]


def test_a_model_that_was_called_otherwise_is_still_found(tmp_path: Path, model: Path) -> None:
    save(tmp_path, model, 2, name="Owner/Name")
    state = Checkpoints(tmp_path, model).refresh(Loads(), None)  # type: ignore[arg-type]
    assert state is not None and state.round == 2
