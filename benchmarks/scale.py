"""What grows with models, with the distance of a catalog, with commits and with workers.

    python -m benchmarks.scale [--only local,plan,batches,commits,workers] [--small]

`local`: 100 and 1,000 streaming tables of a local catalog planned with nothing new; they are made as those of `plan`.
`plan`: 200 and 2,000 streaming tables of a REST catalog planned with nothing new, near and with 50 ms before each
answer of the catalog. One table is built; the others are registered in the catalog with its metadata, and get copies of
its state. `batches`: requests to the catalog and seconds of a micro-batch, near and with 50 ms. `commits`: how many
commits an hour SQLite, PostgreSQL and the REST server take from one and from four writers, each with its own table.
`workers`: 10^6 records in an hourly window with one to four threads of Spark. Results are kept as JSON in
benchmarks/results/.

The REST server is Iceberg's reference server over SQLite, on the same machine as everything else.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks._commands import Measured, keep, prepare, timed, write_events, write_project
from benchmarks.streams import APPEND, UPSERT, WINDOW
from engine.compile.nodes.fingerprint import fingerprint
from engine.lake.catalog import catalog_settings
from engine.spark.jars import jar_paths, jar_sets
from engine.spark.java import find_java
from engine.spark.session import SessionSettings, open_session
from tests.services import iceberg_rest, postgres
from tests.services.iceberg_rest import Door, RestServer

DELAY = 0.05
_FIRST = "table_0000"
_PROJECT = """\
name: bench
targets:
  dev:
    schema: main
    catalog: {{type: rest, name: lake, uri: "{uri}", warehouse: "{warehouse}"}}
    spark: {{master: "{master}"}}
"""
_WRITERS = (1, 4)
# As Headrace sets them: metadata of a table that takes many commits does not grow.
_BOUNDED = "'write.metadata.delete-after-commit.enabled'='true', 'write.metadata.previous-versions-max'='10'"


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan in which nothing is new.

    Attributes:
        models: how many.
        delay: seconds before each answer of the catalog; None: no proxy that counts.
        measured: the whole command.
        requests: to the catalog, by what is asked for.
    """

    models: int
    delay: float | None
    measured: Measured
    requests: dict[str, int]


