"""Of a table without answers, a skill asks about the rows that it is least sure of."""

from __future__ import annotations

from typing import cast

from app.chat.asking_about import ask_about
from app.skills.skill import Skill
from engines.contract import Engine
from tests.chat.test_whole_table import MADE, Fake


def test_it_asks_about_what_it_is_least_sure_of_and_of_nothing_that_it_was_taught() -> None:
    texts = [
        "",
        "Mail 3?",
        "A long mail, of which it is very sure indeed",
        "Win!",
        "win!",
        "Dear all, lunch at one",
    ]
    asked = ask_about(cast(Engine, Fake()), Skill(MADE), texts, 10)
    assert {one.text for one in asked} == {
        "A long mail, of which it is very sure indeed",
        "win!",
        "Dear all, lunch at one",
    }
    assert [one.sure for one in asked] == sorted(one.sure for one in asked) and asked[0].answer in MADE.labels
    assert ask_about(cast(Engine, Fake()), Skill(MADE), texts, 1) == asked[:1]
