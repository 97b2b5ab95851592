"""The peer buffer: checked groups of peers between the relay and a round.

A group is in one of four states. Ready: intake passed it, and the next round may choose it. Out: a round took
it and is not safe yet. Used: its round is saved; only the question is remembered, so that no copy comes in.
Waiting: the model cannot do its family yet, and rounds imitate its right answers (app.learning.imitation), also
more than once. `take_groups` moves groups from ready to out, `give_back` from out to ready, `settle_used`
from out to used, `set_trained_families` from waiting to ready, or to used if they were taught.

The fetcher (app.swarm.fetching) adds, the round takes, both in one event loop. `PeerRecords`, the records
of authors, decides which groups are chosen. The buffer knows no relay and no wire; it is bounded in groups,
bytes and groups of one author, so that a flood displaces itself. Waiting groups have bounds of their own, and
they do not age while the node runs: imitation needs right answers, not fresh ones.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from random import Random

import msgspec

from app.learning.choosing import JudgedGroup, PeerRecords
from app.sapo.groups import GroupRecord, is_single_right_answer
from app.sapo.questions import Coordinates
from app.sapo.recipes import Recipe
from app.swarm.wire.limits import ARCHIVE_MAX_AGE_S, STALE_AFTER_S

MAX_BUFFERED = 256
MAX_BYTES = 4_000_000
MAX_PER_PEER = 64
SHORTEST_ROUND_S = 30.0
"""Minimum seconds per round when ages are counted in rounds, so that groups do not seem too old to a fast
node."""
MAX_WAITING, WAITING_BYTES = 2048, 8_000_000
"""Maximum groups that wait, and their maximum bytes in memory."""
MAX_WAITING_PER_FAMILY = 192
"""Maximum groups of one family that wait, enough for some rounds; at most half of them of one author."""
_QUESTIONS = 8192
"""Maximum questions remembered of groups that arrived in this run."""


class WaitingGroups(msgspec.Struct, frozen=True, kw_only=True):
    """The waiting groups of a swarm, saved for the next run: how many rounds imitated each, and those
    that the model learned from, by id. A relay gives a group only once, so a node that is on for ten minutes at
    a time would rarely have enough of them."""

    swarm: str
    groups: tuple[GroupRecord, ...]
    taught: dict[str, int]
    learned: frozenset[str]


DOUBTED = "They disagree too often."
IN_RESERVE = "They wait for their turn."
OTHER_KINDS = "Your model can't do them yet."
NOT_NEEDED = "They came late or weren't needed."


class PeerBuffer:
    """The peers' checked groups, bounded in groups, bytes and groups per author; when it is full, the author
    with most ready groups loses its oldest. `now_ms` returns the relay's time in Unix milliseconds."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        most: int = MAX_BUFFERED,
        most_bytes: int = MAX_BYTES,
        per_peer: int = MAX_PER_PEER,
        oldest_s: float = STALE_AFTER_S,
        people: Callable[[], bool] = lambda: True,
    ) -> None:
        """`people`: whether a round may take a person's group in addition."""
        self.now_ms, self._people = now_ms, people
        self._most, self._most_bytes, self._per_peer, self._oldest_s = most, most_bytes, per_peer, oldest_s
        self._ready: dict[str, GroupRecord] = {}
        self._by_author: Counter[str] = Counter()
        self._bytes = 0
        self._active: frozenset[str] | None = None
        self._waiting: dict[str, GroupRecord] = {}
        self.times_taught = Counter[str]()
        """By id, how many rounds imitated a waiting group."""
        self._learned: set[str] = set()
        self._out: list[GroupRecord] = []
        self._suspects: set[str] = set()
        self._met: OrderedDict[Coordinates, None] = OrderedDict()
        self.used: set[Coordinates] = set()
        """Questions of groups trained on before this start, and of the node's own groups: copies of them are
        refused."""
        self.records = PeerRecords()
        self.round_s = SHORTEST_ROUND_S
        """Mean duration of this node's rounds in seconds."""
        self.taken = self.taken_last = 0
        """Number of groups trained on in this run (`taken`) and in the latest round (`taken_last`)."""
        self.authors: Counter[str] = Counter()
        """Number of groups trained on, by their authors' keys."""
        self.imported: set[str] = set()
        """Keys of authors of whom the owner imported a file."""
        self.wanted: Callable[[GroupRecord], bool] = lambda group: True
        """Which ready groups the trainer can use; others neither count as ready nor are taken."""

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, group: GroupRecord) -> bool:
        """Makes a checked group ready, or lets it wait if its family is not trained on. Returns False, without
        effect, if a group with this question was here before: nodes draw questions by their keys, so a second
        one is a copy, however reworded."""
        question = group.coordinates
        if self.knows(question):
            return False
        self._met[question] = None
        if len(self._met) > _QUESTIONS:
            self._met.popitem(last=False)
        self._drop_old()
        if self._active is None or question.family in self._active:
            self._insert(group)
        else:
            self._keep_waiting(group)
        return True

    def knows(self, question: Coordinates) -> bool:
        """Whether a group with this question was here before, or is the node's own. Safe in any thread."""
        return question in self.used or question in self._met

    def remember_used(self, questions: Iterable[Coordinates]) -> None:
        """Adds questions of groups that were trained on before this start, or are the node's own: copies are
        refused."""
        self.used.update(questions)

    def set_trained_families(self, families: Iterable[str]) -> None:
        """Sets the families that the node trains on. Ready groups of other families become waiting, and waiting
        groups of these families become ready."""
        self._active = frozenset(families)
        for group in [one for one in self._ready.values() if one.coordinates.family not in self._active]:
            self._remove(group.id)
            self._keep_waiting(group)
        for group in [one for one in self._waiting.values() if one.coordinates.family in self._active]:
            del self._waiting[group.id]
            self._learned.discard(group.id)
            if not self.times_taught.pop(group.id, 0):
                self._insert(group)

    @property
    def knows_trained_families(self) -> bool:
        """True once `set_trained_families` was called; until then no group waits."""
        return self._active is not None

    def waiting_groups(self) -> list[GroupRecord]:
        """Groups of families that the node does not train on, in order of arrival."""
        return list(self._waiting.values())

    def save_waiting(self, swarm: str) -> WaitingGroups:
        """Returns the waiting groups, to be saved as those of this swarm."""
        return WaitingGroups(
            swarm=swarm,
            groups=tuple(self._waiting.values()),
            taught=dict(self.times_taught),
            learned=frozenset(self._learned),
        )

    def restore_waiting(self, saved: WaitingGroups) -> None:
        """Adds saved groups that are younger than a relay's archive and were not here before."""
        oldest = self.now_ms() - ARCHIVE_MAX_AGE_S * 1000
        for group in saved.groups:
            if group.age_from_ms >= oldest and self.add(group) and group.id in self._waiting:
                if times := saved.taught.get(group.id):
                    self.times_taught[group.id] = times
                self._learned.update({group.id} & saved.learned)

    def count_taught(self, ids: Iterable[str]) -> None:
        """Counts that a round imitated answers of these groups."""
        self.times_taught.update(id for id in ids if id in self._waiting)

    def learned_from(self, family: str) -> list[GroupRecord]:
        """Records that the model learned a family from its imitated groups; returns those that it learned from
        for the first time."""
        new = [
            one
            for one in self._waiting.values()
            if one.coordinates.family == family and self.times_taught[one.id] and one.id not in self._learned
        ]
        self._learned.update(one.id for one in new)
        self.taken += len(new)
        self.authors.update(one.key for one in new)
        return new

    def ages(self) -> list[int]:
        """The ages of the ready groups in order of arrival, in rounds of this node, so that a slow node finds
        groups too. Drops those that are too old."""
        self._drop_old()
        now_ms, round_ms = self.now_ms(), 1000 * max(self.round_s, SHORTEST_ROUND_S)
        return [int(max(0, now_ms - one.age_from_ms) / round_ms) for one in self._ready.values()]

    def count_ready(self, recipe: Recipe) -> int:
        """Number of ready groups that are fresh and from trusted authors. Groups by humans do not count: a
        round takes those in addition, and they would keep other groups from being fetched."""
        ages = self.ages()
        return sum(
            not is_single_right_answer(one.rewards_G)
            and (recipe.max_age is None or age <= recipe.max_age)
            and not self.records.doubts(recipe, one.key)
            and self.wanted(one)
            for one, age in zip(self._ready.values(), ages, strict=True)
        )

    def why_unused(self, recipe: Recipe, keys: Iterable[str]) -> dict[str, str]:
        """Returns sentences that say why nothing was learned from these authors; none for others."""
        waiting = {one.key for one in self._waiting.values()}
        return {
            key: DOUBTED
            if self.records.doubts(recipe, key)
            else IN_RESERVE
            if self._by_author[key]
            else OTHER_KINDS
            if key in waiting
            else NOT_NEEDED
            for key in keys
            if not self.authors[key]
        }

    def take_groups(self, recipe: Recipe, most: int, rng: Random) -> list[GroupRecord]:
        """Chooses up to `most` ready groups for a round, plus a person's group if `people` returns True, and
        moves them to out."""
        aged = zip(self.ages(), self._ready.values(), strict=True)
        usable = [(age, group) for age, group in aged if self.wanted(group)]
        ages, groups = [age for age, _ in usable], [group for _, group in usable]
        chosen = [groups[at] for at in self.records.choose(recipe, groups, ages, most, rng)]
        people = self._people()
        self._out = [group for group in chosen if people or not is_single_right_answer(group.rewards_G)]
        for group in self._out:
            self._remove(group.id)
        return list(self._out)

    def give_back(self, blamed: bool = True) -> None:
        """Returns the groups in use to the ready ones, because their round was lost. `blamed`: the trainer died
        on them; a group that was out at two such deaths is dropped."""
        for group in self._out:
            if not blamed or group.id not in self._suspects:
                self._insert(group)
        if blamed:
            self._suspects.update(group.id for group in self._out)
        self._out = []

    def settle_used(self, judged_P: Sequence[JudgedGroup] = ()) -> list[str]:
        """Marks the groups that are out as used, because the round is saved. `judged_P`: results by group, for
        their authors' records. Returns the ids of the groups that were learned from."""
        out, learned = {group.id: group for group in self._out}, []
        for judged in judged_P:
            group = out.get(judged.group.id)
            if group is None:  # the owner's own answer, which has no author to judge
                continue
            self.records.record_use(group.key, judged.taken, judged.kept_out)
            learned += [group.id] * bool(judged.taken)
        self.taken_last = len(self._out)
        self.taken += self.taken_last
        self.authors.update(group.key for group in self._out)
        self._suspects.difference_update(out)
        self._out = []
        return learned

    def _insert(self, group: GroupRecord) -> None:
        self._ready[group.id] = group
        self._by_author[group.key] += 1
        self._bytes += group_bytes(group)
        if self._by_author[group.key] > self._per_peer:
            self._displace(group.key)
        while len(self._ready) > self._most or self._bytes > self._most_bytes:
            self._displace(max(self._by_author, key=self._by_author.__getitem__))

    def _keep_waiting(self, group: GroupRecord) -> None:
        """Adds a waiting group. If its family has too many, the author with most of them loses its oldest; if
        there are too many in all, the family with most bytes does. A person's answer is never
        imitated."""
        if is_single_right_answer(group.rewards_G):
            return
        self._waiting[group.id] = group
        of_family = [
            one for one in self._waiting.values() if one.coordinates.family == group.coordinates.family
        ]
        own = sum(one.key == group.key for one in of_family)
        if len(of_family) > MAX_WAITING_PER_FAMILY or 2 * own > MAX_WAITING_PER_FAMILY:
            self._forget_oldest(of_family)
        while len(self._waiting) > MAX_WAITING or sum(map(group_bytes, self._waiting.values())) > WAITING_BYTES:
            bytes_of = Counter[str]()
            for one in self._waiting.values():
                bytes_of[one.coordinates.family] += group_bytes(one)
            largest = max(bytes_of, key=bytes_of.__getitem__)
            self._forget_oldest([one for one in self._waiting.values() if one.coordinates.family == largest])

    def _forget_oldest(self, groups: Sequence[GroupRecord]) -> None:
        (key, _), *_ = Counter(one.key for one in groups).most_common(1)
        oldest = next(one.id for one in groups if one.key == key)
        del self._waiting[oldest], self.times_taught[oldest]
        self._learned.discard(oldest)

    def _drop_old(self) -> None:
        limit = self.now_ms() - self._oldest_s * 1000
        for id in [id for id, one in self._ready.items() if one.age_from_ms < limit]:
            self._remove(id)

    def _displace(self, key: str) -> None:
        """Drops the author's oldest ready group."""
        self._remove(next(id for id, one in self._ready.items() if one.key == key))

    def _remove(self, id: str) -> None:
        one = self._ready.pop(id)
        self._bytes -= group_bytes(one)
        self._by_author[one.key] -= 1
        if not self._by_author[one.key]:
            del self._by_author[one.key]


def group_bytes(group: GroupRecord) -> int:
    """Approximate bytes of memory that a group takes."""
    texts_G = group.completions_G
    return 2048 + sys.getsizeof(group.question) + sum(map(sys.getsizeof, texts_G))
