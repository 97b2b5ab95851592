"""What the pages for newcomers point at is there: files, and the functions and classes that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "GLOSSARY.md", "resources/help/developing.md")
LINK = re.compile(r"\]\(([^)#:]+)\)")
NAMED = re.compile(r"`(?:\w+\.)?(\w+)`[^`\n|]*?\]\(([^)#:]+\.py)\)")


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file(page: str) -> None:
    folder = (ROOT / page).parent
    links = LINK.findall((ROOT / page).read_text())
    assert links and [link for link in links if not (folder / link).exists()] == []


def test_every_name_stands_where_the_page_says() -> None:
    named = NAMED.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert len(named) >= 15
    missing = [
        (name, path)
        for name, path in named
        if not re.search(rf"^\s*(?:async def|def|class) {name}\b|^{name}\b", (ROOT / path).read_text(), re.M)
    ]
    assert missing == []


def test_every_name_of_the_glossary_is_in_the_code() -> None:
    text = "\n".join(file.read_text() for room in ("app", "engines") for file in (ROOT / room).rglob("*.py"))
    defined = set(re.findall(r"^\s*(?:async def|def|class) (\w+)", text, re.M))
    rows = [
        line.split("|") for line in (ROOT / "GLOSSARY.md").read_text().splitlines() if line.startswith("| ")
    ]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[3])}
    assert len(named) >= 40 and named - defined == set()
