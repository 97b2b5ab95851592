"""What rounds, measurements and lessons work with; how long an answer may be, how many prompts are sampled at
once, and how answers are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.learning.imitation import FamilyAnswers
from app.node.record.settings import Settings
from app.node.record.snapshot import Phase
from app.node.record.state import NodeState
from app.node.round import language
from app.node.round.peers import NodeSwarm
from app.node.trainer.link import TrainerLink
from app.sapo.groups import GroupRecord
from app.sapo.questions import QuestionPrompt
from app.sapo.scoring.sandbox import Sandbox, score_group
from engines.contract import Completion, EngineInfo


class ProgressReport(Protocol):
    """Tells the views the current phase, and how many of its completions are done."""

    def __call__(self, phase: Phase, done: int = 0, total: int = 0) -> None: ...


@dataclass(frozen=True)
class RoundTools:
    """What a round, a measurement or a lesson works with: trainer, sandbox and settings. `peers`: the swarm,
    None for a node that trains alone."""

    link: TrainerLink
    engine: EngineInfo
    sandbox: Sandbox
    settings: Settings
    identity: bytes
    report: ProgressReport
    peers: NodeSwarm | None = None
    remembered: Sequence[language.RememberedTalk] = ()
    """Small talk that the steps keep as likely as before training."""
    owner_P: Sequence[GroupRecord] = ()
    """The owner's own answers that may be trained on in this round."""
    offered: Sequence[FamilyAnswers] = ()
    """Peers' answers that may be imitated in this round."""
    trying: Mapping[str, int] = field(default_factory=dict)
    """Waiting families that are asked one question each, with their levels."""


def max_answer_tokens(state: NodeState, settings: Settings) -> int:
    """Returns the maximum number of tokens of an answer."""
    return state.max_tokens or state.way.token_limit(settings.max_tokens)


def score(
    tools: RoundTools, questions_P: Sequence[QuestionPrompt], groups_PG: Sequence[Sequence[Completion]]
) -> list[GroupRecord]:
    """Scores every group with this node's own verifiers. Blocks: call it in a thread."""
    return [
        score_group(
            tools.sandbox,
            GroupRecord(
                coordinates=question.coordinates,
                completions_G=tuple(completion.text for completion in completions_G),
                finished_G=tuple(completion.finished for completion in completions_G),
                model=tools.settings.public_model,
            ),
        )
        for question, completions_G in zip(questions_P, groups_PG, strict=True)
    ]


def prompts_at_once(engine: EngineInfo, completions: int) -> int:
    """Returns the number of prompts per call of the engine: many for a small model, one for a large model on a
    CPU. Together with the seed it determines the sampled tokens, so it depends only on the model and the
    device."""
    rows_at_once = (9 if engine.device == "CPU" else 128) * 10**9 // max(1, engine.parameters)
    return max(1, min(512, max(8, rows_at_once)) // completions)
