"""Messages as they really go over the line: read for people, shown word for word, and wide as they like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtWidgets import QApplication, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.sapo.questions import Coordinates, generate
from app.swarm.client.status import MAX_KEPT_MESSAGE_BYTES, Ledger
from app.swarm.identity.identity import node_name
from app.swarm.wire import protocol
from app.swarm.wire.body import Body, Encoding, WireTask, seal
from app.swarm.wire.frames import to_frame
from app.swarm.wire.limits import LoggedMessage
from app.swarm.wire.protocol import Pub, SampleReply
from app.ui.privacy.live import Live
from app.ui.privacy.message import MessageRow, groups, meaning
from app.ui.privacy.page import Privacy
from app.ui.process.past import Questions
from app.ui.shell.window import MIN, MainWindow
from app.ui.view.view import View
from tests.ui import views
from tests.ui.drawing import texts
from tests.ui.geometry import faults

Opened = Callable[..., Any]
SEED = bytes(range(32))
PLACE = Coordinates(family="gcd", level=1, seed=77, index=0)


def envelope(answers: int = 8, enc: Encoding = "plain", length: int = 40):  # type: ignore[no-untyped-def]
    body = Body(
        swarm="reef",
        key_seq=1,
        created_ms=1,
        task=WireTask.of(PLACE),
        model="starter",
        completions=tuple(f"{'7' * length}#{at}" for at in range(answers)),
        finished=(True,) * answers,
        rewards=(1,) + (0,) * (answers - 1),
    )
    return seal(body, SEED, enc)


def told(*frames: tuple[bool, bytes]) -> tuple[LoggedMessage, ...]:
    ledger = Ledger()
    for outgoing, frame in frames:
        (ledger.record_sent if outgoing else ledger.record_received)(frame)
    return ledger.messages


def batch(count: int) -> bytes:
    items = tuple(msgspec.Raw(msgspec.json.encode(envelope())) for _ in range(count))
    return to_frame(SampleReply(rid=1, items=items, window=9, eligible=9, sources=3, age_p50_s=4))


def test_every_message_of_the_protocol_is_told_in_plain_words() -> None:
    kinds = {
        str(one.__struct_config__.tag): issubclass(one, protocol._FromClient) or one is Pub
        for one in vars(protocol).values()
        if isinstance(one, type) and issubclass(one, msgspec.Struct) and one.__struct_config__.tag
        if not one.__name__.startswith("_")
    }
    for kind, outgoing in kinds.items():
        said = meaning(LoggedMessage(at=0.0, outgoing=outgoing, kind=kind, size=1, text="{}"))
        assert said != kind and " " in said, kind
    assert {"recall", "taught"} <= kinds.keys()


@pytest.mark.parametrize("enc", ["plain", "zlib"])
def test_what_went_out_is_read_as_puzzle_and_answers(enc: Encoding) -> None:
    (message,) = told((True, to_frame(Pub.of(envelope(enc=enc)))))
    (group,) = groups(message)
    assert group.coordinates == PLACE and group.peer is None
    assert group.rewards_G == (1, 0, 0, 0, 0, 0, 0, 0) and group.completions_G[3].endswith("#3")


def test_of_a_long_batch_the_beginning_is_read() -> None:
    frame = batch(40)
    assert len(frame) > MAX_KEPT_MESSAGE_BYTES
    (message,) = told((False, frame))
    found = groups(message)
    assert 5 < len(found) < 40
    assert {group.peer for group in found} == {node_name(bytes.fromhex(envelope().pk))}


@given(st.text(max_size=300), st.sampled_from(["pub", "batch", "sample"]), st.booleans())
def test_no_text_breaks_the_reading(text: str, kind: str, outgoing: bool) -> None:
    for whole in (text, f'{{"t":"{kind}","items":[{text}', '{"items":[' + "[" * 90_000, f'{{"body":{text}}}'):
        for group in groups(LoggedMessage(at=0.0, outgoing=outgoing, kind=kind, size=1, text=whole)):
            assert len(group.completions_G) == len(group.rewards_G)


def exchanged(*messages: LoggedMessage) -> View:
    return views.learning(solo=False, swarm=views.swarm(3, messages=messages))


def test_real_messages_fit_the_smallest_window_also_when_all_are_open(window: MainWindow) -> None:
    pub, peers = to_frame(Pub.of(envelope(length=900))), batch(3)
    window.resize(*MIN)
    window.show_view(exchanged(*told((True, pub), (False, peers), (True, pub))))
    window.go("privacy")
    page = window._pages["privacy"]
    assert isinstance(page, Privacy)
    for line in page._feed.rows[:3]:
        line._open.click()
    for _ in range(12):
        QApplication.processEvents()
    assert page.widget().width() == page.viewport().width() and not faults(window)
    assert len(page.findChildren(QPlainTextEdit)) == 3
    page._close_rows()
    QApplication.sendPostedEvents(None, 52)  # QEvent.DeferredDelete
    assert not page.findChildren(QPlainTextEdit)


def test_nothing_moves_under_somebody_who_reads(opened: Opened) -> None:
    page = opened(Privacy)
    first = told((True, to_frame(Pub.of(envelope()))))
    page.show_view(exchanged(*first))
    page._feed.rows[0]._open.click()
    QApplication.processEvents()
    assert "1 of 8 answers right" in texts(page) and f"✓  {'7' * 36}" in texts(page)
    later = (*first, *told((False, batch(2))))
    page.show_view(exchanged(*later))
    assert [line.message for line in _rows(page)] == list(first)
    assert not page._feed.newer.isHidden()
    page._feed.newer.click()
    assert [line.message for line in _rows(page)] == list(reversed(later)) and page._feed.newer.isHidden()


def _rows(page: Privacy) -> list[MessageRow]:
    return [line for line in page._feed.rows if line.isVisibleTo(page)]


def test_questions_are_made_again_for_what_was_read_back(qtbot: QtBot, opened: Opened) -> None:
    wanted: list[Coordinates] = []
    page = opened(Live, want_questions=wanted.extend)
    row = views.group(3, views.NOW, "gcd", [("#1", True), ("#2", False)])
    row = msgspec.structs.replace(row, coordinates=PLACE)
    view = views.learning(groups=(row,))
    page.show_view(view)
    assert wanted == [PLACE]
    made = Questions(Path())
    known: list[dict[Coordinates, str]] = []
    made.changed.connect(known.append)
    try:
        made.request([*wanted, msgspec.structs.replace(PLACE, version="0.0/9")])
        qtbot.waitUntil(lambda: bool(known), timeout=120_000)
    finally:
        made.close()
    assert known[-1] == {PLACE: generate(PLACE).text}
    page.show_view(msgspec.structs.replace(view, questions=known[-1]))
    assert generate(PLACE).text in texts(page)
    assert made._sandbox is None


def test_a_puzzle_of_an_older_version_is_told_as_one(opened: Opened) -> None:
    page = opened(Live)
    old = msgspec.structs.replace(PLACE, version="0.1.25/1")
    for coordinates, told in ((PLACE, False), (old, True)):
        row = views.group(3, views.NOW, "gcd", [("#1", True), ("#2", False)])
        row = msgspec.structs.replace(row, coordinates=coordinates)
        page.show_view(views.learning(groups=(row,)))
        assert ("of another version of Shoal" in texts(page)) is told
