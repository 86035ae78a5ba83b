"""The algebra that the rules look at: Spark's logical plan, as far as streaming depends on it.

A column keeps its id while it is passed on unchanged, and gets a new one from an expression or alias: by such ids Spark
decides whether two event-time columns are the same. Aliases hand marks (watermark, window) on, expressions lose them.

Not dataclasses: those took a tenth of the time of a compilation.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from engine.compile.sql.query_nodes import TreeNode

NO_IDS: frozenset[int] = frozenset()


class PlanColumn(Struct, frozen=True):
    """A column of a relation.

    `id` is Spark's expression id; `name` and `type` (empty: not known) are in lower case. `window`: tumbling, sliding
    or session for the struct that such a function makes. `copy_of`: id of the column that this is another name of, or
    0. `fields`: of a struct that the query built, as far as they carry marks. `watermark_lost_at`: the expression that
    dropped the watermark.
    """

    id: int
    name: str
    type: str = ""
    watermark: bool = False
    window: str = ""
    copy_of: int = 0
    fields: tuple[PlanColumn, ...] = ()
    watermark_lost_at: TreeNode | None = None
    is_certain: bool = True


class Term(Struct, frozen=True):
    """A summand of a time expression: its sign, and the column, or None for a constant of some seconds.

    `rounded`: the column is cast to a type that drops a part of the second.
    """

    negative: bool
    column: PlanColumn | None
    seconds: float = 0.0
    rounded: bool = False


class Side(Struct, frozen=True):
    """One side of a comparison.

    `refs`: ids of the columns it uses; `column`: the one it is, if nothing else; `terms`: the summands of a sum of
    times and intervals, or None.
    """

    refs: frozenset[int]
    column: PlanColumn | None
    terms: tuple[Term, ...] | None
    type: str = ""


class Condition(Struct, frozen=True):
    """One of the conditions that AND connects; `sign` is =, <=>, <, <=, >, >= or empty.

    `shared`: an equality in each part of an OR, which Spark takes out of it when the query runs, and not before.
    `projected`: a BETWEEN in ON of a value that Spark computes below the join when the query runs
    (RewriteWithExpression): then it compares a column of its own.
    """

    node: TreeNode
    refs: frozenset[int]
    sign: str = ""
    left_side: Side | None = None
    right_side: Side | None = None
    rejects_null: bool = False
    shared: bool = False
    projected: bool = False


class PlanName(Struct, frozen=True):
    """What a name refers to: a column, and a field of it where `path` is not empty.

    `path` is as it is written, as a part of it may be the key of a map. `alias`: it is an alias further left in the
    same SELECT.
    """

    column: PlanColumn
    path: tuple[str, ...] = ()
    alias: bool = False


class Key(Struct, frozen=True):
    """A grouping key: the expression, the column if it is one, and what it uses.

    `inherits` is the column that a field of a struct was made from in the query; `always`: no ROLLUP, CUBE or
    GROUPING SETS leaves the key out.
    """

    node: TreeNode
    column: PlanColumn | None
    refs: frozenset[int]
    constant: bool = False
    watermark_lost_at: TreeNode | None = None
    type: str = ""
    inherits: PlanColumn | None = None
    always: bool = True


# Which columns of the children a column of the result is made of.
Sources = tuple[tuple[int, frozenset[int]], ...]


# Steps of a query with its CTEs in the place of their names, and columns of a step: with CTEs over CTEs, `p.*, q.*`
# doubles them each time.
MAX_STEPS = 5_000
MAX_COLUMNS = 100_000


class PlanTooLargeError(Exception):
    """A query that doubles with each CTE: Spark's own planner does not come to an end with it either."""


def too_many_columns() -> PlanTooLargeError:
    """The error of a query that is too wide."""
    return PlanTooLargeError(f"the query, or a step of it, has more than {MAX_COLUMNS:,} columns")


class LogicalPlan(Struct, frozen=True, kw_only=True):
    """A step of a query.

    `uses` are columns of the children that it needs itself; `open`: it may have columns that nobody knows.
    """

    node: TreeNode
    columns: tuple[PlanColumn, ...] = ()
    children: tuple[LogicalPlan, ...] = ()
    uses: frozenset[int] = NO_IDS
    open: bool = False
    streaming: bool = False

    def __post_init__(self) -> None:
        if len(self.columns) > MAX_COLUMNS:
            raise too_many_columns()
        if not self.streaming and any(child.streaming for child in self.children):
            force_setattr(self, "streaming", True)

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(column.id for column in self.columns)

    @property
    def child(self) -> LogicalPlan:
        """The first (mostly the only) step it reads."""
        return self.children[0]


class Domain(Struct, frozen=True):
    """A correlated subquery that Spark computes by grouping rows of a stream by these columns."""

    node: TreeNode
    columns: tuple[PlanColumn, ...]


class SourcePlan(LogicalPlan, frozen=True, kw_only=True):
    """A relation that the query reads."""

    name: str = ""
    dedup: bool = False


class Filter(LogicalPlan, frozen=True, kw_only=True):
    """WHERE and HAVING."""

    conditions: tuple[Condition, ...] = ()


class Projection(LogicalPlan, frozen=True, kw_only=True):
    """Computes columns; those of `keeps_null` may have a value where what they are made of is NULL."""

    sources: Sources = ()
    keeps_null: frozenset[int] = NO_IDS


