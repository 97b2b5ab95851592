"""Specialists to experts (HDEE, arXiv 2502.19385): an adapter for each family, unequal where families are.

Every expert is one node that trains alone on one family. The rounds of all experts together are fixed: `equal`
gives each the same rounds and rank, `unequal` gives hard families more rounds and a higher rank, hard by the
starter's own measured success. A generalist gets all the rounds on all families. At inference an expert is
found by the family's name, by which adapter finds the prompt least surprising, or all answer and vote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from app.common import files
from app.lab import wording
from app.lab.answers import group_of
from app.lab.arms import parse_arm
from app.lab.experiment import Experiment, Score
from app.lab.plan import Plan, identity
from app.lab.statistics import average
from app.lab.wording import percent
from app.sapo import seeds
from app.sapo.asking import extract_answer, messages
from app.sapo.probe import probe_questions
from app.sapo.questions import Asked
from engines.contract import Completion, TokenSequence
from engines.torch_lora import TorchSwarm, open_swarm

RANKS = (4, 8, 16)
"""Of the easiest, the middle and the hardest third; equal experts have the middle one."""
ALONE = "8/0@default"
"""What every expert and the generalist do: rounds of the app's recipe without peers."""
FILE = "experts.json"
"""The plan, in the folder of the results."""
WAYS = ("generalist", "generalist, vote", "by family", "by prompt", "by vote")


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What one expert gets."""

    rounds: int
    rank: int


class Trained(msgspec.Struct, frozen=True, kw_only=True):
    """One result: an allocation with a seed, and the share of the mixed held-out questions that each way of
    answering solves.

    `routed` is the share of questions that the prompt's likelihood sends to their family's expert.
    """

    allocation: str
    seed: int
    shares: dict[str, Share]
    solved: dict[str, float]
    families: dict[str, dict[str, float]]
    """The same per family."""
    routed: float


def equal(families: Sequence[str], rounds: int) -> dict[str, Share]:
    """The same for all: `rounds` divided, rank in the middle."""
    return {family: Share(rounds=rounds // len(families), rank=RANKS[1]) for family in families}


def unequal(solved: Mapping[str, float], rounds: int) -> dict[str, Share]:
    """Rounds in proportion to the share that is not solved yet, ranks by thirds of difficulty.

    >>> found = unequal({"a": 0.9, "b": 0.5, "c": 0.1}, 150)
    >>> [(family, share.rounds, share.rank) for family, share in found.items()]
    [('a', 10, 4), ('b', 50, 8), ('c', 90, 16)]
    """
    missing = {family: 1.0 - share for family, share in solved.items()}
    total = sum(missing.values()) or 1.0
    ranked = sorted(missing, key=lambda family: (missing[family], family))
    return {
        family: Share(
            rounds=max(1, round(rounds * missing[family] / total)),
            rank=RANKS[ranked.index(family) * len(RANKS) // len(ranked)],
        )
        for family in solved
    }


def vote(answers: Sequence[str | None]) -> int:
    """Position of the first answer that most agree on; answers without one do not vote.

    >>> vote(["7", "8", None, "8"]), vote(["7", "8"]), vote([None, None])
    (1, 0, 0)
    """
    counted = Counter(answer for answer in answers if answer is not None)
    if not counted:
        return 0
    most = max(counted.values())
    return next(k for k, answer in enumerate(answers) if answer is not None and counted[answer] == most)


def train(
    plan: Plan,
    model: Path,
    allocation: str,
    seed: int,
    several: Sequence[Sequence[Completion]],
    score: Score,
    threads: int | None,
    tell: Callable[[str], None],
) -> Trained:
    """Trains the experts of one allocation and measures all ways. `plan.rounds` is the budget of all experts
    together; `several` are the generalist's answers, one to each question for every expert that votes."""
    families = sorted(plan.levels)
    questions = probe_questions(plan.levels, plan.probe_items)
    start = _alone(plan, plan.levels, 0, RANKS[1], model, seed, score, threads)
    solved = _by_family(questions, _rewards(questions, _answers(start, questions, plan, seed, "start"), score))
    shares = equal(families, plan.rounds) if allocation == "equal" else unequal(solved, plan.rounds)
    rights: dict[str, list[int]] = {}
    answers: dict[str, list[str | None]] = {}
    nats: dict[str, list[float]] = {}
    for family in families:
        tell(
            f"{allocation} seed {seed}: {family}, {shares[family].rounds} rounds at rank {shares[family].rank}"
        )
        levels = {family: plan.levels[family]}
        expert = _alone(plan, levels, shares[family].rounds, shares[family].rank, model, seed, score, threads)
        completions = _answers(expert, questions, plan, seed, family)
        rights[family] = _rewards(questions, completions, score)
        answers[family] = [extract_answer(completion.text) for completion in completions]
        nats[family] = _surprise(expert, questions)
    several_right = [_rewards(questions, completions, score) for completions in several]
    picked: dict[str, list[int]] = {way: [] for way in WAYS}
    routed = 0
    for at, question in enumerate(questions):
        own = question.coordinates.family
        likely = min(families, key=lambda family: nats[family][at])
        routed += likely == own
        elected = families[vote([answers[family][at] for family in families])]
        most = vote([extract_answer(completions[at].text) for completions in several])
        for way, right in zip(
            WAYS,
            (
                several_right[0][at],
                several_right[most][at],
                rights[own][at],
                rights[likely][at],
                rights[elected][at],
            ),
            strict=True,
        ):
            picked[way].append(right)
    return Trained(
        allocation=allocation,
        seed=seed,
        shares=shares,
        solved={way: sum(right) / len(right) for way, right in picked.items()},
        families={way: _by_family(questions, right) for way, right in picked.items()},
        routed=routed / len(questions),
    )


