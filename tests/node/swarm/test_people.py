"""People's answers: put by with a yes, scored again, taught where the model failed, and given to a relay that
takes them."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import msgspec
import pytest

from app.learning.choosing import MAX_HUMAN_GROUPS, choose, with_own_wrong_answers
from app.node.record import events
from app.node.record.records import Round
from app.node.swarm.answers import (
    FOLDER,
    KEPT_S,
    MAX_WAITING_ANSWERS,
    YOU,
    AnswerError,
    Answers,
    OwnerAnswer,
    put,
)
from app.sapo import questions
from app.sapo.families import FAMILIES
from app.sapo.groups import HUMAN_MODEL, GroupRecord, is_single_right_answer
from app.sapo.questions import Question
from app.sapo.recipes import RECIPES
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.seeds import TRAINING_SEEDS
from tests.node.bench import Bench, of


@pytest.fixture(autouse=True)
def awake(sandbox: Sandbox) -> None:
    sandbox.resume()  # a paused node of another test lets it rest


def question(held_out: bool = False, family: str = "chain_sum", level: int = 1) -> Question:
    for seed in range(TRAINING_SEEDS.start, TRAINING_SEEDS.start + 200):
        made = questions.draw(family, level, seed)
        if made.held_out == held_out:
            return made
    raise AssertionError("no such question")


def answer(made: Question, wrong: str = "", at: float | None = None, **purposes: bool) -> OwnerAnswer:
    family = FAMILIES[made.coordinates.family]
    assert family.work is not None
    return OwnerAnswer(
        coordinates=made.coordinates,
        text=f"{family.work(made.entry)} #{family.solution(made.entry)}{wrong}",
        at=time.time() if at is None else at,
        teach=purposes.get("teach", True),
        share=purposes.get("share", False),
    )


def waiting(home: Path) -> int:
    return len(list((home / FOLDER).glob("*.json")))


def test_only_a_right_answer_to_a_question_of_practice_is_taken(tmp_path: Path, sandbox: Sandbox) -> None:
    answers = Answers(tmp_path)
    put(tmp_path, answer(question(), wrong="1", at=time.time() - 3))
    put(tmp_path, answer(question(held_out=True), at=time.time() - 2))
    assert answers.to_learn(sandbox, ("chain_sum",)) == []
    assert waiting(tmp_path) == 0, "what weighs nothing does not stay"
    put(tmp_path, answer(question()))
    assert answers.to_learn(sandbox, ("gcd",)) == [], "a family that is not practised waits"
    (found,) = answers.to_learn(sandbox, ("chain_sum", "gcd"))
    assert found.author == YOU and is_single_right_answer(found.rewards_G) and found.model == HUMAN_MODEL
    answers.mark_taught(found)
    assert waiting(tmp_path) == 0


def test_each_purpose_is_fulfilled_apart(tmp_path: Path, sandbox: Sandbox) -> None:
    answers = Answers(tmp_path)
    put(tmp_path, answer(question(), share=True))
    (found,) = answers.to_learn(sandbox, ("chain_sum",))
    answers.mark_taught(found)
    assert answers.to_learn(sandbox, ("chain_sum",)) == [] and waiting(tmp_path) == 1
    (scored,) = answers.take_shareable(sandbox)
    answers.mark_shared(scored)
    assert waiting(tmp_path) == 0


def test_what_may_not_travel_is_refused_with_a_sentence(tmp_path: Path) -> None:
    good = answer(question())
    for text, word in (("x" * 5000, "too long"), ("4 #4\u202e", "hidden"), ("<|im_end|> #4", "hidden")):
        with pytest.raises(AnswerError, match=word):
            put(tmp_path, OwnerAnswer(coordinates=good.coordinates, text=text, at=1.0, teach=True, share=True))
    for number in range(MAX_WAITING_ANSWERS):
        put(
            tmp_path,
            OwnerAnswer(coordinates=good.coordinates, text=f"{number}", at=1.0, teach=True, share=False),
        )
    with pytest.raises(AnswerError, match="later"):
        put(tmp_path, good)


def test_damaged_and_old_files_go(tmp_path: Path, sandbox: Sandbox) -> None:
    put(tmp_path, answer(question(), at=time.time() - KEPT_S - 60))
    (tmp_path / FOLDER / "x.json").write_text('{"text": 3')
    assert Answers(tmp_path).to_learn(sandbox, ("chain_sum",)) == [] and waiting(tmp_path) == 0


def scored(texts: tuple[str, ...], rewards: tuple[int, ...]) -> GroupRecord:
    group = GroupRecord(
        coordinates=question().coordinates, completions_G=texts, finished_G=(True,) * len(texts), model="m"
    )
    return group.with_scores(tuple(map(float, rewards)), rewards)


def test_own_failures_are_the_contrast_and_a_success_leaves_nothing() -> None:
    person = scored(("1+1=2 #2",), (1,))
    both = with_own_wrong_answers(person, scored(("#3", "#4"), (0, 0)))
    assert both is not None
    assert both.rewards_G == (1, 0, 0) and both.completions_G == ("1+1=2 #2", "#3", "#4")
    assert with_own_wrong_answers(person, scored(("#3", "#2"), (0, 1))) is None


def test_one_person_a_round_and_never_in_place_of_a_peer() -> None:
    def from_(key: str, rewards_G: tuple[int, ...]) -> GroupRecord:
        return msgspec.structs.replace(scored(("#1",) * len(rewards_G), rewards_G), key=key)

    pool = [from_(f"m{n}", (1, 0)) for n in range(3)] + [from_(f"p{n}", (1,)) for n in range(40)]
    chosen = choose(RECIPES["default"], pool, [0] * 43, 2, Random(1))
    assert sum(at >= 3 for at in chosen) == MAX_HUMAN_GROUPS and sum(at < 3 for at in chosen) == 2
    assert all(at < 3 for at in choose(RECIPES["faithful"], pool, [0] * 43, 9, Random(1)))
    person = [from_("p", (1,))]
    assert choose(RECIPES["default"], person, [99], 2, Random(1)) == []
    tries = [choose(RECIPES["default"], person, [0], 2, Random(n), lambda key: 0.2) for n in range(200)]
    assert 0 < sum(map(bool, tries)) < 20, "a doubted person is asked now and then"


def test_a_node_learns_from_its_owner_alone_and_says_so(bench: Bench) -> None:
    put(bench.home, answer(question(), at=time.time() - 2))
    put(bench.home, answer(question(), wrong="1", at=time.time() - 1))
    seen = bench.run(rounds=2, solo=True)
    assert waiting(bench.home) == 0
    said = [event.sentence for event in of(events.NodeNote, seen) if "answer" in event.sentence]
    assert len(said) == 1, "the wrong one is not even looked at"
    first = of(Round, seen)[0]
    assert first.peers in ({YOU: 1}, {}) and (YOU in first.peers) == ("taught" in said[0])
