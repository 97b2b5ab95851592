from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.relay.presence import ACTIVE_S, MAX_FAMILIES_PER_KEY, Presence, PresenceCounts, model_size_class


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


def test_keys_are_counted_once_and_connections_each() -> None:
    presence = Presence(Clock())
    for session, key in enumerate([b"a", b"a", b"b"]):
        presence.arrive(session, key)
    presence.published(b"a", "chain_sum", "starter")
    presence.published(b"a", "gcd", "starter")
    presence.published(b"b", "gcd", "Qwen/Qwen2.5-0.5B")
    presence.published(b"stranger", "gcd", "starter")
    assert presence.counts() == PresenceCounts(
        peers=2, connections=3, families={"chain_sum": 1, "gcd": 2}, models={"starter": 1, "under 1B": 1}
    )
    assert presence.connections(b"a") == 2 and presence.connections(b"stranger") == 0 and b"a" in presence
    presence.leave(0)
    assert presence.counts().peers == 2
    presence.leave(1)
    presence.leave("never arrived")
    assert presence.counts() == PresenceCounts(
        peers=1, connections=1, families={"gcd": 1}, models={"under 1B": 1}
    )
    with pytest.raises(ValueError):
        presence.arrive(2, b"c")


def test_a_family_is_played_until_ten_minutes_after_the_last_group() -> None:
    clock = Clock()
    presence = Presence(clock)
    presence.arrive(1, b"a")
    presence.published(b"a", "f", "x")
    clock.now += ACTIVE_S / 2
    presence.published(b"a", "g", "x")
    presence.published(b"a", "f", "x")
    clock.now += ACTIVE_S
    assert presence.counts().families == {"f": 1, "g": 1}
    presence.published(b"a", "g", "x")
    clock.now += 1
    assert presence.counts().families == {"g": 1}
    assert presence.counts().peers == 1


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", "under 1B"),
        ("HuggingFaceTB/SmolLM2-135M", "under 1B"),
        ("Qwen/Qwen2.5-1.5B", "1B to 3B"),
        ("meta-llama/Llama-3.2-1B", "1B to 3B"),
        ("Qwen/Qwen2.5-3B", "3B to 8B"),
        ("mistralai/Mixtral-8x7B-v0.1", "3B to 8B"),
        ("Qwen/Qwen2.5-72B", "8B and more"),
        ("Qwen2.5-7Bold", "unknown"),
        ("starter", "starter"),
        ("local", "unknown"),
        ("", "unknown"),
        ("9" * 150 + "B", "unknown"),
    ],
)
def test_the_class_of_a_model_from_its_name(model: str, name: str) -> None:
    assert model_size_class(model) == name


def test_names_of_peers_making_cannot_fill_the_counts() -> None:
    presence = Presence(Clock())
    presence.arrive(1, b"a")
    for n in range(1000):
        presence.published(b"a", f"family {n}", f"My-Model-{n}-{n}B")
    here = presence.counts()
    assert len(here.families) == MAX_FAMILIES_PER_KEY and sum(here.models.values()) == 1


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "leave", "publish"]),
        st.integers(0, 9),
        st.sampled_from([b"a", b"b", b"c"]),
        st.sampled_from("fgh"),
        st.sampled_from(["starter", "m-7B", "local"]),
        st.sampled_from([0, 0, 1, 250, 700]),
    ),
    max_size=80,
)


@settings(deadline=None)
@given(EVENTS)
def test_the_counts_are_those_of_a_plain_list(events: list[tuple]) -> None:  # type: ignore[type-arg]
    clock = Clock()
    presence = Presence(clock)
    sessions: dict[int, bytes] = {}
    played: dict[tuple[bytes, str], float] = {}
    models: dict[bytes, str] = {}
    for what, session, key, family, model, pause in events:
        clock.now += pause
        if what == "arrive" and session not in sessions:
            sessions[session] = key
            presence.arrive(session, key)
        elif what == "leave":
            sessions.pop(session, None)
            presence.leave(session)
        elif what == "publish":
            presence.published(key, family, model)
            if key in sessions.values():
                played[key, family] = clock.now
                models[key] = model_size_class(model)
        online = set(sessions.values())
        played = {pair: at for pair, at in played.items() if pair[0] in online and clock.now - at <= ACTIVE_S}
        models = {key: name for key, name in models.items() if key in online}
        assert presence.counts() == PresenceCounts(
            peers=len(online),
            connections=len(sessions),
            families=Counter(family for _, family in played),
            models=Counter(models.get(key, "unknown") for key in online),
        )
