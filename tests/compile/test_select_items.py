"""Where the items of a SELECT are, and their texts, from its tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile.columns.column_texts import projections, starts
from engine.compile.sql.dialect import parse_tokens, tokenize
from engine.compile.sql.select_items import item_places
from tests.fixtures import read_rows

FIXTURE = Path(__file__).parent / "fixtures/select_items.txt"


def shown(text: str) -> tuple[list[str], list[str]]:
    """The text of each item, and the first word of what is found where it starts."""
    tokens = tokenize(text)
    tree = parse_tokens(tokens, text)[0]
    assert tree is not None
    places = item_places(tokens)
    items = projections(text, places, tree)
    begins = starts(text, places, tree, [f"c{n}" for n in range(len(items))])
    return items, [text[begin:].split(maxsplit=1)[0].rstrip(",") for begin in begins]


@pytest.mark.parametrize(("text", "joined"), read_rows(FIXTURE, "items", 2))
def test_the_text_of_each_item(text: str, joined: str) -> None:
    items = joined.split(" ; ") if joined else []
    found, begins = shown(text)
    assert found == items
    if not any("*" in item for item in items):
        assert begins == [item.split()[0].rstrip(",") if item else "" for item in items]
