"""Which streams lose rows without an event time: decided from the query, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile import Manifest
from engine.compile.nodes.facts import plain as stored
from tests.lab import EVENTS, PROJECT
from tests.project.small_projects import compiled, model

pytestmark = pytest.mark.slow

SOURCES = f"""{EVENTS}
      - name: refunds
        format: json
        path: landing/refunds
        schema: "id int, text string, data struct<at: string>"
      - name: unknown
        format: iceberg
        table: other.unknown
"""
E, R, U = (f"{{{{ source('shop', '{name}') }}}}" for name in ("events", "refunds", "unknown"))
W = "watermark: at delay 1 hour"
ONE = f"streams: {{shop.events: {{{W}}}}}"
BOTH = (
    f"streams: {{shop.events: {{{W}}}, shop.refunds: {{watermark: cast(data.at as timestamp) as r_at delay 1 hour}}}}"
)
HOUR = "\nwindows: {hour: 'tumbling(at, 1 hour)'}"
UPDATE = "\noutput_mode: update\nunique_key: k"
BOUND = "r.r_at between e.at and e.at + interval 1 hour"
COUNTED = "select hour.start as k, count(*) as n from {} group by hour"
THROUGH = "streams: [eph]" + HOUR.replace("(at,", "(t,")

AT = "(select 1 as id, timestamp'2024-01-01' as at)"

# Header, query, and what is decided for shop.events and then for shop.refunds: True, False (the query has a condition
# of its own), None.
CASES = {
    "window": (ONE + HOUR, COUNTED.format(E), [True]),
    "window of a subquery": (ONE, f"select count(*) as n from (select at as t from {E}) group by window(t, '1 hour')", [True]),
    "window in update mode": (ONE + HOUR + UPDATE, COUNTED.format(E), [True]),
    "window over columns that are not known": (ONE.replace("events", "unknown") + HOUR, COUNTED.format(U), [True]),
    "computed": (
        "streams: {shop.refunds: {watermark: try_cast(text as timestamp) as at delay 1 hour}}" + HOUR,
        COUNTED.format(R), [True],
    ),
    "group in append mode": (ONE, f"select at as k, count(*) as n from {E} group by at", [True]),
    "group in update mode": (ONE + UPDATE, f"select at as k, count(*) as n from {E} group by at", [None]),
    "group by another column": (ONE + UPDATE, f"select kind as k, max(at) as n from {E} group by kind", [None]),
    "distinct": (ONE, f"select distinct id, at from {E}", [True]),
    "dedup": (ONE.replace("hour}", "hour, dedup: [id]}"), f"select id from {E}", [True]),
    "no state": (ONE, f"select id, at from {E} where at > '2024-01-01'", [None]),
    "a static join": (ONE, f"select e.id from {E} e join {R} r on e.at > cast(r.text as timestamp)", [None]),
    "a bounded join": (BOTH, f"select e.id from {E} e join {R} r on e.id = r.id and {BOUND}", [True, True]),
    "a bound in WHERE": (BOTH, f"select e.id from {E} e join {R} r on e.id = r.id where {BOUND}", [True, True]),
    "a join with itself": (ONE, f"select a.id from {E} a join {E} b on a.id = b.id and a.at = b.at", [True]),
    "a join without a bound": (BOTH, f"select e.id from {E} e join {R} r on e.id = r.id", [None, None]),
    "one time in WHERE": (BOTH, f"select e.id from {E} e join {R} r on e.id = r.id where e.at > '2024-01-01'", [None, None]),
    "not null": (ONE + HOUR, COUNTED.format(E).replace("group", "where id > 0 and (at IS NOT NULL) group"), [False]),
    "not null or": (ONE + HOUR, COUNTED.format(E).replace("group", "where id > 0 or at is not null group"), [True]),
    "a count": (ONE + HOUR, COUNTED.format(E).replace("count(*)", "count_if(at is not null)"), [True]),
    "not null of one side": (
        BOTH, f"select e.id from {E} e join {R} r on e.id = r.id and {BOUND} where r.r_at is not null", [True, False],
    ),
    "not null of a table with the same name": (
        ONE + HOUR.replace("(at,", "(e.at,"),
        f"select hour.start as k, count(*) as n from {E} e join {AT} t on e.id = t.id where t.at is not null group by hour",
        [True],
    ),
    "not null of a computed time": (
        "streams: {shop.refunds: {watermark: try_cast(text as timestamp) as at delay 1 hour}}" + HOUR,
        COUNTED.format(R).replace("group", "where at is not null group"), [False],
    ),
    "not null of a column of an ephemeral model": (
        THROUGH.replace("(t,", "(at,").replace("[eph]", "[same]"),
        COUNTED.format("{{ ref('same') }}").replace("group", "where at is not null group"), [False],
    ),
    "through": (THROUGH, COUNTED.format("{{ ref('eph') }}"), [True]),
}  # fmt: skip
EPHEMERAL = f"/*---\nmaterialized: ephemeral\n{ONE}\n---*/\nselect id, at as t from {E}\n"


def manifest(root: Path, header: str, sql: str) -> Manifest:
    project = PROJECT.format(lake=".engine/lake", schema="s")
    others = {
        "project.yml": project,
        "sources/shop.yml": SOURCES,
        "models/eph.sql": EPHEMERAL,
        "models/same.sql": EPHEMERAL.replace("at as t", "at"),
    }
    return compiled(root, {**others, **model(header, sql, "m")}).manifest


@pytest.mark.parametrize("case", CASES)
def test_a_stream_needs_its_time_where_a_stateful_step_would_lose_the_row(tmp_path: Path, case: str) -> None:
    header, sql, expected = CASES[case]
    found = manifest(tmp_path, header, sql)
    assert not found.errors, found.errors
    streams = sorted((item for item in found.model("m").inputs if item.stream), key=lambda item: item.name)
    assert [item.needs_time for item in streams] == expected


def test_the_setting_changes_no_fingerprint_unless_it_is_given(tmp_path: Path) -> None:
    plain = manifest(tmp_path, ONE + HOUR, COUNTED.format(E)).model("m")
    assert "on_null" not in stored(plain.facts)["inputs"][0]["watermark"]
    full = ONE.replace("at delay 1 hour", "{column: at, delay: 1 hour, on_null: drop}")
    given = manifest(tmp_path, full + HOUR, COUNTED.format(E)).model("m")
    assert stored(given.facts)["inputs"][0]["watermark"]["on_null"] == "drop"
    (wrong,) = manifest(tmp_path, full.replace("drop", "keep") + HOUR, COUNTED.format(E)).errors
    assert (wrong.code, wrong.message) == ("bad-value", "'on_null' cannot be 'keep'")
