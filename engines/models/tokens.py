"""Converts chat messages to token ids and back, with the model folder's own tokenizer and chat template.

A folder with a tokenizer.json needs only the `tokenizers` library and jinja's sandbox; importing transformers
for the same would take more than a second. Templates get the same variables as in transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

import jinja2
from tokenizers import Tokenizer

from engines.contract import Completion, EngineError, Heard, Messages, TokenSequence, TooLongError
from engines.models.folder import Folder, read_json
from engines.models.template import ChatTemplate
from engines.models.tokenizer_check import tokenizer_fault
from engines.sound import call_with_timeout

_OLDER_TOKENIZERS = ("vocab.json", "tokenizer.model", "spiece.model", "vocab.txt", "tiktoken.model")
"""Files of older tokenizers; without any of them, transformers would make up an empty tokenizer instead of
failing."""

TRIAL_S = 20.0
"""Maximum seconds for rendering one short prompt; a slower template would stop every round."""
_LONGEST = 120

_SPECIALS = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")


class ChatTokenizer:
    """Tokenizer and chat template of a model folder. `stops` are the tokens that end a sampled completion,
    `end` the one appended to a finished completion from elsewhere. `template` is the chat template's text, None
    without one. `talks`: the template includes earlier turns, so a conversation is possible. `opening` are the
    tokens that the tokenizer itself puts before a text; prompts of a model without a template begin with
    them."""

    def __init__(self, folder: Folder) -> None:
        settings = _optional(folder, "tokenizer_config.json")
        settings.update(_optional(folder, "special_tokens_map.json"))
        self._name = folder.name
        self._special = {key: _content(settings[key]) for key in _SPECIALS if settings.get(key) is not None}
        self._tokenizer, template = _open_tokenizer(folder)
        template_file = folder.path / "chat_template.jinja"
        if template_file.is_file():
            template = template_file.read_text("utf-8")
        self.template = template or _choose(settings.get("chat_template"))
        try:
            self._template = ChatTemplate(self.template)
        except (jinja2.TemplateError, RecursionError, ValueError, SyntaxError, MemoryError) as error:
            raise EngineError(
                f"The chat template of {folder.name} is damaged ({_line(error)}): download the model again."
            ) from error
        self.opening = [] if self.template else self._opening(settings)
        self.talks = self._try()
        self._controls = {
            id for id, token in self._tokenizer.get_added_tokens_decoder().items() if token.special
        }
        self.stops, self.end = self._find_stops(folder)

    def _find_stops(self, folder: Folder) -> tuple[frozenset[int], int]:
        named = _optional(folder, "generation_config.json").get("eos_token_id")
        if named is None:
            named = folder.config.get("eos_token_id")
        stops = [int(stop) for stop in (named if isinstance(named, list) else [named]) if stop is not None]
        if "eos_token" in self._special:
            token = self._tokenizer.token_to_id(self._special["eos_token"])
            if token is not None:
                return frozenset([*stops, token]), token
        if not stops:
            raise EngineError(
                f"{self._name} names no end token, so its answers would never end: choose another."
            )
        return frozenset(stops), stops[0]

    def _opening(self, settings: dict[str, Any]) -> list[int]:
        """Returns the tokens to begin a prompt with: decided by `add_bos_token` of tokenizer_config.json if
        given, else by the post-processor of tokenizer.json, as in transformers."""
        bos = self._tokenizer.token_to_id(self._special.get("bos_token", ""))
        said = settings.get("add_bos_token")
        if isinstance(said, bool):
            return [bos] if said and bos is not None else []
        encoded = self._tokenizer.encode("a", add_special_tokens=True)
        added = list(takewhile(lambda one: one[1], zip(encoded.ids, encoded.special_tokens_mask, strict=True)))
        return [id for id, _ in added] if len(added) < len(encoded.ids) else []

    def blank_line_tokens(self) -> frozenset[int]:
        """Returns the tokens whose text ends with a blank line; none if the model has a template. The plain
        template puts a blank line after each message, so one also ends an answer: models without a template
        seldom give the end token."""
        if self.template:
            return frozenset()
        ids = range(self._tokenizer.get_vocab_size(with_added_tokens=True))
        texts = self._tokenizer.decode_batch([[id] for id in ids], skip_special_tokens=True)
        return frozenset(id for id, text in zip(ids, texts, strict=True) if text.endswith("\n\n"))

    def _try(self) -> bool:
        """Renders a trial prompt; returns whether the template includes earlier turns. Raises EngineError for a
        template that takes too long, or refuses every prompt."""
        trial = [{"role": "system", "content": "ping"}, {"role": "user", "content": "pong"}]
        try:
            call_with_timeout(TRIAL_S, lambda: self.prompt(trial))
            return call_with_timeout(TRIAL_S, self._shows_what_was_said)
        except TimeoutError as error:
            raise EngineError(
                f"The chat template of {self._name} takes longer than {TRIAL_S:.0f} seconds for one prompt: "
                "choose another model."
            ) from error

    def _shows_what_was_said(self) -> bool:
        said = [("user", "ping"), ("assistant", "pong"), ("user", "pang")]
        try:
            text = self.render([{"role": role, "content": words} for role, words in said], answering=True)
        except jinja2.TemplateError:
            return False
        return all(words in text for _, words in said)

    @property
    def library(self) -> Tokenizer:
        """The tokenizer of the `tokenizers` library."""
        return self._tokenizer

    @property
    def special(self) -> dict[str, str]:
        """Special tokens' texts by role, such as `bos_token`."""
        return dict(self._special)

    def prompt(self, messages: Messages) -> list[int]:
        """Returns the token ids of a prompt up to where the model's answer begins, or continues if the last
        message is the assistant's. Raises EngineError."""
        if messages and messages[-1].get("role") == "assistant":
            return [*self.prompt(messages[:-1]), *self.completion(str(messages[-1]["content"]), False)]
        plain = [{key: str(value) for key, value in message.items()} for message in messages]
        try:
            text = self._render(plain)
        except jinja2.TemplateError as error:
            raise EngineError(
                f"The chat template of {self._name} refuses the prompt ({_line(error)}): choose another model."
            ) from error
        ids: list[int] = [*self.opening, *self._tokenizer.encode(text, add_special_tokens=False).ids]
        if not ids:
            raise EngineError(
                f"The chat template of {self._name} makes nothing of the prompt: choose another model."
            )
        return ids

    def _render(self, messages: list[dict[str, str]]) -> str:
        """Renders the messages as they are, or, if the template refuses that, first with the system messages as
        one at the beginning and turns that alternate, then with the system's text before the user's: some
        templates (Gemma's) know no system role. Raises jinja2.TemplateError."""
        refusal: jinja2.TemplateError | None = None
        for form in (messages, joined_turns(messages, True), joined_turns(messages, False)):
            try:
                return self.render(form, answering=True)
            except jinja2.TemplateError as error:
                refusal = refusal or error
        assert refusal is not None
        raise refusal

    def render(self, messages: list[dict[str, str]], answering: bool) -> str:
        """Renders the chat template; `answering` ends it where the model's answer begins. Raises
        jinja2.TemplateError."""
        try:
            return self._template.render(
                messages=messages, tools=None, documents=None, add_generation_prompt=answering, **self._special
            )
        except jinja2.TemplateError:
            raise
        except Exception as error:  # a template is a foreign program
            raise jinja2.TemplateError(f"{type(error).__name__}: {str(error)[:_LONGEST]}") from error

    def completion(self, text: str, finished: bool) -> list[int]:
        """Tokenizes a text that was not sampled here. Text that spells a control token stays text, or is left
        out by tokenizers that know it as a word."""
        self._tokenizer.encode_special_tokens = True
        try:
            ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        finally:
            self._tokenizer.encode_special_tokens = False
        plain = [id for id in ids if id not in self._controls]
        return [*plain, self.end] if finished else plain

    def texts(self, completions: Sequence[list[int]]) -> list[str]:
        """Decodes each completion, without special tokens."""
        texts: list[str] = self._tokenizer.decode_batch(completions, skip_special_tokens=True)
        return texts


