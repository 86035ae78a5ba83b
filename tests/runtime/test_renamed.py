"""Models renamed under an alias that keeps their table, and sources renamed in YAML: the same tables and the same data."""

from __future__ import annotations

import pytest

from tests.lab import EVENTS, Lab, event

pytestmark = pytest.mark.spark

CHECKED = "expectations: [{name: known, check: id > 0, on_fail: quarantine}]"
MODELS = {
    "paid": f"/*---\nstreams: [shop.events]\n{CHECKED}\n---*/\nselect id, at, kind from {{{{ source('shop', 'events') }}}}",
    "kept": (
        f"/*---\nstreams: [shop.events]\nunique_key: id\nsequence_by: at\ndelete_when: kind = 'gone'\n{CHECKED}\n---*/\n"
        "select id, at, kind from {{ source('shop', 'events') }}"
    ),
    "copied": "/*---\nstreams: [paid]\n---*/\nselect id, at from {{ ref('paid') }}",
    "hourly": (
        "/*---\nstreams: {paid: {watermark: at delay 10 minutes, dedup: [id]}}\nwindows: {hour: 'tumbling(at, 1 hour)'}\n"
        "---*/\nselect hour.start as hour, count(*) as n from {{ ref('paid') }} group by hour"
    ),
    "joined": (
        "/*---\nstreams: {shop.events: {watermark: at delay 10 minutes}}\nwindows: {hour: 'tumbling(e.at, 1 hour)'}\n---*/\n"
        "select hour.start as hour, count(*) as n\n"
        "from {{ source('shop', 'events') }} as e join {{ ref('paid') }} as p on p.id = e.id group by hour"
    ),
    "listed": "select kind, count(*) as n from {{ ref('paid') }} group by kind",
    "seen": "/*---\nmaterialized: view\n---*/\nselect id from {{ ref('paid') }}",
}
# `make test` has these, the night all of them.
FEW = ("paid", "kept", "listed")
RENAMED = {"paid": "payments", "kept": "remaining"}


def renamed(text: str) -> str:
    for old, new in {"'paid'": "'payments'", "[paid]": "[payments]", "{paid:": "{payments:"}.items():
        text = text.replace(old, new)
    return text.replace("shop.events", "store.happenings").replace("'shop', 'events'", "'store', 'happenings'")


@pytest.mark.nightly
@pytest.mark.parametrize("names", [FEW, tuple(MODELS)], ids=["few", "all"])
def test_renamed_models_and_sources_keep_tables_state_and_readers(lab: Lab, names: tuple[str, ...]) -> None:
    models = {name: MODELS[name] for name in names}
    for name, text in models.items():
        lab.model(name, text)
    lab.land("a", [event(1, "10:05"), event(2, "11:50"), event(-1, "11:51"), event(3, "11:52", "gone")])
    lab.build()
    before = {name: lab.snapshot(name) for name in [*models, "paid__quarantine", "kept__quarantine", "kept__deleted"]}
    assert before["kept__deleted"] is not None

    lab.write(
        "sources/shop.yml", EVENTS.replace("name: shop", "name: store").replace("name: events", "name: happenings")
    )
    for name, text in models.items():
        (lab.root / "models" / f"{name}.sql").unlink()
        said = renamed(text)
        lab.model(RENAMED.get(name, name), said.replace("/*---", f"/*---\nalias: {name}") if name in RENAMED else said)
    result = lab.build()
    told = {e["node"].partition(".")[2]: e["status"] for e in result.events if e["event"] == "ModelFinished"}
    # A batch model is built again, with the same rows.
    assert {name: status for name, status in told.items() if status != "unchanged"} == {
        name: "success" for name in ("listed", "seen") if name in models
    }
    assert {name: lab.snapshot(name) for name in before if name != "listed"} == {
        n: s for n, s in before.items() if n != "listed"
    }

    lab.land("b", [event(4, "12:30"), event(-2, "12:31"), event(3, "09:00"), event(2, "12:40", "gone")])
    lab.build()
    assert lab.ids("paid") == [1, 2, 2, 3, 3, 4]
    assert lab.ids("kept") == [1, 4]
    assert "copied" not in names or lab.ids("copied") == [1, 2, 2, 3, 3, 4]
    assert len(lab.rows("paid__quarantine")) == len(lab.rows("kept__quarantine")) == 2
    assert lab.run("build", "-f").code == 0
    assert lab.ids("kept") == [1, 4]
    assert lab.run("maintain").code == 0
