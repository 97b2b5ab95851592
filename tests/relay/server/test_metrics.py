from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from app.swarm.wire.protocol import Sample
from tests.relay.talking import Town, running, town, until

NAMES = """
    connections auth pub sample items_out bytes_in bytes_out verify_seconds loop_lag_seconds window_size
    window_age_seconds unique_sources engine_up bans outbound_dropped open_fds rss_bytes stored checks
    uptime_seconds engine_publish_seconds
"""


async def scrape(here: Town) -> dict[str, Any]:
    status, text = await here.get(here.relay.first["metrics"])
    assert status == 200
    families = list(text_string_to_metric_families(text))
    assert {f"relay_{name}" for name in NAMES.split()} <= {family.name for family in families}
    assert all(family.documentation for family in families)
    return {
        sample.name.removeprefix("relay_")
        + "".join(f":{value}" for value in sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_what_happens_is_counted(tmp_path: Path) -> None:
    async def story() -> None:
        with running("--metrics", "127.0.0.1:0", "--state", str(tmp_path / "state")) as relay:
            async with town(relay) as here:
                ann, bob = await here.peer(1), await here.peer(2)
                assert await ann.publish() == "accepted"
                assert len((await bob.say(Sample(rid=1, k=8))).items) == 1
                assert (await bob.say("{")).code == "invalid"
                found = await scrape(here)
                for name, value in {
                    "connections": 2,
                    "peers": 2,
                    "auth_total:welcome": 2,
                    "pub_total:accepted": 1,
                    "sample_total": 1,
                    "items_out_total": 1,
                    "window_size:gcd": 1,
                    "unique_sources": 1,
                    "stored_total": 1,
                    "engine_up": 1,
                    "engine_publish_seconds_count": 1,
                    "bans": 0,
                }.items():
                    assert found[name] == value, name
                assert 500 < found["bytes_in_total"] < 5000 < 1e6 and found["bytes_out_total"] > 1000
                assert 0 < found["engine_publish_seconds_sum"] < 60
                assert 0 < found["verify_seconds"] < 1 and found["rss_bytes"] > 2**20 and found["open_fds"] > 5

                async def checked() -> bool:
                    return (await scrape(here)).get("checks_total:honest") == 1

                await until(checked)
                assert (await here.get(relay.first["metrics"].removesuffix("/metrics") + "/"))[0] == 404
                assert (await here.get("/metrics"))[0] == 404  # not where everybody comes
                status, page = await here.get("/")
                assert status == 200 and "<strong>2</strong>nodes" in page

    asyncio.run(story())
