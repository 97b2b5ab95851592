"""A node's name, read off its key: two words and four digits, such as "brisk-otter-0417".

No one chooses one, so no one writes anything into it, and a key has the same name on every screen.

The lists and their order are part of every name: they never change.
"""

from __future__ import annotations

from hashlib import sha256

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


def name(key: bytes) -> str:
    """The name of a public key. One in 164 million pairs of keys shares one: it is for people to read, and
    never stands for the key."""
    number = int.from_bytes(sha256(_DOMAIN + key).digest()[:16], "big")
    number, digits = divmod(number, 10_000)
    number, animal = divmod(number, len(ANIMALS))
    return f"{MANNERS[number % len(MANNERS)]}-{ANIMALS[animal]}-{digits:04}"
