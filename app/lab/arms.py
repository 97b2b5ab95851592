"""Arms: the alternatives that a study compares. `4/4+ds@default!shuffled` is an arm; a study has a
comma-separated list of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from app.lab.attackers import KINDS
from app.sapo.recipes import RECIPES, Recipe

_OPTION = re.compile(r"[+-][a-z]+(?:=[a-z0-9.]+)?|@[a-z]+|!shuffled")
_ARM = re.compile(rf"(?P<own>\d{{1,4}})/(?P<peer>\d{{1,4}})(?P<options>(?:{_OPTION.pattern})*)")
_CHECKS = RECIPES["default"].checks
_DEFENCES = (*_CHECKS, "keep", "vigil", "trust")


class ArmError(ValueError):
    """An arm cannot be parsed. The message says which, why, and what would be valid."""


class ArmOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option that an arm adds to every round, implemented by `app.lab.rounds.extras` or as a change of the
    recipe (`Arm.effective_recipe`). Its value must match `pattern`; if that matches the empty string, the value
    is optional."""

    pattern: str
    example: str


_ANY = "|".join(_DEFENCES)
EXTRAS: dict[str, ArmOption] = {
    "guard": ArmOption(pattern=rf"off|(?:{_ANY})(?:\.(?:{_ANY}))*|", example="-guard"),
    "steps": ArmOption(pattern=r"[1-9]\d?", example="+steps=1"),
    "foes": ArmOption(pattern=rf"(?:{'|'.join(KINDS)})[1-9]\d?(?:believed)?", example="+foes=poison30"),
    "fall": ArmOption(pattern=r"[1-9]\d{0,3}", example="+fall=40"),
}
"""Options by name. `-guard`: no defences against peers' text; `+guard=tokens.form`: only these, of `tokens`,
`form`, `length` and `trust` (`sapo.defences`), `keep` (`sapo.forms`) and `vigil` (`learning.vigil`).
`+steps=1`: one optimiser step per round; `+steps=2`: one per two groups with a non-zero weight
(`sapo.weighing`). `+foes=poison30`: attackers, 30 % of all nodes (`app.lab.attackers`). `+fall=40`: the
learning rate decays, to 0.7 after 40 steps. Options and recipes whose question is answered have been removed:
their studies are text (REPORT.md, LOG.md)."""

OF_RECIPE = ("guard", "steps", "fall")
"""Options that change the arm's recipe. The others are implemented by `app.lab.rounds.extras`."""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run a round: `own` questions answered and published, up to `peer` groups of peers trained
    on."""

    name: str
    """The canonical text: I/J, +ds, @recipe, options in the order of EXTRAS, !shuffled."""
    own: int
    peer: int
    recipe: str
    dynamic: bool = False
    """Dynamic sampling as in DAPO: uninformative own groups are replaced by new questions; all of them count as
    generated."""
    shuffled: bool = False
    """Control: rewards are shuffled, so nothing can be learned and the curve must stay flat."""
    extras: tuple[tuple[str, str], ...] = ()
    """(name, value) pairs in the order of EXTRAS, without those that equal the recipe's own setting."""

    @property
    def key(self) -> str:
        """Identifies the arm in file names, with its recipe: `4-4+ds@default`."""
        parts = (
            f"{self.own}-{self.peer}",
            "+ds" * self.dynamic,
            f"@{self.recipe}",
            *map(_written, self.extras),
            "!shuffled" * self.shuffled,
        )
        return "".join(parts)

    @property
    def effective_recipe(self) -> Recipe:
        """The arm's recipe with its options applied. The learning rate is constant unless the arm has `+fall`,
        as in studies from before the app's rate decayed."""
        return _changed(_constant(self.recipe), self.extras)

    @property
    def is_plain_solo(self) -> bool:
        """True if nodes learn alone: no peers, no dynamic sampling, no shuffled rewards, no options."""
        return not (self.peer or self.dynamic or self.shuffled or self.extras)

    @property
    def only_defences_or_steps(self) -> bool:
        """True if the arm has no options other than `guard` and `steps`."""
        return {name for name, _ in self.extras} <= {"guard", "steps"}


