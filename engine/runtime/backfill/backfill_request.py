"""What `engine backfill` is asked for: a range of times of a column, checked before Java starts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from engine.compile import Model
from engine.errors import UsageError, near
from engine.lake.quoted_names import quoted
from engine.lake.table_facts import TableFacts
from engine.plan.edits.backfill_obstacles import not_recomputed
from engine.runtime.backfill.read_input import rejected

# By the type of a column as PyIceberg prints it, what begins a literal of Spark's.
_TIMES = {"timestamptz": "TIMESTAMP", "timestamp": "TIMESTAMP_NTZ", "date": "DATE"}
# In microseconds.
_DAY = 86_400_000_000
_FORM = "Write a date or a time in UTC: 2026-05-01 or '2026-05-01 10:30:00'."


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Rows whose time is in a range.

    Attributes:
        kind: what begins a literal of its type.
        begin: the first time, in UTC.
        end: behind the last one; None: there is no end.
    """

    column: str
    kind: str
    begin: datetime
    end: datetime | None

    @property
    def condition(self) -> str:
        """The condition over the columns of the table, as SQL; NULL is outside."""
        name = quoted(self.column)
        upper = f" AND {name} < {self._literal(self.end)}" if self.end is not None else ""
        return f"({name} >= {self._literal(self.begin)}{upper})"

    def _literal(self, at: datetime) -> str:
        if self.kind == "DATE":
            return f"{self.kind} '{at:%Y-%m-%d}'"
        # A `pre_hook` may give the session another time zone.
        zone = "+00:00" if self.kind == "TIMESTAMP" else ""
        return f"{self.kind} '{at:%Y-%m-%d %H:%M:%S.%f}{zone}'"

    @property
    def day(self) -> str:
        micros = f"unix_micros({quoted(self.column)})"
        if self.kind == "TIMESTAMP":
            return f"date_from_unix_date(cast(({micros} - pmod({micros}, {_DAY})) div {_DAY} as int))"
        return f"to_date({quoted(self.column)})"

    def __str__(self) -> str:
        upper = f" to {_shown(self.end)}" if self.end is not None else ""
        return f"{self.column} from {_shown(self.begin)}{upper} (UTC)"


def _shown(at: datetime) -> str:
    return f"{at:%Y-%m-%d}" if at.time() == time() else f"{at:%Y-%m-%d %H:%M:%S}"


def check_model(model: Model) -> None:
    """Check that the rows of a model can be computed by themselves, each from its input.

    Raises:
        UsageError: it is not a streaming table.
        StateError: `backfill-rejected`.
    """
    name = model.name
    if not model.streaming:
        hint = f"A build computes it: engine build -s {name}"
        raise UsageError("usage", f"'{name}' is not a streaming table (materialized: {model.materialized.value})", hint)
    if (reason := not_recomputed(model)) is not None:
        raise rejected(model, reason)


def read_range(model: Model, table: TableFacts, column: str | None, begin: str, end: str | None) -> TimeRange:
    """Return the range that a command names.

    `column`: that has the time; None: that of the watermark, of the partitions, or the only one.

    Raises:
        UsageError: it is not a range of times of one column.
    """
    kinds = {name: _TIMES[kind] for name, kind in table.columns if kind in _TIMES}
    name = _named(model, kinds, column) if column is not None else _default(model, kinds)
    first, last = _time("--from", begin), _time("--to", end) if end is not None else None
    if last is not None and last <= first:
        raise UsageError("usage", f"the range from {begin} to {end} is empty", "--to is after --from.")
    if kinds[name] == "DATE" and any(at is not None and at.time() != time() for at in (first, last)):
        raise UsageError("usage", f"'{name}' is a date", "Write dates: --from 2026-05-01 --to 2026-05-02.")
    return TimeRange(name, kinds[name], first, last)


def _named(model: Model, kinds: dict[str, str], column: str) -> str:
    found = next((name for name in kinds if name.lower() == column.lower()), None)
    if found is None:
        hint = near(column, kinds) or f"Its columns of times: {', '.join(kinds) or 'none'}."
        raise UsageError("unknown-column", f"{model.relation} has no date or timestamp column '{column}'", hint)
    return found


def _default(model: Model, kinds: dict[str, str]) -> str:
    spelled = {name.lower(): name for name in kinds}
    marks = [item.watermark.column for item in model.inputs if item.stream and item.watermark is not None]
    for names in (marks, [part.column for part in model.write.partition_by], list(kinds)):
        found = {spelled[name.lower()] for name in names if name.lower() in spelled}
        if len(found) == 1:
            return found.pop()
    hint = f"Name the column: --column {next(iter(kinds), 'NAME')}"
    if not kinds:
        hint = f"To compute all rows again: engine build -f -s {model.name}"
    raise UsageError("usage", f"{model.relation} has {'several' if kinds else 'no'} columns of dates or times", hint)


def _time(option: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError("usage", f"{option} {text!r} is not a date or a time", _FORM) from None
    return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo is not None else found


def day_after(at: datetime) -> datetime:
    return datetime.combine(at.date() + timedelta(days=1), time())
