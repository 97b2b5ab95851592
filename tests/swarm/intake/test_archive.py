"""Groups handed on as a file: written, read back, checked like a relay's, kept for a lesson."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.common.files import transaction
from app.node.swarm.member import SwarmMember
from app.relay.store.sqlite import SQLite
from app.sapo.families import FAMILIES
from app.sapo.groups import GroupRecord
from app.sapo.recipes import RECIPES
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.identity.identity import Identity
from app.swarm.intake import archive, intake
from app.swarm.intake.archive import ArchivedGroup, ArchiveError
from app.swarm.intake.reasons import IntakeReason
from app.swarm.wire.body import Envelope
from app.swarm.wire.limits import Quotas
from tests.swarm.cases import ANN, BOB, NOW_MS, SWARM, honest, signed

YEAR_MS = 365 * 24 * 3600 * 1000


def line(envelope: Envelope, swarm: str = SWARM) -> ArchivedGroup:
    return ArchivedGroup(swarm=swarm, group=envelope)


def checked(
    lines: Sequence[ArchivedGroup], sandbox: Sandbox, now_ms: int = NOW_MS, keys: Sequence[bytes] = ()
) -> tuple[list[GroupRecord], Counter[IntakeReason]]:
    """What passes, and what is refused."""
    verdicts = [verdict for _, verdict in archive.check_groups(lines, sandbox, keys, now_ms)]
    refused = Counter(one for one in verdicts if isinstance(one, IntakeReason))
    return [one for one in verdicts if isinstance(one, GroupRecord)], refused


def test_a_year_later_a_file_gives_what_its_authors_signed(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_SHARE", Quotas(publish_per_min=1, publish_burst=1))
    file, groups = tmp_path / "a.jsonl", [signed(honest(n)) for n in range(4)]
    assert archive.write(file, map(line, [*groups, groups[0]])) == 4, "once each"
    found = archive.read(file)
    assert not found.unreadable and not found.more
    passed, refused = checked(found.lines, sandbox, NOW_MS + YEAR_MS)
    assert not refused, "more of one author than a relay takes"
    assert [group.id for group in passed] == [group.id for group in groups]
    assert checked(found.lines, sandbox, keys=(ANN.key,))[1] == {IntakeReason.OWN: 4}


LIES: dict[str, tuple[dict[str, Any], dict[str, Any], IntakeReason]] = {
    "rewards": ({"rewards": [0, 1, 0]}, {}, IntakeReason.FALSE_REWARDS),
    "signature": ({}, {"sig": "00" * 64}, IntakeReason.BAD_SIGNATURE),
    "the future": ({"created_ms": NOW_MS + YEAR_MS}, {}, IntakeReason.AHEAD),
    "control words": ({"completions": ["\u202e", "#1", "hm"]}, {}, IntakeReason.UNSAFE),
}


@pytest.mark.parametrize("lie", LIES)
def test_every_wall_of_the_wire_stands_before_a_file(sandbox: Sandbox, lie: str) -> None:
    body, envelope, reason = LIES[lie]
    passed, refused = checked([line(signed(honest(5) | body, **envelope))], sandbox)
    assert refused == {reason: 1} and not passed


def test_held_out_questions_and_other_swarms_do_not_come_in(sandbox: Sandbox) -> None:
    lines = [line(signed(honest(0, held_out=True))), line(signed(honest(6)), "another-swarm")]
    assert checked(lines, sandbox)[1] == {IntakeReason.HELD_OUT: 1, IntakeReason.BAD_ID: 1}


BROKEN = {
    "nothing": b"",
    "another file": b"\x89PNG\r\n\x1a\n" * 100,
    "one endless line": b'{"swarm":"' + b"x" * 5_000_000,
    "deep": b"[" * 200_000 + b"\n",
    "not Unicode": b'{"swarm":"\xff\xfe"}\n' * 10,
    "another shape": b'{"swarm":"abc","group":{"id":1}}\n',
}


@pytest.mark.parametrize("content", BROKEN)
def test_what_is_no_archive_is_refused_in_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "x").write_bytes(BROKEN[content])
    with pytest.raises(ArchiveError, match="no groups"):
        archive.read(tmp_path / "x")


def test_lines_that_cannot_be_read_leave_the_others(tmp_path: Path) -> None:
    good = msgspec.json.encode(line(signed(honest())))
    (tmp_path / "x").write_bytes(b"junk\n" + good + b"\n" + good[:40] + b"\n")
    found = archive.read(tmp_path / "x")
    assert len(found.lines) == 1 and found.unreadable == 2


def identities(count: int) -> list[Identity]:
    return [Identity(bytes([number]) * 32) for number in range(count)]


def test_a_flood_ends_the_reading_and_what_is_no_file_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_GROUPS", 100)
    good = msgspec.json.encode(line(signed(honest()))) + b"\n"
    (tmp_path / "x").write_bytes(good + b"\n" * 1_000_000)
    assert archive.read(tmp_path / "x")[1:] == (100, True)
    (tmp_path / "x").write_bytes(good * 101)
    found = archive.read(tmp_path / "x")
    assert len(found.lines) == 100 and found.more
    os.mkfifo(tmp_path / "pipe")  # opened, it would wait for a writer
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link", "."):
        with pytest.raises(ArchiveError, match="isn't a file"):
            archive.read(tmp_path / name)


def test_puzzles_that_take_long_end_a_check_and_the_owners_own_sets_are_none_of_others_business(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = honest(7) | {"task": honest(7)["task"] | {"family": "own_0123456789abcdef"}}
    monkeypatch.setitem(FAMILIES._own, "own_0123456789abcdef", FAMILIES["gcd"])
    assert checked([line(signed(own))], sandbox)[1] == {IntakeReason.FAMILY_OFF: 1}
    monkeypatch.setattr(archive, "MAX_CHECK_S", 0.0)
    assert checked([line(signed(honest(8)))], sandbox)[1] == {IntakeReason.UNCHECKED: 1}


def test_an_author_that_lies_is_passed_over_in_every_swarm_of_a_file(sandbox: Sandbox) -> None:
    """A swarm for each line is neither another memory nor another chance."""
    lies = [honest(n) | {"rewards": [0, 1, 0], "swarm": f"swarm-{n}"} for n in range(5)]
    lines = [line(signed(one, swarm=one["swarm"]), one["swarm"]) for one in lies]
    refused = checked(lines, sandbox)[1]
    assert refused == {IntakeReason.FALSE_REWARDS: 3, IntakeReason.DISTRUSTED: 2}


def test_a_flood_of_keys_leaves_other_authors_their_share(tmp_path: Path) -> None:
    honest_ones = [line(signed(honest(n), me=BOB)) for n in range(6)]
    flood = [line(signed(honest(n), me=one)) for one in identities(3) for n in range(20)]
    kept = archive.select_within_limits([*honest_ones, *flood], most=16)
    assert [one.group.pk for one in kept].count(BOB.key.hex()) == 4
    assert kept == [one for one in (*honest_ones, *flood) if one in kept], "in their order"
    assert honest_ones[-1] in kept and honest_ones[0] not in kept, "the latest"
    size = len(msgspec.json.encode(honest_ones[0])) + 1
    assert len(archive.select_within_limits(honest_ones, most_bytes=2 * size + 10)) == 2


def test_a_relays_day_is_read_while_it_runs(tmp_path: Path) -> None:
    store = SQLite(tmp_path, SWARM, archive=2**20)
    raw = msgspec.json.encode(signed(honest()))
    with transaction(store._db):
        store._db.execute(
            "INSERT INTO groups (id, key, key_seq, address, family, level, arrived_ms, raw)"
            " VALUES (x'00', x'00', 0, '', 'gcd', 0, 0, ?)",
            (raw,),
        )
    (found,) = archive.read_relay_archive(tmp_path)
    assert found.swarm == SWARM and msgspec.json.encode(found.group) == raw
    with pytest.raises(ArchiveError, match="--state"):
        list(archive.read_relay_archive(tmp_path / "nothing"))


def test_a_node_alone_lets_imported_groups_wait_for_a_lesson(tmp_path: Path, sandbox: Sandbox) -> None:
    lines = [line(signed(honest(n) | {"created_ms": time.time_ns() // 10**6})) for n in range(5)]
    assert archive.keep(tmp_path, lines[:3]) == 3
    assert archive.keep(tmp_path, lines[2:]) == 5

    async def wait() -> list[str]:
        alone = SwarmMember(tmp_path, None, recipe=RECIPES["default"], external=0, families=())
        alone.open(sandbox, lambda event: None, lambda view: None)
        alone.practise_families(["chain_sum"])
        while len(waiting := alone.buffer.waiting_groups()) < 5:
            await asyncio.sleep(0.05)
        assert alone.buffer.imported == {ANN.key.hex()}
        await alone.close()
        return [group.author for group in waiting]

    assert set(asyncio.run(asyncio.wait_for(wait(), 60))) == {ANN.name}
