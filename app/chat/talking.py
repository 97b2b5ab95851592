"""A conversation with a model before and after: the same words to both, each with its own answers behind it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from app.chat import messages
from app.chat.learned import Learned
from app.chat.messages import MAX_TEXT, Side
from app.chat.puzzles import Puzzle, Verdicts, draw
from app.common.text import safe
from app.node.state import State
from app.sapo import asking
from app.sapo.groups import binary_rewards
from app.sapo.questions import QuestionError
from app.sapo.sandbox import SandboxError
from engines.contract import Completion, Engine, EngineError
from engines.models import locate, read_settings

MAX_TOKENS = 1024
"""The most that one answer may be given."""
_TALK_TOKENS = 256
_TURNS = 8
"""So many questions and answers are remembered."""
_PUZZLES = 64
OpenEngine = Callable[[Path, int | None], Engine]
"""(model folder, rank) to an engine."""
Turns = list[dict[str, str]]


class ChatError(Exception):
    """What was asked cannot be done; one sentence says why and what to do."""


class Chat:
    """One model, opened when this is made. Not for several threads.

    Raises EngineError where the model or its adapter cannot be had."""

    def __init__(self, model: str, home: Path, open_engine: OpenEngine, max_tokens: int | None = None) -> None:
        folder = locate(model, home)
        settings = read_settings(folder)
        self._name = folder.name if Path(model).expanduser().is_dir() else model
        self._learned = Learned(home, folder)
        self._engine = open_engine(folder, self._learned.rank())
        self._state: State | None = None
        self._families = dict(settings.families)
        self._puzzle_tokens = min(MAX_TOKENS, max_tokens or settings.max_tokens)
        self._talk_tokens = min(MAX_TOKENS, max_tokens or _roomy(folder, settings.max_tokens))
        self._turns: dict[Side, Turns] = {"before": [], "after": []}
        self._puzzles: dict[int, Puzzle] = {}
        self._verdicts = Verdicts()
        self._refresh()

    def opened(self) -> messages.Opened:
        return messages.Opened(
            number=0, model=self._name, engine=self._engine.info, learned=self._round, levels=self._levels()
        )

    def close(self) -> None:
        self._verdicts.close()

    def do(self, request: messages.Request) -> Iterator[messages.Reply]:
        """The replies to a request, each as soon as it is known."""
        number = request.number
        try:
            match request:
                case messages.Ask():
                    yield from self._ask(number, request.text)
                case messages.Draw():
                    yield self._draw(number, request.family, request.level)
                case messages.Solve():
                    yield from self._solve(number, self._puzzle(request.puzzle))
                case messages.Judge():
                    puzzle = self._puzzle(request.puzzle)
                    answer = request.answer.strip()
                    yield messages.Judged(number=number, solved=self._verdicts.solved(puzzle, answer))
                    yield messages.Solution(number=number, text=safe(puzzle.solution))
                case messages.Forget():
                    self._turns = {"before": [], "after": []}
            for note in self._notes():
                yield messages.Noted(number=number, sentence=note)
        except (EngineError, QuestionError, SandboxError, ChatError) as error:
            yield messages.Failed(number=number, sentence=str(error))
        else:
            yield messages.Done(number=number)

    @property
    def _round(self) -> int | None:
        return None if self._state is None else self._state.round

    def _levels(self) -> dict[str, int]:
        """The families that are practised, each at the level reached."""
        return dict(self._state.curriculum.levels) if self._state is not None else self._families

    def _refresh(self) -> None:
        self._state = self._learned.refresh(self._engine, self._state)

    def _ask(self, number: int, text: str) -> Iterator[messages.Reply]:
        text = text.strip()
        if not text or len(text) > MAX_TEXT:
            raise ChatError(f"A question has 1 to {MAX_TEXT} characters: ask another one.")
        self._refresh()
        seed = secrets.randbits(48)
        for side in ("before", "after"):
            turns, asked = self._turns[side], {"role": "user", "content": text}
            try:
                said = self._answer(number, side, [*turns, asked], self._talk_tokens, seed)
            except EngineError:
                if not turns:
                    raise
                turns.clear()
                said = self._answer(number, side, [asked], self._talk_tokens, seed)
                sentence = "The conversation grew longer than this model reads: it begins anew."
                yield messages.Noted(number=number, sentence=sentence)
            turns += [asked, {"role": "assistant", "content": said.text}]
            del turns[: -2 * _TURNS]
            yield _said(number, side, said, self._round)

    def _solve(self, number: int, puzzle: Puzzle) -> Iterator[messages.Reply]:
        """Asked as in practice, so that the answer is what practice made of it."""
        self._refresh()
        seed = secrets.randbits(48)
        way = self._state.way if self._state is not None else asking.TAGGED
        for side in ("before", "after"):
            said = self._answer(number, side, asking.messages(puzzle.text, way), self._puzzle_tokens, seed)
            right = self._verdicts.solved(puzzle, asking.extract_answer(said.text))
            solved = binary_rewards([float(right)], [said.finished])[0] == 1
            yield _said(number, side, said, self._round, solved)
        yield messages.Solution(number=number, text=safe(puzzle.solution))

    def _answer(self, number: int, side: Side, prompt: Turns, max_tokens: int, seed: int) -> _Answer:
        started = time.monotonic()
        plain = side == "before"
        completion = self._engine.sample([prompt], 1, max_tokens, seed, plain=plain)[0][0]
        return _Answer(completion, time.monotonic() - started)

    def _draw(self, number: int, family: str | None, level: int | None) -> messages.Drawn:
        puzzle = draw(family, level, self._levels())
        while len(self._puzzles) >= _PUZZLES:
            del self._puzzles[min(self._puzzles)]
        self._puzzles[number] = puzzle
        return messages.Drawn(
            number=number,
            puzzle=number,
            family=puzzle.family,
            title=puzzle.title,
            level=puzzle.level,
            levels=puzzle.levels,
            text=safe(puzzle.text),
            unseen=puzzle.unseen,
        )

    def _puzzle(self, name: int) -> Puzzle:
        try:
            return self._puzzles[name]
        except KeyError:
            raise ChatError("That puzzle is not known any more: draw another one.") from None

    def _notes(self) -> list[str]:
        """What the engine wants its owner to know; engines without `notes` have nothing to say."""
        notes: list[str] = getattr(self._engine, "notes", [])
        fresh = list(dict.fromkeys(notes))
        notes.clear()
        return fresh


class _Answer:
    def __init__(self, completion: Completion, seconds: float) -> None:
        self.text, self.finished = completion.text, completion.finished
        self.tokens, self.seconds = len(completion.tokens_T), seconds


def _said(
    number: int, side: Side, answer: _Answer, learned: int | None, solved: bool | None = None
) -> messages.Said:
    return messages.Said(
        number=number,
        side=side,
        text=safe(answer.text),
        finished=answer.finished,
        tokens=answer.tokens,
        seconds=round(answer.seconds, 3),
        solved=solved,
        learned=learned if side == "after" else None,
    )


def _roomy(folder: Path, usual: int) -> int:
    """Tokens for an answer in a conversation: more than in practice, at most half of what the model reads."""
    try:
        reads = json.loads((folder / "config.json").read_bytes()).get("max_position_embeddings")
    except (OSError, ValueError, AttributeError):
        reads = None
    return max(usual, min(_TALK_TOKENS, reads // 2)) if isinstance(reads, int) else usual