def parse_arms(text: str, recipe: str) -> list[Arm]:
    """Parses a comma-separated list of arms; `recipe` is used for arms that name none. Raises ArmError."""
    written = [part.strip() for part in text.split(",") if part.strip()]
    if not written:
        raise ArmError("There are no arms: name at least one, for example --arms 8/0,4/4.")
    arms: dict[str, tuple[str, Arm]] = {}
    for part in written:
        arm = parse_arm(part, recipe)
        if arm.key in arms:
            raise ArmError(f"The arms {arms[arm.key][0]} and {part} are the same: leave one out.")
        arms[arm.key] = part, arm
    return [arm for _, arm in arms.values()]


def parse_arm(text: str, recipe: str) -> Arm:
    """Parses one arm, `I/J` with options. Raises ArmError.

    >>> parse_arm("4/4@default+fall=4", "faithful").key
    '4-4@default+fall=4'
    """
    match = _ARM.fullmatch(text)
    if match is None:
        raise ArmError(
            f"{text!r} is no arm: write own/peer groups, for example 8/0, 4/4, 8/0+ds, 4/4@default, "
            f"{'4/4' + next(iter(EXTRAS.values())).example}, 8/0!shuffled."
        )
    own, peer = int(match["own"]), int(match["peer"])
    options = _OPTION.findall(match["options"])
    recipes = [option[1:] for option in options if option.startswith("@")]
    for name in recipes or [recipe]:
        if name not in RECIPES:
            raise ArmError(f"There is no recipe called {name!r}: choose one of {', '.join(RECIPES)}.")
    extras = [_extra(option) for option in options if option[0] in "+-" and option != "+ds"]
    names = [name for name, _ in extras]
    if len(recipes) > 1 or len(set(options)) < len(options) or len(set(names)) < len(names):
        raise ArmError(f"The arm {text!r} says something twice: keep one of each option.")
    if not 1 <= own <= 256 or peer > 256:
        raise ArmError(f"The arm {text!r} needs 1 to 256 own groups and at most 256 of peers.")
    dynamic, shuffled = "+ds" in options, "!shuffled" in options
    added = _telling((recipes or [recipe])[0], peer, extras)
    suffix = (
        "+ds" * dynamic
        + "".join(f"@{name}" for name in recipes)
        + "".join(map(_written, added))
        + "!shuffled" * shuffled
    )
    return Arm(
        name=f"{own}/{peer}{suffix}",
        own=own,
        peer=peer,
        recipe=(recipes or [recipe])[0],
        dynamic=dynamic,
        shuffled=shuffled,
        extras=added,
    )


def _extra(option: str) -> tuple[str, str]:
    name, _, value = option[1:].partition("=")
    if option == "-guard":
        return name, "off"
    if name not in EXTRAS or option[0] == "-":
        examples = ", ".join(extra.example for extra in EXTRAS.values())
        raise ArmError(f"An arm knows no {option!r}: choose among +ds, {examples}.")
    if value == "off" or not re.fullmatch(EXTRAS[name].pattern, value):
        raise ArmError(f"The option {option!r} of an arm has no such value: write {EXTRAS[name].example}.")
    return name, value


def _telling(recipe: str, peer: int, extras: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Options in canonical order, without those that change nothing: the recipe's own settings, and defences
    without peers."""
    rules = _constant(recipe)
    return tuple(
        extra
        for extra in sorted(extras, key=lambda extra: list(EXTRAS).index(extra[0]))
        if extra[0] not in OF_RECIPE or _changed(rules, [extra]) != rules
        if extra[0] != "guard" or peer
    )


def _constant(recipe: str) -> Recipe:
    return msgspec.structs.replace(RECIPES[recipe], falls=None)


def _changed(recipe: Recipe, extras: Sequence[tuple[str, str]]) -> Recipe:
    given = dict(extras)
    if (guard := given.get("guard")) is not None:
        named = _DEFENCES if guard == "" else guard.split(".")
        recipe = msgspec.structs.replace(
            recipe,
            checks=tuple(check for check in _CHECKS if check in named),
            keeps_form="keep" in named,
            vigil="vigil" in named,
            by_record="trust" in named,
        )
    if steps := given.get("steps"):
        recipe = msgspec.structs.replace(recipe, groups_per_step=None if steps == "1" else int(steps))
    return msgspec.structs.replace(
        recipe,
        falls=int(given["fall"]) if "fall" in given else recipe.falls,
    )


def _written(extra: tuple[str, str]) -> str:
    name, value = extra
    return f"-{name}" if value == "off" else f"+{name}={value}" if value else f"+{name}"
