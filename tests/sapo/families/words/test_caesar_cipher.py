"""The cipher has few clear texts under many rotations: a clear text is held out under all of them or none."""

from __future__ import annotations

from app.learning.questions import own_questions
from app.sapo import curriculum
from app.sapo.families import FAMILIES
from app.sapo.probe import probe_questions
from app.sapo.questions import draw, generate, make

FAMILY = FAMILIES["caesar_cipher"]


def test_no_clear_text_of_the_probe_is_ever_trained_on() -> None:
    for level in range(len(FAMILY.levels)):
        probe = {generate(one.coordinates).entry["answer"] for one in probe_questions({FAMILY.name: level}, 40)}
        state = curriculum.start({FAMILY.name: level})
        drawn = [one for number in range(20) for one in own_questions(state, b"me", number, 8, make)]
        trained = {generate(one.coordinates).entry["answer"] for one in drawn}
        assert len(probe) >= 5 and len(trained) >= 20 and not probe & trained


def test_a_clear_text_is_held_out_whatever_its_rotation() -> None:
    asked = [draw(FAMILY.name, 0, seed * 2**22) for seed in range(400)]
    by_clear: dict[str, set[tuple[str, bool]]] = {}
    for one in asked:
        by_clear.setdefault(one.entry["answer"], set()).add((one.text, one.held_out))
    several = [found for found in by_clear.values() if len(found) > 1]
    assert len(several) > 20 and all(len({out for _, out in found}) == 1 for found in several)
