"""A conversation with a model before and after training: both get the same questions, and each keeps its own
answers as history."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from app.chat import messages
from app.chat.learned import Checkpoints
from app.chat.messages import MAX_TEXT, MAX_TOKENS, Side, expand_sides
from app.chat.puzzles import AnswerScorer, Puzzle, draw, looks_like_puzzle
from app.chat.skills import OpenEngine, ask_skill, load_skill
from app.common.files import unwritable_sentence
from app.common.text import safe_text
from app.models.shelf import locate
from app.node.models.skills import find_skill
from app.node.record.errors import NodeError
from app.node.record.state import NodeState
from app.node.swarm.answers import AnswerError, OwnerAnswer, put
from app.sapo import asking
from app.sapo.asking import SHORT_MARK
from app.sapo.groups import binary_rewards
from app.sapo.questions import QuestionError
from app.sapo.scoring.sandbox import SandboxError
from engines.contract import GREEDY_TEMPERATURE, Engine, EngineError, TooLongError
from engines.models.folder import read_settings

TALK_TEMPERATURE = 0.8
"""Sampling temperature in a conversation: at 1 a model of 135 M parameters picks odd words, and at 0.6 it
repeats itself. Puzzles get the likeliest answer, which is right more often than one that is drawn (LOG.md)."""
_TALK_TOKENS = 256
_TURNS = 8
"""Maximum number of past questions and answers kept as context."""
_PUZZLES = 64
Tell = Callable[[Side, str], bool]
"""Called with a side's answer so far, safe to show; returns whether to continue."""
Turns = list[dict[str, str]]


class ChatError(Exception):
    """The request cannot be carried out; one sentence says why and what to do."""


