"""Asks skills for any page: a chat process that starts with the first question and ends some time after the
last."""

from __future__ import annotations

from collections.abc import Callable

from app.chat import messages
from app.skills.answering import AskedAnswer
from app.ui.chat.control import ChatControl
from app.ui.language.texts import translated
from app.ui.view.settings import Choices

Hear = Callable[[AskedAnswer | str], None]
"""Gets the answer, or a sentence that says why there is none."""


class SkillAsker:
    """Passes questions to the process and the answers to whoever asked."""

    def __init__(self, home: str, choices: Choices, control: ChatControl | None = None) -> None:
        self._home = home
        self._control = control or ChatControl(choices)
        self._control.replied.connect(self._reply)
        self._control.broke.connect(self._broke)
        self._waiting: dict[int, Hear] = {}

    def ask(self, skill: str, text: str, hear: Hear) -> None:
        """Asks the skill of the question set with this mark."""
        self._control.keep_loaded()
        number = self._control.ask(
            self._home, lambda number: messages.AskSkill(number=number, skill=skill, text=text)
        )
        self._waiting[number] = hear
        self._control.unload_later()

    def close(self) -> None:
        """Ends the process and returns when it has ended."""
        self._control.close()

    def _reply(self, reply: messages.Reply) -> None:
        match reply:
            case messages.SkillSaid():
                self._waiting.pop(reply.number, _unheard)(reply.said)
            case messages.ChatFailed():
                self._waiting.pop(reply.number, _unheard)(translated(reply.sentence))

    def _broke(self, sentence: str) -> None:
        waiting, self._waiting = list(self._waiting.values()), {}
        for hear in waiting:
            hear(sentence)


def _unheard(said: AskedAnswer | str) -> None:
    pass