class Aggregate(LogicalPlan, frozen=True, kw_only=True):
    """GROUP BY, and aggregates without one.

    `sources`: what the columns are made of. `distinct`, `collects`: its aggregates that are DISTINCT, or grow with the
    group. `calls`: it has any. `results`: the columns that hold them. `repeats`: one is another value where rows
    repeat.
    """

    keys: tuple[Key, ...] = ()
    sources: Sources = ()
    distinct: tuple[TreeNode, ...] = ()
    collects: tuple[TreeNode, ...] = ()
    calls: bool = True
    results: frozenset[int] = NO_IDS
    repeats: bool = True


class Distinct(LogicalPlan, frozen=True, kw_only=True):
    """SELECT DISTINCT and UNION without ALL: an aggregate over all columns."""


class Join(LogicalPlan, frozen=True, kw_only=True):
    """A join; `kind` is inner, left, right, full, semi or anti."""

    kind: str = "inner"
    conditions: tuple[Condition, ...] = ()
    lateral: bool = False

    @property
    def left_side(self) -> LogicalPlan:
        return self.children[0]

    @property
    def right_side(self) -> LogicalPlan:
        return self.children[1]


class UnionPlan(LogicalPlan, frozen=True, kw_only=True):
    """UNION ALL."""


class Except(LogicalPlan, frozen=True, kw_only=True):
    """EXCEPT and EXCEPT ALL."""


class Intersect(LogicalPlan, frozen=True, kw_only=True):
    """INTERSECT."""


class Limit(LogicalPlan, frozen=True, kw_only=True):
    """LIMIT, and TABLESAMPLE of a number of rows."""


class Offset(LogicalPlan, frozen=True, kw_only=True):
    """OFFSET."""


class SortPlan(LogicalPlan, frozen=True, kw_only=True):
    """ORDER BY, SORT BY and CLUSTER BY."""


class Sample(LogicalPlan, frozen=True, kw_only=True):
    """TABLESAMPLE of a part."""


class Over(LogicalPlan, frozen=True, kw_only=True):
    """Functions with OVER; `calls` are they."""

    calls: tuple[TreeNode, ...] = ()


class Generate(LogicalPlan, frozen=True, kw_only=True):
    """What makes several rows of one: LATERAL VIEW, UNPIVOT, TRANSFORM."""

    renamed: Sources = ()


class With(LogicalPlan, frozen=True, kw_only=True):
    """CTEs and the query that reads them, the last child."""


class Ref(LogicalPlan, frozen=True, kw_only=True):
    """A CTE where it is read. Spark checks it as a leaf and runs it in place; so it is not a child here."""

    definition: LogicalPlan | None = None


def walk(plan: LogicalPlan) -> list[LogicalPlan]:
    """The steps as Spark checks them before the start, from the top; CTEs once, where they are defined."""
    steps, waiting = [], [plan]
    while waiting:
        step = waiting.pop()
        steps.append(step)
        waiting += reversed(step.children)
    return steps


def executed_children(plan: LogicalPlan) -> tuple[LogicalPlan, ...]:
    """What a step reads when the query runs: CTEs in place."""
    if isinstance(plan, With):
        return plan.children[-1:]
    if isinstance(plan, Ref) and plan.definition is not None:
        return (plan.definition,)
    return plan.children


def count_steps(plan: LogicalPlan, counted: dict[int, int] | None = None) -> int:
    """Return how many steps a query has when it runs; a CTE counts as often as it is read."""
    counted = {} if counted is None else counted
    if id(plan) not in counted:
        counted[id(plan)] = 1 + sum(count_steps(below, counted) for below in executed_children(plan))
    return counted[id(plan)]


def copy_of_column(column: PlanColumn, number: int, name: str | None = None) -> PlanColumn:
    return replace(column, id=number, name=column.name if name is None else name, copy_of=column.id)


def in_place(plan: Ref) -> LogicalPlan:
    """A CTE where it is read, as a step of the plan that runs."""
    (below,) = executed_children(plan)
    pairs = zip(plan.columns, below.columns, strict=False)
    names = tuple((mine.id, frozenset({theirs.id})) for mine, theirs in pairs)
    return Projection(node=plan.node, columns=plan.columns, children=(below,), sources=names, open=plan.open)


def groups_by_outer(plan: LogicalPlan, outer: frozenset[int], *, scalar: bool) -> bool:
    """Return whether Spark computes a correlated subquery by an aggregate over the outer rows.

    Not if it aggregates nothing, or is scalar and tied by equalities alone: that one is joined.
    """
    steps = walk(plan)
    if not any(isinstance(step, (Aggregate, Distinct)) for step in steps):
        return False
    conditions = [c for step in steps if isinstance(step, Filter) for c in step.conditions if c.refs & outer]
    tied = all(_ties(condition, outer) for condition in conditions)
    return not (scalar and tied and not any(isinstance(step, Limit) for step in steps))


def _ties(condition: Condition, outer: frozenset[int]) -> bool:
    left_side, right_side = condition.left_side, condition.right_side
    if condition.sign != "=" or left_side is None or right_side is None:
        return False
    return (left_side.refs <= outer) != (right_side.refs <= outer) and not (
        left_side.refs & outer and right_side.refs & outer
    )
