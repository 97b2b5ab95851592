"""Question sets in a private swarm: their groups travel sealed, for those who hold the same file.

Key and name follow from the file's content, so who has the file can read them and who has not learns that
somebody shares a set, how many answers were right and about how long they are. No question travels at all: its
coordinates are the seed that draws a row. On the wire the family is `set_` and 24 hexadecimal digits, level 0,
and each completion is base64 of a libsodium secret box; padding hides the length up to PADDED bytes. A relay
takes such families only in a private swarm."""

from __future__ import annotations

import base64
import re
from hashlib import sha256

import msgspec
import nacl.exceptions
import nacl.secret

from app.sapo.groups import Group
from app.sapo.sets.question_set import QuestionSet

_KEY, _NAME = b"shoal-set-key-v1\0", b"shoal-set-name-v1\0"
_WIRE = re.compile(r"set_[0-9a-f]{24}")
PADDED = 64


def is_sealed(family: str) -> bool:
    """Whether a family of the wire is a shared set's."""
    return _WIRE.fullmatch(family) is not None


class SharedSet(msgspec.Struct, frozen=True):
    """A set as its holders know it: the family's name here, and what its groups are sealed with."""

    family: str
    key: bytes

    @classmethod
    def of(cls, made: QuestionSet) -> SharedSet:
        return cls(family=made.family_name, key=sha256(_KEY + made.content).digest())

    @property
    def wire(self) -> str:
        """The family's name on the wire."""
        return "set_" + sha256(_NAME + self.key).hexdigest()[:24]

    def sealed(self, group: Group) -> Group:
        """A group of this set, for the wire."""
        assert group.coordinates.family == self.family
        box = nacl.secret.SecretBox(self.key)
        return msgspec.structs.replace(
            group,
            coordinates=msgspec.structs.replace(group.coordinates, family=self.wire),
            completions_G=tuple(
                base64.b64encode(box.encrypt(_padded(text.encode("utf-8", "replace")))).decode()
                for text in group.completions_G
            ),
        )

    def opened(self, group: Group) -> Group | None:
        """The inverse; None where a completion was not sealed by a holder of the file."""
        box = nacl.secret.SecretBox(self.key)
        try:
            completions_G = tuple(
                box.decrypt(base64.b64decode(text, validate=True)).rstrip(b"\0").decode()
                for text in group.completions_G
            )
        except (nacl.exceptions.CryptoError, ValueError):  # binascii.Error and UnicodeError are ValueErrors
            return None
        where = msgspec.structs.replace(group.coordinates, family=self.family)
        return msgspec.structs.replace(group, coordinates=where, completions_G=completions_G)


def _padded(text: bytes) -> bytes:
    return text + b"\0" * (-len(text) % PADDED)
