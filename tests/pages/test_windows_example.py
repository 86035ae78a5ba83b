"""docs/examples/windows/README.md shows the windows of the clicks that its producer sends, computed here in plain Python."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.lab import REPOSITORY

EXAMPLE = REPOSITORY / "docs/examples/windows"
PAGE = (EXAMPLE / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| 2024-05-01 (\d\d:\d\d):00 \| 2024-05-01 (\d\d:\d\d):00 \| (\w+) +\| +(\d+) \|$", re.MULTILINE)
DELAY = timedelta(minutes=10)


def _click() -> Callable[..., dict[str, Any]]:
    spec = importlib.util.spec_from_file_location("produce", EXAMPLE / "produce.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    click: Callable[..., dict[str, Any]] = module.click
    return click


def _time(click: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(click["timestamp"])


def _closed(count: int) -> list[tuple[str, str, str, str]]:
    """The tumbling windows that the watermark has passed after the first clicks, as the page prints them."""
    clicks = [_click()(number) for number in range(count)]
    watermark = max(map(_time, clicks)) - DELAY
    groups = Counter((_time(one).replace(minute=_time(one).minute // 10 * 10, second=0), one["key"]) for one in clicks)
    return [
        (f"{start:%H:%M}", f"{start + DELAY:%H:%M}", key, str(clicks))
        for (start, key), clicks in sorted(groups.items())
        if start + DELAY <= watermark
    ]


def test_the_page_shows_the_windows_of_its_clicks() -> None:
    first, second = PAGE.split("## 4. Send more clicks")
    shown, added = ROW.findall(first), ROW.findall(second)
    assert shown == _closed(90)
    assert shown + added == _closed(120)


def test_the_page_names_the_times_of_the_newest_and_the_late_click() -> None:
    click = _click()
    newest = [max(_time(click(number)) for number in range(count)) for count in (90, 120)]
    for time in (newest[0], newest[0] - DELAY, newest[1], newest[1] - DELAY):
        assert f"{time:%H:%M:%S}" in PAGE
    late = _time(click(120, timedelta(hours=1)))
    assert late == datetime(2024, 5, 1, 12, 20, tzinfo=UTC)
    assert f"This click is from {late:%H:%M}" in PAGE
