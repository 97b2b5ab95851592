"""Naming what a model learned, going back to a round, starting over, and taking up what was put by."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from app.node.data.library import Point, called
from app.node.history import checkpoint, history, points
from app.node.history.store import Store
from app.node.models import versions
from app.node.record.errors import NodeError
from app.node.record.state import NodeState
from app.sapo import curriculum


def learned(folder: Path, *rounds: int) -> Path:
    """A model's folder after these rounds, each saved, and measured as round / 100."""
    root = folder / "checkpoints"
    for round_ in rounds:
        unfinished = checkpoint.begin(root, round_)
        (unfinished / "adapter_model.safetensors").write_bytes(b"round %d" % round_)
        state = NodeState(
            round=round_, curriculum=curriculum.start({"gcd": 0}), identity="abc", saved_at=round_
        )
        checkpoint.seal(unfinished, "mark", state)
        checkpoint.publish(unfinished, root, round_)
        points.keep(folder, round_ / 100)
    Store(folder / history.FILE).close()
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return learned(tmp_path / "models" / "starter-01234567", *range(1, 31))


def test_a_handful_of_rounds_is_kept_dense_near_the_end_and_reaching_back(folder: Path) -> None:
    rounds = [point.round for point in points.kept(folder)]
    assert len(rounds) == points.MOST
    assert rounds[0] == 1 and rounds[-1] == 30
    gaps = [after - before for before, after in pairwise(rounds)]
    assert gaps[-1] <= gaps[0] and max(gaps) < 20
    assert points.kept(folder)[-1] == Point(round=30, at=30.0, solved=0.3)


def test_going_back_leaves_that_round_whole_and_nothing_later(folder: Path) -> None:
    home, to = folder.parents[1], points.kept(folder)[2].round
    versions.back(home, folder, to, keep=False)
    (newest, *_) = checkpoint.newest_first(folder / "checkpoints")
    assert checkpoint.read(newest, "mark").round == to
    assert (newest / "adapter_model.safetensors").read_bytes() == b"round %d" % to
    assert max(point.round for point in points.kept(folder)) == to
    assert versions.versions(home, folder) == ()


def test_what_it_was_before_going_back_can_be_kept_and_taken_up_again(folder: Path) -> None:
    home = folder.parents[1]
    versions.call(folder, "Reckoner")
    versions.back(home, folder, 1, keep=True)
    (before,) = versions.versions(home, folder)
    assert (before.rounds, before.called, before.solved) == (30, "Reckoner", 0.3)
    versions.bring_back(home, folder, before.id)
    assert checkpoint.read(checkpoint.newest_first(folder / "checkpoints")[0], "mark").round == 30
    (other,) = versions.versions(home, folder)
    assert other.rounds == 1


def test_learning_on_after_going_back_leaves_the_kept_one_as_it_was(folder: Path) -> None:
    home = folder.parents[1]
    versions.back(home, folder, 1, keep=True)
    learned(folder, *range(2, 12))
    (before,) = versions.versions(home, folder)
    kept = home / versions.KEPT / before.id
    assert checkpoint.read(checkpoint.newest_first(kept / "checkpoints")[0], "mark").round == 30
    assert [point.round for point in points.kept(kept)][-1] == 30


@pytest.mark.parametrize("keep", [True, False])
def test_starting_over_leaves_nothing_but_what_is_kept(folder: Path, keep: bool) -> None:
    home = folder.parents[1]
    versions.start_over(home, folder, keep)
    assert not folder.exists()
    kept = versions.versions(home, folder)
    assert [one.rounds for one in kept] == ([30] if keep else [])
    if keep:
        assert versions.forget(home, folder, kept[0].id) > 0
        assert versions.versions(home, folder) == ()


def test_a_round_that_is_not_kept_is_refused_with_those_that_are(folder: Path) -> None:
    with pytest.raises(NodeError, match=r"Round 31 isn't kept. You can go back to: 1, "):
        versions.back(folder.parents[1], folder, 31, keep=False)
    with pytest.raises(NodeError, match="isn't one of the kept versions"):
        versions.bring_back(folder.parents[1], folder, "../../etc.1")


def test_a_damaged_point_is_left_out_and_later_ones_stay(folder: Path) -> None:
    (points.place(folder, 30) / checkpoint.STATE).write_bytes(b"{")
    assert 30 not in [point.round for point in points.kept(folder)]
    assert 1 in [point.round for point in points.kept(folder)]


@pytest.mark.parametrize(
    ("given", "kept"), [("  My  little  one ", "My little one"), ("", ""), ("Rechenmäuschen", "Rechenmäuschen")]
)
def test_a_name_is_kept_in_one_line(tmp_path: Path, given: str, kept: str) -> None:
    versions.call(tmp_path / "new", given)
    assert called(tmp_path / "new") == kept


def test_a_name_that_is_too_long_or_damaged_is_none(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="at most 40 letters"):
        versions.call(tmp_path, 41 * "x")
    (tmp_path / "name.json").write_bytes(msgspec.json.encode({"name": "a\x1b[2Jb"}))
    assert called(tmp_path) == ""
