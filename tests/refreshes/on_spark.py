"""The same random queries and changes on Spark and Iceberg: tables that builds refresh, and what a full computation gives.

Another program changes the inputs: rows, columns that are not read, files (compaction), snapshots (expiry). Tables have
partitions or none, format 2 or 3, and delete files or rewritten files. A part of the builds is killed at a random point;
the next one must end in the same rows.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from engine import kill_points
from engine.compile.refresh.changed_keys import follow_changes
from engine.compile.refresh.query_block import NotFollowedError
from engine.lake.changes import arrow_changes, file_replacement
from engine.runtime.batch import affected_partitions, changed_inputs
from tests.fault_injection.points import kill
from tests.lab import Lab
from tests.refreshes.queries import TABLES, query
from tests.refreshes.renamings import renamings
from tests.refreshes.written import Written

_COLUMNS = "rid int, id int, k int, g int, v int, note string"
_NAMES = tuple(one.split()[0] for one in _COLUMNS.split(", "))
_STEPS = 5


@dataclass(slots=True)
class World:
    """A project whose inputs others change.

    Attributes:
        lab: the project.
        chance: of everything.
        wide: its queries name, by lists and stars, all columns of a table.
        models: the queries in plain SQL, by model.
        logs: those of the queries of which tables keep the changes.
        ways: how often each way was taken.
        killed: builds that were ended at a point.
        faults: what was wrong.
    """

    lab: Lab
    chance: random.Random
    wide: bool
    models: dict[str, str] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    ways: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    _rid: int = 1000

    @property
    def spark(self) -> Any:
        return self.lab.session.spark  # type: ignore[union-attr]

    def table(self, name: str) -> str:
        return f"lake.{self.lab.schema}.{name}"

    def texts(self, name: str) -> str:
        """A model's query in plain SQL, and the model."""
        return f"{self.models[name]}\n{(self.lab.root / 'models' / f'{name}.sql').read_text()}"


def worlds(
    seed: int, first: int, count: int, models: int, folder: Path, session: Any, printed: Any, kills: float
) -> Iterator[World]:
    """Yield finished worlds."""
    with _always():
        for number in range(first, first + count):
            world = World(
                Lab(folder / f"w{number}", session, printed), random.Random(f"{seed}/{number}"), number % 2 == 1
            )
            _prepare(world, models)
            # In a third of the worlds Spark compares and lists, as it does where there are many rows and files.
            with _by_spark() if number % 3 == 0 else nullcontext():
                for step in range(_STEPS):
                    _step(world, step, kills)
            yield world


@contextmanager
def _by_spark() -> Iterator[None]:
    with patch.object(arrow_changes, "_MAX_FILES", -1), patch.object(file_replacement, "_MAX_FILES", -1):
        yield


@contextmanager
def _always() -> Iterator[None]:
    """Whatever it costs, what can be followed is followed."""
    with ExitStack() as stack:
        for module, name, value in (
            (changed_inputs, "_MAX_READ_SHARE", 1e9), (changed_inputs, "_MAX_READ_SHARE_UNFOLLOWED", 1e9),
            (affected_partitions, "_MAX_REPLACED_SHARE", 2.0),
        ):  # fmt: skip
            stack.enter_context(patch.object(module, name, value))
        yield


