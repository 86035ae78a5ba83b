"""`publish: on_tests_pass`: rows are written where readers do not see them, and shown when the tests have passed."""

from __future__ import annotations

import pytest

from engine.lake.commits import STAGED
from tests.fault_injection.points import reached
from tests.lab import Lab, event

pytestmark = pytest.mark.spark

# One that appends, one that merges; a stream and a batch table that read them, and a test of another model's.
PAID = """/*---
streams: {shop.events: {max_files_per_trigger: 1}}
publish: on_tests_pass
explain: true
columns:
  amount: {tests: [not_null]}
---*/
select id, at, amount from {{ source('shop', 'events') }}
"""
LATEST = """/*---
streams: {shop.events: {max_files_per_trigger: 1}}
unique_key: id
sequence_by: at
publish: on_tests_pass
columns:
  amount: {tests: [not_null]}
  # Passes where the other fails: one test that passes shows nothing.
  at: {tests: [not_null]}
---*/
select id, at, amount from {{ source('shop', 'events') }}
"""
COPY = "/*---\nstreams: [paid]\n---*/\nselect id from {{ ref('paid') }}\n"
KNOWN = """/*---
columns:
  id: {tests: [{relationships: {to: paid, field: id}}]}
---*/
select distinct id from {{ ref('latest') }}
"""


def prepare(lab: Lab) -> Lab:
    lab.model("paid", PAID)
    lab.model("latest", LATEST)
    lab.model("copy", COPY)
    lab.model("known", KNOWN)
    return lab


def staged(lab: Lab, name: str) -> list[int] | None:
    """The ids in the branch; None: there is none."""
    table = lab.table(name)
    assert table is not None
    if STAGED not in table.branches:
        return None
    rows = lab.session.spark.sql(f"select id from lake.{lab.schema}.{name} version as of '{STAGED}'")  # type: ignore[union-attr]
    return sorted(row["id"] for row in rows.collect())


NAMES = ("paid", "latest", "copy", "known")


def test_rows_are_shown_when_the_tests_have_passed_and_held_back_until_then(lab: Lab) -> None:
    prepare(lab)
    lab.land("a", [event(1, 1), event(2, 1)])
    lab.land("b", [event(3, 2)])
    # The first build: nothing is in main before; what depends on it is built from what was published.
    lab.build()
    assert [lab.ids(name) for name in NAMES] == [[1, 2, 3]] * 4
    assert [staged(lab, name) for name in NAMES] == [None] * 4
    assert "Spark's plan of paid:" in (lab.root / "target" / "logs" / "engine.log").read_text()
    table = lab.table("latest")
    assert table is not None
    assert [s.marker("batch-id") for s in table.history] == ["1", "0", None]
    before = lab.snapshots()
    assert {r["status"] for r in map(lab.build().model, ("paid", "latest", "copy", "known"))} == {"unchanged"}
    assert lab.snapshots() == before

    # A row that fails: all rows of that build wait, what depends on them is not built.
    lab.land("c", [event(4, 3)])
    lab.land("d", [event(5, 3, amount=None), event(1, 4)])
    failed = lab.run("build")
    assert failed.code == 1
    assert failed.codes().count("not-published") == 2, failed.out
    assert [failed.model(name)["status"] for name in NAMES] == ["success", "success", "skipped", "skipped"]
    assert lab.snapshots() == before
    assert (staged(lab, "paid"), staged(lab, "latest")) == ([1, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5])

    # Later builds go on behind them, and fail again; what reads the tables by itself sees what was published.
    lab.land("e", [event(6, 5), event(5, 6, amount=7.0)])
    again = lab.run("build", "-s", "paid copy latest")
    assert again.codes() == ["not-published"], again.out
    # The newer row of 5 has an amount: what was merged passes, with all that waited before.
    assert (staged(lab, "latest"), lab.ids("latest")) == (None, [1, 2, 3, 4, 5, 6])
    assert (again.model("paid")["rows_in"], again.model("latest")["rows_in"]) == (2, 2)
    assert lab.ids("paid") == lab.ids("copy") == [1, 2, 3]

    # `run` publishes nothing; `test` does when the reason is gone, here a test that was too strict.
    lab.land("f", [event(7, 7)])
    assert lab.run("run", "-s", "paid").codes() == ["not-published"]
    lab.model("paid", PAID.replace("amount: {tests", "id: {tests"))
    tested = lab.run("test", "-s", "paid")
    assert (tested.code, tested.codes()) == (0, []), tested.out
    assert staged(lab, "paid") is None
    lab.build()
    assert lab.ids("paid") == lab.ids("copy") == [1, 1, 2, 3, 4, 5, 5, 6, 7]
    assert lab.ids("latest") == lab.ids("known") == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.nightly
