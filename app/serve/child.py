"""The process that holds the model: requests on standard input, replies on standard output, one JSON message
per line. It ends when its input closes, so it never outlives the server."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

from app.chat.learned import Checkpoints
from app.chat.skills import OpenEngine
from app.models.shelf import locate
from app.node.models.skills import PUZZLES, KnownSkill, known_skills
from app.node.record.state import NodeState
from app.node.trainer.messages import own_standard_streams, send
from app.sapo import asking
from app.serve import messages
from app.serve.batch import Batch
from app.skills.skill import Skill
from engines.contract import EngineError, TooLongError
from engines.llamacpp.grammar import Grammar, Grammars
from engines.models.folder import open_folder, read_architecture
from engines.models.tokens import ChatTokenizer

_READS = 2048
"""Context length in tokens assumed for a model of unknown architecture."""
_LOOKS_S = 1.0
"""Minimum seconds between two checks for a newer checkpoint."""


class ServedModel:
    """A model opened for serving: the base, and everything that was learned with it. Raises EngineError if it
    cannot be opened."""

    def __init__(self, model: str, home: Path, open_engine: OpenEngine) -> None:
        folder = locate(model, home)
        opened = open_folder(folder)
        shape = read_architecture(opened.config)
        self.context = shape.context if shape is not None else _READS
        self._home, self._folder = home, folder
        self._tokenizer = ChatTokenizer(opened)
        self._most_text = self.context * max(map(len, self._tokenizer.library.get_vocab()))
        self._sides = {PUZZLES: _Side(Checkpoints(home, folder), None)}
        self._loaded: str | None = None
        points = [self._sides[PUZZLES].points, *(self._side(one.slug).points for one in self._known())]
        self.engine = open_engine(folder, next(filter(None, (one.rank() for one in points)), None))
        self._grammars: Grammars | None = None
        self.turn_to(PUZZLES)
        self.batch = Batch(self.engine, self._tokenizer, self.context, self, self.grammar)

    @property
    def round(self) -> int | None:
        """The round of the newest checkpoint of the puzzles, None before the first."""
        state = self._sides[PUZZLES].state
        return None if state is None else state.round

    def _known(self) -> list[KnownSkill]:
        return known_skills(self._home, self._folder)

    def _side(self, name: str) -> _Side:
        """Returns what is known of a side. Raises EngineError for one that was deleted meanwhile."""
        if name not in self._sides:
            known = next((one for one in self._known() if one.slug == name), None)
            if known is None:
                raise EngineError(f"There is no {name!r} any more.")
            self._sides[name] = _Side(Checkpoints(self._home, self._folder, known.made.mark), known.skill)
        return self._sides[name]

    def turn_to(self, side: str) -> bool:
        """Loads the side's newest checkpoint, looking for one at most once every _LOOKS_S seconds, and returns
        whether there is one: before anything was learned, the base answers."""
        if side == messages.BASE:
            return False
        found, now = self._side(side), time.monotonic()
        if self._loaded != side:
            found.points.forget_loaded()
        elif now - found.looked_at < _LOOKS_S:
            return found.state is not None
        self._loaded, found.looked_at = side, now
        found.state = found.points.refresh(self.engine, found.state)
        if found.state is None and found.skill is not None:
            raise EngineError(f"What {side!r} has learned was deleted.")
        return found.state is not None

    def labels(self, side: str) -> Mapping[str, list[int]]:
        if side == messages.BASE:
            return {}
        found = self._side(side)
        if found.labels is None:
            asked = [{"role": "user", "content": ""}]
            labels = found.skill.labels if found.skill is not None else ()
            found.labels = {label: self.engine.encode(asked, label, True).completion_T for label in labels}
        return found.labels

    def split(self, side: str) -> Callable[[str], tuple[str, str]] | None:
        if side == messages.BASE:
            return None
        skill = self._side(side).skill
        return asking.work_and_answer if skill is None or skill.marked else None

    def max_tokens(self, side: str) -> int | None:
        if side == messages.BASE:
            return None
        found = self._side(side)
        return found.skill.max_tokens if found.skill is not None else None

    def grammar(self, text: str) -> Grammar:
        """Compiles GBNF text into a grammar in its initial state. Raises EngineError."""
        if self._grammars is None:
            self._grammars = Grammars(self._folder)
        return self._grammars.begin(text)

    def prompt(self, prompt: messages.Prompt, side: str) -> list[int]:
        """Tokenizes a prompt. What is asked of the base model gets nothing added. What was learned is asked as
        it was trained: with its instruction, unless the conversation has a system message, and a skill with the
        user's last message alone. Raises EngineError, also TooLongError."""
        texts = (
            [prompt] if isinstance(prompt, str) else [one["content"] for one in prompt if isinstance(one, dict)]
        )
        if sum(map(len, texts)) > self._most_text:  # tokenizing a megabyte would delay every waiting request
            raise TooLongError(f"The prompt is longer than the {self.context} tokens that this model reads.")
        if isinstance(prompt, str):
            ids: list[int] = self._tokenizer.library.encode(prompt).ids
            return ids
        turns = [one for one in prompt if isinstance(one, dict)]
        if not turns:
            ids, known = (
                [one for one in prompt if isinstance(one, int)],
                self._tokenizer.library.get_vocab_size(),
            )
            if not all(0 <= id < known for id in ids):
                raise EngineError(f"The prompt has token ids that this model doesn't know: it has {known}.")
            return ids
        return self._tokenizer.prompt(self._asked(turns, side))

    def _asked(self, turns: list[dict[str, str]], side: str) -> asking.Messages:
        if side == messages.BASE:
            return turns
        found, theirs = self._side(side), turns[0]["role"] == "system"
        if found.skill is not None:
            asked = [one["content"] for one in turns if one["role"] == "user"]
            made = found.skill.prompt(asked[-1])
            return [turns[0], *made[1:]] if theirs else made
        way = found.state.way if found.state is not None else asking.TAGGED
        return turns if theirs else [{"role": "system", "content": way.system}, *turns]


