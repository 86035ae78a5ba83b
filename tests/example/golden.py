"""What the example's tables must hold, computed from the landed files in plain Python: no engine, no Spark.

`Replay` follows Spark's rule for one input with a watermark on `scheduled_at`; the batches decide, not the
data alone. Batch n evicts state with the watermark known when it begins; it takes a row for late with the
watermark with which batch n-1 began. A run ends with a batch without rows if the watermark has moved.
Times are microseconds, only the watermark is cut to milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Batches = list[list[Row]]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
HELD_BACK = timedelta(hours=9)  # at most 8 hours after it was emitted, in whole files of an hour
BOUND = timedelta(hours=12)
LONGEST_PLAUSIBLE = 420  # minutes


def read_batches(folder: Path | str, files_per_batch: int, after: Iterable[Path] = ()) -> Batches:
    """Group the landed files as Spark's file source does; `after` leaves out those read by earlier runs."""
    files = [path for path in landed_files(folder) if path not in set(after)]
    parts = [files[start : start + files_per_batch] for start in range(0, len(files), files_per_batch)]
    return [[row for path in part for row in read_file(path)] for part in parts]


def landed_files(folder: Path | str) -> list[Path]:
    """List the files in the order in which they are read: by modification time in milliseconds.

    Spark reads equal times in the order of the directory, which nobody knows: they are an error here.
    """
    files = {path: path.stat().st_mtime_ns // 1_000_000 for path in Path(folder).iterdir()}
    files = {path: stamp for path, stamp in files.items() if path.name[0] not in "._"}
    if len(set(files.values())) < len(files):
        raise ValueError(f"files in {folder} have the same modification time")
    return sorted(files, key=files.__getitem__)


def read_file(path: Path) -> list[Row]:
    """Read the events of a file as flat rows, the data beside the attributes and times as datetimes."""
    return [flat(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def flat(event: Row) -> Row:
    """Make one row of one CloudEvent."""
    row: Row = {key: event[key] for key in ("id", "source", "type", "subject", "time")} | event["data"]
    for name in {"time", "scheduled_at", "departed_at", "landed_at"} & row.keys():
        row[name] = row[name] and datetime.fromisoformat(row[name])
    return row


def project(batches: Batches, **columns: str | Callable[[Row], Any]) -> list[Row]:
    """Return what a stateless model holds: every landed row, duplicates included."""
    return [_project(row, columns) for batch in batches for row in batch]


def unique(batches: Batches) -> list[Row]:
    """One row for each event id, of those that are sent more than once any of them: they are equal."""
    return list({row["id"]: row for batch in batches for row in batch}.values())


def is_flight(row: Row) -> bool:
    """Whether an event becomes a row of `flights`: it departed, and its delay is plausible."""
    return row["type"] == "flight.departed" and row["departure_delay"] <= LONGEST_PLAUSIBLE


def is_implausible(row: Row) -> bool:
    """Whether an event goes to the quarantine of `flights`."""
    return row["type"] == "flight.departed" and row["departure_delay"] > LONGEST_PLAUSIBLE


def totals(batches: Batches) -> dict[str, int]:
    """Count landed rows, unique ids, duplicates and cancelled flights."""
    rows = [row for batch in batches for row in batch]
    unique = {row["id"]: row for row in rows}
    cancelled = sum(row["type"] == "flight.cancelled" for row in unique.values())
    return {
        "rows": len(rows),
        "unique": len(unique),
        "duplicates": len(rows) - len(unique),
        "cancelled": cancelled,
    }


@dataclass
class Late:
    """Rows dropped as late: `window_groups` is what numRowsDroppedByWatermark says of an aggregate.

    Spark drops there after its partial aggregation, so a batch counts each (window, key) once.
    """

    dedup: int = 0
    window_rows: int = 0
    window_groups: int = 0


@dataclass
class Replay:
    """One query and its checkpoint; each `run` is one build with trigger availableNow.

    Without `window` the result is the rows that get through; with it, one row per closed window and `by`,
    with `count` and the mean of `measure`. `keep` is a filter on the input, `keep_unique` one after the
    dedup. `slide` makes windows overlap.
    """

    delay: timedelta
    dedup: str | None = "id"
    window: timedelta | None = HOUR
    slide: timedelta | None = None
    by: str | None = "origin"
    measure: str | None = "departure_delay"
    time: str = "scheduled_at"
    keep: Callable[[Row], bool] = lambda _: True
    keep_unique: Callable[[Row], bool] = lambda _: True

    rows: list[Row] = field(default_factory=list)
    late: Late = field(default_factory=Late)
    duplicates: int = 0
    batches: int = 0
    newest: int = 0
    began_with: int = 0
    seen: dict[Any, int] = field(default_factory=dict)
    open: dict[tuple[int, Any], list[Any]] = field(default_factory=dict)

    def run(self, batches: Batches) -> list[Row]:
        """Run to the end of what is there and return the rows that this run adds to the table."""
        before = len(self.rows)
        for batch in batches:
            self.batch(batch)
        if batches and self._stateful and self._watermark > self.began_with:
            self.batch([])
        return self.rows[before:]

    @property
    def watermark(self) -> datetime:
        """The watermark with which the next batch would begin."""
        return EPOCH + self._watermark * MICROSECOND

    @property
    def open_windows(self) -> list[tuple[datetime, Any, int]]:
        """The windows that are held in state: start, key, rows so far."""
        return sorted((EPOCH + key[0] * MICROSECOND, key[1], len(held)) for key, held in self.open.items())

    @property
    def _stateful(self) -> bool:
        return self.window is not None or self.dedup is not None

    @property
    def _watermark(self) -> int:
        behind = self.newest // 1000 * 1000 - self.delay // MICROSECOND
        return max(behind, self.began_with)

    def batch(self, rows: list[Row]) -> None:
        """One micro-batch, perhaps without rows."""
        late, evict = self.began_with, self._watermark
        rows = [row for row in rows if self.keep(row)]
        newest = max((self._at(row) for row in rows), default=0)
        if self.dedup is not None:
            rows = self._unique(rows, late, evict)
        rows = [row for row in rows if self.keep_unique(row)]
        if self.window is not None:
            rows = self._windows(rows, late, evict)
        self.rows += rows
        self.newest = max(self.newest, newest)
        self.began_with = evict
        self.batches += 1

    def _unique(self, rows: list[Row], late: int, evict: int) -> list[Row]:
        passed = []
        for row in rows:
            key, at = row[self.dedup or ""], self._at(row)
            if at <= late:
                self.late.dedup += 1
            elif key in self.seen:
                self.duplicates += 1
            else:
                self.seen[key] = at + self.delay // MICROSECOND
                passed.append(row)
        self.seen = {key: expires for key, expires in self.seen.items() if expires > evict}
        return passed

    def _windows(self, rows: list[Row], late: int, evict: int) -> list[Row]:
        size, late_groups = (self.window or HOUR) // MICROSECOND, set()
        for row in rows:
            for start in self._starts(self._at(row)):
                key = start, row[self.by] if self.by else None
                if start + size <= late:
                    self.late.window_rows += 1
                    late_groups.add(key)
                else:
                    self.open.setdefault(key, []).append(row[self.measure] if self.measure else None)
        self.late.window_groups += len(late_groups)
        closed = sorted(key for key in self.open if key[0] + size <= evict)
        return [self._closed(key, self.open.pop(key)) for key in closed]

    def _starts(self, at: int) -> Iterator[int]:
        size = (self.window or HOUR) // MICROSECOND
        slide = self.slide // MICROSECOND if self.slide else size
        start = at - at % slide
        while start > at - size:
            yield start
            start -= slide

    def _closed(self, key: tuple[int, Any], values: list[Any]) -> Row:
        start = EPOCH + key[0] * MICROSECOND
        known = [value for value in values if value is not None]
        row: Row = {"window_start": start, "window_end": start + (self.window or HOUR), "count": len(values)}
        if self.by:
            row[self.by] = key[1]
        if self.measure:
            row["mean"] = sum(known) / len(known) if known else None
        return row

    def _at(self, row: Row) -> int:
        return int((row[self.time] - EPOCH) // MICROSECOND)


def unique_events(batches: Batches, delay: timedelta = timedelta(days=1)) -> list[Row]:
    """Return what a model holds that only drops repeats: one row per event id, unless it came too late."""
    return Replay(delay, window=None).run(batches)


def journeys(departures: Iterable[Row], arrivals: Iterable[Row]) -> dict[str, datetime | None]:
    """When each flight landed; None: no landing within the bound, and the watermark has passed that.

    No event is more than HELD_BACK behind the newest of its stream, so none is late, however the batches lie.
    """
    departed, landed = {row["id"]: row["departed_at"] for row in departures}, list(arrivals)
    watermark = min(max(departed.values()), max(row["landed_at"] for row in landed)) - HELD_BACK
    found: dict[str, datetime | None] = {flight: None for flight, at in departed.items() if at + BOUND < watermark}
    for row in landed:
        at = departed.get(row["flight_id"])
        if at is not None and at <= row["landed_at"] <= at + BOUND:
            found[row["flight_id"]] = row["landed_at"]
    return found


def disruptions(departures: Iterable[Row], gap: timedelta = timedelta(minutes=30)) -> list[tuple[Any, ...]]:
    """Runs of long delays, which the watermark has passed: airport, begin, end, flights, longest delay."""
    long = [row for row in departures if row["departure_delay"] >= 60]
    watermark = max(row["departed_at"] for row in long) - HELD_BACK
    found: list[list[Any]] = []
    for row in sorted(long, key=lambda row: (row["origin"], row["departed_at"])):
        origin, at, delay = row["origin"], row["departed_at"], row["departure_delay"]
        if found and found[-1][0] == origin and at <= found[-1][2]:
            last = found[-1]
            found[-1] = [origin, last[1], at + gap, last[3] + 1, max(last[4], delay)]
        else:
            found.append([origin, at, at + gap, 1, delay])
    return [tuple(one) for one in found if one[2] <= watermark]


def _project(row: Row, columns: dict[str, str | Callable[[Row], Any]]) -> Row:
    if not columns:
        return dict(row)
    return {name: row[value] if isinstance(value, str) else value(row) for name, value in columns.items()}
