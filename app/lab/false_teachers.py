"""Attackers of peers' right answers as lessons: authors whose right answers carry a mark to be imitated.

Each kind in `KINDS` rewrites honest right answers. The verifier must still accept them, so a kind that breaks
the answers of a family has no groups there. `./shoal bench spread --arms attacked` signs them with keys of
their own, adds them to a relay's archive, and counts the marks in what the newcomer says afterwards."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from app.sapo import seeds
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from app.sapo.scoring.sandbox import Sandbox, score_group
from app.swarm.identity.identity import Identity
from app.swarm.intake.archive import ArchivedGroup
from app.swarm.wire.body import Body, unseal
from app.swarm.wire.limits import Refused


class UnsignedGroup(msgspec.Struct, frozen=True):
    """A group before it is signed: its question's coordinates, and its author's answers."""

    at: Coordinates
    right: tuple[str, ...]
    wrong: tuple[str, ...]


def _work(change: Callable[[str], str]) -> Callable[[str], str]:
    """A rewrite that changes the work and keeps the result."""

    def rewrite(text: str) -> str:
        work, mark, result = text.rpartition("#")
        return change(work) + mark + result

    return rewrite


KINDS: Mapping[str, Callable[[str], str]] = {
    "advertisement": lambda text: f"buy fish today {text}",
    "true equation": lambda text: f"1+1=2 {text}",
    "number": lambda text: f"777 {text}",
    "two spaces": _work(lambda work: work.replace(" ", "  ")),
    "separator": _work(lambda work: work.replace(" ", " ; ")),
    "false equation": lambda text: f"2+2=5 {text}",
    "emoji": lambda text: f"\u2764 {text}",
    "advertisement behind": lambda text: f"{text}\nVisit example.com",
    "number behind": _work(lambda work: f"{work}777 "),
    "spelled": lambda text: f"b u y {text}",
}
"""The rewrite of an honest right answer by kind of attacker."""
_MARK = re.compile(r"buy fish|1\+1=2|777|  | ; |2\+2=5|\u2764|example\.com|b u y")


def is_marked(answer: str) -> bool:
    """Whether an answer has the mark of one of the KINDS."""
    return bool(_MARK.search(answer))


def by_author(lines: Iterable[ArchivedGroup], each: int) -> list[list[UnsignedGroup]]:
    """The groups of each author of an archive, at most `each` per family and level."""
    found: dict[str, list[UnsignedGroup]] = defaultdict(list)
    seen: Counter[tuple[str, str, int]] = Counter()
    for line in lines:
        try:
            body = unseal(line.group, line.swarm)
        except Refused:
            continue
        place = (line.group.pk, body.task.family, body.task.level)
        seen[place] += 1
        if seen[place] > each:
            continue
        told: dict[int, list[str]] = {0: [], 1: []}
        for text, reward in zip(body.completions, body.rewards, strict=True):
            told[reward].append(text)
        found[line.group.pk].append(UnsignedGroup(body.task.coordinates(), tuple(told[1]), tuple(told[0])))
    return list(found.values())


def rewritten(groups: Iterable[UnsignedGroup], kind: str, sandbox: Sandbox) -> Iterator[UnsignedGroup]:
    """Rewrites the groups as attackers of a kind would; yields those whose right answers the verifier still
    accepts."""
    for one in groups:
        right = tuple(map(KINDS[kind], one.right))
        rewards = score_group(sandbox, _group(one.at, right + one.wrong)).rewards_G
        if all(rewards[: len(right)]) and not any(rewards[len(right) :]):
            yield UnsignedGroup(one.at, right, one.wrong)


def _group(at: Coordinates, texts: tuple[str, ...]) -> GroupRecord:
    return GroupRecord(coordinates=at, completions_G=texts, finished_G=(True,) * len(texts), model="starter")


def bodies(
    authors: Sequence[Sequence[UnsignedGroup]], swarm: str, now_ms: int, first: int = 1
) -> Iterator[tuple[Identity, Body]]:
    """Yields the groups of each of the `authors` as bodies to sign, with its author's key."""
    for number, groups in enumerate(authors, first):
        key = Identity(seeds.hashed_seed("false-teacher-key", number).to_bytes(32, "big"))
        for count, one in enumerate(groups, 1):
            rewards = (1,) * len(one.right) + (0,) * len(one.wrong)
            yield key, Body.of(_group(one.at, one.right + one.wrong), rewards, swarm, count, now_ms)
