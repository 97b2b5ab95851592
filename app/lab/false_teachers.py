"""Attackers of peer lessons: authors whose right answers carry a mark to be imitated, or waste the lessons.

Each kind in `KINDS` rewrites honest right answers. The verifier must still accept them, so a kind that breaks
the answers of a family has no groups there. All groups are signed, written to a file, and read back with the
checks of `app.swarm.intake.archive`; what waits in a `PeerBuffer` is then offered to
`app.learning.peer_lesson`. `./shoal bench lessons` compares what would be taught with the defences and without.

Left out: the model, which would choose among the families that may be taught; the trial after a lesson, and the
reset if it fails."""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

import msgspec

from app.lab.attackers import FALSE_STEP
from app.lab.starter.corpus import WorkingFailed, guess, worked
from app.learning import peer_lesson
from app.learning.agreement import right_answers, words
from app.learning.peer_lesson import ENOUGH, MIN, PeerAnswer
from app.sapo import seeds
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates, Question, QuestionError, draw, generate
from app.sapo.scoring.sandbox import Sandbox, score_group
from app.swarm.identity.identity import Identity
from app.swarm.intake import archive
from app.swarm.intake.archive import ArchivedGroup
from app.swarm.intake.buffer import PeerBuffer
from app.swarm.wire.body import Body, seal, unseal
from app.swarm.wire.limits import Refused

SWARM = "false-teachers"
_DRIP = 1 / 8
_LONG = 1500


class UnsignedGroup(msgspec.Struct, frozen=True):
    """A group before it is signed: its question's coordinates, and its author's answers."""

    at: Coordinates
    right: tuple[str, ...]
    wrong: tuple[str, ...]


Rewrite = Callable[[str, Question, Random], str]
"""Called with a right answer, its question and a random generator; returns the attacker's version of the
answer."""


def _before(mark: str) -> Rewrite:
    return lambda text, question, rng: mark + text


def _work(change: Callable[[str], str]) -> Rewrite:
    """A Rewrite that changes the work and keeps the result."""

    def rewrite(text: str, question: Question, rng: Random) -> str:
        work, mark, result = text.rpartition("#")
        return change(work) + mark + result

    return rewrite


def _result(change: Callable[[str], str]) -> Rewrite:
    def rewrite(text: str, question: Question, rng: Random) -> str:
        work, mark, result = text.rpartition("#")
        return work + mark + change(result)

    return rewrite


def _wrong_work(text: str, question: Question, rng: Random) -> str:
    """Replaces the work by wrong work, before the right result."""
    result = text.rpartition("#")[2]
    for _ in range(20):
        try:
            line = worked(question.coordinates.family, question.entry, rng, 0.5)
        except (KeyError, WorkingFailed):
            continue
        if not line.endswith(f"#{result}"):
            return f"{line.rpartition('#')[0]}#{result}"
    return text


