"""Every reason for which a group is not used, shown by one that deserves it; and what attackers would try."""

from __future__ import annotations

import builtins
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.lab.attackers import MODEL_FREE_KINDS, Attacker, PublishedGroup
from app.sapo.families import FAMILIES
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates, UnsoundQuestion, make
from app.sapo.scoring import sandbox as sandbox_
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.identity.identity import Identity
from app.swarm.intake import intake as intake_
from app.swarm.intake.intake import MAX_STRIKES, Intake, SimilarityIndex
from app.swarm.intake.reasons import IntakeReason
from app.swarm.wire.body import Envelope
from engines.contract import TokenSequence
from tests.swarm.cases import ANN, BOB, NOW_MS, SWARM, honest, question, scratched, signed, spoiled
from tests.swarm.wire.test_conformance import GROUPS

ME = Identity(bytes(range(2, 34)))
STAND_IN = Path(__file__).parents[2] / "sapo" / "scoring" / "stand_in_child.py"


@pytest.fixture
def intake(sandbox: Sandbox) -> Intake:
    return Intake(sandbox, SWARM, [ME.key], families=[name for name in FAMILIES if name != "bf"], longest=2000)


def encoded(envelope: Envelope) -> bytes:
    return msgspec.json.encode(envelope)


def test_an_honest_group_is_taken_with_this_nodes_own_verdicts(intake: Intake) -> None:
    envelope = signed(honest())
    checked = intake.check(encoded(envelope), NOW_MS)
    assert isinstance(checked, GroupRecord)
    assert (checked.id, checked.key, checked.author) == (envelope.id, ANN.key.hex(), ANN.name)
    assert checked.rewards_G == (1, 0, 0) and checked.question == question().text
    assert intake.check(signed(honest(1), BOB), NOW_MS + 29 * 60_000).__class__ is GroupRecord, (
        "fresh for half an hour"
    )
    assert intake.check(signed(honest(2), BOB), NOW_MS - 119_000).__class__ is GroupRecord, (
        "clocks differ a little"
    )


def with_(**changes: Any) -> Envelope:
    return signed(honest() | changes)


def task(**changes: Any) -> Envelope:
    body = honest()
    return signed(body | {"task": body["task"] | changes})


def said(text: str, place: int = 1) -> Envelope:
    body = honest()
    body["completions"][place] = text
    return signed(body)


UNSOUND = {"family": "binary_matrix", "level": 0}

BAD: dict[str, tuple[IntakeReason, Callable[[], Envelope | bytes]]] = {
    "no JSON": (IntakeReason.NOT_JSON, lambda: b"{"),
    "bad UTF-8": (IntakeReason.NOT_JSON, lambda: b'{"id":"\xff"}'),
    "no envelope": (IntakeReason.WRONG_SHAPE, lambda: b'{"id":1}'),
    "a huge item": (IntakeReason.TOO_LARGE, lambda: b"[" * 70_000),
    "of this node": (IntakeReason.OWN, lambda: signed(honest(), ME)),
    "a family not trained on": (IntakeReason.FAMILY_OFF, lambda: task(family="bf")),
    "longer than is taken": (IntakeReason.TOO_LONG, lambda: said("x" * 2001)),
}
"""What is wrong whatever a node trains on is in conformance/groups.json."""


@pytest.mark.parametrize("what", BAD)
def test_a_bad_group_gets_its_reason(intake: Intake, what: str) -> None:
    reason, make = BAD[what]
    assert intake.check(make(), NOW_MS) is reason
    assert reason.sentence.endswith(".")
    assert isinstance(intake.check(signed(honest(7)), NOW_MS), GroupRecord), "it costs the next one nothing"


def test_every_reason_has_its_test() -> None:
    elsewhere = {
        IntakeReason.SEEN,
        IntakeReason.DISTRUSTED,
        IntakeReason.TOO_MUCH,
        IntakeReason.SLOW_QUESTION,
        IntakeReason.LOOK_ALIKE,
        IntakeReason.UNCHECKED,
    }
    frozen = {case.get("refused") for case in (*GROUPS["refused"], *GROUPS["puzzles"])} - {None}
    assert {reason for reason, _ in BAD.values()} | elsewhere | frozen == set(IntakeReason)


def test_a_group_is_taken_once(intake: Intake) -> None:
    assert isinstance(intake.check(signed(honest()), NOW_MS), GroupRecord)
    assert intake.check(signed(honest()), NOW_MS) is IntakeReason.SEEN
    forged = signed(honest(1), sig="0" * 128)
    assert intake.check(forged, NOW_MS) is IntakeReason.BAD_SIGNATURE
    assert isinstance(intake.check(signed(honest(1)), NOW_MS), GroupRecord), (
        "a forgery does not stand for the real one"
    )