def _prepare(world: World, models: int) -> None:
    lab, chance = world.lab, world.chance
    for name in TABLES:
        rows = " union all ".join(f"select {_row(chance, number)}" for number in range(chance.randint(3, 14)))
        types = ", ".join(
            f"cast(c{i} as {part.split()[1]}) as {part.split()[0]}" for i, part in enumerate(_COLUMNS.split(", "))
        )
        mode = chance.choice(["merge-on-read", "copy-on-write"])
        modes = ", ".join(f"write.{kind}.mode: {mode}" for kind in ("delete", "update", "merge"))
        header = f"/*---\nformat_version: {chance.choice([2, 3])}\ntable_properties: {{{modes}}}\n---*/\n"
        lab.model(name, f"{header}select {types} from ({rows}) as t({', '.join(f'c{i}' for i in range(6))})\n")
    renamed = renamings(chance, tuple(TABLES), _NAMES, spark=True)
    while len(world.models) < models:
        # In every second world stars and lists of columns stand for all columns of a table, and none is added.
        _model(world, f"q{len(world.models)}", next(renamed) if world.wide and chance.random() < 0.7 else query(chance))
    for name, (key, sql) in _logs(chance):
        world.models[name] = world.logs[name] = sql
        header = f"materialized: table\nhistory: changes\non_empty_extract: close\nunique_key: {key}"
        text = _with_tables(sql, lambda table: f"{{{{ ref('{table}') }}}}")
        lab.model(name, f"/*---\n{header}\n---*/\n{text}\n")
    lab.build()


def _model(world: World, name: str, written: Written) -> None:
    chance, header, columns = world.chance, [], dict.fromkeys(TABLES, _NAMES)
    try:
        keys: tuple[str, ...] = follow_changes(written.text, columns).keys
    except NotFollowedError:
        keys = ()
    if chance.random() < 0.7:
        part = chance.choice(keys or ("a",))
        bucket = f'"bucket(3, {part})"'
        header.append(f"partition_by: [{chance.choice([part, bucket])}]")
    if chance.random() < 0.3:
        header.append("format_version: 3")
    world.models[name] = written.plain
    text = _with_tables(written.text, lambda table: f"{{{{ ref('{table}') }}}}")
    world.lab.model(name, "/*---\n" + "\n".join(header) + "\n---*/\n" + text + "\n" if header else text + "\n")


def _with_tables(sql: str, named: Callable[[str], str]) -> str:
    """A query with other names for its tables."""
    return re.sub(rf"\b({'|'.join(TABLES)})\b", lambda match: named(match[0]), sql)


