from __future__ import annotations

from random import Random

import msgspec

from app.learning.brake import LEAST_SHARE, ROUNDS_ALONE, WINDOW_ROUNDS, PeerBrake, after_round, start_cooldown
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates

LEVELS, G = {"gcd": 0}, 8
NEW = PeerBrake()


def round_(rng: Random, right: float, worked: float, groups: int = 8) -> list[GroupRecord]:
    """Own groups whose answers are alike, as those to one question are."""
    return [_group(rng, right, worked) for _ in range(groups)]


def _group(rng: Random, right: float, worked: float) -> GroupRecord:
    shares = [rng.betavariate(1.5 * share, 1.5 * (1.0 - share)) for share in (right, worked)]
    rewards_G = tuple(int(rng.random() < shares[0]) for _ in range(G))
    group = GroupRecord(
        coordinates=Coordinates(family="gcd", level=0, seed=2**41, index=0),
        completions_G=tuple("4-1=3 #3" if rng.random() < shares[1] else "#3" for _ in range(G)),
        finished_G=(True,) * G,
        model="m",
    )
    return group.with_scores(tuple(map(float, rewards_G)), rewards_G)


def after(
    rounds: int, right: float, worked: float, vigil: PeerBrake = NEW, seed: int = 0, mixed: bool = True
) -> PeerBrake:
    rng = Random(seed)
    for _ in range(rounds):
        vigil = after_round(vigil, round_(rng, right, worked), LEVELS, mixed)
    return vigil


def test_whoever_gets_worse_with_peers_learns_without_them_for_a_while() -> None:
    good = after(4 * WINDOW_ROUNDS, 0.5, 0.9)
    assert not good.falls
    for right, worked in ((0.05, 0.9), (0.5, 0.2)):
        fallen = after(2 * WINDOW_ROUNDS, right, worked, good)
        assert fallen.falls == 1 and fallen.torn and fallen.share == 0.5
        assert ROUNDS_ALONE - 2 * WINDOW_ROUNDS <= fallen.alone <= ROUNDS_ALONE
        assert after(fallen.alone, 0.5, 0.9, fallen).alone == 0


def test_getting_better_or_learning_alone_or_harder_puzzles_are_no_fall() -> None:
    assert not after(4 * WINDOW_ROUNDS, 0.9, 0.99, after(4 * WINDOW_ROUNDS, 0.2, 0.3)).falls
    alone = after(4 * WINDOW_ROUNDS, 0.5, 0.9, mixed=False)
    assert not after(4 * WINDOW_ROUNDS, 0.05, 0.1, alone, mixed=False).falls
    good, rng = after(4 * WINDOW_ROUNDS, 0.5, 0.9), Random(1)
    for _ in range(4 * WINDOW_ROUNDS):
        harder = [
            msgspec.structs.replace(one, coordinates=msgspec.structs.replace(one.coordinates, level=1))
            for one in round_(rng, 0.1, 0.9)
        ]
        good = after_round(good, harder, {"gcd": 1}, True)
    assert not good.falls


def test_slow_harm_halves_the_share_of_peers_and_counts_from_the_best_that_was() -> None:
    """Half a point a round: no window is far below the ones before it."""
    vigil, rng, halved = after(8 * WINDOW_ROUNDS, 0.5, 0.9), Random(1), 0
    for number in range(100):
        vigil = after_round(vigil, round_(rng, max(0.05, 0.5 - 0.005 * number), 0.9), LEVELS, True)
        halved = halved or (number if vigil.share < 1 else 0)
        if vigil.falls:
            break
    assert 0 < halved < number < 100 and vigil.share == max(LEAST_SHARE, vigil.share)


def test_each_further_fall_costs_twice_as_many_rounds_up_to_a_limit() -> None:
    vigil, rounds = PeerBrake(), []
    for _ in range(6):
        vigil = start_cooldown(vigil)
        rounds.append(vigil.alone)
    assert rounds == [ROUNDS_ALONE << doublings for doublings in (0, 1, 2, 3, 4, 4)]


def test_chance_alone_hardly_ever_looks_like_a_fall() -> None:
    """Sixty runs of 200 rounds of eight groups."""
    false = sum(
        after(200, right, worked, seed=seed).falls > 0
        for right, worked in ((0.3, 0.5), (0.5, 0.5), (0.5, 0.98))
        for seed in range(20)
    )
    assert false <= 2
