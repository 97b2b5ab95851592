"""The owner's own answers that may teach: said yes to in the window, waiting in HOME/answers for the node.

One file an answer, written whole by the chat's process and removed by the node once it is used, so a kill of
either loses nothing. The node believes none of it: it makes the question again and scores the answer again.
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
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.scoring.scoring import score_group
from app.sapo.seeds import hashed
from app.swarm.intake.reasons import unsafe
from app.swarm.wire.limits import COMPLETION

FOLDER = "answers"
MOST = 200
"""Answers that wait at most; a person who is faster than the node is asked to wait."""
KEPT_S = 14 * 24 * 3600
"""What no relay took by then is let go."""


class OwnerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`text` is the very text that the owner saw and said yes to; `at` is since 1970. `teach`: the model here
    may learn from it. `share`: so may others."""

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
    """An answer that cannot be put by; one sentence says why."""


def put(home: Path, answer: OwnerAnswer) -> None:
    """Puts an answer by. Raises AnswerError for one that may not travel or has no room, and OSError."""
    if len(answer.text) > COMPLETION:
        raise AnswerError(f"That's too long: {COMPLETION} characters at most.")
    if unsafe(answer.text):
        raise AnswerError("It holds hidden characters: type it again instead of pasting it.")
    if len(_paths(home)) >= MOST:
        raise AnswerError("Your model still has answers of yours to look at. Try again later.")
    name = f"{hashed('answer', msgspec.json.encode(answer.coordinates), answer.text):013x}.json"
    files.write_json(home / FOLDER / name, answer)


class Answers:
    """What waits in a home. `take`, `used` and `to_share` block for a moment."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.taken: list[PeerGroup] = []
        """What the round in flight looks at."""

    def take(self, sandbox: Sandbox, families: tuple[str, ...]) -> None:
        """Takes what may teach in the next round; nothing without families."""
        self.taken = self.to_learn(sandbox, families) if families else []

    def used(self, learned_P: Sequence[PeerGroup]) -> list[str]:
        """The round is safe, and learned from these groups. Returns a sentence for each answer of the owner's
        that was looked at."""
        sentences = []
        for group in self.taken:
            self.taught(group)
            sentences.append(_taught(any(one is group for one in learned_P)))
        self.taken = []
        return sentences

    def to_learn(self, sandbox: Sandbox, families: tuple[str, ...]) -> list[PeerGroup]:
        """The oldest right answer to teach, of a family in play; none or one. What is wrong is removed: it
        weighs nothing, here as anywhere. Raises SandboxError."""
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
        """Right answers that others may have, oldest first. Raises SandboxError."""
        checked = [(_checked(one, sandbox), path) for path, one in self._waiting() if one.share]
        for found, path in checked:
            if found is None:
                path.unlink(missing_ok=True)
        return [found.scored for found, _ in checked if found is not None]

    def taught(self, group: PeerGroup) -> None:
        """It has been looked at in a round that is safe."""
        self._done(group.scored.group, "teach")

    def shared(self, scored: ScoredGroup) -> None:
        """It lies in the outbox."""
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
    """As a peer's group, None for one that is wrong or whose question may not be trained on."""
    asked = sandbox.questions([answer.coordinates])[0]
    if isinstance(asked, QuestionError) or asked.held_out or unsafe(answer.text):
        return None
    scored = score_group(sandbox, answer.group)
    return PeerGroup(peer=YOU, question=asked.text, scored=scored) if lone(scored.rewards_G) else None


def _taught(learned: bool) -> str:
    if learned:
        return "Your answer taught your model: it had failed that puzzle."
    return "Your answer changed nothing: your model can already solve that puzzle, or it's too long to read."
