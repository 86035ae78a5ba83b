"""A SELECT in the parts that a refresh puts together in other ways: items, sources, conditions, keys.

An output column may be a time of an input, cut to a unit: ranges of the one are ranges of the other. Spark passes a
condition on a plain column down to the scan, where it skips files, and not one on `date_trunc`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from engine.compile.sql.dialect import spark

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


def unit_of(value: exp.Expr) -> str | None:
    """The unit that a value is cut to, in capitals; None: it is not cut, or to one that is not known."""
    if isinstance(value, exp.TimestampTrunc):
        unit = value.args["unit"].name.upper()
        return unit if unit in _DAYS else None
    dated = isinstance(value, exp.Cast | exp.TryCast) and value.to.is_type("date")
    is_date = isinstance(value, exp.TsOrDsToDate) and value.args.get("format") is None
    return "DAY" if dated or is_date else None


class NotFollowedError(Exception):
    """A query whose changes cannot be derived from those of its inputs; `hint` is the rewrite, if there is one."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True, slots=True)
class BlockSource:
    """Something in a FROM.

    `alias` is in lower case. `view`: the name of an input; empty: `inner`, a query of its own. `join`: empty for the
    first, else `INNER`, `LEFT` or `CROSS`. `on` empty: no condition. `columns`: names in lower case, by id.
    """

    alias: str
    view: str
    inner: QueryBlock | None
    join: str
    on: str
    columns: Mapping[int, str]

    @property
    def outer(self) -> bool:
        return self.join == "LEFT"


@dataclass(frozen=True, slots=True)
class BlockKey:
    """The text of an expression over a FROM; `cut`: the time of an input that it cuts to a unit."""

    text: str
    cut: TruncatedTime | None


@dataclass(frozen=True, slots=True)
class QueryBlock:
    """A SELECT.

    `items`: the text of each column with its name (empty: not certain); None: one cannot be written again, or need not
    be. `where` empty: there is none; None as for `items`. `inner_conditions`: the conjuncts that name no column of an
    outer side. `own_keys`: for each output column, an expression over the FROM by whose values output rows can be
    divided into independent parts; None: no such column. `names`: in order and lower case; empty: not certain.
    `grouped`: rows of the FROM come together by GROUP BY, DISTINCT or a window.
    """

    items: tuple[tuple[str, str], ...] | None
    sources: tuple[BlockSource, ...]
    where: str | None
    inner_conditions: tuple[str, ...]
    own_keys: tuple[BlockKey | None, ...]
    names: tuple[str, ...]
    grouped: bool

    @property
    def keys(self) -> Mapping[str, BlockKey]:
        """The columns by whose values rows can be divided, by the names that no other column has."""
        pairs = zip(self.names, self.own_keys, strict=True)
        return {name: key for name, key in pairs if name and key is not None and self.names.count(name) == 1}

    @property
    def row_by_row(self) -> bool:
        """Whether each row of its only source gives a row or none, whatever the others are."""
        (first, *more) = self.sources
        return not (self.grouped or more) and (first.inner is None or first.inner.row_by_row)

    @property
    def outer(self) -> bool:
        """Whether columns of its sources may be NULL because nothing matches."""
        return any(one.outer for one in self.sources)

    @property
    def views(self) -> frozenset[str]:
        """The inputs that it reads."""
        view_sets = [one.inner.views if one.inner else frozenset({one.view}) for one in self.sources]
        return frozenset().union(*view_sets)

    def query(self, rest: str) -> str:
        """Return the SELECT over another FROM and WHERE; raise NotFollowedError if a column cannot be written again."""
        if self.items is None:
            raise NotFollowedError("a column of a CTE or subquery is not followed: it is written in another way")
        text = f"SELECT {', '.join(f'{text} AS {quoted(name)}' if name else text for text, name in self.items)} {rest}"
        own = [name for _, name in self.items]
        if own == list(self.names):
            return text
        if "" in own or len(set(own)) < len(own):
            raise NotFollowedError("a list of columns for columns without names is not followed", "Name them.")
        renamed = ", ".join(f"{quoted(old)} AS {quoted(new)}" for old, new in zip(own, self.names, strict=True))
        return f"SELECT {renamed} FROM ({text}) AS {quoted('__renamed')}"  # noqa: S608 - the user's own query


def quoted(name: str) -> str:
    """A name in backticks."""
    return exp.to_identifier(name, quoted=True).sql(spark())
