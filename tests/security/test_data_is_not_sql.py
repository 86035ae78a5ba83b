"""What comes from data, names or descriptions never becomes a part of a statement."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.compile import compile_project
from engine.compile.config.session_settings import meaning
from engine.errors import Diagnostic
from engine.plan.comparison import differences
from engine.project import load_project
from engine.spark_options import PINNED
from tests.lab import PROJECT, Lab
from tests.projects import sources_yaml

HOSTILE = (
    "${env:HOME}", "${env:PLANTED}", "${system:user.home}", "${spark.app.name}", "${sparkconf:spark.app.id}", "it's",
    "\\", "\\'", "'; drop table x; --", '"', "`", "``", "a\nb", "a\r\nb", "--", "/*", "*/ -- ${env:HOME}", "{{ 1 }}",
    "\x00", "%41", ":least0", "?", "\u202e", "𝄞", "", " ", "\t", "[a]", "*", "{b,c}",
)  # fmt: skip
# What a file system takes as a name, and Hadoop as a path.
NAMES = tuple(text for text in HOSTILE if text.strip() and not {"/", ":", "\x00"} & set(text) and text[-1] != "\\")

SOURCE = sources_yaml(events="id int, part string, v double")
MERGED = """/*---
description: {said}
streams: [shop.events]
unique_key: [part, id]
sequence_by: v
partition_by: part
persist_docs: true
tags: [{tag}]
table_properties: {{owner: {said}}}
expectations: [{{name: small, check: "v < 100", on_fail: quarantine}}]
columns:
  - {{name: part, description: {said}, data_tests: [{{accepted_values: {{values: {values}, severity: warn}}}}]}}
---*/
select part, id, v from {{{{ source('shop', 'events') }}}}
"""
TESTED = """
unit_tests:
  - name: rows_are_values
    model: merged
    given: {{shop.events: {rows}}}
    expect: {rows}
"""
VIEW = "/*---\nmaterialized: view\ndescription: {said}\n---*/\nselect * from {{{{ ref('merged') }}}}\n"


def project(root: Path, sql: str = "select 1 as n", conf: str = "{}", header: str = "materialized: table") -> None:
    text = PROJECT.format(lake=root / "lake", schema="s")
    text = text.replace(text[text.index("conf: ") :].rstrip().removesuffix("}"), f"conf: {conf}")
    (root / "models").mkdir(exist_ok=True)
    (root / "project.yml").write_text(text)
    (root / "models" / "m.sql").write_text(f"/*---\n{header}\n---*/\n{sql}\n")


def errors_of(root: Path) -> Iterator[Diagnostic]:
    yield from compile_project(load_project(root)).manifest.errors


@pytest.mark.parametrize("key", [*PINNED, "spark.sql.Variable.SUBSTITUTE"])
def test_no_target_changes_how_texts_are_read(tmp_path: Path, key: str) -> None:
    project(tmp_path, conf=f"{{{key}: true}}")
    (error,) = errors_of(tmp_path)
    assert (error.code, error.location and error.location.file) == ("setting-pinned", "project.yml")
    assert error.hint.startswith("Remove it")
    project(tmp_path, conf=f"{{{key}: 'False'}}")
    assert not list(errors_of(tmp_path))


@pytest.mark.parametrize(
    ("sql", "header"),
    [
        ("select '${env:PLANTED}' as a", ""),
        ("select 1 as `${env:PLANTED}`", ""),
        ("select 1 as n where ${system:user.home} = 1", ""),
        ('select "${spark.app.name}" as a', ""),
        ("select 1 as n", "pre_hook: \"set x = '${env:PLANTED}'\""),
        ("select 1 as n", "data_tests: [{expression: {expression: \"n <> '${env:PLANTED}'\"}}]"),
        ("select 1 as n", "expectations: [{name: e, check: \"n <> '${sparkconf:spark.app.id}'\"}]"),
    ],
)
def test_a_query_that_counts_on_sparks_variables_is_rejected_with_the_name_of_ours(
    tmp_path: Path, sql: str, header: str
) -> None:
    project(tmp_path, sql, header=f"materialized: table\n{header}")
    errors = list(errors_of(tmp_path))
    assert [error.code for error in errors] == ["spark-variable"], errors
    assert all("{{ var('name') }} or {{ env_var('NAME') }}" in error.hint for error in errors)
    assert all(error.location and error.location.file == "models/m.sql" for error in errors)


def test_other_dollars_are_text(tmp_path: Path) -> None:
    project(tmp_path, "select '${name}' as a, '$1' as b, '{x}' as c, '$' as d, '${' as e -- ${env:PLANTED}")
    assert not list(errors_of(tmp_path))


def test_settings_that_are_pinned_are_no_change_of_a_query_that_keeps_state() -> None:
    key = "spark.sql.variable.substitute"
    assert meaning({key: "true"}, ()) == {}
    older = meaning({key: "false"}, ())
    assert differences(older, {}) == differences({}, older) == ([], [])


def test_a_script_holds_its_texts_and_nothing_runs_of_them(tmp_path: Path) -> None:
    said = json.dumps('"""\nimport os; os._exit(3)\n"""\\ \r \u0000 ${env:HOME}')
    (tmp_path / "sources").mkdir()
    (tmp_path / "landing").mkdir()
    (tmp_path / "sources" / "shop.yml").write_text(SOURCE.replace("landing/events", 'la"nd\\\\ing/\'"""+x'))
    header = "streams: [shop.events]"
    sql = 'select id, \'"""\\\\\' as a, \'""""\\r"""""\' as b, \'c\rd\' as c from {{ source(\'shop\', \'events\') }}'
    project(tmp_path, f"{sql} /* {said} */", header=header)
    from engine.compile.artifacts.pyspark_script import script

    manifest = compile_project(load_project(tmp_path)).manifest
    assert not manifest.errors
    tree = ast.parse(script(manifest.models[0], manifest))
    (text,) = (
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sql"
        if isinstance(node.args[0], ast.Constant)
    )
    assert text == f"\n{manifest.models[0].sql}\n"
    assert {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} <= {
        "SparkSession", "functions", "spark", "input_1", "result", "query",
    }  # fmt: skip


