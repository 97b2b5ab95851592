"""Skills: what the model can do, family by family, as sure as the held-out questions allow."""

from __future__ import annotations

from functools import partial

from app.node import figures
from app.ui.model import Family, View
from app.ui.pages import words
from app.ui.pages.frame import Actions, Page
from app.ui.spoken import spoken
from app.ui.texts import tr
from app.ui.theme import Theme
from app.ui.widgets.pieces import Empty, Label, boxed, column, stack
from app.ui.widgets.tile import Tiles


class Skills(Page):
    lasting = False

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Skills"))
        self._shown: tuple[Family, ...] = ()
        self._tiles = Tiles(theme)
        about = Label(
            tr(
                "How many new puzzles it solves. The shaded part shows how sure that is, the tick where it "
                "started."
            ),
            "soft",
            wrap=True,
        )
        self._speech = Label("", "soft", wrap=True)
        self._waiting = Label("", "soft", wrap=True)
        self._stack = stack(
            Empty(
                theme,
                "skills",
                tr("No skills measured yet"),
                tr("The first measurement brings a tile for every kind of puzzle."),
            ),
            boxed(column(about, self._tiles, self._waiting, self._speech, 1, gap=18)),
        )
        self.add(self._stack, 1)

    def show_view(self, view: View) -> None:
        self._stack.setCurrentIndex(1 if view.families else 0)
        self._waiting.say(tr("Too hard yet: {families}.", families=", ".join(view.waiting)))
        self._waiting.setVisible(bool(view.waiting))
        rise = view.curve[-1].everyday_rise if view.curve and view.safe_round else None
        self._speech.tell(spoken(figures.speech_sentence(rise)) if rise is not None else "")
        if view.families == self._shown:
            return
        self._shown = view.families
        for tile, family in zip(self._tiles.tiles(len(view.families)), view.families, strict=True):
            tile.say(family, since(family))
            tile.press = partial(self.ask.show_family, family.name)


def since(family: Family) -> str:
    """The latest thing the family reached, and when."""
    if not family.milestones:
        return tr("No right answer in practice yet")
    last = family.milestones[-1]
    when = words.day(last.at)
    if last.level < 0:
        return tr("First solved in practice on {day}", day=when)
    if last.level != family.level:  # it went back since
        now = tr("Level {n} now", n=family.level + 1)
        return tr("{now}, reached {n} on {day}", now=now, n=last.level + 1, day=when)
    return tr("Level {n} since {day}", n=last.level + 1, day=when)
