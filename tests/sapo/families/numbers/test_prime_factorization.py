"""Prime factors: forms that are right, forms that are not, and what is no question."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["prime_factorization"]
ENTRY = {"question": "", "answer": "2 × 3 × 3", "metadata": {"number": 18, "factors": [2, 3, 3]}}


@pytest.mark.parametrize(
    "text", ["2 × 3 × 3", "2×3×3", "3 * 2 * 3", "2 x 3 x 3", "2·3·3", r"2 \times 3 \times 3"]
)
def test_every_way_to_write_it_is_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "18",
        "2 × 9",
        "2 × 3",
        "2 × 3 × 3 × 1",
        "2 × 3 × 3 × 0",
        "2 × 3 × 3 ×",
        "2 ** 3 * 3",
        "2 × 3²",
        "2, 3, 3",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_primes_and_the_number_of_the_example_are_no_questions() -> None:
    assert FAMILY.sound(ENTRY)
    assert not FAMILY.sound({"metadata": {"number": 17, "factors": [17]}})
    assert not FAMILY.sound({"metadata": {"number": 12, "factors": [2, 2, 3]}})


def test_the_work_divides_until_a_prime_is_left() -> None:
    assert FAMILY.worked(ENTRY) == "18 / 2 = 9. 9 / 3 = 3. #2 × 3 × 3"
