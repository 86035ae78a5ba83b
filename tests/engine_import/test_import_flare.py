"""`engine import flare`: a job becomes sources and models, and what is lost is said with its line."""

from __future__ import annotations

import pytest
import yaml

from engine.cli.main import invoke
from engine.compile import compile_project
from engine.errors import ProjectError
from engine.project import load_project
from engine_import.flare.import_flare import import_flare, with_references
from engine_import.output.import_report import ImportOutcome

JOB = """\
dag:
  - name: orders-data
    title: orders
    spec:
      stack: flare:1.0
      flare:
        job:
          explain: true
          streaming:
            triggerMode: Once
            checkpointLocation: dataos://lake:raw/checkpoints/orders
          inputs:
            - name: input_orders
              dataset: dataos://kafka:default/orders?acl=r
              schemaRegistryUrl: https://registry.example:8081
              isStream: {stream}
              options:
                startingOffsets: earliest
                kafka.client.id: me
            - name: customers
              dataset: dataos://lake:crm/customers
          logLevel: INFO
          outputs:
            - {{name: out, depot: "dataos://lake:shop?acl=rw"}}
          steps:
            - sequence:
                - name: paid
                  sql: SELECT *, time AS at FROM input_orders WHERE paid
                - name: orders
                  sql: |
                    SELECT p.id, p.at, c.name FROM paid p
                    LEFT JOIN customers c ON p.customer_id = c.id
                  functions:
                    - {{name: set_type, columns: {{at: timestamp}}}}
                    - {{name: unfurl, expression: items}}
              sink:
                - sequenceName: orders
                  datasetName: Orders-EU
                  outputName: out
                  outputType: Iceberg
                  description: Paid orders.
                  tags: [Sales]
                  outputOptions:
                    saveMode: {mode}
                    iceberg:
                      properties: {{write.metadata.previous-versions-max: "10", overwrite-mode: dynamic}}
                      partitionSpec:
                        - {{type: identity, column: name}}
                        - {{type: hour, column: at, name: hour}}
"""


def job(folder, *, stream: str = "true", mode: str = "append"):
    file = folder / "job.yml"
    file.write_text(JOB.format(stream=stream, mode=mode))
    return file


def header(path) -> dict:
    text = path.read_text(encoding="utf-8")
    return yaml.safe_load(text[text.index("/*---") + 5 : text.index("---*/")])


def lost(report) -> dict[str, str]:
    """Reasons by file and line."""
    return {item.origin: item.reason for item in report.items if item.outcome is ImportOutcome.NOT_IMPORTED}


@pytest.mark.slow
def test_a_streamed_input_becomes_a_streaming_table(tmp_path):
    report = import_flare(job(tmp_path), tmp_path / "new")
    assert report.summary == "2 of 2 models compile", report.lines()
    keys = header(tmp_path / "new/models/orders_eu.sql")
    assert keys == {
        "title": "orders", "description": "Paid orders.", "tags": ["Sales"], "explain": True, "trigger": "once",
        "streams": ["paid"],
        "partition_by": ["name", "hour(at) as hour"],
        "table_properties": {"write.metadata.previous-versions-max": "10"},
    }  # fmt: skip
    assert header(tmp_path / "new/models/paid.sql") == {
        "materialized": "ephemeral", "streams": ["flare.input_orders"],
    }  # fmt: skip
    manifest = compile_project(load_project(tmp_path / "new")).manifest
    assert manifest.model("orders_eu").streaming


def test_a_bounded_input_becomes_a_table_that_replaces_partitions(tmp_path):
    report = import_flare(job(tmp_path, stream="false", mode="overwrite"), tmp_path / "new")
    assert report.summary == "2 of 2 models compile", report.lines()
    keys = header(tmp_path / "new/models/orders_eu.sql")
    assert (keys["materialized"], keys["overwrite"]) == ("table", "partitions")
    (source,) = yaml.safe_load((tmp_path / "new/sources/flare.yml").read_text())["sources"]
    assert source["tables"][0] == {
        "name": "input_orders", "format": "kafka", "topic": "orders", "connection": "kafka",
        "value": {"format": "avro", "schema_registry": "main"}, "stream": False, "starting_offsets": "earliest",
    }  # fmt: skip
    assert source["tables"][1] == {"name": "customers", "format": "iceberg", "table": "crm.customers"}


def test_what_is_lost_has_its_line_and_reason(tmp_path):
    reasons = lost(import_flare(job(tmp_path, stream="false"), tmp_path / "new"))
    assert reasons["job.yml:10"].startswith("an input with isStream: false is read in full")
    assert reasons["job.yml:11"].startswith("checkpoints are managed")
    assert reasons["job.yml:19"] == "this option of the reader has no counterpart"
    assert reasons["job.yml:22"] == "use --log-level"
    assert "the function 'unfurl' is not carried over: write explode(items)" in reasons["job.yml:35"]
    assert reasons["job.yml:44"].startswith("a build of a batch table replaces its rows")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select a.x from A, b join c on a.i = c.i", "select a.x from <a>, b join <c> on a.i = c.i"),
        ("select a, c from (select * from c) x", "select a, c from (select * from <c>) x"),
        ("select 'from a' from c -- from a", "select 'from a' from <c> -- from a"),
        ("select * from c.a", "select * from c.a"),
        ("select * from c where f(a, c) in (select 1, a from d, a)", "select * from <c> where f(a, c) in (select 1, a from d, <a>)"),
        ("select 'unclosed from a", "select 'unclosed from a"),
    ],
)  # fmt: skip
def test_names_are_replaced_where_relations_are_named(sql, expected):
    assert with_references(sql, {"a": "<a>", "c": "<c>"}) == expected


@pytest.mark.parametrize(
    "text", ["", "a: [1", "dag: []", "dag: 7", "x: 1", "- 1", "dag: [{name: x}]", "dag: [{spec: []}]"]
)
def test_other_files_are_errors_or_empty_projects(text, tmp_path):
    (tmp_path / "job.yml").write_text(text)
    try:
        report = import_flare(tmp_path / "job.yml", tmp_path / "new")
    except ProjectError:
        assert not (tmp_path / "new").exists()
    else:
        assert report.models == []


def test_the_command(tmp_path, capsys):
    assert invoke(["import", "flare", str(job(tmp_path)), "--out", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 models compile" in out
    assert "(job.yml:22): use --log-level" in out
    assert invoke(["import", "flare", str(tmp_path / "none.yml"), "--out", str(tmp_path / "other")]) == 1
    assert "there is no such file" in capsys.readouterr().err
