"""A person's own answers: the puzzle of the day, the offer of the very text, the yes, and the tally."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from app.chat import daily, messages, scorebook
from app.chat.messages import AnswerJudged, ChatFailed, ExampleGiven, PuzzleDrawn, Reply
from app.chat.talking import Chat, OpenEngine
from app.models.shelf import locate
from app.node.swarm.answers import FOLDER, OwnerAnswer
from app.sapo import asking
from app.sapo.questions import VERSION
from engines.files import read_json
from engines.models.architecture import read_settings
from engines.models.folder import open_folder
from engines.models.tokens import ChatTokenizer
from tests.chat import test_talking
from tests.chat.test_talking import Echo


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    monkeypatch.setattr(test_talking, "READS", 10_000)
    made = Chat("starter", tmp_path, cast(OpenEngine, lambda *_: Echo(talks=False)))
    yield made
    made.close()


def do(chat: Chat, request: messages.Request) -> list[Reply]:
    return list(chat.do(request, lambda *_: True))


def drawn(chat: Chat, number: int = 1, **what: Any) -> PuzzleDrawn:
    (one, _) = do(chat, messages.Draw(number=number, **what))
    assert isinstance(one, PuzzleDrawn)
    return one


def solution(chat: Chat, puzzle: int) -> str:
    return chat._puzzle(puzzle).solution


def judged(chat: Chat, puzzle: int, answer: str, work: str = "", against: bool = False) -> AnswerJudged:
    replies = do(chat, messages.JudgeAnswer(number=9, puzzle=puzzle, answer=answer, work=work, against=against))
    return next(one for one in replies if isinstance(one, AnswerJudged))


def kept(home: Path) -> list[OwnerAnswer]:
    return [one for path in (home / FOLDER).glob("*.json") if (one := read_json(path, OwnerAnswer))]


def test_the_puzzle_of_the_day_follows_from_the_day_and_the_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    days = [date(2026, 11, 23) + timedelta(days=n) for n in range(20)]
    puzzles = [daily.puzzle_of(day) for day in days]
    assert [one.text for one in puzzles] == [daily.puzzle_of(day).text for day in days]
    assert len({one.text for one in puzzles}) == 20 and len({one.family for one in puzzles}) > 8
    assert not any(one.question.held_out for one in puzzles), "an answer to it may teach"
    monkeypatch.setattr(daily, "VERSION", VERSION + "0")
    assert [daily.puzzle_of(day).text for day in days] != [one.text for one in puzzles]


def test_the_smallest_model_can_read_the_puzzle_of_every_day() -> None:
    """Another tokenizer than the starter's makes one token of each byte at most."""
    starter = locate("starter")
    text = ChatTokenizer(open_folder(starter))
    room = json.loads((starter / "config.json").read_text())["max_position_embeddings"]
    room -= read_settings(starter).max_tokens or 0
    puzzles = [daily.puzzle_of(date(2026, 11, 23) + timedelta(days=n)) for n in range(400)]
    assert max(len(text.prompt(asking.messages(one.text, asking.TAGGED))) for one in puzzles) <= room
    assert max(len(one.text.encode()) for one in puzzles) < room
    assert not any(one.question.held_out for one in puzzles)
    assert len({one.family for one in puzzles}) > 15 and len({one.text for one in puzzles}) > 360


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


def test_the_tally_counts_what_both_answered(chat: Chat, tmp_path: Path) -> None:
    puzzle = drawn(chat, sort="daily")
    assert puzzle.daily and not puzzle.unseen
    judged(chat, 1, solution(chat, 1))
    scores, _ = scorebook.read(tmp_path)
    assert scores.daily == daily.today().isoformat() and scores.total.right == 1
    assert not scores.against, "without the model there is nothing to compare"
    drawn(chat, 2, sort="practice", family="gcd", level=0)
    judged(chat, 2, solution(chat, 2), against=True)
    again, _ = scorebook.read(tmp_path)
    assert again.against == {"gcd": scorebook.DuelScore(puzzles=1, you=1, model=0)}
