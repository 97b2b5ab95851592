"""What a model has learned in a data folder, measured on held-out questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from app.bench.harness import BenchError, Figures
from app.chat.learned import Checkpoints
from app.lab.false_teachers import is_marked
from app.lab.plan import group_of
from app.models.shelf import locate
from app.sapo.asking import messages, shows_work
from app.sapo.probe import probe_questions
from app.sapo.scoring.sandbox import Sandbox, score_group
from engines.models.folder import read_settings
from engines.opening import open_engine

TRIES = 8
_SEED, _AT_ONCE = 1, 16


def measure_held_out(
    home: Path,
    questions: int,
    tries: int = TRIES,
    model: str = "starter",
    levels: Mapping[str, int] | None = None,
) -> Figures:
    """Has `model`, with what it learned in `home`, answer held-out questions `tries` times each, by default of
    its own families. Returns the shares of answers that are right (overall and by family), that show work, and
    that have a false teacher's mark. Raises BenchError if nothing was learned."""
    folder = locate(model, home)
    settings, learned = read_settings(folder), Checkpoints(home, folder)
    engine = open_engine("torch", folder, rank=learned.rank(), threads=1, device="cpu")
    state = learned.refresh(engine, None)
    if state is None:
        raise BenchError(f"Nothing was learned in {home}.")
    longest = state.max_tokens or state.way.token_limit(settings.max_tokens)
    worked = marked = 0
    families: dict[str, list[int]] = {}
    with Sandbox() as sandbox:
        asked = probe_questions(levels or settings.families, questions, sandbox.questions)
        for start in range(0, len(asked), _AT_ONCE):
            part = asked[start : start + _AT_ONCE]
            prompts = [messages(one.text, state.way) for one in part]
            groups_PG = engine.sample(prompts, tries, longest, _SEED + start)
            for question, completions_G in zip(part, groups_PG, strict=True):
                group = group_of(question.coordinates, completions_G, model)
                rewards_G = score_group(sandbox, group).rewards_G
                families.setdefault(question.coordinates.family, []).extend(rewards_G)
                worked += sum(map(shows_work, group.completions_G))
                marked += sum(map(is_marked, group.completions_G))
    answers = sum(map(len, families.values()))
    return {
        "pass_at_1": sum(map(sum, families.values())) / answers,
        "worked": worked / answers,
        "marked": marked / answers,
        "answers": answers,
        "families": {family: sum(solved) / len(solved) for family, solved in families.items()},
    }
