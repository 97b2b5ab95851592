"""Generates answers to several requests together: rows of one decoder, each with its own temperature, length
and end.

Requests are answered in order of arrival. Those to the same side (the base, the puzzles or a skill) run
together, as many as the engine has rows for; if the engine lets rows join, a waiting request takes the place of
a finished one. A skill that chooses among labels answers at once, with the likeliest."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from app.serve.messages import BASE_SIDE, Began, Ended, Piece, Prompt, Refused, Reply, Start, Token, TokenChoice
from app.skills.answering import softmax
from engines.contract import Decoder, Engine, EngineError, TokenSequence, TooLongError
from engines.llamacpp.grammar import Grammar
from engines.llamacpp.sampler import TokenSampler
from engines.models.tokens import ChatTokenizer

MAX_ROWS = 16
"""Maximum answers in progress. With more, a processor's tokens per second barely increase."""
USUAL_TOKENS = 1024
"""Maximum tokens of an answer if the request sets none."""
_MIN_TOKENS = 512
_FLUSH_S = 0.02
"""Minimum seconds between two streamed pieces of an answer."""
_BYTES_OF_CHARACTER = 4
_MAX_LOGPROBS = 256
"""Maximum tokens whose log-probabilities go into one message: each may come with 20 alternatives."""
_TOO_LONG = "context_length_exceeded"
_GREEDY = 1e-4
"""Below this temperature the most likely token is taken."""
_LEAST_SHARE = 1e-30


class Sides(Protocol):
    """What can be asked: the base, the puzzles, and skills, by name."""

    def prompt(self, prompt: Prompt, side: str) -> list[int]:
        """Tokenizes a prompt as this side is asked. Raises EngineError, also TooLongError."""
        ...

    def turn_to(self, side: str) -> bool:
        """Loads this side's newest checkpoint and returns whether there is one. Called only while no answer is
        in progress, so that one checkpoint gives all of an answer. Raises EngineError."""
        ...

    def labels(self, side: str) -> Mapping[str, list[int]]:
        """Returns the labels among which this side chooses, with their tokens; empty if it answers freely."""
        ...

    def split(self, side: str) -> Callable[[str], tuple[str, str]] | None:
        """Returns what tells work and answer in a reply apart; None if all of it is the answer."""
        ...

    def max_tokens(self, side: str) -> int | None:
        """Returns the maximum tokens of an answer if the request sets none; None for USUAL_TOKENS."""
        ...


