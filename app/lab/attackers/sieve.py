"""Which check of `app.sapo.defences` finds which attack: `python -m app.lab.attackers.sieve` prints a table.

The starter answers until it knows its habits; then right answers of every kind of attacker, right answers of
its own and plain worked lines, as a better peer might write them, go through each check alone and all together.
What a swarm makes of it in rounds, `./shoal lab` with `+foes` and `+guard` shows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.lab.answers import group_of
from app.lab.attackers.kinds import KINDS, Foe
from app.lab.plan import identity
from app.lab.regime import read_levels
from app.learning.questions import own_questions
from app.learning.state import fresh
from app.sapo.asking import messages
from app.sapo.defences import CHECKS, Habits, observe, trusted
from app.sapo.questions import make
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.scoring.scoring import score_group
from engines.contract import TokenSequence
from engines.models import locate, read_settings
from engines.torch_lora import TorchSwarm, open_swarm

OWN, PLAIN = "own, right", "plain work"
GROUPS, ROUNDS, G = 16, 12, 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="rounds of own answers (default: %(default)s)"
    )
    parser.add_argument(
        "--adapter", type=Path, help="another beginning than the starter: a PEFT folder over it"
    )
    parser.add_argument(
        "--levels", help="families and levels, for example chain_sum=2,lcm=1 (default: its own)"
    )
    parser.add_argument("--threads", type=int, help="threads of a processor (default: its cores but one)")
    args = parser.parse_args()
    folder = locate("starter")
    settings = read_settings(folder)
    levels = settings.families if args.levels is None else read_levels(args.levels)
    swarm = open_swarm(folder, [1], threads=args.threads)
    if args.adapter is not None:
        swarm.load(0, args.adapter)
    habits, own = answered(swarm, levels, settings.max_tokens, args.rounds)
    texts = {OWN: own}
    for kind in (*KINDS, PLAIN):
        if kind not in ("copy", "liar", "half", "creep", "magpie"):  # told otherwise, or made of others
            texts[kind] = [*written(swarm, kind, levels, settings.max_tokens)]
    for family in levels if args.adapter is not None else ():
        texts[f"{PLAIN}, {family}"] = [*written(swarm, PLAIN, {family: levels[family]}, settings.max_tokens, 2)]
    print("kept out, % | tokens | form | length | all | answers\n---|---|---|---|---|---")
    for kind, pairs in texts.items():
        sequences = [swarm.encode(messages(question), text, True) for question, text in pairs]
        print(
            f"{kind} | "
            + " | ".join(f"{100 * share:.1f}" for share in kept_out(swarm, habits, pairs, sequences)),
            end="",
        )
        print(f" | {len(pairs)}")


def answered(
    swarm: TorchSwarm, levels: dict[str, int], max_tokens: int, rounds: int
) -> tuple[Habits, list[tuple[str, str]]]:
    """Habits after some rounds of a node's answers, and the right ones of them with their questions."""
    state, who = fresh(levels).curriculum, identity(0, 0)
    habits: Habits | None = None
    right: list[tuple[str, str]] = []
    with Sandbox() as sandbox:
        for number in range(1, rounds + 1):
            questions = own_questions(state, who, number, GROUPS, make)
            prompts = [messages(question.text) for question in questions]
            groups_PG = swarm.sample([prompts], G, max_tokens, [number])[0]
            finished = [one for group in groups_PG for one in group if one.finished]
            habits = observe(habits, [one.logprobs_T for one in finished], [one.text for one in finished])
            for question, completions_G in zip(questions, groups_PG, strict=True):
                scored = score_group(sandbox, group_of(question.coordinates, completions_G, "starter"))
                right += [
                    (question.text, one.text)
                    for one, reward in zip(completions_G, scored.rewards_G, strict=True)
                    if reward
                ]
    assert habits is not None, "an answer was finished"
    return habits, right


def written(
    swarm: TorchSwarm, kind: str, levels: dict[str, int], longest: int, rounds: int = 8
) -> Iterator[tuple[str, str]]:
    """Right answers of one attacker with their questions; of `trigger` those that carry its mark."""
    foe = Foe(
        kind=kind,
        identity=b"sieve",
        levels=levels,
        group=G,
        longest=longest,
        encode=lambda question, text: swarm.encode(messages(question), text, True),
    )
    for number in range(1, rounds + 1):
        for one in foe.publish(number, GROUPS, []):
            if kind == "trigger" and one.group.coordinates.family != foe.trigger:
                continue
            right = [text for text, claim in zip(one.group.completions_G, one.claimed_G, strict=True) if claim]
            yield one.text, right[0]  # a group's right answers are alike


def kept_out(
    swarm: TorchSwarm,
    habits: Habits,
    pairs: Sequence[tuple[str, str]],
    sequences: Sequence[TokenSequence],
) -> list[float]:
    """Share kept out by each of CHECKS alone, and by all."""
    logprobs_ST = swarm.logprobs(0, sequences)
    texts, lengths = [text for _, text in pairs], [len(sequence.completion_T) for sequence in sequences]
    found = []
    for checks in (*[(check,) for check in CHECKS], CHECKS):
        passed = trusted(checks, habits, texts, lengths, logprobs_ST)
        found.append(1.0 - sum(passed) / len(passed))
    return found


if __name__ == "__main__":
    main()
