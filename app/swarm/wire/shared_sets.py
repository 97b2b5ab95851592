"""Question sets in a private swarm: their groups are encrypted for the nodes that have the question set's file.

Key and name are derived from the file's content. A node without the file learns only that somebody shares a
set, how many answers were right and roughly their length. Questions are not sent: the coordinates contain the
seed that draws a row. On the wire the family is `set_` and 24 hexadecimal digits, level 0, and each completion
is base64 of a libsodium secret box; padding to a multiple of PADDED_LENGTH bytes hides the length. A relay
accepts these families only in a private swarm."""

from __future__ import annotations

import base64
import re
from hashlib import sha256

import msgspec
import nacl.exceptions
import nacl.secret

from app.sapo.groups import GroupRecord
from app.sapo.sets.question_set import QuestionSet

_KEY, _NAME = b"shoal-set-key-v1\0", b"shoal-set-name-v1\0"
_WIRE = re.compile(r"set_[0-9a-f]{24}")
PADDED_LENGTH = 64


def is_shared_set_family(family: str) -> bool:
    """True if `family` is the name of a shared set on the wire."""
    return _WIRE.fullmatch(family) is not None


class SharedSet(msgspec.Struct, frozen=True):
    """A shared question set: its local family name, and the key that encrypts its groups."""

    family: str
    key: bytes

    @classmethod
    def of(cls, made: QuestionSet) -> SharedSet:
        return cls(family=made.family_name, key=sha256(_KEY + made.canonical_json).digest())

    @property
    def wire(self) -> str:
        """The family's name on the wire."""
        return "set_" + sha256(_NAME + self.key).hexdigest()[:24]

    def encrypt_group(self, group: GroupRecord) -> GroupRecord:
        """Encrypts a group of this set for the wire."""
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

    def decrypt_group(self, group: GroupRecord) -> GroupRecord | None:
        """Decrypts a group of this set; None if a completion was not encrypted with its key."""
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
    return text + b"\0" * (-len(text) % PADDED_LENGTH)
