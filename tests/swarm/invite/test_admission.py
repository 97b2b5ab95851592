from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.common.signing import public_key
from app.swarm.invite.invite import Invite
from app.swarm.invite.private import PrivateSwarm, check_token, mint, private_invite, token_to_present
from app.swarm.wire.frames import to_frame
from app.swarm.wire.limits import Code, Refused, RelayLimits
from app.swarm.wire.protocol import Auth, Hello
from app.swarm.wire.signin import sign_in

OPERATOR, ANN, BOB = bytes(range(32)), bytes(range(1, 33)), bytes(range(2, 34))
NOW = 1_800_000_000
CODE = PrivateSwarm(bytes(32))
URL = "ws://relay.example:8777/v1/ws"


def pk(seed: bytes) -> str:
    return public_key(seed).hex()


def hello(**changes: Any) -> Hello:
    fields: dict[str, Any] = dict(
        proto=("1.1",), relay="relay.example", swarm="example-swarm", epoch="1", time_ms=NOW * 1000,
        challenge="0f" * 32, limits=RelayLimits(),
        key="ab" * 32, sig="cd" * 64,
    )  # fmt: skip
    return Hello(**(fields | changes))


def refused(token: str, seed: bytes = ANN, swarm: str = "example-swarm", now: float = NOW) -> str:
    with pytest.raises(Refused) as caught:
        check_token(token, [public_key(OPERATOR)], swarm, pk(seed), now)
    assert caught.value.code == Code.RESTRICTED
    return caught.value.sentence


def test_a_token_lets_in_until_it_ends_and_only_whom_it_names() -> None:
    anybody = mint(OPERATOR, "example-swarm", NOW + 60)
    bob_s = mint(OPERATOR, "example-swarm", NOW + 60, pk(BOB))
    for seed in (ANN, BOB):
        check_token(anybody, [public_key(BOB), public_key(OPERATOR)], "example-swarm", pk(seed), NOW + 59.9)
    check_token(bob_s, [public_key(OPERATOR)], "example-swarm", pk(BOB), NOW)
    assert "has ended" in refused(anybody, now=NOW + 60)
    assert "another key" in refused(bob_s)
    assert "wasn't signed" in refused(anybody, swarm="other-swarm")
    assert "wasn't signed" in refused(mint(ANN, "example-swarm", NOW + 60))


@pytest.mark.parametrize("change", [(3, "9"), (14, "bob"), (-1, "x"), (-1, "0"), (0, "k")])
def test_a_changed_token_is_refused(change: tuple[int, str]) -> None:
    token, (place, put) = mint(OPERATOR, "example-swarm", NOW + 60), change
    place %= len(token)
    changed = token[:place] + put + token[place + len(put) :]
    assert changed == token or refused(changed)


@given(st.text(alphabet="abcdef0123456789.t1kany-_", max_size=200))
def test_no_other_text_is_a_token(text: str) -> None:
    refused(text)
    refused(f"t1.{NOW + 60}.any.{text}")


def test_tokens_fit_the_protocol() -> None:
    for token in (mint(OPERATOR, "s" * 64, 10**12 - 1, pk(BOB)), CODE.token):
        auth = sign_in(ANN, hello(), "test/1", invite=token)
        assert msgspec.json.decode(to_frame(auth), type=Auth).invite == token
        assert Invite(url=URL, token=token).token == token
    with pytest.raises(ValueError):
        mint(OPERATOR, "example-swarm", NOW, "bob")
    with pytest.raises(ValueError):
        mint(OPERATOR, "example-swarm", -5)


def test_a_node_shows_its_invite_to_nobody_else() -> None:
    token = mint(OPERATOR, "example-swarm", NOW + 60)
    bound = Invite(url=URL, swarm="example-swarm", relay="relay.example", token=token)
    assert token_to_present(bound, hello()) == token
    assert token_to_present(Invite(url=URL, token=token), hello()) == token
    assert token_to_present(bound, hello(relay="evil.example")) is None
    assert token_to_present(bound, hello(swarm="other-swarm")) is None
    assert token_to_present(None, hello()) is None
    assert token_to_present(Invite(url=URL), hello()) is None


def test_a_private_key_is_never_sent() -> None:
    invite = private_invite(CODE, Invite(url=URL, relay="relay.example"))
    assert token_to_present(invite, hello(swarm=CODE.swarm)) is None
    assert token_to_present(Invite(url=URL, token="a1.00"), hello()) is None
