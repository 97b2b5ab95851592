"""A blind duel: two answers without their names, the owner's verdict, and only then whose they were."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from app.chat import duels
from app.chat.duels import DuelTally, Ended
from app.chat.messages import Said, Side
from app.ui.language.texts import number, tr
from app.ui.theme import Theme
from app.ui.widgets.exchange import Exchange
from app.ui.widgets.pieces import Label, boxed, button, row

_LETTERS = ("A", "B")
_rng = random.SystemRandom()


class Duel(Exchange):
    """`keep` notes how it ended and returns the tally."""

    def __init__(self, theme: Theme, text: str, keep: Callable[[Ended], DuelTally]) -> None:
        first: tuple[Side, ...] = ("before", "after") if _rng.random() < 0.5 else ("after", "before")
        super().__init__(theme, text, None, first)
        self._keep, self._first = keep, first
        self._said: dict[Side, Said] = {}
        for side, letter in zip(first, _LETTERS, strict=True):
            self._answers[side].hide_name(tr("Answer {letter}", letter=letter))
        one, other = (tr("{letter} is better", letter=letter) for letter in _LETTERS)
        self._verdict = boxed(
            row(
                Label(tr("Which one is better?"), "strong"),
                button(one, lambda: self._judge(first[0])),
                button(other, lambda: self._judge(first[1])),
                button(tr("Equally good"), lambda: self._judge("same")),
                1,
                gap=8,
            )
        )
        self._verdict.hide()
        self._tally = Label("", "soft", wrap=True)
        self._tally.hide()
        self.put_below(self._verdict)
        self.put_below(self._tally)

    def grow(self, side: Side, text: str) -> None:
        """Nothing: who answers first would tell who it is."""

    def say(self, said: Said) -> None:
        """Both at once, when both are there."""
        self._said[said.side] = said
        if len(self._said) < len(self._first):
            return
        for one in self._said.values():
            self._answers[one.side].say_blind(one)
        if self._said["before"].text == self._said["after"].text:
            self._reveal(tr("Both gave the same answer: that one doesn't count."))
        else:
            self._verdict.show()

    def _judge(self, ended: Ended) -> None:
        try:
            tally = self._keep(ended)
        except OSError as error:
            self._reveal(tr("The tally couldn't be saved ({why}).", why=error.strerror or str(error)))
        else:
            self._reveal(told(tally))

    def _reveal(self, sentence: str) -> None:
        self._verdict.hide()
        self._tally.tell(sentence)
        for side, said in self._said.items():
            self._answers[side].show_name()
            self._answers[side].say(said)


def told(tally: DuelTally) -> str:
    """The tally so far."""
    said = tr(
        "Your verdicts so far: {after} for after, {before} for before, {same} equal.",
        after=number(tally.after),
        before=number(tally.before),
        same=number(tally.same),
    )
    return said if tally.sure else said + " " + tr("Too few to tell yet.")


def keeper(home: str, model: str) -> Callable[[Ended], DuelTally]:
    """Keeps the tally of this model's duels."""
    return lambda ended: duels.note(Path(home), model, ended)
