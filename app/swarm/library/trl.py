"""Lets a `GRPOTrainer` of TRL learn with a swarm: peers' groups stand in its batches, and its own go out.

    share = Sharing(sea, own=4, peers=4)
    trainer = GRPOTrainer(
        model, train_dataset=share.dataset(["gcd", "chain_sum"], rows=2000), reward_funcs=share.reward,
        rollout_func=share.rollout, callbacks=[share.callback], args=GRPOConfig(num_generations=8, ...),
    )

TRL hands a whole batch of prompts to `rollout_func`, each G = num_generations times in a row, and takes
advantages from `rewards.view(-1, G)`. `Sharing.rollout` replaces the last questions of a batch by peers' groups
of exactly G mixed answers, and has TRL generate the rest as it always does. A peer's tokens get no
log-probability of a sampler, so their first ratio is 1, as in SAPO (arXiv 2509.08721). Nothing here waits for
the network: where too few groups have come, the batch keeps its own questions.

Made for TRL 0.29.1 to 1.16.0, whose rollout_func is experimental, in one process, without tools
and environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import msgspec
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import TrainerCallback

from app.sapo.groups import informative
from app.swarm.library.records import Group, Published, SeaError, as_coordinates
from app.swarm.wire.limits import MAX_COMPLETIONS

if TYPE_CHECKING:
    from datasets import Dataset

    from app.swarm.library.sea import Sea

NEVER_CALLED = (
    "TRL never called share.rollout, so nothing was shared: pass rollout_func=share.rollout to GRPOTrainer "
    "itself, without a wrapper that generates in its own way."
)


class Sharing:
    """Joins one trainer to a `Sea`.

    Of every `own` + `peers` questions of a batch, `peers` are replaced by peers' groups, as far as those have
    come; 0 only publishes, and an archive only gives. `positives_only`: wrong answers of peers still count in
    their group's mean reward, but get no gradient. Raises SeaError for other numbers."""

    def __init__(self, sea: Sea, own: int = 4, peers: int = 4, positives_only: bool = False) -> None:
        if own < 1 or peers < 0:
            raise SeaError(f"A batch needs questions of its own: own={own}, peers={peers} can't be shared out.")
        self._sea, self._own, self._peers = sea, own, peers
        self._positives_only = positives_only
        self._coordinates: dict[str, dict[str, Any]] = {}
        self._used: list[Group] = []
        self._trainer: Any = None
        self._publishing = False
        self.callback = _Watch(self)
        """Tells authors who learned from their answers, and ends a training that doesn't call `rollout`."""

    def dataset(
        self, families: Sequence[str] | None, rows: int, *, level: int = 0, seed: int | None = None
    ) -> Dataset:
        """Returns `rows` questions of these families (None: all) for `train_dataset` or `eval_dataset`: columns
        `prompt` (chat messages) and `coordinates`. Questions on which models are measured are never among them.
        `rollout` knows a question again only in the process that drew it. `level`, `seed`: as in
        `Sea.questions`. Raises SeaError."""
        from datasets import Dataset

        questions = self._sea.questions(rows, families, level=level, seed=seed)
        for one in questions:
            self._coordinates[one.text] = msgspec.structs.asdict(one.coordinates)
        return Dataset.from_list(
            [{"prompt": one.messages, "coordinates": self._coordinates[one.text]} for one in questions]
        )

    def rollout(self, prompts: list[Any], trainer: Any) -> dict[str, list[Any] | None]:
        """The `rollout_func`. Answers a batch: `prompts` has each question G times in a row.

        Returns, for each row, `prompt_ids`, `completion_ids` and `logprobs` (None without vLLM, and for peers'
        tokens), and what the reward functions get: `coordinates` (None for a prompt that is not from
        `dataset`), `finished` (whether the answer ended by itself), `author` ("" for own). Evaluation has own
        answers alone. Logs `swarm/peer_groups`, and `swarm/peer_nats`, the mean surprise in nats a token that
        peers' answers are to this model. Raises SeaError if this trainer or batch can't be shared."""
        self._trainer, self._publishing = trainer, trainer.model.training
        size = trainer.num_generations if self._publishing else trainer.num_generations_eval
        groups = self._groups_for(prompts, trainer) if self._publishing else []
        kept = prompts[: len(prompts) - size * len(groups)]
        rows = _generated(trainer, kept, size)
        rows["coordinates"] = [self._coordinates.get(_text(prompt)) for prompt in kept]
        rows["author"] = [""] * len(kept)
        if self._publishing and not any(rows["coordinates"]):
            raise SeaError(
                "None of these prompts comes from share.dataset(...): call it in the process that trains."
            )
        if self._positives_only:
            rows["env_mask"] = [[1] * len(ids) for ids in rows["completion_ids"]]
        for group, ids_G in groups:
            self._append(rows, group, ids_G)
        if groups:
            logged = trainer._metrics["train"]
            logged["swarm/peer_nats"].append(
                _nats(trainer, *(rows[key][len(kept) :] for key in ("prompt_ids", "completion_ids")))
            )
        if self._publishing:
            trainer._metrics["train"]["swarm/peer_groups"].append(len(groups))
        self._used += [group for group, _ in groups]
        return rows

    def reward(
        self,
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]],
        coordinates: Sequence[Mapping[str, Any] | None],
        finished: Sequence[bool] | None = None,
        author: Sequence[str] = (),
        **others: Any,
    ) -> list[float | None]:
        """The reward function. Returns 1.0 for a right answer that ended by itself and else 0.0, scored in the
        sandbox from the coordinates, whoever wrote it; None for a prompt that is not from `dataset`. Publishes
        own groups that are mixed, from training only, and logs how many (`swarm/published`), and how many could
        not go out (`swarm/left_out`; see `Published`). Raises SeaError if `rollout` did not make these answers.
        Other reward functions beside this one get, in a peer's row, the `prompts` that it replaced: TRL has no
        other way."""
        if finished is None or self._trainer is None:
            raise SeaError(NEVER_CALLED)
        texts = _tokenizer(self._trainer).batch_decode(completion_ids, skip_special_tokens=True)
        rewards: list[float | None] = []
        mixed: list[Group] = []
        size = self._trainer.num_generations if self._publishing else 1
        for start in range(0, len(texts), size):
            some = slice(start, start + size)
            asked, ended = coordinates[start], tuple(finished[some])
            if asked is None:
                rewards += [None] * len(ended)
                continue
            scored = self._sea.check_all(asked, texts[some], finished=ended)
            rewards += scored
            if self._publishing and not author[start] and informative([int(one) for one in scored]):
                places = mixed_part(scored, MAX_COMPLETIONS)
                mixed.append(
                    Group(
                        coordinates=as_coordinates(asked),
                        completions=tuple(texts[start + at] for at in places),
                        finished=tuple(ended[at] for at in places),
                    )
                )
        if self._publishing:
            archived = not self._sea.status().name
            published = Published(stored=0, left_out={}) if archived else self._sea.publish(mixed)
            logged = self._trainer._metrics["train"]
            logged["swarm/published"].append(published.stored)
            logged["swarm/left_out"].append(sum(published.left_out.values()))
        return rewards

    def _groups_for(self, prompts: Sequence[Any], trainer: Any) -> list[tuple[Group, list[list[int]]]]:
        """Returns the peers' groups of a batch, with their answers as tokens. Raises SeaError."""
        size = trainer.num_generations
        if (processes := trainer.accelerator.num_processes) > 1:
            raise SeaError(f"This trainer runs as {processes} processes; sharing works with one so far.")
        if len(prompts) % size:
            raise SeaError(
                f"A batch of {len(prompts)} prompts is no multiple of num_generations={size}: choose "
                "generation_batch_size so that it is."
            )
        wanted = peer_questions(len(prompts) // size, self._own, self._peers)
        if self._peers and not wanted:
            raise SeaError(
                f"A batch of {len(prompts) // size} questions has no room for a peer's: raise "
                f"generation_batch_size to {size * (self._own + self._peers)}, or set peers=0."
            )
        found: list[tuple[Group, list[list[int]]]] = []
        for group in self._sea.sample(wanted, answers=size) if wanted else ():
            ids_G = group.tokens(_tokenizer(trainer))
            if all(0 < len(ids) <= trainer.max_completion_length for ids in ids_G):
                found.append((group, ids_G))
        return found

    def _append(self, rows: dict[str, Any], group: Group, ids_G: list[list[int]]) -> None:
        """Adds a peer's group to a batch."""
        size = len(ids_G)
        rows["prompt_ids"] += self._trainer._tokenize_prompts([group.messages] * size)[0]
        rows["completion_ids"] += ids_G
        if rows["logprobs"] is not None:
            rows["logprobs"] += [[None] * len(ids) for ids in ids_G]
        rows["coordinates"] += [msgspec.structs.asdict(group.coordinates)] * size
        rows["finished"] += group.finished
        rows["author"] += [group.author] * size
        if self._positives_only:
            rows["env_mask"] += [[reward] * len(ids) for ids, reward in zip(ids_G, group.rewards, strict=True)]


class _Watch(TrainerCallback):
    """Sends receipts after each step, and notices that nothing is shared."""

    def __init__(self, share: Sharing) -> None:
        self._share = share

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if self._share._trainer is None:
            raise SeaError(NEVER_CALLED)
        used, self._share._used = self._share._used, []
        self._share._sea.learned_from(used)


def peer_questions(questions: int, own: int, peers: int) -> int:
    """Returns how many of a batch's questions are replaced by peers'.

    >>> peer_questions(8, 4, 4), peer_questions(16, 3, 1), peer_questions(3, 1, 1), peer_questions(1, 4, 4)
    (4, 4, 1, 0)
    """
    return questions * peers // (own + peers)


def mixed_part(rewards_G: Sequence[float], most: int) -> list[int]:
    """Returns the positions of the first `most` answers of a mixed group, so chosen that the part is mixed as
    well: where the first ones are alike, the last of them gives its place to the first other.

    >>> mixed_part([0, 1, 0], 4), mixed_part([0, 0, 0, 1, 1], 3), mixed_part([1, 0, 1, 1], 2)
    ([0, 1, 2], [0, 1, 3], [0, 1])
    """
    first = list(range(min(most, len(rewards_G))))
    other = next(at for at, reward in enumerate(rewards_G) if reward != rewards_G[0])
    return first if other in first else [*first[:-1], other]


def _generated(trainer: Any, prompts: list[Any], size: int) -> dict[str, Any]:
    """Has TRL answer `prompts` in its own way (transformers or vLLM), which all versions named above share."""
    prompt_ids, images, fields = trainer._tokenize_prompts(prompts)
    sizes = (size,) if "num_generations" in signature(trainer._generate_single_turn).parameters else ()
    completion_ids, logprobs = trainer._generate_single_turn(prompt_ids, images, fields, *sizes)[:2]
    ends = getattr(trainer, "eos_token_ids", None) or [_tokenizer(trainer).eos_token_id]
    finished = [bool(ids) and ids[-1] in ends for ids in completion_ids]
    return {
        "prompt_ids": list(prompt_ids),
        "completion_ids": completion_ids,
        "logprobs": logprobs,
        "finished": finished,
    }


def _tokenizer(trainer: Any) -> Any:
    return getattr(trainer.processing_class, "tokenizer", trainer.processing_class)


def _text(prompt: Any) -> str:
    """Returns the question in a prompt, a string or chat messages."""
    return prompt if isinstance(prompt, str) else str(prompt[-1]["content"])


@torch.no_grad()
def _nats(trainer: Any, prompt_ids: list[list[int]], completion_ids: list[list[int]]) -> float:
    """Returns the mean negative log-probability a token of these answers, under the model as it is now."""
    prompts, asked = _padded(trainer, prompt_ids, "left")
    answers, said = _padded(trainer, completion_ids, "right")
    logprobs = trainer._get_per_token_logps_and_entropies(
        trainer.model,
        torch.cat([prompts, answers], dim=1),
        torch.cat([asked, said], dim=1),
        answers.size(1),
        batch_size=trainer.args.per_device_train_batch_size,
    )[0]
    return -float(logprobs[said.bool()].mean())


def _padded(trainer: Any, rows: list[list[int]], side: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns token ids and their mask, both of shape (rows, longest row)."""
    pad, device = _tokenizer(trainer).pad_token_id, trainer.accelerator.device
    ids = pad_sequence([torch.tensor(row) for row in rows], True, pad, side).to(device)
    return ids, pad_sequence([torch.ones(len(row), dtype=torch.long) for row in rows], True, 0, side).to(device)
