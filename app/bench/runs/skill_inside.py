"""One run of the skill benchmark, started by app.bench.runs.skill in a process of its own.

The lesson and the rounds are the app's own, with the trainer's requests answered in this process, so that its
processor time is all there is. The owner's rows need no sandbox."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, TypeVar, cast

import msgspec

from app.bench.engine.peers import PROJECTIONS
from app.learning.first_lesson import PER_STEP
from app.node.record.settings import COMPLETIONS, Settings
from app.node.record.snapshot import Phase
from app.node.record.state import NodeState
from app.node.round import skills
from app.node.round.round import PlayedRound, play_round
from app.node.round.tools import RoundTools
from app.node.trainer import messages
from app.node.trainer.link import TrainerLink
from app.node.trainer.process import DutyCycle, reply_to
from app.sapo import curriculum
from app.sapo.families import FAMILIES
from app.sapo.families.family import Content
from app.sapo.questions import QUESTIONS_VERSION, Coordinates, QuestionPrompt, draw, generate
from app.sapo.seeds import hashed_seed
from app.sapo.sets import question_set, tables
from app.sapo.sets.question_set import HELD_OUT_SHARE, QuestionSet
from app.skills import baseline
from app.skills.skill import Skill
from engines.models.folder import read_settings
from engines.opening import open_engine

LESSON, CONSTANT, LETTERS, EMBEDDINGS, PEFT = ARMS = "lesson", "constant", "letters", "embeddings", "peft"
INSTANT, AFTER = "", "after the lesson"
"""When arms are asked that don't learn for a time, and those that have a lesson."""
PROBED = 10
"""Rounds between two measurements on the rows aside, as in the app."""
RATE, RANK = 2e-4, 16
"""What people write for peft: the learning rate and rank of its examples."""
_Reply = TypeVar("_Reply", bound=messages.Reply)


class SkillRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is run: files and folders by their names, and the processor seconds when it is asked."""

    table: str
    seed: int
    arm: str
    model: str
    seconds: tuple[float, ...]
    threads: int
    embeddings: str


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement on the rows kept aside: `right` of `of`, and the processor and wall seconds that were used
    before it."""

    right: int
    of: int
    processor_s: float = 0.0
    seconds: float = 0.0


class Asking:
    """A table's two parts, and what was found when. Its clock stands still while it asks."""

    def __init__(self, run: SkillRun) -> None:
        made = tables.read(Path(run.table).read_bytes(), Path(run.table).stem).made
        held = _held_out(made, run.seed)
        sides = (question_set.near_duplicate_key(row.question) in held for row in made.rows)
        rows = [msgspec.structs.replace(row, held_out=side) for row, side in zip(made.rows, sides, strict=True)]
        made = msgspec.structs.replace(made, rows=tuple(rows))
        self.skill = Skill(made)
        taught = {one.question for one in self.skill.examples}
        self.rows = [(one.question, made.shown_answer(one.answer)) for one in made.rows]
        self.rows = [one for one in self.rows if one[0] not in taught]
        self.found: dict[str, Asked] = {}
        self._marks = list(run.seconds)
        self.start()

    def start(self) -> None:
        self._processor, self._wall = time.process_time(), time.monotonic()

    def due(self) -> str:
        """The next time at which it is to be asked, if that is now; else empty."""
        passed = self._marks and time.process_time() - self._processor >= self._marks[0]
        return f"{self._marks[0]:g} s" if passed else ""

    @property
    def over(self) -> bool:
        return not self._marks

    def tell(self, at: str, answers: Sequence[str | None], since: tuple[float, float] | None = None) -> None:
        """Counts the right answers. `since`: processor and wall time when asking began."""
        processor, wall = since or (time.process_time(), time.monotonic())
        right = sum(
            said is not None and self.skill.agree(said, true)
            for said, (_, true) in zip(answers, self.rows, strict=True)
        )
        used = processor - self._processor, wall - self._wall
        self.found[at] = Asked(right=right, of=len(self.rows), processor_s=used[0], seconds=used[1])
        if at == self.due():
            self._marks.pop(0)
        self._processor += time.process_time() - processor
        self._wall += time.monotonic() - wall

    def rest(self, at: str) -> None:
        """What was found stays until the end."""
        for mark in self._marks:
            self.found[f"{mark:g} s"] = self.found[at]
        self._marks.clear()


