"""What compile makes of settings that are right: precedence, spellings, fingerprints."""

from __future__ import annotations

import pytest

from engine.compile import Materialized, Partition, Watermark
from tests.project.small_projects import FROM, ORDERS, PROJECT, SOURCES, clean, compiled, line, lines, model

# folder defaults


def test_the_deeper_folder_wins_and_the_header_over_all(tmp_path):
    defaults = """
models:
  +schema: one
  +alias: outer
  shop:
    +schema: two
    marts:
      +schema: three
  marts:
    daily:
      +schema: four
"""
    files = {
        "project.yml": PROJECT + defaults,
        "models/a.sql": ORDERS,
        "models/marts/b.sql": f"/*---\nalias: b\n---*/\n{ORDERS}",
        "models/marts/daily/c.sql": f"/*---\nalias: c\n---*/\n{ORDERS}",
        "models/marts/daily/d.sql": f"{{{{ config(schema='five', alias='d') }}}}\n{ORDERS}",
    }
    manifest = clean(tmp_path, files)
    assert {m.name: str(m.relation) for m in manifest.models} == {
        "a": "lake.main_two.outer",
        "b": "lake.main_three.b",
        "c": "lake.main_four.c",
        "d": "lake.main_five.d",
    }


def test_a_folder_called_like_the_project_is_a_folder(tmp_path):
    files = {
        "project.yml": PROJECT + "models:\n  shop:\n    +tags: [x]\n",
        "models/shop/a.sql": ORDERS,
        "models/b.sql": ORDERS,
    }
    assert {m.name: m.tags for m in clean(tmp_path, files).models} == {"a": ("x",), "b": ()}


def test_tags_add_up_and_meta_merges(tmp_path):
    defaults = "models:\n  +tags: [shop]\n  +meta: {owner: x, tier: 1}\n  marts:\n    +tags: [mart, shop]\n"
    header = "tags: hourly\nmeta: {owner: y}"
    files = {
        "project.yml": PROJECT + defaults,
        "models/marts/a.sql": f"/*---\n{header}\n---*/\n{{{{ config(tags=['c']) }}}}{ORDERS}",
    }
    (made,) = clean(tmp_path, files).models
    assert made.tags == ("shop", "mart", "hourly", "c")
    assert made.meta == {"owner": "y", "tier": 1}


def test_a_default_that_needs_streams_names_the_model(tmp_path):
    files = {"project.yml": PROJECT + "models:\n  +materialized: streaming_table\n", "models/a.sql": ORDERS}
    (found,) = compiled(tmp_path, files).manifest.diagnostics
    assert line(found) == (
        "streams-missing models/a.sql:1:1 a streaming table lists no streams "
        "(materialized: streaming_table comes from project.yml:7:18)"
    )
    assert found.node == "a"


# kinds and settings


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("tags: []", Materialized.TABLE),
        ("streams: [shop.orders]", Materialized.STREAMING_TABLE),
        ("materialized: table", Materialized.TABLE),
        ("materialized: streaming_table\nstreams: [shop.orders]", Materialized.STREAMING_TABLE),
    ],
)
def test_the_kind_follows_from_the_streams(header, kind, tmp_path):
    assert clean(tmp_path, model(header)).model("a").materialized is kind


@pytest.mark.parametrize(
    "spelling",
    ["shop.orders", "source('shop', 'orders')", 'source("shop","orders")', "source('shop.orders')"],
)
def test_spellings_of_a_source(spelling, tmp_path):
    for form in (f"streams: [{spelling!r}]" if "'" not in spelling else f'streams: ["{spelling}"]',
                 f"streams:\n  - {spelling}", f"streams:\n  {spelling}:\n    watermark: ts delay 1 hour"):  # fmt: skip
        if '"' in spelling and form.startswith("streams: ["):
            continue
        (read,) = clean(tmp_path, model(form)).model("a").inputs
        assert (read.node, read.name, read.stream) == ("source.shop.orders", "shop.orders", True)


@pytest.mark.parametrize("spelling", ["b", "ref('b')", "ref('shop', 'b')"])
def test_spellings_of_a_model(spelling, tmp_path):
    files = {
        **model(f"streams:\n  - {spelling}", "select * from {{ ref('b') }}"),
        "models/b.sql": f"/*---\nstreams: [shop.orders]\n---*/\n{ORDERS}",
    }
    (read,) = clean(tmp_path, files).model("a").inputs
    assert (read.node, read.stream) == ("model.b", True)


def test_a_list_of_streams_may_hold_settings(tmp_path):
    sql = f"select * {FROM} join {{{{ source('shop', 'customers') }}}} using (id)"
    header = "streams:\n  - shop.orders:\n      watermark: ts delay 1 hour\n  - shop.customers"
    reads = clean(tmp_path, model(header, sql)).model("a").inputs
    assert [(r.name, r.watermark) for r in reads] == [
        ("shop.orders", Watermark("ts", "1 hours")),
        ("shop.customers", None),
    ]


