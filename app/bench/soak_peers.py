"""Peers of the soak: `python -m app.bench.soak_peers URL FOLDER N` is N clients with keys and outboxes of their
own that publish honest groups and ask for others', until it is killed."""

from __future__ import annotations

import asyncio
import sys
from hashlib import sha256
from pathlib import Path
from random import Random

from app.lab.foes import Foe
from app.sapo.families import FAMILIES
from app.swarm.client import Client
from app.swarm.identity import Identity
from app.swarm.outbox import Outbox
from engines.contract import TokenSequence

PAUSE_S = (4.0, 12.0)
"""Between two groups of one peer."""
ASKED = 4


async def live(url: str, folder: Path, number: int) -> None:
    """One peer."""
    seed = sha256(f"soak {number}".encode()).digest()
    foe = Foe("honest", seed, {"chain_sum": 1, "gcd": 1}, group=8, longest=64, encode=_no_tokens)
    rng = Random()
    folder.mkdir(parents=True, exist_ok=True)
    client = Client(
        [url], Identity(seed), Outbox(folder / "outbox.sqlite"), memory=folder / "relays.json", rng=rng
    )
    running = asyncio.create_task(client.run())
    while not running.done():
        await asyncio.sleep(rng.uniform(*PAUSE_S))
        if client.status.connected and client.room():
            for one in foe.publish(rng.getrandbits(31), 1, []):
                client.publish(one.group, one.claimed_G)
            await client.sample(ASKED, tuple(FAMILIES))
    await running


def _no_tokens(question: str, text: str) -> TokenSequence:
    return TokenSequence(prompt_T=[], completion_T=[])


async def main() -> None:
    url, folder, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    await asyncio.gather(*(live(url, folder / str(number), number) for number in range(count)))


if __name__ == "__main__":
    asyncio.run(main())
