"""A trainer's program in a swarm: it publishes, samples, loses its relay, reads archives. Relays are real ones,
or lie; every answer goes through a real sandbox."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from app.sapo.questions import QUESTIONS_VERSION, Coordinates, draw, generate
from app.sapo.seeds import PROBE_SEEDS
from app.swarm.identity.identity import Identity
from app.swarm.identity.storage import public_identity
from app.swarm.intake.archive import ArchivedGroup, write
from app.swarm.library import Group, Question, Sea, SeaError, join
from app.swarm.library.sea import _cut
from app.swarm.wire.body import Body, Envelope, seal
from app.swarm.wire.limits import MAX_COMPLETION_CHARS
from app.swarm.wire.protocol import Sample, SampleReply
from tests.swarm.relays import NOW_MS, Relay, Visitor, group, lying_relay, sealed

PATIENCE_S = 240.0


def until(true: Callable[[], object], what: str) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < ends, f"It never came true: {what}"
        time.sleep(0.05)


def answered(question: Question, right: int = 2, answers: int = 6) -> Group:
    """A group of a model that finds the answer in `right` of its tries."""
    truth = generate(question.coordinates).entry["answer"]
    texts = [
        f"Try {at} at {question.coordinates.seed} #{truth if at < right else 'no'}" for at in range(answers)
    ]
    return Group(coordinates=question.coordinates, completions=texts)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this file's relay."""
    return tmp_path_factory.mktemp("relay")


@pytest.fixture(scope="module")
def relay(state: Path) -> Iterator[Relay]:
    relay = Relay("--state", str(state))
    relay.start()
    yield relay
    relay.kill()


@pytest.mark.long
def test_two_trainers_learn_from_each_other_also_when_the_relay_was_gone(
    relay: Relay, state: Path, tmp_path: Path
) -> None:
    with (
        join(relay.url, name="our lab", home=tmp_path / "a") as sea,
        join(relay.url, home=tmp_path / "b") as other,
    ):
        # The ten lines.
        first = sea.questions(4, families=["gcd", "chain_sum"], seed=1)
        published = sea.publish([answered(one) for one in first])
        assert (published.stored, published.left_out) == (4, {})
        groups = other.sample(4, answers=3, wait_s=PATIENCE_S)
        assert {one.coordinates for one in groups} == {one.coordinates for one in first}
        for one in groups:
            assert one.rewards == tuple(other.check_all(one.coordinates, one.completions))
            assert len(one.completions) == 3 and one.informative and one.model == "our-lab"
            assert one.author == sea.status().name and one.messages[1]["content"] == one.question
        assert other.sample(4, answers=3) == []
        other.learned_from(groups)
        assert sea.sample(4) == [] and sea.status().acknowledged == 4
        assert other.publish(groups).left_out == {"seen": 4}, "they are another's"

        relay.kill()
        until(lambda: not sea.status().connected, "the sea sees that the relay is gone")
        began = time.monotonic()
        more = sea.questions(3, families=["gcd"], level=1)
        assert sea.publish([answered(one) for one in more]).stored == 3
        assert other.sample(4) == [] and sea.check(more[0].coordinates, "#no") == 0.0
        assert sea.status().waiting == 3 and time.monotonic() - began < PATIENCE_S / 4
        relay.start()
        until(lambda: sea.status().waiting == 0, "the outbox is empty")
        came: list[Group] = []
        until(lambda: came.extend(other.sample(3, families=["gcd"], wait_s=1.0)) or len(came) == 3, "all came")
        assert {one.coordinates for one in came} == {one.coordinates for one in more}
        assert sorted(row["author"] for row in other.table()) == [sea.status().name] * 7
    with pytest.raises(SeaError, match="closed"):
        sea.questions(1)
    assert public_identity(tmp_path / "a").kept == "plain"  # in a file, whatever keyring there is
    with join(state) as day:
        assert {one.coordinates for one in day.sample(9)} == {one.coordinates for one in (*first, *more)}


