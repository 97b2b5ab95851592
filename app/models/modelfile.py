"""Writes the Modelfile with which Ollama imports a GGUF file: the chat template and the stop tokens.

Ollama uses Go templates. The one written here is derived from the model's own chat template by rendering that
with marks in place of the texts, so it works for any template that puts texts between fixed strings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jinja2 import TemplateError

from app.common.text import safe_text
from engines.contract import EngineError
from engines.models.folder import Folder, read_architecture
from engines.models.tokens import ChatTokenizer

_SYSTEM, _USER, _ANSWER, _AGAIN = "\ue000S\ue000", "\ue000U\ue000", "\ue000A\ue000", "\ue000V\ue000"
"""Marks from Unicode's private use area, which no real text contains."""
_MAX_CONTEXT = 8192  # tokens; Ollama sets memory aside for all of them


@dataclass(frozen=True)
class ChatMarkup:
    """The fixed strings around the texts of a chat: `opening`, and if the template has a system message,
    `before_system` SYSTEM `after_system`; then for each turn `before_user` USER `before_answer` ANSWER
    `after_answer`."""

    opening: str
    before_system: str
    after_system: str
    before_user: str
    before_answer: str
    after_answer: str
    system: bool

    def template(self) -> str:
        """Returns Ollama's TEMPLATE, which it renders once for each turn."""
        first = _go(self.opening)
        if self.system:
            first = (
                f"{{{{ if .System }}}}{_go(self.before_system)}{{{{ .System }}}}{_go(self.after_system)}"
                f"{{{{ end }}}}"
            )
        return (
            f"{first}{_go(self.before_user)}{{{{ .Prompt }}}}{_go(self.before_answer)}{{{{ .Response }}}}"
            f"{_go(self.after_answer)}"
        )


def chat_markup(tokenizer: ChatTokenizer) -> ChatMarkup:
    """Derives the fixed strings from a model's chat template. Raises EngineError if the template refuses or
    changes the texts it is given."""
    alone, before_answer = _around(_render(tokenizer, ("user", _USER)), _USER)
    after_answer, before_user = "", alone
    answered = _render(tokenizer, ("user", _USER), ("assistant", _ANSWER), answering=False)
    talk = _render(tokenizer, ("user", _USER), ("assistant", _ANSWER), ("user", _AGAIN))
    if _ANSWER in answered and _ANSWER in talk:
        after_answer = answered.partition(_ANSWER)[2]
        between = talk.partition(_ANSWER)[2].partition(_AGAIN)[0]
        if between.startswith(after_answer) and alone.endswith(between.removeprefix(after_answer)):
            before_user = between.removeprefix(after_answer)
    opening = alone.removesuffix(before_user)
    full = _render(tokenizer, ("system", _SYSTEM), ("user", _USER))
    if _SYSTEM not in full or full.index(_SYSTEM) > full.index(_USER):
        return ChatMarkup(opening, "", "", before_user, before_answer, after_answer, False)
    before_system, rest = _around(full, _SYSTEM)
    after_system = rest.partition(_USER)[0]
    if not after_system.endswith(before_user):
        before_user = ""
    after_system = after_system.removesuffix(before_user)
    return ChatMarkup(opening, before_system, after_system, before_user, before_answer, after_answer, True)


def _around(text: str, mark: str) -> tuple[str, str]:
    before, found, after = text.partition(mark)
    if not found:
        raise EngineError("The model's chat template changes what it is given.")
    return before, after


def _render(tokenizer: ChatTokenizer, *texts: tuple[str, str], answering: bool = True) -> str:
    """Renders a chat without the BOS token if Ollama adds one itself, as the tokenizer does. (SmolLM2's does
    not, and its template starts each turn with that very token.) Returns "" if the template refuses."""
    try:
        rendered = tokenizer.render([{"role": role, "content": text} for role, text in texts], answering)
    except TemplateError:
        return ""
    bos, bare = tokenizer.special.get("bos_token", ""), tokenizer.library.encode("").ids
    added = bool(bare) and bare[0] == tokenizer.library.token_to_id(bos)
    return rendered.removeprefix(bos) if added else rendered


def modelfile_text(model: Folder, source: str, *, system: str | None = None) -> str:
    """Returns the text of a Modelfile for the GGUF file `source`, relative to the Modelfile. `system`: the
    system message used in training; omitted if the template has none."""
    tokenizer = ChatTokenizer(model)
    shape = read_architecture(model.config)
    lines = [f"FROM {source}"]
    try:
        found = chat_markup(tokenizer)
    except EngineError:
        pass  # Ollama then uses the chat template in the GGUF file
    else:
        lines.append(f"TEMPLATE {_quoted(found.template())}")
        if system and system.isprintable() and found.system:
            lines.append(f"SYSTEM {_line(system)}")
    stops = [tokenizer.library.id_to_token(stop) for stop in sorted(tokenizer.stops)]
    # Ollama reads no escapes: what follows a quote or a line's end would be a command of its own
    lines += [
        f'PARAMETER stop "{stop}"'
        for stop in stops
        if stop and safe_text(stop, strip=False) == stop and not {*stop} & {*'"\n'}
    ]
    lines.append("PARAMETER temperature 0")  # the likeliest answer is right more often than one that is drawn
    lines.append("PARAMETER repeat_penalty 1")  # Ollama's own makes words of the question less likely
    if shape is not None:
        lines.append(f"PARAMETER num_ctx {min(shape.context, _MAX_CONTEXT)}")
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    """Returns a line of text as a value: between triple quotes, or as it is where it has quotes itself; at its
    beginning those are read as the value's.

    >>> _line('Say "yes" or "no"')
    'Say "yes" or "no"'
    """
    return text if '"' in text and not text.startswith('"') else _quoted(text)


def _quoted(text: str) -> str:
    """Returns a text in the Modelfile's triple quotes."""
    return f'"""{text}"""'


def _go(text: str) -> str:
    """Escapes a string for a Go template in a Modelfile: braces, and quotes that would end the text, are
    printed by an action.

    >>> print(_go('{{ say "this" and ""'))
    {{ "\\x7b\\x7b" }} say "this" and {{ "\\x22\\x22" }}
    """
    return re.sub(
        r'\{\{+|\{$|^"|""+|"$',
        lambda found: '{{ "' + "".join(f"\\x{ord(one):02x}" for one in found[0]) + '" }}',
        text,
    )
