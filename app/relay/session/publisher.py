"""Publishing: checks a client's group, from the cheapest test to the most expensive, and sends it to the
store. Key and rate are known to be fine (app.relay.session.admission); first id and signature are checked, and
the body is parsed only if the signature is valid."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any

from app.relay.session.admission import too_many_new_keys
from app.relay.session.shared import RelayState
from app.relay.standing import Treatment
from app.relay.store.backing import CheckedGroup, Unavailable
from app.relay.store.window import Added
from app.sapo.families import FAMILIES
from app.sapo.questions import QUESTIONS_VERSION
from app.swarm.wire.body import Body, check_age, unseal
from app.swarm.wire.frames import envelope_of
from app.swarm.wire.limits import Code, Refused
from app.swarm.wire.protocol import Pub
from app.swarm.wire.shared_sets import is_shared_set_family

Outcome = tuple[Code, str, float | None]
"""The result of a publish: code, sentence, and seconds until the next try (or None)."""
_UNAVAILABLE: Outcome = (Code.ERROR, "The relay cannot store groups at the moment.", 2.0)


class Publisher:
    """Publishes groups of a client that has signed in with `key` from `address`."""

    __slots__ = ("_address", "_key", "_source", "_state", "collisions")

    def __init__(self, state: RelayState, key: bytes, address: str) -> None:
        self._state = state
        self._key = key
        self._address = address
        self._source = state.blind(address)
        self.collisions = 0
        """Groups of the key that signed in, under a number that another group had."""

    def publish(self, pub: Pub, written: bytes, treatment: Treatment) -> Outcome | Coroutine[Any, Any, Outcome]:
        """Checks an admitted group and publishes it. It may be signed by another key than the one signed in,
        such as an earlier key of the same node. `written` is the message's exact bytes as
        `decode_client_frame` returns them."""
        state, key = self._state, self._key
        author = bytes.fromhex(pub.pk)
        try:
            body = unseal(pub, state.swarm)
            check_age(body.created_ms, state.now_ms())
        except Refused as refused:
            return refused.code, refused.sentence, None
        sealed = (
            state.access.private is not None and is_shared_set_family(body.task.family) and body.task.level == 0
        )
        flaw = None if sealed else _no_question(body)
        if flaw is not None:
            return *flaw, None
        if author != key:
            wait = state.register_key(author, self._address)
            if wait > 0:
                return Code.RATE_LIMITED, too_many_new_keys(wait).sentence, wait
        seen = state.store.sequences.check(author, body.key_seq)
        if seen != "new":
            # also if another group has the number: a shadow-banned key must not see a difference
            if author == key and treatment == "welcome" and state.window.find(bytes.fromhex(pub.id)) is None:
                self.collisions += 1
            code = Code.DUPLICATE if seen == "used" else Code.STALE
            return code, "Its key_seq was used before." if seen == "used" else "Its key_seq is too old.", None
        if treatment == "shadowed":
            if not state.store.backing.ready:
                return _UNAVAILABLE
            state.store.sequences.use(author, body.key_seq)
            return Code.ACCEPTED, "", None
        record = CheckedGroup(
            id=bytes.fromhex(pub.id),
            key=author,
            key_seq=body.key_seq,
            address=self._source,
            family=body.task.family,
            level=body.task.level,
            arrived_ms=state.now_ms(),
            raw=envelope_of(written),
        )
        added = state.store.publish(record)
        if isinstance(added, str):
            return self._published(added, record)
        return self._published_later(added, record)

    async def _published_later(self, added: Awaitable[Added], record: CheckedGroup) -> Outcome:
        try:
            return self._published(await added, record)
        except Unavailable as error:
            return Code.ERROR, str(error), error.retry_after_s

    def _published(self, added: Added, record: CheckedGroup) -> Outcome:
        if added == "too-large":
            return Code.INVALID, "The group is too large for this relay.", None
        if added == "duplicate":
            return Code.DUPLICATE, "", None
        state = self._state
        if is_shared_set_family(record.family):  # only members can check its groups
            return Code.ACCEPTED, "", None
        if state.classroom is not None:
            state.classroom.published(record.key)
        if state.checker is not None:
            state.checker.published(record.id, record.key)
        return Code.ACCEPTED, "", None


def _no_question(body: Body) -> tuple[Code, str] | None:
    """Returns why the relay has no such question (code and sentence), as far as that is known without
    generating it; None otherwise."""
    task = body.task
    if task.version != QUESTIONS_VERSION:
        return Code.UNSUPPORTED, f"This relay speaks questions of version {QUESTIONS_VERSION}."
    family = FAMILIES.get(task.family)
    if family is None:
        return Code.INVALID, "There is no family of this name."
    if task.level >= len(family.levels):
        return Code.INVALID, f"{family.name} has levels 0 to {len(family.levels) - 1}."
    return None