def _logs(chance: random.Random) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield models that keep the changes of a query, each with its key: row by row, and in groups."""
    table, other = chance.choice(sorted(TABLES)), chance.choice(sorted(TABLES))
    where = chance.choice(["", "where k is not null ", "where v > 1 or v is null ", "where coalesce(v, 0) < 3 "])
    value = chance.choice(["v", "coalesce(v, 9) as v", "v % 2 as v", "cast(v as double) as v"])
    yield "log_rows", ("rid", f"select rid, k, {value} from {table} {where}")
    yield "log_groups", ("g", f"select g, count(*) as n, sum(v) as v from {other} {where}group by g")


def _row(chance: random.Random, rid: int) -> str:
    value = lambda most: chance.choice(["null", *map(str, range(most))])  # noqa: E731
    return f"{rid}, {chance.randint(0, 30)}, {value(4)}, {value(3)}, {value(5)}, 'n'"


def _step(world: World, step: int, kills: float) -> None:
    for name in world.chance.sample(sorted(TABLES), world.chance.randint(1, 3)):
        for _ in range(world.chance.randint(1, 2)):
            _change(world, name)
    names = sorted(world.models)
    if world.chance.random() < kills:
        _killed(world, names)
    result = world.lab.run("build", "-s", *names)
    if result.code:
        world.faults.append(f"step {step}: {result.text[-3000:]}")
        return
    for name in names:
        told = result.model(name)
        note = told.get("note") or told.get("message") or ""
        way = next(
            (
                word
                for word in ("compared", "partition", "no column", "no row", "no new data", "only files", "in full")
                if word in note
            ),
            "said nothing",
        )
        world.ways[way if way != "in full" else note] += 1
        _compare(world, name, step, note)


def _killed(world: World, names: list[str]) -> None:
    """End a build at a random point of a random model."""
    wanted, place = world.chance.choice(names), world.chance.randint(0, 5)
    passed: list[str] = []

    def arrive(point: str, at: str, *_: object) -> None:
        if at.rpartition(".")[2].strip("`").partition("#")[0] == wanted:
            passed.append(point)
            if len(passed) == place + 1:
                kill()

    end = kill_points.listen(arrive)
    try:
        result = world.lab.run("build", "-s", *names)
    finally:
        end()
    if result.code:
        world.killed[passed[place] if len(passed) > place else "?"] += 1


def _compare(world: World, name: str, step: int, note: str) -> None:
    sql = _with_tables(world.models[name], world.table)
    full = Counter(tuple(row) for row in world.spark.sql(sql).collect())
    if name in world.logs:
        there, fault = _added_up(world.spark.table(world.table(name)).collect())
        if fault:
            world.faults.append(f"step {step}, {name} ({note}): {fault}")
    else:
        there = Counter(tuple(row) for row in world.spark.table(world.table(name)).collect())
    if full != there:
        world.faults.append(
            f"step {step}, {name} ({note}):\n{world.texts(name)}\nkept {there - full}\nmissing {full - there}"
        )


def _added_up(changes: list[Any]) -> tuple[Counter[tuple[Any, ...]], str]:
    """The rows that changes add up to, and what is wrong with one of them; the key is the first column."""
    found: dict[Any, tuple[Any, ...]] = {}
    for change in sorted(changes, key=lambda row: (row["changed_at"], row["change_type"] != "update_before")):
        row, kind = tuple(change)[:-2], change["change_type"]
        if (kind == "insert") == (row[0] in found) or (kind in {"update_before", "delete"} and found[row[0]] != row):
            return Counter(), f"{kind} of {row} over {found.get(row[0])}"
        if kind == "update_after" and found[row[0]] == row:
            return Counter(), f"{row} has not changed"
        if kind == "delete":
            del found[row[0]]
        elif kind != "update_before":
            found[row[0]] = row
    return Counter(found.values()), ""


# The column that a kind of change updates, and the largest value that it gets; 0: its own, None: none.
_UPDATES: dict[str, tuple[str, int | None]] = {
    "update": ("v", 4), "move": ("k", 3), "null": ("k", None), "unread": ("note", 99), "alike": ("v", 0), "group": ("g", 3),
    "id": ("id", 30),
}  # fmt: skip


def _change(world: World, name: str) -> None:
    chance, table = world.chance, world.table(name)
    kind = chance.choice(["insert", "insert", "delete", "update", "update", "move", "null", "unread", "alike", "group", "id",
                          "compact", "column", "expire", "empty"])  # fmt: skip
    rids = [row["rid"] for row in world.spark.sql(f"select rid from {table} order by rid").collect()]
    picked = ", ".join(map(str, chance.sample(rids, min(len(rids), chance.randint(1, 3))))) or "-1"
    if kind == "insert":
        for _ in range(chance.randint(1, 3)):
            world._rid += 1
            more = len(world.spark.table(table).columns) - 6
            world.spark.sql(f"insert into {table} select {_row(chance, world._rid)}{', null' * more}")
    elif kind == "delete":
        world.spark.sql(f"delete from {table} where rid in ({picked})")
    elif kind in _UPDATES:
        column, most = _UPDATES[kind]
        value = "null" if most is None else column if most == 0 else str(chance.randint(0, most))
        world.spark.sql(f"update {table} set {column} = {value} where rid in ({picked})")
    elif kind == "compact":
        world.spark.sql(
            f"call lake.system.rewrite_data_files(table => '{table[5:]}', options => map('rewrite-all', 'true'))"
        )
    elif kind == "column" and not world.wide and chance.random() < 0.4:
        world.spark.sql(f"alter table {table} add column extra{chance.randint(0, 9**6)} int")
    elif kind == "expire" and chance.random() < 0.4:
        world.spark.sql(
            f"call lake.system.expire_snapshots(table => '{table[5:]}', older_than => now(), retain_last => 1)"
        )
    elif kind == "empty" and chance.random() < 0.3:
        world.spark.sql(f"delete from {table}")