@dataclass(frozen=True, slots=True)
class Batch:
    """What a further micro-batch costs.

    Attributes:
        work: what it does.
        delay: seconds before each answer of the catalog.
        seconds: more of the whole build for each micro-batch.
        requests: to the catalog for each micro-batch, by what is asked for.
    """

    work: str
    delay: float
    seconds: float
    requests: dict[str, float]


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits that change one property of a table.

    Attributes:
        catalog: the kind.
        writers: threads, each with a table of its own.
        an_hour: at the rate of some seconds.
    """

    catalog: str
    writers: int
    an_hour: int


@dataclass(frozen=True, slots=True)
class Workers:
    """A build with some threads of Spark."""

    workers: int
    measured: Measured


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="local,plan,batches,commits,workers")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    prepare()
    works: dict[str, Callable[[bool], Iterator[Any]]] = {
        "local": _local_plans, "plan": _plans, "batches": _batches, "commits": _commits, "workers": _workers,
    }  # fmt: skip
    for name in options.only.split(","):
        results = []
        for result in works[name](options.small):
            print(json.dumps(asdict(result)), flush=True)
            results.append(result)
        if not options.small:
            keep(f"scale-{name}", results, 1)


def _plans(small: bool) -> Iterator[Plan]:
    with tempfile.TemporaryDirectory() as folder, iceberg_rest.running(Path(folder, "server")) as server:
        root = Path(folder, "project")
        _project(root, server, server.url, {_FIRST: APPEND})
        write_events(root, 1, 200)
        _engine(root, "build")
        for first, size in ((1, 20), (20, 40)) if small else ((1, 200), (200, 2000)):
            _clone(root, server, range(first, size))
            _engine(root, "compile")
            for delay in (None, 0.0, DELAY):
                yield _planned(root, server, size, delay)


def _local_plans(small: bool) -> Iterator[Plan]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        root.mkdir()
        write_project(root, {_FIRST: APPEND})
        write_events(root, 1, 200)
        _engine(root, "build")
        for first, size in ((1, 20), (20, 40)) if small else ((1, 100), (100, 1000)):
            _clone_local(root, range(first, size))
            _engine(root, "compile")
            for _ in range(5):
                yield Plan(size, None, _engine(root, "plan"), {})


def _clone_local(root: Path, numbers: range) -> None:
    """More tables, each with metadata and a state of its own."""
    lake, states = root / ".engine/lake", root / ".engine/state/lake/main"
    with sqlite3.connect(lake / "catalog.db") as database:
        query = "SELECT metadata_location, previous_metadata_location FROM iceberg_tables WHERE table_name = ?"
        places = database.execute(query, (_FIRST,)).fetchone()
        for number in numbers:
            name, own = f"table_{number:04}", str(uuid.uuid4())
            metadata = lake / "warehouse/main" / _FIRST / "metadata"
            (lake / "warehouse/main" / name / "metadata").mkdir(parents=True)
            for path in metadata.glob("*.metadata.json"):
                content = json.loads(path.read_text(encoding="utf-8"))
                uuid_before, location = content["table-uuid"], content["location"].replace(_FIRST, name)
                text = json.dumps({**content, "table-uuid": own, "location": location})
                (lake / "warehouse/main" / name / "metadata" / path.name).write_text(text, encoding="utf-8")
            row = ("lake", "main", name, *(place and place.replace(_FIRST, name) for place in places), "TABLE")
            database.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", row)
            shutil.copy(root / f"models/{_FIRST}.sql", root / f"models/{name}.sql")
            shutil.copytree(states / _FIRST, states / name)
            for path in (states / name).rglob("*.json"):
                path.write_text(path.read_text(encoding="utf-8").replace(uuid_before, own), encoding="utf-8")
            _rename(states / name, name)


def _planned(root: Path, server: RestServer, size: int, delay: float | None) -> Plan:
    with Door(server.url, delay=delay or 0.0).serving() as door:
        _retarget(root, server, server.url if delay is None else door.url)
        _engine(root, "compile")
        door.asked.clear()
        measured = _engine(root, "plan")
        return Plan(size, delay, measured, dict(Counter(map(_kind, door.asked))))


def _clone(root: Path, server: RestServer, numbers: range) -> None:
    """More tables with the metadata and the state of the first one."""
    with urllib.request.urlopen(f"{server.url}/v1/namespaces/main/tables/{_FIRST}") as answer:
        location = json.load(answer)["metadata-location"]
    states = root / ".engine/state/lake/main"
    for number in numbers:
        name = f"table_{number:04}"
        body = json.dumps({"name": name, "metadata-location": location}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{server.url}/v1/namespaces/main/register", body, headers)
        urllib.request.urlopen(request).close()
        shutil.copy(root / f"models/{_FIRST}.sql", root / f"models/{name}.sql")
        shutil.copytree(states / _FIRST, states / name)
        _rename(states / name, name)


def _rename(state: Path, name: str) -> None:
    """Make the copy of a state that of another model; the fingerprint of a query has the name of its table in it."""
    (facts,) = state.rglob("facts/*.json")
    found = json.loads(facts.read_text(encoding="utf-8").replace(_FIRST, name))
    facts.unlink()
    own = fingerprint(found)
    facts.with_name(f"{own}.json").write_text(json.dumps(found), encoding="utf-8")
    for path in state.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(_FIRST, name).replace(facts.stem, own), encoding="utf-8")


def _kind(asked: str) -> str:
    """GET namespaces/../tables/.. and the like: what is asked for, without names."""
    method, _, path = asked.partition(" ")
    parts = path.partition("?")[0].split("/")[2:]
    shown = [".." if position % 2 else part for position, part in enumerate(parts)]
    return f"{method} {'/'.join(shown)}"


def _batches(small: bool) -> Iterator[Batch]:
    few, many = 2, 5 if small else 22
    works = {"append": APPEND.replace("[shop.events]", "{shop.events: {max_files_per_trigger: 1}}")}
    works["upsert"] = UPSERT.replace("[shop.events]", "{shop.events: {max_files_per_trigger: 1}}")
    for work, text in works.items():
        for delay in (0.0, DELAY):
            (least, asked), (most, more) = (_counted(text, files, delay) for files in (few, many))
            each = {kind: round((more[kind] - asked[kind]) / (many - few), 2) for kind in sorted(more)}
            yield Batch(
                work, delay, (most.seconds - least.seconds) / (many - few), {k: n for k, n in each.items() if n}
            )


def _counted(text: str, files: int, delay: float) -> tuple[Measured, Counter[str]]:
    with tempfile.TemporaryDirectory() as folder, iceberg_rest.running(Path(folder, "server")) as server:
        root = Path(folder, "project")
        with Door(server.url, delay=delay).serving() as door:
            _project(root, server, door.url, {"work": text})
            write_events(root, files, 200)
            return _engine(root, "build"), Counter(map(_kind, door.asked))


def _commits(small: bool) -> Iterator[Commits]:
    seconds = 2.0 if small else 15.0
    with (
        tempfile.TemporaryDirectory() as folder,
        iceberg_rest.running(Path(folder, "server")) as rest,
        postgres.running() as database,
    ):
        path = Path(folder)
        jdbc = {"uri": database.jdbc, "jdbc.user": postgres.USER, "jdbc.password": database.password}
        catalogs: dict[str, Any] = {
            "sqlite": SimpleNamespace(type="sqlite", name="sqlite", path=path / "lake"),
            "jdbc": _config("jdbc", {**jdbc, "warehouse": (path / "jdbc").as_uri()}, path),
            "rest": _config("rest", {"uri": rest.url, "warehouse": rest.warehouse.as_uri()}, path),
        }
        catalog_settings.prepare(catalogs["sqlite"])
        conf = {key: value for one in catalogs.values() for key, value in catalog_settings.spark_conf(one).items()}
        java = find_java()
        jars = jar_paths(jar_sets(), fetch=True, java=java)
        with open_session(SessionSettings(java, path / "logs", jars, "local[2]", conf=conf)) as session:
            for name in catalogs:
                for writers in _WRITERS:
                    yield Commits(name, writers, _rate(session.spark, name, writers, seconds))


def _config(kind: str, keys: dict[str, str], path: Path) -> Any:
    from engine.compile import Catalog

    return Catalog(kind, kind, path, keys)


def _rate(spark: Any, catalog: str, writers: int, seconds: float) -> int:
    """Commits an hour through Iceberg's own interface, without queries."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.main")
    jvm, counts = spark.sparkContext._jvm, [0] * writers  # noqa: SLF001 - Iceberg has no Python interface in Spark
    tables = []
    for number in range(writers):
        name = f"{catalog}.main.t{writers}_{number}"
        spark.sql(f"CREATE TABLE {name} (id bigint) USING iceberg TBLPROPERTIES ({_BOUNDED})")
        tables.append(jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name))  # noqa: SLF001
    end = time.monotonic() + seconds

    def write(number: int) -> None:
        while time.monotonic() < end:
            tables[number].updateProperties().set("bench", str(counts[number])).commit()
            counts[number] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return round(sum(counts) / seconds * 3600)


def _workers(small: bool) -> Iterator[Workers]:
    rows = 10**4 if small else 10**6
    for workers in (1, 2, 3, 4):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            project = f"name: bench\ntargets:\n  dev: {{schema: main, spark: {{master: 'local[{workers}]'}}}}\n"
            write_project(root, {"hourly": WINDOW}, project)
            write_events(root, 12, rows // 12)
            yield Workers(workers, _engine(root, "build"))


def _project(root: Path, server: RestServer, uri: str, models: dict[str, str]) -> None:
    root.mkdir()
    write_project(root, models)
    _retarget(root, server, uri)


def _retarget(root: Path, server: RestServer, uri: str) -> None:
    text = _PROJECT.format(uri=uri, warehouse=server.warehouse.as_uri(), master="local[2]")
    (root / "project.yml").write_text(text, encoding="utf-8")


def _engine(root: Path, command: str) -> Measured:
    return timed([sys.executable, "-m", "engine", command, "--project-dir", str(root)])


if __name__ == "__main__":
    main()
