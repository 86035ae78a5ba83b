"""kill -9 between the commits of a batch that goes to two tables: both equal those of an undisturbed run.

One process is killed when each model has reached its point; the build after it runs in the shared session, over the
same lake and state.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.fault_injection.points import killing
from tests.lab import Lab, killed_alone
from tests.runtime.test_bad_records import AFTER, MODELS, POISON, land, record, shop

pytestmark = pytest.mark.spark

# In batch 2, the last with data, each of them has rows for the table and a bad record.
CASES = [
    *((kind, "quarantine") for kind in ("stateless", "window", "dedup", "join")),
    *((kind, "table") for kind in ("window", "join")),
    ("dedup", "record"),
]
PLAIN = """      - name: plain
        format: json
        path: landing/plain
        schema: "id int, at timestamp"
"""
# Rows that would differ the second time go to one table each; those of the last batch are cut off while they are kept.
LUCK = """/*---
streams: [shop.plain]
expectations: [{name: luck, check: luck < 0.5, on_fail: quarantine}]
---*/
select id, rand() as luck from {{ source('shop', 'plain') }}
"""
ODD = """/*---
streams: {shop.plain: {watermark: at delay 1 hour, dedup: [id]}}
expectations: [{name: odd, check: id % 2 = 1, on_fail: quarantine}]
---*/
select id from {{ source('shop', 'plain') }}
"""


def marks(lab: Lab, table: str) -> Iterator[str | None]:
    facts = lab.table(table)
    yield from (snapshot.marker("batch-id") for snapshot in facts.history if facts) if facts else ()


@pytest.mark.gate
def test_a_batch_killed_between_its_commits_takes_effect_once(lab: Lab) -> None:
    shop(lab, "stateless", "quarantine")
    land(lab, "c", [json.dumps({"id": 9, "refunded_at": "2024-05-01T16:30:00Z"})], "landing/refunds")
    land(lab, "a", [record(number, "10:00") for number in range(64)], "landing/plain")
    sources = lab.root / "sources" / "shop.yml"
    sources.write_text(sources.read_text() + PLAIN)
    (lab.root / "models" / "sales.sql").unlink()
    points = {}
    for kind, point in CASES:
        name = f"{kind}_{point}"
        lab.model(name, MODELS[kind])
        points[f"{name}__quarantine" if point == "quarantine" else name] = (
            "recorded" if point == "record" else "appended",
            2,
        )
    for name, text in (("first", MODELS["stateless"]), ("luck", LUCK), ("odd", ODD)):
        lab.model(name, text)
    points |= {"first__quarantine": ("appended", 0), "luck__quarantine": ("appended", 0), "odd": ("half kept", 0)}
    killed_alone(lab.root, "build", "--threads", str(len(points)), script=killing(points))

    for kind, point in CASES:
        name = f"{kind}_{point}"
        checkpoint = lab.state / name / "1" / "checkpoint"
        logs = spark_checkpoint.last_started(checkpoint), spark_checkpoint.last_committed(checkpoint)
        assert logs == (2, 1), name
        assert "2" in marks(lab, f"{name}__quarantine"), name
        assert ("2" in marks(lab, name)) == (point != "quarantine"), name
        assert (lab.model_json(name)["batch"] == 2) == (point == "record"), name
    # The first batch, of which only the quarantine is there, is not read anew.
    assert lab.model_json("first")["batch"] is None
    assert list(marks(lab, "first__quarantine")) == ["0"]
    lucky = {json.loads(r["row"])["id"] for r in lab.rows("luck__quarantine")}
    assert 0 < len(lucky) < 64
    kept = {name: lab.state / name / "1" / "batches" for name in ("luck", "odd")}
    # The rows of one batch each, and beside them what was counted.
    assert [sorted(path.is_dir() for path in folder.iterdir()) for folder in kept.values()] == [[False, True]] * 2
    assert lab.table("odd__quarantine") is None
    assert (lab.rows("luck"), lab.rows("odd")) == ([], [])

    lab.build()
    for name in [*(f"{kind}_{point}" for kind, point in CASES), "first"]:
        expected = [1, 2, 4] if name.startswith("window") else [1, 2, 4, 9]
        assert lab.ids(name) == expected, name
        raw = sorted(r["raw"].decode() for r in lab.rows(f"{name}__quarantine"))
        assert raw == sorted([*POISON, AFTER]), name
    aside = {name: [json.loads(r["row"])["id"] for r in lab.rows(f"{name}__quarantine")] for name in kept}
    assert sorted([*(r["id"] for r in lab.rows("luck")), *aside["luck"]]) == list(range(64))
    assert set(aside["luck"]) == lucky
    assert lab.ids("odd") == list(range(1, 64, 2))
    assert sorted(aside["odd"]) == list(range(0, 64, 2))
    assert [folder.exists() for folder in kept.values()] == [False, False]
    tables = [path.name + ending for path in lab.state.iterdir() for ending in ("", "__quarantine")]
    before = [lab.snapshot(table) for table in tables]
    lab.build()
    assert [lab.snapshot(table) for table in tables] == before
