"""Starting over, and going back to the best round."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.node.healing import Healer
from app.node.history import checkpoint, history
from app.node.history.store import Store
from app.node.models import trained
from app.node.record.errors import NodeError
from app.node.record.records import Probe
from app.node.record.state import NodeState
from app.sapo import curriculum


def learned(folder: Path, *rounds: int) -> Path:
    """A model's folder after these rounds, each saved."""
    root = folder / "checkpoints"
    for round_ in rounds:
        unfinished = checkpoint.begin(root, round_)
        (unfinished / "adapter_model.safetensors").write_bytes(b"round %d" % round_)
        state = NodeState(
            round=round_, curriculum=curriculum.start({"gcd": 0}), identity="abc", saved_at=round_
        )
        checkpoint.seal(unfinished, "mark", state)
        checkpoint.publish(unfinished, root, round_)
    Store(folder / history.FILE).close()
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return learned(tmp_path / "models" / "starter-01234567", *range(1, 8))


def probe(round_: int, share: float) -> Probe:
    return Probe(round=round_, share=share, stderr=0.02, questions_mark="m")


def measured(folder: Path, round_: int) -> None:
    """The newest checkpoint is the best of its curve."""
    curve = [probe(0, 0.1), probe(round_, 0.5)]
    Healer(folder / checkpoint.BEST_FOLDER).keep_best(curve, folder / "checkpoints")


def test_going_back_leaves_the_best_round_whole_and_nothing_later(folder: Path) -> None:
    measured(learned(folder, 8), 8)
    learned(folder, *range(9, 31))
    assert trained.back_to_best(folder.parents[1], folder, "mark") == 8
    (newest,) = checkpoint.newest_first(folder / "checkpoints")
    assert checkpoint.read(newest, "mark").round == 8
    assert (newest / "adapter_model.safetensors").read_bytes() == b"round 8"
    learned(folder, 9)
    assert checkpoint.read(checkpoint.newest_first(folder / "checkpoints")[0], "mark").round == 9


def test_rounds_after_the_best_leave_the_history_too(folder: Path) -> None:
    measured(learned(folder, 8), 8)
    store = Store(folder / history.FILE)
    for round_ in (5, 8, 12):
        store.add_probe(probe(round_, 0.1))
    trained.back_to_best(folder.parents[1], folder, "mark")
    assert [one.round for one in store.probes("m")] == [5, 8]
    store.close()


def test_without_a_best_round_or_with_a_damaged_one_nothing_is_changed(folder: Path) -> None:
    before = checkpoint.newest_first(folder / "checkpoints")
    with pytest.raises(NodeError, match="no best round yet"):
        trained.back_to_best(folder.parents[1], folder, "mark")
    measured(folder, 7)
    (folder / checkpoint.BEST_FOLDER / "adapter_model.safetensors").write_bytes(b"torn")
    learned(folder, 8)
    with pytest.raises(NodeError, match="Nothing was changed"):
        trained.back_to_best(folder.parents[1], folder, "mark")
    assert checkpoint.newest_first(folder / "checkpoints")[1] == before[0]


def test_starting_over_leaves_nothing_of_this_model_alone(folder: Path) -> None:
    other = learned(folder.parent / "other-01234567", 3)
    trained.start_over(folder.parents[1], folder)
    assert not folder.exists() and other.is_dir()
    trained.start_over(folder.parents[1], folder)
