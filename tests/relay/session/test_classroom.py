"""A classroom: who is in it by consent, what its teacher sees and may do, and what no one else gets."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.relay.origin import LOOPBACK
from app.relay.page import teacher
from app.relay.page.teacher import HEADERS
from app.relay.session.classroom import (
    AWAY_S,
    KEYS_PER_COMPUTER,
    MAX_DISCOVERIES,
    MAX_MEASUREMENTS,
    MAX_PUPILS,
    Classroom,
)
from app.relay.session.session import Session
from app.relay.session.shared import RelayState
from app.sapo.families import FAMILIES
from app.swarm.identity.identity import node_name
from app.swarm.invite.invite import parse
from app.swarm.wire.frames import decode_relay_frame, to_frame
from app.swarm.wire.protocol import (
    CLASS,
    AskStats,
    Auth,
    ClassProgress,
    Err,
    Hello,
    Sample,
    SampleReply,
    Stats,
    Welcome,
)
from app.swarm.wire.signin import sign_in
from tests.relay.clock import Clock
from tests.relay.page.test_page import Reader
from tests.relay.talking import Relay, running, town
from tests.swarm.relays import ANN, BOB, ROOT, Client, Outbox, until
from tests.swarm.relays import running as client

A, B, C = (bytes([n]) * 32 for n in (1, 2, 3))
INVITE = parse("shoal://join/ws/192.168.1.9:8777?room=class")


def told(share: float, round: int = 1, **families: float) -> ClassProgress:
    return ClassProgress(round=round, share=share, families=families)


@pytest.fixture
def room() -> Classroom:
    return Classroom(Clock())


def test_a_discovery_is_a_first_success_after_a_failure_and_names_whose_answers_had_come(
    room: Classroom,
) -> None:
    clock = room._clock
    assert isinstance(clock, Clock)
    assert all(room.join(key, LOOPBACK) for key in (B, C))
    room.progress(A, LOOPBACK, told(0.1, gcd=0.0, lcm=0.5))
    room.record_given(B, A, "gcd")
    room.record_given(C, A, "lcm")
    clock.now += 40
    room.progress(A, LOOPBACK, told(0.2, 2, gcd=0.25, lcm=0.6))
    (found,) = room.discoveries
    assert (found.pupil, found.family, found.before, found.after_s) == (A, "gcd", (B,), 40.0)
    assert teacher.discovery_sentence(found, clock.now) == (
        f"{node_name(A)} solved its first Greatest common divisor 40 s after answers of {node_name(B)} came, "
        "0 s ago."
    )
    room.progress(A, LOOPBACK, told(0.2, 3, gcd=0.0))
    room.progress(A, LOOPBACK, told(0.2, 4, gcd=0.5))
    assert len(room.discoveries) == 1, "a first success comes once"
    room.progress(B, LOOPBACK, told(0.1, gcd=0.5))
    assert len(room.discoveries) == 1, "who could do it from the start discovers nothing"


def test_all_of_it_is_bounded_and_what_is_unknown_is_left_out(room: Classroom) -> None:
    for number in range(MAX_PUPILS + 20):
        room.progress(number.to_bytes(32, "big"), LOOPBACK, told(0.5, no_such_family=0.5))
        room.record_given(A, number.to_bytes(32, "big"), "gcd")
    assert len(room.pupils) == MAX_PUPILS and not room.discoveries
    one = next(iter(room.pupils))
    for number in range(MAX_MEASUREMENTS + 50):
        room.progress(one, LOOPBACK, told(0.5, number))
    assert len(room.pupils[one].marks) == MAX_MEASUREMENTS and not room.pupils[one].marks[0].families
    assert MAX_DISCOVERIES < 1000


def test_keys_that_come_and_go_keep_no_pupil_out(room: Classroom) -> None:
    clock = room._clock
    assert isinstance(clock, Clock)
    room.progress(A, LOOPBACK, told(0.5))
    for number in range(MAX_PUPILS - 1):
        room.progress(number.to_bytes(32, "little"), LOOPBACK, told(0.5))
    room.record_given(bytes(32), A, "gcd")
    room.progress(B, LOOPBACK, told(0.5))
    assert B not in room.pupils, "nobody who was heard of lately makes room"
    clock.now += AWAY_S
    room.progress(A, LOOPBACK, told(0.6, 2))
    room.progress(B, LOOPBACK, told(0.5))
    assert B in room.pupils and [mark.share for mark in room.pupils[A].marks] == [0.5, 0.6]
    assert len(room.pupils) == MAX_PUPILS and not room.journeys


def test_one_pupil_with_many_keys_wipes_no_measurement(room: Classroom) -> None:
    """One address with 230 keys in 290 s emptied the export of a class of ten."""
    clock = room._clock
    assert isinstance(clock, Clock)
    honest = [bytes([9, number]) * 16 for number in range(10)]
    for number, key in enumerate(honest):
        for round in range(3):
            room.progress(key, f"192.168.1.{number}/32", told(0.5, round))
    for number in range(230):
        clock.now += AWAY_S
        room.progress(number.to_bytes(32, "big"), "192.168.1.66/32", told(0.1))
    assert len(room.pupils) == 10 + KEYS_PER_COMPUTER and room.turned_away == 230 - KEYS_PER_COMPUTER
    assert "The class is complete" in teacher.render(room, "s", INVITE, frozenset(), 1.0).decode()
    for number in range(400):  # as many computers as an attacker may have
        clock.now += AWAY_S
        room.progress(
            number.to_bytes(32, "little"), f"192.168.{2 + number // 200}.{number % 200}/32", told(0.1)
        )
    rows = teacher.skills(room).decode().splitlines()[1:]
    assert len(room.pupils) == MAX_PUPILS and len(room.past) <= MAX_PUPILS
    for key in honest:
        assert len([row for row in rows if row.startswith(node_name(key))]) == 3
    room.progress(honest[0], "192.168.1.0/32", told(0.6, 4))
    assert len({**room.past, **room.pupils}[honest[0]].marks) in (3, 4)


def test_who_never_agreed_to_a_class_is_not_seen(room: Classroom) -> None:
    room.progress(A, LOOPBACK, told(0.5))
    for author, asker in ((A, B), (B, A), (B, C)):
        room.published(author)
        room.record_given(author, asker, "gcd")
    assert list(room.pupils) == [A] and not room.journeys and list(room.shared) == [A]


def test_nobody_talks_of_itself_all_the_time() -> None:
    state = RelayState(bytes(32), "shoal", "e", classroom=True)
    session = Session(state, "127.0.0.1")
    hello = decode_relay_frame(session.hello())
    assert isinstance(hello, Hello) and state.classroom is not None
    say(session, sign_in(ANN.seed(), hello, "test/1", obeys=True))
    for number in range(100):
        assert say(session, told(0.5, number)) is None
    assert 5 < len(state.classroom.pupils[ANN.key].marks) < 30


def test_the_page_is_words_and_drawings_without_scripts(room: Classroom) -> None:
    room.progress(A, LOOPBACK, told(0.1, gcd=0.0))
    room.join(B, LOOPBACK)
    room.record_given(B, A, "gcd")
    room.published(B)
    room.progress(B, LOOPBACK, told(0.2, gcd=0.5))
    room.progress(A, LOOPBACK, told(0.4, 5, gcd=0.3))
    link, online, words = INVITE.link(), frozenset((A,)), str(INVITE.words())
    html = teacher.render(room, "<b>shoal", INVITE, online, 1_000.0).decode()
    page = Reader(html)
    assert "<b>shoal" in page.text
    for expected in (node_name(A), "40 %", "solved its first", "Pause everybody", "1 of 2", link, words):
        assert expected in page.text, expected
    assert "script" not in {tag for tag, _ in page.tags}
    drawings = [values for tag, values in page.tags if tag == "svg"]
    assert drawings and all(values.get("aria-label") for values in drawings)
    policy = HEADERS["Content-Security-Policy"]
    assert "script-src" not in policy and "default-src 'none'" in policy
    room.learning = False
    private = teacher.render(room, "s", INVITE, online, 1_000.0, words=False).decode()
    assert words not in Reader(private).text  # six others let in there
    assert "Let everybody learn" in teacher.render(room, "s", INVITE, frozenset(), 1_000.0).decode()
    assert teacher.skills(room).decode().splitlines()[1].startswith(node_name(A))
    assert FAMILIES["gcd"].title in teacher.skills(room).decode().splitlines()[0]
    assert FAMILIES["gcd"].title in teacher.discoveries(room).decode().splitlines()[1]
    codes = [values["src"] for tag, values in page.tags if tag == "img"]
    assert len(codes) == 1 and codes[0].startswith("data:image/png"), "the link as a QR code"
    ring = html[html.index('class="ring"') :]
    assert f">{node_name(A)}</text>" in ring and f">{node_name(B)}</text>" in ring


def say(session: Session, message: Auth | ClassProgress | AskStats) -> object:
    answer = session.receive(to_frame(message))
    assert answer is None or isinstance(answer, bytes)
    return None if answer is None else decode_relay_frame(answer)


@pytest.mark.parametrize("obeys", [True, False])
def test_only_who_joined_as_one_of_a_class_is_heard(obeys: bool) -> None:
    state = RelayState(bytes(32), "shoal", "e", classroom=True)
    session = Session(state, "127.0.0.1")
    hello = decode_relay_frame(session.hello())
    assert isinstance(hello, Hello) and CLASS in hello.caps
    auth = sign_in(ANN.seed(), hello, "test/1", obeys=obeys)
    assert (CLASS in auth.caps) == obeys
    assert isinstance(say(session, auth), Welcome)
    answer = say(session, told(0.5, gcd=0.5))
    assert state.classroom is not None
    if obeys:
        assert answer is None and list(state.classroom.pupils) == [ANN.key]
    else:
        assert isinstance(answer, Err) and not state.classroom.pupils
    state.classroom.learning = False
    stats = say(session, AskStats())
    assert isinstance(stats, Stats) and stats.learning is False


def test_elsewhere_there_is_no_class() -> None:
    state = RelayState(bytes(32), "shoal", "e")
    session = Session(state, "127.0.0.1")
    hello = decode_relay_frame(session.hello())
    assert isinstance(hello, Hello) and CLASS not in hello.caps
    assert CLASS not in sign_in(ANN.seed(), hello, "test/1", obeys=True).caps
    assert "learning" not in msgspec.to_builtins(state.stats()) or state.stats().learning is None


@pytest.fixture
def school(tmp_path: Path) -> Iterator[dict[str, str]]:
    relay = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "app.cli",
            "relay",
            "--class",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--state",
            str(tmp_path),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert relay.stdout is not None
    yield {**json.loads(relay.stdout.readline()), "pid": str(relay.pid)}
    relay.terminate()
    relay.communicate()


def get(url: str, content: bytes | None = None) -> str:
    with urllib.request.urlopen(url, content, timeout=60) as answer:
        return str(answer.read().decode())


def test_a_class_as_it_runs(school: dict[str, str], tmp_path: Path) -> None:
    """Ann joins by the class's invite, Bob by the bare address: only she is seen and told to pause."""
    invite, page = parse(school["invite"]), school["teacher"]
    assert invite.room == "class"

    async def lesson() -> None:
        clients = {
            who: Client([link], who, Outbox(tmp_path / f"{at}.sqlite"), memory=tmp_path / f"{at}.json")
            for at, (who, link) in enumerate(((ANN, school["invite"]), (BOB, school["url"])))
        }
        ann, bob = clients[ANN], clients[BOB]
        tasks = [asyncio.create_task(one.run()) for one in clients.values()]

        async def until(what: object) -> None:
            async with asyncio.timeout(120):
                while not what():  # type: ignore[operator]
                    await asyncio.sleep(0.05)

        await until(lambda: ann.status.connected and bob.status.connected)
        assert ann.status.in_class and not bob.status.in_class
        assert node_name(ANN.key) in get(page) and "1 of 1" in get(page), "also before anything was measured"
        ann.progress(3, 0.25, {"gcd": 0.5})
        bob.progress(3, 0.25, {"gcd": 0.5})
        await until(lambda: "25 %" in get(page))
        assert node_name(ANN.key) in get(page) and node_name(BOB.key) not in get(page)
        assert "Let everybody learn" in get(page.replace("/page", "/learning"), b"run=0")
        await until(lambda: ann.status.learning is False)
        assert bob.status.learning is None, "who did not join as one of a class is not told"
        get(page.replace("/page", "/learning"), b"run=1")
        await until(lambda: ann.status.learning is True and "<small>learning" in get(page))
        ann.rest(True)
        await until(lambda: "taking a break" in get(page))
        names, who, people = page.replace("/page", "/names"), node_name(ANN.key), tmp_path / "class-names.json"
        assert "Ann &amp; &lt;b&gt;" in get(names, f"{who}=Ann+%26+%3Cb%3E&x=y".encode())
        assert json.loads(people.read_text()) == {who: "Ann & <b>"} and people.stat().st_mode & 0o077 == 0
        assert 'value="Ann &amp; &lt;b&gt;"' in get(names)
        get(names, b"x=y")
        assert json.loads(people.read_text()) == {who: "Ann & <b>"}, "one who is not in the form"
        get(names, f"{who}=".encode())
        assert json.loads(people.read_text()) == {}
        tasks[0].cancel()
        await until(lambda: re.search(r"away since \d\d:\d\d", get(page)))
        for task in tasks:
            task.cancel()

    asyncio.run(lesson())
    assert node_name(ANN.key) in get(page.replace("/page", "/skills.csv"))
    for host in ("x:99999", "x:0", "[::1]:65536"):
        odd = urllib.request.Request(page, headers={"Host": host})
        with urllib.request.urlopen(odd, timeout=60) as answer:
            assert answer.status == 200, "A port that is no number of a port broke the page"
    wrong = re.sub(r"/class/[^/]+/", "/class/guess/", page)
    for url in (wrong, page.replace("/page", "/other")):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(url)
    with pytest.raises(urllib.error.HTTPError, match="400"):
        get(page.replace("/page", "/learning"), b"run=2")


