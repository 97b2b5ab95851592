"""Arms: what is compared. `4/4+ds@default!shuffled` is an arm; a study is a comma-separated list of them."""

from __future__ import annotations

import re

import msgspec

from app.sapo.recipes import RECIPES

_ARM = re.compile(r"(?P<own>\d{1,4})/(?P<peer>\d{1,4})(?P<options>(?:\+ds|@[a-z]+|!shuffled)*)")
_OPTION = re.compile(r"\+ds|@[a-z]+|!shuffled")


class ArmError(ValueError):
    """An arm that cannot be read. The message says which, why, and what would do."""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """A way to make a round: `own` questions answered and shared, up to `peer` groups taken in."""

    name: str
    """As written, in one order: I/J, +ds, @recipe, !shuffled."""
    own: int
    peer: int
    recipe: str
    dynamic: bool = False
    """Uninformative own groups are replaced by fresh questions, as in DAPO; all of it counts as generated."""
    shuffled: bool = False
    """Control: rewards are dealt out at random, so nothing can be learnt and the curve must stay flat."""

    @property
    def key(self) -> str:
        """Names the arm in files and fixes its meaning, the recipe included: `4-4+ds@default`."""
        parts = (
            f"{self.own}-{self.peer}",
            "+ds" * self.dynamic,
            f"@{self.recipe}",
            "!shuffled" * self.shuffled,
        )
        return "".join(parts)


def parse_arms(text: str, recipe: str) -> list[Arm]:
    """The arms of a comma-separated list; `recipe` is for those that name none. Raises ArmError."""
    arms = [parse_arm(part.strip(), recipe) for part in text.split(",") if part.strip()]
    if not arms:
        raise ArmError("There are no arms: name at least one, for example --arms 8/0,4/4.")
    seen: dict[str, str] = {}
    for arm in arms:
        if arm.key in seen:
            raise ArmError(f"The arms {seen[arm.key]} and {arm.name} are the same: leave one out.")
        seen[arm.key] = arm.name
    return arms


def parse_arm(text: str, recipe: str) -> Arm:
    """One arm, `I/J` with options.

    >>> parse_arm("4/4@default", "faithful").key
    '4-4@default'
    """
    match = _ARM.fullmatch(text)
    if match is None:
        raise ArmError(
            f"{text!r} is no arm: write own/peer groups, for example 8/0, 4/4, 8/0+ds, 4/4@default, "
            "8/0!shuffled."
        )
    own, peer = int(match["own"]), int(match["peer"])
    options = _OPTION.findall(match["options"])
    recipes = [option[1:] for option in options if option.startswith("@")]
    for name in recipes or [recipe]:
        if name not in RECIPES:
            raise ArmError(f"There is no recipe called {name!r}: choose one of {', '.join(RECIPES)}.")
    if len(recipes) > 1 or len(set(options)) < len(options):
        raise ArmError(f"The arm {text!r} says something twice: keep one of each option.")
    if not 1 <= own <= 256 or peer > 256:
        raise ArmError(f"The arm {text!r} needs 1 to 256 own groups and at most 256 of peers.")
    dynamic, shuffled = "+ds" in options, "!shuffled" in options
    suffix = "+ds" * dynamic + "".join(f"@{name}" for name in recipes) + "!shuffled" * shuffled
    return Arm(
        name=f"{own}/{peer}{suffix}",
        own=own,
        peer=peer,
        recipe=(recipes or [recipe])[0],
        dynamic=dynamic,
        shuffled=shuffled,
    )
