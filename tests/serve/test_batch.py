"""Answers under way together, with a decoder whose logits are known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from app.models.shelf import locate
from app.serve.batch import Answer, Batch
from app.serve.messages import BASE_SIDE, MAX_LINE, Began, Ended, Piece, Refused, Reply, Start, to_line
from engines import opening
from engines.contract import Engine, EngineError
from engines.facts import ENGINES
from engines.llamacpp.grammar import Grammars
from engines.llamacpp.model import why_unavailable
from engines.models.folder import open_folder
from engines.models.tokens import ChatTokenizer

TOKENIZER = ChatTokenizer(open_folder(locate("starter")))
VOCABULARY = TOKENIZER.library.get_vocab_size()


class Counting:
    """Says its prompt again, and ends. At most `rows` at once; `log` tells what was done to it."""

    def __init__(self, rows: int, joins: bool) -> None:
        self.rows, self.joins = rows, joins
        self.prompts_R: list[list[int]] = []
        self.said_R: list[int] = []
        self.most = 0

    def decoder(self, rows: int, tokens: int, *, plain: bool = False) -> Counting:
        self.prompts_R, self.said_R = [], []
        return self

    def read(self, prompts_R: Sequence[Sequence[int]], more: int) -> Any:
        self.prompts_R += map(list, prompts_R)
        self.said_R += [0] * len(prompts_R)
        self.most = max(self.most, len(self.prompts_R))
        return self._logits(self.prompts_R[-len(prompts_R) :], [0] * len(prompts_R))

    def advance(self, tokens_R: Sequence[int]) -> Any:
        assert len(tokens_R) == len(self.prompts_R)
        self.said_R = [said + 1 for said in self.said_R]
        return self._logits(self.prompts_R, self.said_R)

    def keep(self, rows_R: Sequence[int]) -> None:
        self.prompts_R = [self.prompts_R[row] for row in rows_R]
        self.said_R = [self.said_R[row] for row in rows_R]

    def _logits(self, prompts_R: Sequence[Sequence[int]], said_R: Sequence[int]) -> Any:
        logits_RV = np.zeros((len(prompts_R), VOCABULARY), np.float32)
        for row, (prompt, said) in enumerate(zip(prompts_R, said_R, strict=True)):
            logits_RV[row, prompt[said] if said < len(prompt) else TOKENIZER.end] = 50
        return logits_RV


@functools.cache
def grammars() -> Grammars:
    return Grammars(locate("starter"))


def batch(decoder: Counting) -> Batch:
    def prompt(text: Any) -> list[int]:
        if text == "?":
            raise EngineError("No.")
        ids: list[int] = TOKENIZER.library.encode(text).ids
        return ids

    return Batch(cast(Engine, decoder), TOKENIZER, 256, Two(prompt), lambda text: grammars().begin(text))


class Two:
    """The base and the puzzles, both asked with `read`."""

    def __init__(self, read: Callable[[Any], list[int]]) -> None:
        self._read = read

    def prompt(self, prompt: Any, side: str) -> list[int]:
        return self._read(prompt)

    def turn_to(self, side: str) -> bool:
        return side != BASE_SIDE

    def labels(self, side: str) -> dict[str, list[int]]:
        return {}

    def split(self, side: str) -> None:
        return None

    def max_tokens(self, side: str) -> None:
        return None


def played(made: Batch) -> list[Reply]:
    told: list[Reply] = []
    while made.busy:
        told += made.step()
    return told


@pytest.mark.parametrize("joins", [True, False])
def test_each_gets_its_own_answer_whoever_is_beside_it(joins: bool) -> None:
    decoder = Counting(3, joins)
    made = batch(decoder)
    texts = {number: "7" * (1 + number * 5 % 8) + "+1" for number in range(1, 12)}
    for number, text in texts.items():
        assert isinstance(
            made.add(Start(number=number, prompts=[text], side=BASE_SIDE if number % 4 == 0 else "puzzles")),
            Began,
        )
    ended = {one.number: one for one in played(made) if isinstance(one, Ended)}
    assert {number: one.text for number, one in ended.items()} == texts
    assert {one.reason for one in ended.values()} == {"stop"}
    assert decoder.most == 3


def test_one_that_is_dropped_is_told_nothing_more_and_its_place_is_given_away() -> None:
    decoder = Counting(1, True)
    made = batch(decoder)
    made.add(Start(number=1, prompts=["123456789"], stream=True))
    made.add(Start(number=2, prompts=["42"]))
    assert {one.number for one in made.step()} == {1}
    made.drop(1)
    assert [one.number for one in played(made)] == [2]


def test_what_may_be_the_beginning_of_a_stop_is_held_back() -> None:
    made = batch(Counting(4, True))
    made.add(Start(number=1, prompts=["12+3=15"], stop=["+3"], stream=True))
    told = played(made)
    assert "".join(one.text for one in told if isinstance(one, Piece | Ended)) == "12"
    assert all("+" not in one.text for one in told if isinstance(one, Piece | Ended))


def test_a_prompt_that_is_refused_or_too_long_costs_the_others_nothing() -> None:
    made = batch(Counting(4, True))
    assert isinstance(made.add(Start(number=1, prompts=["?"])), Refused)
    found = made.add(Start(number=2, prompts=["1" * 300]))
    assert isinstance(found, Refused) and found.code == "context_length_exceeded"
    assert not made.busy


def test_a_character_whose_bytes_come_one_by_one_is_told_whole(tmp_path: Path) -> None:
    class Bytes:
        stops: frozenset[int] = frozenset()

        def texts(self, completions: Sequence[list[int]]) -> list[str]:
            return [bytes(one).decode("utf-8", "replace") for one in completions]

    text = "aé€🐟z"
    answer = Answer(Start(number=1, prompts=[""], stream=True), 0, [1], 99, cast(ChatTokenizer, Bytes()))
    pieces = []
    for now, token in enumerate(text.encode()):
        answer.add(token, None)
        pieces += [one.text for one in answer.due_messages(now) if isinstance(one, Piece)]
    assert pieces == list(text)


def test_log_probabilities_of_a_long_answer_come_in_parts() -> None:
    made = batch(Counting(4, True))
    made.add(Start(number=1, prompts=["1" * 254], logprobs=20, max_tokens=600))
    made._context = 2048
    made.add(Start(number=2, prompts=["2" * 700], logprobs=20, max_tokens=600))
    told = [one for one in played(made) if isinstance(one, Piece | Ended) and one.number == 2]
    assert isinstance(told[0], Piece) and isinstance(told[-1], Ended)
    assert sum(len(one.logprobs) for one in told) == 600 and max(len(one.logprobs) for one in told) <= 256
    assert "".join(one.text for one in told) == "2" * 600
    assert max(len(to_line(one)) for one in told) < MAX_LINE


needs_llamacpp = pytest.mark.skipif(bool(why_unavailable()), reason="llama.cpp is not here")


@needs_llamacpp
def test_an_answer_follows_its_grammar_and_is_drawn_from_what_that_leaves() -> None:
    """The model wants to repeat its prompt; the grammar has it say one of two words, as often as before."""

    class Even(Counting):
        def _logits(self, prompts_R: Sequence[Sequence[int]], said_R: Sequence[int]) -> Any:
            logits_RV = super()._logits(prompts_R, said_R)
            logits_RV[:] = np.where(logits_RV == 50, 3, -60)
            for row, said in enumerate(said_R):
                if not said:
                    logits_RV[row, [TOKENIZER.library.token_to_id(one) for one in "46"]] = [1, 0]
            return logits_RV

    made = batch(Even(16, True))
    made.add(Start(number=1, prompts=["111"] * 200, grammar='root ::= "4" | "6"'))
    made.add(Start(number=2, prompts=["111"], grammar='root ::= "6" | "4"', temperature=0))
    made.add(Start(number=3, prompts=["111"]))
    ended = [one for one in played(made) if isinstance(one, Ended)]
    free = [one.text for one in ended if one.number == 1]
    assert set(free) == {"4", "6"} and 120 < free.count("4") < 170  # e to 1 is 146 of 200
    assert {one.reason for one in ended} == {"stop"}
    assert [one.text for one in ended if one.number == 2] == ["4"]
    assert [one.text for one in ended if one.number == 3] == ["111"]


@needs_llamacpp
@pytest.mark.parametrize("text", ['root ::= "a', "root ::= root", "x", 'root ::= other "a"'])
def test_a_grammar_that_llamacpp_refuses_costs_only_its_request(text: str) -> None:
    made = batch(Counting(4, True))
    found = made.add(Start(number=1, prompts=["1"], grammar=text))
    assert isinstance(found, Refused) and not found.fault and not made.busy


@pytest.mark.parametrize("name", ENGINES)
def test_rows_of_every_engine_say_what_it_answers_alone(name: str) -> None:
    if why := opening.why_not_installed(name):
        pytest.skip(why)
    engine = opening.open_engine(name, locate("starter"), threads=1)
    asked = [[{"role": "user", "content": text}] for text in ("What is 2 + 3?", "What is 712 - 45 + 9?", "7?")]
    alone = [engine.sample([one], 1, 12, 0, temperature=1e-5)[0][0].tokens_T for one in asked]

    def read(turns: Any) -> list[int]:
        return list(engine.prompt_tokens(turns))

    made = Batch(engine, TOKENIZER, 512, Two(read), lambda text: grammars().begin(text))
    for number, one in enumerate(asked):
        made.add(
            Start(
                number=number,
                prompts=[list(one)],
                max_tokens=12,
                temperature=0,
                side=BASE_SIDE if number == 1 else "puzzles",
            )
        )
    ended = sorted((one for one in played(made) if isinstance(one, Ended)), key=lambda one: one.number)
    assert [one.text for one in ended] == TOKENIZER.texts(alone)
    assert [one.tokens for one in ended] == list(map(len, alone))


class Choosing(Two):
    """A skill beside the base: it chooses between two labels."""

    def labels(self, side: str) -> dict[str, list[int]]:
        return {"ham": [1], "spam": [2, 3]} if side == "mails" else {}


class Scoring(Counting):
    """Finds spam three times as likely as ham."""

    def logprobs(self, sequences_S: Sequence[Any]) -> list[list[float]]:
        return [[-2.0 + np.log(3) if len(one.completion_T) > 1 else -2.0] for one in sequences_S]


def test_a_choice_is_answered_at_once_with_the_share_of_every_label() -> None:
    made = batch(Scoring(4, True))
    made._sides = Choosing(made._sides._read)  # type: ignore[attr-defined]
    for number in (1, 2):
        made.add(Start(number=number, prompts=["123"], side="mails", temperature=0, logprobs=2))
    made.add(Start(number=3, prompts=["12"], side=BASE_SIDE))
    made.add(Start(number=4, prompts=["123"], side="mails", n=40, temperature=1))
    told = [one for one in played(made) if isinstance(one, Ended)]
    first = next(one for one in told if one.number == 1)
    assert (first.text, first.reason, first.tokens) == ("spam", "stop", 2)
    (choice,) = first.logprobs
    assert choice.token[0] == "spam" and np.exp([float(value or 0) for _, value in choice.top]).round(
        3
    ).tolist() == [0.75, 0.25]
    assert next(one.text for one in told if one.number == 3) == "12"
    drawn = [one.text for one in told if one.number == 4]
    assert len(drawn) == 40 and set(drawn) == {"ham", "spam"} and drawn.count("spam") > 20


def test_an_echo_tells_the_prompt_with_its_log_probabilities_and_counts_only_what_is_new() -> None:
    made = batch(Counting(4, True))
    made.add(Start(number=1, prompts=["12+3"], echo=True, max_tokens=2, logprobs=1, temperature=0))
    (ended,) = (one for one in played(made) if isinstance(one, Ended))
    assert ended.text.startswith("12+3") and ended.tokens <= 2
    assert ended.logprobs[0].token[1] is None and all(one.token[1] is not None for one in ended.logprobs[1:])
    assert (
        "".join(one.token[0] for one in ended.logprobs[: len(TOKENIZER.library.encode("12+3").ids)]) == "12+3"
    )
    made.add(Start(number=2, prompts=["1", "12"], echo=True, max_tokens=0, logprobs=1))
    told = [one for one in played(made) if isinstance(one, Ended)]
    assert [(one.text, one.tokens, len(one.logprobs)) for one in told] == [("1", 0, 1), ("12", 0, 2)]


def test_a_new_checkpoint_waits_until_the_answers_in_progress_have_ended() -> None:
    turned: list[int] = []

    class Turning(Two):
        def turn_to(self, side: str) -> bool:
            turned.append(len(made._going))
            return True

    made = batch(Counting(2, True))
    made._sides = Turning(made._sides._read)  # type: ignore[attr-defined]
    for number in range(1, 6):
        made.add(Start(number=number, prompts=["12" * number], side="puzzles", temperature=0))
        made.step()
    played(made)
    made.add(Start(number=6, prompts=["1"], side="puzzles"))
    played(made)
    assert len(turned) > 1 and not any(turned)
