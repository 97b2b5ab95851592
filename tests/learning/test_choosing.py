from __future__ import annotations

from collections import Counter
from random import Random

import msgspec

from app.learning.choosing import PeerOffer, PeerRecords
from app.sapo.recipes import RECIPES

DEFAULT = RECIPES["default"]
POOL = [PeerOffer(peer=peer, age=0, rewards_G=(1, 0)) for peer in ("good", "doubted") for _ in range(3)]


def drawn(records: PeerRecords, by_record: bool) -> Counter[str]:
    recipe = msgspec.structs.replace(DEFAULT, by_record=by_record)
    return Counter(POOL[records.choose(recipe, POOL, 1, Random(n))[0]].peer for n in range(1000))


def test_a_peer_whose_answers_were_kept_out_is_asked_less_where_the_recipe_goes_by_records() -> None:
    records = PeerRecords()
    for _ in range(8):
        records.judge("good", 1, 0)
        records.judge("doubted", 0, 1)
    assert drawn(records, True)["doubted"] < 150
    assert 420 < drawn(records, False)["doubted"] < 580


def test_whoever_takes_a_new_key_after_every_group_is_doubted_like_one_that_keeps_its_own() -> None:
    records = PeerRecords()
    for _ in range(8):
        records.judge("good", 1, 0)
    records.judge("key", 0, 4)
    assert drawn(records, True)["doubted"] > 200, "one bad one does not make all new ones suspect"
    for key in range(30):
        records.judge(f"key {key}", 0, 4)
    assert drawn(records, True)["doubted"] < 50, "`doubted` is a key that was never met"
    for key in range(30):
        records.judge(f"honest {key}", 4, 0)
    assert drawn(records, True)["doubted"] > 250, "honest newcomers make up for it"


def test_the_oldest_records_are_forgotten_first() -> None:
    records = PeerRecords()
    for _ in range(20):
        records.judge("doubted", 0, 1)
    for stranger in range(600):
        records.judge(str(stranger), 1, 0)
    assert 420 < drawn(records, True)["doubted"] < 580, "as if it had never been met"
