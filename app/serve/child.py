"""The process that holds the model: requests on standard input, replies on standard output, one JSON message
per line. It ends when its input closes, so it never outlives the server."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NoReturn

from app.chat.learned import Checkpoints
from app.models.shelf import locate
from app.node.record.state import NodeState
from app.node.trainer.messages import own_standard_streams, send
from app.sapo import asking
from app.serve import messages
from app.serve.batch import Batch
from engines.contract import Engine, EngineError, TooLongError
from engines.llamacpp.grammar import Grammar, Grammars
from engines.models.folder import open_folder, read_architecture
from engines.models.tokens import ChatTokenizer

_READS = 2048
"""Context length in tokens assumed for a model of unknown architecture."""
_LOOKS_S = 1.0
"""Minimum seconds between two checks for a newer checkpoint."""
OpenEngine = Callable[[Path, int | None], Engine]
"""Opens an engine, given the model folder and the LoRA rank (None: the engine's default)."""


class ServedModel:
    """A model opened for serving, base and trained. Raises EngineError if it cannot be opened."""

    def __init__(self, model: str, home: Path, open_engine: OpenEngine) -> None:
        folder = locate(model, home)
        opened = open_folder(folder)
        shape = read_architecture(opened.config)
        self.context = shape.context if shape is not None else _READS
        self._learned = Checkpoints(home, folder)
        self._tokenizer = ChatTokenizer(opened)
        self._most_text = self.context * max(map(len, self._tokenizer.library.get_vocab()))
        self.engine = open_engine(folder, self._learned.rank())
        self._state: NodeState | None = None
        self._looked_at = -_LOOKS_S
        self.refresh()
        self._folder = folder
        self._grammars: Grammars | None = None
        self.batch = Batch(self.engine, self._tokenizer, self.context, self.refresh, self.prompt, self.grammar)

    @property
    def round(self) -> int | None:
        """The round of the newest checkpoint, None before the first."""
        return None if self._state is None else self._state.round

    def refresh(self) -> None:
        """Loads a newer checkpoint if there is one, checking at most once every _LOOKS_S seconds."""
        now = time.monotonic()
        if now - self._looked_at > _LOOKS_S:
            self._looked_at = now
            self._state = self._learned.refresh(self.engine, self._state)

    def grammar(self, text: str) -> Grammar:
        """Compiles GBNF text into a grammar in its initial state. Raises EngineError."""
        if self._grammars is None:
            self._grammars = Grammars(self._folder)
        return self._grammars.begin(text)

    def prompt(self, prompt: messages.Prompt, plain: bool) -> list[int]:
        """Tokenizes a prompt. What is asked of the base model (`plain`) gets nothing added. What was learned is
        asked as it was trained: a conversation without a system message gets the one used in training, as in an
        export for Ollama. Raises EngineError, also TooLongError."""
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
        if not plain and turns[0]["role"] != "system":
            way = self._state.way if self._state is not None else asking.TAGGED
            turns = [{"role": "system", "content": way.system}, *turns]
        return self._tokenizer.prompt(turns)


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