@dataclass
class _Side:
    """What was learned under one name: its checkpoints, the skill (None for the puzzles), and the state loaded
    last."""

    points: Checkpoints
    skill: Skill | None
    state: NodeState | None = None
    looked_at: float = -_LOOKS_S
    labels: Mapping[str, list[int]] | None = None


def serve(open_model: Callable[[], ServedModel]) -> NoReturn:
    """Answers requests until the input closes, then ends the process, with exit code 1 if the model cannot be
    opened or fails."""
    source, channel = own_standard_streams()

    def tell(*replies: messages.Reply) -> None:
        if replies:
            send(channel, b"".join(map(messages.to_line, replies)))

    requests: queue.SimpleQueue[messages.Request] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(source, requests), daemon=True).start()
    try:
        model = open_model()
        tell(
            messages.ModelReady(
                number=0, context=model.context, engine=model.engine.info.name, learned=model.round
            )
        )
        while True:
            _work(model.batch, requests, tell)
    except BrokenPipeError:
        code = 0
    except Exception as error:
        code = 1
        sentence = str(error)
        if not isinstance(error, EngineError):
            traceback.print_exc()
            said = " ".join(str(error).split())[:200]
            sentence = f"This is a fault in Shoal ({type(error).__name__}: {said})."
        tell(messages.Refused(number=0, sentence=sentence, final=True))
    sys.stderr.flush()
    os._exit(code)  # not sys.exit, which would stumble over the thread that holds standard input


def _work(batch: Batch, requests: queue.SimpleQueue[messages.Request], tell: Callable[..., None]) -> None:
    """Reads the waiting requests, blocking if nothing is in progress, and generates the next token."""
    while not batch.busy or not requests.empty():
        match request := requests.get():
            case messages.Start():
                tell(batch.add(request))
            case messages.Drop():
                batch.drop(request.number)
    tell(*batch.step())


def _listen(source: BinaryIO, requests: queue.SimpleQueue[messages.Request]) -> None:
    """Reads requests from standard input into `requests`, and ends the process at the end of input."""
    for line in source:
        requests.put(messages.read_request(line))
    os._exit(0)
