"""Rules that see across models, and what is still found where something else is wrong."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engine.sources import KINDS
from engine.sources.files import file_source
from tests.project.small_projects import FROM, HOUR, LATE, PROJECT, clean, findings, line, lines, only

HOURLY = LATE + HOUR
BY_HOUR = f"select hour.start as s, count(*) as n {FROM} group by hour"


def model(name: str, header: str, sql: str) -> dict[str, str | bytes]:
    return {f"models/{name}.sql": f"/*---\n{header.rstrip()}\n---*/\n{sql}"}


# what a stream cannot read

CHANGING = [
    (f"{HOURLY}output_mode: update", BY_HOUR, "its rows are replaced by newer ones (it has a unique_key)"),
    (f"{HOURLY}output_mode: complete", BY_HOUR, "it is rewritten in each micro-batch (output_mode: complete)"),
    (f"{LATE}unique_key: id", f"select id, ts {FROM}", "its rows are replaced by newer ones (it has a unique_key)"),
    (f"{LATE}unique_key: id\nsequence_by: ts\nhistory: true", f"select id, ts {FROM}", "its rows are replaced"),
    ("tags: []", f"select id {FROM}", "it is a table"),
    ("materialized: view", "select id from {{ ref('base') }}", "it is a view"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "sql", "reason"), CHANGING, ids=lambda value: str(value)[-30:])
def test_a_stream_from_a_model_whose_rows_change(header, sql, reason, tmp_path):
    files_ = {
        "models/base.sql": f"select id {FROM}",
        **model("b", header, sql),
        **model("a", "tags: [x]\nstreams:\n  - b", "select * from {{ ref('b') }}"),
    }
    found = only(tuple(d for d in findings(tmp_path, files_) if d.is_error))
    assert (found.code, str(found.location)) == ("stream-not-streamable", "models/a.sql:4:5")
    assert reason in found.message
    assert "Remove 'b' from 'streams:'" in found.hint


@pytest.mark.parametrize(("header", "sql", "reason"), CHANGING, ids=lambda value: str(value)[-30:])
def test_the_same_models_can_be_read_as_a_whole(header, sql, reason, tmp_path):
    join = f"select o.id {FROM} o join {{{{ ref('b') }}}} b on true"
    files_ = {"models/base.sql": f"select id {FROM}", **model("b", header, sql), **model("a", LATE, join)}
    assert clean(tmp_path, files_)


@pytest.mark.parametrize("header", [LATE, f"{LATE}output_mode: append"])
def test_a_stream_from_a_model_that_appends(header, tmp_path):
    files_ = {**model("b", header, f"select id {FROM}"), **model("a", "streams: [b]", "select * from {{ ref('b') }}")}
    assert clean(tmp_path, files_)


def test_a_model_that_becomes_an_upsert_breaks_each_stream_that_reads_it(tmp_path):
    files_ = {
        **model("b", LATE + "unique_key: id\nsequence_by: ts", f"select id, ts {FROM}"),
        **model("c", "streams: [b]", "select * from {{ ref('b') }}"),
        **model("d", "streams: {b: {watermark: ts delay 1 hour}}", "select * from {{ ref('b') }}"),
        **model("e", "tags: []", "select * from {{ ref('b') }}"),
    }
    found = [d for d in findings(tmp_path, files_) if d.is_error]
    assert [(d.code, str(d.location)) for d in found] == [
        ("stream-not-streamable", "models/c.sql:2:11"),
        ("stream-not-streamable", "models/d.sql:2:11"),
    ]


# sources that cannot be re-read

REPLAY = PROJECT + "    require_replayable: true\n"
SOCKET = """\
sources:
  - name: live
    tables:
      - {name: clicks, format: wire, path: x, schema: id string, targets: {%s}}
"""


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of another package, whose records are gone once read."""
    kind = SimpleNamespace(**{**vars(file_source), "FORMATS": ("wire",), "REPLAYABLE": False})
    monkeypatch.setitem(KINDS, "wire", kind)


@pytest.mark.usefixtures("wire")
def test_a_target_refuses_sources_that_cannot_be_read_again(tmp_path):
    files_ = {"project.yml": REPLAY, "sources/live.yml": SOCKET % ""}
    found = only(findings(tmp_path, files_))
    assert line(found) == (
        "source-not-replayable sources/live.yml:4:32 the target 'dev' takes no wire source: its records cannot be re-read"
    )
    assert "targets: {dev: {format: kafka, ...}}" in found.hint


@pytest.mark.usefixtures("wire")
@pytest.mark.parametrize(
    ("project", "replaced"), [(PROJECT, ""), (REPLAY, "dev: {format: json, path: landing/clicks}")]
)
def test_a_source_that_the_target_takes(project, replaced, tmp_path):
    assert lines(findings(tmp_path, {"project.yml": project, "sources/live.yml": SOCKET % replaced})) == []


def test_a_target_that_says_it_wrongly(tmp_path):
    found = only(findings(tmp_path, {"project.yml": REPLAY.replace("true", "maybe")}))
    assert line(found) == "wrong-type project.yml:6:25 'require_replayable' must be true or false, not 'maybe'"


# one mistake hides no other

