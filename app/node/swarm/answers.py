"""The owner's own answers for training: confirmed in the window, and stored in HOME/answers for the node.

There is one file per answer, written atomically by the chat's process and deleted by the node after use, so a
kill of either loses nothing. The node does not trust the files: it regenerates the question and scores the
answer again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.common import files
from app.node.round.peers import YOU
from app.sapo.groups import HUMAN_MODEL, GroupRecord, is_single_right_answer
from app.sapo.questions import Coordinates, QuestionError
from app.sapo.scoring.sandbox import Sandbox, score_group
from app.sapo.seeds import hashed_seed
from app.swarm.intake.reasons import is_unsafe
from app.swarm.wire.limits import MAX_COMPLETION_CHARS

FOLDER = "answers"
MAX_WAITING_ANSWERS = 200
"""Maximum number of waiting answers; beyond it the owner is asked to wait."""
KEPT_S = 14 * 24 * 3600
"""Seconds after which an answer that was never used is deleted."""


class OwnerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of the owner's. `text`: exactly as the owner saw and confirmed it. `at`: Unix time. `teach`:
    this model may learn from it. `share`: it may be published."""

    version: int = 1
    coordinates: Coordinates
    text: str
    at: float
    teach: bool
    share: bool

    @property
    def group(self) -> GroupRecord:
        return GroupRecord(
            coordinates=self.coordinates, completions_G=(self.text,), finished_G=(True,), model=HUMAN_MODEL
        )


class AnswerError(ValueError):
    """An answer cannot be stored; the message is one sentence that says why."""


def put(home: Path, answer: OwnerAnswer) -> None:
    """Stores an answer. Raises AnswerError if its text is too long or unsafe or too many are waiting, and
    OSError."""
    if len(answer.text) > MAX_COMPLETION_CHARS:
        raise AnswerError(f"That's too long: {MAX_COMPLETION_CHARS} characters at most.")
    if is_unsafe(answer.text):
        raise AnswerError("It holds hidden characters: type it again instead of pasting it.")
    if len(_paths(home)) >= MAX_WAITING_ANSWERS:
        raise AnswerError("Your model still has answers of yours to look at. Try again later.")
    name = f"{hashed_seed('answer', msgspec.json.encode(answer.coordinates), answer.text):013x}.json"
    files.write_json(home / FOLDER / name, answer)


class Answers:
    """The answers waiting in a data folder. `take`, `mark_used` and `take_shareable` block briefly."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.taken: list[GroupRecord] = []
        """The answers used in the round in flight."""

    def take(self, sandbox: Sandbox, families: tuple[str, ...]) -> None:
        """Selects the answers for the next round; none if `families` is empty."""
        self.taken = self.to_learn(sandbox, families) if families else []

    def mark_used(self, learned_P: Sequence[GroupRecord]) -> list[str]:
        """Marks the taken answers as used; to be called when the round with the trained groups `learned_P` is
        saved. Returns a sentence for each answer."""
        sentences = []
        for group in self.taken:
            self.mark_taught(group)
            sentences.append(_taught(any(one is group for one in learned_P)))
        self.taken = []
        return sentences

    def to_learn(self, sandbox: Sandbox, families: tuple[str, ...]) -> list[GroupRecord]:
        """Returns the oldest right answer to train on, of an active family, as a list of at most one. Wrong
        ones are deleted, because they would carry no weight. Raises SandboxError."""
        for path, answer in self._waiting():
            if not answer.teach:
                continue
            found = _checked(answer, sandbox)
            if found is None:
                path.unlink(missing_ok=True)
            elif answer.coordinates.family in families:
                return [found]
        return []

    def take_shareable(self, sandbox: Sandbox) -> list[GroupRecord]:
        """Returns the right answers that may be shared, oldest first, and deletes wrong ones. Raises
        SandboxError."""
        checked = [(_checked(one, sandbox), path) for path, one in self._waiting() if one.share]
        for found, path in checked:
            if found is None:
                path.unlink(missing_ok=True)
        return [found for found, _ in checked if found is not None]

    def mark_taught(self, group: GroupRecord) -> None:
        """Marks an answer as trained on."""
        self._done(group, "teach")

    def mark_shared(self, scored: GroupRecord) -> None:
        """Marks an answer as published; to be called when it is in the outbox."""
        self._done(scored, "share")

    def _done(self, group: GroupRecord, purpose: str) -> None:
        for path, answer in self._waiting():
            if (answer.coordinates, (answer.text,)) != (group.coordinates, group.completions_G):
                continue
            left = msgspec.structs.replace(answer, **{purpose: False})
            if left.teach or left.share:
                files.write_json(path, left)
            else:
                path.unlink(missing_ok=True)

    def _waiting(self) -> list[tuple[Path, OwnerAnswer]]:
        found = []
        for path in _paths(self._home):
            answer = files.read_json(path, OwnerAnswer)
            if answer is None or time.time() - answer.at > KEPT_S:
                path.unlink(missing_ok=True)
            else:
                found.append((path, answer))
        return sorted(found, key=lambda one: one[1].at)


def _paths(home: Path) -> list[Path]:
    return list((home / FOLDER).glob("*.json"))


def _checked(answer: OwnerAnswer, sandbox: Sandbox) -> GroupRecord | None:
    """Checks an answer like a peer's group; None if it is wrong or its question may not be trained on."""
    asked = sandbox.questions([answer.coordinates])[0]
    if isinstance(asked, QuestionError) or asked.held_out or is_unsafe(answer.text):
        return None
    scored = score_group(sandbox, answer.group)
    return (
        msgspec.structs.replace(scored, author=YOU, question=asked.text)
        if is_single_right_answer(scored.rewards_G)
        else None
    )


def _taught(learned: bool) -> str:
    if learned:
        return "Your answer taught your model: it had failed that puzzle."
    return "Your answer changed nothing: your model can already solve that puzzle, or it's too long to read."
