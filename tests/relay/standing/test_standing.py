from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.relay import standing as rules
from app.relay.standing import DAY_S, KEPT_S, MIN_PROBATION_S, Ban, Bans, Standing, Standings
from tests.relay.clock import Clock


def after(events: str, start: Standing = Standing(), now: float = 0.0) -> Standing:  # noqa: B008
    for event in events:
        start = rules.after_honest(start, now) if event == "h" else rules.after_false_claim(start, now)
    return start


def known() -> Standing:
    """Fifty honest groups in a day."""
    return rules.after_honest(after("h" * 49), MIN_PROBATION_S)


def test_an_honest_key_from_probation_to_trust() -> None:
    new = Standing()
    assert new.probation and new.check == 1.0 and new.weight == 0.2
    almost = after("h" * 49)
    assert almost.probation and almost.check == 1.0 and almost.weight == 0.2
    quick = after("h" * 50)
    assert quick.probation and quick.weight == 0.2 and not quick.known, "in a day, not in an hour"
    assert quick.check == 0.05, "and the checks are for others"
    trusted = known()
    assert trusted.error == pytest.approx(0.1 * 0.95**50) == pytest.approx(0.00769, abs=1e-5)
    assert trusted.known and trusted.check == 0.05 and trusted.weight == pytest.approx(0.98461, abs=1e-5)


def test_a_newcomer_who_plays_a_group_a_minute_has_standing_within_a_day() -> None:
    clock = Clock()
    standings = Standings(clock, Random(0))
    checks = 0
    for minute in range(24 * 60):
        clock.now += 60
        if standings.draw_check(b"k"):
            checks += 1
            standings.record_honest(b"k")
        assert minute > 20 * 60 or b"k" not in standings.known, "nobody has it sooner, however much they send"
    assert b"k" in standings.known and checks < 150


def test_who_plays_two_hours_every_evening_is_known_on_the_second() -> None:
    clock = Clock()
    standings = Standings(clock, Random(0))
    for _ in range(2):
        for _ in range(120):
            clock.now += 60
            if standings.draw_check(b"k"):
                standings.record_honest(b"k")
        clock.now += 22 * 3600
    assert standings.known == {b"k"}
    for _ in range(4):
        standings.false_claim(b"k")
    assert not standings.known and standings.of(b"k").probation


def test_what_two_relays_know_of_a_key_is_put_together() -> None:
    here, there = known(), rules.after_honest(Standing(), 5 * DAY_S)
    both = rules.merge(here, there)
    assert both.honest == 50 and both.error == here.error and (both.first, both.latest) == (0.0, 5 * DAY_S)
    liar = rules.after_false_claim(there, DAY_S)
    for one, other in ((here, liar), (liar, here)):
        both = rules.merge(one, other)
        assert both.false_claims == (DAY_S,) and both.error == liar.error and both.honest == 50
        assert rules.merge(both, other) == both
    shut_out = rules.after_ban(liar, 2 * DAY_S)
    assert rules.merge(here, shut_out) == rules.merge(shut_out, here) == shut_out and shut_out.probation
    assert shut_out.until == 2 * DAY_S + KEPT_S and here.until == MIN_PROBATION_S + KEPT_S


def test_a_false_claim_weighs_more_than_many_true_ones() -> None:
    slipped = rules.after_false_claim(known(), 0.0)
    assert slipped.error == pytest.approx(0.10769, abs=1e-5) and slipped.weight == pytest.approx(
        0.78461, abs=1e-5
    )
    assert after("hhhhhhhhhh", slipped, MIN_PROBATION_S).weight < known().weight
    assert known().weight < after("h" * 60, slipped, MIN_PROBATION_S).weight
    assert after("f" * 4).weight == pytest.approx(0.05)  # 0.5 of error, and not below
    assert after("f" * 50).error == 1.0
    assert after("ffff").false_claims == (0.0, 0.0, 0.0)


def test_three_false_claims_in_a_day_are_a_ban_for_a_day() -> None:
    clock = Clock()
    standings = Standings(clock, Random(0), name="here")
    standings.put(b"k", known())
    for pause in (0, DAY_S / 2, DAY_S / 2):  # the third comes when the first is a day old
        clock.now += pause
        assert standings.false_claim(b"k") is None
    assert standings.verdict(b"k", "net") == "welcome" and standings.weight(b"k") > 0.3
    ban = standings.false_claim(b"k")
    assert ban == Ban(until=clock.now + DAY_S, reason="3 false reward claims in a day", by="here")
    assert standings.verdict(b"k", "net") == "blocked" and standings.weight(b"k") == 0
    clock.now += DAY_S - 1
    assert standings.verdict(b"k", "net") == "blocked"
    clock.now += 1
    assert standings.verdict(b"k", "net") == "welcome"
    back = standings.of(b"k")
    assert back.probation and back.false_claims == () and 0.4 < back.error < 0.41
    assert standings.weight(b"k") == pytest.approx(1 - back.error / 0.5)  # below the 0.2 of a new key


