"""Checkpoints on disk: written whole or not at all, checked when read, two kept, nothing damaged deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.node.data.home import NewerVersionError
from app.node.history import checkpoint
from app.node.history.checkpoint import CheckpointError
from app.node.record.state import NodeState
from app.sapo import curriculum

STATE = NodeState(
    round=1, curriculum=curriculum.start({"chain_sum": 1, "gcd": 0}), identity="abc", own_logprob=-1.5
)


def write(root: Path, round_: int = 1) -> Path:
    unfinished = checkpoint.begin(root, round_)
    (unfinished / "adapter.safetensors").write_bytes(b"adapter" * 100)
    (unfinished / "more").mkdir()
    (unfinished / "more" / "optimizer.safetensors").write_bytes(b"optimizer" * 100)
    checkpoint.seal(unfinished, "mark", STATE)
    return checkpoint.publish(unfinished, root, round_)


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    assert checkpoint.read(write(tmp_path), "mark") == STATE


def test_two_are_kept_and_the_newest_comes_first(tmp_path: Path) -> None:
    for round_ in (1, 2, 9, 10, 1_000_000):
        write(tmp_path, round_)
    assert [folder.name for folder in checkpoint.newest_first(tmp_path)] == ["round-1000000", "round-000010"]
    assert {path.name for path in tmp_path.iterdir()} == {"round-1000000", "round-000010"}


def test_an_unfinished_one_is_not_seen_and_is_swept_away(tmp_path: Path) -> None:
    write(tmp_path, 1)
    unfinished = checkpoint.begin(tmp_path, 2)
    (unfinished / "adapter.safetensors").write_bytes(b"half")
    assert [folder.name for folder in checkpoint.newest_first(tmp_path)] == ["round-000001"]
    checkpoint.sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["round-000001"]


def test_a_file_that_was_to_take_anothers_place_is_swept_away(tmp_path: Path) -> None:
    names = (
        "measured/.a-latest.json-15854",
        "measured/a-first.json",
        "placement.json",
        ".placement.json-7",
        ".hidden",
    )
    (tmp_path / "measured").mkdir()
    for name in names:
        (tmp_path / name).touch()
    checkpoint.sweep_files(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"measured/a-first.json", "placement.json", ".hidden"}


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_changed_or_missing_byte_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = write(tmp_path_factory.mktemp("root"))
    path = data.draw(
        st.sampled_from(sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "state.json"))
    )
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del content[at:]
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="changed or cut off"):
        checkpoint.read(folder, "mark")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "can't be read"),
        ("[]", "can't be read"),
        ("\0" * 5000, "can't be read"),
        ('{"format": 1}', "can't be read"),
    ],
)
def test_a_state_that_is_none_is_noticed(tmp_path: Path, text: str, why: str) -> None:
    folder = write(tmp_path)
    (folder / "state.json").write_text(text)
    with pytest.raises(CheckpointError, match=why):
        checkpoint.read(folder, "mark")


def test_another_model_and_another_format_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path)
    with pytest.raises(CheckpointError, match="another model"):
        checkpoint.read(folder, "other")
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "format": 99}))
    with pytest.raises(NewerVersionError, match="format 99"):
        checkpoint.read(folder, "mark")


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "more/../../outside"])
def test_names_never_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "root")
    (tmp_path / "root" / "outside").write_text("x")
    state = json.loads((folder / "state.json").read_text())
    state["files"][name] = {"bytes": 1, "sha256": "0"}
    (folder / "state.json").write_text(json.dumps(state))
    with pytest.raises(CheckpointError, match="missing"):
        checkpoint.read(folder, "mark")


def test_damaged_ones_are_kept_under_names_of_their_own(tmp_path: Path) -> None:
    asides = set()
    for _ in range(3):
        asides.add(checkpoint.set_aside(write(tmp_path)).name)
    assert len(asides) == 3 and all(name.startswith("damaged-round-000001") for name in asides)
    assert checkpoint.newest_first(tmp_path) == []


def test_a_round_that_is_written_again_does_not_overwrite(tmp_path: Path) -> None:
    write(tmp_path, 4)
    write(tmp_path, 4)
    assert {path.name for path in tmp_path.iterdir()} == {"round-000004", "damaged-round-000004"}
