"""Arms: the alternatives that a study compares. `4/4+ds@default!shuffled` is an arm; a study has a
comma-separated list of them."""

from __future__ import annotations

import re

import msgspec

from app.lab.attackers import KINDS
from app.sapo.recipes import RECIPES, Recipe

FORM = "I/J[+ds][@recipe][-guard][+foes=KIND30][+fall=N][!shuffled]"
_ARM = re.compile(
    r"(?P<own>\d{1,4})/(?P<peer>\d{1,4})(?P<ds>\+ds)?(?:@(?P<recipe>[a-z]+))?(?P<open>-guard)?"
    r"(?:\+foes=(?P<foes>[a-z]+)(?P<percent>[1-9]\d?))?(?:\+fall=(?P<fall>[1-9]\d{0,3}))?(?P<shuffled>!shuffled)?"
)


class ArmError(ValueError):
    """An arm cannot be parsed. The message says which, why, and what would be valid."""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run a round: `own` questions answered and published, up to `peer` groups of peers trained
    on."""

    name: str
    """As written."""
    own: int
    peer: int
    recipe: str
    dynamic: bool = False
    """`+ds`: dynamic sampling as in DAPO. Uninformative own groups are replaced by new questions; all of them
    count as generated."""
    guarded: bool = True
    """False for `-guard`: no defence of the recipe against peers' text."""
    foes: str = ""
    """`+foes=poison30`: attackers of the kind `poison` (`app.lab.attackers`), `percent` of all nodes."""
    percent: int = 0
    falls: int | None = None
    """`+fall=40`: the learning rate falls, to 0.7 after 40 steps. Without it the rate is constant."""
    shuffled: bool = False
    """Control: rewards are shuffled, so nothing can be learned and the curve must stay flat."""

    @property
    def key(self) -> str:
        """Identifies the arm in file names, with its recipe: `4-4+ds@default`."""
        return (
            f"{self.own}-{self.peer}{'+ds' * self.dynamic}@{self.recipe}{'-guard' * (not self.guarded)}"
            + (f"+foes={self.foes}{self.percent}" if self.foes else "")
            + (f"+fall={self.falls}" if self.falls else "")
            + "!shuffled" * self.shuffled
        )

    @property
    def effective_recipe(self) -> Recipe:
        """The arm's recipe with its options applied."""
        recipe = msgspec.structs.replace(RECIPES[self.recipe], falls=self.falls)
        if self.guarded:
            return recipe
        return msgspec.structs.replace(recipe, checks=(), keeps_form=False, vigil=False, by_record=False)

    @property
    def is_alone(self) -> bool:
        """True if nodes learn alone, from their own questions as they come and with true rewards."""
        return not (self.peer or self.dynamic or self.shuffled or self.foes)


def parse_arms(text: str, recipe: str) -> list[Arm]:
    """Parses a comma-separated list of arms; `recipe` is used for arms that name none. Raises ArmError."""
    written = [part.strip() for part in text.split(",") if part.strip()]
    if not written:
        raise ArmError("There are no arms: name at least one, for example --arms 8/0,4/4.")
    arms: dict[str, Arm] = {}
    for arm in (parse_arm(part, recipe) for part in written):
        if arm.key in arms:
            raise ArmError(f"The arms {arms[arm.key].name} and {arm.name} are the same: leave one out.")
        arms[arm.key] = arm
    return list(arms.values())


def parse_arm(text: str, recipe: str) -> Arm:
    """Parses one arm. Raises ArmError.

    >>> parse_arm("4/4@default+fall=4", "faithful").key
    '4-4@default+fall=4'
    """
    match = _ARM.fullmatch(text)
    if match is None:
        raise ArmError(f"{text!r} is no arm: write {FORM}, for example 8/0, 4/4, 8/0+ds, 4/4@default.")
    named = match["recipe"] or recipe
    if named not in RECIPES:
        raise ArmError(f"There is no recipe called {named!r}: choose one of {', '.join(RECIPES)}.")
    if match["foes"] and match["foes"] not in KINDS:
        raise ArmError(f"There are no attackers called {match['foes']!r}: choose one of {', '.join(KINDS)}.")
    own, peer = int(match["own"]), int(match["peer"])
    if not 1 <= own <= 256 or peer > 256:
        raise ArmError(f"The arm {text!r} needs 1 to 256 own groups and at most 256 of peers.")
    return Arm(
        name=text,
        own=own,
        peer=peer,
        recipe=named,
        dynamic=bool(match["ds"]),
        guarded=not match["open"],
        foes=match["foes"] or "",
        percent=int(match["percent"] or 0),
        falls=int(match["fall"]) if match["fall"] else None,
        shuffled=bool(match["shuffled"]),
    )
