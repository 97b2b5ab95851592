"""A person's own answers: the offer of the very text, and the yes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from app.chat import messages
from app.chat.messages import AnswerJudged, ChatFailed, ExampleGiven, PuzzleDrawn, Reply
from app.chat.skills import OpenEngine
from app.chat.talking import Chat
from app.node.swarm.answers import FOLDER, OwnerAnswer
from engines.files import read_json
from tests.chat import test_talking
from tests.chat.test_talking import Echo


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    monkeypatch.setattr(test_talking, "READS", 10_000)
    made = Chat("starter", tmp_path, cast(OpenEngine, lambda *_: Echo(talks=False)))
    yield made
    made.close()


def do(chat: Chat, request: messages.Request) -> list[Reply]:
    return list(chat.handle(request, lambda *_: True))


def drawn(chat: Chat, number: int = 1, **what: Any) -> PuzzleDrawn:
    (one, _) = do(chat, messages.Draw(number=number, **what))
    assert isinstance(one, PuzzleDrawn)
    return one


def solution(chat: Chat, puzzle: int) -> str:
    return chat._puzzle(puzzle).solution


def judged(chat: Chat, puzzle: int, answer: str, work: str = "") -> AnswerJudged:
    replies = do(chat, messages.SubmitAnswer(number=9, puzzle=puzzle, answer=answer, work=work))
    return next(one for one in replies if isinstance(one, AnswerJudged))


def kept(home: Path) -> list[OwnerAnswer]:
    return [one for path in (home / FOLDER).glob("*.json") if (one := read_json(path, OwnerAnswer))]


def test_a_right_answer_with_working_is_offered_and_kept_only_after_a_yes(chat: Chat, tmp_path: Path) -> None:
    puzzle = drawn(chat, sort="practice", family="chain_sum", level=1)
    assert not puzzle.unseen
    right = solution(chat, 1)
    found = judged(chat, 1, right, work="I counted.")
    assert found.solved and found.offer == f"I counted. #{right}" and kept(tmp_path) == []
    given = do(chat, messages.Give(number=2, puzzle=1, teach=True, share=False))
    assert isinstance(given[0], ExampleGiven)
    (answer,) = kept(tmp_path)
    assert answer.text == found.offer and (answer.teach, answer.share) == (True, False)
    again = do(chat, messages.Give(number=3, puzzle=1, teach=True, share=True))
    assert isinstance(again[0], ChatFailed) and len(kept(tmp_path)) == 1, "one yes, one answer"


@pytest.mark.parametrize("why", ["wrong", "no working", "a test", "another answer in the work"])
def test_nothing_is_offered_that_may_not_teach(chat: Chat, tmp_path: Path, why: str) -> None:
    drawn(chat, sort="test" if why == "a test" else "practice", family="chain_sum", level=1)
    right = solution(chat, 1)
    answer = right + "1" if why == "wrong" else right
    work = {"no working": "", "another answer in the work": "<answer>x</answer>"}.get(why, "I counted.")
    assert judged(chat, 1, answer, work=work).offer == ""
    refused = do(chat, messages.Give(number=2, puzzle=1, teach=True, share=True))
    assert isinstance(refused[0], ChatFailed) and kept(tmp_path) == []
