"""Who may join a real relay process, by the words, keys and links that people are given."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.cli.__main__ import main
from app.common.signing import public_key
from app.swarm.client.connection import ConnectionEnded, connect
from app.swarm.invite.invite import Invite, invite_from_text, parse
from app.swarm.invite.private import (
    is_access_key,
    parse_access_key,
    private_invite,
    private_swarm_from_text,
    token_to_present,
)
from app.swarm.wire.limits import Code
from app.swarm.wire.protocol import Hello
from app.swarm.wire.signin import check_hello, find_work, sign_in
from tests import inside

ROOT = Path(__file__).parents[2]
ANN, BOB = bytes(range(32)), bytes(range(1, 33))
PATIENCE_S = 240.0
NOWHERE = "203.0.113.9"
"""No address of this computer: a relay that is not refused ends there."""
WORDS = "abuse boss fly battle rubber warrior"


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "SHOAL_PRIVATE"}
    return {**kept, "PYTHONPATH": str(ROOT), **variables}


if sys.platform == "win32":
    pytest.skip("ends the relay by SIGTERM", allow_module_level=True)


@contextmanager
def typing(text: str) -> Iterator[None]:
    """This process's standard input."""
    kept, (read, write) = os.dup(0), os.pipe()
    os.write(write, text.encode())
    os.close(write)
    os.dup2(read, 0)
    os.close(read)
    try:
        yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)


def wrong(*arguments: str, typed: str = "") -> str:
    """What a command says that ends with exit code 2, in this process: there are many of them."""
    said, out = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(out),
    ):
        patch.delenv("SHOAL_PRIVATE", raising=False)
        patch.setattr(sys, "stdin", io.StringIO())
        with typing(typed):
            try:
                code = main(list(arguments))
            except SystemExit as end:
                code = int(end.code or 0)
    assert (code, out.getvalue()) == (2, ""), said.getvalue()
    return said.getvalue()


class Relay:
    def __init__(self, *options: object, typed: str | None = None, **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "relay", "--port", "0", *map(str, options)],
            cwd=ROOT, env=environment(**variables), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        if typed is not None:
            print(typed, file=self.process.stdin, flush=True)
        self.first: dict[str, str] = json.loads(self.process.stdout.readline())
        self.invite = parse(self.first["invite"])

    def end(self, number: int = signal.SIGTERM) -> str:
        self.process.send_signal(number)
        return self.process.communicate(timeout=PATIENCE_S)[1]


@contextmanager
def relay(*options: object, typed: str | None = None, **environment: str) -> Iterator[Relay]:
    one = Relay(*options, typed=typed, **environment)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.communicate()


def greet(invite: Invite, seed: bytes = ANN, *, work: bool = False) -> Any:
    """What a node that was given this invite is answered."""

    async def talk() -> Any:
        private = parse_access_key(invite.token) if invite.token and is_access_key(invite.token) else None
        connection = await connect(invite.url, private=private)
        try:
            hello = await connection.receive()
            if not isinstance(hello, Hello):
                return hello
            check_hello(hello, connection.opening)
            pow = (
                find_work(public_key(seed).hex(), hello.relay, hello.time_ms, hello.pow_bits) if work else None
            )
            await connection.send(
                sign_in(seed, hello, "test/1", pow=pow, invite=token_to_present(invite, hello))
            )
            return await connection.receive()
        except ConnectionEnded as ended:
            return ended
        finally:
            await connection.close()

    return asyncio.run(talk())


def code(answer: Any) -> str:
    return str(getattr(answer, "code", "welcome"))


def test_an_open_relay_prints_an_invite_that_works() -> None:
    with relay() as one:
        assert one.invite == Invite(url=one.first["url"], swarm="shoal", relay=one.first["relay"])
        assert code(greet(one.invite)) == "welcome"
        private = greet(Invite(url=one.invite.url, token=private_swarm_from_text(f"a1.{'0' * 64}").token))
        assert isinstance(private, ConnectionEnded) and "no private swarm" in private.sentence
        said = one.end()
        assert one.first["invite"] in said and "without encryption" not in said


def test_six_words_open_a_private_relay_and_stay_out_of_sight() -> None:
    private = private_swarm_from_text(WORDS)
    for where_from in ({"typed": WORDS}, {"SHOAL_PRIVATE": WORDS}, {"SHOAL_PRIVATE": private.token}):
        with relay("--private", **where_from) as one:  # type: ignore[arg-type]
            assert one.first["swarm"] == private.swarm
            assert code(greet(private_invite(private, one.invite))) == "welcome"
            assert code(greet(one.invite)) == Code.RESTRICTED
            stranger = greet(private_invite(private_swarm_from_text(f"a1.{'0' * 64}"), one.invite))
            assert (
                isinstance(stranger, ConnectionEnded) and "lets no one in with these words" in stranger.sentence
            )
            command = Path(f"/proc/{one.process.pid}/cmdline")
            listed = command.read_text() if command.exists() else ""
            for text in (listed, one.end(), json.dumps(one.first)):
                assert "abuse" not in text and private.key.hex() not in text