def conduct(
    plan: Plan,
    model: Path,
    run_seeds: Sequence[int],
    folder: Path,
    score: Score,
    threads: int | None,
    tell: Callable[[str], None],
) -> list[Trained]:
    """Every allocation with every seed, each kept in a file of its own and not made again."""
    folder.mkdir(parents=True, exist_ok=True)
    files.write_json(folder / FILE, plan)
    made = []
    for seed in run_seeds:
        several: list[list[Completion]] = []
        for allocation in ("equal", "unequal"):
            kept = folder / f"{allocation}.seed{seed}.json"
            if kept.exists():
                made.append(msgspec.json.decode(kept.read_bytes(), type=Trained))
                continue
            if not several:
                tell(f"seed {seed}: the generalist, {plan.rounds} rounds")
                several = _generalist(plan, model, seed, score, threads)
            found = train(plan, model, allocation, seed, several, score, threads, tell)
            files.write_json(kept, found)
            made.append(found)
    return made


def table(made: Sequence[Trained]) -> str:
    """Markdown: per cent of the mixed held-out questions, mean over seeds, by allocation and way."""
    rows = []
    for allocation in dict.fromkeys(one.allocation for one in made):
        some = [one for one in made if one.allocation == allocation]
        cells = [percent(average([one.solved[way] for one in some])) for way in WAYS]
        rows.append([allocation, *cells, percent(average([one.routed for one in some]), 0), str(len(some))])
    head = f"| allocation | {' | '.join(WAYS)} | routed right | seeds |"
    return "\n".join(wording.table(head, rows)) + "\n"


def _generalist(
    plan: Plan, model: Path, seed: int, score: Score, threads: int | None
) -> list[list[Completion]]:
    """What one node that trained on all families answers, as often as experts vote."""
    questions = probe_questions(plan.levels, plan.probe_items)
    swarm = _alone(plan, plan.levels, plan.rounds, RANKS[-1], model, seed, score, threads)
    return [_answers(swarm, questions, plan, seed, f"generalist {k}") for k in range(len(plan.levels))]


def _alone(
    plan: Plan,
    levels: Mapping[str, int],
    rounds: int,
    rank: int,
    model: Path,
    seed: int,
    score: Score,
    threads: int | None,
) -> TorchSwarm:
    """One node after `rounds` rounds alone on these levels."""
    adapter = seeds.sampling_seed(identity(seed, 0), 0, "adapter")
    swarm = open_swarm(model, [adapter], rank=rank, threads=threads)
    if rounds:
        own = msgspec.structs.replace(
            plan,
            levels=dict(levels),
            nodes=1,
            rounds=rounds,
            rank=rank,
            probe_every=rounds,
            probe_items=8,
            tried=1,
        )
        for _ in Experiment(own, parse_arm(ALONE, "default"), seed, swarm, score).rounds():
            pass
    return swarm


def _answers(
    swarm: TorchSwarm, questions: Sequence[Asked], plan: Plan, seed: int, who: str
) -> list[Completion]:
    prompts = [messages(question.text) for question in questions]
    chosen = seeds.sampling_seed(identity(seed, 0), plan.rounds, f"experts {who}")
    return [answers[0] for answers in swarm.sample([prompts], 1, plan.max_tokens, [chosen])[0]]


def _rewards(questions: Sequence[Asked], completions: Sequence[Completion], score: Score) -> list[int]:
    return [
        score(group_of(question.coordinates, [completion], "experts")).rewards_G[0]
        for question, completion in zip(questions, completions, strict=True)
    ]


def _surprise(swarm: TorchSwarm, questions: Sequence[Asked]) -> list[float]:
    """Mean negative log-probability of each prompt's tokens after the first, nats."""
    prompts = [swarm.prompt_tokens(messages(question.text)) for question in questions]
    read = swarm.logprobs(
        0, [TokenSequence(prompt_T=tokens[:1], completion_T=tokens[1:]) for tokens in prompts]
    )
    return [-sum(logprobs_T) / max(1, len(logprobs_T)) for logprobs_T in read]


def _by_family(questions: Sequence[Asked], right: Sequence[int]) -> dict[str, float]:
    found: dict[str, list[int]] = {}
    for question, reward in zip(questions, right, strict=True):
        found.setdefault(question.coordinates.family, []).append(reward)
    return {family: round(average(rewards), 4) for family, rewards in sorted(found.items())}
