"""A program that is no model takes part: python solver.py shoal://join/... [GROUPS]

Needs the library shoal-swarm (resources/help/trainers.md). Euclid's algorithm solves greatest common divisors,
and shows its work. A group needs right and wrong answers, so half of the time this solver slips, as a pupil
would. Others see it as "euclid", and learn from the steps."""

import random
import re
import sys

from shoal_swarm import Group, join


def euclid(a: int, b: int, slips: bool) -> str:
    """Returns the work and the answer: "58 % 23 = 12, 23 % 12 = 11, 12 % 11 = 1, 11 % 1 = 0 #1"."""
    steps = []
    while b:
        rest = a % b + (slips and not steps)
        steps.append(f"{a} % {b} = {rest}")
        a, b = b, rest
    return ", ".join(steps) + f" #{a}"


where, wanted = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20

with join(where, name="euclid", home="~/.shoal-swarm-euclid") as sea:
    stored = 0
    while stored < wanted:
        groups = []
        for question in sea.questions(4, families=["gcd"], level=1):
            numbers = [int(one) for one in re.findall(r"\d+", question.text)][:2]
            answers = [euclid(*random.sample(numbers, 2), slips=at % 2 == 1) for at in range(8)]
            groups.append(Group(coordinates=question.coordinates, completions=answers))
        published = sea.publish(groups)
        stored += published.stored
        print(f"{stored} groups published; left out: {published.left_out}", flush=True)
        if "rate" in published.left_out:
            sea.sample(1, wait_s=30.0)  # a relay takes 30 groups a minute
