"""Bodies and envelopes: exact bytes, exact limits, one refusal for everything else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.sapo.groups import HUMAN_MODEL, GroupRecord
from app.sapo.questions import Coordinates
from app.swarm.wire.body import Body, Envelope, WireTask, public_model_name, seal, unseal
from app.swarm.wire.limits import (
    MAX_COMPLETION_CHARS,
    Flaw,
    Refused,
)

SEED = bytes(range(32))
SWARM = "example-swarm"
NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize("enc", ["plain", "zlib"])
def test_a_sealed_body_comes_out_as_it_went_in(body: Body, group: GroupRecord, enc: Any) -> None:
    read = unseal(seal(body, SEED, enc), SWARM)
    assert read == body
    assert read.group() == group


def test_what_we_cannot_send_is_refused_before_it_is_signed(group: GroupRecord) -> None:
    def sent(*completions: str) -> Envelope:
        changed = msgspec.structs.replace(group, completions_G=completions)
        return seal(Body.of(changed, (1, 1, 0, 0), SWARM, 1, NOW_MS), SEED)

    for completions, expected in (
        (("x" * (MAX_COMPLETION_CHARS + 1), "", "", ""), Flaw.WRONG_SHAPE),
        (("🐟" * MAX_COMPLETION_CHARS,) * 4, Flaw.TOO_LARGE),
        (("\ud800", "", "", ""), Flaw.NOT_JSON),
    ):
        with pytest.raises(Refused) as refusal:
            sent(*completions)
        assert refusal.value.flaw == expected


@pytest.mark.parametrize(
    "private",
    ["/home/ann/cats", "C:\\Users\\ann\\cats", "~/cats", "../cats", "a/b/c", "", "cats for ann", "./cats",
     "x\n"],
)  # fmt: skip
def test_a_path_never_leaves_as_a_model_name(private: str, group: GroupRecord) -> None:
    assert public_model_name(private) == "local"
    sent = Body.of(msgspec.structs.replace(group, model=private), (1, 1, 0, 0), SWARM, 1, NOW_MS)
    assert sent.model == "local"


@settings(deadline=None)
@given(
    st.builds(
        Coordinates,
        family=st.from_regex(r"\A[a-z][a-z0-9_]{0,47}\Z"),
        level=st.integers(0, 63),
        seed=st.integers(0, 2**53 - 1),
        index=st.integers(0, 2**20 - 1),
    ),
    st.lists(st.tuples(st.text(max_size=60), st.booleans()), min_size=1, max_size=15),
    st.integers(1, 2**53 - 1),
)
def test_every_group_that_can_be_sent_arrives(
    where: Coordinates, answers: list[tuple[str, bool]], key_seq: int
) -> None:
    """The first completion is the one that is right, so that the group is informative."""
    completions, finished = zip(("#1", True), *answers, strict=True)
    group = GroupRecord(coordinates=where, completions_G=completions, finished_G=finished, model="starter")
    body = Body.of(group, (1, *[0] * len(answers)), SWARM, key_seq, NOW_MS)
    assert unseal(seal(body, SEED), SWARM).group() == group


def test_a_task_says_all_that_coordinates_say() -> None:
    assert set(WireTask.__struct_fields__) == set(Coordinates.__struct_fields__)


def test_a_persons_group_is_one_right_answer_marked_under_the_signature(group: GroupRecord) -> None:
    person = msgspec.structs.replace(group, completions_G=("4-1=3 #3",), finished_G=(True,), model=HUMAN_MODEL)
    body = Body.of(person, (1,), SWARM, 7, NOW_MS)
    assert body.model == HUMAN_MODEL and unseal(seal(body, SEED), SWARM) == body
    for wrong, rewards in (
        (person, (0,)),
        (msgspec.structs.replace(person, model="starter"), (1,)),
        (msgspec.structs.replace(person, completions_G=("#3", "#4"), finished_G=(True, True)), (1, 0)),
        (msgspec.structs.replace(person, finished_G=(False,)), (1,)),
    ):
        with pytest.raises(Refused):
            Body.of(wrong, rewards, SWARM, 7, NOW_MS)
