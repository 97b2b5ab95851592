"""What the third version of the questions left behind, as its own code wrote it: an outbox of two groups that
were never sent, and a relay's archive of two. The questions differ since, so none of it may be learned from."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from random import Random

from app.relay.store.sqlite import SQLite
from app.sapo.groups import GroupRecord
from app.sapo.questions import QUESTIONS_VERSION
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.client.clock import RelayClock
from app.swarm.client.outbox import Outbox
from app.swarm.client.underway import Publisher
from app.swarm.intake.intake import Intake
from app.swarm.intake.reasons import IntakeReason
from app.swarm.wire.body import task_of
from app.swarm.wire.frames import decode_envelope, from_client
from app.swarm.wire.limits import RELAY_FILE
from app.swarm.wire.protocol import Pub, WantedQuestions
from tests.swarm.cases import ANN, NOW_MS, SWARM, question


def restore(name: str, path: Path) -> None:
    """Makes the database again from its dump."""
    dump = (Path(__file__).parent / "version3" / name).read_text(encoding="utf-8")
    with sqlite3.connect(path) as db:
        db.executescript(dump)
    db.close()


def test_an_older_outbox_opens_and_only_what_can_be_taken_is_sent(tmp_path: Path) -> None:
    restore("outbox.sql", tmp_path / "outbox.db")
    outbox = Outbox(tmp_path / "outbox.db")
    assert outbox.counts().waiting == 2 and outbox.keys() == {ANN.key}
    publisher = Publisher(outbox, ANN, RelayClock(wall_ms=lambda: NOW_MS), Random(1), now=0.0)
    publisher.set_swarm(SWARM)
    now = question(5).coordinates
    group = GroupRecord(coordinates=now, completions_G=("#1", "#2"), finished_G=(True, True), model="starter")
    assert publisher.add(group, (1, 0), 0.0)
    (frame,) = publisher.due(0.0)
    pub = from_client(frame)
    assert isinstance(pub, Pub) and f'"version":"{QUESTIONS_VERSION}"' in pub.body
    counts = outbox.counts()
    assert (counts.created, counts.waiting, counts.invalid, counts.dropped) == (3, 1, 2, 0)
    outbox.close()


def test_groups_of_an_older_archive_are_refused_with_their_reason(tmp_path: Path) -> None:
    restore("archive.sql", tmp_path / f"archive-{SWARM}.sqlite3")

    async def recalled() -> list[bytes]:
        file = SQLite(tmp_path, SWARM, archive=1 << 24, wall=lambda: NOW_MS / 1000)
        await file.start(lambda record: "accepted", lambda key, value: None, lambda relay, summary: None)
        assert [path.name for path in tmp_path.glob("*.sqlite3")] == [RELAY_FILE], "the old file is taken over"
        found = await file.recall([WantedQuestions(family="gcd", level=0)], 8, ANN.key, lambda key: 1.0)
        await file.close()
        return [one.raw for one in found]

    raws = asyncio.run(recalled())
    assert [task_of(decode_envelope(raw)).version for raw in raws] == [
        "0.1.25/3"
    ] * 2 and QUESTIONS_VERSION != "0.1.25/3"
    with Sandbox() as sandbox:
        intake = Intake(sandbox, SWARM, [ANN.key], families=["gcd"], longest=2000)
        assert [intake.check(raw, NOW_MS) for raw in raws] == [IntakeReason.OTHER_VERSION] * 2
        assert not IntakeReason.OTHER_VERSION.deliberate, "its author is not distrusted for it"
