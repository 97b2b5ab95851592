"""Sharing with TRL's own trainer and the starter model. Skipped where TRL is missing: `./shoal setup --bench`
installs it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates, draw
from app.sapo.scoring.sandbox import Sandbox, score_group
from app.swarm.library.records import Group, Published, Question, SeaError

pytest.importorskip("trl", reason="needs TRL: ./shoal setup --bench installs it")

from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from app.swarm.library import join
from app.swarm.library.trl import NEVER_CALLED, Sharing, mixed_part
from tests.swarm.library.test_sea import PATIENCE_S, answered, archived, until
from tests.swarm.relays import Relay
from tests.swarm.relays import group as strangers_group

STARTER = Path(__file__).parents[3] / "resources" / "starter"
G = 4


class FakeSea:
    """A sea without a network: `waiting` are the groups that have come, `published` those that went out."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.waiting: list[Group] = []
        self.published: list[Group] = []
        self.learned: list[Group] = []

    def questions(self, count: int, families: Any, *, level: int, seed: int | None) -> list[Question]:
        drawn = [draw(families[at % len(families)], level, 10**6 * (seed or 1) + at) for at in range(count)]
        return [Question(coordinates=one.coordinates, text=one.text) for one in drawn]

    def check_all(self, coordinates: Any, texts: Any, *, finished: Any) -> list[float]:
        where = msgspec.convert(dict(coordinates), Coordinates)
        record = GroupRecord(coordinates=where, completions_G=tuple(texts), finished_G=finished, model="")
        return [float(one) for one in score_group(self._sandbox, record).rewards_G]

    def publish(self, groups: list[Group]) -> Published:
        self.published += groups
        return Published(stored=len(groups), left_out={})

    def sample(self, count: int, *, answers: int) -> list[Group]:
        given, self.waiting = self.waiting[:count], self.waiting[count:]
        return given

    def status(self) -> Any:
        return SimpleNamespace(name="me")

    def learned_from(self, groups: list[Group]) -> None:
        self.learned += groups