def _open_tokenizer(folder: Folder) -> tuple[Tokenizer, str | None]:
    file = folder.path / "tokenizer.json"
    if file.is_file():
        if why := tokenizer_fault(file):
            raise EngineError(
                f"tokenizer.json of {folder.name} can't be used ({why}): download the model again, or choose "
                "another."
            )
        opened = Tokenizer.from_file(str(file))
        opened.no_padding()
        opened.no_truncation()
        return opened, None
    if not any((folder.path / older).is_file() for older in _OLDER_TOKENIZERS):
        raise EngineError(f"{folder.name} has no tokenizer: download the model again.")
    try:  # only here: it converts older formats, and takes a second to import
        from transformers import AutoTokenizer
    except ModuleNotFoundError as error:
        raise EngineError(
            f"The tokenizer of {folder.name} has an older form, which needs the package transformers: choose a "
            "model with a tokenizer.json."
        ) from error
    try:
        loaded: Any = AutoTokenizer.from_pretrained(folder.path, local_files_only=True, trust_remote_code=False)
        return loaded.backend_tokenizer, _choose(loaded.chat_template)
    except (OSError, ValueError, AttributeError, ImportError) as error:
        raise EngineError(
            f"{folder.name} has no tokenizer that can be read: download the model again."
        ) from error


