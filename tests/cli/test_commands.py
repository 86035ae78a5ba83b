"""The commands that answer from files: lines, exit codes, and what they do not import."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.main import invoke
from tests.lab import REPOSITORY
from tests.projects import SMALL as PROJECT
from tests.projects import sources_yaml

pytestmark = pytest.mark.slow

SOURCES = sources_yaml(events={"path": "landing", "schema": "id int, at timestamp"})


@pytest.fixture
def small(tmp_path: Path) -> Path:
    write(tmp_path, "project.yml", PROJECT)
    write(tmp_path, "sources/shop.yml", SOURCES)
    write(
        tmp_path,
        "models/a.sql",
        "/*---\nstreams: [shop.events]\ntags: [hot]\ncolumns: {id: {tests: [not_null]}}\n---*/\n"
        "select id from {{ source('shop', 'events') }}",
    )
    write(tmp_path, "models/marts/b.sql", "select count(*) as n from {{ ref('a') }}")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run(root: Path, *arguments: str) -> int:
    return invoke([*arguments, "--project-dir", str(root)])


def test_commands_that_answer_from_files_import_no_heavy_library(small: Path) -> None:
    code = (
        "import sys\nfrom engine.cli.main import invoke\n"
        "for command in ('--help', 'ls', 'parse', 'compile', 'docs generate', 'lineage b.n', 'clean'):\n"
        "    where = () if command == '--help' else ('--project-dir', sys.argv[1])\n"
        "    code = invoke([*command.split(), *where])\n"
        "    loaded = {m.split('.')[0] for m in sys.modules}\n"
        "    heavy = sorted(loaded & {'pyspark', 'pyiceberg', 'pyarrow', 'py4j', 'rich', 'engine_import'})\n"
        "    print('DONE', command, code, heavy)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(small)], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    done = [line for line in ended.stdout.splitlines() if line.startswith("DONE")]
    assert len(done) == 7
    assert all(line.endswith(" 0 []") for line in done), done


@pytest.mark.parametrize(("said", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_a_terminal_gets_colours_unless_they_are_not_wanted(small: Path, said: dict[str, str], coloured: bool) -> None:
    write(small, "models/a.sql", "selec 1")
    ours, theirs = pty.openpty()
    environment = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **said}
    command = [sys.executable, "-m", "engine", "parse", "--project-dir", str(small)]
    subprocess.run(command, stdout=theirs, stderr=theirs, cwd=REPOSITORY, env=environment, check=False)
    os.close(theirs)
    text = os.read(ours, 100_000)
    os.close(ours)
    assert b"a model is a SELECT" in text
    assert (b"\x1b[31m" in text) is coloured


def test_what_templates_say_is_shown(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "{{ log('aloud', info=True) }}{{ print('printed') }}{{ log('quietly') }}{{ exceptions.warn('careful') }}"
    write(small, "models/loud.sql", f"{said}select 1 as one")
    words = ("aloud", "printed", "quietly", "careful")
    assert run(small, "compile") == 0
    out = capsys.readouterr().out
    assert [word in out for word in words] == [True, True, False, True]
    assert run(small, "ls", "--output", "name") == 0
    assert not any(word in capsys.readouterr().out for word in words)


def test_ls_lists_in_build_order_and_as_json(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "ls", "--output", "name") == 0
    assert capsys.readouterr().out.split() == ["shop.events", "a", "b", "not_null_a_id"]
    assert run(small, "ls", "--output", "json", "--resource-type", "model") == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["name"], r["materialized"], r["streams"]) for r in records] == [
        ("a", "streaming_table", ["shop.events"]),
        ("b", "table", []),
    ]


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (["a"], {"a", "not_null_a_id"}),
        (["+b"], {"shop.events", "a", "b", "not_null_a_id"}),
        (["1+b"], {"a", "b", "not_null_a_id"}),
        (["a+"], {"a", "b", "not_null_a_id"}),
        (["source:shop+1"], {"shop.events", "a", "not_null_a_id"}),
        (["source:shop.events+"], {"shop.events", "a", "b", "not_null_a_id"}),
        (["tag:hot"], {"a", "not_null_a_id"}),
        (["path:models/marts"], {"b"}),
        (["marts.b"], {"b"}),
        (["marts"], {"b"}),
        (["?"], {"a", "b", "not_null_a_id"}),
        (["a b"], {"a", "b", "not_null_a_id"}),
        (["+b,tag:hot"], {"a", "not_null_a_id"}),
        (["@a"], {"shop.events", "a", "b", "not_null_a_id"}),
        (["config.materialized:table"], {"b"}),
        (["test_name:not_null"], {"not_null_a_id"}),
        (["test_name:not_null,a"], {"not_null_a_id"}),
        (["resource_type:model"], {"a", "b"}),
    ],
)
def test_selection_is_dbts(
    small: Path, capsys: pytest.CaptureFixture[str], selection: list[str], names: set[str]
) -> None:
    options = [part for value in selection for part in ("-s", value)]
    assert run(small, "ls", "--output", "name", *options) == 0
    assert set(capsys.readouterr().out.split()) == names


def test_exclude_takes_a_models_tests_along(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "ls", "--output", "name", "--exclude", "a") == 0
    assert capsys.readouterr().out.split() == ["shop.events", "b"]


def test_usage_errors_end_with_2(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "ls", "-s", "colour:red") == 2
    assert "unknown selection method 'colour:'" in capsys.readouterr().err
    assert run(small, "build", "--no-such-option") == 2
    assert run(small, "parse", "--vars", "[1") == 2
    assert run(small, "show") == 2
    assert invoke(["no-such-command"]) == 2


def test_a_mistake_ends_with_1_and_names_its_place(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(small, "models/marts/b.sql", "select count(*) as n\nfrom {{ ref('aa') }}")
    for command in ("parse", "compile", "build", "ls"):
        assert run(small, command) == 1
        assert "models/marts/b.sql:2:6: error: model 'aa' not found [unknown-ref]" in capsys.readouterr().err
    assert run(small, "parse", "--log-format", "json") == 1
    (record,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {key: record[key] for key in ("level", "code", "node", "file", "line", "column")} == {
        "level": "error",
        "code": "unknown-ref",
        "node": "b",
        "file": "models/marts/b.sql",
        "line": 2,
        "column": 6,
    }


def test_compile_writes_runnable_sql_and_the_manifest(small: Path) -> None:
    assert run(small, "compile") == 0
    text = (small / "target/compiled/small/models/marts/b.sql").read_text()
    assert "select count(*) as n from `lake`.`small`.`a`" in text
    manifest = json.loads((small / "target/manifest.json").read_text())
    assert manifest["parent_map"]["model.small.b"] == ["model.small.a"]


def test_docs_are_written_also_for_a_project_with_mistakes(small: Path) -> None:
    assert run(small, "docs", "generate") == 0
    write(small, "models/c.sql", "select from where")
    write(small, "target/run_results.json", '{"results": [')
    assert run(small, "docs", "generate") == 1
    assert (small / "target/docs/index.html").is_file()
    assert "models/c.sql" in (small / "target/docs/data/index.js").read_text()


def test_clean_leaves_state_and_tables_alone(small: Path) -> None:
    run(small, "compile")
    write(small, ".engine/state/x", "state")
    assert run(small, "clean") == 0
    assert not (small / "target").exists()
    assert (small / ".engine/state/x").exists()
    assert run(small / "models", "clean") == 1


def test_environment_variables_stand_for_options(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_TARGET", "nowhere")
    assert run(small, "parse") == 1
    monkeypatch.setenv("ENGINE_TARGET", "dev")
    assert run(small, "parse") == 0


def test_a_secret_reaches_neither_output_nor_artifacts(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENGINE_SECRET_NAME", "sesame-open-1")
    write(small, "models/marts/b.sql", "select 'sesame-open-1' as leaked from {{ ref('a') }} where")
    run(small, "compile")
    run(small, "docs", "generate")
    printed = capsys.readouterr()
    written = "".join(p.read_text() for p in (small / "target").rglob("*") if p.is_file())
    assert "sesame" not in printed.out + printed.err + written


def test_outside_a_project_the_way_in_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "ls") == 1
    assert "--project-dir" in capsys.readouterr().err


def names(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> set[str]:
    capsys.readouterr()
    assert run(root, "ls", "--output", "name", *arguments) == 0
    return set(capsys.readouterr().out.split())


def test_state_compares_with_an_earlier_manifest(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(small, "compile")
    (small / "target").rename(small / "before")
    state = ["--state", str(small / "before")]
    assert names(small, capsys, "-s", "state:modified", *state) == set()
    assert names(small, capsys, "-s", "state:unmodified", *state) == {"shop.events", "a", "b", "not_null_a_id"}
    write(small, "models/marts/b.sql", "-- a comment\nselect count( * ) as n from {{ ref('a') }}")
    assert names(small, capsys, "-s", "state:modified", *state) == set()
    write(small, "models/marts/b.sql", "select count(*) + 1 as n from {{ ref('a') }}")
    write(small, "models/c.sql", "select 1 as one")
    assert names(small, capsys, "-s", "state:modified", *state) == {"b", "c"}
    assert names(small, capsys, "-s", "state:modified.body", *state) == {"b", "c"}
    assert names(small, capsys, "-s", "state:new", *state) == {"c"}
    write(small, "models/marts/b.sql", "{{ config(tags=['x']) }}select count(*) as n from {{ ref('a') }}")
    assert names(small, capsys, "-s", "state:modified.config", *state) == {"b", "c"}
    assert names(small, capsys, "-s", "state:modified.body", *state) == {"c"}
    assert run(small, "ls", "-s", "state:modified") == 2
    assert run(small, "ls", "-s", "state:modified", "--state", str(small / "models")) == 2


def test_state_tells_what_spark_tells_apart_and_no_more(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names of fields have letter case; a column that is added upstream is nothing to a reader that does not use it."""
    readers = {
        "fields": "select to_json(struct(id as price)) as text from {{ ref('a') }}",
        "named": "select id from {{ ref('a') }}",
        "grouped": "select id, count(*) as n from {{ ref('a') }} group by id",
    }
    for name, text in readers.items():
        write(small, f"models/{name}.sql", text)
    run(small, "compile")
    (small / "target").rename(small / "before")
    state = ["--state", str(small / "before")]
    write(small, "models/fields.sql", readers["fields"].replace("price", "Price"))
    write(small, "models/named.sql", readers["named"].replace("select id from", "SELECT id\nFROM"))
    assert names(small, capsys, "-s", "state:modified.body", *state) == {"fields"}
    path = next(small.rglob("a.sql"))
    path.write_text(path.read_text().replace(" from ", ", 1 as added from "))
    assert names(small, capsys, "-s", "state:modified.body", *state) == {"a", "fields", "not_null_a_id"}


