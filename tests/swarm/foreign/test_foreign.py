"""A client in another language, written from PROTOCOL.md, runs the conformance cases and joins a relay."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from app import swarm
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.intake.intake import Intake
from tests.swarm.relays import ANN, Relay, group, running, until

HERE = Path(__file__).parent
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")


def run(*arguments: str, given: str = "") -> str:
    done = subprocess.run(
        [str(NODE), "--experimental-websocket", *arguments],
        cwd=HERE,
        input=given,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_node
def test_it_agrees_on_every_case() -> None:
    passed, failed = run("cases.mjs", str(Path(swarm.__file__).parent / "conformance")).split()[-4::2]
    assert int(passed) > 150 and failed == "0"


@needs_node
def test_it_joins_publishes_and_samples(tmp_path: Path, sandbox: Sandbox) -> None:
    relay = Relay("--state", str(tmp_path / "relay"))
    relay.start()
    theirs = group(2, "worked out elsewhere")
    wanted = {
        "task": msgspec.structs.asdict(theirs.coordinates),
        "model": "their-lab/their-model",
        "completions": theirs.completions_G,
        "finished": theirs.finished_G,
        "rewards": (1, 0),
    }

    async def story() -> None:
        async with running(tmp_path / "node", [relay.url], ANN) as (ann, _):
            await until(lambda: ann.status.connected, "it is there")
            assert ann.publish(group(0), (1, 0))
            await until(lambda: ann.status.acknowledged == 1, "the relay took it")
            said = await asyncio.to_thread(run, "client.mjs", relay.url, given=json.dumps(wanted))
            answer, found = map(json.loads, said.splitlines())
            assert (answer["t"], answer["code"]) == ("ok", "accepted")
            assert found["completions"] == list(group(0).completions_G) and found["rewards"] == [1, 0]
            batch = await ann.sample(4)
            assert batch is not None
            intake = Intake(sandbox, "shoal", {ANN.key})
            sifted = await asyncio.to_thread(intake.check_batch, batch.items, ann.now_ms)
            assert not sifted.refused
            (checked,) = sifted.checked
            assert (checked.id, checked.model) == (answer["id"], "their-lab/their-model")
            assert checked.completions_G == theirs.completions_G and checked.rewards_G == (1, 0)

    try:
        asyncio.run(story())
    finally:
        relay.kill()