def test_what_may_not_go_out_stays(relay: Relay, tmp_path: Path) -> None:
    with join(relay.url, home=tmp_path) as sea:
        asked = sea.questions(6, families=["gcd"], seed=5)
        assert asked == sea.questions(6, families=["gcd"], seed=5) != sea.questions(6, families=["gcd"])
        held_out = next(one for seed in PROBE_SEEDS if (one := draw("gcd", 0, seed)).held_out)
        good, long, at = answered(asked[0]), "x" * (MAX_COMPLETION_CHARS + 1), asked[1].coordinates
        published = sea.publish(
            [
                good,
                good,
                answered(asked[2], right=0),
                answered(Question(coordinates=held_out.coordinates, text="")),
                Group(coordinates=at, completions=["#1", long]),
                Group(coordinates=at, completions=["#1", "a\u202eb"]),
                Group(coordinates=at, completions=["#1"] * 17),
                Group(coordinates=msgspec.structs.replace(at, version="0.1.0/1"), completions=["#1", "#2"]),
                Group(coordinates={**msgspec.structs.asdict(at), "family": "none"}, completions=["#1", "#2"]),
            ]
        )
        assert published.stored == 1
        assert sea.publish(good).left_out == {"seen": 1}, "one group is taken as one"
        assert published.left_out == {
            "seen": 1, "unmixed": 1, "held-out": 1, "too-long": 1, "unsafe": 1, "wrong-shape": 1,
        "other-version": 1, "no-question": 1,
        }  # fmt: skip
        assert sea.publish([answered(asked[2])]).stored == 1, "what stayed may go out when it is fit"
        cut_off = answered(asked[3], right=1)
        assert sea.check_all(cut_off.coordinates, cut_off.completions[:2], finished=[False, True]) == [0.0, 0.0]
        assert len(sea.publish(answered(one) for one in sea.questions(40, families=["gcd"])).left_out) == 1
        for wrong in (
            lambda: sea.questions(1, families=["none"]),
            lambda: sea.questions(1, families=["gcd"], level=99),
            lambda: sea.sample(1, answers=1),
            lambda: sea.sample(1, families=["none"]),
            lambda: sea.check({"family": "gcd"}, "#1"),
            lambda: sea.check_all(at, ["#1"], finished=[True, False]),
            lambda: sea.check(at, None),  # type: ignore[arg-type]
            lambda: Group(coordinates=at, completions="#1"),  # type: ignore[arg-type]
            lambda: join(relay.url, home=tmp_path),  # one program at a time
        ):
            with pytest.raises(SeaError) as error:
                wrong()
            assert "\n" not in str(error.value)


def test_an_answer_is_scored_once_and_nobody_hangs_when_the_sea_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sea = join("127.0.0.1:9", home=tmp_path)  # nobody listens there
    (asked,) = sea.questions(1, families=["gcd"])
    rewards = sea.check_all(asked.coordinates, answered(asked).completions)
    monkeypatch.setattr("app.swarm.library.sea.score_group", lambda *_: pytest.fail("scored again"))
    assert rewards == [1, 1, 0, 0, 0, 0] and sea.publish([answered(asked)]).stored == 1

    def ask() -> None:
        with pytest.raises(SeaError, match="closed"):
            while True:
                sea.status()

    callers = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    for one in callers:
        one.start()
    sea.close(0.0)
    sea.close()
    for one in callers:
        one.join(PATIENCE_S / 4)
    assert not any(one.is_alive() for one in callers)


def strangers(now_ms: int, swarm: str) -> dict[str, Envelope]:
    """One good group of a stranger, and bad ones, each of another stranger."""
    me = [Identity(bytes([number]) * 32) for number in range(1, 9)]
    places = iter(range(100, 120))

    def made(who: Identity, rewards: tuple[int, int] = (1, 0), **changes: Any) -> Envelope:
        record = group(next(places))
        at = msgspec.structs.replace(record.coordinates, **changes.pop("at", {}))
        record = msgspec.structs.replace(record, coordinates=at, **changes)
        return seal(Body.of(record, rewards, swarm, 1, now_ms), who.seed())

    good = sealed(me[0], 99, now_ms, swarm)
    signed = made(me[6])
    long = Body.of(group(98), (1, 0), swarm, 1, now_ms)
    long = msgspec.structs.replace(long, completions=(long.completions[0], "x" * (MAX_COMPLETION_CHARS + 1)))
    return {
        "good": good,
        "seen": good,
        "false-rewards": made(me[1], (0, 1)),
        "bad-signature": msgspec.structs.replace(signed, sig=signed.sig[::-1]),
        "wrong-shape": seal(long, me[7].seed()),
        "other-version": made(me[2], at={"version": "0.1.25/1"}),
        "no-question": made(me[3], at={"family": "none"}),
        "unsafe": made(me[4], completions_G=("a\u202eb #1", "#no")),
        "look-alike": sealed(me[5], 99, now_ms, swarm),
    }


