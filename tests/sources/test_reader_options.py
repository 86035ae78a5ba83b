"""Options of readers and writers: names that the reader does not have, and values that it does not take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures import read_rows
from tests.project.small_projects import clean, compiled, findings, only

FIXTURE = Path(__file__).parent / "fixtures/mistakes.txt"
KAFKA = (
    "name: shop\ntargets:\n  dev:\n    catalog: {type: sqlite, name: lake, path: .engine/lake}\n    schema: main\n"
    "    connections: {main: {bootstrap_servers: localhost:9092}}\n"
)
BY_FORMAT = {
    "json": "path: x\nschema: id int",
    "csv": "path: x\nschema: id int",
    "parquet": "path: x\nschema: id int",
    "orc": "path: x\nschema: id int",
    "avro": "path: x\nschema: id int",
    "text": "path: x",
    "spark.xml": "path: x\nschema: id int",
    "spark.rate-micro-batch": "schema: value bigint",
    "spark.delta": "path: x\nschema: id int",
    "kafka": "topic: x\nconnection: main\nschema: id int",
    "rate": "",
    "socket": "host: localhost\nport: 9999",
    "iceberg": "table: a.b",
}
MODEL = {"project.yml": KAFKA, "models/a.sql": "select 1 as n\n"}


def source(format_: str, *settings: str) -> dict[str, str | bytes]:
    body = "\n".join(filter(None, [f"format: {format_}", BY_FORMAT[format_], *settings]))
    lines = "".join(f"        {text}\n" for text in body.splitlines())
    return {"sources/x.yml": f"sources:\n  - name: s\n    tables:\n      - name: t\n{lines}", **MODEL}


def options(format_: str, text: str, *more: str) -> dict[str, str | bytes]:
    return source(format_, *more, f"options: {{{text}}}")


QUOTES = ("STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR")
ALLOW = "To pass it unchecked, set 'allow_unknown_options: true' next to 'options:'."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_", "text", "code", "message", "hint"),
    read_rows(FIXTURE, "options", 5),
)  # fmt: skip
def test_faults(tmp_path: Path, format_: str, text: str, code: str, message: str, hint: str) -> None:
    found = only([f for f in findings(tmp_path, options(format_, text)) if f.is_error])
    assert (found.code, found.message, found.hint) == (code, message, hint)
    assert found.location is not None
    assert (found.location.file, found.location.line) == (
        "sources/x.yml", 6 + len(BY_FORMAT[format_].splitlines()),
    )  # fmt: skip
    assert found.location.column > len("        options: {")


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        ("csv", 'HEADER: "TRUE", sep: ";", quote: "", maxCharsPerColumn: -1, samplingRatio: 0.5'),
        ("csv", "fs.s3a.endpoint: example.com, pathGlobFilter: '*.csv'"),
        ("json", "allowcomments: true, timestampformat: yyyy, lineSep: '|'"),
        ("parquet", "mergeSchema: false, parquet.compression: zstd, int96RebaseMode: legacy"),
        ("avro", "ignoreExtension: true, recursiveFieldMaxDepth: 2"),
        ("spark.xml", "rowTag: book"),
        ("spark.delta", "whatever: 1"),
        ("kafka", "minpartitions: 3, maxRecordsPerPartition: 100"),
        ("iceberg", "SPLIT-SIZE: 1000, vectorization-enabled: false"),
        ("rate", "numPartitions: 2"),
    ],
)
def test_options_that_readers_have(tmp_path: Path, format_: str, text: str) -> None:
    assert not [f for f in findings(tmp_path, options(format_, text)) if f.is_error]


@pytest.mark.parametrize("format_", ["json", "csv", "text", "spark.xml", "rate", "iceberg"])
def test_unknown_options_can_be_allowed(tmp_path: Path, format_: str) -> None:
    files = options(format_, "newInSpark5: true", "allow_unknown_options: true")
    assert not [f for f in findings(tmp_path, files) if f.is_error]
    (made,) = [s for s in compiled(tmp_path, files).manifest.sources if s.name == "s.t"]
    assert made.spec.options == {"newInSpark5": "true"}


def test_allowing_unknown_options_lets_no_wrong_value_pass(tmp_path: Path) -> None:
    found = only(findings(tmp_path, options("csv", "header: 2, new: 1", "allow_unknown_options: true")))
    assert found.message == "the option 'header' must be true or false, not '2'"


@pytest.mark.parametrize("format_", ["kafka", "socket"])
def test_a_closed_list_of_options_stays_closed(tmp_path: Path, format_: str) -> None:
    found = only(findings(tmp_path, source(format_, "allow_unknown_options: true")))
    assert (found.code, found.message) == (
        "setting-conflict",
        f"'allow_unknown_options' has no effect on the format '{format_}', whose options are a closed list",
    )


def test_a_target_can_allow_unknown_options(tmp_path: Path) -> None:
    level = "targets: {dev: {options: {new: 1}, allow_unknown_options: true}}"
    clean(tmp_path, source("csv", level))


JSON_VALUES = "value: {format: json, options: {allowComments: 1}}"


def test_values_of_the_options_of_a_kafka_value(tmp_path: Path) -> None:
    found = only(findings(tmp_path, source("kafka", JSON_VALUES)))
    assert found.message == "the option 'allowComments' must be true or false, not '1'"


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ("fanout-enable: true", "unknown-option", "Iceberg's writer has no option 'fanout-enable'",
         "Did you mean 'fanout-enabled'?"),
        ("c: d", "unknown-option", "Iceberg's writer has no option 'c'",
         "Remove it; properties of the table are written under 'table_properties:'."),
        ("fanout-enabled: abc", "bad-value", "the option 'fanout-enabled' must be true or false, not 'abc'",
         "Write true or false."),
        ("target-file-size-bytes: 128MB", "bad-value",
         "the option 'target-file-size-bytes' must be a whole number of at least 1, not '128MB'",
         "Write a number: 1000."),
        ("distribution-mode: hashed", "bad-value",
         "the option 'distribution-mode' must be one of none, hash, range, not 'hashed'", "Write none."),
    ],
)  # fmt: skip
def test_faults_of_write_options(tmp_path: Path, text: str, code: str, message: str, hint: str) -> None:
    files = {"models/a.sql": f"/*---\nwrite_options: {{{text}}}\n---*/\nselect 1 as n\n"}
    found = only(findings(tmp_path, files))
    assert (found.code, found.message, found.hint) == (code, message, hint)
    assert found.location is not None
    assert found.location.line == 2


def test_write_options_that_iceberg_has(tmp_path: Path) -> None:
    text = "FANOUT-ENABLED: true, target-file-size-bytes: 1000, snapshot-property.team: sales, write-format: ORC"
    clean(tmp_path, {"models/a.sql": f"/*---\nwrite_options: {{{text}}}\n---*/\nselect 1 as n\n"})
