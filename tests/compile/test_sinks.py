"""Sinks: where the rows of a project's tables are delivered."""

from __future__ import annotations

import json

import pytest

from engine.compile.artifacts.write_artifacts import manifest_text
from engine.compile.selection.select_nodes import select
from tests.project.small_projects import ORDERS, PROJECT, clean, compiled, findings, lines, model

DATABASE = "    connections: {crm: {uri: 'jdbc:postgresql://127.0.0.1:5432/crm', username: u}, bus: {bootstrap_servers: 'h:1'}}\n"
SINK = """\
sinks:
  - name: to_crm
    from: ref('b')
    to: {connection: crm, table: public.orders}
    key: ID
    exclude: [amount]
    start: now
    create: true
    description: Read by the CRM.
    tags: [daily]
    meta: {team: crm}
"""
TABLE = "/*---\nmaterialized: table\n---*/\n"
MODELS = {
    "project.yml": PROJECT + DATABASE,
    "models/a.sql": ORDERS,
    "models/b.sql": f"{TABLE}select id, amount from {{{{ ref('a') }}}}",
    **model("streams: [shop.orders]\nunique_key: id", name="keyed"),
}


def one(text: str) -> dict[str, str | bytes]:
    return {**MODELS, "models/out.yml": text}


def test_a_sink_is_a_node(tmp_path):
    (sink,) = clean(tmp_path, one(SINK)).sinks
    assert (sink.id, sink.model, sink.connection, sink.table) == ("sink.to_crm", "model.b", "crm", "public.orders")
    assert (sink.key, sink.exclude, sink.from_now, sink.create) == (("id",), ("amount",), True, True)
    assert (sink.tags, sink.meta, str(sink.location)) == (("daily",), {"team": "crm"}, "models/out.yml:2:11")


def test_the_key_is_the_models(tmp_path):
    text = "sinks: [{name: x, from: keyed, to: {connection: crm, table: x}, columns: [id, ts]}]"
    (sink,) = clean(tmp_path, one(text)).sinks
    assert (sink.key, sink.columns) == (("id",), ("id", "ts"))
    (sink,) = clean(tmp_path, one(text.replace("columns", "changes: rows, columns"))).sinks
    assert sink.key == ()


def test_one_that_is_not_enabled_is_not_there(tmp_path):
    assert clean(tmp_path, one(SINK + "    enabled: false\n")).sinks == ()


@pytest.mark.parametrize(
    ("selection", "nodes"),
    [
        ("sink:to_crm", ["sink.to_crm"]),
        ("+sink:to_crm", ["source.shop.orders", "model.a", "model.b", "sink.to_crm"]),
        ("b+", ["model.b", "sink.to_crm"]),
        ("tag:daily", ["sink.to_crm"]),
        ("resource_type:sink", ["sink.to_crm"]),
        ("path:models/out.yml", ["sink.to_crm"]),
    ],
)
def test_selection(selection, nodes, tmp_path):
    assert sorted(select(clean(tmp_path, one(SINK)), [selection]).nodes) == sorted(nodes)


def test_the_manifest_has_it_among_the_exposures(tmp_path):
    data = json.loads(manifest_text(clean(tmp_path, one(SINK))))
    record = data["exposures"]["sink.shop.to_crm"]
    assert record["meta"]["headrace"]["sink"]["table"] == "public.orders"
    assert record["depends_on"]["nodes"] == ["model.shop.b"]
    assert data["child_map"]["model.shop.b"] == ["sink.shop.to_crm"]


def test_a_file_may_have_exposures_too(tmp_path):
    text = SINK + "exposures: [{name: board, type: ml, owner: {name: a}, depends_on: [b]}]\n"
    manifest = clean(tmp_path, one(text))
    assert (len(manifest.sinks), len(manifest.exposures)) == (1, 1)


@pytest.mark.slow
def test_a_changed_sink_compiles_no_model_again(tmp_path):
    compiled(tmp_path, one(SINK), cached=tmp_path / "kept")
    again = compiled(tmp_path, one(SINK.replace("public", "other")), cached=tmp_path / "kept")
    assert [sink.table for sink in again.manifest.sinks] == ["other.orders"]
    kept = compiled(tmp_path, one(SINK.replace("public", "other")), cached=tmp_path / "kept")
    assert kept.manifest.sinks == again.manifest.sinks


