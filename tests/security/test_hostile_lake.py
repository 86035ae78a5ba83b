"""A lake that somebody else made: reading its tables runs nothing, and reads nothing outside its warehouse."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.lake.catalog.catalog_settings import CatalogConfig, prepare
from engine.lake.lake_reader import Lake
from tests.lab import REPOSITORY, Lab, writable_catalog
from tests.projects import LAB as PROJECT

pytestmark = pytest.mark.slow

PLANTED = """
from pathlib import Path
Path({mark!r}).touch()
class Run:
    def __init__(self, *_, **__): Path({mark!r}).touch()
"""
# What answers from a table's files without Java, and what each shows of a table that it reads.
READERS = (("show", "base", "--table"), ("docs", "generate"), ("debug",), ("ls",))


class Hostile(Lab):
    """A project whose lake holds the table `base` with two rows."""

    @property
    def database(self) -> Path:
        return self.lake_path / "catalog.db"

    @property
    def metadata(self) -> Path:
        """The current metadata file of `base`."""
        return Path(self.cell("metadata_location").removeprefix("file://"))

    def cell(self, column: str) -> str:
        with closing(sqlite3.connect(self.database)) as connection:
            return str(connection.execute(f"select {column} from iceberg_tables").fetchone()[0])

    def sql(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.database)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    def point(self, location: str) -> None:
        """Let the catalog say that the table's metadata are there."""
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute("update iceberg_tables set metadata_location = ?", (location,))

    def edit(self, **changes: Any) -> None:
        """Change keys of the metadata file."""
        path = self.metadata
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Hostile:
    lab = Hostile(tmp_path / "project", None, capsys)
    lab.write("project.yml", PROJECT)
    lab.model("base", "/*---\nmaterialized: table\n---*/\nselect 1 as id")
    lab.model("m", "/*---\nmaterialized: table\n---*/\nselect id from {{ ref('base') }}")
    prepare(_config(lab))
    catalog = writable_catalog(lab.lake_path)
    catalog.create_namespace("s")
    rows = pa.table({"id": pa.array([1, 2], pa.int32())})
    catalog.create_table("s.base", rows.schema).append(rows)
    catalog.close()
    return lab


def _config(lab: Lab) -> CatalogConfig:
    from types import SimpleNamespace

    return SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=lab.lake_path)


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that `planted.Run` makes: a module that can be imported from here, and by commands started from here."""
    mark = tmp_path / "ran"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "planted.py").write_text(PLANTED.format(mark=str(mark)))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    monkeypatch.delitem(sys.modules, "planted", raising=False)
    return mark


def _command(lab: Lab, *arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, started in a folder."""
    code = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\nfrom engine.cli.main import invoke\nsys.exit(invoke(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments, "--project-dir", str(lab.root)],
        capture_output=True, text=True, cwd=cwd, env={**os.environ, **environment}, check=False, timeout=120,
    )  # fmt: skip


def test_the_table_is_read(lab: Hostile) -> None:
    assert "2" in lab.run("show", "base", "--table").out
    assert lab.run("docs", "generate").code == 0


@pytest.mark.parametrize("command", [["show", "base", "--table"], ["docs", "generate"]], ids=" ".join)
def test_a_configuration_of_pyiceberg_in_the_current_folder_is_not_read(
    lab: Hostile, mark: Path, command: list[str]
) -> None:
    lab.write(".pyiceberg.yaml", "catalog:\n  lake:\n    py-io-impl: planted.Run\n    type: in-memory\n")
    done = _command(lab, *command, cwd=lab.root)
    assert (done.returncode, mark.exists()) == (0, False), done.stderr


def test_a_configuration_of_pyiceberg_that_is_no_yaml_harms_nothing(lab: Hostile) -> None:
    lab.write(".pyiceberg.yaml", "max-workers: [\n")
    done = _command(lab, "show", "base", "--table", cwd=lab.root)
    assert done.returncode == 0, done.stderr


def test_the_environment_does_not_configure_pyiceberg(lab: Hostile, mark: Path, tmp_path: Path) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text("catalog:\n  lake:\n    py-io-impl: planted.Run\n")
    variables = {
        "PYICEBERG_CATALOG__LAKE__PY_IO_IMPL": "planted.Run",
        "PYICEBERG_CATALOG__LAKE__ECHO": "true",
        "PYICEBERG_MAX_WORKERS": "none",
        "PYICEBERG_MANIFEST_CACHE_SIZE": "-1",
        "PYICEBERG_HOME": str(tmp_path),
    }
    done = _command(lab, "show", "base", "--table", cwd=lab.root, **variables)
    assert (done.returncode, mark.exists()) == (0, False), done.stderr


