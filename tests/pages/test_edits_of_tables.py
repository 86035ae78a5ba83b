"""The commands of the pages on full refreshes, renames and backfills, run: a rebuild, a rollback, renames, a backfill."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab import REPOSITORY, Lab, event
from tests.pages.command_lines import engine_commands
from tests.pages.page_blocks import Block, blocks_of

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

FULL_REFRESH = REPOSITORY / "docs/full-refresh.md"
CHANGES = REPOSITORY / "docs/change-a-model.md"
BACKFILL = REPOSITORY / "docs/how-to/backfill.md"
PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, at, kind{} from {{{{ source('shop', 'events') }}}}\n"


def block(page: Path, with_text: str) -> Block:
    """The first block that has a text."""
    return next(one for one in blocks_of(page.read_text(encoding="utf-8")) if with_text in one.text)


def commands(found: Block) -> list[list[str]]:
    """Its commands; what asks is told yes."""
    return [[*line, "--yes"] if line[0] == "rollback" else line for _, line in engine_commands(found)]


def succeed(lab: Lab, arguments: list[str]) -> None:
    result = lab.run(*arguments)
    assert result.code == 0, result.text


def numbers(lab: Lab, name: str, column: str) -> list[object]:
    return [row[column] for row in sorted(lab.rows(name), key=lambda row: str(sorted(row.items())))]


def test_a_rebuild_beside_the_table_and_back(lab: Lab) -> None:
    totals = PAID.replace("kind{}", "kind, {} as version")
    lab.model("totals", totals.format(1))
    lab.model("totals_by_day", "/*---\nstreams: [totals]\n---*/\nselect id, version from {{ ref('totals') }}\n")
    lab.land("a", [event(1), event(2)])
    lab.build()
    lab.model("totals", totals.format(2))
    begin, publish, back = commands(block(FULL_REFRESH, "engine build --rebuild"))
    succeed(lab, begin)
    assert numbers(lab, "totals", "version") == [1, 1]
    lab.land("b", [event(3)])
    succeed(lab, publish)
    assert numbers(lab, "totals", "version") == numbers(lab, "totals_by_day", "version") == [2, 2, 2]
    succeed(lab, back)
    assert numbers(lab, "totals", "version") == numbers(lab, "totals_by_day", "version") == [1, 1]


def test_back_to_before_a_full_refresh(lab: Lab) -> None:
    lab.land("a", [event(1), event(2)])
    lab.model("totals", PAID.format(""))
    lab.build()
    lab.model("totals", PAID.format(", 2 as version"))
    lab.build("-f")
    succeed(lab, ["compare", "totals"])
    (back,) = commands(block(FULL_REFRESH, "engine rollback totals            #"))
    succeed(lab, back)
    assert [sorted(row) for row in lab.rows("totals")] == [["at", "id", "kind"]] * 2


def test_a_renamed_model_and_a_renamed_column(lab: Lab) -> None:
    lab.land("a", [event(1), event(2)])
    lab.model("paid", PAID.format(""))
    lab.build()
    (lab.root / "models/paid.sql").unlink()
    lab.model("payments", block(CHANGES, "renamed_from: paid").text)
    lab.land("b", [event(3)])
    lab.build()
    assert (lab.ids("payments"), lab.table("paid")) == ([1, 2, 3], None)
    client = PAID.format("").replace("kind", "kind as client")
    lab.model("buyers", client)
    lab.build()
    kinds = numbers(lab, "buyers", "client")
    lab.model("buyers", block(CHANGES, "customer: {renamed_from: client}").text)
    before = lab.snapshot("buyers")
    lab.build()
    assert (numbers(lab, "buyers", "customer"), lab.snapshot("buyers")) == (kinds, before)


def test_a_backfill(lab: Lab) -> None:
    lab.land("a", [event(day, f"2024-05-0{day}T10:00") for day in range(1, 6)])
    orders = PAID.replace("kind{}", "kind, {} as version")
    lab.model("orders", orders.format(1))
    lab.build()
    lab.model("orders", orders.format(2))
    before = dict.fromkeys(range(1, 6), 1)
    continues, shows, computes = commands(block(BACKFILL, "engine backfill orders"))
    succeed(lab, continues)
    succeed(lab, shows)
    assert {row["id"]: row["version"] for row in lab.rows("orders")} == before
    succeed(lab, computes)
    assert {row["id"]: row["version"] for row in lab.rows("orders")} == {**before, 2: 2, 3: 2}
