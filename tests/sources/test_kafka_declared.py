"""What a Kafka source may say: every mistake has one message, at its place, with a way out."""

from __future__ import annotations

import pytest

from tests.project.small_projects import PROJECT, clean, compiled, findings, line, lines, only

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
FAULTS = [
    ("format: kafka\nconnection: main\nschema: id int",
     "missing-key sources/x.yml:4:9 source 's.t' has no 'topic'", "topic_pattern"),
    ("format: kafka\ntopic: a\nschema: id int",
     "missing-key sources/x.yml:4:9 source 's.t' has no 'connection'", "connection: main"),
    ("format: kafka\nconnection: mian\ntopic: a\nschema: id int",
     "unknown-connection sources/x.yml:6:21 the target 'dev' has no connection 'mian'", "'main'"),
    ("format: kafka\nconnection: main\ntopic: a",
     "missing-key sources/x.yml:4:9 source 's.t' has no 'schema'", "schema:"),
    (GOOD + "topic: a\ntopics: [b]",
     "setting-conflict sources/x.yml:9:9 'topic' and 'topics' exclude each other", ""),
    (GOOD + "topic: a b", "bad-value sources/x.yml:8:16 'a b' is not a topic name", "topic_pattern"),
    (GOOD + "assign: {a: 0}", "bad-value sources/x.yml:8:17 'assign' must map topics to lists of partitions", "assign:"),
    (GOOD + "topic: a\nstarting_offsets: first",
     "bad-value sources/x.yml:9:27 'starting_offsets' cannot be read", "earliest"),
    (GOOD + "topics: [a, b]\nstarting_offsets: {0: 1}",
     "bad-value sources/x.yml:9:27 'starting_offsets' cannot be read", "such a mapping for each topic"),
    (GOOD + "topic: a\nstarting_timestamp: soon", "bad-value sources/x.yml:9:29 'soon' is not a timestamp", "2024-05-01"),
    (GOOD + "topic: a\nstarting_offsets: latest\nstarting_timestamp: 2024-05-01",
     "setting-conflict sources/x.yml:10:9 'starting_offsets' and 'starting_timestamp' exclude each other", ""),
    (GOOD + "topic: a\nvalue: {format: jsn}", "bad-value sources/x.yml:9:25 'jsn' is not a value format", "'json'"),
    (GOOD + "topic: a\nvalue: {format: json, shema: x}",
     "unknown-key sources/x.yml:9:31 a value of format 'json' has no key 'shema'", ""),
    (GOOD + "topic: a\nvalue: {format: json, options: {mode: FAILFAST}}",
     "bad-value sources/x.yml:9:41 the option 'mode' is set by the engine", ""),
    (GOOD + "topic: a\nvalue: {format: json, options: {dateFromat: x}}",
     "bad-value sources/x.yml:9:41 reading JSON has no option 'dateFromat'", "'dateFormat'"),
    (GOOD + "topic: a\nvalue: [json]", "wrong-type sources/x.yml:9:16 'value' must be a mapping", "format: json"),
    (GOOD + "topic: a\nvalue: {format: string}",
     "setting-conflict sources/x.yml:7:9 a value of format 'string' has one column, value string", "schema"),
    (GOOD + "topic: a\noptions: {consumer.group.id: x}",
     "bad-value sources/x.yml:9:19 the option 'group.id' of the client is set by the engine", "each query"),
    (GOOD + "topic: a\noptions: {consumer.auto.offset.reset: x}",
     "bad-value sources/x.yml:9:19 the option 'auto.offset.reset' of the client is set by the engine", "starting_offsets"),
    (GOOD + "topic: a\noptions: {consumer.sasl.jaas.config: x}",
     "source-credentials sources/x.yml:9:19 the option 'consumer.sasl.jaas.config' of source 's.t' is a credential", "connection"),
    (GOOD + "topic: a\noptions: {consumer.sasl.oauthbearer.token.endpoint.url: 'http://x'}",
     "bad-value sources/x.yml:9:19 the option 'sasl.oauthbearer.token.endpoint.url' is a security setting", ""),
    (GOOD + "topic: a\noptions: {consumer.fetch.max.byte: 1}",
     "bad-value sources/x.yml:9:19 the option 'fetch.max.byte' of the client is unknown", "'fetch.max.bytes'"),
    (GOOD + "topic: a\noptions: {kafka.fetch.max.bytes: 1}",
     "unknown-option sources/x.yml:9:19 unknown option 'kafka.fetch.max.bytes'", "consumer."),
    (GOOD + "topic: a\noptions: {minPartition: 4}",
     "unknown-option sources/x.yml:9:19 unknown option 'minPartition'", "'minPartitions'"),
    (GOOD + "topic: a\ntpic: b", "unknown-key sources/x.yml:9:9 a source table has no key 'tpic'", "'topic'"),
    (GOOD + "topic: a\npath: b", "unknown-key sources/x.yml:9:9 a source table has no key 'path'", ""),
    (GOOD + "topic: a\nmax_offsets_per_trigger: 0",
     "bad-value sources/x.yml:9:34 'max_offsets_per_trigger' must be at least 1, not 0", ""),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("body", "finding", "hint"), FAULTS, ids=[finding for _, finding, _ in FAULTS])
def test_a_mistake_in_a_declaration(body, finding, hint, tmp_path):
    found = only(findings(tmp_path, files(body)))
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