@pytest.mark.parametrize(
    "key", ["py-io-impl", "py-catalog-impl", "write.py-location-provider.impl", "io-impl", "s3.signer"]
)
@pytest.mark.parametrize("command", [["show", "base", "--table"], ["docs", "generate"]], ids=" ".join)
def test_properties_of_a_table_choose_no_code(lab: Hostile, mark: Path, command: list[str], key: str) -> None:
    lab.edit(properties={key: "planted.Run"})
    assert lab.run(*command).code == 0
    assert not mark.exists()


def test_properties_of_a_table_choose_no_file_system(lab: Hostile) -> None:
    lab.edit(properties={"DEFAULT_SCHEME": "s3", "DEFAULT_NETLOC": "elsewhere", "s3.endpoint": "http://127.0.0.1:9"})
    assert lab.run("show", "base", "--table").code == 0


class Listener:
    """A socket that counts who connects to it."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def close(self) -> None:
        with suppress(BlockingIOError):
            self.calls.append(self._socket.accept()[1])
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()
    assert listener.calls == []


OUTSIDE = {
    "a file of the machine": "/etc/passwd",
    "its address": "file:///etc/passwd",
    "through ..": "file://{warehouse}/../../../../secret.metadata.json",
    "through a folder that is not there": "file://{warehouse}/%2e%2e/../../../../../secret.metadata.json",
    "a web address": "http://127.0.0.1:{port}/v1.metadata.json",
    "a bucket": "s3://bucket/v1.metadata.json",
    "another host": "file://elsewhere/etc/passwd",
    "a relative path": "secret.metadata.json",
    "through a link": "file://{warehouse}/s/link/secret.metadata.json",
    "a device": "file:///dev/zero",
    "a scheme that nobody knows": "gopher://127.0.0.1/",
    "with a NUL": "file://{warehouse}/a\\0b",
    "no address": "[",
    "a broken address": "file://[/",
}


@pytest.mark.parametrize("location", OUTSIDE.values(), ids=OUTSIDE)
def test_metadata_outside_the_warehouse_are_not_read(
    lab: Hostile, location: str, caplog: pytest.LogCaptureFixture, listener: Listener
) -> None:
    secret = lab.root.parent / "secret.metadata.json"
    secret.write_text(lab.metadata.read_text())
    (lab.lake_path / "warehouse" / "s" / "link").symlink_to(secret.parent)
    lab.point(location.format(warehouse=lab.lake_path / "warehouse", port=listener.port).replace("\\0", "\0"))
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["lake-outside"]), shown.text
    assert "root:" not in shown.text
    assert lab.run("docs", "generate").code == 0
    assert "the tables cannot be shown" in caplog.text


def test_a_location_of_the_table_elsewhere_is_rejected(lab: Hostile, tmp_path: Path) -> None:
    lab.edit(location=tmp_path.as_uri())
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["lake-outside"]), shown.text


def test_a_manifest_list_outside_the_warehouse_is_not_read(lab: Hostile, tmp_path: Path) -> None:
    said = json.loads(lab.metadata.read_text())
    inside = Path(said["snapshots"][0]["manifest-list"].removeprefix("file://"))
    outside = tmp_path / inside.name
    outside.write_bytes(inside.read_bytes())
    lab.edit(snapshots=[{**said["snapshots"][0], "manifest-list": outside.as_uri()}])
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["lake-outside"]), shown.text


@pytest.mark.parametrize("part", ["*-m0.avro", "*.parquet"], ids=["manifest", "data file"])
def test_a_file_of_a_table_that_is_a_link_out_of_the_warehouse_is_not_read(
    lab: Hostile, tmp_path: Path, part: str
) -> None:
    (inside,) = (lab.lake_path / "warehouse").rglob(part)
    inside.replace(tmp_path / inside.name)
    inside.symlink_to(tmp_path / inside.name)
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["lake-outside"]), shown.text


def test_a_data_file_outside_the_warehouse_is_not_read(lab: Hostile, tmp_path: Path) -> None:
    """The manifest names it: the path in the Avro file is replaced by one of the same length."""
    (data,) = (lab.lake_path / "warehouse").rglob("*.parquet")
    inside = data.as_uri()
    outside = (tmp_path / "x").as_uri()
    outside += "y" * (len(inside) - len(outside))
    Path(outside.removeprefix("file://")).write_bytes(data.read_bytes())
    _rewrite(next((lab.lake_path / "warehouse").rglob("*-m0.avro")), inside, outside)
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["lake-outside"]), shown.text


def _rewrite(manifest: Path, before: str, after: str) -> None:
    """Replace a text in the records of an Avro file, whose blocks may be compressed."""
    import fastavro

    with manifest.open("rb") as stream:
        reader = fastavro.reader(stream)
        schema, rows = reader.writer_schema, list(reader)
        extra = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    for row in rows:
        assert row["data_file"]["file_path"] == before
        row["data_file"]["file_path"] = after
    with manifest.open("wb") as stream:
        fastavro.writer(stream, schema, rows, metadata=extra)


def test_earlier_metadata_outside_the_warehouse_are_not_read(lab: Hostile, tmp_path: Path) -> None:
    earlier = tmp_path / "v0.metadata.json"
    earlier.write_text(lab.metadata.read_text())
    said = json.loads(lab.metadata.read_text())
    lost = said["snapshots"][0]["snapshot-id"]
    log = [{"metadata-file": earlier.as_uri(), "timestamp-ms": 1}]
    child = {**said["snapshots"][0], "snapshot-id": 7, "parent-snapshot-id": lost}
    refs = {"main": {"snapshot-id": 7, "type": "branch"}}
    lab.edit(**{"metadata-log": log, "snapshots": [child], "current-snapshot-id": 7, "refs": refs})
    facts = Lake(_config(lab)).table("s", "base", back_to=lost)
    assert facts is not None
    assert [s.id for s in facts.history] == [7]


@pytest.mark.parametrize("name", ["catalog.db", "warehouse"])
def test_a_catalog_or_a_warehouse_that_is_a_link_is_rejected(lab: Hostile, tmp_path: Path, name: str) -> None:
    (lab.lake_path / name).replace(tmp_path / name)
    (lab.lake_path / name).symlink_to(tmp_path / name)
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["lake-outside"]), shown.text


@pytest.mark.parametrize("beside", ["catalog.db-wal", "catalog.db-shm", "catalog.db-journal"])
def test_a_link_beside_the_catalog_is_neither_followed_nor_made_real(lab: Hostile, tmp_path: Path, beside: str) -> None:
    lab.sql("pragma journal_mode = wal")
    (lab.lake_path / beside).symlink_to(tmp_path / "made")
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["lake-outside"]), shown.text
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("command", READERS, ids=" ".join)
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_reading_writes_nothing_into_the_lake(lab: Hostile, mode: str, command: tuple[str, ...]) -> None:
    lab.sql(f"pragma journal_mode = {mode}")
    (lab.lake_path / "catalog.db").chmod(0o400)
    before = _state(lab.lake_path)
    result = lab.run(*command)
    # `debug` ends with 1 where no jar was downloaded yet, and for no other reason.
    failed = {line.split()[1] for line in result.out.splitlines() if line.startswith("ERROR")}
    assert failed <= {"jars"}, result.text
    assert result.code == len(failed), result.text
    assert _state(lab.lake_path) == before


@pytest.mark.parametrize("shared", [True, False], ids=["beside its index", "without its index"])
def test_commits_of_a_run_that_was_killed_are_seen_and_nothing_is_written(lab: Hostile, shared: bool) -> None:
    lab.sql("pragma journal_mode = wal")
    with closing(sqlite3.connect(lab.database)) as connection:
        connection.execute("update iceberg_tables set table_name = 'renamed'")
        connection.commit()
        kept = {path.name: path.read_bytes() for path in lab.lake_path.glob("catalog.db*")}
    for name, content in kept.items():
        if shared or not name.endswith("-shm"):
            (lab.lake_path / name).write_bytes(content)
    before = _state(lab.lake_path)
    assert len(before) > (3 if shared else 2)
    assert Lake(_config(lab)).names("s") == ("renamed",)
    assert _state(lab.lake_path) == before


def _state(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted([folder, *folder.rglob("*")])
    }


ENDLESS = (
    "create view iceberg_tables as with recursive r(n) as (select 1 union all select n + 1 from r) select 'lake' as"
    " catalog_name, 's' as table_namespace, 'base' as table_name, n as metadata_location, 'TABLE' as iceberg_type from r"
)
COMPUTED = (
    "create table iceberg_tables (catalog_name text, table_namespace text, table_name text, iceberg_type text,"
    " metadata_location text generated always as (hex(zeroblob(90000))))"
)
HOSTILE_SCHEMAS = {
    "a view": ["alter table iceberg_tables rename to t", "create view iceberg_tables as select * from t"],
    "an endless view": ["drop table iceberg_tables", ENDLESS],
    "a virtual table": [
        "drop table iceberg_tables",
        "create virtual table iceberg_tables using fts5(catalog_name, table_name)",
    ],
    "other columns": ["drop table iceberg_tables", "create table iceberg_tables (x)"],
    "a blob": ["update iceberg_tables set metadata_location = x'ff00ff'"],
    "a number": ["update iceberg_tables set metadata_location = 9e999"],
    "no location": ["update iceberg_tables set metadata_location = null"],
    "computed columns": [
        "drop table iceberg_tables",
        COMPUTED,
        "insert into iceberg_tables values ('lake', 's', 'base', 'TABLE')",
    ],
}


@pytest.mark.parametrize("statements", HOSTILE_SCHEMAS.values(), ids=HOSTILE_SCHEMAS)
def test_a_catalog_that_is_no_plain_catalog_is_a_diagnostic(
    lab: Hostile, statements: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    lab.sql(*statements)
    shown = lab.run("show", "base", "--table")
    assert shown.code == 1, shown.text
    assert shown.codes() in (["catalog-unusable"], ["lake-outside"], ["table-missing"]), shown.text
    assert lab.run("docs", "generate").code == 0


def test_a_catalog_with_damaged_pages_is_a_diagnostic(lab: Hostile) -> None:
    content = bytearray(lab.database.read_bytes())
    content[120:] = bytes(7 * i % 256 for i in range(len(content) - 120))
    lab.database.write_bytes(content)
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["catalog-unusable"]), shown.text


DAMAGED_METADATA = {
    "empty": b"",
    "no JSON": b"\x00\xff",
    "another JSON": b'{"secret": "value"}',
    "a list": b"[1]",
    "deep": b"[" * 100_000,
    "a long number": b'{"format-version": ' + b"9" * 5_000 + b"}",
}


@pytest.mark.parametrize("content", DAMAGED_METADATA.values(), ids=DAMAGED_METADATA)
def test_damaged_metadata_are_a_diagnostic_that_shows_none_of_them(
    lab: Hostile, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    lab.metadata.write_bytes(content)
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["catalog-unusable"]), shown.text
    assert "value" not in shown.text
    assert lab.run("docs", "generate").code == 0


@pytest.mark.parametrize("part", ["snap-*.avro", "*-m0.avro", "*.parquet"])
@pytest.mark.parametrize("content", [b"", b"Obj\x01", b"\xff" * 200], ids=["empty", "cut off", "noise"])
def test_damaged_files_of_a_table_are_a_diagnostic(lab: Hostile, part: str, content: bytes) -> None:
    (path,) = (lab.lake_path / "warehouse").rglob(part)
    path.write_bytes(content)
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["catalog-unusable"]), shown.text


def test_metadata_that_unpack_to_too_much_are_a_diagnostic(lab: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    monkeypatch.setattr("engine.lake.catalog.metadata_document.METADATA_BYTES", 10_000, raising=False)
    path = lab.metadata.with_name("00009-x.gz.metadata.json")
    path.write_bytes(gzip.compress(b" " * 20_000 + lab.metadata.read_bytes()))
    lab.point(path.as_uri())
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["catalog-unusable"]), shown.text


def test_a_pipe_in_the_warehouse_does_not_stop_a_command(lab: Hostile) -> None:
    path = lab.metadata.with_name("pipe.metadata.json")
    os.mkfifo(path)
    lab.point(path.as_uri())
    shown = lab.run("show", "base", "--table")
    assert (shown.code, shown.codes()) == (1, ["catalog-unusable"]), shown.text
