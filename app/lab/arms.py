"""Arms: what is compared. `4/4+ds@default!shuffled` is an arm; a study is a comma-separated list of them."""

from __future__ import annotations

import re

import msgspec

from app.sapo import recipes as sapo_recipes

RECIPES = {
    name: msgspec.structs.replace(recipe, groups_per_step=None)
    for name, recipe in {**sapo_recipes.RECIPES, **sapo_recipes.CANDIDATES}.items()
}
"""Those of the app and those that are still being tried, as weights alone: one step a round unless an arm says
`+steps`, and no checks of peers' text unless it says `+guard`."""

_OPTION = re.compile(r"\+[a-z]+(?:=[a-z0-9.-]+)?|@[a-z]+|!shuffled")
_ARM = re.compile(rf"(?P<own>\d{{1,4}})/(?P<peer>\d{{1,4}})(?P<options>(?:{_OPTION.pattern})*)")


class ArmError(ValueError):
    """An arm that cannot be read. The message says which, why, and what would do."""


class Extra(msgspec.Struct, frozen=True, kw_only=True):
    """Something an arm may add to every round, built by `app.lab.twists` or part of its recipe (`Arm.rules`).
    Its value must match `pattern`; one that matches the empty string may be left out."""

    pattern: str
    example: str


EXTRAS: dict[str, Extra] = {
    "paces": Extra(pattern=r"|[1-9]\d?", example="+paces=4"),
    "average": Extra(pattern=r"|[1-9]\d?", example="+average=10"),
    "churn": Extra(pattern=r"|[1-9]\d?", example="+churn=10"),
    "foes": Extra(
        pattern=r"(?:poison|trigger|sly|long|copy|liar)[1-9]\d?(?:believed)?", example="+foes=poison30"
    ),
    "guard": Extra(
        pattern=r"(?:tokens|form|length|trust)(?:\.(?:tokens|form|length|trust))*|",
        example="+guard=tokens.form",
    ),
    "rollback": Extra(pattern="", example="+rollback"),
    "steps": Extra(pattern=r"[1-9]\d?", example="+steps=2"),
}
"""By name. `+paces=4`: half of the nodes act in every fourth round only. `+churn=10`: half of them are away in
turns, for ten rounds each. `+average=10`: nodes average their adapters in pairs every ten rounds.
`+foes=poison30`: attackers besides, 30 % of all (`app.lab.foes`). `+guard=tokens`: defences
(`app.sapo.defences`), all of them without a value; the app's recipe has them all, an arm only when it says so.
`+rollback`: a node that gets worse goes back to its running mean. `+steps=2`: an optimiser step for every two
groups that have something to teach (`app.sapo.minibatches`), not one for all."""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """A way to make a round: `own` questions answered and shared, up to `peer` groups taken in."""

    name: str
    """As written, in one order: I/J, +ds, @recipe, extras by name, !shuffled."""
    own: int
    peer: int
    recipe: str
    dynamic: bool = False
    """Uninformative own groups are replaced by fresh questions, as in DAPO; all of it counts as generated."""
    shuffled: bool = False
    """Control: rewards are dealt out at random, so nothing can be learnt and the curve must stay flat."""
    extras: tuple[tuple[str, str], ...] = ()
    """Names of EXTRAS with their values, sorted."""

    @property
    def key(self) -> str:
        """Names the arm in files and fixes its meaning, the recipe included: `4-4+ds@default`."""
        parts = (
            f"{self.own}-{self.peer}",
            "+ds" * self.dynamic,
            f"@{self.recipe}",
            *map(_written, self.extras),
            "!shuffled" * self.shuffled,
        )
        return "".join(parts)

    @property
    def rules(self) -> sapo_recipes.Recipe:
        """The arm's recipe, with its number of steps."""
        recipe = RECIPES[self.recipe]
        steps = dict(self.extras).get("steps")
        return msgspec.structs.replace(recipe, groups_per_step=int(steps)) if steps else recipe

    @property
    def plain(self) -> bool:
        """Whether it is what a node does alone: no peers, no selection, nothing added."""
        return not (self.peer or self.dynamic or self.shuffled or self.extras)


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

    >>> parse_arm("4/4@default+paces=4", "faithful").key
    '4-4@default+paces=4'
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
    extras = [_extra(option) for option in options if option.startswith("+") and option != "+ds"]
    names = [name for name, _ in extras]
    if len(recipes) > 1 or len(set(options)) < len(options) or len(set(names)) < len(names):
        raise ArmError(f"The arm {text!r} says something twice: keep one of each option.")
    if not 1 <= own <= 256 or peer > 256:
        raise ArmError(f"The arm {text!r} needs 1 to 256 own groups and at most 256 of peers.")
    dynamic, shuffled = "+ds" in options, "!shuffled" in options
    if shuffled and RECIPES[(recipes or [recipe])[0]].frontier:
        raise ArmError(f"The arm {text!r} has no control: questions answered again keep their true rewards.")
    added = tuple(sorted(extras))
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
    if name not in EXTRAS:
        examples = ", ".join(extra.example for extra in EXTRAS.values())
        raise ArmError(f"An arm knows no {option!r}: choose among +ds, {examples}.")
    if not re.fullmatch(EXTRAS[name].pattern, value):
        raise ArmError(f"The option {option!r} of an arm has no such value: write {EXTRAS[name].example}.")
    return name, value


def _written(extra: tuple[str, str]) -> str:
    name, value = extra
    return f"+{name}={value}" if value else f"+{name}"
