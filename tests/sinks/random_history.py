"""Random histories of a table, delivered at random moments by processes that are killed: the target equals the table.

The commits are PyIceberg's: appends, deletes and overwrites (which rewrite files), rollbacks, a new table content,
expired snapshots, added columns.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import StateError
from engine.sinks.position import Position
from engine.sinks.target import SinkColumn
from tests.lab import REPOSITORY
from tests.services.postgres import Postgres
from tests.sinks.conftest import Delivery

STEPS = (
    "append",
    "append",
    "delete",
    "overwrite",
    "rollback",
    "refresh",
    "expire",
    "column",
    "deliver",
    "deliver",
    "kill",
)
POINTS = ("sink written", "sink committing", "sink committed")
# A process that delivers and ends at a point, as kill -9 would end it.
_CHILD = """
import os, signal, sys
from pathlib import Path
from engine import kill_points
from engine.sinks import delivery as deliveries
from engine.sinks.target import SinkColumn
from tests.lab import writable_catalog
from tests.services.postgres import Postgres
from tests.sinks.conftest import Delivery

root, port, password, schema, point, after, rows, *columns = sys.argv[1:]
passed = []
def listener(reached, table, batch, where):
    passed.append(reached)
    if passed.count(point) == int(after):
        os.kill(os.getpid(), signal.SIGKILL)
kill_points.listen(listener)
deliveries.ROWS = int(rows)
server = Postgres(Path(root), port=int(port), password=password)
columns = tuple(SinkColumn(*column.split(":")) for column in columns)
Delivery(Path(root), server, schema=schema, columns=columns).deliver()
"""


@dataclass(slots=True)
class History:
    delivery: Delivery
    dice: random.Random
    steps: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    rejected: int = 0

    def step(self, name: str) -> None:
        self.steps[name] += 1
        getattr(self, f"_{name}")()

    def _ids(self) -> list[int]:
        return sorted(int(row[0]) for row in self.delivery.stored())

    def _rows(self, ids: list[int]) -> list[tuple[object, ...]]:
        extra = len(self.delivery.columns) - 2
        return [(one, f"n{self.dice.random()}", *[self.dice.random()] * extra) for one in ids]

    def _append(self) -> None:
        first = max([0, *self._ids()]) + 1
        self.delivery.append(*self._rows(list(range(first, first + self.dice.randint(1, 6)))))

    def _some(self) -> list[int]:
        ids = self._ids()
        return self.dice.sample(ids, min(len(ids), self.dice.randint(1, 4)))

    def _delete(self) -> None:
        if some := self._some():
            self.delivery.table.delete(f"id in ({', '.join(map(str, some))})")

    def _overwrite(self) -> None:
        if some := self._some():
            rows = self.delivery.arrow(self._rows(some))
            self.delivery.table.overwrite(rows, overwrite_filter=f"id in ({', '.join(map(str, some))})")

    def _rollback(self) -> None:
        self.delivery.table.refresh()
        history = self.delivery.table.metadata.snapshots
        ancestors = {entry.snapshot_id for entry in self.delivery.table.history()}
        chosen = self.dice.choice([one.snapshot_id for one in history if one.snapshot_id in ancestors])
        self.delivery.table.manage_snapshots().set_current_snapshot(chosen).commit()

    def _refresh(self) -> None:
        if some := self._some():
            self.delivery.table.overwrite(self.delivery.arrow(self._rows(some)))

    def _expire(self) -> None:
        self.delivery.table.refresh()
        current = self.delivery.table.current_snapshot()
        others = [one.snapshot_id for one in self.delivery.table.metadata.snapshots if one != current]
        if others:
            self.delivery.table.maintenance.expire_snapshots().by_ids(self.dice.sample(others, 1)).commit()

    def _column(self) -> None:
        if len(self.delivery.columns) < 4:
            from pyiceberg.types import DoubleType

            name = f"c{len(self.delivery.columns)}"
            with self.delivery.table.update_schema() as update:
                update.add_column(name, DoubleType())
            self.delivery.columns = (*self.delivery.columns, SinkColumn(name, "double"))
            self.delivery.server.execute(
                f"ALTER TABLE IF EXISTS {self.delivery.schema}.orders ADD COLUMN {name} double precision"
            )

    def _deliver(self) -> None:
        try:
            self.delivery.deliver()
        except StateError as error:
            # Which is told, and has a way out: the rows that are gone meanwhile are not known any more.
            if error.diagnostic.code not in {"sink-history", "sink-position"}:
                raise
            self.rejected += 1
            self.delivery.server.execute(f"DELETE FROM {self.delivery.schema}.orders")
            target, table = self.delivery.target(), self.delivery.committed()
            target.reset(Position(table.uuid, key=self.delivery.spec.key, columns=self.delivery.spec.names))
            target.close()
            self.delivery.deliver()

    def _kill(self) -> None:
        point, after, rows = self.dice.choice(POINTS), self.dice.randint(1, 3), self.dice.randint(1, 8)
        self.kills += killed(self.delivery, point, after, rows)


def killed(delivery: Delivery, point: str, after: int, rows: int) -> bool:
    """Deliver in a process that ends at a point; whether it did: it may have had less to do."""
    where = [str(delivery.root), str(delivery.server.port), delivery.server.password, delivery.schema]
    columns = [f"{column.name}:{column.type}" for column in delivery.columns]
    command = [sys.executable, "-c", _CHILD, *where, point, str(after), str(rows), *columns]
    done = subprocess.run(command, cwd=REPOSITORY, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode in {0, -signal.SIGKILL} or "sink-" in done.stderr, done.stderr
    return done.returncode == -signal.SIGKILL


def run(root: Path, server: Postgres, seed: str, steps: int, *, kills: bool) -> History:
    """Carry out a random history, deliver what is left, and compare.

    Raises:
        AssertionError: the target is not the table.
    """
    history = History(Delivery(root, server), random.Random(seed))
    history.delivery.make()
    history.step("append")
    names = [name for name in STEPS if kills or name != "kill"]
    for _ in range(steps):
        history.step(history.dice.choice(names))
    history.step("deliver")
    columns = ", ".join(column.name for column in history.delivery.columns)
    delivered = history.delivery.delivered(columns)
    assert _known(delivered) == _known(history.delivery.stored()), f"seed {seed}: {dict(history.steps)}"
    return history


def _known(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Rows with the columns that all of them were delivered with: later ones are NULL in earlier rows."""
    return [row[:2] for row in rows]
