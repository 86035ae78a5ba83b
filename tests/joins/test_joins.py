"""A few joins of streams whose keys may be NULL; `python -m tests.joins` builds random ones."""

from __future__ import annotations

import pytest

from tests.lab import Lab

pytestmark = pytest.mark.spark

SCHEMA = "id int, k string, ts timestamp"
LEFT = [{"id": None, "k": "a"}, {"id": 1, "k": "b"}, {"id": 2, "k": None}, {"id": 3, "k": ""}]
RIGHT = [{"id": None, "k": "A"}, {"id": 1, "k": "B"}, {"id": 3, "k": None}, {"id": 4, "k": ""}]
# Of each join the pairs of ids that it has for these rows.
JOINS = {
    "inner join r on nullif(l.id, 2) = nullif(r.id, 3)": [(1, 1)],
    "full join r on l.id = r.id": [(None, None), (None, None), (1, 1), (2, None), (3, 3), (None, 4)],
    "left join r on nullif(lower(l.k), '') = nullif(lower(r.k), '')": [(None, None), (1, 1), (2, None), (3, None)],
    "left join r on try_cast(l.k as int) = try_cast(r.k as int)": [(None, None), (1, None), (2, None), (3, None)],
}


def test_null_matches_nothing_in_a_build_of_each_kind_of_join(lab: Lab) -> None:
    tables = "".join(
        f"      - {{name: {side}, format: json, path: landing/{side}, schema: '{SCHEMA}'}}\n" for side in "lr"
    )
    lab.write("sources/raw.yml", f"sources:\n  - name: raw\n    tables:\n{tables}")
    texts = [
        f"select {number} as j, l.id as lid, r.id as rid from l {join} and r.ts between l.ts - interval 5 minutes and l.ts"
        for number, join in enumerate(JOINS)
    ]
    given = ", ".join(f"{side} as (select * from {{{{ source('raw', '{side}') }}}})" for side in "lr")
    streams = "".join(f"  raw.{side}: {{watermark: ts delay 1 minute}}\n" for side in "lr")
    body = " union all ".join(f"select * from (with {given} {text})" for text in texts)
    lab.model("joined", f"/*---\nstreams:\n{streams}state_store: {{partitions: 1, provider: hdfs}}\n---*/\n{body}\n")
    for side, rows in (("l", LEFT), ("r", RIGHT)):
        lab.land("a", [{**row, "ts": "2024-05-01T10:00:00Z"} for row in rows], f"landing/{side}")
    lab.build()
    for side in "lr":
        # Behind all of these: rows without a match are written.
        lab.land("b", [{"id": 99, "k": "later", "ts": "2024-05-01T12:00:00Z"}], f"landing/{side}")
    lab.build()
    rows = lab.rows("joined")
    for number, (join, pairs) in enumerate(JOINS.items()):
        found = [(row["lid"], row["rid"]) for row in rows if row["j"] == number and 99 not in row.values()]
        assert sorted(found, key=str) == sorted(pairs, key=str), join