def _held_out(made: QuestionSet, seed: int) -> frozenset[Content]:
    contents = {question_set.near_duplicate_key(row.question) for row in made.rows}
    ranked = sorted(contents, key=lambda one: hashed_seed("bench", seed, msgspec.json.encode(one)))
    return frozenset(ranked[: max(1, round(len(ranked) / HELD_OUT_SHARE))])


class _Here(TrainerLink):
    """A trainer in this process."""

    def __init__(self, run: SkillRun) -> None:
        self._engine = open_engine("torch", Path(run.model), rank=None, seed=run.seed, threads=run.threads)
        self.info, self._numbers = self._engine.info, count(1)

    async def _ask(self, request: Any, answer: type[_Reply], tell: object = None) -> _Reply:
        reply = reply_to(self._engine, request, lambda message: None, DutyCycle(None))
        assert isinstance(reply, answer)
        return reply


class _Rows:
    """Questions and scores in this process; see app.sapo.scoring.sandbox."""

    def questions(self, places: Sequence[Coordinates], onward: bool, worked: bool) -> list[QuestionPrompt]:
        found = [draw(one.family, one.level, one.seed) for one in places]
        return [
            QuestionPrompt(
                coordinates=one.coordinates,
                text=one.text,
                held_out=one.held_out,
                content=one.content,
                worked=FAMILIES[one.coordinates.family].worked(one.entry),
            )
            for one in found
        ]

    def score(self, at: Coordinates, answers: Sequence[str | None]) -> list[float]:
        entry = generate(at).entry
        return [0.0 if one is None else FAMILIES[at.family].judge(one, entry) for one in answers]


async def learn(run: SkillRun, asking: Asking) -> None:
    """Teaches the lesson and plays rounds while they bring something."""
    skill, link, own = asking.skill, _Here(run), read_settings(Path(run.model))
    FAMILIES.enable(question_set.family(skill.made))
    settings = Settings(
        model=run.model, families={skill.family: 0}, groups=own.groups, external=0, completions=COMPLETIONS,
        max_tokens=own.max_tokens, learning_rate=own.learning_rate, rank=None, recipe="default",
        probe_every=PROBED, probe_questions=16, solo=True, rounds=None, seed=run.seed, shuffled_rewards=False,
    )  # fmt: skip
    identity = run.seed.to_bytes(32, "big")
    tools = RoundTools(link, link.info, cast(Any, _Rows()), settings, identity, _silent)
    state = NodeState(
        round=0, curriculum=curriculum.start(settings.families), identity="", questions=QUESTIONS_VERSION,
        way=skill.way,
    )  # fmt: skip

    async def ask(at: str) -> None:
        since = time.process_time(), time.monotonic()
        prompts = [skill.prompt(question) for question, _ in asking.rows]
        said = await link.answer(prompts, skill.labels, skill.max_tokens)
        asking.tell(at, [one.text if one else None for one in said], since)

    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        best, latest = Path(name) / "best", Path(name) / "latest"
        await link.save(best)
        asking.start()
        while not asking.over or not state.taught:
            lesson = not state.taught
            played: PlayedRound = await (
                skills.teach_part(tools, state, skill) if lesson else play_round(tools, state)
            )
            state = played.state
            if lesson and not state.lesson.since:
                await link.save(best)
            ended = lesson and state.taught
            if ended:
                await link.load(best)
                await ask(AFTER)
            if ended or (not lesson and state.round % PROBED == 0):
                practice = await skills.after_practice(tools, state, skill)
                state = msgspec.structs.replace(state, practice=practice)
                if not practice.since:
                    await link.save(best)
            if at := asking.due():
                await link.save(latest)
                await link.load(best)
                await ask(at)
                await link.load(latest)
            if state.practice.done:
                await link.load(best)
                await ask("after practice")
                asking.rest("after practice")