class Answer:
    """One answer in progress: its tokens and text so far, of which the first `_told` characters have been
    sent."""

    def __init__(
        self,
        start: Start,
        index: int,
        prompt_T: list[int],
        most: int,
        tokenizer: ChatTokenizer,
        grammar: Grammar | None = None,
    ) -> None:
        self.start, self.index, self.prompt_T, self.most = start, index, prompt_T, most
        self.told_T: list[int] = []
        """Tokens of the prompt that an answer with `echo` still has to tell."""
        if start.echo:
            self.prompt_T, self.told_T = prompt_T[:1], prompt_T[1:]
            self.most = most + len(self.told_T)
        self.grammar = grammar
        self.random = np.random.default_rng([start.seed, index])
        self.tokens_T: list[int] = []
        self.text, self.reason, self.work = "", "", ""
        self.split: Callable[[str], tuple[str, str]] | None = None
        """Returns work and answer of a whole reply, if only the answer is to be told."""
        self._tokenizer, self._told, self._told_at = tokenizer, 0, 0.0
        self._read, self._kept = 0, 0
        self._logprobs: list[TokenChoice] = []
        if start.echo:
            (self.text,) = tokenizer.texts([self.prompt_T])
            if start.logprobs is not None:
                self._logprobs.append(TokenChoice((self.text, None)))

    @property
    def wanted(self) -> int | None:
        """The next token, if it is one of the prompt."""
        at = len(self.tokens_T)
        return self.told_T[at] if at < len(self.told_T) else None

    def add(self, token: int, logprobs: TokenChoice | None) -> None:
        """Appends a token; sets `reason` ("stop" or "length") if it was the last. A prompt of one token that is
        only told back ends without one."""
        if not self.most:
            self.reason = "length"
            return
        echoed = self.wanted is not None
        self.tokens_T.append(token)
        if token in self._tokenizer.stops and not echoed:
            self.reason = "stop"
        elif logprobs is not None:
            self._logprobs.append(logprobs)
        if not self.reason and len(self.tokens_T) >= self.most:
            self.reason = "length"
        self._grow(last=bool(self.reason))
        if not echoed:
            self._look_for_stop()
        if self.reason and self.split is not None:
            self.work, self.text = self.split(self.text)

    def _grow(self, last: bool) -> None:
        """Decodes the newest tokens into `text`; an incomplete UTF-8 character is held back."""
        before, after = self._tokenizer.texts(
            [self.tokens_T[self._kept : self._read], self.tokens_T[self._kept :]]
        )
        waiting = len(self.tokens_T) - self._read
        if after.endswith("\ufffd") and not last and waiting < _BYTES_OF_CHARACTER:
            return
        self.text += after[len(before) :]
        self._kept, self._read = self._read, len(self.tokens_T)

    def _look_for_stop(self) -> None:
        """Cuts the text at the first stop sequence and ends the answer there."""
        longest = max(map(len, self.start.stop), default=0)
        since = max(0, self._told - longest)
        found = [at for stop in self.start.stop if (at := self.text.find(stop, since)) >= 0]
        if found:
            self.text, self.reason = self.text[: min(found)], "stop"

    def due_messages(self, now: float) -> Iterator[Reply]:
        """Yields the message that is due now, if any: Ended, or a Piece when streaming."""
        number, index = self.start.number, self.index
        if self.reason:
            text, self._told = self.text[self._told :], len(self.text)
            yield Ended(
                number=number,
                index=index,
                text=text,
                reason=self.reason,
                tokens=len(self.tokens_T) - len(self.told_T),
                logprobs=self._logprobs,
                work=self.work,
            )
        elif self.split is not None:
            return
        elif (self.start.stream and now - self._told_at >= _FLUSH_S) or len(self._logprobs) >= _MAX_LOGPROBS:
            end = len(self.text) - _begun(self.text, self.start.stop)
            if end > self._told or len(self._logprobs) >= _MAX_LOGPROBS:
                text, self._told, self._told_at = self.text[self._told : end], end, now
                logprobs, self._logprobs = self._logprobs, []
                yield Piece(number=number, index=index, text=text, logprobs=logprobs)


def _begun(text: str, stops: Sequence[str]) -> int:
    """Returns how many characters at the end of a text may be the beginning of a stop sequence.

    >>> _begun("to be or EN", ["END", "!"]), _begun("to be", ["END"])
    (2, 0)
    """
    longest = max(map(len, stops), default=1) - 1
    return next(
        (n for n in range(min(longest, len(text)), 0, -1) if any(one.startswith(text[-n:]) for one in stops)), 0
    )