class Chat:
    """A model opened for chatting, with one conversation and its puzzles. Not thread-safe. Raises EngineError
    if the model or its adapter cannot be opened."""

    def __init__(self, model: str, home: Path, open_engine: OpenEngine, max_tokens: int | None = None) -> None:
        folder = locate(model, home)
        settings = read_settings(folder)
        self._name = folder.name if Path(model).expanduser().is_dir() else model
        self._home, self._folder, self._learned = home, folder, Checkpoints(home, folder)
        self._engine = open_engine(folder, self._learned.rank())
        self._state: NodeState | None = None
        self._asked_skill = False
        self._families = dict(settings.families)
        self._limit, self._usual = max_tokens, settings.max_tokens
        self._talk_tokens = min(MAX_TOKENS, max_tokens or _roomy(folder, settings.max_tokens))
        self._turns: dict[Side, Turns] = {"before": [], "after": []}
        self._puzzles: dict[int, Puzzle] = {}
        self._offered: dict[int, str] = {}
        """Puzzle id to the text that may be trained on if the user agrees."""
        self._verdicts = AnswerScorer()
        self._refresh()

    def opened(self) -> messages.ModelOpened:
        return messages.ModelOpened(
            number=0, model=self._name, engine=self._engine.info, learned=self._round, levels=self._levels()
        )

    def close(self) -> None:
        self._verdicts.close()

    def handle(self, request: messages.Request, tell: Tell) -> Iterator[messages.Reply]:
        """Carries out a request and yields its replies, each as soon as it is known."""
        number = request.number
        try:
            match request:
                case messages.Ask():
                    yield from self._ask(request, tell)
                case messages.AskSkill():
                    yield self._ask_skill(request)
                case messages.Draw():
                    yield self._draw(request)
                case messages.Solve():
                    yield from self._solve(request, tell)
                case messages.SubmitAnswer():
                    yield from self._judge(request)
                case messages.Give():
                    self._give(request)
                    yield messages.ExampleGiven(number=number)
                case messages.Forget():
                    self._turns = {"before": [], "after": []}
            for note in self._notes():
                yield messages.ChatNote(number=number, sentence=note)
        except (EngineError, QuestionError, SandboxError, ChatError, AnswerError, NodeError) as error:
            yield messages.ChatFailed(number=number, sentence=str(error))
        except OSError as error:
            yield messages.ChatFailed(number=number, sentence=unwritable_sentence(error, self._home))
        else:
            yield messages.ChatDone(number=number)

    @property
    def _only_base(self) -> bool:
        """Whether both sides are the base, because a skill's adapter is loaded and puzzles have none."""
        return self._state is None and self._asked_skill

    @property
    def _round(self) -> int | None:
        return None if self._state is None else self._state.round

    def _levels(self) -> dict[str, int]:
        """Returns the families that are practised, each with the level reached."""
        return dict(self._state.curriculum.levels) if self._state is not None else self._families

    def _refresh(self) -> None:
        self._state = self._learned.refresh(self._engine, self._state)

    def _ask(self, request: messages.Ask, tell: Tell) -> Iterator[messages.Reply]:
        text, talks = request.text.strip(), self._engine.info.talks
        if not text or len(text) > MAX_TEXT:
            raise ChatError(f"A question has 1 to {MAX_TEXT} characters: ask another one.")
        if not talks and not looks_like_puzzle(text, self._levels()):
            yield messages.OnlyPuzzles(number=request.number)
            return
        self._refresh()
        asked, seed = {"role": "user", "content": text}, secrets.randbits(48)
        # Before anything was learned both sides are the same model, which then answers once.
        alike = self._state is None and self._turns["before"] == self._turns["after"]
        answer: _Answer | None = None
        for side in expand_sides(request.sides):
            if answer is None or not alike:
                answer = self._go_on(side, asked, seed, tell)
            self._turns[side] += [asked, {"role": "assistant", "content": answer.text}]
            del self._turns[side][: -2 * _TURNS]
            yield answer.said(request.number, side, self._round)
            if answer.stopped:
                break
        if answer is not None and answer.forgot:
            sentence = "The conversation is longer than this model can read: it forgot the beginning."
            yield messages.ChatNote(number=request.number, sentence=sentence)

    def _ask_skill(self, request: messages.AskSkill) -> messages.SkillSaid:
        """Answers as the skill does; the puzzles' checkpoint is loaded again when they are asked."""
        known = find_skill(self._home, request.skill, self._folder)
        self._learned.forget_loaded()
        self._asked_skill = True
        load_skill(self._engine, self._home, known)
        (said,) = ask_skill(self._engine, known, [request.text])
        return messages.SkillSaid(number=request.number, said=said)

    def _go_on(self, side: Side, asked: dict[str, str], seed: int, tell: Tell) -> _Answer:
        """Returns this side's answer in its conversation. Drops the oldest turns until the prompt fits the
        model's context."""
        turns = self._turns[side]
        answer = _Answer(
            self._engine,
            self._talk_tokens,
            seed,
            TALK_TEMPERATURE if self._engine.info.talks else GREEDY_TEMPERATURE,
            self._only_base,
        )
        while True:
            try:
                answer.give(side, [*turns, asked], tell)
                return answer
            except TooLongError:
                if not turns:
                    raise ChatError(
                        "That is longer than this model can read at once: ask something shorter."
                    ) from None
                del turns[:2]
                answer.forgot = True

    def _solve(self, request: messages.Solve, tell: Tell) -> Iterator[messages.Reply]:
        puzzle = self._puzzle(request.puzzle)
        self._refresh()
        # The prompt is that of training, so that the answer shows what was learned.
        way, tokens = self._practice()
        for side in expand_sides(request.sides):
            answer = _Answer(self._engine, tokens, 0, GREEDY_TEMPERATURE, self._only_base)
            answer.give(side, asking.messages(puzzle.text, way), tell)
            if answer.stopped:
                yield answer.said(request.number, side, self._round)
                return
            yield answer.said(request.number, side, self._round, self._solves(puzzle, answer))
        yield messages.Solution(number=request.number, text=safe_text(puzzle.solution))

    def _practice(self) -> tuple[asking.Way, int]:
        """Returns the prompt format used in training, and the maximum tokens of an answer."""
        way = self._state.way if self._state is not None else asking.TAGGED
        return way, min(MAX_TOKENS, self._limit or way.token_limit(self._usual))

    def _solves(self, puzzle: Puzzle, answer: _Answer) -> bool:
        right = self._verdicts.solved(puzzle, asking.extract_answer(answer.text))
        return binary_rewards([float(right)], [answer.finished])[0] == 1

    def _judge(self, request: messages.SubmitAnswer) -> Iterator[messages.Reply]:
        """Scores a person's answer, and offers its text for training if it is correct, has working and the
        puzzle is not held out."""
        puzzle, name = self._puzzle(request.puzzle), request.puzzle
        answer, work = request.answer.strip(), request.work.strip()
        text = f"{work} {SHORT_MARK}{answer}"
        solved = self._verdicts.solved(puzzle, answer)
        teaches = solved and bool(work) and not puzzle.unseen
        if teaches and self._verdicts.solved(puzzle, asking.extract_answer(text)):
            self._offered[name] = text
        yield messages.AnswerJudged(number=request.number, solved=solved, offer=self._offered.get(name, ""))
        yield messages.Solution(number=request.number, text=safe_text(puzzle.solution))

    def _give(self, request: messages.Give) -> None:
        """Stores the offered text for the node and withdraws the offer."""
        puzzle, text = self._puzzle(request.puzzle), self._offered.get(request.puzzle)
        if text is None:
            raise ChatError("There is no answer of yours to give: solve the puzzle with your working first.")
        put(
            self._home,
            OwnerAnswer(
                coordinates=puzzle.question.coordinates,
                text=text,
                at=time.time(),
                teach=request.teach,
                share=request.share,
            ),
        )
        del self._offered[request.puzzle]

    def _draw(self, request: messages.Draw) -> messages.PuzzleDrawn:
        number = request.number
        puzzle = draw(request.family, request.level, self._levels(), unseen=request.sort == "test")
        while len(self._puzzles) >= _PUZZLES:
            del self._puzzles[min(self._puzzles)]
        self._puzzles[number] = puzzle
        return messages.PuzzleDrawn(
            number=number,
            puzzle=number,
            family=puzzle.family,
            title=puzzle.title,
            level=puzzle.level,
            levels=puzzle.levels,
            text=safe_text(puzzle.text),
            unseen=puzzle.unseen,
        )

    def _puzzle(self, name: int) -> Puzzle:
        try:
            return self._puzzles[name]
        except KeyError:
            raise ChatError("That puzzle isn't known any more: draw another one.") from None

    def _notes(self) -> list[str]:
        """Returns and clears the engine's sentences for the user; an engine without `notes` has none."""
        notes: list[str] = getattr(self._engine, "notes", [])
        fresh = list(dict.fromkeys(notes))
        notes.clear()
        return fresh


