"""What names mean inside one SELECT: the relations it reads, and Spark's order of looking a name up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlglot import exp

from engine.compile.streaming.query_plan.logical_plan import LogicalPlan, SourcePlan
from engine.compile.types import spark_types

Place = tuple[str, str]
# Of what has no steps, or none yet.
NO_PLAN = SourcePlan(node=exp.Null(), open=True)


class ColumnValue(Struct, frozen=True):
    """What is known of a value.

    `type` is as Spark prints it, or None; `origins` are the node and column of what it comes from. `exact`: it is its
    origin unchanged, so that a field of it is a field of the origin. `parts`: the fields of a struct that the query
    itself makes. `window`: the declared window whose start or end it is (`hour.start`). `certain`: its type is declared
    or follows from what is.

    `named_at` gave the column its name: the offset of an alias in the query, `window <name>`, or `watermark <node>`;
    -1: what it comes from has the name. `id`: of the column that it is; new where an expression, an alias or a reading
    makes a new column; 0: none.
    """

    type: str | None
    origins: tuple[Place, ...] = ()
    exact: bool = False
    parts: Mapping[str, ColumnValue] | None = None
    window: str = ""
    certain: bool = False
    named_at: int | str = -1
    id: int = 0


NOTHING = ColumnValue(None)


class ScopeColumn(Struct, frozen=True):
    """A named value; `item` is the number of the projection that gives it, -1 if there is none."""

    name: str
    value: ColumnValue
    named: bool = True
    item: int = -1


@dataclass(slots=True)
class OutputColumns:
    """What a query or an item of FROM gives.

    `columns` are those that are known, in order; `open`: there are others, and `rest` is the node that has them, if it
    is one. `unknown_relation`: it stands for something that does not exist, which is reported elsewhere. `hidden`:
    columns that a star leaves out. `is_input`: it is an input, and no part of the query.
    """

    columns: list[ScopeColumn]
    open: bool = False
    rest: str | None = None
    hidden: Mapping[str, ColumnValue] = field(default_factory=dict)
    unknown_relation: bool = False
    is_input: bool = False
    plan: LogicalPlan = NO_PLAN


class GroupKey(Struct, frozen=True):
    """An expression of GROUP BY.

    `node` is as written, without brackets; of ALL the item of the SELECT. `column` is the one of the SELECT that it
    names by an alias, a place, or ALL. `always`: no ROLLUP, CUBE or GROUPING SETS leaves it out.
    """

    node: exp.Expr
    column: ScopeColumn | None = None
    always: bool = True


class NameRef(Struct, frozen=True):
    """What a dotted name refers to.

    `ids`: of the columns that it may be; several if it is ambiguous. `name` and `relation` (the qualifier) are in lower
    case. `path`: the field in it; see `part_name`. `outer`: it is a column of the SELECT around.
    """

    ids: tuple[int, ...]
    name: str
    path: tuple[str, ...] = ()
    relation: str = ""
    outer: bool = False

    @property
    def is_parameter(self) -> bool:
        """Whether it is a parameter of a lambda, and no column."""
        return self.ids == (0,)

    @property
    def text(self) -> str:
        """A text that is equal for names of one column, however they are qualified."""
        return f"{self.name}#{self.ids}{[*self.path]}"


class ResolvedName(Struct, frozen=True):
    """A dotted name that was looked up.

    `value` is of the whole name; `columns` are those that its begin can mean, which took `parts_used` parts; `path` is
    what is behind them (see `part_name`). `unknown`: the ids of such columns, by name, if nobody knows whether there is
    one of this name. `outer`: it was found in the SELECT around.
    """

    value: ColumnValue
    columns: Sequence[ColumnValue]
    parts_used: int
    path: tuple[str, ...] = ()
    unknown: dict[str, int] | None = None
    outer: bool = False


@dataclass(slots=True)
class ScopeRelation:
    """An item of FROM under the names by which its columns may be qualified, in lower case.

    `named_at`: the offset of its alias, or of the CTE that it is; or the node whose name it has; -1: none of these.
    `unknown`: ids of columns that it may have, by name.
    """

    names: tuple[str, ...]
    output: OutputColumns
    named_at: int | str = -1
    unknown: dict[str, int] = field(default_factory=dict)
    _index: dict[str, list[ColumnValue]] | None = None

    def find(self, name: str) -> list[ColumnValue]:
        if self._index is None:
            self._index = index(self.output.columns)
        return self._index.get(name) or ([self.output.hidden[name]] if name in self.output.hidden else [])


def index(columns: Iterable[ScopeColumn]) -> dict[str, list[ColumnValue]]:
    by_name: dict[str, list[ColumnValue]] = {}
    for column in columns:
        by_name.setdefault(column.name.lower(), []).append(column.value)
    return by_name


class Missing(Exception):  # noqa: N818 - no error of ours, but an answer
    """A name that nothing has: the name, and those that could be meant."""

    def __init__(self, name: str, candidates: Sequence[str], part: int) -> None:
        super().__init__(name)
        self.name = name
        self.candidates = candidates
        self.part = part


@dataclass(slots=True)
class ColumnScope:
    """The names of one SELECT.

    `outer` is the SELECT around it, for subqueries that look out; `columns` are what a star gives. `computed`: values
    under names that FROM does not have. `aliases`: those of the SELECT so far, while its list is read; Spark takes none
    of them in OVER. `results`: columns of the SELECT that HAVING and ORDER BY see before those of FROM. `quiet`: names
    that are not found are not to be reported here. `outside`: a column of the SELECT around it was used. `unknown`: ids
    of columns that some of several relations may have, by name.
    """

    ctes: Mapping[str, Any]
    outer: ColumnScope | None = None
    relations: list[ScopeRelation] = field(default_factory=list)
    columns: list[ScopeColumn] = field(default_factory=list)
    computed: dict[str, ColumnValue] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    results: Mapping[str, ColumnValue] = field(default_factory=dict)
    variables: dict[str, ColumnValue] = field(default_factory=dict)
    quiet: bool = False
    outside: bool = False
    unknown: dict[str, int] = field(default_factory=dict)
    plan: LogicalPlan = NO_PLAN
    used_in_subqueries: set[int] = field(default_factory=set)
    _index: dict[str, list[ColumnValue]] | None = None

    @property
    def open(self) -> bool:
        """Whether an input has columns that are not known."""
        return any(relation.output.open for relation in self.relations)

    def add(self, relation: ScopeRelation) -> None:
        """Read one more relation; the columns of a star are extended by the caller."""
        self.relations.append(relation)
        self._index = None

    def forget(self) -> None:
        """Forget what was looked up in columns that have changed since."""
        self._index = None

    def relation_named(self, name: str) -> ScopeRelation | None:
        """The relation of an alias in lower case."""
        return next((r for r in self.relations if name in r.names), None)

    def starred(self, name: str) -> OutputColumns | None:
        """What `t.*` stands for, `t` in lower case: a relation here, or of the SELECT around (ResolveReferences)."""
        for scope in (self, self.outer):
            relation = scope.relation_named(name) if scope is not None else None
            if relation is not None and scope is not None:
                if scope is not self:
                    self.outside = True
                    scope.used_in_subqueries.update(column.value.id for column in relation.output.columns)
                return relation.output
        return None

    def reads(self, name: str) -> bool:
        """Whether FROM reads something of a name in lower case, which an alias does not hide."""
        return any(name in relation.names or relation.find(name) for relation in self.relations)

    def look_up(self, parts: Sequence[str]) -> ColumnValue:
        """The value of a dotted name; raises Missing if certainly nothing has it."""
        return self.find(parts).value

    def find(self, parts: Sequence[str]) -> ResolvedName:
        """What a dotted name means; raises Missing if certainly nothing has it."""
        lower = [part.lower() for part in parts]
        missing: Missing | None = None
        # Spark looks into the SELECT around a subquery, and no further.
        for scope in (self, self.outer):
            try:
                resolved = scope.find_in_this_select(parts, lower) if scope is not None else None
            except Missing as error:
                resolved, missing = None, missing or error
            if resolved is not None:
                if scope is self:
                    return resolved
                self.outside = True
                return replace(resolved, outer=True)
        raise missing or Missing(".".join(parts), list(self.candidates(lower)), 0)

    def find_in_this_select(self, parts: Sequence[str], lower: list[str]) -> ResolvedName | None:
        """What a dotted name means in this SELECT alone; None if it is not there."""
        resolved, parts_used = self.resolved(parts, lower)
        unknown = None
        if not resolved:
            resolved, parts_used, unknown = self._unknown(parts), 1, self._unknown_ids()
            if not resolved:
                return None
        elif parts_used > 1 and not resolved[0].id:
            relation = self.relation_named(lower[0])
            unknown = relation.unknown if relation is not None else None
        value = resolved[0] if len(resolved) == 1 else _ambiguous_value(resolved)
        value, path = field_of(value, parts, parts_used)
        return ResolvedName(value, resolved, parts_used, path, unknown)

    def resolved(self, parts: Sequence[str], lower: list[str]) -> tuple[list[ColumnValue], int]:
        """The columns that the begin of a dotted name can mean, and how many parts that took."""
        resolved, parts_used = self._qualified(parts, lower)
        if not resolved:
            if self._index is None:
                self._index = index(self.columns)
            resolved, parts_used = self._index.get(lower[0]) or self._hidden(lower[0]), 1
        if not resolved and lower[0] in self.computed:
            resolved, parts_used = [self.computed[lower[0]]], 1
        return resolved, parts_used

    def _hidden(self, name: str) -> list[ColumnValue]:
        return [r.output.hidden[name] for r in self.relations if name in r.output.hidden]

    def _qualified(self, parts: Sequence[str], lower: list[str]) -> tuple[list[ColumnValue], int]:
        # Every relation has an alias in what runs, so that no catalog or schema can be before it.
        for at in range(min(len(parts) - 1, 1)):
            for relation in self.relations:
                if lower[at] in relation.names:
                    value = relation.find(lower[at + 1])
                    if not value and relation.output.open:
                        return [possible_column(relation.output.rest, parts[at + 1])], at + 2
                    if value:
                        return value, at + 2
        return [], 0

    def _unknown(self, parts: Sequence[str]) -> list[ColumnValue]:
        """A column of the one relation whose columns are not known."""
        if not self.open or self._surely_not(parts):
            return []
        nodes = {r.output.rest for r in self.relations if r.output.open}
        return [possible_column(nodes.pop() if len(nodes) == 1 else None, parts[0])]

    def _unknown_ids(self) -> dict[str, int]:
        unknown = [relation for relation in self.relations if relation.output.open]
        return unknown[0].unknown if len(unknown) == 1 else self.unknown

    def _surely_not(self, parts: Sequence[str]) -> bool:
        """Whether a name is qualified by a relation that has no such column, and all else is lost.

        Else `o.x` could also be a field of a column `o` that nobody knows.
        """
        qualifier = self.relation_named(parts[0].lower()) if len(parts) > 1 else None
        unknown = [relation.output for relation in self.relations if relation.output.open]
        return (
            qualifier is not None and not qualifier.output.open and all(output.unknown_relation for output in unknown)
        )

    def candidates(self, lower: list[str]) -> Iterator[str]:
        """Names that could be meant, with the alias in front if there is one in the query."""
        for relation in self.relations if len(lower) > 1 else ():
            for name in relation.names[:1]:
                yield from (f"{name}.{column.name}" for column in relation.output.columns)
        yield from (column.name for column in self.columns)
        yield from self.computed
        if self.outer is not None:
            yield from self.outer.candidates(lower)


def possible_column(node: str | None, name: str) -> ColumnValue:
    """A column that a node may have; None: nobody knows which."""
    return NOTHING if node is None else ColumnValue(None, ((node, name),), exact=True)


def _ambiguous_value(values: list[ColumnValue]) -> ColumnValue:
    """An ambiguous name: all that it may mean."""
    kinds = {value.type for value in values}
    return ColumnValue(kinds.pop() if len(kinds) == 1 else None, origins(values))


def origins(values: Iterable[ColumnValue]) -> tuple[Place, ...]:
    if isinstance(values, list) and len(values) == 1:
        return values[0].origins  # type: ignore[no-any-return]
    return tuple(dict.fromkeys(place for value in values for place in value.origins))


def member(value: ColumnValue, parts: Sequence[str], position: int) -> ColumnValue:
    """The field of a struct, of the structs of an array, or the value of a map under a key."""
    name = parts[position]
    if value.parts is not None:
        part = value.parts.get(name.lower())
        if part is None:
            raise Missing(".".join(parts), _path_candidates(parts, position, value.parts), position)
        return part
    type_ = value.type
    many = spark_types.element(type_)
    fields = spark_types.fields(many or type_)
    if fields is not None:
        field = next((pair for pair in fields if pair[0].lower() == name.lower()), None)
        if field is None:
            raise Missing(".".join(parts), _path_candidates(parts, position, [f for f, _ in fields]), position)
        inner: str | None = spark_types.array(field[1]) if many else field[1]
        return field_value(value, field[0], inner)
    if type_ is not None and spark_types.is_opaque(many or type_):
        raise Missing(".".join(parts), [], position)
    if type_ is not None:
        return ColumnValue(spark_types.entry(type_)[1], value.origins, certain=value.certain)
    return field_value(value, name, None)


def field_of(value: ColumnValue, parts: Sequence[str], parts_used: int) -> tuple[ColumnValue, tuple[str, ...]]:
    """What the parts behind the first ones are of a value, and the names of those parts."""
    names = []
    for position in range(parts_used, len(parts)):
        names.append(part_name(value, parts[position]))
        value = member(value, parts, position)
    return value, tuple(names)


def part_name(value: ColumnValue, name: str) -> str:
    """A name behind a dot to compare it: fields of structs have any letter case, keys of maps have one."""
    is_field = value.parts is not None or spark_types.fields(spark_types.element(value.type) or value.type) is not None
    return name.lower() if is_field else name


def _path_candidates(parts: Sequence[str], position: int, names: Iterable[str]) -> list[str]:
    return [".".join([*parts[:position], name]) for name in names]


def field_value(value: ColumnValue, name: str, type_: str | None) -> ColumnValue:
    """A field of a value: of its origin where it is that unchanged."""
    if not value.exact:
        return ColumnValue(type_, value.origins, certain=value.certain)
    places = tuple((node, f"{column}.{name}") for node, column in value.origins)
    return ColumnValue(type_, places, exact=True, certain=value.certain)
