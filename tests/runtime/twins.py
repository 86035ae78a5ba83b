"""Two models with one query: one had another query when its state began, the other has it from the start.

Where an edit leaves a query the same, both have the same rows: built over the same landings, the micro-batches and so
the late rows are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.lab import Lab, Result
from tests.projects import sources_yaml

SOURCES = sources_yaml(
    events="id int, at timestamp, kind string, amount double, more struct<v: double>",
    pays="id int, paid_at timestamp, sum double, note string, tag string",
)
E, P = "{{ source('shop', 'events') }}", "{{ source('shop', 'pays') }}"
FRESH = "_fresh"


def landings() -> list[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Events and pays: two landings into the same hours, and one that closes all windows and joins."""
    kinds = ("a", "b", None, "cc")
    days: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = []
    for landing in range(2):
        numbers = range(landing * 12, landing * 12 + 12)
        times = [f"2024-05-01T{10 + n % 2}:{20 + 2 * n - 24 * landing + 9 * landing:02}:00Z" for n in numbers]
        events = [
            {"id": n, "at": at, "kind": kinds[n % 4], "amount": n * 1.5 if n % 5 else None, "more": {"v": n / 4}}
            for n, at in zip(numbers, times, strict=True)
        ]
        pays = [
            {
                "id": n if n % 3 else n + 100,
                "paid_at": at,
                "sum": n * 2.25,
                "note": kinds[n % 4],
                "tag": kinds[n * 7 % 4],
            }
            for n, at in zip(numbers, times, strict=True)
        ]
        days.append((events, pays))
    events = [{"id": 900, "at": "2024-05-01T23:00:00Z", "kind": "z", "amount": 1.0, "more": {"v": 1.0}}]
    pays = [{"id": 901, "paid_at": "2024-05-01T23:00:00Z", "sum": 1.0, "note": "z", "tag": "z"}]
    return [*days, (events, pays)]


def build(lab: Lab, before: Mapping[str, str], after: Mapping[str, str]) -> Result:
    """Build models as they were over the first landing, and as they are over the others.

    Returns:
        What the build says that is the first of the models as they are.
    """
    lab.write("sources/shop.yml", SOURCES)
    for name, text in before.items():
        lab.model(name, text)
        lab.model(name + FRESH, after[name])
    result = None
    for number, (events, pays) in enumerate(landings()):
        lab.land(str(number), events)
        lab.land(str(number), pays, folder="landing/pays")
        if number == 1:
            for name, text in after.items():
                lab.model(name, text)
        built = lab.run("build")
        result = built if number == 1 else result
        if number != 1:
            assert built.code == 0, built.text
    assert result is not None
    return result


def wrong(lab: Lab, names: Sequence[str]) -> dict[str, tuple[list[Any], list[Any]]]:
    """The models whose rows differ from those of their twins: both."""
    rows = {name: (_sorted(lab.rows(name)), _sorted(lab.rows(name + FRESH))) for name in names}
    return {name: pair for name, pair in rows.items() if pair[0] != pair[1]}


def _sorted(rows: list[dict[str, Any]]) -> list[Any]:
    return sorted((sorted(row.items()) for row in rows), key=str)