SEVERAL = [
    ("", f"select o.amuont, c.x {FROM} o join {{{{ ref('nobody') }}}} c on c.id = o.id",
     ["unknown-column 1:8 column 'o.amuont' not found", "unknown-ref 1:65 model 'nobody' not found"]),
    ("", f"with o as (select amuont {FROM}) select * from o join {{{{ source('shop', 'nobody') }}}} c",
     ["unknown-column 1:19 column 'amuont' not found", "unknown-source 1:84 source 'shop.nobody' not found"]),
    (HOURLY, f"select amuont {FROM}",
     ["window-unused 3:17 the query does not use the window 'hour'",
      "unknown-column 5:8 column 'amuont' not found"]),
    (f"{HOURLY}output_mode: update\nunique_key: id", f"select hour.start as s, count(distinct amount) as n {FROM} group by hour",
     ["unknown-column 5:13 'unique_key' names 'id', which the SELECT does not have",
      "agg-distinct 7:25 COUNT(DISTINCT amount) is not supported on streams"]),
    ("columns: {id: {type: int}}", f"select o.id, c.x {FROM} o join {{{{ ref('nobody') }}}} c on c.id = o.id",
     ["column-type 2:22 the column 'id' is declared int, but the query returns string",
      "unknown-ref 4:61 model 'nobody' not found"]),
]  # fmt: skip


@pytest.mark.parametrize(("header", "sql", "expected"), SEVERAL, ids=lambda value: str(value)[:30])
def test_several_mistakes(header, sql, expected, tmp_path):
    files_ = model("a", header, sql) if header else {"models/a.sql": sql}
    found = [line(d).replace("models/a.sql:", "") for d in findings(tmp_path, files_) if d.is_error]
    assert found == expected


def test_a_column_of_what_is_missing_is_not_judged(tmp_path):
    sql = f"select id, x, c.y, z.w {FROM} join {{{{ ref('nobody') }}}} c on true"
    assert [d.code for d in findings(tmp_path, {"models/a.sql": sql})] == ["unknown-ref"]


def test_a_stream_that_is_missing_breaks_no_rule_by_itself(tmp_path):
    sql = "select id, count(*) as n from {{ ref('nobody') }} group by id order by n"
    found = findings(tmp_path, model("a", "streams: [nobody]", sql))
    assert [d.code for d in found] == ["unknown-ref"]


SESSIONS = [
    (f"{LATE}windows: {{s: 'session(ts, 5 minutes)'}}\noutput_mode: update\nunique_key: [b, id]",
     f"select s.start as b, id, count(*) as n {FROM} group by s, id",
     "session-mode models/a.sql:3:14 the session window 's' does not run in update mode (output_mode in line 4)"),
    (f"{LATE}windows: {{s: 'session(ts, 5 minutes)'}}\noutput_mode: update",
     f"select id, count(*) as n {FROM} group by s, id",
     "session-mode models/a.sql:3:14 the session window 's' does not run in update mode (output_mode in line 4)"),
    (f"{LATE}output_mode: update",
     f"select id, count(*) as n {FROM}\ngroup by session_window(ts, '5 minutes'), id",
     "session-mode models/a.sql:6:10 session_window() does not run in update mode"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "sql", "finding"), SESSIONS)
def test_a_session_in_update_mode_is_said_once(header, sql, finding, tmp_path):
    found = only(findings(tmp_path, model("a", header, sql)))
    assert line(found) == finding
    assert found.hint == "Set output_mode: append: a session is written when it ends."


# what runs, and grows for ever

GROWING = [
    ("streams: [shop.orders]\noutput_mode: update\nunique_key: id", f"select id, count(*) as n {FROM}\ngroup by id",
     "unbounded-groups 7:10"),
    (f"{HOURLY}output_mode: complete", f"{BY_HOUR}", "unbounded-complete 6:84"),
    ("streams: [shop.orders]\noutput_mode: complete", f"select id, count(*) as n {FROM}\ngroup by id", "unbounded-complete 6:10"),
    ("streams: [shop.orders, shop.customers]",
     f"select o.id {FROM} o\njoin {{{{ source('shop', 'customers') }}}} c on c.id = o.id", "unbounded-join 5:6"),
    (LATE, f"select id {FROM}\nlimit 5", "limit-whole-stream 5:7"),
    ("streams: [shop.orders]\noutput_mode: update\nunique_key: id", f"select id, collect_set(ts) as s {FROM}\ngroup by id",
     "unbounded-collection 6:12"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "sql", "warning"), GROWING, ids=lambda value: str(value)[-40:])
def test_what_grows_for_ever_is_a_warning_at_its_place(header, sql, warning, tmp_path):
    found = findings(tmp_path, model("a", header, sql))
    assert not [d for d in found if d.is_error]
    code, place = warning.split()
    assert f"models/a.sql:{place}" in [str(d.location) for d in found if d.code == code and d.hint]


@pytest.mark.slow
def test_a_broken_model_says_nothing_of_its_unit_tests(tmp_path):
    files = model("a", "streams: [shop.orders]", f"select id, amount {FROM.replace('from', 'frm')}")
    tests = "unit_tests:\n  - name: t\n    model: a\n    given: {shop.orders: [{idd: x}]}\n    expect: {rows: [{amount: 1}]}\n"
    files["tests/a.yml"] = tests
    assert [d.code for d in findings(tmp_path, files)] == ["sql-syntax"]
    files["models/a.sql"] = str(files["models/a.sql"]).replace("frm", "from")
    assert [d.code for d in findings(tmp_path, files)] == ["unknown-column"]
