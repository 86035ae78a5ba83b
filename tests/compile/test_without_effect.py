"""What a project sets and nothing reads, or what looks right and has another effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile import compile_project
from engine.project import load_project
from tests.project.small_projects import COLUMNS, FROM, SOURCES, STREAM, check, clean, model, write

OWN = "sources: [{{name: lake, tables: [{{name: a, format: iceberg, table: {}, schema: id int}}]}}]\n"
PLAIN = model("")

CASES = [
    (model("tags: a, b"), "bad-value models/a.sql:2:7 the tag 'a, b' contains a comma", "tags: [a, b]"),
    ({**PLAIN, "models/b.py": "x"}, "unread-file models/b.py:1:1 files of models end in .sql; models/b.py is not read", "SQL"),
    ({**PLAIN, "models/x/b.sql.bak": "x"},
     "unread-file models/x/b.sql.bak:1:1 files of models end in .sql; models/x/b.sql.bak is not read", "Rename"),
    *(({**PLAIN, "sources/own.yml": OWN.format(name)},
       "source-is-model sources/own.yml:1:33 the source 'lake.a' is the table of the model 'a' (models/a.sql)", "ref('a')")
      for name in ("main.a", "lake.main.a")),
]  # fmt: skip


@pytest.mark.parametrize(("files", "finding", "hint"), CASES)
def test_what_has_no_effect_is_said(tmp_path: Path, files: dict[str, str | bytes], finding: str, hint: str) -> None:
    check(tmp_path, files, finding, hint)


def test_notes_and_tables_of_others_are_fine(tmp_path: Path) -> None:
    files = {**PLAIN, "models/README.md": "x", "models/notes.txt": "x", "sources/own.yml": OWN.format("main.b")}
    assert clean(tmp_path, files).diagnostics == ()


BOUNDS = [
    # condition, whether no row can match
    ("b.ts between a.ts and a.ts - interval 1 hour", True),
    ("b.ts between a.ts and a.ts + interval -1 hour", True),
    ("b.ts > a.ts + interval 1 hour and b.ts < a.ts + interval 60 minutes", True),
    ("b.ts >= a.ts + interval 1 hour and b.ts < a.ts + interval 60 minutes", True),
    ("b.ts >= a.ts + interval 1 hour and b.ts <= a.ts + interval 60 minutes", False),
    ("a.ts < b.ts and b.ts < a.ts", True),
    ("a.ts - interval '2' hours >= b.ts and b.ts + interval 1 hour >= a.ts", True),
    ("a.ts - interval 1 hour >= b.ts and b.ts + interval 2 hours >= a.ts", False),
    ("b.ts between a.ts and a.ts + interval 1 hour", False),
    ("b.ts between a.ts - interval 1 hour and a.ts", False),
    ("b.ts between a.ts and a.ts - interval 1 month", False),
]


@pytest.mark.parametrize(("condition", "never"), BOUNDS)
def test_time_bounds_that_exclude_each_other_are_a_warning(tmp_path: Path, condition: str, never: bool) -> None:
    read = "{{ source('shop', 'orders') }}"
    files = model(
        "streams: {shop.orders: {watermark: ts delay 1 hour}}",
        f"select a.id from {read} a join {read} b on a.id = b.id and {condition}\n",
    )
    found = compile_project(load_project(write(tmp_path, files)), env={}).manifest.diagnostics
    assert [d.code for d in found if d.is_error] == []
    assert ("join-never-matches" in {d.code for d in found}) is never


def test_a_variable_that_nothing_reads_is_a_warning(tmp_path: Path) -> None:
    text = "select id, '{{ var('shop', 'x') }}' as shop from {{ source('shop', 'orders') }}\n"
    project = load_project(write(tmp_path, model("streams: [shop.orders]", text)))
    for given, names in (({"shop": "a"}, []), ({"shpo": "a", "shop": "b"}, ["shpo"])):
        found = compile_project(project, variables=given, env={}).manifest.diagnostics
        assert [d.message for d in found] == [f"nothing reads the variable '{name}' of --vars" for name in names]
        assert {d.code for d in found} <= {"vars-unused"}


def test_a_lateral_without_a_function_is_an_error(tmp_path: Path) -> None:
    sql = "select o.id from {{ source('shop', 'orders') }} o lateral .n where amount > 2\n"
    found = compile_project(load_project(write(tmp_path, model("streams: [shop.orders]", sql))), env={}).manifest
    assert [d.code for d in found.diagnostics] == ["unknown-column"]


EVENT_TIMES = [
    ("watermark: ts delay 1 hour", ""),
    ("watermark: tss delay 1 hour", "watermark-missing-column 'ts'"),
    ("watermark: id delay 1 hour", "watermark-type cast(id as timestamp)"),
    ("watermark: cast(id as timestamp) as at delay 1 hour", ""),
    ("watermark: cast(idd as timestamp) as at delay 1 hour", "unknown-column 'id'"),
    ("watermark: ts delay 1 hour\n        dedup: [idd]", "unknown-column 'id'"),
]


@pytest.mark.parametrize(("setting", "fault"), EVENT_TIMES)
@pytest.mark.parametrize("readers", [0, 2])
def test_the_event_time_of_a_source_is_checked_once_whoever_streams_it(
    tmp_path: Path, setting: str, fault: str, readers: int
) -> None:
    schema = f"        schema: {COLUMNS}\n"
    files = {"sources/shop.yml": SOURCES.replace(schema, f"{schema}        {setting}\n")}
    for name in ("a", "b")[:readers]:
        files |= model(STREAM, f"select id {FROM}", name)
    found = compile_project(load_project(write(tmp_path, files)), env={}).manifest.diagnostics
    code, _, hint = fault.partition(" ")
    errors = [d for d in found if d.is_error]
    assert [(d.code, str(d.location)) for d in errors] == ([(code, "sources/shop.yml:4:9")] if fault else [])
    assert all(hint in d.hint for d in errors)
