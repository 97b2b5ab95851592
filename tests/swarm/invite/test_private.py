from __future__ import annotations

import msgspec
import pytest
import rich.pretty
from hypothesis import given
from hypothesis import strategies as st

from app.swarm.invite import invite, private
from app.swarm.invite.invite import Invite, InviteError, invite_from_text, is_invite_number, words_from_number
from app.swarm.invite.private import (
    PrivateError,
    PrivateSwarm,
    new_words,
    parse_access_key,
    private_swarm_from_text,
    validate_words,
)
from app.swarm.wire.body import SwarmId

WORDS = "abuse boss fly battle rubber warrior"
KEY = "9245ab24927a1c4274cfbfeeb6f38d6ea2c220010ff5fa3c873cb46df515d869"


def test_the_words_open_the_same_swarm_everywhere_however_they_are_spaced() -> None:
    found = private_swarm_from_text("  Abuse-BOSS,fly\n battle rubber  warrior ")
    assert (found.swarm, found.token) == ("private-ae2kktxb43fggys7", f"a1.{KEY}")
    assert private_swarm_from_text(f" a1.{KEY}\n") == parse_access_key(found.token) == found
    msgspec.convert(found.swarm, SwarmId)


@given(st.integers(0, 2**60 - 1))
def test_every_code_is_six_words_that_check_each_other(number: int) -> None:
    words = words_from_number(private._checked(number))
    if is_invite_number(private._checked(number)):
        return  # one of 131,072 says an invite
    assert validate_words(words) == words
    assert len(words.split()) == 6


def test_words_in_the_wrong_field_are_told_where_they_belong() -> None:
    spoken = Invite(url="ws://192.168.1.20:8777/v1/ws", room="class").words()
    assert spoken is not None
    with pytest.raises(PrivateError, match="are an invite"):
        validate_words(spoken)
    with pytest.raises(InviteError, match="private swarm"):
        invite_from_text(WORDS)


def test_codes_are_never_the_same() -> None:
    assert len({new_words() for _ in range(1000)}) == 1000


def test_one_wrong_word_of_the_list_is_found_63_times_of_64() -> None:
    slips = 0
    for other in invite._list():
        try:
            validate_words(f"abuse boss {other} battle rubber warrior")
        except PrivateError:
            continue
        slips += 1
    assert 1 <= slips <= 80  # 1 + 2047/64 = 33 expected; deterministic


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "these are 0"),
        ("abuse boss fly battle rubber", "these are 5"),
        (WORDS + " abuse", "these are 7"),
        ("abuse boss flie battle rubber warrior", "Word 3"),
        ("boss abuse fly battle rubber warrior", "swapped"),
        ("a1.00", "access key"),
        (f"a1.{KEY.upper()}", "access key"),
        ("abuse boss fly\0 battle rubber warrior", "Word 3"),
    ],
)
def test_what_is_no_code_is_refused_without_repeating_it(text: str, word: str) -> None:
    with pytest.raises(PrivateError, match=word) as caught:
        private_swarm_from_text(text)
    assert all(one not in str(caught.value) for one in ("abuse", "flie", KEY))


def test_the_key_is_not_shown() -> None:
    one = PrivateSwarm(bytes.fromhex(KEY))
    for shown in (repr(one), str(one), f"{[one]}", rich.pretty.pretty_repr(one)):
        assert KEY not in shown and "private-ae2k" in shown
