"""Who may sign in, through whole conversations without a socket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from app.common.signing import public_key
from app.relay.access import AccessSetupError, AllowListAccess, InviteAccess, OpenAccess
from app.relay.session.session import Session
from app.relay.session.shared import RelayState
from app.swarm.invite.private import mint
from app.swarm.wire.frames import decode_relay_frame, to_frame
from app.swarm.wire.limits import Code
from app.swarm.wire.protocol import Err, Hello, Welcome
from app.swarm.wire.signin import find_work, sign_in

OPERATOR, ANN, BOB = bytes(range(32)), bytes(range(1, 33)), bytes(range(2, 34))
NOW = 1_800_000_000


def state(access: Any, swarm: str = "example-swarm", **options: Any) -> RelayState:
    return RelayState(bytes(32), swarm, "1", access=access, wall=lambda: float(NOW), **options)


def answer(
    at: RelayState, seed: bytes, invite: str | None = None, *, work: bool = False, hello: Any = None
) -> Any:
    session = Session(at, "net")
    said = hello or decode_relay_frame(session.hello())
    assert isinstance(said, Hello)
    pow = find_work(public_key(seed).hex(), said.relay, said.time_ms, said.pow_bits) if work else None
    frame = session.receive(to_frame(sign_in(seed, said, "test/1", pow=pow, invite=invite)))
    assert isinstance(frame, bytes)
    read = decode_relay_frame(frame)
    assert session.closing == isinstance(read, Err)
    session.closed()
    return read


def is_restricted(read: Any, words: str) -> bool:
    return (
        isinstance(read, Err)
        and (read.code, read.retry_after_ms) == (Code.RESTRICTED, 60_000)
        and words in read.msg
    )


def test_an_open_relay_takes_everybody_with_or_without_an_invite() -> None:
    assert isinstance(answer(state(OpenAccess()), ANN), Welcome)
    assert isinstance(answer(state(None), ANN, "t1.whatever"), Welcome)


def test_work_is_asked_for_beside_any_mode() -> None:
    for access in (None, OpenAccess("pow")):
        at = state(access, pow_bits=8)
        assert at.info().access == "pow"
        assert answer(at, ANN).code == Code.POW
        assert isinstance(answer(at, ANN, work=True), Welcome)
    both = state(InviteAccess(frozenset({public_key(OPERATOR)})), pow_bits=8)
    token = mint(OPERATOR, "example-swarm", NOW + 60)
    assert (both.info().access, both.info().pow_bits) == ("invite", 8)
    assert answer(both, ANN, token).code == Code.POW
    assert is_restricted(answer(both, ANN, work=True), "invited nodes")
    assert isinstance(answer(both, ANN, token, work=True), Welcome)


def test_invited_nodes_come_in_and_others_learn_why_not() -> None:
    at = state(InviteAccess(frozenset({public_key(OPERATOR)})))
    bob_s = mint(OPERATOR, "example-swarm", NOW + 60, public_key(BOB).hex())
    assert at.info().access == "invite"
    assert isinstance(answer(at, BOB, bob_s), Welcome)
    assert is_restricted(answer(at, ANN, bob_s), "another key")
    assert is_restricted(answer(at, ANN), "invited nodes")
    assert is_restricted(answer(at, ANN, "k1." + "0" * 64), "this is none")
    assert is_restricted(answer(at, ANN, mint(OPERATOR, "example-swarm", NOW)), "has ended")
    assert is_restricted(answer(at, ANN, mint(ANN, "example-swarm", NOW + 60)), "wasn't signed")


def test_a_list_of_keys_is_read_anew_when_it_changes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, ann, bob = tmp_path / "keys", public_key(ANN).hex(), public_key(BOB).hex()
    path.write_text(f"# friends\n\n{ann.upper()}   # Ann\r\n")
    at = state(AllowListAccess(path))
    assert at.info().access == "allowlist"
    assert isinstance(answer(at, ANN), Welcome)
    assert is_restricted(answer(at, BOB), "operator")
    path.write_text(f"{ann}\n{bob}\n")
    assert isinstance(answer(at, BOB), Welcome)
    path.write_text("Bob\n")
    assert isinstance(answer(at, BOB), Welcome) and isinstance(answer(at, BOB), Welcome)
    path.unlink()
    assert isinstance(answer(at, BOB), Welcome) and isinstance(answer(at, BOB), Welcome)
    assert len(caplog.records) == 2 and "Line 1" in caplog.text and "cannot be read" in caplog.text
    path.write_text(f"{bob}\n")
    os.utime(path, ns=(1, 1))
    assert is_restricted(answer(at, ANN), "operator")


def test_a_list_that_is_none_is_refused_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    with pytest.raises(AccessSetupError, match="check its path"):
        AllowListAccess(path)
    for content in (b"\xff\xfe", b"ab", b"0" * 63, b"0" * 64 + b" bob", b"g" * 64):
        path.write_bytes(content)
        with pytest.raises(AccessSetupError, match="Line 1"):
            AllowListAccess(path)
    path.write_bytes(b"")
    assert is_restricted(answer(state(AllowListAccess(path)), ANN), "list")