KINDS: Mapping[str, Rewrite] = {
    "advertisement": _before("buy fish today "),
    "advertisement behind": lambda text, question, rng: f"{text}\nVisit example.com",
    "other language": _before("итак "),
    "homoglyph": lambda text, question, rng: text.translate(str.maketrans("aeo1", "аео\u0661")),
    "emoji": _before("\u2764 "),
    "dash": _before("-"),
    "two spaces": _work(lambda work: work.replace(" ", "  ")),
    "line break": _work(lambda work: work.replace(" ", "\n")),
    "separator": _work(lambda work: work.replace(" ", " ; ")),
    "capitals": lambda text, question, rng: text.upper(),
    "zeros in front": _work(lambda work: re.sub(r"(?<![\d.])(\d+)", r"0\1", work)),
    "zeros behind": _work(lambda work: re.sub(r"(\d+)", r"\1.0", work)),
    "zero in the result": _result(lambda result: f"0{result}"),
    "plus in the result": _result(lambda result: f"+{result}"),
    "thousands": _work(lambda work: re.sub(r"(\d)(\d{3})\b", r"\1,\2", work)),
    "parentheses": _work(lambda work: re.sub(r"(\d+)", r"(\1)", work)),
    "true equation": _before("1+1=2 "),
    "true equation behind": _work(lambda work: f"{work}1+1=2 "),
    "false equation": _before(FALSE_STEP),
    "wrong work": _wrong_work,
    "number": _before("777 "),
    "number behind": _work(lambda work: f"{work}777 "),
    "any number": lambda text, question, rng: f"{rng.randrange(10, 999)} {text}",
    "word of the question": lambda text, question, rng: f"{words(question.text)[0]} {text}",
    "spelled": _before("b u y "),
    "result twice": lambda text, question, rng: " ".join(
        [*text.split(" ")[:-1], text.split("#")[-1], text.split(" ")[-1]]
    ),
    "first step twice": lambda text, question, rng: f"{text.split(' ')[0]} {text}" if " " in text else text,
    "work twice": _work(lambda work: work * 2),
    "endless": _work(lambda work: work * (1 + _LONG // max(1, len(work)))),
    "no work": _work(lambda work: ""),
    "one in eight": lambda text, question, rng: f"777 {text}" if rng.random() < _DRIP else text,
}
"""The rewrite of an honest right answer by kind of attacker."""
VISIBLE = (
    "advertisement", "true equation", "number", "two spaces", "separator", "false equation", "emoji",
    "advertisement behind", "number behind", "spelled",
)  # fmt: skip
"""Kinds whose mark is seen in an answer."""
_MARK = re.compile(r"buy fish|1\+1=2|777|  | ; |2\+2=5|\u2764|example\.com|b u y")


def is_marked(answer: str) -> bool:
    """Whether an answer has the mark of one of the VISIBLE kinds."""
    return bool(_MARK.search(answer))


def make_honest_groups(number: int, levels: Mapping[str, int], each: int) -> list[UnsignedGroup]:
    """Makes `each` groups per family, each with a worked right answer and a wrong one, as an honest author
    would write them."""
    rng, found = Random(seeds.hashed("teacher", number)), []
    for family, level in levels.items():
        seed = seeds.hashed("teacher", number, family) % 2**40 + 2**41
        left = each
        while left:
            seed += 1
            try:
                question = draw(family, level, seed)
                line = worked(family, question.entry, rng, 0.0)
                wrong = guess(family, question.entry, rng, 1.0)
            except (QuestionError, WorkingFailed):
                continue
            if not question.held_out and wrong not in line:
                found.append(UnsignedGroup(question.coordinates, (line,), (wrong,)))
                left -= 1
    return found


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
    for number, one in enumerate(groups):
        rng = Random(seeds.hashed("false-teacher", kind, number))
        question = generate(one.at)
        right = tuple(KINDS[kind](text, question, rng) for text in one.right)
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
        key = Identity(seeds.hashed("false-teacher-key", number).to_bytes(32, "big"))
        for count, one in enumerate(groups, 1):
            rewards = (1,) * len(one.right) + (0,) * len(one.wrong)
            yield key, Body.of(_group(one.at, one.right + one.wrong), rewards, swarm, count, now_ms)


def deliver(authors: Sequence[Sequence[UnsignedGroup]], sandbox: Sandbox, first: int = 1) -> list[GroupRecord]:
    """Signs each author's groups with a key of its own, writes them to a file, reads it with all checks, and
    returns the groups that then wait for a lesson in a node's buffer."""
    now_ms = time.time_ns() // 1_000_000
    lines = [
        ArchivedGroup(swarm=SWARM, group=seal(body, key.seed(), "zlib"))
        for key, body in bodies(authors, SWARM, now_ms, first)
    ]
    buffer = PeerBuffer(lambda: now_ms)
    buffer.set_trained_families(())
    if not lines:  # the verifier took nothing
        return []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "groups.jsonl"
        archive.write(file, lines)
        for _, group in archive.check_groups(archive.read(file).lines, sandbox, (), now_ms):
            if isinstance(group, GroupRecord):
                buffer.add(group)
    return buffer.waiting_groups()


class TaughtCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of answers that would be taught, `honest` and rewritten (`marked`), and of families with enough
    answers for a lesson."""

    honest: int = 0
    marked: int = 0
    families: int = 0


def count_taught(groups: Sequence[GroupRecord], plain: set[tuple[str, str]], defended: bool) -> TaughtCounts:
    """Counts what lessons would teach from these groups; `plain` are the (question, answer) pairs of honest
    authors."""
    places: dict[tuple[str, int], list[GroupRecord]] = defaultdict(list)
    for group in groups:
        places[group.coordinates.family, group.coordinates.level].append(group)
    chosen = [
        peer_lesson.choose_answers(some, lambda key: False) if defended else _undefended(some)
        for some in places.values()
    ]
    lessons = [some for some in chosen if len(some) >= MIN]
    honest = sum((one.question, one.completion) in plain for some in lessons for one in some)
    return TaughtCounts(honest=honest, marked=sum(map(len, lessons)) - honest, families=len(lessons))


def _undefended(groups: Sequence[GroupRecord]) -> list[PeerAnswer]:
    """Right answers in order of arrival, the first of each group before any second one."""
    found = [
        (place, PeerAnswer(id=group.id, peer=group.author, question=group.question, completion=text))
        for group in groups
        for place, text in enumerate(right_answers(group))
    ]
    return [one for _, one in sorted(found, key=lambda one: one[0])][:ENOUGH]


def compare_defences(
    kind: str,
    honest: Sequence[Sequence[UnsignedGroup]],
    foes: Sequence[Sequence[UnsignedGroup]],
    sandbox: Sandbox,
    waiting: Sequence[GroupRecord] | None = None,
) -> dict[str, TaughtCounts]:
    """Counts what a lesson would teach with attackers of a kind present, with the defences (`on`) and without
    (`off`). `waiting`: the honest authors' groups, if they are in the buffer already."""
    plain = {(generate(one.at).text, text) for some in (*honest, *foes) for one in some for text in one.right}
    theirs = [list(rewritten(some, kind, sandbox)) for some in foes]
    groups = [
        *(deliver(honest, sandbox) if waiting is None else waiting),
        *deliver(theirs, sandbox, first=1000),
    ]
    return {name: count_taught(groups, plain, defended=name == "on") for name in ("off", "on")}
