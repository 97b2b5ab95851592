from __future__ import annotations

from math import exp, nan, sqrt
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sapo.groups import informative
from app.sapo.recipes import RECIPES, Recipe
from app.sapo.weighing import TrainGroup, WeighError, deal_minibatches, minibatch_count, running_logprob, weigh

FAITHFUL, DEFAULT = RECIPES["faithful"], RECIPES["default"]


def group(rewards_G, lengths_G=None, finished_G=None, means_G=None) -> TrainGroup:  # type: ignore[no-untyped-def]
    g = len(rewards_G)
    lengths_G = tuple(lengths_G or [2] * g)
    return TrainGroup(
        rewards_G=tuple(rewards_G),
        finished_G=tuple(finished_G or [True] * g),
        lengths_G=lengths_G,
        logprobs_GT=None
        if means_G is None
        else tuple((m,) * n for m, n in zip(means_G, lengths_G, strict=True)),
    )


def first(weights) -> list[float]:  # type: ignore[no-untyped-def]
    """The weight of each completion's first token; most often that of all its tokens."""
    return [weights_T[0] for weights_T in weights]


def total(weights) -> float:  # type: ignore[no-untyped-def]
    return sum(abs(w) for group_ in weights for tokens in group_ for w in tokens)


def test_minibatches_whatever_the_sizes() -> None:
    for groups in range(12):
        for per_step in (None, 1, 2, 3, 5):
            steps = minibatch_count(groups, per_step)
            parts = deal_minibatches(range(groups), steps, Random(groups))
            assert sorted(one for part in parts for one in part) == list(range(groups))
            assert len(parts) == steps and all(parts)
            assert max(map(len, parts), default=0) - min(map(len, parts), default=0) <= 1


def test_weights_are_means_over_the_groups_of_a_step() -> None:
    own = [group([1, 0]), group([1, 0]), group([0, 0]), group([1, 0])]
    whole, parts = (
        weigh(msgspec.structs.replace(FAITHFUL, groups_per_step=size), own, [], 0.0) for size in (None, 1)
    )
    assert (whole.steps, parts.steps) == (1, 3)  # the third group has nothing to teach
    assert total(parts.own) == pytest.approx(3 * total(whole.own))
    assert parts.own_mass == whole.own_mass


# faithful


def test_faithful_by_hand() -> None:
    own = [group([1, 0, 0, 0], [4, 2, 2, 2]), group([0, 0, 0, 0])]
    peer = [group([1, 1, 0, 0], [5, 5, 5, 5])]
    weighed = weigh(FAITHFUL, own, peer, 0.0)
    # three groups in the mean (the uninformative own one counts), four completions each, then the length
    assert first(weighed.own[0])[0] == pytest.approx(1.5 / (3 * 4 * 4))  # 0.75 / std 0.5
    assert first(weighed.own[0])[1] == pytest.approx(-0.5 / (3 * 4 * 2))
    assert total(weighed.own[1:]) == 0
    assert first(weighed.peer[0])[0] == pytest.approx(0.5 * sqrt(3) / (3 * 4 * 5))
    assert (weighed.step, weighed.peer_scale) == (1.0, 1.0)
    assert [len(tokens) for tokens in weighed.own[0]] == [4, 2, 2, 2]


def test_faithful_treats_peers_as_own_however_unlikely() -> None:
    a, b = group([1, 0, 0, 1]), group([1, 0, 0, 1], means_G=[-90.0] * 4)
    weighed = weigh(FAITHFUL, [a], [b], -0.5)
    assert weighed.own[0] == weighed.peer[0]
    assert FAITHFUL.clip == (0.2, 0.28)


def test_faithful_peers_alone_make_a_full_step() -> None:
    weighed = weigh(FAITHFUL, [group([0, 0])], [group([1, 0])], 0.0)
    assert weighed.step == 1.0 and total(weighed.peer) > 0


# default


def test_default_own_by_hand() -> None:
    # 2 informative groups: 4+2+2+2 and 3+3+3+3 tokens; the third is dropped and not counted
    own = [group([1, 0, 0, 0], [4, 2, 2, 2]), group([1, 1, 0, 0], [3, 3, 3, 3]), group([1, 1, 1, 1], [50] * 4)]
    weighed = weigh(DEFAULT, own, [], -1.0)
    assert first(weighed.own[0]) == pytest.approx([0.75 / 22, -0.25 / 22, -0.25 / 22, -0.25 / 22])
    assert first(weighed.own[1]) == pytest.approx([0.5 / 22, 0.5 / 22, -0.5 / 22, -0.5 / 22])
    assert total(weighed.own[2:]) == 0


def test_default_peer_gates_by_hand() -> None:
    own = [group([1, 1, 0, 0], [100] * 4)]  # heavy enough that the cap stays out of the way
    means_G = [
        -1.0,
        -4.1,
        -1.5,
        -2.1,
    ]  # l* = -1: right, right below the floor, wrong tapered, wrong below its floor
    weighed = weigh(DEFAULT, own, [group([1, 1, 0, 0], means_G=means_G)], -1.0)
    n = 400 + 8
    assert first(weighed.peer[0]) == pytest.approx([0.6 / n, 0.0, -0.4 * exp(-0.5) / n, 0.0])
    assert weighed.peer_scale == 1.0
    assert (weighed.gated_right, weighed.gated_wrong) == (1, 1)


