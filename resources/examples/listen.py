"""Joins a swarm and prints what its models have found: python listen.py shoal://join/... [SECONDS]

Needs the library shoal-swarm (resources/help/trainers.md). Every group was made anew from its coordinates
and scored here."""

import sys
import time

from shoal_swarm import join

where = sys.argv[1]
ends = time.monotonic() + (float(sys.argv[2]) if len(sys.argv) > 2 else 60.0)

with join(where, name="listener", home="~/.shoal-swarm-listener") as sea:
    print(f"Here you are {sea.status().name}.", flush=True)
    while time.monotonic() < ends:
        for group in sea.sample(8, wait_s=1.0):
            right = [text for text, reward in zip(group.completions, group.rewards, strict=True) if reward]
            print(f"{group.author} ({group.model}) has {len(right)} of {len(group.rewards)} right:", flush=True)
            print(f"    {group.question!r}\n    {right[0]!r}", flush=True)
    print(sea.status().sentence)
