"""A person's group on its way: over a relay that takes it, and through a peer's checks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from app.relay.session import session as session_module
from app.relay.session.shared import RelayState
from app.sapo.groups import HUMAN_MODEL, GroupRecord, is_single_right_answer
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.intake.intake import Intake
from app.swarm.wire.frames import decode_relay_frame
from app.swarm.wire.protocol import PEOPLE, Hello
from tests.swarm.relays import ANN, BOB, Relay, group, running, until


def person(number: int = 0) -> tuple[object, tuple[int, ...]]:
    made = group(number)
    return (
        msgspec.structs.replace(
            made, completions_G=made.completions_G[:1], finished_G=(True,), model=HUMAN_MODEL
        ),
        (1,),
    )


def test_a_persons_group_travels_and_passes_a_peers_checks(tmp_path: Path) -> None:
    relay = Relay("--state", str(tmp_path / "relay"))
    relay.start()

    async def story() -> None:
        async with (
            running(tmp_path / "a", [relay.url], ANN) as (ann, _),
            running(tmp_path / "b", [relay.url], BOB) as (bob, _),
        ):
            await until(lambda: ann.status.connected and bob.status.connected, "both are there")
            assert ann.accepts_human_groups
            found, rewards = person()
            assert ann.publish(found, rewards)  # type: ignore[arg-type]
            await until(lambda: ann.status.acknowledged == 1, "the relay took it")
            assert ann.status.refused == 0
            batch = await bob.sample(4)
            assert batch is not None and len(batch.items) == 1
            with Sandbox() as sandbox:
                intake = Intake(sandbox, "shoal", {BOB.key})
                sifted = await asyncio.to_thread(intake.check_batch, batch.items, bob.now_ms)
            (checked,) = sifted.checked
            assert isinstance(checked, GroupRecord) and is_single_right_answer(checked.rewards_G)
            assert checked.model == HUMAN_MODEL and checked.author == ANN.name

    try:
        asyncio.run(story())
    finally:
        relay.kill()


def test_a_relay_says_that_it_takes_people() -> None:
    hello = decode_relay_frame(session_module.Session(RelayState(bytes(32), "shoal", "e"), "127.0.0.1").hello())
    assert isinstance(hello, Hello) and PEOPLE in hello.caps
