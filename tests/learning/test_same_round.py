"""The app's round and the lab's are one: three app nodes and a lab swarm, with the same identities and a model
that answers by question, node and round alone, take the same steps with the same weights."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any, cast

import msgspec
import pytest

from app.lab.arms import parse_arm
from app.lab.plan import StudyPlan, identity
from app.lab.rounds.experiment import Experiment
from app.learning.choosing import PeerRecords
from app.learning.questions import own_questions
from app.node.record.state import NodeState
from app.node.round.round import play_round
from app.node.round.tools import RoundTools, score
from app.node.trainer.messages import GroupTokens, PeerTexts, Sampled
from app.sapo import curriculum, seeds
from app.sapo.asking import messages
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from app.sapo.recipes import RECIPES, Recipe
from app.sapo.scoring.sandbox import Sandbox, score_group
from engines.contract import Batch, Completion, EngineInfo, Messages, StepStats
from tests.lab.fake_swarm import FakeSwarm
from tests.node.bench import SETTINGS

ROUNDS, NODES, OWN, PEER, G = 6, 3, 4, 4, 8
LEVELS = {"chain_sum": 1}


class Seeded(FakeSwarm):
    """Answers follow from the question, the node and the round, however they are asked for."""

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes)
        self.round = 0

    def sample(
        self, prompts_NP: Sequence[Sequence[Messages]], n: int, max_tokens: int, seeds_N: Sequence[int]
    ) -> list[list[list[Completion]]]:
        if n == G and all(map(len, prompts_NP)) and len(prompts_NP[0]) == OWN:
            self.round += 1
        return [
            [self.answers(node, prompt, n) for prompt in prompts_P] for node, prompts_P in enumerate(prompts_NP)
        ]

    def answers(self, node: int, prompt: Messages, n: int) -> list[Completion]:
        rng = Random(seeds.hashed_seed("seeded", node, self.round, prompt[-1]["content"]))
        return [self._answer(node, prompt, rng) for _ in range(n)]


class Trainer:
    """The link of one app node to its place in a swarm. Answers were given before anybody learned."""

    def __init__(self, swarm: Seeded, node: int, given: dict[str, list[Completion]]) -> None:
        self.swarm, self.node, self.given = swarm, node, given

    async def sample(self, prompts_P: list[Messages], *_: object, **__: object) -> Sampled:
        groups_PG = [self.given[prompt[-1]["content"]] for prompt in prompts_P]
        prompts_PT = [self.swarm.prompt_tokens(prompt) for prompt in prompts_P]
        return Sampled(number=0, groups_PG=groups_PG, prompts_PT=prompts_PT, tokens=1, seconds=1.0)

    async def read(self, groups_P: list[PeerTexts], max_tokens: int, *, logprobs: bool) -> list[GroupTokens]:
        found = []
        for group in groups_P:
            pairs = zip(group.completions_G, group.finished_G, strict=True)
            sequences_G = [self.swarm.encode(group.prompt, text, finished) for text, finished in pairs]
            given = self.swarm.logprobs(self.node, sequences_G) if logprobs else None
            found.append(GroupTokens(sequences_G=sequences_G, logprobs_GT=given))
        return found

    async def step(self, batch: Batch) -> StepStats:
        return self.swarm.step(self.node, batch)


Published = list[tuple[int, int, GroupRecord]]
"""Node, round and group."""


class Pool:
    """What the others published, as a node's swarm hands it out."""

    def __init__(self, node: int, published: Published) -> None:
        self.node, self.published, self.records = node, published, PeerRecords()
        self.buffer = self
        self.number = 0
        self.had: set[Coordinates] = set()

    def take_groups(self, recipe: Recipe, most: int, rng: Random) -> list[GroupRecord]:
        pool = [
            (node, number, own)
            for node, number, own in self.published
            if node != self.node and self.number - number <= (recipe.max_age or 0)
            if own.coordinates not in self.had
        ]
        groups = [msgspec.structs.replace(own, key=str(node)) for node, _, own in pool]
        ages = [self.number - number for _, number, _ in pool]
        chosen = [pool[at] for at in self.records.choose(recipe, groups, ages, most, rng)]
        self.had.update(own.coordinates for _, _, own in chosen)
        return [msgspec.structs.replace(own, author=str(node), key=str(node)) for node, _, own in chosen]