class _Answer:
    """Samples one side's answer and keeps it with its token count and duration."""

    def __init__(
        self, engine: Engine, max_tokens: int, seed: int, temperature: float, plain: bool = False
    ) -> None:
        """`plain`: no puzzles were learned yet, so both sides are the base."""
        self._plain = plain
        self._engine, self._max_tokens = engine, max_tokens
        self._seed, self._temperature = seed, temperature
        self.text, self.finished, self.stopped = "", False, False
        self.forgot = False
        """Whether the beginning of the conversation was dropped to fit the context."""

    def give(self, side: Side, prompt: Turns, tell: Tell) -> None:
        def heard(text: str) -> bool:
            self.stopped = not tell(side, safe_text(text))
            return not self.stopped

        started, plain = time.monotonic(), side == "before" or self._plain
        ((found,),) = self._engine.sample(
            [prompt], 1, self._max_tokens, self._seed, plain=plain, temperature=self._temperature, heard=heard
        )
        self.text, self.finished = found.text, found.finished
        self._tokens, self._seconds = len(found.tokens_T), time.monotonic() - started

    def said(self, number: int, side: Side, learned: int | None, solved: bool | None = None) -> messages.Said:
        return messages.Said(
            number=number,
            side=side,
            text=safe_text(self.text),
            finished=self.finished,
            stopped=self.stopped,
            tokens=self._tokens,
            seconds=round(self._seconds, 3),
            solved=solved,
            learned=learned if side == "after" else None,
        )


def _roomy(folder: Path, usual: int) -> int:
    """Returns the maximum tokens of an answer in a conversation: more than in training, at most half of the
    model's context."""
    try:
        reads = json.loads((folder / "config.json").read_bytes()).get("max_position_embeddings")
    except (OSError, ValueError, AttributeError):
        reads = None
    return max(usual, min(_TALK_TOKENS, reads // 2)) if isinstance(reads, int) else usual