@pytest.mark.parametrize(
    ("text", "watermark"),
    [
        ("ts delay 10 minutes", Watermark("ts", "10 minutes")),
        ("`ts` DELAY 1 Hour", Watermark("ts", "1 hours")),
        ("to_timestamp(item.name) as ts delay 0 seconds", Watermark("ts", "0 seconds", "to_timestamp(item.name)")),
        ("cast(id as timestamp) as ts delay 2 days", Watermark("ts", "2 days", "cast(id as timestamp)")),
    ],
)
def test_watermarks(text, watermark, tmp_path):
    header = f'streams: {{shop.orders: {{watermark: "{text}"}}}}'
    assert clean(tmp_path, model(header)).model("a").inputs[0].watermark == watermark


def test_a_watermark_in_full(tmp_path):
    header = "streams: {shop.orders: {watermark: {column: t, as: to_timestamp(id), delay: 1 hour}}}"
    read = clean(tmp_path, model(header)).model("a").inputs[0]
    assert read.watermark == Watermark("t", "1 hours", "to_timestamp(id)")


def test_the_source_gives_defaults_and_the_model_wins(tmp_path):
    source = SOURCES.replace(
        "path: landing/orders\n", "path: landing/orders\n        watermark: ts delay 1 hour\n        dedup: [id]\n"
    )
    files = {
        "sources/shop.yml": source,
        **model("streams: [shop.orders]"),
        "models/b.sql": "/*---\nstreams: {shop.orders: {watermark: ts delay 5 minutes, dedup: [ts, id]}}\n---*/\n"
        + ORDERS,
        "models/c.sql": ORDERS,
    }
    manifest = clean(tmp_path, files)
    reads = {m.name: (m.inputs[0].watermark, m.inputs[0].dedup) for m in manifest.models}
    assert reads["a"] == (Watermark("ts", "1 hours"), ("id",))
    assert reads["b"] == (Watermark("ts", "5 minutes"), ("ts", "id"))
    assert reads["c"] == (None, ())


def test_a_disabled_model_is_not_there(tmp_path):
    files = {**model("enabled: false", "this is no SQL"), "models/b.sql": ORDERS}
    assert [m.name for m in clean(tmp_path, files).models] == ["b"]


@pytest.mark.parametrize("value", ["\"{{ var('on') }}\"", "\"{{ env_var('ON') }}\"", "'false'"])
def test_values_may_be_jinja(value, tmp_path):
    files = {"project.yml": PROJECT + "vars: {on: false}\n", **model(f"enabled: {value}", "no SQL")}
    assert clean(tmp_path, files, env={"ON": "false"}).models == ()


def test_numbers_may_be_jinja(tmp_path):
    header = "streams: {shop.orders: {max_files_per_trigger: \"{{ var('n') }}\"}}"
    manifest = clean(tmp_path, model(header), variables={"n": 7})
    assert manifest.model("a").inputs[0].max_files_per_trigger == 7


def test_config_says_what_a_header_says(tmp_path):
    call = "{{ config(streams={'shop.orders': {'watermark': 'ts delay 1 hour'}}, tags=('x', 'y'), partition_by='day(ts)') }}"
    manifest = clean(tmp_path, {"models/a.sql": f"{call}\n{ORDERS}"})
    made = manifest.model("a")
    assert (made.materialized, made.tags) == (Materialized.STREAMING_TABLE, ("x", "y"))
    assert made.write.partition_by == (Partition("day", "ts"),)
    assert made.sql.startswith("select")


def test_config_may_repeat_the_header(tmp_path):
    manifest = clean(tmp_path, model("alias: b", "{{ config(alias='b') }}" + ORDERS))
    assert manifest.model("a").relation.name == "b"


@pytest.mark.parametrize(
    "columns",
    [
        "columns:\n  id: {description: Key., tests: [unique]}\n  ts: When.\n",
        "columns:\n  - name: id\n    description: Key.\n    data_tests: [unique]\n  - {name: ts, description: When.}\n",
        "columns: {id: {description: Key., data_tests: [unique: {severity: error}]}, ts: {description: When.}}\n",
    ],
)
def test_columns_as_mapping_and_as_dbts_list(columns, tmp_path):
    manifest = clean(tmp_path, model(columns))
    said = [(c.name, c.description) for c in manifest.model("a").columns if c.description]
    assert said == [("id", "Key."), ("ts", "When.")]
    assert [(t.name, t.column) for t in manifest.tests] == [("unique_a_id", "id")]