@pytest.mark.nightly
@pytest.mark.spark
def test_hostile_texts_are_values_in_all_that_is_built(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "'); planted secret")
    lab.write("sources/shop.yml", SOURCE)
    # A header ends with its comment, YAML has no NUL, and Jinja reads two braces.
    readable = tuple(text for text in HOSTILE if not any(part in text for part in ("\x00", "{{", "*/")))
    said = json.dumps("; ".join(readable), ensure_ascii=False)
    rows = json.dumps([{"part": text, "id": 1, "v": 1.5} for text in readable], ensure_ascii=False)
    values = json.dumps([text for text in readable if "${" not in text], ensure_ascii=False)
    lab.model("merged", MERGED.format(said=said, tag=said.replace(",", ";"), values=values))
    lab.write("tests/merged.yml", TESTED.format(rows=rows))
    lab.model("seen", VIEW.format(said=said))
    for number, text in enumerate(NAMES):
        lab.land(f"{text}{number}", [{"part": part, "id": 1, "v": float(number)} for part in HOSTILE])
        # One row a file fails the expectation.
        lab.land(f"bad {text}{number}", [{"part": text, "id": number, "v": 100.0}])
        if number == 0:
            lab.build()
    result = lab.build()
    assert result.model("merged")["status"] == "success"
    found = {row["part"]: row["v"] for row in lab.rows("merged")}
    assert len(lab.rows("merged")) == len(found) == len(HOSTILE)
    assert found == dict.fromkeys(HOSTILE, float(len(NAMES) - 1))
    assert len(lab.rows("merged__quarantine")) == len(NAMES)
    stored = lab.table("merged")
    assert stored is not None
    assert "planted secret" not in str(stored.properties)
    assert "${env:PLANTED}" in stored.properties["owner"]
    session = lab.session.spark  # type: ignore[union-attr]
    told = str(session.sql(f"describe extended lake.{lab.schema}.seen").collect())
    assert os.environ["HOME"] not in told.replace(str(lab.lake_path), "")
    # A session of a model's own cannot switch it on either.
    lab.model(
        "hooked", "/*---\nmaterialized: table\npre_hook: 'set spark.sql.variable.substitute=true'\n---*/\nselect 1 as n"
    )
    assert "setting-pinned" in lab.run("build", "-s", "hooked").codes()
