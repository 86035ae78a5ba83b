"""What compile says of sources of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures import read_rows
from tests.project.small_projects import clean, findings, line, only

FIXTURE = Path(__file__).parent / "fixtures/mistakes.txt"
READ = "/*---\nstreams: [s.t]\n---*/\nselect id from {{ source('s', 't') }}\n"


def source(body: str) -> str:
    lines = "".join(f"        {text}\n" for text in body.splitlines())
    return f"sources:\n  - name: s\n    tables:\n      - name: t\n{lines}"


FILES = "format: json\npath: landing/x\nschema: id int\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "finding"),
    read_rows(FIXTURE, "files", 2),
)  # fmt: skip
def test_faults(tmp_path: Path, body: str, finding: str) -> None:
    assert (
        line(
            only(
                findings(
                    tmp_path,
                    {"sources/x.yml": source(body.replace("{good}", FILES)), "models/a.sql": "select 1 as n\n"},
                )
            )
        )
        == finding
    )


def test_keys_of_streams_on_a_source_that_is_none(tmp_path: Path) -> None:
    body = FILES + "stream: false\nmax_file_age: 1 day\n"
    found = only(findings(tmp_path, {"sources/x.yml": source(body), "models/a.sql": "select 1 as n\n"}))
    assert found.message == "'max_file_age' is for streams, but 's.t' has stream: false"


@pytest.mark.parametrize(
    "path",
    [
        "s3a://bucket/x",
        "hdfs://host:9000/x/*/y",
        "file:///somewhere",
        "landing/{a,b}/*.json",
        "/data/x",
        "/data/*/x.json",
    ],
)
def test_paths(tmp_path: Path, path: str) -> None:
    clean(tmp_path, {"sources/x.yml": source(f'format: json\npath: "{path}"\nschema: id int'), "models/a.sql": READ})


ALLOWED = "name: shop\ntargets: {dev: {schema: main, allow_after_reading: [%s]}}\n"


@pytest.mark.parametrize(("allowed", "path", "code"), [
    ("/data/landing", "/data/landing", ""),
    ("/data/landing", "/data/landing/orders/*.json", ""),
    ("/data/landing", "/data/landing/../other", "after-reading-outside"),
    ("/data/landing", "/data/landing2", "after-reading-outside"),
    ("data/landing", "landing", "bad-value"),
    ("/", "landing", "bad-value"),
])  # fmt: skip
def test_a_target_allows_folders_whose_files_go_away(tmp_path: Path, allowed: str, path: str, code: str) -> None:
    body = f'format: json\npath: "{path}"\nschema: id int\nafter_reading: delete'
    found = findings(tmp_path, {"project.yml": ALLOWED % allowed, "sources/x.yml": source(body), "models/a.sql": READ})
    assert [problem.code for problem in found] == ([code] if code else [])


def test_a_link_out_of_the_project_or_of_an_allowed_folder_is_followed_first(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to(tmp_path / "elsewhere")
    body = f'format: json\npath: "{tmp_path}/data/link"\nschema: id int\nafter_reading: delete'
    files = {"project.yml": ALLOWED % (tmp_path / "data"), "sources/x.yml": source(body), "models/a.sql": READ}
    assert [problem.code for problem in findings(tmp_path / "p", files)] == ["after-reading-outside"]


PUT_AWAY = FILES + "after_reading: delete\n"


def test_files_that_go_away_feed_one_model(tmp_path: Path) -> None:
    files = {"sources/x.yml": source(PUT_AWAY), "models/a.sql": READ, "models/b.sql": READ}
    found = only(findings(tmp_path, files))
    assert (found.code, found.node) == ("after-reading-shared", "b")
    assert found.message == "'b' and 'a' both read 's.t', whose files are moved or deleted after reading"
    clean(tmp_path, {**files, "models/b.sql": "select id from {{ ref('a') }}\n"})


def test_an_ephemeral_model_takes_nothing_itself(tmp_path: Path) -> None:
    ephemeral = READ.replace("streams:", "materialized: ephemeral\nstreams:")
    over = "/*---\nstreams: [e]\n---*/\nselect id from {{ ref('e') }}\n"
    files = {"sources/x.yml": source(PUT_AWAY), "models/e.sql": ephemeral, "models/a.sql": over}
    clean(tmp_path, files)
    found = only(findings(tmp_path, {**files, "models/b.sql": over}))
    assert (found.code, found.node) == ("after-reading-shared", "b")


def test_files_that_go_away_are_not_read_as_a_whole(tmp_path: Path) -> None:
    model = "select id from {{ source('s', 't') }}\n"
    found = only(findings(tmp_path, {"sources/x.yml": source(PUT_AWAY), "models/a.sql": model}))
    assert (
        line(found)
        == "after-reading-shared models/a.sql:1:16 's.t' is read in full, but its files are moved or deleted after reading (after_reading)"
    )


def test_a_field_that_the_origin_of_a_file_does_not_have(tmp_path: Path) -> None:
    files = {
        "sources/x.yml": source(FILES),
        "models/a.sql": READ.replace("select id", "select id, _metadata.file_name"),
    }
    found = only(findings(tmp_path, files))
    assert line(found) == "unknown-column models/a.sql:4:22 column '_metadata.file_name' not found"
    assert found.hint == "Did you mean '_metadata.file_path' or '_metadata.file_modification_time'?"
