"""`engine sql` and `engine export duckdb` over tables that PyIceberg wrote: queries, names, the prompt, what is rejected."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import stat
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from engine.api import Project
from engine.cli import command_setup
from engine.cli.commands.sql_command import statements
from engine.cli.sql.lake_queries import LakeQueries
from engine.cli.sql.prompt import candidates
from engine.lake.lake_reader import Lake
from engine.lake.queries.duckdb_queries import DuckDBQueries
from tests.fixtures import read_rows
from tests.lab import REPOSITORY, Lab, writable_catalog

FIXTURE = Path(__file__).parent / "fixtures/queries.txt"
pytestmark = pytest.mark.slow

TABLE = "/*---\nmaterialized: table\n---*/\nselect 1 as id"
SALES = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "product": ["tea", "tea", None],
        "price": pa.array([Decimal("1.50"), Decimal("2.25"), None], pa.decimal128(8, 2)),
        "sold": pa.array([datetime(2024, 5, 1, 10, i, tzinfo=UTC) for i in range(3)], pa.timestamp("us", tz="UTC")),
        "tags": pa.array([["a", "b"], [], None], pa.list_(pa.string())),
    }
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shop")
    fill(Lab(root, None, None, schema="shop"))
    return root


@pytest.fixture
def shop(built: Path, capsys: pytest.CaptureFixture[str]) -> Lab:
    """A project with tables, for tests that only read them."""
    return Lab(built, None, capsys, schema="shop")


@pytest.fixture
def own_shop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lab:
    """The same for one test."""
    lab = Lab(tmp_path, None, capsys, schema="shop")
    fill(lab)
    return lab


def fill(lab: Lab) -> None:
    for name in ("sales", "unbuilt"):
        lab.model(name, TABLE)
    lab.model("seen", "/*---\nmaterialized: view\n---*/\nselect * from {{ ref('sales') }}")
    lab.write("macros/m.sql", "{% macro dear(c) %}{{ c }} > {{ var('least', 2) }}{% endmacro %}")
    lab.write(
        "sources/s.yml",
        'sources: [{name: raw, tables: [{name: sales, format: json, path: landing, schema: "id int"}]}]',
    )
    write(lab, "sales", SALES)
    write(lab, "sales__quarantine", pa.table({"reason": ["no number"]}))


def write(lab: Lab, name: str, rows: pa.Table, properties: dict[str, str] | None = None) -> None:
    catalog = writable_catalog(lab.lake_path)
    catalog.create_namespace_if_not_exists("shop")
    catalog.create_table_if_not_exists(f"shop.{name}", schema=rows.schema, properties=properties or {}).append(rows)


def answer(lab: Lab, query: str, *more: str) -> list[dict[str, object]]:
    result = lab.run("sql", query, "--output", "json", *more)
    assert result.code == 0, result.text
    return [json.loads(line) for line in result.out.splitlines()]


@pytest.mark.parametrize("name", ["sales", "{{ ref('sales') }}", "shop.sales", "lake.shop.sales", '"shop"."sales"'])
def test_a_table_has_the_names_that_it_has_elsewhere(shop: Lab, name: str) -> None:
    query = f"select product, sum(price) as price, count(*) as n, max(sold) as sold from {name} group by all order by n"
    assert answer(shop, query) == [
        {"product": None, "price": None, "n": 1, "sold": "2024-05-01 10:02:00"},
        {"product": "tea", "price": "3.75", "n": 2, "sold": "2024-05-01 10:01:00"},
    ]


def test_templates_are_those_of_the_project(shop: Lab) -> None:
    query = "select id from {{ ref('sales') }} where {{ dear('price') }}"
    assert answer(shop, query) == [{"id": 2}]
    assert answer(shop, f"{query} order by id", "--vars", "{least: 1}") == [{"id": 1}, {"id": 2}]
    for attack in ("{{ ''.__class__ }}", "{{ env_var('ENGINE_SECRET_X') }}", "{{ range(10**9) | list }}"):
        assert shop.run("sql", attack).codes()[0].startswith(("jinja-", "secret-", "template-")), attack


def test_the_next_query_reads_the_next_commit(own_shop: Lab) -> None:
    with opened(own_shop) as (reading, queries):
        count = "select count(*) as n from sales"
        assert reading.run(queries, count, None).rows == [(3,)]
        write(own_shop, "sales", SALES)
        assert reading.run(queries, count, None).rows == [(6,)]


@pytest.mark.parametrize("query", [sql for (sql,) in read_rows(FIXTURE, "answered", 1)])
def test_queries_give_what_duckdb_gives_over_the_whole_table(shop: Lab, query: str) -> None:
    """Only the needed columns and first rows are read, which must not show."""
    database = duckdb.connect()
    database.execute("set TimeZone = 'UTC'")
    database.register("rows", SALES)
    database.execute("create table sales as select * from rows")
    expected = database.execute(query).fetch_arrow_table()
    with opened(shop) as (reading, queries):
        for _ in range(2):
            found = reading.run(queries, query, None)
            assert (found.names, len(found.rows)) == (expected.column_names, expected.num_rows)
            assert [dict(zip(found.names, row, strict=True)) for row in found.rows] == expected.to_pylist()
            # The second time, after what another query has left.
            reading.run(queries, "select id from sales limit 1", None)


def test_only_the_needed_columns_and_rows_are_read(shop: Lab) -> None:
    with opened(shop) as (reading, queries):
        reading.run(queries, "select sum(id) from sales where product = 'tea'", None)
        (kept,) = queries._loaded.values()
        assert (kept.columns, kept.limit) == ({"id", "product"}, None)
        reading.run(queries, "select sold from sales limit 2", None)
        (kept,) = queries._loaded.values()
        assert (kept.columns, kept.limit) == ({"sold"}, 2)


REJECTED = {" ": "0 statements"} | dict(read_rows(FIXTURE, "rejected", 2))


@pytest.mark.parametrize("query", REJECTED)
def test_what_is_not_a_query_over_the_tables_is_rejected(shop: Lab, query: str) -> None:
    before = shop.snapshot("sales")
    result = shop.run("sql", query)
    assert result.codes() == ["sql-query"], result.text
    assert REJECTED[query] in result.events[0]["message"]
    assert shop.snapshot("sales") == before


def test_a_reference_that_cannot_be_read_is_shown_with_its_place(shop: Lab) -> None:
    (event,) = shop.run("sql", "select *\nfrom {{ ref('sale') }}").events
    assert (event["file"], event["line"], event["column"]) == ("query", 2, 6)
    assert "'sales'" in event["hint"]


def test_a_model_that_is_not_built_and_one_that_only_spark_reads(shop: Lab) -> None:
    assert shop.run("sql", "select * from unbuilt").codes() == ["table-missing"]
    assert shop.run("sql", "select * from {{ ref('unbuilt') }}").codes() == ["table-missing"]


def test_without_the_extra_the_command_names_it(shop: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_setup, "find_spec", lambda _: None)
    for command in (["sql", "select 1"], ["export", "duckdb", "x.duckdb"]):
        result = shop.run(*command)
        assert result.code == 2
        assert "pip install 'duckdb" in result.out


def test_statements_of_a_pipe(shop: Lab) -> None:
    done = piped(shop, "select 1 as a;\nselect count(*) as n\nfrom sales;\n\\d sales\nselect 2 as b")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if "|" in line][:6] == [
        "| a |", "|---|", "| 1 |", "| n |", "|---|", "| 3 |"
    ]  # fmt: skip
    assert "| price   | decimal(8,2)  |" in done.stdout
    failed = piped(shop, "select nope from sales;\nselect 2 as b")
    assert failed.returncode == 1
    assert "[sql-query]" in failed.stderr
    assert failed.stdout == ""


def piped(lab: Lab, text: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "engine", "sql", "--project-dir", str(lab.root)]
    return subprocess.run(
        arguments, input=text, capture_output=True, text=True, cwd=REPOSITORY, timeout=120, check=False
    )


def test_lines_become_statements() -> None:
    assert list(statements(["select 1;", "select", " 2;", "\\d", "", "select ';' as a", None, "select 4"])) == [
        "select 1;", "select\n 2;", "\\d", "select 4"
    ]  # fmt: skip


def test_names_are_completed(shop: Lab) -> None:
    with opened(shop) as (reading, _):
        assert candidates(reading, "select * from sa", "sa") == ["sales"]
        assert candidates(reading, "select * from shop.", "shop.") == ["shop.sales__quarantine"]
        assert candidates(reading, "select p", "p") == []
        assert candidates(reading, "from sales select p", "p") == ["price", "product"]
        assert candidates(reading, "from sales s select s.p", "s.p") == ["s.price", "s.product"]


def test_the_prompt_completes_cancels_and_keeps_a_history(shop: Lab, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with prompt(shop, cache) as screen:
        screen.until("sql> ")
        screen.type("select product, sum(price) as total\n")
        screen.until("  -> ")
        screen.type("from sal\t group by all order by total;\n")
        screen.until("tea     | 3.75")
        screen.until("sql> ")
        screen.type("select nope\n")
        screen.until("  -> ")
        # Python's readline misses a signal that comes between its prompt and its first wait: as a person, press again.
        screen.until("sql> ", press="\x03")
        screen.type("select nope from sales;\n")
        screen.until("[sql-query]")
        # One of some seconds, which is interrupted.
        screen.type("select count(*) from range(10000000) a, range(100000) b where a.range * b.range = 7;\n")
        time.sleep(1)
        screen.type("\x03")
        screen.until("Cancelled")
        screen.type("select 41 + 1 as answer;\n")
        screen.until("42")
        screen.type("\\q\n")
        assert screen.process.wait(120) == 0
    (history,) = cache.rglob("sql_history")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    lines = history.read_text().splitlines()
    assert lines[0] == "select product, sum(price) as total"
    assert lines[-1] == "\\q"
    with prompt(shop, cache) as screen:
        screen.until("sql> ")
        # Up twice: the line before \q.
        screen.type("\x1b[A\x1b[A\n")
        screen.until("42")
        # The end of the input means something once the prompt reads it.
        screen.until("sql> ")
        screen.type("\x04")
        assert screen.process.wait(120) == 0
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_a_history_that_somebody_else_may_have_written_is_not_read(tmp_path: Path) -> None:
    from engine.cli.sql.prompt import _read_history, _write_history

    file = tmp_path / "sql_history"
    _write_history(file, ["select 1;", None, ""])
    assert _read_history(file) == ["select 1;"]
    file.chmod(0o622)
    assert _read_history(file) == []
    other = tmp_path / "other"
    other.write_text("kept")
    file.unlink()
    file.symlink_to(other)
    assert _read_history(file) == []
    _write_history(file, ["select 2;"])
    assert other.read_text() == "kept"
    assert not file.is_symlink()


def test_tables_are_copied_to_a_duckdb_file(own_shop: Lab, tmp_path: Path) -> None:
    file = tmp_path / "out" / "shop.duckdb"
    file.parent.mkdir()
    first = own_shop.run("export", "duckdb", str(file))
    assert first.code == 0, first.text
    with duckdb.connect(str(file), read_only=True) as database:
        assert database.execute("select product, price from sales order by id").fetchall() == [
            ("tea", Decimal("1.50")), ("tea", Decimal("2.25")), (None, None)
        ]  # fmt: skip
        assert database.execute("select table_name, snapshot from headrace_export").fetchall() == [
            ("sales", own_shop.snapshot("sales"))
        ]
    write(own_shop, "sales", SALES)
    again = own_shop.run("export", "duckdb", str(file))
    assert (again.code, "--replace" in again.out) == (2, True)
    assert own_shop.run("export", "duckdb", str(file), "--replace", "-s", "sales").code == 0
    with duckdb.connect(str(file), read_only=True) as database:
        assert database.execute("select count(*) from sales").fetchone() == (6,)
    assert [path.name for path in file.parent.iterdir()] == ["shop.duckdb"]


@pytest.mark.parametrize("text", [b"caf\xe9", b"\xff"])
def test_text_that_is_not_utf8_is_shown_and_rejected_by_duckdb(own_shop: Lab, tmp_path: Path, text: bytes) -> None:
    binary = pa.array([b"tea", text], pa.binary())
    strings = pa.Array.from_buffers(pa.string(), 2, binary.buffers())
    nested = pa.StructArray.from_arrays([strings], ["name"])
    rows = pa.table({"id": [1, 2], "product": strings, "details": nested})
    # PyIceberg cannot note the bounds of such text.
    write(own_shop, "unbuilt", rows, {"write.metadata.metrics.default": "none"})
    shown = own_shop.run("show", "unbuilt", "--table", "--output", "json")
    assert shown.code == 0, shown.text
    replaced = text.decode("utf-8", "replace")
    last = json.loads(shown.out.splitlines()[-1])
    assert (last["product"], last["details"]) == (replaced, {"name": replaced})
    for arguments in (("sql", "select product from unbuilt"), ("export", "duckdb", str(tmp_path / "x.duckdb"))):
        rejected = own_shop.run(*arguments)
        assert rejected.codes() == ["text-not-utf8"], rejected.text
        assert "column 'product' of table 'unbuilt'" in rejected.text
    assert answer(own_shop, "select id from unbuilt order by id") == [{"id": 1}, {"id": 2}]


def test_an_export_goes_through_no_link_of_the_project_and_leaves_nothing_half_written(
    own_shop: Lab, tmp_path: Path
) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (own_shop.root / "out").symlink_to(outside)
    assert own_shop.run("export", "duckdb", "out/x.duckdb").code == 2
    assert list(outside.iterdir()) == []
    assert own_shop.run("export", "duckdb", "missing/x.duckdb").code == 2
    for data in own_shop.lake_path.rglob("*.parquet"):
        data.write_bytes(b"PAR1 no more")
    failed = own_shop.run("export", "duckdb", "x.duckdb")
    assert failed.codes() == ["catalog-unusable"]
    assert [path.name for path in own_shop.root.glob("*headrace*")] + [
        path.name for path in own_shop.root.glob("x*")
    ] == []


@contextmanager
def opened(lab: Lab) -> Iterator[tuple[LakeQueries, DuckDBQueries]]:
    """Queries over the tables of a project."""
    project = Project(lab.root)
    compiled = project.compile()
    reading = LakeQueries(project, compiled, Lake(compiled.target.catalog))
    with reading.database() as queries:
        yield reading, queries


class Typing:
    """A terminal, what is typed into it and what comes."""

    def __init__(self, terminal: int, process: subprocess.Popen[bytes]) -> None:
        self._terminal, self.process, self._text = terminal, process, ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def until(self, text: str, press: str = "") -> None:
        """Wait for a text behind the one that was waited for before; press a key every two seconds until it comes."""
        end, pressed = time.monotonic() + 90, 0.0
        while text not in self._text:
            assert time.monotonic() < end, self._text
            if press and time.monotonic() - pressed > 2:
                self.type(press)
                pressed = time.monotonic()
            if select.select([self._terminal], [], [], 0.2)[0]:
                self._text += os.read(self._terminal, 65536).decode(errors="replace")
        self._text = self._text.partition(text)[2]


@contextmanager
def prompt(lab: Lab, cache: Path) -> Iterator[Typing]:
    """`engine sql` in a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "engine", "sql", "--project-dir", str(lab.root)],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=REPOSITORY, start_new_session=True,
        env={**os.environ, "ENGINE_CACHE": str(cache), "TERM": "xterm", "INPUTRC": "/dev/null"},
        # Ctrl-C is a signal to the processes whose terminal it is.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Typing(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
