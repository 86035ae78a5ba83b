"""`renamed_from`: the table of a model that was renamed or moved gets its name, with its state; streams of it continue."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fault_injection.points import kill, reached
from tests.lab import Lab, Result, event

pytestmark = pytest.mark.spark

CHECKED = "expectations: [{name: known, check: id > 0, on_fail: quarantine}]"
PAID = f"streams: [shop.events]\n{CHECKED}\n---*/\nselect id, at, kind from {{{{ source('shop', 'events') }}}}"
MODELS = {
    "paid": PAID,
    "kept": (
        f"streams: [shop.events]\nunique_key: id\nsequence_by: at\ndelete_when: kind = 'gone'\n{CHECKED}\n---*/\n"
        "select id, at, kind from {{ source('shop', 'events') }}"
    ),
    "hourly": (
        "streams: {shop.events: {watermark: at delay 10 minutes}}\nwindows: {hour: 'tumbling(at, 1 hour)'}\n---*/\n"
        "select hour.start as hour, count(*) as n from {{ source('shop', 'events') }} group by hour"
    ),
    "copied": "streams: [paid]\n---*/\nselect id, at from {{ ref('paid') }}",
    "grouped": (
        "streams: {paid: {watermark: at delay 10 minutes, dedup: [id]}}\nwindows: {hour: 'tumbling(at, 1 hour)'}\n"
        "---*/\nselect hour.start as hour, count(*) as n from {{ ref('paid') }} group by hour"
    ),
    "joined": (
        "streams: {shop.events: {watermark: at delay 10 minutes}}\nwindows: {hour: 'tumbling(e.at, 1 hour)'}\n---*/\n"
        "select hour.start as hour, count(*) as n\n"
        "from {{ source('shop', 'events') }} as e join {{ ref('paid') }} as p on p.id = e.id group by hour"
    ),
    "listed": "tags: [all]\n---*/\nselect kind, count(*) as n from {{ ref('paid') }} group by kind",
}
# `make test` renames two tables, one with windows that are open, and a stream of one of them; the night all kinds of state.
FEW = ("paid", "hourly", "copied")
NEW = {"paid": "payments", "kept": "remaining", "hourly": "per_hour", "listed": "kinds"}
FIRST = [event(1, "10:05"), event(2, "11:50"), event(-1, "11:51"), event(3, "11:52", "gone")]
SECOND = [event(4, "12:30"), event(-2, "12:31"), event(3, "09:00"), event(2, "12:40", "gone"), event(5, "14:00")]
POINTS = ("begun", "renamed", "rewritten", "moved")


def named(text: str) -> str:
    return text.replace("'paid'", "'payments'").replace("[paid]", "[payments]").replace("{paid:", "{payments:")


def rename(lab: Lab, *names: str, more: str = "") -> None:
    for name in MODELS:
        path = lab.root / "models" / f"{name}.sql"
        if not path.exists():
            continue
        text = named(path.read_text()) if "paid" in names else path.read_text()
        path.unlink()
        new = NEW[name] if name in names else name
        lab.model(new, text.replace("/*---", f"/*---\nrenamed_from: {name}{more}") if name in names else text)


def shop(lab: Lab, *names: str) -> None:
    for name in names:
        lab.model(name, f"/*---\n{MODELS[name]}")
    lab.land("a", FIRST)
    lab.build()


def planned_nodes(lab: Lab) -> dict[str, dict[str, Any]]:
    lines = map(json.loads, lab.run("plan", "--output", "json").out.splitlines())
    return {line["name"]: line for line in lines if "relation" in line}


def statuses(result: Result) -> dict[str, str]:
    return {e["node"].partition(".")[2]: e["status"] for e in result.events if e["event"] == "ModelFinished"}


def contents(lab: Lab, names: dict[str, str]) -> dict[str, list[str]]:
    beside = {f"{name}{end}": f"{new}{end}" for name, new in names.items() for end in ("", "__quarantine", "__deleted")}
    found = {old: lab.rows(new) for old, new in beside.items() if lab.table(new) is not None}
    skipped = {"quarantined_at", "deleted_at", "origin", "batch_id", "query_id"}
    return {
        name: sorted(json.dumps({k: v for k, v in row.items() if k not in skipped}, default=str) for row in rows)
        for name, rows in found.items()
    }


_UNDISTURBED: dict[tuple[str, ...], dict[str, list[str]]] = {}


@pytest.fixture(params=[FEW, tuple(MODELS)], ids=["few", "all"])
def models(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(request.param)


@pytest.fixture
def undisturbed(lab: Lab, models: tuple[str, ...]) -> dict[str, list[str]]:
    """What the tables have without a rename."""
    if models not in _UNDISTURBED:
        shop(lab, *models)
        lab.land("b", SECOND)
        lab.build()
        _UNDISTURBED[models] = contents(lab, {name: name for name in models})
        for folder in ("models", "landing/events"):
            for path in (lab.root / folder).iterdir():
                path.unlink()
        dropped = lab.run("drop", *models, "--yes", "--accept", "downstream-stops")
        assert dropped.code == 0, dropped.text
    return _UNDISTURBED[models]


@pytest.mark.nightly_cases("all")
def test_tables_state_and_readers_continue(
    lab: Lab, models: tuple[str, ...], undisturbed: dict[str, list[str]]
) -> None:
    shop(lab, *models)
    new = {name: NEW[name] for name in models if name in NEW}
    names = {name: new.get(name, name) for name in models}
    beside = ["paid__quarantine", *(["kept__deleted"] if "kept" in models else [])]
    before = {name: lab.table(name) for name in [*models, *beside]}
    rename(lab, *new)
    planned = planned_nodes(lab)
    assert planned["payments"]["change"] == "unchanged"
    assert planned["payments"]["reasons"][0].startswith(
        f"renamed from lake.{lab.schema}.paid to lake.{lab.schema}.paym"
    )
    result = lab.build()
    assert result.codes().count("table-renamed") == len(new)
    assert "orphan-table" not in result.codes()
    for name, table in before.items():
        first, _, end = name.partition("__")
        now = lab.table("__".join(filter(None, [names[first], end])))
        assert now is not None
        assert table is not None
        assert (now.uuid, lab.table(name) is None) == (table.uuid, first in new)
        assert now.properties["engine.model"] == names[first]
        assert name == "listed" or now.snapshot == table.snapshot, name
    assert set(statuses(lab.build()).values()) == {"unchanged"}
    lab.land("b", SECOND)
    lab.build()
    assert contents(lab, names) == undisturbed
    # The key stays in the header, or goes.
    for name in new.values():
        path = lab.root / "models" / f"{name}.sql"
        path.write_text("\n".join(line for line in path.read_text().splitlines() if "renamed_from" not in line))
    assert set(statuses(lab.build()).values()) == {"unchanged"}
    maintained = lab.run("maintain")
    assert maintained.code == 0, maintained.text
    assert f"lake.{lab.schema}.payments__quarantine" in maintained.text


@pytest.mark.gate
def test_an_interrupted_rename_is_not_forgotten(lab: Lab) -> None:
    shop(lab, "paid")
    rename(lab, "paid")
    with reached("renamed", kill, times=2):
        lab.run("build")
    (lab.root / "models/payments.sql").rename(lab.root / "models/paid.sql")
    lab.model("paid", f"/*---\n{MODELS['paid']}")
    result = lab.run("build")
    assert (result.code, result.codes()[:1]) == (1, ["rename-blocked"])
    assert "renamed_from: paid" in result.text
    (lab.root / "models/paid.sql").unlink()
    lab.model("payments", f"/*---\nrenamed_from: paid\n{PAID}")
    lab.build()
    assert lab.ids("payments") == [1, 2, 3]


@pytest.mark.nightly
def test_an_edit_in_the_same_build_is_judged_as_any_other(lab: Lab) -> None:
    shop(lab, "paid", "hourly")
    rename(lab, "paid", "hourly")
    hourly = lab.root / "models/per_hour.sql"
    hourly.write_text(hourly.read_text().replace("1 hour", "2 hours"))
    result = lab.run("build")
    assert (result.code, result.codes()[:1]) == (1, ["model-changed"])
    # Nothing is renamed before that is settled.
    assert [lab.table(name) is None for name in ("paid", "payments")] == [False, True]
    hourly.write_text(hourly.read_text().replace("2 hours", "1 hour"))
    paid = lab.root / "models/payments.sql"
    paid.write_text(paid.read_text().replace("id, at, kind from", "id, at, upper(kind) as kind from"))
    lab.land("b", [event(9)])
    lab.build()
    assert {(row["id"], row["kind"]) for row in lab.rows("payments")} >= {(1, "paid"), (9, "PAID")}
    # A rebuild in the same build, and the way back from it.
    rebuilt = paid.read_text().replace("renamed_from: paid", "renamed_from: payments\nalias: moved")
    paid.write_text(rebuilt.replace("upper(kind)", "lower(kind)"))
    lab.build("-f", "-s", "payments")
    assert {row["kind"] for row in lab.rows("moved")} == {"paid", "gone"}
    assert lab.run("rollback", "payments", "--yes").code == 0
    assert "PAID" in {row["kind"] for row in lab.rows("moved")}


@pytest.mark.nightly
def test_a_generation_that_is_kept_comes_back_under_the_new_name(lab: Lab) -> None:
    shop(lab, "paid")
    lab.model("paid", f"/*---\n{PAID.replace('id, at, kind', 'id, at, upper(kind) as kind')}")
    lab.build("-f")
    rename(lab, "paid")
    lab.land("b", [event(9)])
    lab.build()
    assert {row["kind"] for row in lab.rows("payments")} == {"PAID", "GONE"}
    assert lab.run("rollback", "payments", "--yes").code == 0
    lab.model("payments", f"/*---\nrenamed_from: paid\n{PAID}")
    lab.build()
    assert {(row["id"], row["kind"]) for row in lab.rows("payments")} == {
        (1, "paid"),
        (2, "paid"),
        (3, "gone"),
        (9, "paid"),
    }


def test_another_schema_and_a_chain(lab: Lab) -> None:
    shop(lab, "paid", "copied")
    for moved in ("schema: other", "schema: other\nalias: third"):
        was = "paid" if "alias" not in moved else f"{lab.schema}_other.paid"
        lab.model("paid", f"/*---\nrenamed_from: {was}\n{moved}\n{PAID}")
        lab.build()
    lab.land("b", [event(7)])
    lab.build()
    assert lab.ids("copied") == [1, 2, 3, 7]
    shown = lab.run("show", "paid", "--table")
    assert shown.code == 0, shown.text
    # b was never built: a became c.
    (lab.root / "models/paid.sql").unlink()
    lab.model("copied", f"/*---\n{MODELS['copied'].replace('paid', 'c')}")
    lab.model("c", f"/*---\nrenamed_from: paid\n{PAID}")
    lab.land("c", [event(8)])
    lab.build()
    assert lab.ids("c") == lab.ids("copied") == [1, 2, 3, 7, 8]


def test_two_tables_are_an_error(lab: Lab) -> None:
    shop(lab, "paid")
    (lab.root / "models/paid.sql").unlink()
    lab.model("payments", f"/*---\n{PAID}")
    lab.build()
    lab.model("payments", f"/*---\nrenamed_from: paid\n{PAID}")
    result = lab.run("build")
    assert (result.code, result.codes()[:1]) == (1, ["rename-blocked"])
    assert lab.run("drop", f"lake.{lab.schema}.payments", "--yes").code == 0
    lab.build()
    assert lab.ids("payments") == [1, 2, 3]
    assert lab.table("paid") is None


def test_a_new_model_of_the_old_name_has_files_of_its_own(lab: Lab) -> None:
    shop(lab, "paid")
    rename(lab, "paid")
    lab.build()
    path = lab.root / "models/payments.sql"
    path.write_text(path.read_text().replace("renamed_from: paid\n", ""))
    lab.model("paid", f"/*---\n{PAID}")
    lab.build()
    assert lab.ids("paid") == lab.ids("payments") == [1, 2, 3]
    warehouse = lab.lake_path / "warehouse"
    places = {name: _place(lab, name) for name in ("paid", "payments", "paid__quarantine", "payments__quarantine")}
    assert len(set(places.values())) == len(places), (places, warehouse)
    assert lab.run("drop", "payments", "--yes").code == 0
    lab.land("b", [event(9)])
    lab.build("-s", "paid")
    assert lab.ids("paid") == [1, 2, 3, 9]


@pytest.mark.gate
@pytest.mark.nightly_cases("all-begun", "all-renamed", "all-rewritten", "all-moved")
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_step_is_finished_by_the_next_build(
    lab: Lab, models: tuple[str, ...], undisturbed: dict[str, list[str]], point: str
) -> None:
    shop(lab, *models)
    new = {name: NEW[name] for name in models if name in NEW}
    names = {name: new.get(name, name) for name in models}
    rename(lab, *new)
    with reached(point, kill, times=1) as seen:
        lab.run("build")
    assert len(seen) == 1
    planned = planned_nodes(lab)
    assert {name: planned[name]["change"] for name in new.values()} == dict.fromkeys(new.values(), "unchanged"), planned
    assert not any(one["refusals"] for one in planned.values()), planned
    lab.land("b", SECOND)
    lab.build()
    assert contents(lab, names) == undisturbed
    assert lab.table("paid") is None


def _place(lab: Lab, name: str) -> Any:
    from tests.lab import writable_catalog

    return writable_catalog(lab.lake_path).load_table((lab.schema, name)).location()