class Watched(Sharing):
    """Keeps what TRL was given, and what it rewarded."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.batches: list[dict[str, Any]] = []
        self.rewarded: list[list[float | None]] = []

    def rollout(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        self.batches.append(dict(super().rollout(prompts, trainer)))
        return self.batches[-1]

    def reward(self, *args: Any, **columns: Any) -> list[float | None]:
        self.rewarded.append(super().reward(*args, **columns))
        return self.rewarded[-1]


def peers(seed: int = 5, wrong: str = "#0") -> Group:
    """A group of another author: a right answer, then wrong ones."""
    asked = draw("gcd", 0, seed)
    return Group(
        coordinates=asked.coordinates, completions=(f"the work #{asked.entry['answer']}", *[wrong] * (G - 1)),
        rewards=(1, *[0] * (G - 1)), finished=(True,) * G, question=asked.text, author="Ann", id=str(seed),
    )  # fmt: skip


def trainer(share: Sharing, folder: Path, steps: int = 2, size: int = G, **options: Any) -> GRPOTrainer:
    """A trainer whose batches have two questions."""
    args = GRPOConfig(
        output_dir=str(folder), max_steps=steps, num_generations=size, per_device_train_batch_size=size,
        per_device_eval_batch_size=size, gradient_accumulation_steps=2, max_completion_length=48,
        learning_rate=1e-4,
        logging_steps=1, report_to=[], save_strategy="no", use_cpu=True, bf16=False,
    )  # fmt: skip
    made: dict[str, Any] = dict(
        train_dataset=share.dataset(["chain_sum"], 8), reward_funcs=share.reward,
        rollout_func=share.rollout, callbacks=[share.callback],
    )  # fmt: skip
    return GRPOTrainer(str(STARTER), args=args, **{**made, **options})


@pytest.fixture
def sea(sandbox: Sandbox) -> FakeSea:
    return FakeSea(sandbox)


def test_the_first_answers_are_kept_and_the_part_is_mixed() -> None:
    assert mixed_part([1, 1, 0, 0], 2) == [0, 2]
    assert mixed_part([0] * 20 + [1], 16) == [*range(15), 20]


def test_a_peers_group_is_the_last_of_a_batch_and_is_learned_from(sea: FakeSea, tmp_path: Path) -> None:
    sea.waiting = [peers()]
    share = Watched(sea, own=1, peers=1)
    training = trainer(share, tmp_path)
    training.train()

    mixed, own = share.batches
    assert mixed["author"] == [""] * G + ["Ann"] * G and own["author"] == [""] * 2 * G
    assert mixed["coordinates"][-1] == msgspec.structs.asdict(peers().coordinates)
    assert share.rewarded[0][G:] == [1, 0, 0, 0]
    assert mixed["logprobs"] is None, "so the first ratio is 1"
    assert [ids[-1] for ids in mixed["completion_ids"][G:]] == [training.processing_class.eos_token_id] * G
    assert sea.learned == [peers()]
    assert [row["swarm/peer_groups"] for row in training.state.log_history if "loss" in row] == [1, 0]
    assert training.state.log_history[0]["swarm/peer_nats"] > 0
    assert {one.coordinates.family for one in sea.published} <= {"chain_sum"}, "own ones alone"


def test_own_mixed_groups_go_out_as_they_were_sampled(sea: FakeSea, tmp_path: Path) -> None:
    share = Watched(sea, own=1, peers=1)
    trainer(share, tmp_path, steps=3).train()
    scored = [one for rewards in share.rewarded for one in (rewards[:G], rewards[G:])]
    assert 0 < len(sea.published) == sum(len(set(one)) > 1 for one in scored)
    for group in sea.published:
        where = msgspec.structs.asdict(group.coordinates)
        assert len(set(sea.check_all(where, group.completions, finished=group.finished))) == 2
        assert "<end>" not in "".join(group.completions)


def test_positives_only_gives_wrong_answers_no_gradient(sea: FakeSea, tmp_path: Path) -> None:
    sea.waiting = [peers()]
    share = Watched(sea, own=1, peers=1, positives_only=True)
    trainer(share, tmp_path, steps=1).train()
    lengths = [len(ids) for ids in share.batches[0]["completion_ids"]]
    assert [sum(mask) for mask in share.batches[0]["env_mask"]] == [*lengths[: G + 1], 0, 0, 0]


def test_evaluation_is_all_own_and_publishes_nothing(sea: FakeSea, tmp_path: Path) -> None:
    sea.waiting = [peers()]
    share = Watched(sea, own=1, peers=1)
    measuring = trainer(share, tmp_path, eval_dataset=share.dataset(["chain_sum"], 2, seed=9))
    measuring.evaluate()
    assert share.batches and not any("".join(batch["author"]) for batch in share.batches)
    assert sea.waiting == [peers()] and sea.published == []


def test_an_answer_that_is_too_long_keeps_its_group_out(sea: FakeSea, tmp_path: Path) -> None:
    sea.waiting = [peers(1, wrong="9" * 200), peers(2)]
    share = Watched(sea, own=1, peers=1)
    trainer(share, tmp_path, steps=2).train()
    assert sea.learned == [peers(2)]


def test_marks_of_the_chat_in_a_peers_answer_are_plain_text(sea: FakeSea, tmp_path: Path) -> None:
    sea.waiting = [peers(wrong="<end>#1")]
    share = Watched(sea, own=1, peers=1)
    training = trainer(share, tmp_path, steps=1)
    training.train()
    end = training.processing_class.eos_token_id
    assert [ids.count(end) for ids in share.batches[0]["completion_ids"][G:]] == [1] * G


def test_a_trainer_that_never_asks_for_rollouts_is_stopped(sea: FakeSea, tmp_path: Path) -> None:
    share = Sharing(sea)
    for reward in (share.reward, lambda completions, **_: [1.0] * len(completions)):
        with pytest.raises(SeaError, match="never called"):
            trainer(share, tmp_path, rollout_func=None, reward_funcs=reward).train()
    assert "rollout_func=share.rollout" in NEVER_CALLED


@pytest.mark.parametrize(
    ("prompts", "processes", "own", "says"),
    [
        (2 * G, 2, 1, "2 processes"),
        (2 * G + 1, 1, 1, "no multiple of num_generations=4"),
        (2 * G, 1, 3, "to 16"),
    ],
)
def test_what_cannot_be_shared_is_refused(prompts: int, processes: int, own: int, says: str) -> None:
    training = SimpleNamespace(
        model=SimpleNamespace(training=True),
        num_generations=G,
        accelerator=SimpleNamespace(num_processes=processes),
    )
    with pytest.raises(SeaError, match=says):
        Sharing(None, own=own, peers=1).rollout([""] * prompts, training)  # type: ignore[arg-type]
    with pytest.raises(SeaError, match="own=0"):
        Sharing(None, own=0)  # type: ignore[arg-type]


def test_prompts_of_others_get_no_reward_here(sea: FakeSea, tmp_path: Path) -> None:
    share, stranger = Sharing(sea, own=1, peers=1), Sharing(sea)
    with pytest.raises(SeaError, match="None of these prompts"):
        trainer(share, tmp_path, train_dataset=stranger.dataset(["gcd"], 4)).train()


def test_groups_that_lie_never_reach_a_batch(tmp_path: Path) -> None:
    with join(archived(tmp_path), home=tmp_path / "none") as archive:
        share = Watched(archive, own=1, peers=1)
        trainer(share, tmp_path, steps=3, size=2, train_dataset=share.dataset(["gcd"], 8)).train()
        refused = archive.status().refused
    assert {"false-rewards", "wrong-shape", "other-version", "look-alike"} <= set(refused)
    came = [one["coordinates"][-1] for one in share.batches if one["author"][-1]]
    assert came == [msgspec.structs.asdict(strangers_group(99).coordinates)]


@pytest.mark.long
def test_training_goes_on_while_the_relay_is_gone_and_nothing_is_lost(tmp_path: Path) -> None:
    relay = Relay("--state", str(tmp_path / "relay"))
    relay.start()

    class Killing(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            if state.global_step == 2:
                relay.kill()
                until(lambda: not sea.status().connected, "the relay is gone")

    with join(relay.url, home=tmp_path / "a") as sea, join(relay.url, home=tmp_path / "b") as other:
        asked = other.questions(2, families=["gcd"])
        other.publish([answered(one, answers=G) for one in asked])
        sea.sample(1, answers=G)
        until(lambda: sea.status().ready, "a group of the other is here")
        share = Watched(sea, own=1, peers=1)
        trainer(share, tmp_path / "out", steps=6, callbacks=[share.callback, Killing()]).train()
        assert len(share.batches) == 6 and sum(map(bool, share.batches[0]["author"])) == G
        stored = sea.status().published
        relay.start()
        until(lambda: sea.status().waiting == 0 and sea.status().acknowledged == stored, "all went out")
        assert stored and other.sample(1, answers=G, wait_s=PATIENCE_S)
    relay.kill()
