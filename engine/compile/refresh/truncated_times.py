"""Output columns that are a time of an input, cut to a unit: ranges of the one are ranges of the other.

Spark passes a condition on a plain column down to the scan, where it skips files, and not one on `date_trunc`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from engine.compile.refresh.query_block import BlockSource, QueryBlock
from engine.compile.sql.dialect import parse_text

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
    """What a column is cut from.

    Attributes:
        view: the input.
        column: of it, as written.
        unit: in capitals.
    """

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


def truncated(block: QueryBlock, key: str) -> TruncatedTime | None:
    """Return what a key column of a query is cut from; None: it is something else, or the input is read twice."""
    text = block.keys.get(key)
    if text is None:
        return None
    value = parse_text(f"SELECT {text}").expressions[0].unalias()
    column, unit = value.this, _unit(value)
    if unit is None or not isinstance(column, exp.Column) or column.args.get("db"):
        return None
    name = column.name.lower()
    found = [one for one in block.sources if _is(one, column.table.lower(), name)]
    if len(found) != 1 or found[0].inner is not None or found[0].outer:
        return None
    view = found[0].view
    read = [view in one.inner.views if one.inner else one.view == view for one in block.sources]
    return TruncatedTime(view, column.name, unit) if sum(read) == 1 else None


def _is(source: BlockSource, qualifier: str, name: str) -> bool:
    return source.alias == qualifier if qualifier else name in source.columns


def _unit(value: exp.Expr) -> str | None:
    """The unit that a value is cut to, in capitals; None: it is not cut, or to one that is not known."""
    if isinstance(value, exp.TimestampTrunc):
        unit = value.args["unit"].name.upper()
        return unit if unit in _DAYS else None
    dated = isinstance(value, exp.Cast | exp.TryCast) and value.to.is_type("date")
    plain = isinstance(value, exp.TsOrDsToDate) and value.args.get("format") is None
    return "DAY" if dated or plain else None
