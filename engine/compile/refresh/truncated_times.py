"""Output columns that are a time of an input, cut to a unit: ranges of the one are ranges of the other.

Spark passes a condition on a plain column down to the scan, where it skips files, and not one on `date_trunc`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

# The units whose cuts are among those of a unit: no year is cut within a day. A week may be in two months.
_WITHIN = {
    "hour": ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR"),
    "day": ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY"),
    "month": ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH"),
    "year": ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "QUARTER", "YEAR"),
}
# Days that a value may lie behind its cut, one more for changes of the clock.
_DAYS = {
    "MICROSECOND": 1, "MILLISECOND": 1, "SECOND": 1, "MINUTE": 1, "HOUR": 1, "DAY": 2, "WEEK": 8, "MONTH": 32,
    "QUARTER": 93, "YEAR": 367,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TruncatedTime:
    """What a column is cut from: `column` of the input `view`, as written, to `unit`, in capitals."""

    view: str
    column: str
    unit: str

    @property
    def days(self) -> int:
        """How many days a value may lie behind its cut."""
        return _DAYS[self.unit]

    def cut_within(self, transform: str) -> bool:
        """Whether a value and its cut have one value of a partition transform, if both are in UTC."""
        return self.unit in _WITHIN.get(transform, ())


def unit_of(value: exp.Expr) -> str | None:
    """The unit that a value is cut to, in capitals; None: it is not cut, or to one that is not known."""
    if isinstance(value, exp.TimestampTrunc):
        unit = value.args["unit"].name.upper()
        return unit if unit in _DAYS else None
    dated = isinstance(value, exp.Cast | exp.TryCast) and value.to.is_type("date")
    is_date = isinstance(value, exp.TsOrDsToDate) and value.args.get("format") is None
    return "DAY" if dated or is_date else None
