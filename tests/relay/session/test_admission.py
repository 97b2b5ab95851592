"""The relay's table of rules, case by case: a frame, what is known of its sender, and what becomes of it."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from app.relay.session.admission import BUCKETS, RULES, Facts, decide
from app.swarm.wire.limits import FRAME_BYTES, Code, Flaw, Refused
from app.swarm.wire.protocol import (
    ARCHIVE,
    CLASS,
    QUESTIONS,
    RECEIPTS,
    STATS_SUB,
    ZLIB,
    AskQuestions,
    AskStats,
    Auth,
    ClassProgress,
    Erase,
    FromClient,
    Pub,
    Recall,
    Receipts,
    Report,
    Rest,
    Sample,
    WantedQuestions,
)
from tests.relay.talking import sealed

AUTH = Auth(pk="0" * 64, sig="0" * 128, proto=2, client="test/1")
PUB, ZIPPED = Pub.of(sealed(1, 1)), Pub.of(sealed(1, 1, enc="zlib"))
SAMPLE = Sample(rid=1, k=8, max_bytes=2 * FRAME_BYTES)
RECALL = Recall(rid=1, k=8, tasks=(WantedQuestions(family="gcd", level=0),))
REPORT = Report(ids=("0" * 64,), reason="bad_sig")
PROGRESS = ClassProgress(round=1, share=0.5, families={})
NEW = Facts(signed_in=False)
MAY = Facts(agreed=frozenset({ARCHIVE, CLASS, QUESTIONS, RECEIPTS, STATS_SUB, ZLIB}))


def but(**facts: object) -> Facts:
    return msgspec.structs.replace(MAY, **facts)


def new(**facts: object) -> Facts:
    return msgspec.structs.replace(NEW, **facts)


NOT_INVITED, FORGED = Refused(Flaw.NOT_INVITED, "no"), Refused(Flaw.BAD_SIGNATURE, "no")


@pytest.mark.parametrize(
    ("frame", "facts", "code", "wait_s"),
    [
        (AUTH, MAY, Code.INVALID, None),
        (AUTH, new(flaw=NOT_INVITED), NOT_INVITED.code, 60.0),
        (AUTH, new(flaw=FORGED, treatment="blocked"), FORGED.code, None),
        (AUTH, new(treatment="blocked"), Code.BLOCKED, None),
        (AUTH, new(connections=2), Code.RATE_LIMITED, 30.0),
        (AUTH, new(crowded=True), Code.RATE_LIMITED, 30.0),
        (AUTH, new(wait_s=7.0), Code.RATE_LIMITED, 7.0),
        *((frame, NEW, Code.RESTRICTED, None) for frame in (PUB, SAMPLE, RECALL, Erase(), REPORT, Receipts())),
        *((frame, but(treatment="blocked", wait_s=1.0), Code.BLOCKED, None) for frame in (PUB, SAMPLE, RECALL)),
        *(
            (frame, but(wait_s=1.5), Code.RATE_LIMITED, 1.5)
            for frame in (PUB, SAMPLE, RECALL, Erase(), REPORT, Receipts(), AskStats(), AskQuestions())
        ),
        (SAMPLE, but(bytes_left=FRAME_BYTES - 1, wait_s=1.5), Code.RATE_LIMITED, 5.0),
        (ZIPPED, Facts(), Code.UNSUPPORTED, None),
        (RECALL, Facts(), Code.UNSUPPORTED, None),
        (Receipts(), Facts(), Code.UNSUPPORTED, None),
        (AskStats(subscribe=True), Facts(), Code.UNSUPPORTED, None),
        *((frame, Facts(), Code.UNSUPPORTED, None) for frame in (PROGRESS, Rest(on=True))),
        (AskQuestions(), NEW, Code.UNSUPPORTED, None),
        (PROGRESS, but(wait_s=1.0), None, None),
        (Receipts(), but(treatment="shadowed"), None, None),
    ],
)
def test_a_frame_is_refused(frame: FromClient, facts: Facts, code: Code | None, wait_s: float | None) -> None:
    verdict = decide(frame, facts)
    assert verdict is not None and (verdict.code, verdict.wait_s) == (code, wait_s)


@pytest.mark.parametrize(
    ("frame", "facts"),
    [
        (AUTH, new(treatment="shadowed", connections=1)),
        (AUTH, new(crowded=True, known=True)),
        (PUB, Facts(treatment="shadowed")),
        (SAMPLE, but(bytes_left=FRAME_BYTES)),
        (AskStats(), NEW),
        *((frame, MAY) for frame in (ZIPPED, RECALL, Erase(), REPORT, Receipts(), PROGRESS, AskQuestions())),
        (AskStats(subscribe=True), MAY),
    ],
)
def test_a_frame_is_admitted(frame: FromClient, facts: Facts) -> None:
    assert decide(frame, facts) is None


def test_every_kind_of_frame_has_its_rules_and_its_bucket() -> None:
    assert set(RULES) == set(get_args(FromClient)) == {*BUCKETS, Auth}
