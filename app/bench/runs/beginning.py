"""Base rates: the share of a family's first level that a model solves before it learns, asked as in
placement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import msgspec

from app.lab.plan import group_of
from app.lab.statistics import average
from app.models.shelf import locate
from app.node.round.placing import examples_that_fit
from app.sapo.asking import BRIEF, TAGGED, Example, messages
from app.sapo.families import FAMILIES
from app.sapo.probe import probe_questions
from app.sapo.questions import Question, draw
from app.sapo.scoring.sandbox import Sandbox, score_group
from engines.contract import Engine, TooLongError
from engines.models.folder import read_settings
from engines.opening import open_engine

QUESTIONS = ANSWERS = 8
_EXAMPLES = range(2**45, 2**53, 2**22)
_SEED = 1


class BaseScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one model in one family. Shares are 0 if `note` says why nothing was asked."""

    model: str
    family: str
    questions: int = 0
    pass_at_1: float = 0.0
    any_of_8: float = 0.0
    note: str = ""


def base_rates(model: str, home: Path | None, names: Sequence[str], threads: int | None) -> Iterator[BaseScore]:
    """Asks held-out questions, ANSWERS answers each at temperature 1. A chat model sees worked examples first,
    and families without them are skipped, as in placement. Raises EngineError."""
    folder = locate(model, home)
    engine, usual = open_engine("auto", folder, threads=threads), read_settings(folder).max_tokens
    way = BRIEF if engine.info.talks else TAGGED
    with Sandbox() as sandbox:
        for name in names:
            if way.examples and FAMILIES[name].work is None:
                yield BaseScore(model=model, family=name, note="no worked example")
                continue
            try:
                yield _measured(engine, model, name, way.token_limit(usual), sandbox)
            except TooLongError:
                yield BaseScore(model=model, family=name, note="longer than it reads")


def _measured(engine: Engine, model: str, name: str, max_tokens: int, sandbox: Sandbox) -> BaseScore:
    way = BRIEF if engine.info.talks else TAGGED
    asked = probe_questions({name: 0}, QUESTIONS)
    shown = examples_that_fit(
        [
            Example(question=one.text, answer=FAMILIES[name].worked(one.entry))
            for one in islice(_examples(name), way.examples)
        ]
    )
    prompts = [messages(one.text, way, shown) for one in asked]
    groups = engine.sample(prompts, ANSWERS, max_tokens, _SEED)
    rewards_PG = [
        score_group(sandbox, group_of(one.coordinates, completions_G, model)).rewards_G
        for one, completions_G in zip(asked, groups, strict=True)
    ]
    return BaseScore(
        model=model,
        family=name,
        questions=len(rewards_PG),
        pass_at_1=average([reward for rewards_G in rewards_PG for reward in rewards_G]),
        any_of_8=average([any(rewards_G) for rewards_G in rewards_PG]),
    )


def _examples(name: str) -> Iterator[Question]:
    """Yields worked questions, all different, that no probe contains."""
    texts: set[str] = set()
    for number in count():
        one = draw(name, 0, _EXAMPLES[number])
        if not one.held_out and one.text not in texts and FAMILIES[name].worked(one.entry):
            texts.add(one.text)
            yield one
