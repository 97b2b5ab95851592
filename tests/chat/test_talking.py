"""Conversations with an engine whose answers and limits are known: what is remembered, forgotten and ended."""

from __future__ import annotations

import io
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from app.chat import messages, terminal
from app.chat.messages import Reply, Said, Side
from app.chat.skills import OpenEngine
from app.chat.talking import TALK_TEMPERATURE, Chat
from engines.contract import GREEDY_TEMPERATURE, Completion, EngineInfo, Heard, Messages, TooLongError

READS = 120
"""Characters that the engine can read at once, unless a test lets it read more."""


class Echo:
    """Repeats what it was last told, a word at a time."""

    def __init__(self, talks: bool) -> None:
        self.prompts: list[tuple[bool, list[str]]] = []
        self.temperatures: list[float] = []
        self.reads = READS
        self.info = EngineInfo(
            name="echo", device="none", dtype="none", model="echo", parameters=0, trainable=0, threads=0,
            memory_budget_mb=0, talks=talks,
        )  # fmt: skip

    def sample(
        self,
        prompts_P: Sequence[Messages],
        n: int,
        max_tokens: int,
        seed: int,
        *,
        plain: bool = False,
        temperature: float = 1.0,
        heard: Heard | None = None,
    ) -> list[list[Completion]]:
        assert heard is not None and len(prompts_P) == n == 1
        self.temperatures.append(temperature)
        return [[self._echo(prompts_P[0], heard, plain)]]

    def _echo(self, prompt: Messages, heard: Heard, plain: bool) -> Completion:
        said = [one["content"] for one in prompt]
        if sum(map(len, said)) > self.reads:
            raise TooLongError("A prompt of so many tokens exceeds those that echo can read: choose another.")
        self.prompts.append((plain, said))
        words = said[-1].split()
        for number in range(1, len(words) + 1):
            text = " ".join(words[:number])
            if not heard(text):
                return Completion(tokens_T=[0] * number, logprobs_T=[], finished=False, text=text)
        return Completion(tokens_T=[0] * len(words), logprobs_T=[], finished=True, text=text)


@pytest.fixture
def open_chat(tmp_path: Path) -> Iterator[Any]:
    made: list[Chat] = []

    def opened(talks: bool = True) -> tuple[Chat, Echo]:
        engine = Echo(talks)
        made.append(Chat("starter", tmp_path, cast(OpenEngine, lambda *_: engine)))
        return made[-1], engine

    yield opened
    for chat in made:
        chat.close()


def ask(chat: Chat, text: str, stop_after: int = 1000, **what: Any) -> tuple[list[Reply], list[str]]:
    told: list[str] = []

    def tell(side: Side, text: str) -> bool:
        told.append(text)
        return len(told) < stop_after

    return list(chat.handle(messages.Ask(number=1, text=text, **what), tell)), told


def said(replies: Sequence[Reply]) -> list[tuple[str, str]]:
    return [(one.side, one.text) for one in replies if isinstance(one, Said)]


def test_an_answer_grows_and_is_remembered(open_chat: Any) -> None:
    chat, engine = open_chat()
    replies, told = ask(chat, "good \x1b morning")
    assert told == ["good", "good ·", "good · morning"], "nothing in it is obeyed"
    assert said(replies) == [("before", "good · morning"), ("after", "good · morning")]
    assert len(engine.prompts) == 1, "both are the same model before anything was learned"
    ask(chat, "and", sides="after")
    assert engine.prompts[-1] == (False, ["good \x1b morning", "good \x1b morning", "and"])
    list(chat.handle(messages.Forget(number=2), lambda *_: True))
    ask(chat, "and now", sides="before")
    assert engine.prompts[-1] == (True, ["and now"])


def test_what_is_stopped_stays_as_far_as_it_came(open_chat: Any) -> None:
    chat, engine = open_chat()
    replies, _ = ask(chat, "one two three four", stop_after=2)
    (stopped, done) = replies
    assert isinstance(stopped, Said) and stopped.stopped and not stopped.finished
    assert (stopped.side, stopped.text) == ("before", "one two") and isinstance(done, messages.ChatDone)
    ask(chat, "go on", sides="before")
    assert engine.prompts[-1][1] == ["one two three four", "one two", "go on"]


def test_a_conversation_that_grows_too_long_loses_its_beginning(open_chat: Any) -> None:
    chat, engine = open_chat()
    for number in range(3):
        ask(chat, f"{number} " + "x" * 20)
    replies, _ = ask(chat, "3 " + "x" * 20)
    (noted,) = (one.sentence for one in replies if isinstance(one, messages.ChatNote))
    assert "forgot the beginning" in noted
    assert engine.prompts[-1][1][0].startswith("1 ") and len(engine.prompts[-1][1]) == 5
    (failed,), _ = ask(chat, "y" * READS * 2)
    assert isinstance(failed, messages.ChatFailed) and "ask something shorter" in failed.sentence


def test_who_only_speaks_puzzle_is_not_asked_for_more(open_chat: Any) -> None:
    chat, engine = open_chat(talks=False)
    replies, _ = ask(chat, "How are you?")
    assert [type(one) for one in replies] == [messages.OnlyPuzzles, messages.ChatDone] and not engine.prompts
    replies, _ = ask(chat, "4 + 3 =")
    assert said(replies)[0] == ("before", "4 + 3 =")


def test_a_puzzle_gets_the_likeliest_answer_and_talk_a_drawn_one(open_chat: Any) -> None:
    chat, engine = open_chat()
    engine.reads = 1000
    ask(chat, "How are you?")
    (drawn, _) = chat.handle(messages.Draw(number=2, family="gcd", level=0), lambda *_: True)
    assert isinstance(drawn, messages.PuzzleDrawn)
    solved = list(chat.handle(messages.Solve(number=3, puzzle=drawn.puzzle), lambda *_: True))
    assert [type(one) for one in solved][-2:] == [messages.Solution, messages.ChatDone]
    assert engine.temperatures == [TALK_TEMPERATURE, GREEDY_TEMPERATURE, GREEDY_TEMPERATURE]


def test_a_terminal_loses_no_answer(open_chat: Any) -> None:
    chat, _ = open_chat()
    out, asked = io.StringIO(), "good morning\n/after\nand now\n/before\nhm\n" + "y" * READS * 2 + "\n"
    assert terminal.converse(lambda: chat, io.StringIO(asked), Console(file=out, width=100)) == 0
    shown = out.getvalue()
    assert shown.count("good morning") == 2 and shown.count("and now") == shown.count(" hm ") == 1
    assert "ask something shorter" in " ".join(shown.split())


@pytest.fixture
def heeding() -> Iterator[None]:
    """Ctrl-C is heard, also where whoever started the tests has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_the_answer_and_a_second_one_more(heeding: None) -> None:
    with terminal.interruptible(True) as stop:
        assert not stop.is_set()
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