def _silent(phase: Phase, done: int = 0, total: int = 0) -> None:
    pass


def embedded(folder: str, texts: Sequence[str]) -> Any:
    """Returns each text's mean hidden state of a sentence encoder, scaled to length 1. Shape: texts, width."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    found = []
    for text in texts:
        tokens = tokenizer(text, truncation=True, max_length=256, return_tensors="pt")
        with torch.inference_mode():
            found.append(torch.nn.functional.normalize(model(**tokens).last_hidden_state[0].mean(0), dim=0))
    return torch.stack(found).numpy()


def imitate(run: SkillRun, asking: Asking) -> None:
    """Teaches the same rows to peft's LoRA by a plain loop; its answers are greedy."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(run.threads)
    torch.manual_seed(run.seed)
    skill, tokenizer = asking.skill, cast(Any, AutoTokenizer.from_pretrained(run.model))
    config = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=PROJECTIONS, task_type="CAUSAL_LM")
    model: Any = AutoModelForCausalLM.from_pretrained(run.model, dtype="auto")

    def prompt_tokens(prompt: Any) -> list[int]:
        text = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
        tokens: list[int] = tokenizer(text, add_special_tokens=False).input_ids
        return tokens

    def said(question: str) -> str:
        tokens = torch.tensor([prompt_tokens(skill.prompt(question))])
        with torch.inference_mode():
            out = model.generate(input_ids=tokens, max_new_tokens=skill.max_tokens, do_sample=False)
        text: str = tokenizer.decode(out[0, tokens.shape[1] :], skip_special_tokens=True)
        return text.strip()

    model = get_peft_model(model, config)
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=RATE)
    sequences = [
        (
            prompt_tokens(skill.prompt(one.question)),
            tokenizer(f"{one.answer}{tokenizer.eos_token}", add_special_tokens=False).input_ids,
        )
        for one in skill.examples
    ]
    order = Random(run.seed)
    asking.start()
    while not asking.over:
        some = order.sample(sequences, PER_STEP)
        longest = max(len(first) + len(more) for first, more in some)
        rows = [[*first, *more, *[0] * (longest - len(first) - len(more))] for first, more in some]
        marks = [
            [*[-100] * len(first), *more, *[-100] * (longest - len(first) - len(more))] for first, more in some
        ]
        model(input_ids=torch.tensor(rows), labels=torch.tensor(marks)).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if at := asking.due():
            since = time.process_time(), time.monotonic()
            asking.tell(at, [said(question) for question, _ in asking.rows], since)


def main() -> None:
    run = msgspec.json.decode(sys.argv[1], type=SkillRun)
    asking = Asking(run)
    taught = [(one.question, one.answer) for one in asking.skill.examples]
    texts = [question for question, _ in asking.rows]
    if run.arm == CONSTANT:
        ((most, _),) = Counter(answer for _, answer in taught).most_common(1)
        asking.tell(INSTANT, [most] * len(texts))
    elif run.arm in (LETTERS, EMBEDDINGS) and not asking.skill.labels:
        pass  # they sort, and any text may be the answer
    elif run.arm == LETTERS:
        asking.tell(INSTANT, baseline.predicted(taught, texts))
    elif run.arm == EMBEDDINGS:
        asked_PF, rows_SF = (embedded(run.embeddings, some) for some in (texts, [text for text, _ in taught]))
        asking.tell(INSTANT, baseline.likeliest(rows_SF, [answer for _, answer in taught], asked_PF))
    elif run.arm == PEFT:
        imitate(run, asking)
    else:
        asyncio.run(learn(run, asking))
    print(msgspec.json.encode(asking.found).decode())


if __name__ == "__main__":
    main()
