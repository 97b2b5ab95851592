"""Relatives and friends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind

# Kinship: who one person is to another, from who is married to whom and whose child is who.

# Of the library's names only those that leave no doubt: a question does not say who is a woman, and River and
# Phoenix may be either.
_MEN = (
    *("James", "John", "Robert", "Michael", "William", "David", "Richard", "Joseph", "Thomas", "Charles"),
    *("Peter", "Daniel", "Matthew", "Christopher", "Andrew", "George", "Edward", "Benjamin", "Henry", "Samuel"),
)
_WOMEN = (
    *("Mary", "Patricia", "Jennifer", "Linda", "Elizabeth", "Barbara", "Susan", "Jessica", "Sarah", "Karen"),
    *("Emma", "Lisa", "Anna", "Margaret", "Victoria", "Charlotte", "Olivia", "Emily", "Hannah", "Alice"),
)

_TOLD = re.compile(
    r"(?P<one>\w+) is married to (?P<other>\w+)\."
    r"(?: They have (?:a child called (?P<child>\w+)|children called (?P<children>\w+(?:, \w+)* and \w+))\.)?"
)
_APART = re.compile(r", | and ")


class _Tree(msgspec.Struct, frozen=True):
    spouse: Mapping[str, str]
    parents: Mapping[str, Sequence[str]]

    def siblings(self, name: str) -> list[str]:
        own = self.parents.get(name)
        return [other for other, parents in self.parents.items() if own == parents and other != name]

    def between(self, one: str, other: str) -> tuple[str, str, list[str]]:
        """Returns the words for a man and for a woman who is to `other` what `one` is, and the steps from `one`
        to `other`. The words are empty if the library has none, or a wrong one: it names daughters-in-law by
        the inverse relation."""

        def child(name: str, parent: str) -> str:
            return f"{name} is a child of {parent}."

        def pair(name: str, sibling: str) -> str:
            return f"{name} and {sibling} have the same parents."

        if self.spouse.get(one) == other:
            return "husband", "wife", [f"{one} is married to {other}."]
        if one in self.parents.get(other, ()):
            return "father", "mother", [child(other, one)]
        if other in self.parents.get(one, ()):
            return "son", "daughter", [child(one, other)]
        if other in self.siblings(one):
            return "brother", "sister", [pair(one, other)]
        for parent in self.parents.get(other, ()):
            if one in self.parents.get(parent, ()):
                return "grandfather", "grandmother", [child(other, parent), child(parent, one)]
            if one in self.siblings(parent):
                return "uncle", "aunt", [child(other, parent), pair(parent, one)]
        for parent in self.parents.get(one, ()):
            if other in self.siblings(parent):
                return "nephew", "niece", [child(one, parent), pair(parent, other)]
        return "", "", []


def _tree(story: str) -> _Tree:
    spouse: dict[str, str] = {}
    parents: dict[str, Sequence[str]] = {}
    for told in _TOLD.finditer(story):
        couple = (told["one"], told["other"])
        spouse |= {couple[0]: couple[1], couple[1]: couple[0]}
        for name in _APART.split(told["child"] or told["children"] or ""):
            if name:
                parents[name] = couple
    return _Tree(spouse, parents)


def _found(entry: Entry) -> tuple[str, list[str]]:
    """Returns the relation of the two people that the story implies, and its steps, without using the library's
    own tree."""
    metadata = entry["metadata"]
    one = metadata["person1"]
    man, woman, steps = _tree(entry["question"]).between(one, metadata["person2"])
    return man if one in _MEN else woman, steps


def _relations_sound(entry: Entry) -> bool:
    """Whether the library's answer follows from the story. False for all in-laws, and for a niece or nephew
    whose uncle or aunt is of the opposite sex: there the library names the inverse relation."""
    return _found(entry)[0] == str(entry["answer"])


def _relations_work(entry: Entry) -> str:
    one = entry["metadata"]["person1"]
    return " ".join([*_found(entry)[1], f"{one} is a {'man' if one in _MEN else 'woman'}."])


_NAMES = dict(male_names=list(_MEN), female_names=list(_WOMEN))


def _relations_content(entry: Entry) -> Content:
    """Returns the two people and their relation, whatever is told of the others. Names cannot be dropped here:
    sex is told by the name alone, and without names a family of four has so few shapes that every question
    would be one of a dozen. So a pair of names is held out as a whole; the shape of its family is not."""
    metadata = entry["metadata"]
    return metadata["person1"], metadata["person2"], str(entry["answer"])


FAMILY_RELATIONSHIPS = Family(
    name="family_relationships",
    title="Family ties",
    kind=FamilyKind.LOGIC,
    levels=(
        dict(min_family_size=4, max_family_size=6, **_NAMES),
        dict(min_family_size=6, max_family_size=8, **_NAMES),
        dict(min_family_size=9, max_family_size=11, **_NAMES),
        dict(min_family_size=12, max_family_size=14, **_NAMES),
    ),
    content=_relations_content,
    score=scores.word,
    sound=_relations_sound,
    work=_relations_work,
    guess_rate=0.32,  # an answerer that tells men from women and has one word for each
    thinned=(dict(son=0.7, wife=0.8, husband=0.8),),
)


# How many sisters a brother has, and how many female friends a friend has: she who has them counts too.

_AIW_ASKED = (
    re.compile(
        r"(\w+) has [0-9]+ brothers and she also has ([0-9]+) (sisters)\. "
        r"How many sisters does \1's brother have\?"
    ),
    re.compile(
        r"(\w+) has [0-9]+ male friends and she also has ([0-9]+) (female friends)\. "
        r"They all are friends with each other and have no other friends aside\. "
        r"How many female friends does \w+, a male friend of \1, have\?"
    ),
)


def _aiw_told(entry: Entry) -> tuple[str, int, str] | None:
    """Returns who is asked about, and how many of each she has. None if the library asks about another person's
    brother, of whom the story says nothing."""
    found = next(filter(None, (form.fullmatch(entry["question"]) for form in _AIW_ASKED)), None)
    return (found[1], int(found[2]), found[3]) if found else None


def _aiw_sound(entry: Entry) -> bool:
    told = _aiw_told(entry)
    return told is not None and told[1] + 1 == int(entry["answer"])


def _aiw_work(entry: Entry) -> str:
    told = _aiw_told(entry)
    assert told is not None
    name, number, kind = told
    return f"{number} {kind} and {name}: {number} + 1 = {number + 1}."


def _aiw_level(most: int, friends: float) -> dict[str, object]:
    """Returns settings without the library's colleagues: whom Matilda, who is in two circles, knows is
    ambiguous."""
    return dict(max_entities=most, task_type_weights=[1 - friends, friends, 0.0])


def _aiw_content(entry: Entry) -> Content:
    """Returns the numbers and the result, whatever the names: 3 sisters and 3 female friends are counted
    alike.
    """
    return contents.calculation(entry["question"], entry["answer"])


def _aiw_wording(entry: Entry) -> str:
    text = re.sub(r"\b1 (brother|sister|male friend|female friend)s\b", r"1 \1", str(entry["question"]))
    return text.replace("have no other friends aside", "have no other friends")


AIW = Family(
    name="aiw",
    title="Sisters and friends",
    kind=FamilyKind.LOGIC,
    levels=(_aiw_level(15, 0.0), _aiw_level(20, 0.5), _aiw_level(30, 0.5), _aiw_level(90, 0.5)),
    content=_aiw_content,
    wording=_aiw_wording,
    score=scores.integer,
    sound=_aiw_sound,
    work=_aiw_work,
)
