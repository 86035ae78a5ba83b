"""Expressions: what they use, and which marks of a column they hand on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace
from sqlglot import exp

from engine.compile.columns.column_scope import ColumnScope
from engine.compile.columns.column_texts import expression
from engine.compile.columns.subquery_places import GENERATORS, is_scalar
from engine.compile.columns.walk import WORDS, Walk
from engine.compile.columns.window_lengths import length_advice, length_fault
from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.sql.intervals import seconds
from engine.compile.streaming.query_plan.logical_plan import (
    NO_IDS,
    Domain,
    LogicalPlan,
    PlanColumn,
    PlanName,
    Projection,
    groups_by_outer,
)
from engine.compile.streaming.query_plan.stream_facts import error
from engine.compile.types import spark_types

TIMES = frozenset({"timestamp", "timestamp_ntz", "timestamp_ltz"})
# Spark reads these without brackets, and every file source has _metadata.
_WORDS = WORDS | {"localtimestamp", "current_catalog", "current_schema", "current_database", "_metadata"}
_HANDING_ON = (
    exp.Min, exp.Max, exp.First, exp.Last, exp.AnyValue, exp.Substring, exp.Concat, exp.Trim, exp.Lower, exp.Upper,
)  # fmt: skip
_COLLATE = " collate "
# What a query is in that is not an expression.
_AROUND = (exp.From, exp.Join, exp.CTE, exp.Lateral, exp.TableSample)
WINDOWS = {"window": "window", "session_window": "session"}
_COLLECTS = {"collect_list", "collect_set", "listagg", "string_agg", "array_agg"}
_LITERAL = (exp.Literal, exp.Boolean, exp.Null, exp.Interval)


class PlanValue(Struct, frozen=True):
    """What an expression is.

    `column`: the column it is, if it is one and nothing else. `inherits`: what an alias on it takes the marks from
    (also a field of a struct, which is not a column). `refs`: ids of the columns it uses. `fields`: of a struct it
    builds. `watermark_lost_at`: the part that makes something else of a watermarked column. `alias`: it uses an alias
    further left.
    """

    column: PlanColumn | None = None
    inherits: PlanColumn | None = None
    refs: frozenset[int] = NO_IDS
    type: str = ""
    fields: tuple[PlanColumn, ...] = ()
    constant: bool = False
    watermark_lost_at: exp.Expr | None = None
    alias: bool = False


@dataclass(slots=True)
class StepExpressions:
    """What the expressions of one step of the query hold.

    `windows` has the struct column of each window function by what makes it equal to another, `times` the column of
    each window_time(), `computed_columns` those with what they use. `correlated`: subqueries that use columns of this
    step; `domains`: those that Spark computes by grouping this step's rows by the columns they use.
    """

    windows: dict[tuple[object, ...], PlanColumn] = field(default_factory=dict)
    times: dict[tuple[object, ...], PlanColumn] = field(default_factory=dict)
    computed_columns: list[tuple[PlanColumn, frozenset[int]]] = field(default_factory=list)
    aggregates: list[exp.Expr] = field(default_factory=list)
    distinct: list[exp.Expr] = field(default_factory=list)
    collects: list[exp.Expr] = field(default_factory=list)
    over: list[exp.Expr] = field(default_factory=list)
    correlated: list[exp.Query] = field(default_factory=list)
    domains: list[tuple[exp.Expr, frozenset[int]]] = field(default_factory=list)
    generates: bool = False


@dataclass(slots=True)
class ExpressionReader:
    """Reads the expressions of one step; each part of the tree is read once.

    What it finds is noted in `walk` for the whole query. `columns`, by id, has what FROM reads and what the step made
    itself (windows, aliases further left in the SELECT); `read` has the ids of the former alone.
    """

    walk: Walk
    scope: ColumnScope
    columns: dict[int, PlanColumn]
    read: frozenset[int]
    aliases: set[int] = field(default_factory=set)
    step: StepExpressions = field(default_factory=StepExpressions)
    _values_by_node: dict[int, PlanValue] = field(default_factory=dict)

    def computed_ids(self) -> set[int]:
        return {column.id for number, column in self.columns.items() if number not in self.read}

    def resolve(self, node: exp.Column) -> PlanName | None:
        """What a column refers to; None if there is nothing of this name, or several things."""
        ref = self.walk.refs.get(id(node))
        if ref is None or (not ref.ids and ref.name in _WORDS):
            return PlanName(PlanColumn(-1, node.name.lower(), is_certain=False))
        if len(ref.ids) != 1:
            return None
        (number,) = ref.ids
        if number in self.walk.window_calls and number not in self.columns and not ref.outer:
            self._declare(node, number)
        column = self.column(number) or PlanColumn(number, ref.name, is_certain=False)
        return PlanName(column, ref.path, alias=number in self.aliases)

    def column(self, number: int) -> PlanColumn | None:
        """The column of an id, here or in the query around."""
        outer = self.scope.outer
        around = outer.plan.columns if outer is not None else ()
        return self.columns.get(number) or next((column for column in around if column.id == number), None)

    def widened(self, plan: LogicalPlan) -> LogicalPlan:
        """A plan with the columns that the windows of the step make; subqueries that group its rows are noted."""
        if plan.streaming:
            for node, refs in self.step.domains:
                self.walk.domains.append(Domain(node, tuple(c for c in plan.columns if c.id in refs)))
        if not self.step.computed_columns:
            return plan
        own = {column.id for column, _ in self.step.computed_columns}
        sources = {c.id: refs for c, refs in self.step.computed_columns} | {
            c.id: frozenset({c.id}) for c in plan.columns
        }
        for number in own:
            parts = (sources[r] if r in own and r != number else {r} for r in sources[number])
            sources[number] = NO_IDS.union(*parts)
        columns = (*(column for column, _ in self.step.computed_columns), *plan.columns)
        return Projection(
            node=plan.node, columns=columns, children=(plan,), sources=tuple(sources.items()), open=plan.open
        )

    def value_of(self, node: exp.Expr) -> PlanValue:
        read_before = self._values_by_node.get(id(node))
        if read_before is not None:
            return read_before
        # Long sums lean to the left: read from the bottom, they need no deep recursion.
        spine = [node]
        while isinstance(spine[-1], exp.Binary) and isinstance(spine[-1].this, exp.Binary):
            spine.append(spine[-1].this)
        for part in reversed(spine):
            if id(part) not in self._values_by_node:
                self._values_by_node[id(part)] = self._read(part)
        return self._values_by_node[id(node)]

    def _read(self, node: exp.Expr) -> PlanValue:
        if type(node) is exp.Literal:
            return PlanValue(type=self.walk.types.get(id(node), ""), constant=True)
        match node:
            case exp.Paren() | exp.Alias():
                value = self.value_of(node.this)
            case exp.Column() if not isinstance(node.this, exp.Star):
                value = self._column(node)
            case exp.Dot():
                value = self._field(self.value_of(node.this), (node.expression.name,), node)
            case exp.Lambda():
                value = self.value_of(node.this)
            case exp.Query():
                value = self._subquery(node)
            case exp.Anonymous() if node.expressions and node.name.lower() in WINDOWS:
                value = self._window(node, WINDOWS[node.name.lower()])
            case exp.Anonymous() if node.expressions and node.name.lower() == "window_time":
                value = self._window_time(node)
            case _:
                value = self._call(node)
        return value

    def _column(self, node: exp.Column) -> PlanValue:
        parts = [part.name.lower() for part in node.parts]
        resolved, ref = self.resolve(node), self.walk.refs.get(id(node))
        if ref is not None and ref.is_parameter:
            return PlanValue()
        if resolved is None and ref is not None and ref.ids:
            message, hint = f"two inputs have a column '{ref.name}'", self._qualified(ref.name, ref.ids)
            if ref.relation:
                message = f"'{ref.relation}' has two columns '{ref.name}'"
                hint = "Give one of them another name where they are selected."
            self._fault("ambiguous-column", message, hint, node)
            return PlanValue()
        if resolved is None:
            self._fault("unknown-column", f"column '{'.'.join(parts)}' not found", "Correct the name.", node)
            return PlanValue()
        self.walk.plan_names[id(node)] = resolved
        column = resolved.column
        if resolved.alias:
            # Spark computes it in a step of its own, where the watermark is lost (measured).
            lost_at = node if column.watermark else column.watermark_lost_at
            value = PlanValue(
                None, None, frozenset({column.id}), column.type, column.fields, watermark_lost_at=lost_at, alias=True
            )
        else:
            value = PlanValue(column, column, frozenset({column.id}), column.type, column.fields)
        return self._field(value, resolved.path, node) if resolved.path else value

    def _qualified(self, name: str, ids: Sequence[int]) -> str:
        """A hint with the column under the name of each input that has it."""
        inputs = [*self.scope.relations, *(self.scope.outer.relations if self.scope.outer is not None else ())]
        having = [r.names[0] for r in inputs if r.names and any(column.value.id in ids for column in r.output.columns)]
        written = dict.fromkeys(f"{relation}.{name}" for relation in having)
        return f"Write {' or '.join(written)}." if len(written) > 1 else "Write the name of the input in front of it."

    def _field(self, value: PlanValue, path: tuple[str, ...], node: exp.Expr) -> PlanValue:
        """A field of a struct: no column, though an alias on it takes the marks of what it was made from."""
        for name in path:
            inner = next((f for f in value.fields if f.name == name.lower()), None)
            lost_at = value.watermark_lost_at or (node if _had_watermark(value) else None)
            if inner is not None:
                value = PlanValue(
                    None,
                    inner,
                    value.refs,
                    inner.type,
                    inner.fields,
                    watermark_lost_at=node if inner.watermark else None,
                )
            else:
                timed = value.inherits is not None and bool(value.inherits.window)
                value = PlanValue(None, None, value.refs, "timestamp" if timed else "", watermark_lost_at=lost_at)
        return value

    def _subquery(self, node: exp.Query) -> PlanValue:
        if id(node) not in self.walk.plans:
            # Inside something of which no type is found.
            self.walk.subquery(node, self.scope)
        plan = self.walk.plans[id(node)]
        if plan.streaming:
            message = "a subquery in an expression cannot read a stream"
            hint = "Use a left semi join, or remove the input of the subquery from 'streams:'."
            self.walk.findings.append(error("subquery-on-stream", message, hint, node))
        elif plan.uses:
            self.step.correlated.append(node)
            if groups_by_outer(plan, plan.uses, scalar=is_scalar(node)):
                self.step.domains.append((node, plan.uses))
        return PlanValue(refs=plan.uses)

    def _window(self, node: exp.Anonymous, kind: str) -> PlanValue:
        time, *lengths = node.expressions
        value = self.value_of(time)
        rest = [self.value_of(length) for length in lengths]
        if value.inherits is not None and value.inherits.window:
            value = self._time_of(value, node)
        refs = value.refs.union(*(v.refs for v in rest))
        self._note(length_fault(node, kind, lengths))
        if value.type not in {"", "date", *TIMES} and not value.type.startswith(("struct", "string")):
            message = f"{node.name}() needs a timestamp, not {value.type}"
            self._fault("window-type", message, "Use a TIMESTAMP column.", node)
        sizes = [seconds(e) if seconds(e) is not None else e.sql() for e in lengths]
        sizes += sizes[:1] if kind == "window" and len(sizes) == 1 else []
        time_key = value.column.id if value.column is not None else time.sql()
        key = (kind, time_key, *sizes)
        column = self.step.windows.get(key)
        if column is None:
            name = "window" if kind == "window" else "session_window"
            marked = value.column is not None and value.column.watermark
            lost_at = None if marked else value.watermark_lost_at or _watermark_lost_at(value)
            form = "session" if kind == "session" else ("tumbling" if sizes[:1] == sizes[1:2] else "sliding")
            column = PlanColumn(next(self.walk.ids), name, "struct", marked, form, watermark_lost_at=lost_at)
            self.step.windows[key] = column
            self.walk.column_expressions[column.id] = node
            self._note(length_advice(node, form, [size for size in sizes if isinstance(size, float)]))
            self.step.computed_columns.append((column, refs))
            if len(self.step.windows) > 1:
                message = "a SELECT can have one time window only"
                hint = (
                    "Split it into two models; or compute the longer window from the shorter one, in a second SELECT: "
                    "tumbling(window_time(hour), 1 day)."
                )
                self._fault("agg-two-windows", message, hint, node)
        ref = self.walk.refs.get(id(node))
        self.columns |= dict.fromkeys((column.id, *(ref.ids if ref is not None else ())), column)
        return PlanValue(column, column, frozenset({column.id}), "struct", watermark_lost_at=column.watermark_lost_at)

    def _declare(self, node: exp.Column, number: int) -> None:
        """Read the call of a declared window as if it stood in the place of its name."""
        sql = self.walk.window_calls[number]
        written = expression(sql)
        if written is None:
            return
        call = written.copy()
        own = ColumnScope({}, None, self.scope.relations, self.scope.columns, quiet=True)
        dataclasses.replace(self.walk, text=f"select {sql}", faults={}, names={}, uses=None).value(call, own)
        start = min(part.meta.get("start", 0) for part in node.parts)
        for part in call.walk():
            part.meta["start"] = start
        column = self.value_of(call).column
        if column is not None:
            self.columns[number] = column

    def declared(self, node: exp.Expr) -> PlanColumn | None:
        """The declared window that an expression names, or of which it names a part."""
        ref = self.walk.refs.get(id(node)) if isinstance(node, exp.Column) else None
        if ref is None or len(ref.ids) != 1 or ref.ids[0] not in self.walk.window_calls or ref.outer:
            return None
        self.value_of(node)
        return self.columns.get(ref.ids[0])

    def _window_time(self, node: exp.Anonymous) -> PlanValue:
        value = self.value_of(node.expressions[0])
        inherits = value.column
        if inherits is not None and inherits.is_certain and not inherits.window:
            message = "window_time() takes the column of a window"
            self._fault("window-type", message, "Pass the window itself, not its start or end.", node)
        return self._time_of(value, node)

    def _time_of(self, value: PlanValue, node: exp.Expr) -> PlanValue:
        """The event time of a window: a column that Spark makes before the step."""
        key = ("time", value.column.id if value.column is not None else node.sql())
        column = self.step.times.get(key)
        if column is None:
            marked = value.column is not None and value.column.watermark
            column = PlanColumn(
                next(self.walk.ids), "window_time", "timestamp", marked, watermark_lost_at=value.watermark_lost_at
            )
            self.step.times[key] = column
            self.walk.column_expressions[column.id] = node
            self.step.computed_columns.append((column, value.refs))
        return PlanValue(
            column, column, frozenset({column.id}), "timestamp", watermark_lost_at=column.watermark_lost_at
        )

    def _call(self, node: exp.Expr) -> PlanValue:
        self._note_call(node)
        parts = [
            self.value_of(part)
            for part in node.iter_expressions()
            if not isinstance(part, (exp.DataType, exp.Identifier))
        ]
        if isinstance(node, exp.Window):
            inner = node.this.this if isinstance(node.this, (exp.IgnoreNulls, exp.RespectNulls)) else node.this
            self.step.aggregates = [a for a in self.step.aggregates if a is not inner]
        refs = NO_IDS.union(*(part.refs for part in parts))
        lost_at = next((p.watermark_lost_at for p in parts if p.watermark_lost_at is not None), None)
        if lost_at is None and any(_had_watermark(part) for part in parts) and not is_aggregate(node):
            lost_at = node
        fields = tuple(self._fields(node)) if isinstance(node, exp.Struct) else ()
        constant = isinstance(node, _LITERAL) or (bool(parts) and all(p.constant for p in parts))
        kind = self._type(node, [part.type for part in parts])
        return PlanValue(None, None, refs, kind, fields, constant, lost_at, any(part.alias for part in parts))

    def _note_call(self, node: exp.Expr) -> None:
        """Note what a call makes of its step, and what Spark rejects of it."""
        if isinstance(node, exp.Window):
            self.step.over.append(node)
        elif isinstance(node, GENERATORS):
            self.step.generates = True
        elif is_aggregate(node):
            self._aggregate(node)
        elif isinstance(node, (exp.Any, exp.All)) and isinstance(node.this, exp.Query):
            message = f"Spark has no comparison with {node.key.upper()} of a subquery"
            self._fault("sql-syntax", message, "Compare with max() or min() of it, or use IN.", node)
        elif (
            isinstance(node, exp.Anonymous)
            and node.name.lower() == "monotonically_increasing_id"
            and not _in_subquery(node)
        ):
            message = "monotonically_increasing_id() is not supported on streams"
            hint = "Use uuid(), or a hash of the columns that identify a row."
            self._fault("monotonic-id-on-stream", message, hint, node)

    def _type(self, node: exp.Expr, parts: Sequence[str]) -> str:
        """The type of a call as the columns have it, with what streams ask beyond it: collations."""
        if isinstance(node, exp.Collate):
            base = ((parts[0] if parts else "") or "string").partition(_COLLATE)[0]
            return f"{base}{_COLLATE}{node.expression.name.lower()}"
        if isinstance(node, _HANDING_ON) and (collated := next((part for part in parts if _COLLATE in part), "")):
            return collated
        type_ = self.walk.types.get(id(node))
        if type_ is None and isinstance(node, exp.Cast):
            # A collation is not part of the types of columns.
            return spark_types.of_node(node.to) or str(node.to.sql(dialect="spark").lower())
        return type_ or ""

    def _fields(self, node: exp.Struct) -> list[PlanColumn]:
        fields = []
        for part in node.expressions:
            inner = part.expression if isinstance(part, (exp.PropertyEQ, exp.EQ)) else part
            name = part.this.name if isinstance(part, exp.PropertyEQ) else part.alias_or_name
            value = self.value_of(inner)
            base = value.inherits or PlanColumn(0, "", value.type, fields=value.fields)
            fields.append(replace(base, name=name.lower()))
        return fields

    def _aggregate(self, node: exp.Expr) -> None:
        self.step.aggregates.append(node)
        inner = node.this if isinstance(node.this, exp.Expr) else None
        if isinstance(inner, exp.Distinct) or any(isinstance(e, exp.Distinct) for e in node.expressions):
            self.step.distinct.append(node)
        is_collect = isinstance(node, exp.Anonymous) and node.name.lower() in _COLLECTS
        if is_collect or isinstance(node, (exp.ArrayAgg, exp.ArrayUniqueAgg, exp.GroupConcat)):
            self.step.collects.append(node)

    def _note(self, finding: QueryFinding | None) -> None:
        if finding is not None:
            self.walk.findings.append(finding)

    def _fault(self, code: str, message: str, hint: str, node: exp.Expr) -> None:
        self.walk.findings.append(error(code, message, hint, node))


def _had_watermark(value: PlanValue) -> bool:
    return value.inherits is not None and (value.inherits.watermark or value.inherits.watermark_lost_at is not None)


def _watermark_lost_at(value: PlanValue) -> exp.Expr | None:
    return value.inherits.watermark_lost_at if value.inherits is not None else None


def reader(walk: Walk, scope: ColumnScope, *plans: LogicalPlan) -> ExpressionReader:
    columns = {column.id: column for plan in plans for column in plan.columns}
    return ExpressionReader(walk, scope, columns, frozenset(columns))


def _in_subquery(node: exp.Expr) -> bool:
    inner, above = node, node.parent
    while above is not None:
        listed = isinstance(above, exp.Select) and inner.arg_key == "expressions"
        if isinstance(inner, exp.Query) and (listed or not isinstance(above, (exp.Query, *_AROUND))):
            return True
        inner, above = above, above.parent
    return False


def path_of(plan_name: PlanName, *, certain: bool = False) -> Iterator[str]:
    """Yield the path into a column: a field of a struct as it is declared, the key of a map as it is written.

    Not `certain`: what is of no known type counts in any letter case.
    """
    type_ = spark_types.normal(plan_name.column.type)
    for name in plan_name.path:
        inside = spark_types.fields(spark_types.element(type_) or type_) or ()
        matches = [part for part in inside if part[0].lower() == name.lower()]
        is_key = spark_types.entry(type_) != (None, None) or (certain and not plan_name.column.window)
        yield matches[0][0] if matches else name if is_key else name.lower()
        type_ = matches[0][1] if len(matches) == 1 else spark_types.entry(type_)[1]
