"""What a Kafka source may say: every mistake has one message, at its place, with a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures import read_rows
from tests.project.small_projects import PROJECT, clean, compiled, findings, line, lines, only

FIXTURE = Path(__file__).parent / "fixtures/mistakes.txt"
CONNECTION = "    connections: {main: {bootstrap_servers: 'localhost:9092'}, other: {}}\n"
STREAM = "/*---\nstreams: [s.t]\n---*/\nselect * from {{ source('s', 't') }}"


def files(body: str, sql: str = STREAM) -> dict[str, str | bytes]:
    indented = "".join(f"        {text}\n" for text in body.split("\n"))
    return {
        "project.yml": PROJECT.rstrip() + "\n" + CONNECTION,
        "sources/x.yml": f"sources:\n  - name: s\n    tables:\n      - name: t\n{indented}",
        "models/a.sql": sql,
    }


GOOD = "format: kafka\nconnection: main\nschema: id int\n"
FAULTS = read_rows(FIXTURE, "kafka", 3)


@pytest.mark.slow
@pytest.mark.parametrize(("body", "finding", "hint"), FAULTS, ids=[finding for _, finding, _ in FAULTS])
def test_a_mistake_in_a_declaration(body, finding, hint, tmp_path):
    found = only(findings(tmp_path, files(body.replace("{good}", GOOD))))
    assert line(found) == finding
    assert hint in found.hint
    assert found.hint


RIGHT = [
    "topic: a",
    "topics: [a, b]\nstarting_offsets: {a: {0: 1, 1: latest}, b: {0: earliest}}",
    "topic_pattern: 'a-.*'\nstarting_offsets: latest",
    "assign: {a: [0, 2]}\nmax_offsets_per_trigger: 1000",
    "topic: a\nvalue: json\nfail_on_data_loss: false",
    "topic: a\nvalue: {format: json, options: {timestampFormat: 'yyyy'}}\ntimezone: America/New_York",
    "topic: a\nstarting_timestamp: 2024-05-01T10:00:00+02:00\nstream: true",
    "topic: a\noptions: {minPartitions: 4, consumer.fetch.max.bytes: 1000, consumer.isolation.level: read_uncommitted}",
]


@pytest.mark.slow
@pytest.mark.parametrize("body", RIGHT)
def test_a_right_declaration(body, tmp_path):
    assert [c.name for c in clean(tmp_path, files(GOOD + body)).nodes["source.s.t"].columns] == ["id"]


@pytest.mark.parametrize(("form", "kind"), [("string", "string"), ("bytes", "binary")])
def test_text_and_bytes_bring_their_column(form, kind, tmp_path):
    body = f"format: kafka\nconnection: main\ntopic: a\nvalue: {{format: {form}}}"
    model = clean(tmp_path, files(body)).model("a")
    assert [(c.name, c.type) for c in model.columns] == [("value", kind)]


def test_the_fields_of_metadata_are_known(tmp_path):
    sql = STREAM.replace("select *", "select id, t._metadata.offset, _metadata.headers[0].value as v")
    model = clean(tmp_path, files(GOOD + "topic: a", sql)).model("a")
    assert [(c.name, c.type) for c in model.columns] == [("id", "int"), ("offset", "bigint"), ("v", "binary")]
    wrong = only(findings(tmp_path, files(GOOD + "topic: a", sql.replace("t._metadata.offset", "t._metadata.ofset"))))
    assert line(wrong) == "unknown-column models/a.sql:4:24 column 't._metadata.ofset' not found"


def test_a_topic_must_be_listed_or_bounded(tmp_path):
    unlisted = "select * from {{ source('s', 't') }}"
    found = only(findings(tmp_path, files(GOOD + "topic: a", unlisted)))
    assert (
        line(found)
        == "stream-unlisted models/a.sql:1:15 's.t' is a kafka source and must be read as a stream or as a bounded batch"
    )
    assert "streams: [s.t]" in found.hint
    assert "stream: false" in found.hint
    clean(tmp_path, files(GOOD + "topic: a\nstream: false", unlisted))


BOUNDED = GOOD + "topic: a\nstream: false"


@pytest.mark.parametrize(
    ("body", "sql", "finding"),
    [
        (BOUNDED, STREAM, "stream-bounded models/a.sql:2:11 's.t' is declared 'stream: false' and cannot be read as a stream"),
        (BOUNDED + "\nwatermark: id delay 1 hour", STREAM.split("---*/\n")[1], "stream-bounded sources/x.yml:10:9 's.t' is not a stream, but has a watermark"),
        (BOUNDED + "\nmax_offsets_per_trigger: 5", STREAM.split("---*/\n")[1], "setting-conflict sources/x.yml:10:9 'max_offsets_per_trigger' is for streams"),
        (BOUNDED, "/*---\ntrigger: every 1 minute\n---*/\n" + STREAM.split("---*/\n")[1], "bad-value models/a.sql:2:1 'trigger' is for streaming tables"),
    ],
)  # fmt: skip
def test_what_has_no_place_beside_stream_false(body, sql, finding, tmp_path):
    assert line(only(findings(tmp_path, files(body, sql)))).split(" ")[0] == finding.split(" ")[0]
    assert finding in lines(findings(tmp_path, files(body, sql)))


def test_a_limit_of_files_has_no_meaning_for_a_topic(tmp_path):
    sql = STREAM.replace("[s.t]", "{s.t: {max_files_per_trigger: 1}}")
    found = only(findings(tmp_path, files(GOOD + "topic: a", sql)))
    assert line(found) == "bad-value models/a.sql:2:11 max_files_per_trigger does not apply to the source 's.t'"


def test_a_target_replaces_the_topic_or_the_whole_kind(tmp_path):
    base = GOOD + "topic: a\nstarting_offsets: latest\nmax_offsets_per_trigger: 10\n"
    spec = (
        clean(tmp_path, files(base + "targets: {dev: {topics: [b, c], max_offsets_per_trigger: 5}}"))
        .nodes["source.s.t"]
        .spec
    )
    assert {**spec.settings, "topics": tuple(spec.settings["topics"])} == {
        "topics": ("b", "c"), "connection": "main", "starting_offsets": "latest", "max_offsets_per_trigger": 5,
    }  # fmt: skip
    (tmp_path / "other").mkdir()
    spec = (
        clean(tmp_path / "other", files(base + "targets: {dev: {format: json, path: landing}}"))
        .nodes["source.s.t"]
        .spec
    )
    assert (spec.format, dict(spec.settings), spec.schema) == ("json", {"path": "landing"}, "id int")


def test_compiling_renders_no_connection(tmp_path):
    project = PROJECT.rstrip() + "\n    connections: {main: {bootstrap_servers: \"{{ env_var('NOT_SET') }}\"}}\n"
    result = compiled(tmp_path, files(GOOD + "topic: a") | {"project.yml": project})
    assert lines(result.manifest.diagnostics) == []
    with pytest.raises(Exception, match="NOT_SET"):
        result.target.place(tmp_path).connection("main")
