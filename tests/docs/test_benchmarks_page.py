"""docs/benchmarks.md draws the newest results, and says which aims were missed."""

from __future__ import annotations

import re

from benchmarks._page import PAGE, pages


def test_the_page_and_its_pictures_are_of_the_newest_results() -> None:
    for path, text in pages().items():
        assert path.read_text() == text, f"{path.name}: run python -m benchmarks._page"


def test_a_missed_aim_is_called_missed() -> None:
    rows = re.findall(r"\| ([0-9.]+) \| [0-9.]+ \| ([0-9.]+)( \(missed\))? \|", PAGE.read_text())
    assert rows
    assert all((float(ratio) > float(aim)) == bool(missed) for ratio, aim, missed in rows)
