"""A trainer process around a fake engine, for tests of the node without torch.

The fake knows how to add: it answers a question "a b" with "#..." and gets likelier to be right with every step
that has positive weights. Its adapter is a small file. What it should do wrong comes in through FAKE_TROUBLE.
"""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from app.node.round import language
from app.node.round.language import talks
from app.node.trainer.process import serve
from engines.contract import (
    AdapterError,
    Batch,
    Completion,
    EngineError,
    EngineInfo,
    Heard,
    Messages,
    StepStats,
    TokenSequence,
    progress,
)

TROUBLE = os.environ.get("FAKE_TROUBLE", "")
SAMPLER = os.environ.get("FAKE_SAMPLER", "")
TOO_LONG = os.environ.get("FAKE_TOO_LONG", "")
"""Words of questions that no prompt may have."""
TAUGHT = os.environ.get("FAKE_TAUGHT", "")
"""Words of questions that it cannot answer before it was taught one with them."""
"""The name of another program that samples."""


class FakeEngine:
    """Tokens are characters. `skill` is the chance of a right answer."""

    def __init__(self, model: str, rank: int | None, seed: int) -> None:
        if TROUBLE == "unopenable":
            raise EngineError("This model is of a kind that the engine does not know: choose another one.")
        if TROUBLE == "greedy":
            bytearray(6 * 10**9)
        if "FAKE_SHARES" in os.environ:
            with open(os.environ["FAKE_SHARES"], "a") as shares:
                shares.write(os.environ["SHOAL_BATCH_SHARE"] + "\n")
        print("noise that is no message")  # both go to the log, never between the messages
        os.write(1, b"more noise, past Python\n")
        self.skill = 0.3
        self.steps = 0
        self.taught = not TAUGHT
        self.healed = False
        self.shrunk = 0
        self.notes: list[str] = []
        self.small_talk = [[*map(ord, talk.reply), 0] for talk in talks(language.FILE)]
        self.info = EngineInfo(
            name=os.environ.get("FAKE_NAME", "fake")
            if os.environ.get("SHOAL_BATCH_SHARE") == "0.5"
            else "fake",
            device="CPU",
            dtype="float32",
            model=model,
            parameters=2_000_000,
            trainable=1000,
            threads=1,
            memory_budget_mb=100,
            sampler=SAMPLER,
            talks=TROUBLE == "forgets to speak",
        )

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        return TokenSequence(
            prompt_T=self.prompt_tokens(prompt), completion_T=[*map(ord, completion), *[0] * finished]
        )

    def sample(
        self,
        prompts_P: Sequence[Messages],
        n: int,
        max_tokens: int,
        seed: int,
        *,
        plain: bool = False,
        temperature: float = 1.0,
        heard: Heard | None = None,
    ) -> list[list[Completion]]:
        _maybe("die while sampling", self.steps)
        _maybe("hang while sampling", self.steps)
        _maybe("no room while sampling", self.steps)
        if "FAKE_ASKED" in os.environ:
            with open(os.environ["FAKE_ASKED"], "a") as asked:
                asked.write(
                    json.dumps([prompt[0]["content"] + prompt[-1]["content"] for prompt in prompts_P]) + "\n"
                )
            time.sleep(0.3)
        if TROUBLE == "crawls" and not self.steps:
            for _ in range(40):
                time.sleep(0.2)
                progress.add(1)
        if TROUBLE == "slow":
            time.sleep(0.3)
        if TOO_LONG and any(TOO_LONG in prompt[-1]["content"] for prompt in prompts_P):
            raise EngineError("A prompt is longer than this model can read.")
        random_ = random.Random(seed)
        if TROUBLE == "alike":
            return [[self._completion(prompt, random_)] * n for prompt in prompts_P]
        return [[self._completion(prompt, random_, max_tokens) for _ in range(n)] for prompt in prompts_P]

    def _completion(self, prompt: Messages, random_: random.Random, max_tokens: int = 999) -> Completion:
        skill = {"always wrong": 0.0, "always right": 1.0, "alike": 0.5}.get(TROUBLE, self.skill)
        if TROUBLE == "needs examples" and len(prompt) == 2 and not self.steps:
            skill = 0.0
        if TROUBLE.startswith("tears") and self.steps > int(TROUBLE.split()[1]) and not self.healed:
            skill = 0.0
        if not self.taught and TAUGHT in prompt[-1]["content"]:
            skill = 0.0
        right = random_.random() < skill
        answer = _solve(prompt[-1]["content"]) if right else "no"
        text = f"hm #{answer}" if skill or random_.random() < self.skill else f"#{answer}"
        if TROUBLE == "needs examples" and not skill:
            text = f"it is {answer}"
        finished = TROUBLE != "unfinished" or max_tokens > 100
        tokens = [*map(ord, text), *[0] * finished]
        return Completion(tokens_T=tokens, logprobs_T=[-0.1] * len(tokens), finished=finished, text=text)

    def prompt_tokens(self, prompt: Messages) -> list[int]:
        return [*map(ord, prompt[-1]["content"])]

    def logprobs(self, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        likely = -0.1 * (1 + self.steps) if TROUBLE == "forgets to speak" else -0.1
        return [[likely] * len(sequence.completion_T) for sequence in sequences_S]

    def step(self, batch: Batch) -> StepStats:
        _maybe("die while learning", self.steps)
        if TROUBLE == "refuse to learn":
            raise EngineError("The loss is not finite: this round's step is left out.")
        assert any(weight for row in batch.rows_S for weight in row.weights_T)
        assert all(len(row.weights_T) == len(row.completion_T) for row in batch.rows_S)
        marked = [row for row in batch.rows_S if row.sampler_logprobs_T is not None]
        assert all(row.old_logprobs_T is None for row in marked)
        assert all(len(row.sampler_logprobs_T or ()) == len(row.completion_T) for row in marked)
        self.steps += 1
        self.taught |= any(TAUGHT in "".join(map(chr, row.prompt_T)) for row in batch.rows_S)
        self.skill = min(0.95, self.skill + 0.05)
        return StepStats(
            loss=float(sum(row.completion_T in self.small_talk for row in batch.rows_S)) or 0.1,
            grad_norm=1.0,
            rows=len(batch.rows_S),
            tokens=10,
            micro_batches=1,
            seconds=0.01,
            mismatch=0.02 if marked else None,
            capped=len(marked) / len(batch.rows_S) if marked else None,
            nats_S=(10.0 / self.steps,) * len(batch.rows_S),
        )

    def step_down(self) -> str | None:
        self.shrunk += 1
        return f"Smaller step {self.shrunk}." if self.shrunk <= 2 else None

    def save(self, folder: Path) -> None:
        _maybe("die while saving", self.steps)
        if TROUBLE == "slow to save":
            time.sleep(0.3)
        (folder / "adapter.json").write_text(
            json.dumps({"skill": self.skill, "steps": self.steps, "taught": self.taught})
        )
        (folder / "optimizer.bin").write_bytes(os.urandom(2000))

    def load(self, folder: Path) -> None:
        if TROUBLE == "unloadable":
            raise AdapterError("The saved adapter was made for another model.")
        saved = json.loads((folder / "adapter.json").read_text())
        self.healed = bool(self.steps)
        self.skill, self.steps, self.taught = saved["skill"], saved["steps"], saved["taught"]


def _solve(question: str) -> str:
    """Sums and differences: "State the final answer to the following arithmetic problem: 1 + 2 - 3 ="."""
    total, sign = 0, 1
    for word in question.rpartition(":")[2].rstrip("=.? ").split():
        if word in "+-":
            sign = 1 if word == "+" else -1
        elif word.removeprefix("-").isdecimal():
            total += sign * int(word)
    return str(total)


def _maybe(trouble: str, steps: int) -> None:
    """FAKE_TROUBLE is "<what> [once in a marker file]": the marker makes it happen once only."""
    what, _, marker = TROUBLE.partition(" @")
    if what != trouble or steps < 1:
        return
    if marker:
        path = Path(marker)
        if path.exists():
            return
        path.touch()
    if what.startswith("no room"):
        raise OSError(errno.ENOSPC, "No space left on device")
    os.kill(os.getpid(), signal.SIGSTOP if what.startswith("hang") else signal.SIGKILL)


if __name__ == "__main__":
    serve(FakeEngine)
