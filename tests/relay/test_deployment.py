"""The files in packaging/relay, as far as a machine can read them: by systemd, by Caddy, by our own command."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli import relay
from app.cli.__main__ import Parser
from tests.relay import debian
from tests.relay.natsserver import Server, free_ports, program
from tests.relay.store.test_kills import Crew, windows_hold
from tests.swarm.relays import Relay

ROOT = Path(__file__).parents[2]
HERE = ROOT / "packaging" / "relay"


def parsed(arguments: list[str]) -> Any:
    parser = Parser()
    relay.add_arguments(parser)
    return parser.parse_args(arguments)


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((HERE / "compose.yaml").read_text())


def test_relays_of_compose_start_with_options_that_exist_and_one_key(compose: Any) -> None:
    services = compose["services"]
    commands = [services[name]["command"] for name in services if name.startswith("relay-")]
    assert len(commands) >= 2 and all(one == commands[0] for one in commands)
    filled = [re.sub(r"\$\{SHOAL_DOMAIN[^}]*\}", "relay.example", word) for word in commands[0]]
    filled = [re.sub(r"\$\{SHOAL_SWARM:-(\w+)\}", r"\1", word) for word in filled]
    args = parsed(filled)
    assert (args.relay_key, args.swarm, args.host) == (Path("/keys/relay.key"), "shoal", "0.0.0.0")
    assert services["relay-2"]["depends_on"]["relay-1"]["condition"] == "service_healthy", "one makes it"
    assert args.backplane == ("nats://nats:4222",)


def test_only_the_proxy_is_open_to_the_world_and_only_relays_reach_nats(compose: Any) -> None:
    services = compose["services"]
    assert [name for name, one in services.items() if "ports" in one] == ["caddy"]
    assert services["nats"]["networks"] == ["back"] and compose["networks"]["back"]["internal"]
    assert "back" not in services["caddy"]["networks"]
    (subnet,) = [one["subnet"] for one in compose["networks"]["front"]["ipam"]["config"]]
    assert f"--trusted-proxy={subnet}" in services["relay-1"]["command"]
    names = set(services) | set(compose["volumes"])
    mounted = [mount.split(":")[0] for one in services.values() for mount in one.get("volumes", [])]
    for source in mounted:
        assert source in names or (HERE / source).exists(), source


def test_caddy_reads_its_files(tmp_path: Path, compose: Any) -> None:
    caddy = debian.program("caddy", "CADDY", "usr/bin/caddy")
    environment = {**os.environ, "SHOAL_DOMAIN": "relay.example", "HOME": str(tmp_path)}
    for name in ("Caddyfile", "Caddyfile.single"):
        done = subprocess.run(
            [caddy, "validate", "--adapter", "caddyfile", "--config", str(HERE / name)],
            env=environment, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0 and "Valid configuration" in done.stdout + done.stderr, done.stderr
    upstreams = set(re.findall(r"relay-\d+(?=:8777)", (HERE / "Caddyfile").read_text()))
    assert upstreams == {name for name in compose["services"] if name.startswith("relay-")}


def test_nats_reads_its_file(tmp_path: Path) -> None:
    server = program()
    done = subprocess.run(
        [server, "-t", "-c", str(HERE / "nats.conf")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_systemd_reads_its_unit_and_the_relay_its_options(tmp_path: Path) -> None:
    text = (HERE / "shoal-relay.service").read_text()
    (start,) = re.findall(r"(?m)^ExecStart=(.*)$", text)
    words = shlex.split(start.replace("${STATE_DIRECTORY}", "/var/lib/x").replace("$RELAY", "--contact me"))
    assert words[:4] == ["/opt/shoal/.venv/bin/python", "-m", "app.cli", "relay"]
    args = parsed(words[4:])
    assert (args.state, args.host, args.contact) == (Path("/var/lib/x"), "127.0.0.1", "me")
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze")
    here = text.replace("/opt/shoal/.venv/bin/python", sys.executable).replace("/opt/shoal", str(ROOT))
    unit = tmp_path / "shoal-relay.service"
    unit.write_text(here)
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "shoal-relay.service" not in done.stderr, done.stderr


LOADED = """
import sys
import app.cli.relay, app.relay.server.serving, app.relay.server.metrics
import app.relay.store.jetstream, app.relay.store.sqlite
import app.swarm.invite.discovery
from app.sapo.families import FAMILIES
from app.sapo.questions import draw
for family in FAMILIES:
    draw(family, 0, 2**41)
print(*{name.partition(".")[0] for name in sys.modules})
"""


def test_the_image_has_what_a_relay_loads_in_the_versions_of_everybody() -> None:
    def pins(file: Path) -> dict[str, str]:
        return dict(re.findall(r"(?m)^([a-z0-9-]+)==(\S+)$", file.read_text()))

    few, all_ = pins(HERE / "requirements.txt"), pins(ROOT / "packaging" / "requirements" / "base.txt")
    assert few.items() <= all_.items()
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True)
    owners = importlib.metadata.packages_distributions()
    needed = {owner.lower().replace("_", "-") for name in done.stdout.split() for owner in owners.get(name, [])}
    assert needed - set(few) - {"reasoning-gym", "backports.tarfile", "backports-tarfile"} == set()
    copied = re.findall(r"(?m)^COPY (.*) \S+$", (HERE / "Dockerfile").read_text())
    for source in " ".join(copied).split():
        assert (ROOT / source).exists(), source
    rooms = {"app", "engines"} & {*done.stdout.split()}
    assert rooms <= {*copied}
    assert {f"!{room}" for room in rooms} <= {*(HERE / "Dockerfile.dockerignore").read_text().split()}


@pytest.mark.long
def test_nodes_reach_two_relays_through_the_caddyfile_and_one_relay_dies(tmp_path: Path) -> None:
    """The Caddyfile as it is, but without TLS and with this computer's ports."""
    caddy = debian.program("caddy", "CADDY", "usr/bin/caddy")
    server = Server(tmp_path / "nats", *free_ports(1))
    server.start()
    relays = [Relay("--backplane", server.url, "--trusted-proxy", "127.0.0.1") for _ in "12"]
    (port,) = free_ports(1)
    proxy = None
    try:
        text = "{\n\tadmin off\n}\n" + (HERE / "Caddyfile").read_text()
        for n, relay in enumerate(relays):
            relay.start()
            text = text.replace(f"relay-{n + 1}:8777", f"127.0.0.1:{relay.port}")
        (tmp_path / "Caddyfile").write_text(text)
        environment = {**os.environ, "SHOAL_DOMAIN": f"http://127.0.0.1:{port}", "HOME": str(tmp_path)}
        with (tmp_path / "log").open("wb") as log:
            proxy = subprocess.Popen(
                [caddy, "run", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")],
                env=environment, stdout=log, stderr=log,
            )  # fmt: skip

        async def strike() -> None:
            await asyncio.sleep(1.0)
            relays[0].kill()

        async def story() -> None:
            crew = Crew(tmp_path, [f"ws://127.0.0.1:{port}/v1/ws"], 4)
            await crew.work(8, strike)
            await windows_hold(relays[1:], 32)
            crew.check(8)

        asyncio.run(story())
        relays[1].kill()
    finally:
        if proxy is not None:
            proxy.terminate()
            proxy.wait()
        for relay in relays:
            if relay.url and relay.process.returncode is None:
                relay.kill()
        server.kill()