@pytest.mark.parametrize(
    "test",
    [
        "relationships: {to: b, field: id}",
        "relationships: {to: ref('b'), field: id}",
        "relationships: {arguments: {to: ref('b'), field: id}}",
    ],
)
def test_a_test_names_a_model_in_every_spelling(test, tmp_path):
    files = {**model(f"columns:\n  id:\n    tests:\n      - {test}"), "models/b.sql": ORDERS}
    (made,) = clean(tmp_path, files).tests
    assert made.depends_on == ("model.a", "model.b")
    assert "left join `lake`.`main`.`b` as parent" in made.sql


def test_the_same_test_twice_has_two_names(tmp_path):
    header = "columns: {id: {tests: [{accepted_values: {values: [a]}}, {accepted_values: {values: [b]}}]}}"
    assert [t.name for t in clean(tmp_path, model(header)).tests] == [
        "accepted_values_a_id",
        "accepted_values_a_id_2",
    ]


def test_a_projects_own_test(tmp_path):
    macro = "{% macro test_positive(model, column_name) %}select * from {{ model }} where {{ column_name }} <= 0{% endmacro %}"
    files = {**model("columns: {amount: {tests: [positive]}}"), "macros/positive.sql": macro}
    (made,) = clean(tmp_path, files).tests
    assert made.sql == "select * from `lake`.`main`.`a` where amount <= 0"


SCHEMAS = [
    ("id string, ts timestamp", {"id": "string", "ts": "timestamp"}),
    ("a INT,\n  b Long", {"a": "int", "b": "bigint"}),
    ("d struct<eventTime: timestamp, b array<map<string, int>>>",
     {"d": "struct<eventTime: timestamp, b: array<map<string, int>>>"}),
    ("a int not null comment 'x, y', `b c` numeric(3)", {"a": "int", "b c": "decimal(3,0)"}),
    ("a decimal, b dec(18, 2)", {"a": "decimal(10,0)", "b": "decimal(18,2)"}),
    ("a interval day to second, b string collate UTF8_BINARY", {"a": "interval day to second", "b": "string"}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "columns"), SCHEMAS)
def test_schemas(schema, columns, tmp_path):
    text = SOURCES.replace("id string, name string", f"|-\n          {schema.replace(chr(10), chr(10) + ' ' * 10)}")
    source = clean(tmp_path, {"sources/shop.yml": text}).nodes["source.shop.customers"]
    assert {c.name: c.type for c in source.columns} == columns


BAD_SCHEMAS = [
    ("id", "the column 'id' has no type"),
    ("id string b int", "the schema is missing a ',' after the column 'id'"),
    ("id string,, b int", "the schema has ',' where the name of a column is expected"),
    ("id string,", "the schema ends with a comma"),
    ("id: string", "the column 'id' is followed by a colon"),
    ("id strin", "the column 'id' has the type 'strin', which Spark does not know"),
    ("id text", "the column 'id' has the type 'text', which Spark does not know"),
    ("id varchar(3)", "the column 'id' has the type 'varchar', which Spark does not know"),
    ("d struct<a int, b: strin>", "the field 'b' has the type 'strin', which Spark does not know"),
    ("m map<string>", "the column 'm' has 'map' of 1 types"),
    ("a array<int", "the schema is missing a ',' inside 'array' in the column 'a'"),
    ("a int, A int", "the schema names 'A' twice"),
    ("a decimal()", "the column 'a' has a decimal of 0 numbers"),
    ("id string -- key", "the schema cannot be read at '--'"),
    ("a string collate UTF8_LCASE", "the column 'a' has the collation UTF8_LCASE, which a declared column cannot have"),
    (
        "a array<string collate unicode>",
        "the column 'a' has the collation UNICODE, which a declared column cannot have",
    ),
    ("a string collate", "the column 'a' has the collation that is not named, which a declared column cannot have"),
    ("", "the schema has no columns"),
]


@pytest.mark.parametrize(("schema", "message"), BAD_SCHEMAS)
def test_schemas_that_cannot_be_read(schema, message, tmp_path):
    text = SOURCES.replace("schema: id string, name string", f'schema: "{schema}"')
    (found,) = compiled(tmp_path, {"sources/shop.yml": text}).manifest.diagnostics
    assert lines((found,)) == [f"bad-schema sources/shop.yml:11:17 {message}"]
    assert found.hint


def test_a_target_replaces_how_a_source_is_read(tmp_path):
    more = "        targets: {dev: {format: csv, path: other, options: {header: true, sep: ';'}}}\n"
    source = clean(tmp_path, {"sources/shop.yml": SOURCES + more}).nodes["source.shop.customers"]
    spec = source.spec
    assert (spec.format, spec.settings["path"], spec.options) == ("csv", "other", {"header": "true", "sep": ";"})


def test_what_a_template_may_ask_the_target(tmp_path):
    sql = f"select '{{{{ target.name }}}}.{{{{ target.schema }}}}.{{{{ target.catalog }}}}' as t {FROM}"
    assert "'dev.main.lake'" in clean(tmp_path, {"models/a.sql": sql}).model("a").sql


