from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from app.lab.arms import parse_arm
from app.lab.journal import FOLDER, PACKED, STUDY, JournalError, StudyJournal, pack, read_study
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


def test_a_study_whose_arms_had_another_meaning_is_refused(tmp_path: Path) -> None:
    """Then `@default` stood for weights alone; defences and steps were asked for."""
    write(StudyJournal(tmp_path, PLAN), 5)
    plan = msgspec.json.decode((tmp_path / STUDY).read_bytes())
    del plan["words"]
    (tmp_path / STUDY).write_bytes(msgspec.json.encode(plan))
    for read in (lambda: read_study(tmp_path), lambda: StudyJournal(tmp_path, PLAN)):
        with pytest.raises(JournalError, match="named as before"):
            read()


def test_a_study_goes_on_from_its_archive(tmp_path: Path) -> None:
    records, other = write(StudyJournal(tmp_path, PLAN), 5), parse_arm("4/4", "faithful")
    name, loose = the_file(tmp_path).name, the_file(tmp_path).read_bytes()
    with StudyJournal(tmp_path, PLAN).open_run(other, 0):
        pass
    pack(tmp_path, PLAN.rounds)
    first = (tmp_path / PACKED).read_bytes()
    assert the_file(tmp_path).name.startswith("4-4@faithful.seed0"), "what is not finished stays a file"
    assert (
        StudyJournal(tmp_path, PLAN).read(ARM, 0) == records
        and StudyJournal(tmp_path, PLAN).read(other, 0) is None
    )
    assert read_study(tmp_path).finished == 1
    journal = StudyJournal(tmp_path, PLAN)
    with journal.open_run(other, 0) as run:
        for record in records:
            run.append(record)
        run.finish(PLAN.rounds)
    assert journal.read(other, 0) == records
    pack(tmp_path, PLAN.rounds)
    assert not (tmp_path / FOLDER).exists() and read_study(tmp_path).finished == 2
    (tmp_path / PACKED).unlink()
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / name).write_bytes(loose)
    pack(tmp_path, PLAN.rounds)
    assert (tmp_path / PACKED).read_bytes() == first, "the same bytes from the same runs"


@pytest.mark.parametrize("damage", [lambda whole: whole[:-40], lambda whole: b"no archive", lambda whole: b""])
def test_a_damaged_archive_is_refused_and_kept(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    write(StudyJournal(tmp_path, PLAN), 5)
    pack(tmp_path, PLAN.rounds)
    damaged = damage((tmp_path / PACKED).read_bytes())
    (tmp_path / PACKED).write_bytes(damaged)
    with pytest.raises(JournalError, match=r"rounds\.tar\.xz cannot be read"):
        StudyJournal(tmp_path, PLAN).read(ARM, 0)
    with pytest.raises(JournalError, match=r"rounds\.tar\.xz cannot be read"):
        read_study(tmp_path)
    assert (tmp_path / PACKED).read_bytes() == damaged


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
