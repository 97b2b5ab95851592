"""How many legs some animals have together."""

from __future__ import annotations

from collections.abc import Callable

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.wording import counted

LEGS = {
    **dict.fromkeys(("snake", "sea slug", "jellyfish", "flatworm", "leech"), 0),
    **dict.fromkeys(("chicken", "bird", "human", "duck"), 2),
    **dict.fromkeys(("dog", "cat", "cow", "horse", "lion", "elephant", "giraffe", "tiger", "deer", "sheep"), 4),
    **dict.fromkeys(("insect", "ant", "butterfly", "beetle", "bee", "wasp", "grasshopper", "cricket"), 6),
    **dict.fromkeys(("cockroach", "praying mantis", "firefly"), 6),
    **dict.fromkeys(("spider", "scorpion"), 8),
    **dict.fromkeys(("crab", "lobster", "shrimp"), 10),
    "woodlouse": 14,
}
"""Legs of the library's animals, but for a starfish: the library counts its five arms."""


_MANY = {
    **{same: same for same in ("deer", "sheep", "shrimp", "jellyfish")},
    **{"butterfly": "butterflies", "firefly": "fireflies", "woodlouse": "woodlice"},
    **{animal: f"{animal}es" for animal in ("cockroach", "leech", "praying mantis")},
}


def _wording(entry: Entry) -> str:
    have = [
        counted(count, animal, _MANY.get(animal, "")) for animal, count in entry["metadata"]["animals"].items()
    ]
    return f"{str(entry['question']).partition(' if you have ')[0]} if you have {', '.join(have)}?"


def _sound(entry: Entry) -> bool:
    """Whether every animal's legs can be looked up in a book, and there are some to count."""
    animals: dict[str, int] = entry["metadata"]["animals"]
    total = sum(count * LEGS.get(animal, 0) for animal, count in animals.items())
    return animals.keys() <= LEGS.keys() and 0 < total == int(entry["answer"])


def _work(entry: Entry) -> str:
    animals = entry["metadata"]["animals"]
    parts = [count * LEGS[animal] for animal, count in animals.items()]
    steps = [
        f"{animal}: {count} * {LEGS[animal]} = {part}."
        for (animal, count), part in zip(animals.items(), parts, strict=True)
    ]
    if len(parts) > 1:
        steps.append(f"{' + '.join(map(str, parts))} = {sum(parts)}.")
    return " ".join(steps)


def _sort(entry: Entry) -> str:
    animals = entry["metadata"]["animals"]
    return f"{LEGS[next(iter(animals))]} legs each" if len(animals) == 1 else ""


def _as_if(legs: int) -> Callable[[Entry], str]:
    return lambda entry: str(legs * sum(entry["metadata"]["animals"].values()))


FAMILY = Family(
    name="leg_counting",
    title="Counting legs",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_animals=1, max_animals=1, min_instances=2, max_instances=12),
        dict(min_animals=2, max_animals=2, min_instances=1, max_instances=12),
        dict(min_animals=2, max_animals=4, min_instances=1, max_instances=12),
        dict(min_animals=3, max_animals=6, min_instances=1, max_instances=15),
        dict(min_animals=5, max_animals=10, min_instances=5, max_instances=30),
    ),
    content=lambda entry: tuple(sorted(entry["metadata"]["animals"].items())),
    wording=_wording,
    sort=_sort,
    shortcuts={"four legs each": _as_if(4), "six legs each": _as_if(6)},
    held_out_share=6,  # one animal, a dozen times at most
    score=scores.integer,
    sound=_sound,
    work=_work,
    thinned=({"4 legs each": 0.36, "6 legs each": 0.34},),
)
