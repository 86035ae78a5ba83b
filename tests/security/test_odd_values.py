"""Values that random damage found: each ended the command with an internal error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.docs.site.format_values import instant
from tests.projects import sources_yaml
from tests.security.hostile import MODEL, PROJECT, SOURCES, run, write
from tests.security.mutations import deep

pytestmark = pytest.mark.slow

AVRO = sources_yaml(
    events={
        "format": "kafka",
        "topic": "t",
        "connection": "main",
        "value": {"format": "avro", "schema_file": "events.avsc"},
    }
)
COMMANDS = (["parse"], ["compile"], ["ls"], ["docs", "generate"])
OUT_OF_UTC = ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59")


def codes(root: Path) -> set[int]:
    return {run(root, *command) for command in COMMANDS}


@pytest.mark.parametrize("opened", ["struct<a:", "array<", "map<int,"])
def test_types_that_stand_deep_in_each_other_are_a_finding(opened, tmp_path, capsys):
    def project(levels: int) -> Path:
        schema = f"id int, at timestamp, x {deep(opened, 'int', '>', levels)}"
        return write(tmp_path, {"sources/shop.yml": SOURCES.replace("id int, at timestamp", schema)})

    for levels in (101, 300, 3000):
        assert codes(project(levels)) <= {0, 1}
        assert "nested more than 100 levels deep [bad-schema]" in capsys.readouterr().err
    assert codes(project(100)) == {0}


def test_the_types_of_columns_have_the_same_bound(tmp_path, capsys):
    header = f"columns:\n  id: {{type: '{deep('array<', 'int', '>', 3000)}'}}\n---*/"
    write(tmp_path, {"models/a.sql": MODEL.replace("---*/", header)})
    assert run(tmp_path, "parse") == 1
    assert "nested more than 100 levels deep [bad-schema]" in capsys.readouterr().err


@pytest.mark.parametrize("format_", ["jsn", "-1 days", "json " + " " * 9000 + "x"])
def test_a_stream_of_a_format_that_there_is_not_is_a_finding(format_, tmp_path, capsys):
    write(tmp_path, {"sources/shop.yml": SOURCES.replace("format: json", f"format: '{format_}'")})
    assert codes(tmp_path) <= {0, 1}
    assert "unknown format" in capsys.readouterr().err
    # Once it is right, the script is there.
    write(tmp_path, {})
    assert run(tmp_path, "compile") == 0
    assert (tmp_path / "target/compiled/small/models/a.py").is_file()


def test_the_script_of_a_stream_comes_back_with_its_source(tmp_path):
    script = tmp_path / "target/compiled/small/models/a.py"
    write(tmp_path, {"sources/shop.yml": SOURCES.replace("path: landing", "path: landing, stream: maybe")})
    assert run(tmp_path, "compile") == 1
    assert not script.exists()
    write(tmp_path, {})
    assert run(tmp_path, "compile") == 0
    assert script.is_file()


@pytest.mark.parametrize("at", OUT_OF_UTC)
def test_a_time_that_is_outside_the_calendar_in_utc_is_a_finding(at, tmp_path, capsys):
    test = f"unit_tests:\n  - name: t\n    model: a\n    given: {{shop.events: [{{id: 1, at: '{at}'}}]}}\n    expect: {{rows: []}}\n"
    write(tmp_path, {"tests/t.yml": test})
    assert run(tmp_path, "parse") == 1
    assert "[unit-test-value]" in capsys.readouterr().err


@pytest.mark.parametrize("at", OUT_OF_UTC)
def test_such_a_time_in_a_record_of_the_last_run_is_none(at):
    assert instant(at) is None


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("double", "9" * 400),
        ("float", "9" * 4000),
        ("float", "1e300"),
        ("double", "[1]"),
        ("double", "{}"),
        ("int", "9" * 5000),
    ],
)
def test_a_default_that_no_number_of_its_type_can_be_is_a_finding(type_, default, tmp_path, capsys):
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": type_, "default": 0}]})
    files = {"sources/events.avsc": schema.replace("0}", f"{default}}}"), "sources/shop.yml": AVRO}
    write(tmp_path, {**files, "project.yml": PROJECT + "    connections: {main: {bootstrap_servers: 'localhost:1'}}\n"})
    assert run(tmp_path, "parse") == 1
    assert "events.avsc" in capsys.readouterr().err


@pytest.mark.parametrize(
    "number", ["1e999", "-1e999", "[1e999][0]", "1e308 * 10", "1e308 / 1e-308", "1e999 - 1e999", "{'a': 1e999}.a"]
)
def test_a_template_prints_numbers_beyond_the_largest(number, tmp_path, capsys):
    said = f"{{% set x = {number} %}}select id, '{{{{ x }}}} {{{{ [x] }}}}' as y from"
    write(tmp_path, {"models/a.sql": MODEL.replace("select id from", said)})
    assert codes(tmp_path) == {0}, capsys.readouterr().err
    text = (tmp_path / "target/compiled/small/models/a.sql").read_text()
    assert "inf" in text or "nan" in text
