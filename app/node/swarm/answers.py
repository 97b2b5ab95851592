"""The owner's own answers that may teach: confirmed in the window, waiting in HOME/answers for the node.

One file per answer, written whole by the chat's process and removed by the node once it is used, so a kill of
either loses nothing. The node trusts none of it: it regenerates the question and scores the answer again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.common import files
from app.learning.choosing import PeerGroup
from app.node.round.peers import YOU
from app.sapo.groups import HUMAN, Group, ScoredGroup, lone
from app.sapo.questions import Coordinates, QuestionError
from app.sapo.scoring.sandbox import Sandbox, score_group
from app.sapo.seeds import hashed
from app.swarm.intake.reasons import unsafe
from app.swarm.wire.limits import COMPLETION

FOLDER = "answers"
MOST = 200
"""Maximum number of waiting answers; beyond that the owner is asked to wait."""
KEPT_S = 14 * 24 * 3600
"""Seconds after which an answer that no relay took is deleted."""


class OwnerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`text` is the very text that the owner saw and confirmed; `at` is in seconds since 1970. `teach`: the
    model here may learn from it. `share`: so may others."""

    version: int = 1
    coordinates: Coordinates
    text: str
    at: float
    teach: bool
    share: bool

    @property
    def group(self) -> Group:
        return Group(coordinates=self.coordinates, completions_G=(self.text,), finished_G=(True,), model=HUMAN)


class AnswerError(ValueError):
    """An answer that cannot be stored; one sentence says why."""


def put(home: Path, answer: OwnerAnswer) -> None:
    """Stores an answer. Raises AnswerError if it may not be shared or there is no room, and OSError."""
    if len(answer.text) > COMPLETION:
        raise AnswerError(f"That's too long: {COMPLETION} characters at most.")
    if unsafe(answer.text):
        raise AnswerError("It holds hidden characters: type it again instead of pasting it.")
    if len(_paths(home)) >= MOST:
        raise AnswerError("Your model still has answers of yours to look at. Try again later.")
    name = f"{hashed('answer', msgspec.json.encode(answer.coordinates), answer.text):013x}.json"
    files.write_json(home / FOLDER / name, answer)


class Answers:
    """The answers waiting in a data folder. `take`, `used` and `to_share` block for a moment."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.taken: list[PeerGroup] = []
        """What the round in flight looks at."""

    def take(self, sandbox: Sandbox, families: tuple[str, ...]) -> None:
        """Takes the answers that may teach in the next round; empty without families."""
        self.taken = self.to_learn(sandbox, families) if families else []

    def used(self, learned_P: Sequence[PeerGroup]) -> list[str]:
        """To be called when the round that learned from these groups is saved. Returns a sentence for each of
        the owner's answers among them."""
        sentences = []
        for group in self.taken:
            self.taught(group)
            sentences.append(_taught(any(one is group for one in learned_P)))
        self.taken = []
        return sentences

    def to_learn(self, sandbox: Sandbox, families: tuple[str, ...]) -> list[PeerGroup]:
        """The oldest right answer to teach, of an active family, if any. Wrong ones are removed: they would
        weigh nothing. Raises SandboxError."""
        for path, answer in self._waiting():
            if not answer.teach:
                continue
            found = _checked(answer, sandbox)
            if found is None:
                path.unlink(missing_ok=True)
            elif answer.coordinates.family in families:
                return [found]
        return []

    def to_share(self, sandbox: Sandbox) -> list[ScoredGroup]:
        """Right answers that may be shared, oldest first. Raises SandboxError."""
        checked = [(_checked(one, sandbox), path) for path, one in self._waiting() if one.share]
        for found, path in checked:
            if found is None:
                path.unlink(missing_ok=True)
        return [found.scored for found, _ in checked if found is not None]

    def taught(self, group: PeerGroup) -> None:
        """A saved round has learned from it."""
        self._done(group.scored.group, "teach")

    def shared(self, scored: ScoredGroup) -> None:
        """It is in the outbox."""
        self._done(scored.group, "share")

    def _done(self, group: Group, purpose: str) -> None:
        for path, answer in self._waiting():
            if answer.group != group:
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


def _checked(answer: OwnerAnswer, sandbox: Sandbox) -> PeerGroup | None:
    """The answer, checked as a peer's group is; None if it is wrong or its question may not be trained on."""
    asked = sandbox.questions([answer.coordinates])[0]
    if isinstance(asked, QuestionError) or asked.held_out or unsafe(answer.text):
        return None
    scored = score_group(sandbox, answer.group)
    return PeerGroup(peer=YOU, question=asked.text, scored=scored) if lone(scored.rewards_G) else None


def _taught(learned: bool) -> str:
    if learned:
        return "Your answer taught your model: it had failed that puzzle."
    return "Your answer changed nothing: your model can already solve that puzzle, or it's too long to read."