def test_a_flood_of_one_author_ends_at_its_share(intake: Intake) -> None:
    flood = [signed(honest(number, "chain_sum", 2)) for number in range(70)]
    verdicts = [intake.check(one, NOW_MS) for one in flood]
    assert sum(isinstance(one, GroupRecord) for one in verdicts) == 60 and set(verdicts[60:]) == {
        IntakeReason.TOO_MUCH
    }
    assert isinstance(intake.check(signed(honest(80), BOB), NOW_MS), GroupRecord), "others are not to blame"
    later = signed(honest(90))
    assert isinstance(intake.check(later, NOW_MS + 10_000), GroupRecord)


def test_who_sends_bad_groups_is_passed_over_for_a_while(intake: Intake) -> None:
    for number in range(3):
        assert (
            intake.check(signed(honest(number) | {"rewards": [0, 1, 0]}), NOW_MS) is IntakeReason.FALSE_REWARDS
        )
    assert intake.check(signed(honest(9)), NOW_MS) is IntakeReason.DISTRUSTED
    assert isinstance(intake.check(signed(honest(9), BOB), NOW_MS), GroupRecord)
    later = NOW_MS + 3_700_000
    assert isinstance(intake.check(signed(honest(10) | {"created_ms": later}), later), GroupRecord)


def test_nobody_can_bring_another_into_disrepute(intake: Intake) -> None:
    for number in range(9):
        body = honest(number) | {"rewards": [0, 1, 0]}
        assert intake.check(signed(body, BOB, pk=ANN.key.hex()), NOW_MS) is IntakeReason.BAD_SIGNATURE
    assert isinstance(intake.check(signed(honest(20)), NOW_MS), GroupRecord)


LONG = "First we look at both numbers, one by one, and write down all that divides them without a rest. "
POISON = " ".join("".join(Random(n).choices("abcdefghijklmnopqrstuvwxyz", k=5)) for n in range(300))


def test_almost_the_same_under_many_keys_is_taken_once(intake: Intake) -> None:
    def poisoned(number: int) -> Envelope:
        body = honest(number)
        body["completions"] = [f"{number} {POISON} {text}" for text in body["completions"]]
        return signed(body, Identity(bytes([100 + number]) * 32))

    verdicts = [intake.check(poisoned(number), NOW_MS) for number in range(30)]
    assert isinstance(verdicts[0], GroupRecord)
    assert verdicts.count(IntakeReason.LOOK_ALIKE) >= 27, "it is an estimate: one may slip through"


def test_a_copied_group_is_known_again(intake: Intake) -> None:
    assert isinstance(intake.check(signed(honest()), NOW_MS), GroupRecord)
    body = honest()
    body["completions"] = [f" {text.upper()} " for text in (body["completions"][i] for i in (1, 0, 2))]
    assert intake.check(signed(body | {"rewards": [0, 1, 0]}, BOB), NOW_MS) is IntakeReason.LOOK_ALIKE


@pytest.mark.parametrize("kind", MODEL_FREE_KINDS)
def test_what_the_labs_attackers_publish(intake: Intake, kind: str) -> None:
    """Lies and copies end here. What is right and says more than it should goes on to the recipe's checks."""
    attacker = Attacker(kind, b"foe", {"gcd": 1, "chain_sum": 2}, group=8, longest=64, encode=no_tokens)
    others = Attacker("plain", b"other", {"gcd": 1, "chain_sum": 2}, group=8, longest=64, encode=no_tokens)
    lately = [(one.text, scored(one)) for one in others.publish(1, 6, [])]
    for _, group in lately:
        assert isinstance(intake.check(signed(told(group, group.rewards_G)), NOW_MS), GroupRecord)
    verdicts = [
        intake.check(signed(told(one.group, one.claimed_G), BOB), NOW_MS)
        for one in attacker.publish(2, 6, lately)
    ]
    if kind == "liar":
        assert (
            set(verdicts[:MAX_STRIKES]) == {IntakeReason.FALSE_REWARDS}
            and verdicts[-1] is IntakeReason.DISTRUSTED
        )
    elif kind in ("copy", "magpie"):
        assert set(verdicts) <= {IntakeReason.SEEN, IntakeReason.LOOK_ALIKE}
    else:
        assert all(isinstance(verdict, GroupRecord) for verdict in verdicts)