class Batch:
    """Generates answers to several requests together on one engine. `context`: context length in tokens.
    `grammar`: compiles GBNF text into a grammar in its initial state."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: ChatTokenizer,
        context: int,
        sides: Sides,
        grammar: Callable[[str], Grammar],
    ) -> None:
        self._engine, self._tokenizer, self._context = engine, tokenizer, context
        self._sides, self._grammar = sides, grammar
        self._waiting: deque[Answer] = deque()
        self._going: list[Answer] = []
        self._decoder: Decoder | None = None
        self._side, self._room, self._drawer = BASE_SIDE, 0, TokenSampler(1)

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._going)

    def add(self, start: Start) -> Reply:
        """Queues a request. Returns Began, or Refused if a prompt is empty, too long or invalid."""
        try:
            prompts_P = [self._sides.prompt(prompt, start.side) for prompt in start.prompts]
            grammars = [
                self._grammar(start.grammar) if start.grammar else None for _ in range(len(prompts_P) * start.n)
            ]
        except EngineError as error:
            code = _TOO_LONG if isinstance(error, TooLongError) else None
            return Refused(number=start.number, sentence=str(error), code=code)
        longest = max(map(len, prompts_P))
        if longest >= self._context or not all(prompts_P):
            sentence = "The prompt is empty."
            if longest >= self._context:
                sentence = (
                    f"The prompt has {longest} tokens, and this model reads {self._context} with its answer."
                )
            return Refused(number=start.number, sentence=sentence, code=_TOO_LONG)
        for index, grammar in enumerate(grammars):
            prompt_T = prompts_P[index // start.n]
            usual = self._sides.max_tokens(start.side) or USUAL_TOKENS
            most = min(usual if start.max_tokens is None else start.max_tokens, self._context - len(prompt_T))
            answer = Answer(start, index, prompt_T, most, self._tokenizer, grammar)
            answer.split = self._sides.split(start.side)
            self._waiting.append(answer)
        return Began(number=start.number, tokens=sum(map(len, prompts_P)))

    def drop(self, number: int) -> None:
        """Stops all answers to a request."""
        self._waiting = deque(one for one in self._waiting if one.start.number != number)
        for one in self._going:
            if one.start.number == number:
                one.reason = "dropped"
        self._leave()

    def step(self) -> list[Reply]:
        """Generates one token for each answer in progress and starts waiting ones. Returns the messages to
        send."""
        try:
            told = self._advance() if self._going else self._choose()
            while (joining := self._joining()) and self._decoder is not None:
                logits_RV = self._decoder.read(
                    [one.prompt_T for one in joining], max(one.most for one in joining)
                )
                self._going += joining
                told += self._draw(joining, logits_RV)
            return told
        except EngineError as error:
            return self._fail(str(error))

    def _choose(self) -> list[Reply]:
        """Answers the first waiting requests, as far as they choose among labels, and returns the messages."""
        told: list[Reply] = []
        while self._waiting and (labels := self._sides.labels(self._waiting[0].start.side)):
            if self._waiting[0].grammar is not None:
                break
            self._decoder = None
            self._sides.turn_to(self._waiting[0].start.side)
            told.append(self._chosen(self._waiting.popleft(), labels))
        return told

    def _chosen(self, one: Answer, labels: Mapping[str, list[int]]) -> Ended:
        """Returns the answer of a choice: the likeliest label, or one drawn at the request's temperature. The
        label counts as one token, with its share of the labels' probability."""
        sequences = [TokenSequence(prompt_T=one.prompt_T, completion_T=ids) for ids in labels.values()]
        weights_L = np.array([sum(logprobs) for logprobs in self._engine.logprobs(sequences)])
        shares = dict(zip(labels, softmax(weights_L.tolist()), strict=True))
        if (heat := one.start.temperature) < _GREEDY:
            said = max(shares, key=shares.__getitem__)
        else:
            said = list(labels)[one.random.choice(len(labels), p=softmax((weights_L / heat).tolist()))]
        logprobs: list[TokenChoice] = []
        if one.start.logprobs is not None:
            ranked = sorted(shares, key=lambda label: -shares[label])[: one.start.logprobs]
            pairs: list[Token] = [(label, _log(shares[label])) for label in (said, *ranked)]
            logprobs = [TokenChoice(pairs[0], pairs[1:])]
        tokens = len(labels[said])
        return Ended(
            number=one.start.number, index=one.index, text=said, reason="stop", tokens=tokens, logprobs=logprobs
        )

    def _fail(self, sentence: str) -> list[Reply]:
        """Refuses every request, in progress or waiting, with this sentence."""
        numbers = {one.start.number for one in [*self._going, *self._waiting]}
        self._going, self._decoder = [], None
        self._waiting.clear()
        return [Refused(number=number, sentence=sentence, fault=True) for number in sorted(numbers)]

    def _advance(self) -> list[Reply]:
        assert self._decoder is not None
        logits_RV = self._decoder.advance([one.tokens_T[-1] for one in self._going])
        return self._draw(self._going, logits_RV)

    def _joining(self) -> list[Answer]:
        """Returns the requests that start now, in order of arrival."""
        if not self._waiting:
            return []
        if not self._going:
            self._open()
        elif self._decoder is None or not self._decoder.joins:
            return []
        assert self._decoder is not None
        found: list[Answer] = []
        while (
            self._waiting
            and len(self._going) + len(found) < self._decoder.rows
            and self._fits(self._waiting[0])
        ):
            found.append(self._waiting.popleft())
        return found

    def _fits(self, one: Answer) -> bool:
        alike = one.start.side == self._side and (one.grammar is not None or not self._sides.labels(self._side))
        return alike and len(one.prompt_T) + one.most <= self._room

    def _open(self) -> None:
        """Opens a decoder for the first waiting request, with room for those behind it."""
        self._side = self._waiting[0].start.side
        learned = self._sides.turn_to(self._side)
        alike = [one for one in self._waiting if one.start.side == self._side]
        needed = max(len(one.prompt_T) + one.most for one in alike[:MAX_ROWS])
        self._room = min(self._context, max(_MIN_TOKENS, 1 << (needed - 1).bit_length()))
        self._decoder = self._engine.decoder(MAX_ROWS, self._room, plain=not learned)

    def _draw(self, rows: list[Answer], logits_RV: NDArray[Any]) -> list[Reply]:
        """Samples a token for each of these rows, which are the last ones in progress, and returns the messages
        to send."""
        if self._drawer.vocabulary != logits_RV.shape[1]:
            self._drawer = TokenSampler(logits_RV.shape[1])
        heat_R = np.array([one.start.temperature for one in rows], np.float32)
        token_R = logits_RV.argmax(1)
        warm_W = np.flatnonzero(heat_R >= _GREEDY)
        if len(warm_W):
            drawn_WV: NDArray[Any] = logits_RV[warm_W] / heat_R[warm_W, None]
            for place, row in enumerate(warm_W.tolist()):
                if rows[row].start.top_p < 1:
                    drawn_WV[place] = nucleus(drawn_WV[place], rows[row].start.top_p)
            uniforms_W = np.array([rows[row].random.random() for row in warm_W])
            token_R[warm_W], _ = self._drawer.draw(drawn_WV, uniforms_W)
        for row, one in enumerate(rows):
            if one.wanted is not None:
                token_R[row] = one.wanted
            elif one.grammar is not None:
                token_R[row] = self._follow(one, one.grammar, int(token_R[row]), logits_RV[row])
        told: list[Reply] = []
        now = time.monotonic()
        for one, token, logits_V in zip(rows, token_R.tolist(), logits_RV, strict=True):
            one.add(
                token, None if one.start.logprobs is None else self._choice(token, logits_V, one.start.logprobs)
            )
            told += one.due_messages(now)
        self._leave()
        return told

    def _follow(self, one: Answer, grammar: Grammar, token: int, logits_V: NDArray[Any]) -> int:
        """Returns `token` if the grammar allows it, else samples among the tokens it allows. The distribution
        is the same as if the forbidden tokens had been masked first, and checking one token costs a thousandth
        of masking all."""
        if not grammar.allows(token):
            allowed_V = grammar.allowed(logits_V)
            token = int(allowed_V.argmax())
            if not np.isfinite(allowed_V[token]):
                return self._tokenizer.end
            if one.start.temperature >= _GREEDY:
                allowed_V = nucleus(allowed_V / np.float32(one.start.temperature), one.start.top_p)
                drawn, _ = self._drawer.draw(allowed_V[None], np.array([one.random.random()]))
                token = int(drawn[0])
        if token not in self._tokenizer.stops:
            grammar.accept(token)
        return token

    def _choice(self, token: int, logits_V: NDArray[Any], top: int) -> TokenChoice:
        """Returns the token with its log-probability and the `top` most likely alternatives."""
        logits = logits_V.astype(np.float64)
        logp_V = logits - logits.max()
        logp_V -= np.log(np.exp(logp_V).sum())
        best = np.argsort(-logp_V, kind="stable")[:top].tolist()
        ids = [token, *best]
        texts = self._tokenizer.texts([[id] for id in ids])
        pairs: list[Token] = [
            (text or str(self._tokenizer.library.id_to_token(id)), float(logp_V[id]))
            for text, id in zip(texts, ids, strict=True)
        ]
        return TokenChoice(pairs[0], pairs[1:])

    def _leave(self) -> None:
        """Removes ended answers; the last rows fill the gaps."""
        staying = [row for row, one in enumerate(self._going) if not one.reason]
        if len(staying) == len(self._going):
            return
        behind, there = [row for row in staying if row >= len(staying)], set(staying)
        order = [row if row in there else behind.pop() for row in range(len(staying))]
        if order and self._decoder is not None:
            self._decoder.keep(order)
        self._going = [self._going[row] for row in order]


def _log(share: float) -> float:
    return math.log(max(share, _LEAST_SHARE))


def nucleus(logits_V: NDArray[Any], share: float) -> NDArray[Any]:
    """Returns the logits of the smallest set of tokens that holds at least the probability `share`, and -inf
    for all others (Holtzman et al. 2020, "The curious case of neural text degeneration").

    >>> nucleus(np.log(np.array([0.2, 0.5, 0.3])), 0.6).round(2).tolist()
    [-inf, -0.69, -1.2]
    """
    order = np.argsort(-logits_V, kind="stable")
    weights = np.exp(logits_V[order].astype(np.float64) - logits_V[order[0]])
    before = weights.cumsum() - weights
    found = np.full_like(logits_V, -np.inf)
    kept = order[before < share * weights.sum()]
    found[kept] = logits_V[kept]
    return found
