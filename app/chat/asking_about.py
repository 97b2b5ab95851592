"""Active learning: the rows of a table without answers that a skill asks its owner about."""

from __future__ import annotations

from collections.abc import Sequence

from app.chat.whole_table import batches, skill_answers
from app.sapo.sets.bounds import MAX_QUESTION
from app.sapo.sets.tables import question_key
from app.skills.answering import LeastSure, SkillAnswer
from app.skills.least_sure import least_sure
from app.skills.skill import Skill
from engines.contract import Engine


def ask_about(engine: Engine, skill: Skill, texts: Sequence[str], count: int) -> list[LeastSure]:
    """Returns at most `count` of the texts, the least sure first; none that is empty or stands in the skill's
    table. `engine`: with the skill loaded. Raises EngineError."""
    known = {question_key(row.question) for row in skill.made.rows}
    keys = {question_key(text): text for text in texts if len(text) <= MAX_QUESTION}
    new = [text for key, text in keys.items() if key and key not in known]
    said: list[SkillAnswer | None] = []
    for batch in batches(new):
        said += skill_answers(engine, skill, batch)
    found = ((new[place], said[place]) for place in least_sure(new, said, count))
    return [
        LeastSure(text=text, answer=skill.read(one.text) or "", sure=round(one.sure, 4))
        for text, one in found
        if one is not None
    ]