def test_all_mistakes_are_reported_at_once(tmp_path):
    text = """\
sinks:
  - {from: b, to: {connection: crm, table: a}}
  - {name: no_model, to: {connection: crm, table: b}}
  - {name: unknown, from: ref('bb'), to: {connection: crm, table: c}}
  - {name: of_source, from: shop.orders, to: {connection: crm, table: d}}
  - {name: of_view, from: viewed, to: {connection: crm, table: e}}
  - {name: nowhere, from: b}
  - {name: gone, from: b, to: {connection: cmr, table: f}}
  - {name: no_database, from: b, to: {connection: bus, table: g}}
  - {name: odd_table, from: b, to: {connection: crm, table: 'a; drop'}}
  - {name: no_key, from: b, to: {connection: crm, table: h}, changes: upserts}
  - {name: both, from: b, to: {connection: crm, table: i}, changes: rows, key: id}
  - {name: columns, from: b, to: {connection: crm, table: j}, columns: [nope]}
  - {name: key_out, from: b, to: {connection: crm, table: k}, key: id, exclude: [id]}
  - {name: start, from: b, to: {connection: crm, table: l}, start: yesterday}
  - {name: twice, from: b, to: {connection: crm, table: m}}
  - {name: twice, from: b, to: {connection: crm, table: n}}
  - {name: other, from: b, to: {connection: crm, table: m}}
  - {name: topic, from: b, to: {connection: bus, topic: x, table: o}}
  - {name: no_brokers, from: b, to: {connection: crm, topic: p}}
  - {name: odd_topic, from: b, to: {connection: bus, topic: a/b}}
  - {name: place, from: b, to: {connection: bus}}
  - {name: shared, from: b, to: {connection: bus, topic: q}}
  - {name: also, from: b, to: {connection: bus, topic: q}}
"""
    viewed = "/*---\nmaterialized: view\n---*/\nselect id from {{ ref('b') }}"
    found = findings(tmp_path, {**one(text), "models/viewed.sql": viewed})
    # In whichever order causes are shown.
    assert sorted(lines(found)) == sorted([
        "missing-key models/out.yml:2:5 a sink has no 'name'",
        "missing-key models/out.yml:3:5 the sink 'no_model' has no 'from'",
        "unknown-ref models/out.yml:4:27 model 'bb' not found",
        "bad-value models/out.yml:5:29 'shop.orders' is a source",
        "bad-value models/out.yml:6:27 the view 'viewed' has no committed rows to deliver",
        "missing-key models/out.yml:7:5 the sink 'nowhere' has no 'to'",
        "unknown-connection models/out.yml:8:44 the target 'dev' has no connection 'cmr'",
        "connection-settings models/out.yml:9:51 the connection 'bus' has no 'uri' of a database",
        "bad-name models/out.yml:10:61 'a; drop' is not a qualified table name",
        "setting-needs models/out.yml:11:71 the sink 'no_key' has no key, and upserts need one",
        "setting-conflict models/out.yml:12:75 the sink 'both' has a key, and delivers each row by itself",
        "unknown-column models/out.yml:13:73 'b' has no column 'nope'",
        "setting-conflict models/out.yml:14:81 the column 'id' is in the key of the sink 'key_out', and is not delivered",
        "bad-value models/out.yml:15:68 'start' cannot be 'yesterday'",
        "duplicate-name models/out.yml:17:5 the sink 'twice' is defined twice",
        "duplicate-table models/out.yml:18:5 the sinks 'twice' and 'other' deliver to the same table m",
        "setting-conflict models/out.yml:19:50 'to' of the sink 'topic' has a table and a topic",
        "connection-settings models/out.yml:20:50 the connection 'crm' has no 'bootstrap_servers' of Kafka",
        "bad-name models/out.yml:21:61 'a/b' is not a topic",
        "missing-key models/out.yml:22:32 'to' of the sink 'place' has no 'table'",
        "duplicate-table models/out.yml:24:5 the sinks 'shared' and 'also' deliver to the same topic q",
    ])  # fmt: skip
    assert all(diagnostic.hint for diagnostic in found)


def test_a_column_that_the_database_cannot_hold_is_named_with_its_cast(tmp_path):
    files = {
        **one("sinks: [{name: x, from: v, to: {connection: crm, table: x}}]"),
        "models/v.sql": "/*---\nmaterialized: table\nformat_version: 3\n---*/\n"
        "select id, parse_json(name) as raw from {{ source('shop', 'customers') }}",
    }
    found = [one for one in findings(tmp_path, files) if one.is_error]
    assert lines(tuple(found)) == [
        "column-storage models/out.yml:1:9 PostgreSQL cannot hold the column 'raw' of 'v', which is variant"
    ]
    assert "cast(raw as string) as raw in models/v.sql" in found[0].hint
    files["models/out.yml"] = "sinks: [{name: x, from: v, to: {connection: crm, table: x}, exclude: raw}]"
    clean(tmp_path, files)
