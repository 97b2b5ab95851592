"""Checks that an exported model answers like the one trained here: both get the same new puzzles at temperature
0, or the held-out rows of a skill. Here a skill picks the likeliest of its labels; the exported model writes
one likeliest token after the other, and may begin a label that is likely only as a beginning.

The exported file is opened by llama-cpp-python's own chat interface, with the template and end tokens stored in
the file, as a program that knows nothing of Shoal would open it."""

from __future__ import annotations

import importlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from app.chat.learned import Checkpoints
from app.chat.puzzles import draw_several
from app.chat.skills import open_skill
from app.chat.talking import OpenEngine
from app.models.export import MODEL_FILE
from app.models.shelf import locate
from app.node.models.skills import KnownSkill
from app.sapo import asking
from app.sapo.sets.question_set import held_out_questions
from app.skills.answering import answer
from engines.contract import EngineError, Messages
from engines.models.folder import read_settings

PUZZLES_COMPARED, ROWS_COMPARED = 10, 60
"""How many puzzles are asked, and how many rows at most."""
_COLD = 1e-5
"""Temperature low enough that the most likely token is always drawn."""
_APART = 1
"""Maximum number of answers that may differ because of rounding in the exported number format."""
_SEED = 40  # fixed: the same puzzles in every comparison


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the comparison: `equal` of `asked` answers are identical; `different` lists the others as
    (question, answer here, answer of the export)."""

    asked: int
    equal: int
    different: list[tuple[str, str, str]]

    @property
    def within_tolerance(self) -> bool:
        """Whether at most _APART answers differ."""
        return self.equal >= self.asked - _APART


def compare_answers(model: str, home: Path, exported: Path, open_engine: OpenEngine) -> Agreement:
    """Gives both models the same puzzles and compares their answers. `exported` is a folder with a GGUF model.
    Raises EngineError."""
    folder = locate(model, home)
    settings, learned = read_settings(folder), Checkpoints(home, folder)
    engine = open_engine(folder, learned.rank())
    state = learned.refresh(engine, None)
    way = state.way if state is not None else asking.TAGGED
    levels = dict(state.curriculum.levels) if state is not None else dict(settings.families)
    tokens = way.token_limit(settings.max_tokens)
    puzzles = draw_several(levels, PUZZLES_COMPARED, random.Random(_SEED))
    asked_P = [asking.messages(puzzle.text, way) for puzzle in puzzles]
    here = [engine.answer(one, tokens, 0, lambda text: True, temperature=_COLD).text for one in asked_P]
    there = _answers(exported, asked_P, tokens)
    return _compared([puzzle.text for puzzle in puzzles], here, there)


def compare_skill(known: KnownSkill, home: Path, exported: Path, open_engine: OpenEngine) -> Agreement:
    """Asks both the held-out rows of a skill, at most ROWS_COMPARED, and compares what is read as their
    answers. `exported` is a folder with a GGUF model. Raises EngineError."""
    skill, texts = known.skill, held_out_questions(known.made)[:ROWS_COMPARED]
    asked_P = [skill.prompt(text) for text in texts]
    found = answer(open_skill(known, home, open_engine), asked_P, skill.labels, skill.max_tokens)
    fits = [place for place, one in enumerate(found) if one is not None]
    here = [skill.read(one.text) or "" for one in found if one is not None]
    there = _answers(exported, [asked_P[place] for place in fits], skill.max_tokens)
    return _compared([texts[place] for place in fits], here, [skill.read(one) or "" for one in there])


def _compared(texts: Sequence[str], here: Sequence[str], there: Sequence[str]) -> Agreement:
    pairs = list(zip(texts, here, there, strict=True))
    different = [(text, ours, theirs) for text, ours, theirs in pairs if ours.strip() != theirs.strip()]
    return Agreement(asked=len(pairs), equal=len(pairs) - len(different), different=different)


def _answers(exported: Path, asked_P: list[Messages] | list[list[dict[str, str]]], tokens: int) -> list[str]:
    try:
        llama: Any = importlib.import_module("llama_cpp").Llama
    except (ImportError, OSError) as error:
        raise EngineError(
            f"Comparing needs llama-cpp-python, which doesn't load here ({error}): the export itself is done."
        ) from error
    opened = llama(str(exported / MODEL_FILE), n_ctx=0, seed=0, verbose=False)
    try:
        said = [
            opened.create_chat_completion(list(one), temperature=0, repeat_penalty=1, max_tokens=tokens)
            for one in asked_P
        ]
        return [str(one["choices"][0]["message"]["content"]) for one in said]
    finally:
        opened.close()
