"""The outbox: order, room, numbers, full disks, kill -9."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.swarm.client.outbox import MIN_BYTES, MIN_MESSAGES, Outbox, OutboxCounts, OutboxError
from app.swarm.wire import frames, protocol
from app.swarm.wire.body import Envelope, unseal
from app.swarm.wire.limits import FRAME_BYTES, OPEN_PUBLISHES, Code, Flaw, Refused

KEY = bytes(range(32))
FIRST = 1_800_000_000_000
PUBLISHER = Path(__file__).parents[1].joinpath("publisher.py")


def making(size: int = 10, key: bytes = KEY) -> Callable[[int], Envelope]:
    """Envelopes without real signatures: the outbox does not look into them."""
    return lambda number: Envelope(
        id=sha256(key + number.to_bytes(8, "big")).hexdigest(), pk=key.hex(), sig="00" * 64, body="x" * size
    )


def opened(folder: Path, **limits: int) -> Outbox:
    return Outbox(folder / "outbox.db", clock_ms=lambda: FIRST, **limits)


def total(counts: OutboxCounts) -> int:
    return sum(value for name, value in msgspec.structs.asdict(counts).items() if name != "created")


def test_messages_go_out_oldest_first_as_they_were_made(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    added = [outbox.add(KEY, making()) for _ in range(5)]
    assert [one.key_seq for one in added] == [FIRST, FIRST + 1, FIRST + 2, FIRST + 3, FIRST + 4]
    assert outbox.take(2) == added[:2]
    assert outbox.take() == added[2:]
    assert outbox.take() == []
    read = frames.from_client(added[0].frame)
    assert isinstance(read, protocol.Pub) and read.envelope() == making()(FIRST)


@pytest.mark.parametrize("code", list(Code))
def test_only_a_final_answer_ends_a_message(tmp_path: Path, code: Code) -> None:
    outbox = opened(tmp_path)
    message = outbox.add(KEY, making())
    outbox.take()
    assert outbox.settle(message.id, code) == code.final
    assert outbox.take() == ([] if code.final else [message])
    outbox.close()
    again = opened(tmp_path)
    assert again.take() == ([] if code.final else [message])
    counts = again.counts()
    assert counts.created == 1 and total(counts) == 1
    assert getattr(counts, code.value if code.final else "waiting") == 1


def test_an_answer_counts_once_and_only_for_what_is_under_way(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    message, other = outbox.add(KEY, making()), outbox.add(KEY, making())
    assert not outbox.settle(message.id, Code.ACCEPTED)
    outbox.take(1)
    assert outbox.settle(message.id, Code.ACCEPTED)
    assert not outbox.settle(message.id, Code.ACCEPTED)
    assert not outbox.settle("ff" * 32, Code.ACCEPTED)
    assert outbox.counts() == OutboxCounts(created=2, waiting=1, accepted=1)
    assert outbox.take() == [other]


def test_a_lost_connection_sends_the_same_again_in_the_same_order(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    added = [outbox.add(KEY, making()) for _ in range(20)]
    assert outbox.take() == added[:OPEN_PUBLISHES]
    assert outbox.take() == []
    outbox.on_disconnect()
    assert outbox.take(99) == added[:OPEN_PUBLISHES]


def test_the_oldest_unsent_is_dropped_and_counted(tmp_path: Path) -> None:
    outbox = opened(tmp_path, max_messages=MIN_MESSAGES)
    added = [outbox.add(KEY, making()) for _ in range(MIN_MESSAGES)]
    under_way = outbox.take(2)
    outbox.add(KEY, making())
    assert outbox.counts() == OutboxCounts(created=MIN_MESSAGES + 1, waiting=MIN_MESSAGES, dropped=1)
    outbox.on_disconnect()
    assert outbox.take(3) == [*under_way, added[3]]


def test_room_is_measured_in_bytes_too(tmp_path: Path) -> None:
    outbox = opened(tmp_path, max_bytes=MIN_BYTES)
    size = FRAME_BYTES // 2
    added = [outbox.add(KEY, making(size)) for _ in range(60)]
    counts = outbox.counts()
    assert counts.dropped == 60 - counts.waiting
    kept = sum(len(one.frame) for one in added[counts.dropped :])
    assert MIN_BYTES - FRAME_BYTES < kept <= MIN_BYTES
    outbox.close()
    again = opened(tmp_path, max_bytes=MIN_BYTES)
    again.add(KEY, making(FRAME_BYTES - 1000))
    assert again.counts().dropped > counts.dropped


def test_limits_too_small_to_keep_what_is_under_way_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        opened(tmp_path, max_messages=MIN_MESSAGES - 1)
    with pytest.raises(ValueError):
        opened(tmp_path, max_bytes=MIN_BYTES - 1)


def test_a_message_that_cannot_be_made_leaves_no_trace(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    with pytest.raises(Refused) as refusal:
        outbox.add(KEY, making(FRAME_BYTES))
    assert refusal.value.flaw == Flaw.TOO_LARGE
    with pytest.raises(ZeroDivisionError):
        outbox.add(KEY, lambda number: making()(number // 0))
    assert outbox.counts() == OutboxCounts()
    assert outbox.add(KEY, making()).key_seq == FIRST


def test_numbers_go_on_after_a_restart_and_are_each_key_s_own(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    message = outbox.add(KEY, making())
    outbox.take()
    outbox.settle(message.id, Code.ACCEPTED)
    outbox.close()
    again = Outbox(tmp_path / "outbox.db", clock_ms=lambda: 5)  # the clock was set back
    assert again.add(KEY, making()).key_seq == FIRST + 1
    other = b"o" * 32
    assert again.add(other, making(key=other)).key_seq == 5


def test_a_key_whose_disk_was_lost_counts_above_what_it_counted_before(tmp_path: Path) -> None:
    one = Outbox(tmp_path / "old.db", clock_ms=lambda: FIRST)
    last = [one.add(KEY, making()).key_seq for _ in range(10)][-1]
    two = Outbox(tmp_path / "new.db", clock_ms=lambda: FIRST + 1000)
    assert two.add(KEY, making()).key_seq > last


def test_one_process_holds_it(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    with pytest.raises(OutboxError, match="in use"):
        opened(tmp_path)
    outbox.close()
    opened(tmp_path).close()


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "outbox.db").write_bytes(content)
    with pytest.raises(OutboxError, match="damaged"):
        opened(tmp_path)
    assert (tmp_path / "outbox.db").read_bytes() == content


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "outbox.db")
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(OutboxError, match="another version"):
        opened(tmp_path)


def test_a_full_disk_loses_nothing_that_was_there(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    first = outbox.add(KEY, making())
    (pages,) = outbox._db.execute("PRAGMA page_count").fetchone()
    outbox._db.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(sqlite3.OperationalError):
        outbox.add(KEY, making(FRAME_BYTES - 1000))
    assert outbox.counts() == OutboxCounts(created=1, waiting=1)
    outbox._db.execute("PRAGMA max_page_count=100000")
    assert outbox.add(KEY, making()).key_seq == first.key_seq + 1
    assert len(outbox.take()) == 2


def test_kill_9_at_any_moment_loses_nothing_and_reuses_no_number(tmp_path: Path) -> None:
    """A real process, killed after 1, 2, 5, 17 and 40 of its lines, each time on the same file."""
    path = tmp_path / "outbox.db"
    added: dict[str, int] = {}
    answering: set[str] = set()
    answered: set[str] = set()
    for lines in (1, 2, 5, 17, 40):
        process = subprocess.Popen(
            [sys.executable, str(PUBLISHER), str(path)], stdout=subprocess.PIPE, text=True,
            env={"PYTHONPATH": str(PUBLISHER.parents[2]), "SYSTEMROOT": "C:\\Windows"},
        )  # fmt: skip
        assert process.stdout is not None
        try:
            said = [process.stdout.readline() for _ in range(lines)]
        finally:
            process.kill()
        said += process.communicate()[0].splitlines(keepends=True)
        for line in said:
            if not line.endswith("\n"):  # cut off by the kill: as good as unsaid
                continue
            match line.split():
                case ["added", id_, number]:
                    assert id_ not in added and int(number) > max(added.values(), default=0)
                    added[id_] = int(number)
                case ["answering", id_]:
                    answering.add(id_)
                case ["answered", id_]:
                    answered.add(id_)

        outbox = Outbox(path)
        counts = outbox.counts()
        rows = dict(outbox._db.execute("SELECT id, key_seq FROM messages").fetchall())
        assert outbox._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert added.keys() - answering <= rows.keys(), "a message that nobody answered is gone"
        assert not answered & rows.keys(), "a message that was answered came back"
        assert len(answered) <= counts.accepted <= len(answering)
        assert counts.created == counts.waiting + counts.accepted and counts.waiting == len(rows)
        assert len(set(rows.values())) == len(rows)
        for message in outbox.take():
            pub = frames.from_client(message.frame)
            assert isinstance(pub, protocol.Pub)
            assert unseal(pub.envelope(), "example-swarm").key_seq == message.key_seq == rows[message.id]
        outbox.close()
        added |= rows  # also those whose line was never said
    assert len(added) > 20 and len(answered) > 5


class Life(RuleBasedStateMachine):
    """An outbox against a plain list: the same order, drops and counts through restarts."""

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.outbox = self.reopened()
        self.waiting: list[tuple[str, int]] = []
        self.under_way: list[str] = []
        self.last = FIRST - 1
        self.expected = dict.fromkeys(OutboxCounts.__struct_fields__, 0)

    def reopened(self) -> Outbox:
        return opened(Path(self.folder.name), max_messages=MIN_MESSAGES, max_bytes=MIN_BYTES)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.outbox.close()
            self.folder.cleanup()

    @rule(size=st.integers(0, FRAME_BYTES - 500), times=st.integers(1, 12))
    def add(self, size: int, times: int) -> None:
        for _ in range(times):
            message = self.outbox.add(KEY, making(size))
            assert message.key_seq == self.last + 1
            self.last += 1
            self.waiting.append((message.id, len(message.frame)))
            self.expected["created"] += 1
            while len(self.waiting) > MIN_MESSAGES or sum(one[1] for one in self.waiting) > MIN_BYTES:
                self.waiting.remove(next(one for one in self.waiting if one[0] not in self.under_way))
                self.expected["dropped"] += 1

    @rule(most=st.integers(0, 20))
    def take(self, most: int) -> None:
        free = [id_ for id_, _ in self.waiting if id_ not in self.under_way]
        taken = [one.id for one in self.outbox.take(most)]
        assert taken == free[: min(most, OPEN_PUBLISHES - len(self.under_way))]
        self.under_way += taken

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), code=st.sampled_from(Code))
    def answer(self, data: st.DataObject, code: Code) -> None:
        id_ = data.draw(st.sampled_from(self.under_way))
        assert self.outbox.settle(id_, code) == code.final
        self.under_way.remove(id_)
        if code.final:
            self.waiting = [one for one in self.waiting if one[0] != id_]
            self.expected[code.value] += 1

    @rule()
    def lose_the_connection(self) -> None:
        self.outbox.on_disconnect()
        self.under_way = []

    @rule()
    def restart(self) -> None:
        self.outbox.close()
        self.outbox = self.reopened()
        self.under_way = []

    @invariant()
    def every_message_is_accounted_for(self) -> None:
        if hasattr(self, "outbox"):
            self.expected["waiting"] = len(self.waiting)
            counts = self.outbox.counts()
            assert msgspec.structs.asdict(counts) == self.expected
            assert counts.created == total(counts)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=15, stateful_step_count=20)