# fingerprints

HEADER = "streams: {shop.orders: {watermark: ts as t delay 1 hour, dedup: [id, ts]}}\nwindows: {hour: 'tumbling(t, 1 hour)'}\n"
SQL = f"select hour.start as s, count(*) as n {FROM} where id <> 'x' group by hour"


def fingerprint(root, header: str = HEADER, sql: str = SQL, **files: str | bytes) -> str:
    return clean(root, {**model(header, sql), **files}).model("a").fingerprint


@pytest.mark.parametrize(
    ("header", "sql"),
    [
        (HEADER, SQL.upper().replace("SHOP", "shop").replace("ORDERS", "orders").replace("SOURCE", "source")
         .replace("'X'", "'x'").replace("AS S,", "as s,").replace("AS N", "as n").replace("HOUR", "hour")
         .replace(".START", ".start").replace(" ID ", " id ")),
        (HEADER, SQL.replace(" ", "\n  ")),
        (HEADER, SQL.replace("count", "/* how many */ COUNT") + " -- done\n;"),
        (HEADER, SQL.replace("<>", "!=")),
        (HEADER + "description: Something.\ntags: [x]\nmeta: {a: b}\ncolumns: {n: {tests: [not_null]}}", SQL),
        (HEADER.replace("tumbling(t, 1 hour)", "tumbling( t,1 HOURS )"), SQL),
        (HEADER.replace("[id, ts]", "[ts, id]"), SQL),
        ("# a comment\n" + HEADER, "{# a comment #}{% set x = 1 %}" + SQL),
    ],
)  # fmt: skip
def test_a_fingerprint_stays(header, sql, tmp_path):
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b", header, sql)


@pytest.mark.parametrize(
    ("header", "sql"),
    [
        (HEADER, SQL.replace("'x'", "'y'")),
        (HEADER, SQL.replace("count(*)", "count(id)")),
        (HEADER, SQL.replace("as n", "as m")),
        (HEADER, SQL.replace("'x'", "date_format(ts, 'YYYY')")),
        (HEADER.replace("1 hour)", "2 hours)"), SQL),
        (HEADER.replace("delay 1 hour", "delay 2 hours"), SQL),
        (HEADER.replace("ts as t", "ts + interval 1 hour as t"), SQL),
        (HEADER.replace("[id, ts]", "[id]"), SQL),
        (HEADER + "alias: b", SQL),
        (HEADER + "partition_by: day(s)", SQL),
    ],
)
def test_a_fingerprint_changes(header, sql, tmp_path):
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b", header, sql)


def test_patterns_of_dates_count_as_they_are_written(tmp_path):
    one, two = (SQL.replace("'x'", f"date_format(ts, '{pattern}')") for pattern in ("YYYY", "yyyy"))
    assert fingerprint(tmp_path / "a", sql=one) != fingerprint(tmp_path / "b", sql=two)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("id string, ts timestamp", "id  STRING,ts   timestamp", True),
        ("id string, ts timestamp", "id int, ts timestamp", False),
        ("path: landing/orders", "path: landing/others", False),
        ("path: landing/orders", "path: landing/orders\n        description: x", True),
    ],
)
def test_a_source_is_part_of_what_a_model_means(before, after, same, tmp_path):
    changed = {"sources/shop.yml": SOURCES.replace(before, after)}
    assert (fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b", **changed)) is same


# positions of the SQL that runs


def test_every_line_of_the_sql_that_runs_leads_back(tmp_path):
    text = f"/*---\n{HEADER}---*/\nselect hour.start as s,\n  {{% for x in [1, 2] %}}\n  {{{{ x }}}} as c{{{{ x }}}},\n  {{% endfor %}}\n  count(*) as n\n{FROM} where id <> 'x'\ngroup by hour"
    made = clean(tmp_path, {"models/a.sql": text}).model("a")

    def place(word: str) -> str:
        return str(made.positions.locate(made.file, made.sql.index(word)))

    assert place("select") == "models/a.sql:5:1"
    assert place("count") == "models/a.sql:9:3"
    assert place("where") == "models/a.sql:10:37"
    assert place("group by") == "models/a.sql:11:1"
    assert place("window(") == "models/a.sql:5:8"
    assert place("as c2") == "models/a.sql:7:11"
    assert place("`__shop__orders`") == "models/a.sql:10:6"


def test_the_order_does_not_depend_on_the_files(tmp_path):
    one = {"models/z.sql": ORDERS, "models/a.sql": "select * from {{ ref('z') }}"}
    two = {"models/x/a.sql": "select * from {{ ref('z') }}", "models/b/z.sql": ORDERS}
    assert clean(tmp_path / "1", one).order == clean(tmp_path / "2", two).order == ("model.z", "model.a")