def no_tokens(question: str, text: str) -> TokenSequence:
    return TokenSequence(prompt_T=[], completion_T=list(range(len(text))))


def scored(one: PublishedGroup) -> GroupRecord:
    scores_G = tuple(float(claim) for claim in one.claimed_G)
    return one.group.with_scores(scores_G, one.claimed_G)


def told(group: GroupRecord, rewards_G: tuple[int, ...]) -> dict[str, Any]:
    return honest() | {
        "task": msgspec.structs.asdict(group.coordinates),
        "completions": list(group.completions_G),
        "finished": list(group.finished_G),
        "rewards": list(rewards_G),
    }


WITH_AN_ANSWER = sorted(set(FAMILIES) - {"bf", "propositional_logic"})
"""Logic has many right answers and the library names none of them."""


@pytest.mark.parametrize("family", WITH_AN_ANSWER)
def test_honest_answers_to_other_questions_are_no_copies(intake: Intake, family: str) -> None:
    """Short work in one style, as many copies of one small model write it."""
    verdicts = []
    texts: set[str] = set()
    for number in range(15):
        asked = question(number, family, 1 if len(FAMILIES[family].levels) > 1 else 0)
        if asked.text in texts:
            continue
        texts.add(asked.text)
        body = honest(number, family, asked.coordinates.level)
        body["completions"] = [
            f"{LONG * (number % 2)}#{FAMILIES[family].solution(asked.entry)}",
            "#zzz",
            "#not this",
        ]
        verdicts.append(intake.check(signed(body, Identity(bytes([100 + number]) * 32)), NOW_MS))
    assert len(verdicts) > 4 and all(isinstance(one, GroupRecord) for one in verdicts)


def test_a_model_that_works_by_a_pattern_does_not_copy_itself() -> None:
    """Long work that differs in its numbers only, as many nodes with one model write it."""
    rng, likeness, alike = Random(1), SimilarityIndex(), 0
    for number in range(200):
        a, b = rng.randint(100, 999), rng.randint(100, 999)
        texts = [
            f"To find the greatest common divisor of {a} and {b} we divide the larger one by the smaller one. "
            f"The remainder of {a} and {b} is {rng.randint(1, 99)}, so we go on with {rng.randint(1, 99)}. "
            f"When nothing is left the last divisor is what was asked for, #{rng.randint(1, 99)}"
            for _ in range(8)
        ]
        sketch = likeness.sketch(f"question {number}", texts)
        alike += likeness.alike(sketch)
        likeness.remember(sketch)
        assert likeness.alike(likeness.sketch("the same", texts[::-1]))
    assert alike <= 4


def payloads(canary: Path) -> list[str]:
    """Code that would leave a file behind if anything ran it."""
    write = f"__import__('pathlib').Path({str(canary)!r}).touch()"
    return [
        write,
        f"[{write}]",
        f"({write}, 1)[1]",
        f"(lambda: {write})()",
        f'f"{{{write}}}"',
        f"exec({write!r})",
    ]


def test_code_in_answers_never_runs(intake: Intake, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    number = false = 0
    for family in WITH_AN_ANSWER:
        for code in payloads(canary):
            number += 1
            body = honest(number % 4, family)
            body["key_seq"] = number
            body["completions"] = [f"<answer>{code}</answer>", body["completions"][0], f"#{code}"]
            body["rewards"], body["finished"] = [1, 1, 0], [True, True, True]
            verdict = intake.check(signed(body, Identity(number.to_bytes(32, "big"))), NOW_MS)
            assert verdict in (IntakeReason.FALSE_REWARDS, IntakeReason.LOOK_ALIKE), (family, code)
            false += verdict is IntakeReason.FALSE_REWARDS
    assert not canary.exists() and not hasattr(builtins, "PWNED")
    assert false > number / 2


def test_a_question_that_takes_long_costs_its_author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_, "COMMAND", (sys.executable, str(STAND_IN), str(tmp_path), "works"))
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN.parents[3]))
    monkeypatch.setitem(FAMILIES, "hang", msgspec.structs.replace(FAMILIES["gcd"], name="hang"))  # type: ignore[arg-type]
    monkeypatch.setattr(sandbox_, "LOAD_SECONDS", 0.2)
    with Sandbox() as slow:
        intake = Intake(slow, SWARM, [])
        for number in range(3):
            assert intake.check(task(family="hang", seed=number), NOW_MS) is IntakeReason.SLOW_QUESTION
        assert intake.check(task(family="hang", seed=9), NOW_MS) is IntakeReason.DISTRUSTED


