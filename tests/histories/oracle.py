"""What a table must hold, computed in plain Python from the rows of its micro-batches: no engine, no Spark.

`Oracle.batch` follows Spark's rules: a micro-batch evicts state with the watermark with which it begins, and takes a row
for late with the watermark with which the one before it began. Times are microseconds since 1970.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.histories.kinds import CHANGES, EVENTS, FEED, MORE, SAME, Kind, Settings

Row = dict[str, Any]
Rows = Mapping[str, list[Row]]  # by source
Content = Counter[tuple[tuple[str, Any], ...]]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LENGTH = {"1 hour": 60, "2 hours": 120, "5 minutes": 5, "10 minutes": 10, "30 minutes": 30}


def content(rows: Iterable[Mapping[str, Any]]) -> Content:
    """Rows in no order; a NULL column counts as one that is not there, and the letter case of names does not count."""
    return Counter(tuple(sorted((k.lower(), _plain(v)) for k, v in row.items() if v is not None)) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, list | dict):
        return repr(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def moment(at: int) -> datetime:
    return EPOCH + timedelta(microseconds=at)


def minutes(text: str) -> int:
    """A duration in microseconds."""
    return _LENGTH[SAME.get(text, text)] * 60_000_000


@dataclass(slots=True)
class State:
    """What a checkpoint holds.

    Attributes:
        late: the watermark with which the last micro-batch began.
        watermark: the one with which the next begins; of several inputs only Spark knows it.
        seen: keys of a dedup, and when they expire.
        groups: of an aggregate: start of the window or None, key, values.
        sides: rows of each side of a join.
        matched: rows of the left side that a row of the right was found for, by identity.
        visits: by kind the sessions: begin, end, values.
    """

    late: int = 0
    watermark: int = 0
    seen: dict[Any, int] = field(default_factory=dict)
    groups: dict[Any, list[float]] = field(default_factory=dict)
    sides: dict[str, list[Row]] = field(default_factory=lambda: {EVENTS: [], MORE: []})
    matched: set[int] = field(default_factory=set)
    visits: dict[str | None, list[tuple[int, int, list[float]]]] = field(default_factory=dict)


@dataclass(slots=True)
class Oracle:
    """One table.

    Attributes:
        kind: of the model.
        rows: of the table, if rows are appended.
        keyed: rows of the table by key, else.
        changes: of tables of changes, what happened to each key: by sequence, the row or None.
        quarantined: how many rows the quarantine has.
        late_rows: how many rows or groups were late.
        state: of its checkpoint.
        there: what the table holds; it decides where any of several rows would be right.
    """

    kind: Kind
    rows: list[Row] = field(default_factory=list)
    keyed: dict[Any, Row] = field(default_factory=dict)
    changes: dict[Any, dict[int, Row | None]] = field(default_factory=dict)
    quarantined: int = 0
    late_rows: int = 0
    state: State = field(default_factory=State)
    there: Content = field(default_factory=Counter)

    def table(self) -> Content:
        if self.kind.name == "versions":
            return content(self._history())
        if self.kind.name == "current":
            return content(row for known in self.changes.values() if (row := known[max(known)]) is not None)
        return content([*self.rows, *self.keyed.values()])

    def refreshed(self) -> None:
        """The table is built anew: nothing is kept but the quarantine."""
        self.rows, self.keyed, self.changes, self.state = [], {}, {}, State()

    def reset(self) -> None:
        """The checkpoint is given up, the rows stay."""
        self.state = State()

    def batch(self, rows: Rows, bad: int, settings: Settings, watermark: int) -> None:
        """One micro-batch.

        Args:
            rows: by source.
            bad: records that cannot be read.
            settings: the meaning of the model.
            watermark: with which it begins.
        """
        self.quarantined += bad
        rows = {EVENTS if name == FEED else name: part for name, part in rows.items()}
        if self.kind.watermark:
            self.quarantined += sum(row["at"] is None for part in rows.values() for row in part)
            rows = {name: [row for row in part if row["at"] is not None] for name, part in rows.items()}
        getattr(self, f"_{self.kind.name}")(rows, settings, watermark)
        if self.kind.watermark:
            self.state.late = watermark
            newest = [row["at"] for row in rows.get(EVENTS, [])]
            behind = max(newest, default=0) // 1000 * 1000 - minutes(settings.get("delay", "10 minutes"))
            self.state.watermark = max(self.state.watermark, behind)

    def _plain(self, rows: Rows, settings: Settings, _: int) -> None:
        for row in rows[EVENTS]:
            if settings["where"] and not (row["amount"] is not None and row["amount"] > 2):
                continue
            made = {key: row[key] for key in ("id", "at", "kind")}
            made["at"] = row["at"] if row["at"] is None else moment(row["at"])
            made["day"] = made["at"] and made["at"].date()
            made["amount"] = valued(row["amount"], settings["amount"], settings)
            if settings["more"]:
                # With `on_schema_change: fail` only a table that is built anew takes the edit.
                made["label"] = row["kind"]
            if self._expected(made["amount"], settings):
                self.rows.append(made)

    def _vetted(self, rows: Rows, settings: Settings, _: int) -> None:
        kept = [row for row in rows[EVENTS] if not settings["where"] or row["amount"] < 8]
        self.rows += [{name: row[name] for name in ("id", "kind", "amount")} for row in kept]

    def _fed(self, rows: Rows, settings: Settings, _: int) -> None:
        for row in rows[EVENTS]:
            if settings["where"] and row["amount"] <= 2:
                continue
            at = row["at"] and moment(row["at"])
            made = {**row, "at": at, "amount": valued(row["amount"], settings["amount"], settings)}
            if self._expected(made["amount"], settings):
                self.rows.append(made)

    def passes(self, settings: Settings) -> bool:
        """Whether the test of the model passes over its rows."""
        values = [row[self.kind.tested] for row in (*self.rows, *self.keyed.values())]
        return all(value is not None and value <= float(settings["limit"]) for value in values)

    def _expected(self, value: float | None, settings: Settings) -> bool:
        """Whether a row meets the expectation of the model; one that does not may go to the quarantine."""
        good = not settings["expect"] or (value is not None and value < 5)
        self.quarantined += not good and "quarantine" in settings["expect"]
        return good

    def _both(self, rows: Rows, settings: Settings, _: int) -> None:
        for name, part in rows.items():
            where = settings["where"] and name == {"a": EVENTS, "b": MORE}[settings["order"][0]]
            kept = [row for row in part if not where or (row["amount"] or 0) > 2]
            self.rows += [{"id": row["id"], "amount": row["amount"]} for row in kept]

    def _uniq(self, rows: Rows, settings: Settings, watermark: int) -> None:
        names, delay = settings["keys"].strip("[]").split(", "), minutes(settings["delay"])
        names, seen = sorted(names), self.state.seen
        given: dict[Any, list[Row]] = {}
        for row in rows[EVENTS]:
            key = tuple(row[name] for name in names)
            if row["at"] <= self.state.late:
                self.late_rows += 1
            elif key not in seen:
                given.setdefault(key, []).append(row)
        for key, several in given.items():
            made = [{"id": row["id"], "kind": row["kind"], "at": moment(row["at"])} for row in several]
            # Which of the rows of one micro-batch is kept depends on the order in which Spark reads its files.
            here = self.there - content(self.rows)
            kept = next((n for n, row in enumerate(made) if content([row]) <= here), 0)
            seen[key] = several[kept]["at"] + delay
            self.rows.append(made[kept])
        self.state.seen = {key: expires for key, expires in seen.items() if expires > watermark}

    def _windows(self, rows: Rows, settings: Settings) -> set[int]:
        size, touched, late = minutes(settings["size"]), set(), set()
        for row in rows[EVENTS]:
            start = row["at"] - row["at"] % size
            if start + size <= self.state.late:
                late.add(start)
            else:
                self.state.groups.setdefault(start, []).append(row["amount"])
                touched.add(start)
        self.late_rows += len(late)
        return touched

    def _window(self, start: int, settings: Settings) -> Row:
        return {"hour": moment(start), **aggregated(self.state.groups[start], settings)}

    def _hourly(self, rows: Rows, settings: Settings, watermark: int) -> None:
        self._windows(rows, settings)
        for start in self._closed(settings, watermark):
            row = self._window(start, settings)
            if not settings["having"] or row["n"] > 1:
                self.rows.append(row)
            del self.state.groups[start]

    def _updates(self, rows: Rows, settings: Settings, watermark: int) -> None:
        for start in self._windows(rows, settings):
            self.keyed[start] = self._window(start, settings)
        for start in self._closed(settings, watermark):
            del self.state.groups[start]

    _polled = _updates

    def _closed(self, settings: Settings, watermark: int) -> list[int]:
        return [start for start in self.state.groups if start + minutes(settings["size"]) <= watermark]

    def _totals(self, rows: Rows, settings: Settings, _: int) -> None:
        touched = set()
        for row in rows[EVENTS]:
            self.state.groups.setdefault(row["kind"], []).append(row["amount"])
            touched.add(row["kind"])
        for kind in touched:
            self.keyed[kind] = {"kind": kind, **aggregated(self.state.groups[kind], settings)}

    _running = _totals

    def _current(self, rows: Rows, settings: Settings, _: int) -> None:
        for row in rows[CHANGES]:
            made = {"key": row["key"], "seq": moment(row["seq"]), "val": valued(row["val"], settings["val"], settings)}
            # On a tie the row in the table stays.
            if self._expected(made["val"], settings):
                self.changes.setdefault(row["key"], {}).setdefault(row["seq"], None if row["op"] == "d" else made)

    _versions = _current

    def _history(self) -> list[Row]:
        found = []
        for known in self.changes.values():
            times = sorted(known)
            for at, end in zip(times, [*times[1:], None], strict=True):
                row = known[at]
                if row is not None:
                    until = None if end is None else moment(end)
                    found.append({**row, "valid_from": moment(at), "valid_to": until, "is_current": end is None})
        return found

    def _sessions(self, rows: Rows, settings: Settings, watermark: int) -> None:
        gap = minutes("10 minutes")
        for row in rows[EVENTS]:
            begin, end, values = row["at"], row["at"] + gap, [row["amount"]]
            if end <= self.state.late:
                self.late_rows += 1
                continue
            visits = self.state.visits.setdefault(row["kind"], [])
            for visit in [one for one in visits if one[0] <= end and begin <= one[1]]:
                visits.remove(visit)
                begin, end, values = min(begin, visit[0]), max(end, visit[1]), values + visit[2]
            visits.append((begin, end, values))
        for kind, visits in self.state.visits.items():
            for begin, end, values in [one for one in visits if one[1] <= watermark]:
                visits.remove((begin, end, values))
                made = {"begins": moment(begin), "ends": moment(end), "kind": kind}
                self.rows.append({**made, **aggregated(values, settings)})

    def _chained(self, rows: Rows, settings: Settings, watermark: int) -> None:
        size, hour, late, groups = minutes("10 minutes"), minutes("1 hour"), set(), self.state.groups
        for row in rows[EVENTS]:
            start = row["at"] - row["at"] % size
            if start + size <= self.state.late:
                late.add((start, row["kind"]))
            else:
                groups.setdefault((start, row["kind"]), []).append(row["amount"])
        self.late_rows += len(late)
        for key in [key for key in groups if key[-1] != "hour" and key[0] + size <= watermark]:
            amount = sum(groups.pop(key))
            groups.setdefault((key[0] - key[0] % hour, "hour"), []).append(amount)
        for key in [key for key in groups if key[-1] == "hour" and key[0] + hour <= watermark]:
            amounts = groups.pop(key)
            amount = (max if settings["top"] == "max" else min)(amounts)
            self.rows.append({"hour": moment(key[0]), "n": len(amounts), "amount": amount})

    def _outer(self, rows: Rows, settings: Settings, watermark: int) -> None:
        self._joined(rows, settings, watermark)
        sides, matched = self.state.sides, self.state.matched
        bound = minutes(settings["bound"])
        for left in sides[EVENTS]:
            if any(_match(left, right, bound) for right in sides[MORE]):
                matched.add(id(left))
        # A row to the left waits until no row to the right can come that matches.
        gone = [left for left in sides[EVENTS] if left["at"] + bound < watermark]
        self.rows += [_pair(left, {"amount": None}) for left in gone if id(left) not in matched]
        sides[EVENTS] = [left for left in sides[EVENTS] if left["at"] + bound >= watermark]

    def compute(self, rows: list[Row], settings: Settings) -> None:
        """The table of a batch model."""
        by_kind: dict[Any, list[Row]] = {}
        for row in rows:
            by_kind.setdefault(row.get("kind"), []).append(row)
        for kind, several in by_kind.items():
            if self.kind.name == "daily":
                made = _top(several, settings)
            elif "'b'" in settings["where"] and kind == "b":
                continue
            else:
                made = aggregated([row.get("amount") for row in several], settings)
                if settings["expect"] and made["n"] >= 3:
                    continue
            self.keyed[kind] = {"kind": kind, **made}

    def _joined(self, rows: Rows, settings: Settings, _: int) -> None:
        fresh = {name: [row for row in part if row["at"] > self.state.late] for name, part in rows.items()}
        self.late_rows += sum(len(part) - len(fresh[name]) for name, part in rows.items())
        sides, bound = self.state.sides, minutes(settings["bound"])
        for left in fresh[EVENTS]:
            self.rows += [_pair(left, right) for right in sides[MORE] if _match(left, right, bound)]
        sides[EVENTS] += fresh[EVENTS]
        for right in fresh[MORE]:
            self.rows += [_pair(left, right) for left in sides[EVENTS] if _match(left, right, bound)]
        sides[MORE] += fresh[MORE]


def _top(rows: list[Row], settings: Settings) -> Row:
    field = settings["field"].strip("`")
    texts = [f'{{"{field}":{row["amount"]}}}' if row["amount"] is not None else "{}" for row in rows]
    bits = [(row["id"] | 4) & 2 if settings["bits"].startswith("(") else row["id"] | (4 & 2) for row in rows]
    return {"top": max(texts), "bits": min(bits)}


def _match(left: Row, right: Row, bound: int) -> bool:
    return left["id"] == right["id"] and left["at"] <= right["at"] <= left["at"] + bound


def _pair(left: Row, right: Row) -> Row:
    return {"id": left["id"], "at": moment(left["at"]), "amount": right["amount"]}


def valued(value: float | None, text: str, settings: Settings) -> float | None:
    """A column as a model's text computes it."""
    if value is None:
        return None
    if "factor" in text:
        return value * int(settings["factor"])
    if "scaled" in text:
        return value * int(settings["macro"])
    return int(value) if "cast" in text else value


def aggregated(values: list[float], settings: Settings) -> Row:
    text = settings["aggregate"]
    amounts = [value for one in values if (value := valued(one, text, settings)) is not None]
    amount = max(amounts, default=None) if text.startswith("max") else sum(amounts) if amounts else None
    return {"n": len(values), "amount": amount}