def _optional(folder: Folder, name: str) -> dict[str, Any]:
    return read_json(folder.path / name) if (folder.path / name).is_file() else {}


def _content(token: Any) -> str:
    return str(token["content"]) if isinstance(token, dict) else str(token)


def _choose(template: Any) -> str | None:
    """Returns the template text; of several named ones, the one called "default"."""
    if isinstance(template, list):
        template = {entry["name"]: entry["template"] for entry in template}
    if isinstance(template, dict):
        template = template.get("default")
    return template if isinstance(template, str) else None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:_LONGEST].rstrip(".") or type(error).__name__


def joined_turns(messages: list[dict[str, str]], system: bool) -> list[dict[str, str]]:
    """Returns the same messages with all system messages as one at the beginning, or without `system` before
    the first of the user, and neighbours of one role joined.

    >>> told = [("user", "Hi"), ("system", "Be brief."), ("user", "Who?"), ("system", "Be kind.")]
    >>> turns = [{"role": role, "content": text} for role, text in told]
    >>> [one["content"] for one in joined_turns(turns, True)]
    ['Be brief.\\n\\nBe kind.', 'Hi\\n\\nWho?']
    >>> [one["content"] for one in joined_turns(turns, False)]
    ['Be brief.\\n\\nBe kind.\\n\\nHi\\n\\nWho?']
    """
    ranked = sorted(messages, key=lambda one: one.get("role") != "system")
    joined: list[dict[str, str]] = []
    for one in ranked:
        role = "user" if one.get("role") == "system" and not system else one.get("role", "")
        if joined and joined[-1]["role"] == role:
            joined[-1]["content"] += f"\n\n{one['content']}"
        else:
            joined.append({"role": role, "content": one["content"]})
    return joined


Told = Callable[[list[int]], bool]
"""Called with an answer's tokens so far; returning False stops the answer."""
Sampled = tuple[list[int], list[float], bool]
"""Tokens including the end token, their log-probabilities, and whether the end token was reached."""


class ModelText:
    """Tokenizer and chat template of model `name`: encodes prompts and decodes completions. `context` is the
    context length in tokens, prompt plus completion."""

    def __init__(self, tokenizer: ChatTokenizer, name: str, context: int) -> None:
        self._tokenizer, self._name, self._context = tokenizer, name, context
        self.stops, self.talks = tokenizer.stops | tokenizer.blank_line_tokens(), tokenizer.talks

    def prompt(self, prompt: Messages) -> list[int]:
        return self._tokenizer.prompt(prompt)

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        return TokenSequence(
            prompt_T=self._tokenizer.prompt(prompt),
            completion_T=self._tokenizer.completion(completion, finished),
        )

    def tokenize_prompts(self, prompts_P: Sequence[Messages], n: int, max_tokens: int) -> list[list[int]]:
        """Tokenizes prompts. Raises EngineError if prompt and answer exceed the context."""
        if n < 1 or max_tokens < 1:
            raise EngineError(
                f"{n} completions of {max_tokens} tokens can't be sampled: both must be at least 1."
            )
        tokens_P = [self._tokenizer.prompt(prompt) for prompt in prompts_P]
        longest = max(map(len, tokens_P), default=0)
        if longest + max_tokens > self._context:
            raise TooLongError(
                f"A prompt of {longest} tokens and {max_tokens} more exceed the {self._context} tokens "
                f"that {self._name} can read: choose shorter answers or another task."
            )
        return tokens_P

    def token_callback(self, heard: Heard | None) -> Told | None:
        """Returns a callback for tokens that passes their text on to `heard`, holding back an incomplete UTF-8
        character."""
        if heard is None:
            return None

        def tell(tokens_T: list[int]) -> bool:
            return heard(self._tokenizer.texts([tokens_T])[0].rstrip("\ufffd"))

        return tell

    def completions(self, groups_P: Sequence[Sequence[Sampled]]) -> list[list[Completion]]:
        """Converts sampled tokens to completions. Their text is decoded without the end token."""
        answers = [ids[:-1] if finished else ids for group in groups_P for ids, _, finished in group]
        texts = iter(self._tokenizer.texts(answers))
        return [
            [
                Completion(tokens_T=ids, logprobs_T=logps, finished=finished, text=next(texts))
                for ids, logps, finished in group
            ]
            for group in groups_P
        ]
