"""A node's identity: an Ed25519 key, its name, and the recovery words that restore it."""

from __future__ import annotations

import secrets
import unicodedata
from functools import cache
from hashlib import sha256
from typing import Annotated, Literal

import msgspec
import nacl.exceptions
import nacl.pwhash
import nacl.secret
from mnemonic import Mnemonic

from app.common import signing

_DOMAIN = b"shoal-name-v1\0"

_MANNERS = """
    able agile airy alert amber ample apt avid azure basic bold brave breezy bright brisk broad bronze calm
    candid careful cheery chief civil classic clean clear clever close cool copper coral cosy crisp curious
    daring dear deep deft direct dry eager early earnest easy even exact fair famous fancy fast fine firm
    fleet fluent fond frank free fresh gentle glad golden good grand great green happy hardy hearty honest
    humble ideal indigo ivory jade jolly just keen kind large late lean light lively local loud loyal lucid
    lucky lunar major mellow merry mighty mild modern modest neat new nimble noble novel olive open orange
    patient plain polite prime prompt proper proud pure quick quiet rapid rare ready real rich robust rosy
    round royal rustic sage serene sharp silver
"""
_ANIMALS = """
    albatross alpaca anchovy ant antelope badger barbel bat bear beaver bee beetle bison blenny boar bobcat
    bream buck buffalo bunting camel carp cat catfish cheetah clam cod colt condor conger coot cormorant cow
    crab crane cricket crow cuckoo curlew dace deer dingo dolphin donkey dove dragonfly duck dunlin eagle
    eel egret eider elk emu falcon ferret finch firefly flounder fox frog gannet gazelle gecko gibbon goat
    goby goose grayling grebe grouse gull guppy gurnard haddock hake halibut hare harrier hawk hedgehog
    heron herring hornet horse ibex ibis impala jackdaw jaguar jay kestrel kite kiwi koala lamprey lark
    lemur leopard limpet lion llama lobster loon lynx macaw mackerel magpie manatee marlin marmot marten
    martin minnow mole moose moth mullet mussel newt ocelot orca osprey otter owl oyster panda parrot
"""
MANNERS, ANIMALS = tuple(_MANNERS.split()), tuple(_ANIMALS.split())


def node_name(key: bytes) -> str:
    """A readable name derived from a public key. Two keys share a name with a probability of 1 in 164 million,
    so it is only for people and never identifies a key. Nobody chooses a name, so nobody writes anything into
    one. The word lists and their order never change."""
    number = int.from_bytes(sha256(_DOMAIN + key).digest()[:16], "big")
    number, digits = divmod(number, 10_000)
    number, animal = divmod(number, len(ANIMALS))
    return f"{MANNERS[number % len(MANNERS)]}-{ANIMALS[animal]}-{digits:04}"


WORDS = 24  # BIP-39's number for 256 bits

_MAX_OPERATIONS, _MAX_MEMORY = 16, 2**30
"""Maximum argon2id cost (passes, bytes) accepted from a file."""


class IdentityError(Exception):
    """The key can't be used; the message says why and what to do."""


class Identity:
    """A key pair. Everything public is derived from `key`; only `seed` and `words` return the secret."""

    __slots__ = ("_seed", "key", "name")

    def __init__(self, seed: bytes) -> None:
        """Raises ValueError for a seed that is not 32 bytes long."""
        self.key = signing.public_key(seed)
        self.name = node_name(self.key)
        self._seed = seed

    @classmethod
    def new(cls) -> Identity:
        return cls(secrets.token_bytes(signing.SEED_BYTES))

    @classmethod
    def from_words(cls, text: str) -> Identity:
        """Restores a key from its 24 recovery words, with any spacing. Raises IdentityError that says which
        word is unknown, or that the checksum fails."""
        words = text.casefold().split()
        known = set(_words().wordlist)
        for place, word in enumerate(words, 1):
            if word not in known:
                raise IdentityError(f"Word {place} isn't a recovery word: check its spelling.")
        if len(words) != WORDS:
            raise IdentityError(f"There are {WORDS} recovery words; these are {len(words)}.")
        try:
            return cls(bytes(_words().to_entropy(words)))
        except ValueError as error:
            raise IdentityError(
                "Every word is a recovery word, but together they are no key: one is wrong, or two are swapped."
            ) from error

    def words(self) -> str:
        """The 24 recovery words: the seed in BIP-39's English word list, with checksum. Anyone who has them can
        act as this node."""
        return str(_words().to_mnemonic(self._seed))

    def seed(self) -> bytes:
        """The secret seed, for signing and storing."""
        return self._seed

    def sign(self, message: bytes) -> bytes:
        return signing.sign(self._seed, message)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"<Identity {self.name}>"

    def __reduce__(self) -> str:
        raise TypeError("An identity isn't copied into other processes.")


class _PlainKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An unencrypted key in a file that only its owner may read, bytes in hex."""

    v: Literal[1] = 1
    public_key: str
    seed: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


def encode_key(identity: Identity) -> bytes:
    """Encodes the key as JSON, unencrypted: for a file that only its owner can read."""
    return msgspec.json.encode(_PlainKey(public_key=identity.key.hex(), seed=identity.seed().hex()))


def decode_key(content: bytes) -> Identity:
    """Decodes a key that `encode_key` has encoded. Raises IdentityError if the content is damaged."""
    try:
        plain = msgspec.json.decode(content, type=_PlainKey)
        identity = Identity(bytes.fromhex(plain.seed))
    except (msgspec.MsgspecError, ValueError) as error:
        raise IdentityError("The key's file is damaged.") from error
    if identity.key.hex() != plain.public_key:
        raise IdentityError("The key's file holds another key than it says.")
    return identity


class _SealedKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key encrypted by an earlier version: XSalsa20-Poly1305, key from a passphrase by argon2id; bytes in
    hex."""

    v: Literal[1] = 1
    public_key: str
    operations: Annotated[int, msgspec.Meta(ge=1, le=_MAX_OPERATIONS)]
    memory: Annotated[int, msgspec.Meta(ge=8192, le=_MAX_MEMORY)]
    salt: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]
    box: Annotated[str, msgspec.Meta(pattern=r"\A([0-9a-f]{2})+\Z", max_length=512)]


def decrypt(content: bytes, passphrase: str) -> Identity:
    """Decrypts a key that an earlier version encrypted; takes about half a second. The passphrase is normalised
    (NFKC), so that every keyboard's encoding of an accent works. Raises IdentityError if the content is damaged
    or the passphrase wrong."""
    try:
        sealed = msgspec.json.decode(content, type=_SealedKey)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise IdentityError("The key's file is damaged: enter its recovery words.") from error
    secret = unicodedata.normalize("NFKC", passphrase).encode("utf-8", "surrogatepass")
    salt, size = bytes.fromhex(sealed.salt), nacl.secret.SecretBox.KEY_SIZE
    try:
        key = nacl.pwhash.argon2id.kdf(size, secret, salt, sealed.operations, sealed.memory)
        identity = Identity(nacl.secret.SecretBox(key).decrypt(bytes.fromhex(sealed.box)))
    except (nacl.exceptions.CryptoError, ValueError) as error:
        raise IdentityError("This passphrase doesn't open the key: try again.") from error
    if identity.key.hex() != sealed.public_key:
        raise IdentityError("The file holds another key than it says: enter your recovery words.")
    return identity


@cache
def _words() -> Mnemonic:
    return Mnemonic("english")
