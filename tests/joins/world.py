"""A project of random joins, its builds, and the tables beside a batch join."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.histories.lab import Printed
from tests.joins.forms import SCHEMA, SIDES, Marks, StreamJoin, errors, evicts, marks, stream_join
from tests.joins.rows import CLOCK, Row, Watermark, landing
from tests.lab import Lab, LabSession

COLUMNS = ("j", "lid", "rid", "cid", "lts", "rts")


@dataclass
class JoinModel:
    """A model: several joins of the same inputs, one below the other."""

    name: str
    given: Marks
    joins: tuple[StreamJoin, ...]
    evicts: bool
    watermark: Watermark = field(init=False)

    def __post_init__(self) -> None:
        self.watermark = Watermark(self.given, self.joins)

    @property
    def reads_third(self) -> bool:
        return any(join.held is not None for join in self.joins)

    def text(self, named: dict[str, str]) -> str:
        """Its SQL over relations with other names."""
        parts = []
        for number, join in enumerate(self.joins):
            sources = ", ".join(
                f"{side} as (select * from {name})" for side, name in named.items() if f" {side}" in join.sql
            )
            parts.append(f"select {number} as j, x.* from (with {sources} {join.sql}) x")
        return "\nunion all\n".join(parts)


def models(chance: random.Random, count: int, most: int, rejected: Counter[str]) -> list[JoinModel]:
    """Models of joins that compile accepts; the others are counted by code."""
    found = []
    for number in range(count):
        given, joins = marks(chance), []
        wanted = chance.randint(1, most)
        while len(joins) < wanted:
            join = stream_join(chance, given)
            codes = errors(join.sql, given)
            rejected.update(codes)
            if not codes:
                joins.append(join)
        held = any(evicts(join.sql, given) for join in joins)
        found.append(JoinModel(f"m{number}", given, tuple(joins), held))
    return found


def write(lab: Lab, found: list[JoinModel]) -> None:
    """Write the sources and the models of a project."""
    tables = "".join(
        f"      - {{name: {model.name}_{side}, format: json, path: landing/{model.name}/{side}, schema: '{SCHEMA}'}}\n"
        for model in found
        for side in SIDES
    )
    lab.write("sources/raw.yml", f"sources:\n  - name: raw\n    tables:\n{tables}")
    for model in found:
        sides = SIDES if model.reads_third else SIDES[:2]
        streams = "".join(
            f"  raw.{model.name}_{side}: {{{'' if (delay := model.given.of(side)) is None else f'watermark: ts delay {delay} seconds'}}}\n"
            for side in sides
        )
        named = {side: f"{{{{ source('raw', '{model.name}_{side}') }}}}" for side in sides}
        header = f"/*---\nstreams:\n{streams}state_store: {{partitions: 1, provider: hdfs}}\n---*/\n"
        lab.model(model.name, f"{header}{model.text(named)}\n")


def differences(
    session: LabSession,
    printed: Printed,
    folder: Path,
    seed: str,
    count: int,
    most: int,
    tally: Counter[str],
    builds: int = 3,
) -> list[str]:
    """Build a project of random joins again and again; what its tables have that a batch join has not."""
    chance = random.Random(seed)
    lab = Lab(folder, session, printed)  # type: ignore[arg-type]
    found = models(chance, count, most, tally)
    write(lab, found)
    faults = []
    for number in range(builds):
        landed = {}
        for model in found:
            rows = landing(chance, number, model.given, last=number == builds - 1)
            landed[model.name] = rows
            for side, given in rows.items():
                lab.land(f"{number}", [row.record() for row in given], f"landing/{model.name}/{side}")
        result = lab.run("build", "--threads", "2")
        if result.code:
            return [f"build {number}: {result.text}"]
        for model in found:
            least, most_late = model.watermark.build(landed[model.name], evicts=model.evicts)
            late = result.model(model.name)["late"]
            tally["rows late"] += late
            if not least <= late <= most_late:
                faults.append(f"{model.name}, build {number}: {late} late, not {least} to {most_late}\n{_shown(model)}")
    for model in found:
        faults += _compared(session, lab, model, tally)
    return faults


def _compared(session: LabSession, lab: Lab, model: JoinModel, tally: Counter[str]) -> list[str]:
    there = Counter(_row([row[name] for name in COLUMNS]) for row in lab.rows(model.name) if not _of_clock(row))
    faults = []
    for number, join in enumerate(model.joins):
        tally["joins"] += 1
        wanted = Counter(_batch(session, model, number, join))
        got = Counter({row: n for row, n in there.items() if row[0] == str(number)})
        tally["rows"] += wanted.total()
        if wanted != got:
            text = f"{model.name}, join {number}, delays {model.given.delays}\n  {join.sql}"
            lost, new = wanted - got, got - wanted
            faults.append(f"{text}\n  lost {sorted(lost.elements())[:6]}\n  wrong {sorted(new.elements())[:6]}")
    return faults


def _batch(session: LabSession, model: JoinModel, number: int, join: StreamJoin) -> list[tuple[str, ...]]:
    """The rows of a join as Spark computes it over tables."""
    spark: Any = session.spark
    kept = model.watermark.kept[number]
    for side in SIDES:
        frame = spark.createDataFrame([_values(row) for row in kept[side]], SCHEMA.replace("timestamp", "string"))
        times = {name: f"cast({name} as timestamp)" for name in ("ts", "created")}
        frame.selectExpr(*(f"{times.get(name, name)} as {name}" for name in frame.columns)).createOrReplaceTempView(
            f"kept_{side}"
        )
    text = JoinModel(model.name, model.given, (join,), evicts=True).text({side: f"kept_{side}" for side in SIDES})
    rows = [row.asDict() for row in spark.sql(text).collect()]
    return [_row([number, *(row[name] for name in COLUMNS[1:])]) for row in rows if not _of_clock(row)]


def _values(row: Row) -> tuple[object, ...]:
    return tuple(row.record().values())


def _of_clock(row: dict[str, Any]) -> bool:
    return any((row[name] or 0) >= CLOCK for name in ("lid", "rid", "cid"))


def _row(values: list[Any]) -> tuple[str, ...]:
    return tuple(
        "-" if v is None else v.strftime("%d %H:%M:%S.%f")[:-3] if hasattr(v, "strftime") else str(v) for v in values
    )


def _shown(model: JoinModel) -> str:
    return "\n".join(f"  {join.sql}" for join in model.joins)
