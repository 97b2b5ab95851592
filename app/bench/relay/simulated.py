"""Simulated keys: `python -m app.bench.relay.simulated URL FOLDER honest=10 terse=10` runs these numbers of
clients, each with its own key and outbox, that publish groups of their kind (`app.lab.attackers`) and sample
others' groups, until it is ended.

Those of the kind `renew` take another key after LIFE groups, before anybody has a record of them."""

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
ASKED = 4
LIFE = 6


async def run_author(url: str, folder: Path, number: int, kind: str) -> None:
    """Publishes and samples as one author, endlessly. The kind `renew` takes a new key every LIFE groups."""
    levels, life = dict(read_settings(locate("starter")).families), 0
    while True:
        seed = sha256(f"simulated {number} {life}".encode()).digest()
        attacker = Attacker(kind, seed, levels, group=8, longest=64, encode=_no_tokens)
        place = folder / f"{number}-{life}"
        await _publish(url, place, Identity(seed), attacker, LIFE if kind == "renew" else None)
        life += 1


async def _publish(url: str, place: Path, identity: Identity, attacker: Attacker, most: int | None) -> None:
    rng, made = Random(), 0
    place.mkdir(parents=True, exist_ok=True)
    outbox = Outbox(place / "outbox.sqlite")
    client = Client([url], identity, outbox, memory=place / "relays.json", rng=rng)
    running = asyncio.create_task(client.run())
    while not running.done() and (most is None or made < most):
        await asyncio.sleep(rng.uniform(*PAUSE_S))
        if client.status.connected and client.groups_to_publish():
            made += 1
            one = attacker.publish(rng.getrandbits(31), 2, [])[made % 2]  # `half` takes turns
            client.publish(one.group, one.claimed_G)
            await client.sample(ASKED, tuple(FAMILIES))
    if most is None:
        await running
    running.cancel()
    await asyncio.wait({running})
    outbox.close()


def _no_tokens(question: str, text: str) -> TokenSequence:
    return TokenSequence(prompt_T=[], completion_T=[])


async def main() -> None:
    url, folder, *kinds = sys.argv[1:]
    each = [kind for word in kinds for kind in [word.partition("=")[0]] * int(word.partition("=")[2])]
    await asyncio.gather(*(run_author(url, Path(folder), number, kind) for number, kind in enumerate(each)))


if __name__ == "__main__":
    asyncio.run(main())
