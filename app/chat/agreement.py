"""Checks that an exported model answers like the one trained here: both get the same new puzzles at temperature
0.

The exported file is opened by llama-cpp-python's own chat interface, with the template and end tokens stored in
the file, as a program that knows nothing of Shoal would open it."""

from __future__ import annotations

import importlib
import random
from pathlib import Path
from typing import Any

import msgspec

from app.chat.learned import Checkpoints
from app.chat.puzzles import draw_several
from app.chat.talking import OpenEngine
from app.models.export import BASE_FILE, LORA_FILE, MODEL_FILE
from app.models.shelf import locate
from app.sapo import asking
from engines.contract import EngineError, Messages
from engines.models.folder import read_settings

PUZZLES = 10
_COLD = 1e-5
"""Temperature low enough that the most likely token is always drawn."""
_APART = 1
"""Maximum number of answers that may differ because of rounding in the exported number format."""
_SEED = 40


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the comparison: `equal` of `puzzles` answers are identical; `different` lists the others as
    (puzzle, answer here, answer of the export)."""

    puzzles: int
    equal: int
    different: list[tuple[str, str, str]]

    @property
    def within_tolerance(self) -> bool:
        """Whether at most _APART answers differ."""
        return self.equal >= self.puzzles - _APART


def compare_answers(model: str, home: Path, exported: Path, open_engine: OpenEngine) -> Agreement:
    """Gives both models the same puzzles and compares their answers. `exported` is a folder with a GGUF model,
    or with a base and an adapter. Raises EngineError."""
    folder = locate(model, home)
    settings, learned = read_settings(folder), Checkpoints(home, folder)
    engine = open_engine(folder, learned.rank())
    state = learned.refresh(engine, None)
    way = state.way if state is not None else asking.TAGGED
    levels = dict(state.curriculum.levels) if state is not None else dict(settings.families)
    tokens = way.token_limit(settings.max_tokens)
    puzzles = draw_several(levels, PUZZLES, random.Random(_SEED))
    asked_P = [asking.messages(puzzle.text, way) for puzzle in puzzles]
    here = [engine.answer(one, tokens, 0, lambda text: True, temperature=_COLD).text for one in asked_P]
    there = _answers(exported, asked_P, tokens)
    pairs = list(zip((puzzle.text for puzzle in puzzles), here, there, strict=True))
    different = [(text, ours, theirs) for text, ours, theirs in pairs if ours.strip() != theirs.strip()]
    return Agreement(puzzles=len(pairs), equal=len(pairs) - len(different), different=different)


def _answers(exported: Path, asked_P: list[Messages] | list[list[dict[str, str]]], tokens: int) -> list[str]:
    try:
        llama: Any = importlib.import_module("llama_cpp").Llama
    except (ImportError, OSError) as error:
        raise EngineError(
            f"Comparing needs llama-cpp-python, which doesn't load here ({error}): the export itself is done."
        ) from error
    whole = (exported / MODEL_FILE).is_file()
    files = {"model_path": str(exported / (MODEL_FILE if whole else BASE_FILE))}
    if not whole:
        files["lora_path"] = str(exported / LORA_FILE)
    opened = llama(**files, n_ctx=0, seed=0, verbose=False)
    try:
        return [
            str(
                opened.create_chat_completion(list(one), temperature=0, max_tokens=tokens)["choices"][0][
                    "message"
                ]["content"]
            )
            for one in asked_P
        ]
    finally:
        opened.close()
