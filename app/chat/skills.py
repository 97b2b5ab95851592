"""Asks a skill in this process: opens its base model with its best checkpoint and answers texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from app.chat.learned import Checkpoints
from app.node.models.skills import KnownSkill, right_when_as_sure
from app.skills.answering import AskedAnswer, SkillAnswer, answer
from engines.contract import Engine, EngineError

MAX_TEXT = 8000
"""Maximum characters of a text that a skill is asked: reading more would take minutes, or all of the memory."""
OpenEngine = Callable[[Path, int | None], Engine]
"""Opens an engine, given the model folder and the LoRA rank (None: the engine's default)."""


def load_skill(engine: Engine, home: Path, known: KnownSkill) -> str:
    """Loads a skill's best checkpoint into an engine with its base model, and returns the checkpoint's mark.
    Raises AdapterError."""
    checkpoints = Checkpoints(home, known.model, known.made.mark)
    checkpoints.refresh(engine, None)
    return checkpoints.mark


def open_skill(known: KnownSkill, home: Path, open_engine: OpenEngine) -> Engine:
    """Opens the base model of a skill with its best checkpoint. Raises EngineError."""
    engine = open_engine(known.model, Checkpoints(home, known.model, known.made.mark).rank())
    load_skill(engine, home, known)
    return engine


def ask_skill(engine: Engine, known: KnownSkill, texts: Sequence[str]) -> list[AskedAnswer]:
    """Returns the answer of the loaded skill to each text. Raises EngineError for one that is empty or longer
    than the model reads."""
    if not all(0 < len(text.strip()) <= MAX_TEXT for text in texts):
        raise EngineError(f"A text has 1 to {MAX_TEXT} characters: ask with another one.")
    skill = known.skill
    found = answer(engine, [skill.prompt(text) for text in texts], skill.labels, skill.max_tokens)
    return [_told(known, one) for one in found]


def _told(known: KnownSkill, said: SkillAnswer | None) -> AskedAnswer:
    if said is None:
        raise EngineError("This text is longer than the model reads at once: shorten it.")
    right, of = right_when_as_sure(known.measured, said.sure)
    return AskedAnswer(
        answer=known.skill.read(said.text) or "",
        sure=round(said.sure, 4),
        labels={label: round(share, 4) for label, share in said.labels.items()},
        right=right,
        of=of,
        work=said.text if known.skill.marked else "",
    )
