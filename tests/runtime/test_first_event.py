"""A project that is built before its first event: whoever has begun to read a table continues with it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from engine.lake.table_fence import FENCE
from engine.lake.table_writer import load
from tests.fault_injection.points import kill, reached
from tests.lab import EVENTS, Lab, Result, event

pytestmark = pytest.mark.spark

ORDERS = "      - {{name: orders, format: iceberg, table: {0}.orders, schema: 'id int, at timestamp'}}\n"
COPY = "/*---\nstreams: [{0}]\n{1}---*/\nselect * from {{{{ ref('{0}') }}}}"
HOURS = (
    "/*---\nstreams: {{mid: {{watermark: at delay 10 minutes}}}}\nwindows: {{hour: 'tumbling(at, {0})'}}\n---*/\n"
    "select hour.start as hour, count(*) as n from {{{{ ref('mid') }}}} group by hour"
)
JOINED = (
    "/*---\nstreams:\n  mid: {watermark: at delay 10 minutes}\n  uniq: {watermark: at delay 10 minutes}\n---*/\n"
    "select m.id, m.at from {{ ref('mid') }} m join {{ ref('uniq') }} u on u.id = m.id\n"
    "and u.at between m.at - interval 1 minute and m.at + interval 1 minute"
)
RAW = "/*---\nstreams: [shop.events]\n---*/\nselect id, at, kind, amount{0} from {{{{ source('shop', 'events') }}}}"
MODELS = {
    "raw": RAW.format(""),
    "mid": COPY.format("raw", ""),
    "held": COPY.format("mid", "publish: on_tests_pass\ncolumns: {id: {tests: [not_null]}}\n"),
    "behind": COPY.format("held", ""),
    "uniq": "/*---\nstreams: {raw: {watermark: at delay 10 minutes, dedup: [id]}}\n---*/\nselect id, at from {{ ref('raw') }}",
    "joined": JOINED,
    "hours": HOURS.format("1 hour"),
    "after_hours": COPY.format("hours", ""),
    "latest": COPY.format("mid", "unique_key: id\n"),
    "versions": COPY.format("mid", "unique_key: id\nsequence_by: at\nhistory: true\n"),
    "ranking": "/*---\nstreams: [mid]\noutput_mode: complete\n---*/\nselect kind, count(*) as n from {{ ref('mid') }} group by kind",
    "total": "select count(*) as n from {{ ref('mid') }}",
    "shown": "/*---\nmaterialized: view\n---*/\nselect id from {{ ref('mid') }}",
    "ordered": "/*---\nstreams: [shop.orders]\n---*/\nselect id, at from {{ source('shop', 'orders') }}",
    "after_ordered": COPY.format("ordered", ""),
}
# `make test` has these, the night all of them.
FEW = ("raw", "mid", "held", "behind", "hours", "after_hours", "latest", "ordered", "total")


def streams(names: Iterable[str]) -> list[str]:
    return [name for name in names if name not in {"total", "shown"}]


def prepared(lab: Lab, names: Iterable[str]) -> Lab:
    lab.write("sources/shop.yml", EVENTS + ORDERS.format(lab.schema))
    for name in names:
        lab.model(name, MODELS[name])
    spark = lab.session.spark  # type: ignore[union-attr]
    spark.sql(f"create namespace if not exists lake.{lab.schema}")
    spark.sql(f"create table lake.{lab.schema}.orders (id int, at timestamp) using iceberg")
    return lab


def statuses(result: Result) -> set[str]:
    return {e["status"] for e in result.events if e["event"] == "ModelFinished"}


def identities(lab: Lab, names: Iterable[str]) -> dict[str, str]:
    return {name: lab.table(name).uuid for name in streams(names)}  # type: ignore[union-attr]


def check(lab: Lab, names: Iterable[str], ids: list[int], hours: int) -> None:
    for name in streams(names):
        if name not in {"hours", "after_hours", "ranking"}:
            assert lab.ids(name) == ids, name
    assert [len(lab.rows(name)) for name in ("hours", "after_hours")] == [hours, hours]
    assert lab.rows("total") == [{"n": len(ids)}]


@pytest.mark.nightly
@pytest.mark.parametrize("names", [FEW, tuple(MODELS)], ids=["few", "all"])
def test_it_continues_with_the_first_event_whatever_was_done_before(lab: Lab, names: tuple[str, ...]) -> None:
    missing = prepared(lab, names).run("build")
    assert (missing.code, set(missing.codes()) - {"unbounded-complete"}) == (
        1,
        {"source-folder-missing", "build-rejected"},
    ), missing.text
    (lab.root / "landing/events").mkdir(parents=True)
    lab.build()
    check(lab, names, [], 0)
    made = identities(lab, names)
    # Nothing has come.
    assert statuses(lab.build()) == {"unchanged"}

    # Edits that tables with rows would not allow; one of them is killed when its table is made.
    lab.model("hours", HOURS.format("30 minutes"))
    lab.model("latest", COPY.format("mid", "unique_key: [id, kind]\npartition_by: [kind]\n"))
    lab.model("raw", RAW.format(", amount * 2 as twice"))
    with reached("created", kill, times=1) as killed:
        assert lab.run("build").code != 0
    assert killed == ["raw"]
    spark = lab.session.spark  # type: ignore[union-attr]
    # Whoever takes over from a run that was killed on another machine commits a fence, whose snapshot has no rows.
    load(spark, f"lake.{lab.schema}.raw").newAppend().set(FENCE, "1").commit()
    lab.build()
    assert [name for name, _ in lab.table("behind").columns][-1:] == ["twice"]  # type: ignore[union-attr]
    assert identities(lab, names) == made

    # Rebuilt without a row, and published.
    lab.build("-f", "-s", "raw+")
    lab.build("-s", "held")
    check(lab, names, [], 0)

    assert statuses(lab.build()) == {"unchanged"}
    lab.land("a", [event(1, 1), event(2, "11:10")])
    spark.sql(f"insert into lake.{lab.schema}.orders values (1, now()), (2, now())")
    lab.build()
    check(lab, names, [1, 2], 1)
    lab.land("b", [event(3, "12:30")])
    spark.sql(f"insert into lake.{lab.schema}.orders values (3, now())")
    lab.build()
    check(lab, names, [1, 2, 3], 2)
