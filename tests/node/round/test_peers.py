"""Peers in a round: taken, read, weighed, trained on, given back. The engine and the swarm are stand-ins."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from app.learning.choosing import JudgedGroup, PeerRecords, choose
from app.node import supervisor
from app.node.history import checkpoint, history
from app.node.record import events
from app.node.record.records import Probe, Round
from app.node.record.snapshot import SwarmView
from app.node.round.mixing import mixed_groups
from app.node.trainer.messages import PeerTexts, ReadGroups
from app.node.trainer.process import PROMPT_TOKENS, encode_group, read_groups
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates, draw
from app.sapo.recipes import RECIPES, Recipe
from app.sapo.scoring.sandbox import Sandbox
from engines.contract import EngineError, Messages, TokenSequence
from tests.node.bench import Bench, of, rows


def peer_group(
    number: int, peer: str = "brisk-otter-0001", right: int = 3, g: int = 8, text: str = "no", before: str = ""
) -> GroupRecord:
    question = draw("chain_sum", 1, 2**42 + number)
    rewards = tuple(int(at < right) for at in range(g))
    group = GroupRecord(
        coordinates=question.coordinates,
        completions_G=tuple(f"{before}#{question.entry['answer']}" if reward else text for reward in rewards),
        finished_G=(True,) * g,
        model="other",
    )
    scored = group.with_scores(tuple(map(float, rewards)), rewards)
    return msgspec.structs.replace(scored, author=peer, key=peer, question=question.text)


class Shelf:
    """A swarm without a network: a shelf of groups, and a diary of what the node did with it."""

    def __init__(self, groups: Sequence[GroupRecord]) -> None:
        self.shelf, self.out = list(groups), []
        self.buffer: Any = self
        self.records = PeerRecords()
        self.used: list[GroupRecord] = []
        self.published: list[GroupRecord] = []
        self.diary: list[str] = []
        self.judged: list[JudgedGroup] = []
        self.practised: tuple[str, ...] = ()
        self.wanted: tuple[str, ...] = ()
        self.waiting: list[GroupRecord] = []
        self.thanked: list[str] = []
        self.times_taught = Counter[str]()
        self.shares: list[float] = []

    def open(
        self, sandbox: Sandbox, tell: Callable[[events.Event], None], show: Callable[[SwarmView], None]
    ) -> None:
        self.diary.append("open")
        show(SwarmView(name="calm-crane-0002"))

    def take_groups(self, recipe: Recipe, most: int, rng: Random) -> list[GroupRecord]:
        assert not self.out, "the round before was neither settled nor given back"
        positions = choose(recipe, self.shelf, [0] * len(self.shelf), most, rng)
        self.out = [self.shelf[position] for position in positions]
        self.shelf = [one for one in self.shelf if one not in self.out]
        return self.out

    def give_back(self, blamed: bool = True) -> None:
        self.diary.append("give back" if blamed else "give back without blame")
        self.shelf, self.out = self.out + self.shelf, []

    def settle_round(
        self, own_P: Sequence[GroupRecord], seconds: float, judged_P: Sequence[JudgedGroup] = ()
    ) -> None:
        assert seconds > 0
        self.judged += judged_P
        self.used += self.out
        self.out = []
        self.published += [own for own in own_P if own.informative]

    def practise_families(self, families: Iterable[str]) -> None:
        self.practised = tuple(families)

    def want_to_imitate(self, families: Sequence[str]) -> None:
        self.wanted = tuple(families)

    def waiting_groups(self) -> list[GroupRecord]:
        return [one for one in self.waiting if one.coordinates.family not in self.practised]

    def count_taught(self, ids: Collection[str]) -> None:
        self.times_taught.update(ids)

    def thank_for_family(self, family: str) -> None:
        self.thanked.append(family)

    def pause_fetching(self, paused: bool) -> None:
        self.diary.append("rest" if paused else "wake")

    def remember_used(self, questions: Iterable[Coordinates]) -> None:
        self.remembered = list(questions)

    def report_probe(self, probe: Probe) -> None:
        self.shares.append(probe.share)

    def share(self, scored: GroupRecord) -> bool:
        self.published.append(scored)
        return True

    async def flush(self) -> None:
        self.diary.append("flush")

    async def close(self) -> None:
        self.diary.append("close")


def test_a_round_trains_on_peers_and_says_so(bench: Bench) -> None:
    shelf = Shelf([peer_group(number) for number in range(3)] + [peer_group(9, "calm-crane-0002")])
    seen = bench.run(rounds=2, external=3, swarm=shelf)
    first, second = of(Round, seen)
    assert first.taken == first.peer_groups == 3 and second.taken == 1
    assert first.peers | second.peers and sum(first.peers.values()) == 3
    assert 0 < first.peer_share <= 0.5
    assert len(shelf.used) == 4 and shelf.published
    assert shelf.diary == ["open", "flush", "close"]
    assert rows(bench, "SELECT count(*), count(DISTINCT peer) FROM groups WHERE source = 'peer'") == [(4, 2)]
    assert sum(one.taken for one in history.read(bench.history.parent).rounds) == 4
    again = Shelf([])
    bench.run(rounds=1, external=3, swarm=again)
    assert sorted(again.remembered) == sorted(one.coordinates for one in shelf.used)
    assert bench.node.snapshot.swarm.name == "calm-crane-0002"


def test_peers_alone_still_teach(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "always wrong")
    (done,) = of(Round, bench.run(rounds=1, external=2, swarm=Shelf([peer_group(1)])))
    assert done.informative_own == 0 and done.taken == 1 and done.stepped and done.peer_share == 1.0


def test_a_swarm_without_groups_leaves_the_round_as_it_is_alone(bench: Bench, tmp_path: Path) -> None:
    bench.run(rounds=2, external=4, swarm=Shelf([]))
    (tmp_path / "other").mkdir()
    other = Bench(tmp_path / "other")
    other.run(rounds=2)
    query = "SELECT round, seed, rewards, completions, peer FROM groups ORDER BY round, position"
    assert rows(bench, query) == rows(other, query)


@pytest.mark.parametrize("when", ["sampling", "learning", "saving"])
def test_groups_of_a_lost_round_are_given_back_and_the_round_is_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, when: str
) -> None:
    groups = [peer_group(number, f"calm-crane-{number:04}") for number in range(6)]
    (tmp_path / "other").mkdir()
    other, untroubled = Bench(tmp_path / "other"), Shelf(groups)
    other.run(rounds=3, external=2, swarm=untroubled)

    monkeypatch.setattr(supervisor, "backoff_s", lambda *_, **__: 0.0)
    monkeypatch.setenv("FAKE_TROUBLE", f"die while {when} @{tmp_path / 'marker'}")
    shelf = Shelf(groups)
    seen = bench.run(rounds=3, external=2, swarm=shelf)
    assert len(of(events.TrainerRestarted, seen)) == 1
    assert shelf.diary.count("give back") == 1
    assert sorted(one.question for one in shelf.used) == sorted(one.question for one in groups)
    assert shelf.published == untroubled.published
    if when == "sampling":  # before any was taken: also the order of the shelf is as it was
        query = "SELECT round, seed, rewards, completions, peer FROM groups ORDER BY round, position"
        assert rows(bench, query) == rows(other, query)


def test_an_answer_too_long_for_this_model_is_left_out_with_its_group(bench: Bench) -> None:
    shelf = Shelf([peer_group(1), peer_group(2, text="so " * 20)])
    (done,) = of(Round, bench.run(rounds=1, external=4, max_tokens=32, swarm=shelf))
    assert (done.peer_groups, done.taken, done.peer_unfit) == (2, 1, 1)
    assert rows(bench, "SELECT count(*) FROM groups WHERE source = 'peer'") == [(1,)]


def test_right_answers_that_are_like_none_of_ones_own_teach_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded = msgspec.structs.replace(RECIPES["default"], checks=("tokens", "form", "length"), keeps_form=False)
    monkeypatch.setitem(RECIPES, "default", guarded)
    bad = [
        peer_group(1, "long-lark-0001", before="and so on " * 3),
        peer_group(2, "two-toad-0001", before="#1 "),
    ]
    shelf = Shelf([*bad, peer_group(3, "calm-crane-0002")])
    (done,) = of(Round, bench.run(rounds=1, external=4, max_tokens=64, swarm=shelf))
    assert (done.peer_groups, done.taken, done.gated_right) == (3, 1, 6)
    judged = {one.group.author: (one.taken, one.kept_out) for one in shelf.judged}
    assert judged == {"long-lark-0001": (0, 3), "two-toad-0001": (0, 3), "calm-crane-0002": (3, 0)}


class Letters:
    """Enough of an engine to read: a token is a character, and a letter's log-prob is its place."""

    def __init__(self) -> None:
        self.asked: list[TokenSequence] = []

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        if "{%" in completion:
            raise EngineError("The chat template refuses this.")
        text = prompt[-1]["content"]
        return TokenSequence(prompt_T=[*map(ord, text)], completion_T=[*map(ord, completion), *[0] * finished])

    def logprobs(self, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        self.asked += sequences_S
        return [[-float(token) for token in sequence.completion_T] for sequence in sequences_S]


def foreign(*texts: str, finished: Sequence[bool] = (), prompt: str = "q") -> PeerTexts:
    return PeerTexts(
        prompt=[{"role": "user", "content": prompt}],
        completions_G=texts,
        finished_G=tuple(finished) or (True,) * len(texts),
    )


def test_reading_measures_what_is_finished_and_cuts_the_rest() -> None:
    engine = Letters()
    group = foreign("ab", "abcdef", finished=(True, False))
    (reading,) = read_groups(engine, ReadGroups(number=1, groups_P=[group], max_tokens=3, logprobs=True))
    assert [s.completion_T for s in reading.sequences_G] == [[97, 98, 0], [97, 98, 99]]
    assert reading.logprobs_GT == [[-97.0, -98.0, 0.0], [0.0, 0.0, 0.0]]
    assert len(engine.asked) == 1


def test_log_probs_find_their_groups_also_around_one_that_does_not_fit() -> None:
    groups = [foreign("a", "b"), foreign("abcd", "c"), foreign("d", "e")]
    readings = read_groups(Letters(), ReadGroups(number=1, groups_P=groups, max_tokens=3, logprobs=True))
    assert readings[1] is None
    assert [r and [lp[0] for lp in r.logprobs_GT] for r in readings] == [[-97, -98], None, [-100, -101]]


@pytest.mark.parametrize(
    "group",
    [foreign("abc", "a"), foreign("a", "b", prompt="q" * (PROMPT_TOKENS + 1)), foreign("a", "{% end %}")],
)
def test_what_does_not_fit(group: PeerTexts) -> None:
    assert encode_group(Letters(), group, 3) is None


def test_mixed_keeps_the_pairs_together() -> None:
    one, two = peer_group(1), peer_group(2)
    reading = read_groups(
        Letters(), ReadGroups(number=1, groups_P=[foreign("a")], max_tokens=3, logprobs=False)
    )[0]
    found = mixed_groups([(one, one), (two, two)], [None, reading])
    assert (found.groups_P, found.unfit) == ([two], 1)
    (pair,) = found.read_P
    assert reading is not None and (pair.id, pair.completions_G) == (two.id, two.completions_G)
    assert pair.tokens_GT == [sequence.completion_T for sequence in reading.sequences_G]


def test_an_older_history_is_taken_over(bench: Bench) -> None:
    import sqlite3

    bench.run(rounds=1)
    with sqlite3.connect(bench.history) as db:
        for later in ("peer", "question"):
            db.execute(f"ALTER TABLE groups DROP COLUMN {later}")
        db.execute("PRAGMA user_version=1")
    seen = bench.run(rounds=1, external=2, swarm=Shelf([peer_group(1)]))
    assert of(Round, seen)[0].round == 2
    assert rows(bench, "SELECT count(peer) FROM groups") == [(1,)]
    assert json.loads(rows(bench, "SELECT record FROM rounds WHERE round = 2")[0][0])["peer_groups"] == 1


def test_a_node_that_gets_worse_with_peers_goes_back_and_learns_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "tears 8")
    shelf = Shelf([peer_group(number) for number in range(40)])
    seen = bench.run(
        rounds=14, probe_every=2, probe_questions=64, families={"chain_sum": 0}, external=1, swarm=shelf
    )
    told = [one for one in of(events.ProgressStalled, seen) if one.cause == "spoiled"]
    assert len(told) == 1 and "It goes back to round" in told[0].sentence
    assert "learns alone for 20 rounds" in told[0].sentence
    before, later = (
        [row.taken for row in of(Round, seen) if (row.round > told[0].round) == late] for late in (False, True)
    )
    assert any(before) and later and not any(later)
    newest = checkpoint.newest_first(bench.checkpoints)[0]
    alone = msgspec.json.decode(
        (newest / checkpoint.STATE_FILE).read_bytes(), type=checkpoint.CheckpointManifest
    ).state.vigil
    assert 0 < alone.alone < 20 and not alone.torn