REFUSED = {name: 1 for name in strangers(NOW_MS, "shoal") if name != "good"}


def test_a_lying_relay_and_lying_strangers_put_nothing_into_a_sample(tmp_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        now_ms = time.time_ns() // 1_000_000
        await visitor.welcome(time_ms=now_ms)
        items = [msgspec.Raw(msgspec.json.encode(one)) for one in strangers(now_ms, "shoal").values()]
        while True:
            if isinstance(heard := await visitor.hear(), Sample):
                await visitor.say(
                    SampleReply(
                        rid=heard.rid, items=tuple(items), window=9, eligible=9, sources=9, age_p50_s=None
                    )
                )
                items = []

    def trainer(url: str) -> None:
        with join(url, home=tmp_path) as sea:
            found = sea.sample(1, wait_s=PATIENCE_S)
            until(lambda: sea.status().received == 9, "all were looked at")
            assert [one.coordinates for one in found] == [group(99).coordinates] and not sea.sample(9)
            assert sea.status().refused == REFUSED

    async def both() -> None:
        async with lying_relay(story) as url:
            await asyncio.to_thread(trainer, url)

    asyncio.run(both())


def archived(folder: Path) -> Path:
    yesterday_ms = time.time_ns() // 1_000_000 - 24 * 3600 * 1000
    lines = [ArchivedGroup(swarm="shoal", group=one) for one in strangers(yesterday_ms, "shoal").values()]
    write(folder / "day.jsonl", lines)
    return folder / "day.jsonl"


def test_an_archive_is_read_through_the_same_checks_and_becomes_a_table(tmp_path: Path) -> None:
    with join(archived(tmp_path), home=tmp_path / "none") as sea:
        (found,) = sea.sample(9, answers=2)
        assert sea.sample(9) == [] and found.rewards == (1, 0)
        # A file has each id once.
        assert sea.status().refused == {name: 1 for name in REFUSED if name != "seen"}
        with pytest.raises(SeaError, match="only read"):
            sea.publish([found])
        (row,) = sea.table()
        assert row["completions"] == list(found.completions) and row["rewards"] == [1, 0]
        assert Coordinates(**{name: row[name] for name in Coordinates.__struct_fields__}) == found.coordinates
        assert (row["author"], row["model"], row["version"]) == (found.author, "starter", QUESTIONS_VERSION)
        assert sea.export(tmp_path / "day-checked.jsonl") == 1
        assert json.loads((tmp_path / "day-checked.jsonl").read_text()) == row
        with pytest.raises(SeaError, match=r"\.parquet"):
            sea.export(tmp_path / "day.csv")
        exported(sea, tmp_path / "day.parquet", row)
    assert not (tmp_path / "none").exists()
    for wrong in (tmp_path / "nowhere.jsonl", tmp_path, "shoal://join/ws/127.0.0.1:9?room=class", "ws:/a"):
        with pytest.raises(SeaError):
            join(wrong, home=tmp_path / "none")


def exported(sea: Sea, path: Path, row: dict[str, Any]) -> None:
    """Writes a Parquet file and reads it back, or finds out that this takes a library."""
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        with pytest.raises(SeaError, match="pip install pyarrow"):
            sea.export(path)
    else:
        sea.export(path)
        assert pyarrow.parquet.read_table(path).to_pylist() == [row]


def test_a_program_that_names_no_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(SeaError, match="Nothing to join"):
        join(" ", home=tmp_path)


def test_a_group_is_cut_to_answers_that_are_still_mixed() -> None:
    one = msgspec.structs.replace(group(), completions_G=tuple("abcdefgh"), rewards_G=(0,) * 7 + (1,))
    for seed in range(20):
        places = _cut(one, 3, True, Random(seed))
        assert len(set(places)) == 3 and places == sorted(places) and places[-1] == 7
    assert {len(_cut(one, None, True, Random(0))), len(_cut(one, 1, False, Random(0)))} == {8, 1}
