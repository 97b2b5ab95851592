"""A process that fills and empties an outbox until it is killed, and says what it has done once that is safe.

    python publisher.py FILE

Lines: `added ID NUMBER`, `answering ID`, `answered ID`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from app.swarm.client.outbox import Outbox
from app.swarm.identity.identity import Identity
from app.swarm.wire.body import Body, Envelope, seal
from app.swarm.wire.limits import Code

ME = Identity(bytes(range(32)))
GROUP = GroupRecord(
    coordinates=Coordinates(family="gcd", level=0, seed=2**41, index=0),
    completions_G=("#1" * 500, "#2"),
    finished_G=(True, True),
    model="starter",
)


def sealed(key_seq: int) -> Envelope:
    return seal(Body.of(GROUP, (1, 0), "example-swarm", key_seq, created_ms=0), ME.seed())


def main(path: Path) -> None:
    outbox = Outbox(path)
    print("open", flush=True)
    while True:
        for _ in range(3):
            message = outbox.add(ME.key, sealed)
            print("added", message.id, message.key_seq, flush=True)
        for message in outbox.take(2):
            print("answering", message.id, flush=True)
            outbox.settle(message.id, Code.ACCEPTED)
            print("answered", message.id, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