def test_an_operators_longer_ban_is_not_cut_short_by_the_relays_own() -> None:
    clock = Clock()
    standings = Standings(clock, Random(0))
    long = Ban(until=clock.now + 30 * DAY_S, reason="spam", by="operator", shadow=True)
    standings.bans.put(b"k", long)
    assert [standings.false_claim(b"k") for _ in range(3)] == [None, None, long]
    assert standings.verdict(b"k", "net") == "shadowed"


def test_shadow_and_block_by_key_and_by_address() -> None:
    clock = Clock()
    standings = Standings(clock, Random(0))
    block = Ban(until=clock.now + 60, reason="flood", by="operator")
    shadow = msgspec.structs.replace(block, shadow=True, until=clock.now + 120)
    standings.bans.put("net", shadow)
    assert standings.verdict(b"a", "net") == "shadowed" and standings.verdict(b"a", "other") == "welcome"
    standings.bans.put(b"a", block)
    assert standings.verdict(b"a", "net") == "blocked" and standings.verdict(b"b", "net") == "shadowed"
    assert standings.weight(b"a") == 0 and standings.weight(b"b") == 0.2
    clock.now += 60
    assert standings.verdict(b"a", "net") == "shadowed"
    assert standings.bans.lift("net") and not standings.bans.lift("net")
    assert standings.verdict(b"a", "net") == "welcome"


def test_reports_only_make_a_check_likelier() -> None:
    clock = Clock()
    standings = Standings(clock, Random(0))
    for key in (b"known", b"target"):
        standings.put(key, known())
    weight = standings.weight(b"target")
    standings.report(b"new", b"target")
    assert standings.of(b"target").check == pytest.approx(0.2)
    standings.report(b"known", b"target")
    assert standings.of(b"target").check == 1.0 and standings.draw_check(b"target")
    assert standings.weight(b"target") == weight
    standings.record_honest(b"target")
    assert standings.of(b"target").check == 0.05
    standings.record_wrong_report(b"known")
    assert 0.05 < standings.of(b"known").error < 0.06
    standings.report(b"target", b"target")
    standings.bans.put(b"known", Ban(until=clock.now + 9, reason="", by="operator"))
    standings.report(b"known", b"target")
    assert standings.of(b"target").check == 0.05


def test_a_known_key_is_checked_one_time_in_twenty() -> None:
    standings = Standings(Clock(), Random(0))
    assert all(standings.draw_check(b"k") for _ in range(100))
    for _ in range(50):
        standings.record_honest(b"k")
    assert (
        150 < sum(standings.draw_check(b"k") for _ in range(4000)) < 250
    )  # 200 with a standard deviation of 14


def test_the_memory_is_bounded() -> None:
    standings = Standings(Clock(), Random(0), keys=3)
    for n in range(10):
        standings.record_honest(bytes([n]))
        standings.record_honest(b"steady")
    assert len(standings) == 3 and standings.of(b"steady").honest == 10 and standings.of(bytes([0])).honest == 0
    bans = Bans(most=3)
    for n in range(10):
        bans.put(str(n), Ban(until=100.0 + n % 7, reason="", by=""))
    assert set(bans.all(0)) == {"4", "5", "6"}


BAN_EVENTS = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"b", "a", "b"]),
        st.integers(0, 50),
        st.sampled_from(["ban", "lift", "look", "look"]),
    ),
    max_size=80,
)


@settings(deadline=None)
@given(BAN_EVENTS, st.lists(st.integers(0, 20), min_size=80, max_size=80))
def test_a_ban_holds_until_it_ends_or_is_lifted(
    events: list[tuple[bytes | str, int, str]], pauses: list[int]
) -> None:
    bans, model, now = Bans(), {}, 0.0  # type: ignore[var-annotated]
    for (source, length, what), pause in zip(events, pauses, strict=False):
        now += pause
        model = {name: ban for name, ban in model.items() if ban.until > now}
        if what == "ban":
            model[source] = Ban(until=now + length, reason="", by="")
            bans.put(source, model[source])
        elif what == "lift":
            bans.of(source, now)
            assert bans.lift(source) == (model.pop(source, None) is not None)
        model = {name: ban for name, ban in model.items() if ban.until > now}
        assert all(bans.of(name, now) == model.get(name) for name in (b"a", b"b", "a", "b"))
        assert bans.all(now) == model and len(bans) == len(model)


@settings(deadline=None)
@given(st.lists(st.sampled_from("hfrwF"), max_size=200), st.integers(1, 40_000))
def test_whatever_happens_a_standing_stays_in_its_range(events: list[str], pause: int) -> None:
    now, s = 0.0, Standing()
    for event in events:
        now += pause
        s = {
            "h": lambda s: rules.after_honest(s, now),  # noqa: B023 (called at once)
            "f": lambda s: rules.after_false_claim(s, now),  # noqa: B023 (called at once)
            "F": lambda s: rules.after_ban(s, now),  # noqa: B023 (called at once)
            "r": lambda s: rules.after_report(s, Standing()),
            "w": lambda s: rules.after_wrong_report(s),
        }[event](s)
        assert 0 <= s.error <= 1 and 0.05 <= s.weight <= 1 and 0.05 <= s.check <= 1
        assert len(s.false_claims) <= 3 and not (s.probation and s.weight > 0.2)
        assert msgspec.json.decode(msgspec.json.encode(s), type=Standing) == s