@pytest.mark.skipif(sys.platform == "win32", reason="ends the relay by SIGTERM")
def test_a_lesson_ends_with_its_relay_and_is_not_tried_again(school: dict[str, str], tmp_path: Path) -> None:
    async def lesson() -> None:
        async with (
            client(tmp_path, [school["invite"]]) as (ann, links),
            client(tmp_path, [school["url"]], BOB) as (bob, _),
        ):
            await until(lambda: ann.status.connected and bob.status.connected)
            os.kill(int(school["pid"]), signal.SIGTERM)
            await until(lambda: ann.status.lesson_over and not bob.status.connected)
            await asyncio.sleep(0.1)
            assert links[-1].sentence == "The lesson has ended." and ann.status.next_try_s is None
            assert ann.status.in_class and not bob.status.lesson_over, "who is no pupil waits for the relay"

    asyncio.run(lesson())


@pytest.mark.parametrize(("options", "let_in"), [(("--class", "--host", "127.0.0.1"), 33), ((), 10)])
def test_thirty_three_pupils_behind_one_school_address(options: tuple[str, ...], let_in: int) -> None:
    """Each counts for itself, as a key; at a relay that is no class ten new keys an hour still come from one
    address."""

    async def lesson(relay: Relay) -> None:
        async with town(relay) as here:
            answers = [await here.sign_in(100 + number, "203.0.113.7") for number in range(33)]
            pupils = [peer for peer, answer in answers if isinstance(answer, Welcome)]
            assert len(pupils) == let_in
            for pupil in pupils:
                for round in range(8):
                    assert isinstance(await pupil.say(Sample(rid=round, k=1, max_bytes=10**5)), SampleReply)

    with running("--trusted-proxy", "127.0.0.1", "--no-checks", *options) as relay:
        asyncio.run(lesson(relay))
