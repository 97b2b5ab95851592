"""The plain values that go in and out of a `Sea`: frozen, without any reference to it, safe in any thread."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from app.sapo import asking
from app.sapo.groups import HUMAN_MODEL, informative
from app.sapo.questions import Coordinates as Coordinates
from app.swarm.wire.body import LOCAL_MODEL, public_model_name


class SeaError(Exception):
    """What was asked for cannot be done; the message is one sentence that says why and what to do."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question to ask a model. `text`: as a person reads it."""

    coordinates: Coordinates
    text: str

    @property
    def messages(self) -> list[dict[str, str]]:
        """The question as chat messages (role, content): a system line that asks for a marked answer, and the
        text. Other ways to ask do as well, as long as an answer is marked: `<answer>7</answer>`, `\\boxed{7}`,
        or `#7` with nothing behind it on its line."""
        return asking.messages(self.text)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One question with G answers of one model.

    To publish, give `coordinates` (or a mapping of their fields), `completions` (1 to 16 texts of at most 4096
    characters, at least one right and one wrong) and `finished`, False for an answer that was cut off, which
    earns nothing; empty means that all ended by themselves. A sampled group has all fields: `rewards` of 0 and
    1 as this computer computed them, in the completions' order; the `question`'s text; the `author`'s name,
    which is made from its `key` (hex); `model` as the author calls it; the `id` of the signed message; and when
    the author says it was made (`created_ms`, Unix milliseconds). Lists are taken for tuples."""

    coordinates: Coordinates
    completions: tuple[str, ...]
    rewards: tuple[int, ...] = ()
    finished: tuple[bool, ...] = ()
    model: str = ""
    question: str = ""
    author: str = ""
    key: str = ""
    id: str = ""
    created_ms: int = 0

    def __post_init__(self) -> None:
        """Raises SeaError if `coordinates` lack a field or have one of the wrong kind, or if a completion is
        not a string."""
        if isinstance(self.completions, str) or not all(isinstance(one, str) for one in self.completions):
            raise SeaError("A group's completions are a list of texts.")
        msgspec.structs.force_setattr(self, "coordinates", as_coordinates(self.coordinates))
        for name in ("completions", "rewards", "finished"):
            msgspec.structs.force_setattr(self, name, tuple(getattr(self, name)))

    @property
    def messages(self) -> list[dict[str, str]]:
        """A sampled group's question as chat messages; see `Question.messages`."""
        return asking.messages(self.question)

    @property
    def informative(self) -> bool:
        """Whether the rewards differ; without that a group carries no gradient."""
        return informative(self.rewards)

    def tokens(self, tokenizer: Any) -> list[list[int]]:
        """Returns a sampled group's answers as ids of a Hugging Face tokenizer, with its end mark behind those
        that ended by themselves. What looks like a special token is plain text, so no peer ends a chat."""
        texts = tokenizer(list(self.completions), add_special_tokens=False, split_special_tokens=True)
        ended = zip(texts["input_ids"], self.finished, strict=True)
        return [[*ids, tokenizer.eos_token_id] if finished else list(ids) for ids, finished in ended]


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What became of published groups: `stored` wait for a relay or are on their way, the others were
    `left_out`, by reason: "unmixed" (all right or all wrong), "held-out", "seen" (a group with this question
    was published before, here or by a peer), "rate" (more than a relay takes, 30 a minute; later it may go),
    "no-people" (this relay takes no person's answers), "unsafe", "too-long", "too-large", "no-question",
    "other-version", "wrong-shape"."""

    stored: int
    left_out: Mapping[str, int]


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a `Sea`. `name`: the made-up name under which others see this home's key. `relay` and
    `swarm`: ids, "" until known. `peers`: keys online with this one, None until the relay has said it. Own
    groups of this home, over all runs: `waiting` for a relay's final answer, and `acknowledged`; of this run:
    `published`. Peers' groups of this run: `received`, `accepted` by the checks, `ready` to be sampled, and
    `refused`, by reason (app.swarm.intake.reasons). `sentence`: the state of the connection, in words."""

    name: str
    connected: bool
    relay: str
    swarm: str
    peers: int | None
    waiting: int
    acknowledged: int
    published: int
    received: int
    accepted: int
    ready: int
    refused: Mapping[str, int]
    sentence: str


def as_coordinates(value: Coordinates | Mapping[str, Any]) -> Coordinates:
    """Returns coordinates, also from a mapping of their fields, such as a data set's row. Raises SeaError."""
    if isinstance(value, Coordinates):
        return value
    try:
        return msgspec.convert(dict(value), Coordinates, strict=False)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise SeaError(f"These are no coordinates of a question ({error}).") from error


def model_name(name: str) -> str:
    """Returns a name fit for the wire: other characters become dashes, and "" becomes "local".

    >>> model_name("our lab"), model_name("org/model-1.5B"), model_name(""), model_name("human")
    ('our-lab', 'org/model-1.5B', 'local', 'local')
    """
    made = public_model_name(name)
    if made == LOCAL_MODEL:
        made = public_model_name(re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-._")[:64])
    return LOCAL_MODEL if made == HUMAN_MODEL else made
