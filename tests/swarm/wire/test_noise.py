"""The handshake against its published vector, and against who does not know the secret."""

from __future__ import annotations

import secrets

import pytest

from app.swarm.wire.noise import OPENING_BYTES, Cipher, Initiator, NoiseError, Responder

SECRET = b"This is my Austrian perspective!"
VECTOR = [
    # cacophony's, for Noise_NNpsk0_25519_ChaChaPoly_SHA256: what is said, and how it goes over the line
    (b"Ludwig von Mises", "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
     "79b962b8aff8485742ac32f905ba45369e2465fb59e138a93d67a0d1266b6a54"),
    (b"Murray Rothbard", "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
     "d6062704d5a9c422a8e834423f8c1feada7e8d0d910a1a2cd030fb584221e3"),
    (b"F. A. Hayek", "e632c3763d7669067383433197a3baddf146e9e70ad4b4e9e59e0f"),
    (b"Carl Menger", "64c6bee32ea91c8474bb4c21d7a700109ad45af77b29764ba5eb1e"),
    (b"Jean-Baptiste Say", "e2fa0bed0603b62d3ccac2ecabbf3fe33f3e86514909b323361626266cb2471cc8"),
    (b"Eugen B\xf6hm von Bawerk", "0c01dc9cec1fe4ddd692e8dd32188aa351088dc91183639a53b57aa4692b5ebdef8b8ca111"),
]  # fmt: skip


def both(secret: bytes = SECRET, other: bytes = SECRET) -> tuple[Initiator, Responder]:
    return Initiator(secret, b"p"), Responder(other, b"p")


def lines(client: Initiator, relay: Responder) -> tuple[tuple[Cipher, Cipher], tuple[Cipher, Cipher]]:
    relay.read_message(client.write_message())
    bound = relay.begin_answer()
    message, theirs = relay.finish_answer(b"hello")
    heard, payload, ours = client.read_message(message)
    assert (heard, payload) == (bound, b"hello")
    return ours, theirs


def test_the_published_vector() -> None:
    client = Initiator(
        SECRET, b"John Galt", bytes.fromhex("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a")
    )
    relay = Responder(
        SECRET, b"John Galt", bytes.fromhex("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b")
    )
    (first, first_sealed), (second, second_sealed), *rest = VECTOR
    assert client.write_message(first).hex() == first_sealed
    assert relay.read_message(bytes.fromhex(first_sealed)) == first
    relay.begin_answer()
    message, theirs = relay.finish_answer(second)
    assert message.hex() == second_sealed
    _, heard, ours = client.read_message(message)
    assert heard == second
    assert client.hash.hex() == "f4d03dc34495c95729ea6de9e1b59004b59733102488b3e24bc441e0be208eaf"
    assert client.hash == relay.hash
    for number, (text, sealed) in enumerate(rest):
        sender, receiver = (ours, theirs) if number % 2 == 0 else (theirs, ours)
        assert sender[0].encrypt(text).hex() == sealed
        assert receiver[1].decrypt(bytes.fromhex(sealed)) == text


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


@pytest.mark.parametrize(
    "point",
    [
        # every point whose order divides eight, and their other writings (curve25519's "may the fourth" list)
        "00" * 32,
        "01" + "00" * 31,
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 31,
    ],
)
def test_a_key_that_shares_nothing_is_refused(point: str) -> None:
    relay = both()[1]
    relay._theirs = bytes.fromhex(point)
    with pytest.raises(NoiseError):
        relay.begin_answer()


def test_the_last_number_is_never_used() -> None:
    """2^64 - 1 is reserved, and who comes to it stops."""
    one = Cipher(bytes(32))
    one._n = 2**64 - 2
    sealed = one.encrypt(b"the last")
    for over in (one.encrypt, one.decrypt):
        with pytest.raises(NoiseError):
            over(sealed)
