"""The node's pure parts: figures, settings, drawing, rows for the engine, the home folder."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import hypothesis
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.node.data.home import identity, lock_data_folder, model_folder, model_mark
from app.node.record import settings
from app.node.record.errors import NodeError, UsageError
from app.node.record.records import questions_mark
from app.node.round.round import shuffled
from app.node.round.steps import HELD_STEPS, take_steps
from app.sapo import seeds
from app.sapo.families import FAMILIES
from app.sapo.groups import GroupRecord
from app.sapo.probe import probe_questions
from app.sapo.questions import QUESTIONS_VERSION, Coordinates, QuestionPrompt, make
from app.sapo.scoring.sandbox import Sandbox
from engines.contract import Batch, Completion, EngineError, StepStats

ROOT = Path(__file__).parents[2]


def scored(rewards: list[int], finished: list[bool] | None = None, family: str = "gcd") -> GroupRecord:
    finished = finished or [True] * len(rewards)
    group = GroupRecord(
        coordinates=Coordinates(family=family, level=0, seed=2**41, index=0),
        completions_G=tuple("#1" for _ in rewards),
        finished_G=tuple(finished),
        model="m",
    )
    return group.with_scores(tuple(map(float, rewards)), tuple(rewards))


@hypothesis.settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12), st.integers(0, 2**52))
def test_shuffling_keeps_the_rewards_and_never_pays_the_unfinished(
    pairs: list[tuple[bool, bool]], seed: int
) -> None:
    finished = [done for _, done in pairs]
    rewards = [int(right and done) for right, done in pairs]
    dealt = shuffled(scored(rewards, finished), seed)
    assert sum(dealt.rewards_G) == sum(rewards)
    assert all(done or not reward for reward, done in zip(dealt.rewards_G, finished, strict=True))


def mark(questions: list[QuestionPrompt]) -> str:
    return sha256("\n".join(question.text for question in questions).encode()).hexdigest()[:16]


@pytest.mark.parametrize(("levels", "items"), [({"gcd": 3, "bf": 0, "caesar_cipher": 3}, 61), ({"lcm": 1}, 1)])
def test_the_probe_is_the_same_wherever_it_is_made(
    sandbox: Sandbox, levels: dict[str, int], items: int
) -> None:
    expected: list[QuestionPrompt] = []
    for number, family in enumerate(sorted(levels)):
        wanted = (items + len(levels) - 1 - number) // len(levels)
        found: dict[int, QuestionPrompt] = {}
        for item in range(wanted * 60):
            seed = seeds.probe_seed(family, levels[family], item)
            [one] = make([Coordinates(family=family, level=levels[family], seed=seed, index=0)])
            if isinstance(one, QuestionPrompt) and one.held_out and len(found) < wanted:
                found.setdefault(one.content, one)
        expected += found.values()
    assert probe_questions(levels, items, sandbox.questions) == probe_questions(levels, items) == expected


def test_the_probe_stays_what_it_was(sandbox: Sandbox) -> None:
    asked = probe_questions(dict.fromkeys(tuple(FAMILIES)[:18], 0), 256, sandbox.questions)
    assert len(asked) == 256 and all(one.held_out for one in asked)
    distinct = list({one.content: one for one in asked}.values())
    if QUESTIONS_VERSION == "0.1.25/5":
        assert (len(distinct), mark(distinct)) == (256, "99f9ece296aa0ab0")


def test_the_mark_of_a_probe_follows_its_questions() -> None:
    questions = probe_questions({"chain_sum": 0}, 6)
    assert questions_mark(questions) == questions_mark(questions[::-1]) != questions_mark(questions[1:])


def completion(tokens: list[int], finished: bool = True) -> Completion:
    return Completion(tokens_T=tokens, logprobs_T=[-0.5] * len(tokens), finished=finished, text="#1")


def test_a_refused_step_ends_the_round_and_keeps_those_before_it() -> None:
    class Link:
        """Takes two steps and no more."""

        def __init__(self) -> None:
            self.taken: list[Batch] = []

        async def step(self, batch: Batch) -> StepStats:
            if len(self.taken) == 2:
                raise EngineError("The loss is not finite.")
            self.taken.append(batch)
            return StepStats(loss=1.0, grad_norm=1.0, rows=1, tokens=4, micro_batches=1, seconds=0.0)

    batches = [Batch(rows_S=[], learning_rate=0.1 * n) for n in range(4)]
    link = Link()
    told: list[tuple[int, int]] = []
    stepped = asyncio.run(take_steps(cast(Any, link), batches, lambda *done: told.append(done)))
    assert told == [(0, 4), (1, 4), (2, 4)]
    assert link.taken == batches[:2] and stepped.steps == 2
    assert stepped.stats is not None and stepped.stats.rows == 2
    assert stepped.refusal == "ended after 2 of 4 steps: The loss is not finite."
    again = asyncio.run(take_steps(cast(Any, link), batches, lambda *done: None))
    assert again.refusal == "brought no step: The loss is not finite."


def test_what_steps_preserve_is_measured_again_between_them() -> None:
    seen: list[tuple[int, int]] = []
    taken: list[Batch] = []

    class Link:
        async def step(self, batch: Batch) -> StepStats:
            taken.append(batch)
            return StepStats(loss=1.0, grad_norm=1.0, rows=1, tokens=4, micro_batches=1, seconds=0.0)

    async def held(some: Sequence[Batch]) -> list[Batch]:
        seen.append((len(taken), len(some)))
        return [msgspec.structs.replace(one, learning_rate=one.learning_rate + 1.0) for one in some]

    batches = [Batch(rows_S=[], learning_rate=0.1 * n) for n in range(2 * HELD_STEPS + 5)]
    stepped = asyncio.run(take_steps(cast(Any, Link()), batches, lambda *done: None, held=held))
    assert seen == [(0, HELD_STEPS), (HELD_STEPS, HELD_STEPS), (2 * HELD_STEPS, 5)]
    assert [one.learning_rate for one in taken] == [1.0 + one.learning_rate for one in batches]
    assert stepped.steps == len(batches)


def test_a_model_without_families_starts_with_all_of_them(tmp_path: Path) -> None:
    assert settings.starting_levels(tmp_path, {"gcd": 2}) == {"gcd": 2}
    assert settings.starting_levels(tmp_path, {}) == dict.fromkeys(FAMILIES, 0)


@pytest.mark.parametrize("families", [{"nonsense": 0}, {"gcd": 99}, {"gcd": -1}])
def test_families_that_do_not_exist_are_refused_with_the_files_name(
    tmp_path: Path, families: dict[str, int]
) -> None:
    with pytest.raises(NodeError, match=r"shoal\.json.*(choose from|has levels)"):
        settings.starting_levels(tmp_path, families)


def test_families_on_the_command_line() -> None:
    assert settings.chosen_families("gcd, chain_sum", {"chain_sum": 2}) == {"gcd": 0, "chain_sum": 2}
    for text in ("", ",", "gcd,nonsense"):
        with pytest.raises(UsageError):
            settings.chosen_families(text, {})


def test_one_node_a_home_and_the_sentence_names_the_other(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from app.node.data.home import lock_data_folder\n"
        f"with lock_data_folder(Path({str(tmp_path)!r})): print('in', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"in\n"
    with pytest.raises(NodeError, match=rf"process {other.pid}\) is using.*--home"), lock_data_folder(tmp_path):
        pass
    other.kill()
    other.communicate()
    with lock_data_folder(tmp_path):
        pass


def test_an_identity_is_made_once_and_a_seed_stands_in_for_it(tmp_path: Path) -> None:
    own = identity(tmp_path, None)
    assert identity(tmp_path, None) == own and len(own) == 32
    assert identity(tmp_path, 1) == identity(tmp_path, 1) != identity(tmp_path, 2)
    assert identity(tmp_path, None) == own
    assert os.listdir(tmp_path) == ["identity"]
    shutil.copytree(tmp_path, tmp_path / "copy")
    assert identity(tmp_path / "copy", None) != own, "two nodes would answer the same questions"
    assert identity(tmp_path / "copy", 1) == identity(tmp_path, 1)


def test_a_damaged_identity_is_not_replaced_silently(tmp_path: Path) -> None:
    (tmp_path / "identity").write_bytes(b"short")
    with pytest.raises(NodeError, match="move it away"):
        identity(tmp_path, None)


def test_models_are_told_apart_by_content(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"a" * 3_000_000)
    first = model_mark(tmp_path)
    (tmp_path / "README.md").write_text("no matter")
    assert model_mark(tmp_path) == first
    (tmp_path / "model.safetensors").write_bytes(b"a" * 2_999_999 + b"b")
    assert model_mark(tmp_path) != first


@pytest.mark.parametrize(
    "name", ["starter", "../../etc", "Qwen/Qwen2.5-0.5B", "/a/b/c", "", "..", "C:\\x", "\x00"]
)
def test_a_models_name_never_leads_out_of_the_home(tmp_path: Path, name: str) -> None:
    folder = model_folder(tmp_path, name, "12345678")
    assert folder.parent == tmp_path / "models" and folder.resolve().parent == (tmp_path / "models").resolve()


def test_the_node_imports_no_engine_and_no_puzzle_library() -> None:
    script = (
        "import sys; import app.node.node, app.node.terminal.terminal, app.cli.run\n"
        "heavy = ('torch', 'transformers', 'peft', 'reasoning_gym', 'sympy', 'numpy')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr
