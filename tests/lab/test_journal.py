from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from app.lab.arms import parse_arm
from app.lab.journal import JournalError, StudyJournal
from app.lab.plan import LabProbe, LabRound, digest
from tests.lab.rounds.test_experiment import PLAN

ARM = parse_arm("4/4+ds!shuffled", "faithful")
PROBE = LabProbe(pass_at_1_N=(0.1, 0.2, 0.3), families={"chain_sum": 0.2}, finished=1.0, worked=0.5)


def write(journal: StudyJournal, rounds: int, finish: bool = True) -> list[LabRound]:
    records = [LabRound(round=number, probe=PROBE, own_reward=0.25) for number in range(rounds)]
    with journal.open_run(ARM, 0) as run:
        for record in records:
            run.append(record)
        if finish:
            run.finish(PLAN.rounds)
    return records


def the_file(folder: Path) -> Path:
    (path,) = (folder / "rounds").iterdir()
    return path


def test_a_finished_run_is_read_back(tmp_path: Path) -> None:
    records = write(StudyJournal(tmp_path, PLAN), 5)
    assert StudyJournal(tmp_path, PLAN).read(ARM, 0) == records
    assert StudyJournal(tmp_path, PLAN).read(ARM, 1) is None
    assert StudyJournal(tmp_path, PLAN).read(parse_arm("4/4", "faithful"), 0) is None


def test_a_run_cut_off_anywhere_counts_as_not_there(tmp_path: Path) -> None:
    journal = StudyJournal(tmp_path, PLAN)
    write(journal, 5)
    whole = the_file(tmp_path).read_bytes()
    for length in [*range(0, len(whole), 23), *range(len(whole) - 30, len(whole) - 1)]:
        the_file(tmp_path).write_bytes(whole[:length])
        assert StudyJournal(tmp_path, PLAN).read(ARM, 0) is None
    the_file(tmp_path).write_bytes(whole[:-1])  # only the last line break is missing
    assert StudyJournal(tmp_path, PLAN).read(ARM, 0) is not None


def test_gaps_doubles_and_noise_count_as_not_there(tmp_path: Path) -> None:
    journal = StudyJournal(tmp_path, PLAN)
    write(journal, 4)
    assert journal.read(ARM, 0) is None
    write(journal, 6)
    assert journal.read(ARM, 0) is None
    write(journal, 5, finish=False)
    assert journal.read(ARM, 0) is None
    the_file(tmp_path).write_bytes(b"\xff\x00 not json\n{}\n")
    assert StudyJournal(tmp_path, PLAN).read(ARM, 0) is None


def test_a_run_that_starts_again_replaces_what_was_there(tmp_path: Path) -> None:
    journal = StudyJournal(tmp_path, PLAN)
    write(journal, 3, finish=False)
    records = write(journal, 5)
    assert journal.read(ARM, 0) == records


def test_another_plan_is_refused_and_named(tmp_path: Path) -> None:
    StudyJournal(tmp_path, PLAN)
    with pytest.raises(JournalError, match=r"learning_rate 0\.001 there, 0\.002 now"):
        StudyJournal(tmp_path, msgspec.structs.replace(PLAN, learning_rate=0.002))
    with pytest.raises(JournalError, match="weights"):
        StudyJournal(tmp_path, msgspec.structs.replace(PLAN, weights="other"))


def test_a_file_or_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(JournalError, match="is a file"):
        StudyJournal(tmp_path / "file", PLAN)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(JournalError, match="cannot be read"):
        StudyJournal(tmp_path, PLAN)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_models_digest_follows_its_weights(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "config.json").write_bytes(b"{}")
    first = digest(tmp_path)
    (tmp_path / "README.md").write_bytes(b"about")
    assert digest(tmp_path) == first
    (tmp_path / "model.safetensors").write_bytes(b"Weights")
    assert digest(tmp_path) != first