def published(swarm: Seeded, node: int, number: int, sandbox: Sandbox) -> tuple[dict[str, Any], Published]:
    """A node's answers of a round by question, and its groups."""
    state = curriculum.start(LEVELS)
    questions = own_questions(state, identity(0, node), number, OWN, sandbox.questions)
    answers_PG = [swarm.answers(node, messages(question.text), G) for question in questions]
    scored_P = score(tools(Trainer(swarm, node, {}), node, sandbox, "faithful"), questions, answers_PG)
    given = {question.text: answers_G for question, answers_G in zip(questions, answers_PG, strict=True)}
    pairs = zip(questions, scored_P, strict=True)
    return given, [(node, number, msgspec.structs.replace(own, question=asked.text)) for asked, own in pairs]


def tools(link: Trainer, node: int, sandbox: Sandbox, recipe: str, pool: Pool | None = None) -> RoundTools:
    given = {"families": LEVELS, "groups": OWN, "external": PEER, "max_tokens": 16, "recipe": recipe}
    info = {"name": "fake", "device": "CPU", "dtype": "float32", "model": "fake"}
    sizes = dict.fromkeys(("parameters", "trainable", "threads", "memory_budget_mb"), 1)
    return RoundTools(
        link=cast(Any, link),
        engine=EngineInfo(**info, **sizes),
        sandbox=sandbox,
        settings=msgspec.structs.replace(SETTINGS, **given),
        identity=identity(0, node),
        report=lambda *_: None,
        peers=cast(Any, pool),
    )


def app_batches(sandbox: Sandbox, recipe: str) -> list[tuple[int, Batch]]:
    """Every round all three answer and publish; then one after the other learns, as in the lab."""
    swarm, everything = Seeded(NODES), cast(Published, [])
    pools = [Pool(node, everything) for node in range(NODES)]
    states = [
        NodeState(round=0, curriculum=curriculum.start(LEVELS), identity=str(node)) for node in range(NODES)
    ]
    for number in range(1, ROUNDS + 1):
        swarm.round = number
        fresh = [published(swarm, node, number, sandbox) for node in range(NODES)]
        for _, groups in fresh:
            everything += groups
        for node, (given, _) in enumerate(fresh):
            pools[node].number = number
            link = Trainer(swarm, node, given)
            played = asyncio.run(play_round(tools(link, node, sandbox, recipe, pools[node]), states[node]))
            states[node] = played.state
            for group, right in zip(played.mixed.groups_P, played.weighed.right_P, strict=True):
                pools[node].records.record_use(group.key, *right)
    return swarm.batches


def lab_batches(sandbox: Sandbox, recipe: str) -> list[tuple[int, Batch]]:
    swarm = Seeded(NODES)
    plan = StudyPlan(
        model="fake",
        weights="",
        questions="",
        levels=LEVELS,
        nodes=NODES,
        rounds=ROUNDS,
        group=G,
        learning_rate=SETTINGS.learning_rate,
        rank=None,
        max_tokens=16,
        probe_every=99,
        probe_items=3,
        window=None,
        attempts=1,
    )
    falls = RECIPES[recipe].falls
    arm = parse_arm(f"{OWN}/{PEER}" + (f"+fall={falls}" if falls else ""), recipe)
    list(Experiment(plan, arm, 0, swarm, partial(score_group, sandbox)).rounds())
    return swarm.batches


@pytest.mark.parametrize("recipe", ["default", "faithful"])
def test_the_app_and_the_lab_weigh_the_same_groups_alike(
    sandbox: Sandbox, recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curriculum, "MIN_WEIGHT", 1.0)  # a study asks all families alike
    app, lab = app_batches(sandbox, recipe), lab_batches(sandbox, recipe)
    assert len(app) > NODES * ROUNDS / 2
    assert app == lab
    asked = [
        {tuple(row.prompt_T) for who, batch in app if who == node for row in batch.rows_S} for node in (0, 1)
    ]
    assert len(asked[0] & asked[1]) >= 4, "nodes learned from each other"