def test_impossible_coordinates_cost_their_author_and_not_the_sandbox(intake: Intake) -> None:
    places = [Coordinates(**UNSOUND, seed=seed * 10**7, index=0) for seed in range(99)]
    made = zip(places, make(places), strict=True)
    nowhere = [place.seed for place, one in made if isinstance(one, UnsoundQuestion)]
    intake.check(signed(honest(3)), NOW_MS)
    pid = intake._sandbox.pid
    for seed in nowhere[:3]:
        assert intake.check(task(**UNSOUND, seed=seed, index=0), NOW_MS) is IntakeReason.NO_QUESTION
    assert intake.check(signed(honest(4)), NOW_MS) is IntakeReason.DISTRUSTED
    assert intake._sandbox.pid == pid


def test_the_check_makes_no_question_in_this_process() -> None:
    items = [encoded(one).decode() for one in (signed(honest()), with_(rewards=[0, 1, 0]), task(family="lcm"))]
    script = f"""
import sys
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.intake.intake import MAX_STRIKES, Intake
with Sandbox() as sandbox:
    sifted = Intake(sandbox, {SWARM!r}, []).check_batch([one.encode() for one in {items!r}], {NOW_MS})
print(len(sifted.checked), [name for name in ("reasoning_gym", "sympy", "numpy") if name in sys.modules])
"""
    root = STAND_IN.parents[3]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root)
    assert done.stdout == "1 []\n", done.stderr


def test_a_batch_is_sifted_and_what_must_be_reported_is_said(intake: Intake) -> None:
    false, unsafe = with_(rewards=[0, 1, 0]), said("\x1b[2J")
    items = [encoded(signed(honest(5))), b"{", encoded(false), msgspec.Raw(encoded(unsafe)), false]
    sifted = intake.check_batch(items, NOW_MS)
    assert [one.id for one in sifted.checked] == [signed(honest(5)).id]
    assert sifted.refused == {
        IntakeReason.NOT_JSON: 1,
        IntakeReason.FALSE_REWARDS: 1,
        IntakeReason.UNSAFE: 1,
        IntakeReason.SEEN: 1,
    }
    assert sifted.reports == {"bad_reward": (false.id,), "unsafe": (unsafe.id,)}


def test_a_rest_ends_the_sifting_with_what_was_checked_before(intake: Intake, sandbox: Sandbox) -> None:
    items = [encoded(signed(honest(number))) for number in (6, 7, 8)]
    check = intake.check

    def once(
        one: bytes | msgspec.Raw | Envelope | IntakeReason, now_ms: int, oldest_s: int | None = None
    ) -> GroupRecord | IntakeReason:
        verdict = check(one, now_ms)
        sandbox.suspend()
        return verdict

    intake.check = once  # type: ignore[method-assign]
    try:
        sifted = intake.check_batch(items, NOW_MS)
    finally:
        sandbox.resume()
    assert [one.id for one in sifted.checked] == [signed(honest(6)).id] and not sifted.refused
    intake.check = check  # type: ignore[method-assign]
    assert [one.id for one in intake.check_batch(items[2:], NOW_MS).checked] == [signed(honest(8)).id]


def test_memory_is_bounded(intake: Intake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_, "REMEMBERED_IDS", 20)
    monkeypatch.setattr(intake_, "REMEMBERED_PEERS", 10)
    for number in range(60):
        intake.check(signed(honest() | {"key_seq": number + 1}, Identity(number.to_bytes(32, "big"))), NOW_MS)
    assert len(intake._ids) == 20 and len(intake._authors) == 10
    assert intake._likeness._latest.maxlen


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(0, 2**32))
def test_any_signed_body_is_refused_or_taken(intake: Intake, data: st.DataObject, author: int) -> None:
    body = data.draw(spoiled(honest(author % 5)))
    try:
        raw = msgspec.json.encode(body)
    except (UnicodeError, OverflowError, msgspec.MsgspecError):
        return
    verdict = intake.check(encoded(signed(raw, Identity(author.to_bytes(32, "big")))), NOW_MS)
    assert isinstance(verdict, GroupRecord | IntakeReason)


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_bytes_are_refused_or_taken(intake: Intake, data: st.DataObject) -> None:
    sound = encoded(signed(honest()))
    item = data.draw(
        st.one_of(
            scratched(sound),
            spoiled(msgspec.json.decode(sound)).map(msgspec.json.encode),
            st.binary(max_size=99),
        )
    )
    assert isinstance(intake.check(item, NOW_MS), GroupRecord | IntakeReason)
