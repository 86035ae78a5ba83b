"""`acknowledge`: a warning that was seen is kept with its node, and no longer reported."""

from __future__ import annotations

import json

import pytest

from engine.cli.main import invoke
from engine.compile import Compiled
from tests.project.small_projects import compiled
from tests.projects import write_files

SOURCE = (
    "sources: [{name: shop, tables: [{name: orders, format: json, path: landing, schema: 'id string, ts timestamp'}]}]"
)
TOTALS = "select id, count(*) as orders from {{ source('shop', 'orders') }} group by id"
COMPLETE = "streams: [shop.orders]\noutput_mode: complete\n"


def project(
    header: str, sql: str = TOTALS, *, source: str = SOURCE, config: str = "name: shop"
) -> dict[str, str | bytes]:
    model = f"/*---\n{header}---*/\n{sql}\n"
    return {"project.yml": config, "sources/shop.yml": source, "models/totals.sql": model}


def found(result: Compiled) -> list[tuple[str, str]]:
    return [(d.level.value, d.code) for d in result.manifest.diagnostics]


@pytest.fixture
def compile_model(tmp_path):
    return lambda *args, **more: compiled(tmp_path, project(*args, **more))


def test_a_warning_is_reported_unless_it_is_acknowledged(compile_model):
    assert found(compile_model(COMPLETE)) == [("warning", "unbounded-complete")]
    result = compile_model(COMPLETE + "acknowledge: [unbounded-complete]\n")
    assert found(result) == []
    (seen,) = result.manifest.nodes["model.totals"].acknowledged
    assert (seen.code, seen.location.line) == ("unbounded-complete", 6)


def test_one_code_needs_no_list_and_config_takes_it_too(compile_model):
    assert found(compile_model(COMPLETE + "acknowledge: unbounded-complete\n")) == []
    sql = "{{ config(acknowledge=['unbounded-complete']) }}" + TOTALS
    assert found(compile_model(COMPLETE, sql)) == []


def test_a_warning_that_does_not_occur_is_a_warning_at_the_code(compile_model):
    result = compile_model(COMPLETE + "acknowledge: [unbounded-complete, window-week]\n")
    assert found(result) == [("warning", "acknowledge-unused")]
    (unused,) = result.manifest.diagnostics
    assert (unused.location.line, unused.location.column) == (4, 35)
    assert unused.message == "'totals' acknowledges 'window-week', a warning that it does not have"


def test_an_unknown_code_is_an_error_with_the_nearest(compile_model):
    result = compile_model(COMPLETE + "acknowledge: [unbounded-complet]\n")
    assert ("error", "bad-value") in found(result)
    (error,) = result.manifest.errors
    assert "Did you mean 'unbounded-complete'" in error.hint


@pytest.mark.parametrize("code", ["agg-needs-event-time", "acknowledge-unused", "watermark-held", "trojan-source"])
def test_errors_and_warnings_of_other_kinds_cannot_be_acknowledged(code, compile_model):
    assert ("error", "bad-value") in found(compile_model(COMPLETE + f"acknowledge: [{code}]\n"))


def test_an_error_stays_and_nothing_is_called_unused_beside_it(compile_model):
    header = "streams: [shop.orders]\nacknowledge: [unbounded-complete]\n"
    assert found(compile_model(header)) == [("error", "agg-needs-event-time")]


def test_an_error_of_a_code_that_is_also_a_warning_stays(tmp_path):
    from engine.compile.nodes.acknowledged_warnings import Acknowledgement, acknowledge
    from engine.errors import Diagnostic, Level, Location

    error, warning = (Diagnostic("chain-mode", "x", level=level) for level in (Level.ERROR, Level.WARNING))
    listed = [Acknowledgement("chain-mode", Location("m.sql", 3))]
    remaining, seen = acknowledge(listed, [error, warning], "m")
    assert remaining == [error]
    assert [one.code for one in seen] == ["chain-mode"]


def test_it_is_not_a_default_of_folders(compile_model):
    config = "name: shop\nmodels: {+acknowledge: [unbounded-complete]}"
    assert found(compile_model(COMPLETE, config=config)) == [
        ("error", "unknown-key"),
        ("warning", "unbounded-complete"),
    ]


def test_a_source_acknowledges_its_own_warnings(compile_model):
    source = "sources: [{{name: shop, tables: [{{name: orders, format: iceberg, table: a.b{0}}}]}}]"
    header, sql = "streams: [shop.orders]\n", "select * from {{ source('shop', 'orders') }}"
    assert found(compile_model(header, sql, source=source.format(""))) == [("warning", "unknown-columns")]
    result = compile_model(header, sql, source=source.format(", acknowledge: [unknown-columns]"))
    assert found(result) == []
    assert [one.code for one in result.manifest.nodes["source.shop.orders"].acknowledged] == ["unknown-columns"]
    stale = SOURCE.replace("format: json", "format: json, acknowledge: [unknown-columns]")
    assert found(compile_model(header, sql, source=stale)) == [("warning", "acknowledge-unused")]


@pytest.mark.slow
def test_warn_error_leaves_it_and_the_manifest_and_the_site_show_it(tmp_path, capsys):
    files = project(COMPLETE)
    write_files(tmp_path, files)
    command = ["--warn-error", "--project-dir", str(tmp_path)]
    assert invoke(["compile", *command]) == 1
    files = project(COMPLETE + "acknowledge: [unbounded-complete]\n")
    (tmp_path / "models/totals.sql").write_text(files["models/totals.sql"])
    capsys.readouterr()
    for _ in range(2):  # the second time from the cache
        assert invoke(["compile", *command]) == 0
        assert "unbounded-complete" not in capsys.readouterr().err
    record = json.loads((tmp_path / "target/manifest.json").read_text())["nodes"]["model.shop.totals"]
    (seen,) = record["meta"]["headrace"]["acknowledged"]
    assert seen == {
        "code": "unbounded-complete",
        "message": "complete mode keeps every group in state, without bound",
        "line": 6,
    }
    assert invoke(["docs", "generate", "--project-dir", str(tmp_path)]) == 0
    site = "".join(
        path.read_text() for path in (tmp_path / "target/docs").rglob("*") if path.suffix in {".js", ".json", ".html"}
    )
    assert "complete mode keeps every group in state, without bound (unbounded-complete)" in site


@pytest.mark.slow
def test_unused_acknowledgements_are_errors_with_warn_error(tmp_path):
    files = project(COMPLETE + "acknowledge: [unbounded-complete, window-week]\n")
    write_files(tmp_path, files)
    assert invoke(["compile", "--project-dir", str(tmp_path)]) == 0
    assert invoke(["compile", "--warn-error", "--project-dir", str(tmp_path)]) == 1