def test_result_selects_by_the_last_run(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        small,
        "target/run_results.json",
        '{"results": [{"unique_id": "model.b", "status": "error"}, {"unique_id": "model.a", "status": "unchanged"}]}',
    )
    assert names(small, capsys, "-s", "result:error") == {"b"}
    assert names(small, capsys, "-s", "result:error+ result:success") == {"a", "b"}


SELECTORS = """
selectors:
  - name: all_but_b
    definition:
      union:
        - path:models
        - exclude: [b]
  - name: above_b
    definition: {method: fqn, value: marts.b, parents: true, exclude: [source:shop]}
  - name: hot_and_a
    definition:
      intersection: [tag:hot, a]
"""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("all_but_b", {"a", "not_null_a_id"}),
        ("above_b", {"a", "b", "not_null_a_id"}),
        ("hot_and_a", {"a", "not_null_a_id"}),
    ],
)
def test_named_selections(small: Path, capsys: pytest.CaptureFixture[str], name: str, found: set[str]) -> None:
    write(small, "selectors.yml", SELECTORS)
    assert names(small, capsys, "--selector", name) == found


def test_a_selector_that_is_not_there_is_a_usage_error(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "ls", "--selector", "nightly") == 2
    write(small, "selectors.yml", SELECTORS)
    assert run(small, "ls", "--selector", "above") == 2
    assert "above_b" in capsys.readouterr().err
    assert run(small, "ls", "--selector", "above_b", "-s", "a") == 2


def test_what_compiles_and_cannot_run_yet_is_refused_before_anything_starts(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(small, "models/a.sql", "/*---\nmaterialized: table\npublish: on_tests_pass\n---*/\nselect id from {{ this }}")
    assert run(small, "compile") == 0
    capsys.readouterr()
    assert run(small, "build") == 1
    assert "models/a.sql:3:" in (err := capsys.readouterr().err)
    assert "[not-supported]" in err
    assert not (small / ".engine").exists()