def test_a_right_answer_that_the_defences_distrust_weighs_nothing() -> None:
    own, likely = [group([1, 0])], [-1.0] * 4
    peer = group([1, 1, 0, 0], means_G=likely)
    some = msgspec.structs.replace(peer, trusted_G=(True, False, True, False))
    weighed = weigh(DEFAULT, own, [some], -1.0)
    kept, distrusted, *wrong = first(weighed.peer[0])
    assert kept > 0 and distrusted == 0 and all(w < 0 for w in wrong), "wrong ones are no matter of trust"
    assert (weighed.gated_right, weighed.gated_wrong, weighed.right_P) == (1, 0, ((1, 1),))


def test_a_group_without_a_trusted_right_answer_teaches_nothing_at_all() -> None:
    """Else its failures would still be pushed down, chosen by whoever wrote them."""
    peer = msgspec.structs.replace(group([1, 0, 0, 0], means_G=[-1.0] * 4), trusted_G=(False,) * 4)
    weighed = weigh(DEFAULT, [group([1, 0])], [peer], -1.0)
    assert total(weighed.peer) == 0 and weighed.right_P == ((0, 1),)
    assert weigh(DEFAULT, [group([1, 0])], [peer], -1.0).own == weighed.own


def test_the_safety_floor_and_the_taper_at_their_edges() -> None:
    own = [group([1, 1, 0, 0], [100] * 4)]
    weighed = weigh(DEFAULT, own, [group([1, 1, 0, 0], means_G=[-4.0, -3.99, -2.0, 0.0])], -1.0)
    n = 408
    assert first(weighed.peer[0]) == pytest.approx([0.6 / n, 0.6 / n, -0.4 * exp(-1) / n, -0.4 / n])
    weighed = weigh(DEFAULT, own, [group([1, 0], means_G=[nan, nan])], -1.0)
    assert total(weighed.peer) == 0


def test_the_cap_brings_peers_down_to_own_mass() -> None:
    own = [group([1, 0, 0, 0], [1] * 4)]  # mass 0.75 + 3 * 0.25 = 1.5
    peer = [group([1, 0], [10, 10], means_G=[0, 0])]  # mass 0.6 * 10 + 0.4 * 10 = 10
    weighed = weigh(DEFAULT, own, peer, 0.0)
    assert weighed.peer_scale == pytest.approx(0.15)
    assert weighed.own_mass == pytest.approx(1.5 / 24) == pytest.approx(weighed.peer_mass)
    assert first(weighed.peer[0]) == pytest.approx([0.15 * 0.6 / 24, -0.15 * 0.4 / 24])
    assert weighed.step == 1.0


def test_peers_alone_go_half_a_step_uncapped() -> None:
    weighed = weigh(DEFAULT, [group([0, 0])], [group([1, 0], [10, 10], means_G=[0, 0])], 0.0)
    assert (weighed.step, weighed.peer_scale) == (0.5, 1.0)
    assert first(weighed.peer[0]) == pytest.approx([0.6 / 20, -0.4 / 20])
    assert weigh(DEFAULT, [group([0, 0])], [], 0.0).step == 1.0  # nothing at all to learn from


# both


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
def test_unfinished_completions_fail_in_the_mean_and_are_masked(recipe: Recipe) -> None:
    # the second reward of 1 belongs to a completion that was cut off: it counts as a failure
    cut = group([1, 1, 0, 0], [2, 9, 9, 2], finished_G=[True, False, False, True], means_G=[0, 0, 0, 0])
    clean = group([1, 0, 0, 0], [2, 9, 9, 2], means_G=[0, 0, 0, 0])
    masked, whole = weigh(recipe, [cut], [], 0.0).own[0], weigh(recipe, [clean], [], 0.0).own[0]
    assert set(masked[1]) == set(masked[2]) == {0.0}
    assert masked[0][0] / masked[3][0] == pytest.approx(whole[0][0] / whole[3][0])
    if recipe.denominator == "token":
        assert masked[0][0] == pytest.approx(0.75 / 4)
    assert not informative(group([0, 1], finished_G=[True, False]).verdicts_G)
    assert total(weigh(recipe, [group([0, 1], finished_G=[True, False])], [], 0.0).own) == 0


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
def test_lengths_that_differ_are_refused(recipe: Recipe) -> None:
    with pytest.raises(WeighError):
        weigh(recipe, [group([1, 0], [2, 2, 2])], [], 0.0)
    wrong = TrainGroup(
        rewards_G=(1, 0), finished_G=(True, True), lengths_G=(2, 2), logprobs_GT=((-1.0,), (-1.0, -1.0))
    )
    with pytest.raises(WeighError):
        weigh(recipe, [wrong], [], 0.0)


