"""Simulated keys: `python -m app.bench.relay.simulated URL FOLDER honest=10 terse=10` runs these numbers of
clients, each with its own key and outbox, that publish groups of their kind (`app.lab.attackers`) and sample
others' groups, until it is ended."""

from __future__ import annotations

import asyncio
import sys
from hashlib import sha256
from pathlib import Path
from random import Random

from app.lab.attackers import Attacker
from app.models.shelf import locate
from app.sapo.families import FAMILIES
from app.swarm.client.client import Client
from app.swarm.client.outbox import Outbox
from app.swarm.identity.identity import Identity
from engines.contract import TokenSequence
from engines.models.folder import read_settings

PAUSE_S = (4.0, 12.0)
"""Minimum and maximum seconds between two groups of one key."""
GROUPS_ASKED = 4


async def run_author(url: str, folder: Path, number: int, kind: str) -> None:
    """Publishes and samples as one author, endlessly."""
    seed, rng, place = sha256(f"simulated {number} 0".encode()).digest(), Random(), folder / f"{number}"
    levels = dict(read_settings(locate("starter")).families)
    attacker = Attacker(kind, seed, levels, group=8, longest=64, encode=_no_tokens)
    place.mkdir(parents=True, exist_ok=True)
    client = Client(
        [url], Identity(seed), Outbox(place / "outbox.sqlite"), memory=place / "relays.json", rng=rng
    )
    running = asyncio.create_task(client.run())
    while not running.done():
        await asyncio.sleep(rng.uniform(*PAUSE_S))
        if client.status.connected and client.groups_to_publish():
            (one,) = attacker.publish(rng.getrandbits(31), 1, [])
            client.publish(one.group, one.claimed_G)
            await client.sample(GROUPS_ASKED, tuple(FAMILIES))
    await running


def _no_tokens(question: str, text: str) -> TokenSequence:
    return TokenSequence(prompt_T=[], completion_T=[])


async def main() -> None:
    url, folder, *kinds = sys.argv[1:]
    each = [kind for word in kinds for kind in [word.partition("=")[0]] * int(word.partition("=")[2])]
    await asyncio.gather(*(run_author(url, Path(folder), number, kind) for number, kind in enumerate(each)))


if __name__ == "__main__":
    asyncio.run(main())
