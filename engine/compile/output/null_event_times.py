"""Which streams lose rows whose event time is NULL, because a stateful step uses it.

Measured on Spark 4.1.4: a window drops such a row, whatever the output mode; in append mode a group or a DISTINCT over
the event time keeps it without bound; a dedup lets its duplicates through; a join with a bound on the time never
matches it, and an outer one never releases it. Other groups and joins count it as any row. `where <event time> is not
null` decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.compile.columns.column_scope import NOTHING, ColumnValue, Place
from engine.compile.columns.column_texts import dotted_names, expression
from engine.compile.columns.find_columns import BoundQuery
from engine.compile.nodes.column_facts import Origin
from engine.compile.nodes.manifest import Input, Model, Watermark
from engine.compile.nodes.model_settings import OutputMode
from engine.compile.sql.query_nodes import QueryNodes

_WINDOWS = {"window", "session_window"}
# Two inputs are joined on their times.
_BOTH = 2


def with_needed_times(model: Model, nodes: QueryNodes, bound: BoundQuery) -> Model:
    """Return the model with `needs_time` decided for each of its streams."""
    if model.in_catalog and not model.streaming:
        return model
    use = _use(model, nodes, bound)
    return replace(model, inputs=tuple(_with_needed_time(item, use) for item in model.inputs))


def _with_needed_time(item: Input, use: _Use) -> Input:
    # The stream settings of an ephemeral model apply wherever it is read.
    if item.watermark is None or not item.stream or item.needs_time is not None:
        return item
    if use.leaves_out_null(item):
        return replace(item, needs_time=False)
    return replace(item, needs_time=True) if item.dedup or use.needs(item) else item


@dataclass(frozen=True, slots=True)
class _Use:
    """What a query does with the event times of its streams.

    `groups` and `distinct`: such a step over a time loses NULL or holds it. `joins`: it may join streams. `not_null`:
    columns of which it says itself that they are not NULL, by what they come from.
    """

    model: Model
    streams: tuple[Input, ...]
    groups: bool
    distinct: bool
    joins: bool
    not_null: frozenset[Place]

    def leaves_out_null(self, item: Input) -> bool:
        """Whether the query has a condition of its own on NULL times of a stream."""
        own = item.watermark.column.lower() if item.watermark else ""
        nodes = (f"model.{item.through}",) if item.through else (item.node, f"watermark {item.node}")
        return not self.not_null.isdisjoint((node, own) for node in nodes)

    def needs(self, item: Input) -> bool:
        """Whether a stateful step uses the event time of a stream."""
        kinds = self._kinds(item)
        if (self.groups and "group" in kinds) or (self.distinct and not item.through):
            return True
        if not self.joins:
            return False
        bounded = "filter" in kinds and sum("filter" in self._kinds(other) for other in self.streams) >= _BOTH
        return "join" in kinds or bounded

    def _kinds(self, item: Input) -> set[str]:
        """What the event time of a stream decides: group, join, filter, ..."""
        if item.watermark is None:
            return set()
        if not item.through:
            names = _names(item.watermark)
            return {o.kind for o in self.model.indirect if o.node == item.node and o.column.lower() in names}
        return set(self._kinds_through(item.watermark.column.lower()))

    def _kinds_through(self, column: str) -> Iterator[str]:
        """The same for the stream of an ephemeral model, whose columns are known by their names there only."""
        inlined = {f"model.{name}" for name in self.model.inlined}
        for origin in self.model.indirect:
            if origin.node in inlined and (origin.column.lower() == column or self._groups_time(origin)):
                yield origin.kind

    def _groups_time(self, origin: Origin) -> bool:
        return origin.kind == "group" and self.groups


def _use(model: Model, nodes: QueryNodes, bound: BoundQuery) -> _Use:
    streams = tuple(item for item in model.inputs if item.stream)
    views = {item.view for item in streams}
    append = model.write.output_mode in {None, OutputMode.APPEND}
    windows = bool(model.windows) or any(call.name.lower() in _WINDOWS for call in nodes.every(exp.Anonymous))
    return _Use(
        model=model,
        streams=streams,
        groups=append or windows,
        distinct=append and _distinct(nodes),
        joins=sum(slot.view in views for slot in model.slots) > 1 and bool(nodes.every(exp.Join)),
        not_null=frozenset(_not_null(nodes, bound.noted.names)),
    )


def _names(mark: Watermark) -> set[str]:
    """The columns that an event time may be made of, in lower case: those that its expression names."""
    tree = expression(mark.expression) if mark.expression else None
    return {mark.column.lower(), *(dotted_names(tree) if tree is not None else ())}


def _distinct(nodes: QueryNodes) -> bool:
    selects = any(select.args.get("distinct") for select in nodes.every(exp.Select))
    return selects or any(operation.args.get("distinct") for operation in nodes.every(exp.SetOperation))


def _not_null(nodes: QueryNodes, names: Mapping[int, tuple[int, ColumnValue]]) -> Iterator[Place]:
    """What the columns come from, or are named by, that a WHERE requires to be not NULL; in lower case."""
    for where in nodes.every(exp.Where):
        for part in where.this.flatten() if isinstance(where.this, exp.And) else (where.this,):
            test = part.unnest()
            inner = test.this.unnest() if isinstance(test, exp.Not) else None
            null = isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null)
            if inner is not None and null and isinstance(inner.this, exp.Column):
                _, value = names.get(inner.this.parts[0].meta.get("start", -1), (0, NOTHING))
                yield str(value.named_at), inner.this.name.lower()
                yield from ((node, column.lower()) for node, column in value.origins if value.exact)