def test_an_operator_invites(tmp_path: Path) -> None:
    key = tmp_path / "operator"
    made = inside.shoal("invite", "--new-key", key)
    assert made.returncode == 0 and made.stdout.strip() in made.stderr
    assert key.stat().st_mode & 0o077 == 0
    again = inside.shoal("invite", "--new-key", key)
    assert again.returncode == 1 and "Traceback" not in again.stderr  # never over another key
    with relay("--access", "invite", "--invite-key", f"{key}.pub", "--state", tmp_path / "state") as one:
        link = one.first["invite"]
        for_anybody = inside.shoal("invite", link, "--key", key)
        for_bob = inside.shoal("invite", link, "--key", key, "--for", public_key(BOB).hex(), "--days", "1")
        assert for_anybody.returncode == for_bob.returncode == 0
        anybody, bob_s = invite_from_text(for_anybody.stdout), invite_from_text(for_bob.stdout)
        assert code(greet(anybody, ANN)) == code(greet(anybody, BOB)) == code(greet(bob_s, BOB)) == "welcome"
        refused = greet(bob_s, ANN)
        assert refused.code == Code.RESTRICTED and "another key" in refused.msg
        operator_s = invite_from_text(inside.shoal("invite", link, "--state", tmp_path / "state").stdout)
        assert code(greet(operator_s, ANN)) == "welcome"
        assert code(greet(one.invite)) == Code.RESTRICTED
        assert "./shoal invite" in one.end()


def test_on_the_network_it_says_what_is_open_and_has_an_id_of_its_own() -> None:
    with relay("--lan", "--swarm", "test-swarm") as one:
        assert one.first["relay"].startswith("relay-") and "0.0.0.0" in one.first["url"]
        assert code(greet(one.invite)) == "welcome"  # the address for others is this computer's
        said = one.end()
        assert "every network" in said and "without encryption" in said and "Ctrl-C" in said
        assert f"port {invite_from_text(one.first['invite']).url.rsplit(':', 1)[1].partition('/')[0]}" in said


def test_a_class_is_for_the_network_unless_it_is_told_to_stay_here() -> None:
    with relay("--class") as one:
        assert one.invite.room == "class" and code(greet(one.invite)) == "welcome"
        said = one.end()
        assert one.invite.words() in said and "Others on this network can read" in said
    with relay("--class", "--host", "127.0.0.1") as one:
        said = one.end()
        assert "on other computers can't join" in said and "Others on this network" not in said


def test_every_address_means_both_kinds() -> None:
    with relay("--host", "::") as one:
        port = one.invite.url.rpartition(":")[2].partition("/")[0]
        for host in ("127.0.0.1", "[::1]"):
            assert code(greet(Invite(url=f"ws://{host}:{port}/v1/ws"))) == "welcome"


def test_behind_a_proxy_the_invite_has_its_address() -> None:
    with relay("--public", "wss://relay.example") as one:
        assert one.invite.url == "wss://relay.example/v1/ws"
        assert one.invite.relay == one.first["relay"]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--access", "invite"], "--state DIR"),
        (["--access", "invite", "--invite-key", "abc"], "64 hex digits"),
        (["--access", "allowlist"], "--allow"),
        (["--access", "allowlist", "--allow", "/no/such/file"], "cannot be read"),
        (["--allow", "friends"], "--access allowlist"),
        (["--invite-key", "0" * 64], "--access invite"),
        (["--private", "--swarm", "mine"], "leave out --swarm"),
        (["--pow-bits", "99"], "0 to 28"),
        (["--access", "everybody"], "invalid choice"),
        (["--public", "relay.example"], "a port"),
        (["--sate", "DIR"], "did you mean --state?"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(options: list[str], word: str) -> None:
    said = wrong("relay", "--host", NOWHERE, *options, typed=WORDS + "\n")
    assert word in said and "Traceback" not in said


def test_the_key_of_a_relay_without_a_folder_lies_in_the_data_folder_that_was_named(tmp_path: Path) -> None:
    assert inside.shoal("relay", "--home", tmp_path, "--host", NOWHERE).returncode == 1
    assert (tmp_path / "relay" / "relay.key").exists()


@pytest.mark.parametrize(
    "typed", ["", "\n", "abuse boss\n", "abuse boss flie battle rubber warrior\n", "a1.00\n"]
)
def test_words_that_are_none_are_wrong_usage(typed: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for command in (["relay", "--private", "--host", NOWHERE], ["run", "--private", "--home", str(home)]):
        said = wrong(*command, typed=typed)
        assert said.count("\n") == 1 and said.startswith(f"shoal {command[0]}: ") and "flie" not in said
    assert not home.exists()


def test_six_new_words_are_a_code() -> None:
    first, second = inside.shoal("invite", "--new-words").stdout, inside.shoal("invite", "--new-words").stdout
    assert first != second and private_swarm_from_text(first).swarm != private_swarm_from_text(second).swarm


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "Name a relay"),
        (["h:1", "--new-words"], "Name a relay"),
        (["h:1"], "--key"),
        (["h:1", "--key", "{key}"], "--swarm"),
        (["h:1", "--key", "{key}.pub", "--swarm", "abc"], "no key"),
        (["h:1", "--key", "{key}", "--swarm", "x"], "swarm id"),
        (["h:1", "--key", "{key}", "--state", "."], "not allowed"),
        (["nonsense", "--key", "{key}"], "a port"),
        (["h:1", "--key", "{key}", "--days", "0"], "9999"),
        (["h:1", "--key", "{key}", "--for", "bob"], "64 hex"),
    ],
)
def test_an_invite_that_cannot_be_made_is_wrong_usage(tmp_path: Path, arguments: list[str], word: str) -> None:
    key = tmp_path / "key"
    key.write_text("00" * 32)
    (tmp_path / "key.pub").write_text("11" * 32)
    said = wrong("invite", *(one.format(key=key) for one in arguments))
    assert word in said and "Traceback" not in said