def test_default_needs_log_probabilities_of_informative_peers_only() -> None:
    weigh(DEFAULT, [], [group([0, 0])], 0.0)
    with pytest.raises(WeighError):
        weigh(DEFAULT, [], [group([0, 1])], 0.0)


def test_empty_rounds_are_fine() -> None:
    for recipe in RECIPES.values():
        weighed = weigh(recipe, [], [], 0.0)
        assert (weighed.own, weighed.peer, weighed.step) == ((), (), 1.0)


def test_recipes_are_plain_data() -> None:
    for name, recipe in RECIPES.items():
        assert recipe.name == name
        assert msgspec.json.decode(msgspec.json.encode(recipe), type=Recipe) == recipe


def test_only_a_gating_recipe_asks_for_peer_logprobs() -> None:
    assert DEFAULT.needs_peer_logprobs and not FAITHFUL.needs_peer_logprobs


def test_running_logprob_keeps_what_it_has() -> None:
    assert running_logprob(None, []) is None
    assert running_logprob(-0.7, []) == -0.7


@st.composite
def groups(draw: st.DrawFn) -> TrainGroup:
    g = draw(st.integers(2, 8))

    def many(values):  # type: ignore[no-untyped-def]
        return draw(st.lists(values, min_size=g, max_size=g))

    return group(
        many(st.integers(0, 1)),
        many(st.integers(1, 5)),
        many(st.sampled_from([True, True, True, False])),
        many(st.floats(-6, 0)),
    )


lists = st.lists(groups(), max_size=5)
any_recipe = st.sampled_from(list(RECIPES.values()))


@given(any_recipe, lists, lists, st.floats(-3, 0))
def test_uninformative_or_unfinished_means_zero(recipe, own, peer, star) -> None:  # type: ignore[no-untyped-def]
    weighed = weigh(recipe, own, peer, star)
    for group_, weights_GT in zip([*own, *peer], [*weighed.own, *weighed.peer], strict=True):
        assert tuple(map(len, weights_GT)) == group_.lengths_G
        for finished, weights_T in zip(group_.finished_G, weights_GT, strict=True):
            if not finished or not informative(group_.verdicts_G):
                assert not any(weights_T)


@given(any_recipe, lists, lists, st.floats(-3, 0))
def test_right_answers_are_never_pushed_down_nor_wrong_ones_up(recipe, own, peer, star) -> None:  # type: ignore[no-untyped-def]
    weighed = weigh(recipe, own, peer, star)
    for group_, weights_GT in zip([*own, *peer], [*weighed.own, *weighed.peer], strict=True):
        for right, weights_T in zip(group_.verdicts_G, weights_GT, strict=True):
            assert all(w >= 0 if right else w <= 0 for w in weights_T)


@given(lists, lists, st.floats(-3, 0))
def test_peers_never_outweigh_own_work(own, peer, star) -> None:  # type: ignore[no-untyped-def]
    weighed = weigh(DEFAULT, own, peer, star)
    steps = max(1, weighed.steps)
    own_mass, peer_mass = total(weighed.own) / steps, total(weighed.peer) / steps
    assert (weighed.own_mass, weighed.peer_mass) == (pytest.approx(own_mass), pytest.approx(peer_mass))
    if own_mass:
        assert peer_mass <= own_mass * (1 + 1e-9) and weighed.step == 1.0
    elif peer_mass:
        assert weighed.step == 0.5


@given(any_recipe, groups())
def test_own_weights_of_a_finished_group_cancel(recipe, group_) -> None:  # type: ignore[no-untyped-def]
    """With everything finished, GRPO's weights sum to zero over completions, each taken once."""
    whole = msgspec.structs.replace(group_, finished_G=(True,) * len(group_.rewards_G))
    (weights_GT,) = weigh(recipe, [whole], [], 0.0).own
    once = [w[0] * len(w) if recipe.denominator == "completion" else w[0] for w in weights_GT]
    assert sum(once) == pytest.approx(0, abs=1e-9)


@given(any_recipe, lists, lists, st.floats(-3, 0), st.integers(0, 2**32))
def test_the_order_of_groups_and_completions_does_not_matter(recipe, own, peer, star, seed) -> None:  # type: ignore[no-untyped-def]
    rng = Random(seed)
    weighed = weigh(recipe, own, peer, star)
    order = list(range(len(peer)))
    rng.shuffle(order)
    moved = weigh(recipe, own, [peer[i] for i in order], star)
    for position, i in enumerate(order):
        for a, b in zip(moved.peer[position], weighed.peer[i], strict=True):
            assert a == pytest.approx(b)
    if not own:
        return
    inner = list(range(len(own[0].rewards_G)))
    rng.shuffle(inner)
    turned = TrainGroup(
        **{
            field: tuple(values[i] for i in inner) if isinstance(values, tuple) else values
            for field, values in msgspec.structs.asdict(own[0]).items()
        }
    )
    again = weigh(recipe, [turned, *own[1:]], peer, star)
    for position, i in enumerate(inner):
        assert again.own[0][position] == pytest.approx(weighed.own[0][i])