def test_ways_on_after_a_failure(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.land("a", [event(1, 1)])
    lab.build()
    lab.land("b", [event(2, 1, amount=None)])
    assert lab.run("build").codes() == ["not-published"]

    # The setting is taken out while rows wait: they must not be lost, nor be shown by the way.
    lab.model("paid", PAID.replace("publish: on_tests_pass\n", ""))
    assert lab.run("build").codes() == ["staged-rows"]
    lab.model("paid", PAID)
    care = lab.run("maintain")
    assert (care.code, '"waits": true' in care.text) == (0, True), care.text

    # A full refresh waits for the tests too, beside the table; the rows that waited before go with what they followed.
    refused = lab.run("build", "-f")
    assert refused.codes() == ["not-published"], refused.out
    assert (lab.ids("paid"), staged(lab, "paid"), len(lab.rows("paid__g2"))) == ([1], [1, 2], 2)
    # It was dropped for the next build, which goes on behind what waits.
    lab.land("c", [event(3, 1)])
    assert lab.run("build").codes() == ["not-published"]
    assert (lab.table("paid__g2"), staged(lab, "paid")) == (None, [1, 2, 3])
    accepted = lab.run("publish", "paid", "--accept")
    assert accepted.code == 0, accepted.text
    assert (lab.ids("paid"), staged(lab, "paid")) == ([1, 2, 3], None)
    before = lab.snapshots()
    assert (lab.run("publish", "paid", "--accept").code, lab.snapshots()) == (0, before)
    assert [lab.run("publish", *said).code for said in (["paid"], ["paix", "--accept"])] == [2, 2]

    # Somebody sets main back while rows wait: they would bring back what was taken out.
    lab.land("d", [event(4, 1)])
    assert lab.run("build").codes() == ["not-published"]
    head = lab.table("paid").history  # type: ignore[union-attr]
    for snapshot, codes, seen in (
        (head[0].parent, ["publish-diverged"], [1, 2]),
        (head[0].id, ["not-published"], [1, 2, 3]),
    ):
        lab.session.spark.sql(f"call lake.system.set_current_snapshot('{lab.schema}.paid', {snapshot})")  # type: ignore[union-attr]
        assert lab.run("build").codes() == codes
        assert (lab.ids("paid"), staged(lab, "paid")) == (seen, [1, 2, 3, 4])
        if snapshot != head[0].id:
            assert lab.run("publish", "paid", "--accept").code == 1
            assert lab.run("plan").codes() == codes

    # Somebody commits to main while rows wait.
    lab.session.spark.sql(f"insert into lake.{lab.schema}.paid select id + 100, at, 1.0 from lake.{lab.schema}.paid")  # type: ignore[union-attr]
    assert lab.run("build").codes() == ["publish-diverged"]
    lab.model("paid", PAID.replace("not_null", "{not_null: {severity: warn}}"))
    lab.build("-f")
    assert (lab.ids("paid"), staged(lab, "paid"), lab.table("paid__g2")) == ([1, 2, 3, 4], None, None)
    lab.land("e", [event(5, 1)])
    assert lab.build().model("paid")["rows_in"] == 1
    assert lab.ids("paid") == [1, 2, 3, 4, 5]


@pytest.mark.nightly
def test_files_that_are_rewritten_while_rows_are_staged_do_no_harm(lab: Lab) -> None:
    prepare(lab)
    for number in range(1, 6):
        lab.land(f"{number}", [event(number, 1)])
    lab.build()
    first = {name: lab.snapshot(name) for name in ("paid", "latest")}
    lab.land("a", [event(6, 1, amount=None)])

    def late(name: str, *_: object) -> None:
        # The compaction began before the branch did, and commits after it.
        if name in {"paid", "latest"} and staged(lab, name) is None:
            assert lab.run("build", "-s", name).codes() == ["not-published"]

    with reached("compacting", late):
        care = lab.run("maintain", "-s", "paid latest", "--older-than", "0 seconds")
    assert (care.code, '"waits": true' in care.text) == (0, True), care.text
    assert {name: lab.snapshot(name) for name in first} == first
    # Maintenance by others: the rows that readers see are those of before.
    for name in ("paid", "latest"):
        lab.session.spark.sql(  # type: ignore[union-attr]
            f"call lake.system.rewrite_data_files(table => '{lab.schema}.{name}', options => map('rewrite-all', 'true'))"
        )
        assert lab.run("publish", name, "--accept").code == 0
    assert [lab.ids(name) for name in ("paid", "latest")] == [[1, 2, 3, 4, 5, 6]] * 2
    lab.land("b", [event(7, 1)])
    lab.run("build")
    assert [staged(lab, name) for name in ("paid", "latest")] == [[1, 2, 3, 4, 5, 6, 7]] * 2
    lab.build("-s", "copy")
    assert lab.ids("copy") == [1, 2, 3, 4, 5, 6]
