"""Foreign text that is shown, spans of time and bytes in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.common import text


@given(st.text())
def test_nothing_that_a_terminal_or_a_display_obeys_is_left(foreign: str) -> None:
    for shown in (text.safe_text(foreign), text.safe_text(foreign, strip=False)):
        assert all(char.isprintable() or char in "\n\u200c\u200d" for char in shown)
    assert "\n" not in text.safe_line(foreign)


def test_the_edges_of_a_line_in_a_log_stay() -> None:
    assert text.safe_text("  \tdeep\r", strip=False) == "      deep·"
    assert text.safe_text("  deep \n") == "deep"


def test_long_text_is_cut_and_says_so() -> None:
    assert text.safe_text("x" * 5, 4) == "xxxx…" and text.safe_text("x" * 4, 4) == "xxxx"


@given(st.floats(0, 1e9))
def test_a_span_is_near_what_it_says(seconds: float) -> None:
    length = {"s": 1, "min": 60, "h": 3600, "days": 86_400}
    n, unit = text.number_and_unit(seconds)
    assert abs(int(n) * length[unit] - seconds) <= length[unit] / 2 + 1e-6 * seconds
    assert text.rounded_duration(seconds) == f"{n} {unit}"


@given(st.floats(0, 1e12))
def test_an_exact_span_has_not_more_than_passed(seconds: float) -> None:
    length = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
    words = text.exact_duration(seconds).split()
    said = sum(int(n) * length[unit] for n, unit in zip(words[::2], words[1::2], strict=True))
    assert said <= seconds < said + length[words[-1]] + (86_400 if words[-1] == "d" else 3600)


def test_bytes_in_words() -> None:
    assert [text.in_bytes(n) for n in (0, 999, 1000, 999_949, 15_600_000, 12e15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "999.9 kB",
        "15.6 MB",
        "12,000,000.0 GB",
    ]
