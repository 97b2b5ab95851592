"""The handshake against who does not know the secret; its vectors are in conformance/private.json."""

from __future__ import annotations

import secrets

import pytest

from app.swarm.wire.noise import OPENING_BYTES, Cipher, Initiator, NoiseError, Responder

SECRET = b"This is my Austrian perspective!"


def both(secret: bytes = SECRET, other: bytes = SECRET) -> tuple[Initiator, Responder]:
    return Initiator(secret, b"p"), Responder(other, b"p")


def lines(client: Initiator, relay: Responder) -> tuple[tuple[Cipher, Cipher], tuple[Cipher, Cipher]]:
    relay.read_message(client.write_message())
    bound = relay.begin_answer()
    message, theirs = relay.finish_answer(b"hello")
    heard, payload, ours = client.read_message(message)
    assert (heard, payload) == (bound, b"hello")
    return ours, theirs


def test_who_does_not_know_the_secret_is_not_heard() -> None:
    client, relay = both(other=bytes(32))
    with pytest.raises(NoiseError):
        relay.read_message(client.write_message())
    client, relay = both()
    stranger = Responder(bytes(32), b"p")
    stranger._theirs = client.write_message()[:32]
    stranger.begin_answer()
    with pytest.raises(NoiseError):
        client.read_message(stranger.finish_answer(b"hello")[0])
    with pytest.raises(NoiseError):
        Responder(SECRET, b"another prologue").read_message(client.write_message())


@pytest.mark.parametrize("message", [b"", b"x" * 31, bytes(OPENING_BYTES), bytes(32) + b"x" * 16])
def test_what_is_no_message_of_the_handshake(message: bytes) -> None:
    for one, other in (both(), both()):
        with pytest.raises(NoiseError):
            other.read_message(message)
        one.write_message()
        with pytest.raises(NoiseError):
            one.read_message(message)


def test_nothing_can_be_changed_repeated_left_out_or_turned_round() -> None:
    ours, theirs = lines(*both())
    texts = [secrets.token_bytes(n) for n in (0, 1, 500, 528_384)]
    sealed = [ours[0].encrypt(text) for text in texts]
    assert [len(one) - len(text) for one, text in zip(sealed, texts, strict=True)] == [16] * 4
    assert theirs[1].decrypt(sealed[0]) == texts[0]
    for wrong in (sealed[0], sealed[2], sealed[1][:-1], sealed[1] + b"x", bytes(len(sealed[1])), b""):
        with pytest.raises(NoiseError):
            theirs[1].decrypt(wrong)
    with pytest.raises(NoiseError):
        ours[1].decrypt(sealed[1])
    assert [theirs[1].decrypt(one) for one in sealed[1:]] == texts[1:]


def test_every_line_has_keys_of_its_own() -> None:
    first, second = lines(*both()), lines(*both())
    with pytest.raises(NoiseError):
        second[1][1].decrypt(first[0][0].encrypt(b"said on another line"))


def test_the_last_number_is_never_used() -> None:
    """2^64 - 1 is reserved, and who comes to it stops."""
    one = Cipher(bytes(32))
    one._n = 2**64 - 2
    sealed = one.encrypt(b"the last")
    for over in (one.encrypt, one.decrypt):
        with pytest.raises(NoiseError):
            over(sealed)
