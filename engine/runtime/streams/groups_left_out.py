"""The changed groups that a query leaves out, beside its rows: in update mode their rows are deleted from the table.

Spark emits each changed group, and what is above the aggregate (HAVING, an outer filter, a join) may leave it out: its
old values would stay. So the query runs in a form that lets every changed group through, marked by LEFT_OUT: filters
become a column, joins outer joins; all on the analysed plan, whatever the text is. Filters over grouping columns alone
stay: they decide on a group once and for all, and keep groups out of the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine.compile import Model
from engine.compile.nodes.model_settings import OutputMode
from engine.errors import Location, RunError
from engine.runtime.quality.expectations import LEFT_OUT
from engine.spark.internals.handles import each, frame_of
from engine.spark.internals.plans import (
    PlanMaker,
    analysed,
    column_id,
    conjuncts,
    has_aggregate,
    is_alias,
    is_column,
    nodes_of,
    references,
    rows_of,
    without_ctes,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MATCHED = "__matched"
_GROUPS = {"Aggregate", "Distinct"}
# These give as many rows for a group as before.
_PASSED_ON = {
    "SubqueryAlias", "View", "ResolvedHint", "CollectMetrics", "EventTimeWatermark", "Repartition",
    "RepartitionByExpression", "RebalancePartitions", "PipeOperator",
}  # fmt: skip
_GROUPING_ID = "spark_grouping_id"
_TIME_WINDOW = "spark.timeWindow"


@dataclass(frozen=True, slots=True)
class EveryGroup:
    """A query with the changed groups that it leaves out.

    `frame`: its rows and theirs, told apart by LEFT_OUT. `scope`: the columns that a group is known by, where it may
    have several rows; empty: it has one at most. `repeats`: a row may be there more than once.
    """

    frame: DataFrame
    scope: tuple[str, ...] = ()
    repeats: bool = False


def with_groups_left_out(model: Model, frame: DataFrame) -> EveryGroup:
    """Return the rows of a query with those of changed groups that it leaves out; of most queries just the rows.

    Raises:
        RunError: `update-needs-key`: which rows of the table belong to a group cannot be told;
            `update-filter`: what is above the aggregate cannot be taken apart.
    """
    if model.write.output_mode is not OutputMode.UPDATE or not model.write.unique_key:
        return EveryGroup(frame)
    session = frame.sparkSession
    plan = analysed(frame)
    if not any(node.nodeName() in _GROUPS and node.isStreaming() for node in nodes_of(plan)):
        return EveryGroup(frame)
    keys = {name.lower() for name in model.write.unique_key}
    ids = {
        column_id(column): str(column.name()) for column in each(plan.output()) if str(column.name()).lower() in keys
    }
    if any(node.nodeName() == "WithCTE" for node in nodes_of(plan)):
        plan = without_ctes(session, plan)
    all_groups_plan = _GroupPlanner(model, session, {*ids}).plan_of(plan)
    if all_groups_plan.passes is None and not all_groups_plan.several:
        return EveryGroup(frame)
    if all_groups_plan.several and model.write.history:
        raise _unsupported_step(model, "a join or a generator, with 'history',")
    names = {name: all_groups_plan.groups.get(number, frozenset()) for number, name in ids.items()}
    if missing_keys := all_groups_plan.all_groups - frozenset().union(*names.values()):
        raise _no_key(model, sorted(missing_keys))
    make = PlanMaker(session)
    left_out = make.alias(
        make.negate(all_groups_plan.passes) if all_groups_plan.passes is not None else make.false, LEFT_OUT
    )
    output = [
        column
        for column in each(all_groups_plan.plan.output())
        if all_groups_plan.passes is None or column_id(column) != column_id(all_groups_plan.passes)
    ]
    marked = make.project([*output, left_out], all_groups_plan.plan)
    scope = tuple(name for name, groups in names.items() if groups) if all_groups_plan.several else ()
    return EveryGroup(frame_of(session, rows_of(session, marked)), scope, all_groups_plan.repeats)


def _no_key(model: Model, missing_keys: Sequence[str]) -> RunError:
    message = (
        f"a group that '{model.name}' leaves out by now cannot be deleted from its table: 'unique_key' has no column "
        f"of {' and '.join(missing_keys)}, which the query groups by"
    )
    hint = "Return each grouping column (of a window, its start), and list them in 'unique_key'."
    return RunError("update-needs-key", message, hint, node=model.name, location=Location(model.file))


def _unsupported_step(model: Model, step: str) -> RunError:
    message = f"groups that '{model.name}' leaves out cannot be followed in update mode: {step} is above its aggregate"
    hint = "Put that into a model of its own that reads this table in full (materialized: table or view)."
    return RunError("update-filter", message, hint, node=model.name, location=Location(model.file))


@dataclass(frozen=True, slots=True)
class _GroupPlan:
    """A part of a plan that lets every changed group through.

    `plan` gives the columns of before, and `passes`: whether the query has the row (None: all). `groups`: the grouping
    columns that a column, by its id, stands for. `group_columns`: ids of those that only depend on the group.
    """

    plan: Any
    passes: Any = None
    groups: dict[int, frozenset[str]] = field(default_factory=dict)
    group_columns: frozenset[int] = frozenset()
    all_groups: frozenset[str] = frozenset()
    several: bool = False
    repeats: bool = False


@dataclass(slots=True)
class _GroupPlanner:
    """Takes apart what is above the aggregate; `needed_ids` are the ids of columns that all groups need."""

    model: Model
    session: SparkSession
    needed_ids: set[int]
    make: PlanMaker = field(init=False)

    def __post_init__(self) -> None:
        self.make = PlanMaker(self.session)

    def plan_of(self, node: Any) -> _GroupPlan:
        name = node.nodeName()
        if not any(part.nodeName() in _GROUPS for part in nodes_of(node)):
            return _GroupPlan(node)
        if name in _GROUPS:
            return self._group(node)
        if name == "Project":
            self._want(node)
        children = list(each(node.children()))
        streaming = [index for index, child in enumerate(children) if child.isStreaming()]
        if name == "Union":
            return self._union(node, children)
        if len(streaming) != 1:
            raise _unsupported_step(self.model, f"a step ({name}) over several streams")
        return self._above(node, children, streaming[0], self.plan_of(children[streaming[0]]))

    def _above(self, node: Any, children: list[Any], at: int, below: _GroupPlan) -> _GroupPlan:
        match name := node.nodeName():
            case "Filter":
                return self._filter(node, below)
            case "Project":
                return self._project(node, below)
            case "Join":
                return self._join(node, children, at, below)
            case "Generate":
                return self._generate(node, below)
        # Of UNPIVOT: each group has as many rows as there are columns.
        if name not in _PASSED_ON and (name != "Expand" or below.passes is not None):
            raise _unsupported_step(self.model, f"a step ({name})")
        children[at] = below.plan
        return replace(below, plan=node.withNewChildren(self.make.seq(children)))

    def _want(self, node: Any) -> None:
        for item in each(node.projectList()):
            if column_id(item) in self.needed_ids:
                self.needed_ids |= references(item)

    def _group(self, node: Any) -> _GroupPlan:
        if node.nodeName() == "Distinct":
            columns = {column_id(column): frozenset([str(column.name())]) for column in each(node.output())}
            return _GroupPlan(node, None, columns, frozenset(columns), frozenset().union(*columns.values()))
        keys = {_key_text(key): key for key in each(node.groupingExpressions()) if not key.foldable()}
        groups: dict[int, frozenset[str]] = {}
        group_columns = set()
        for item in each(node.aggregateExpressions()):
            expression = item.child() if is_alias(item) else item
            if not has_aggregate(expression) and expression.deterministic():
                group_columns.add(column_id(item))
            groups[column_id(item)] = frozenset(text for text, key in keys.items() if _stands_for(expression, key))
        return _GroupPlan(node, None, groups, frozenset(group_columns), frozenset(keys))

    def _filter(self, node: Any, below: _GroupPlan) -> _GroupPlan:
        parts = list(conjuncts(node.condition()))
        group_filters = [part for part in parts if part.deterministic() and references(part) <= below.group_columns]
        row_filters = [part for part in parts if not any(part is group_filter for group_filter in group_filters)]
        plan = self.make.filter(self.make.all(group_filters), below.plan) if group_filters else below.plan
        if not row_filters:
            return replace(below, plan=plan)
        passes = self.make.both_true(below.passes, self.make.certain(self.make.all(row_filters)))
        return self._passing(replace(below, plan=plan), list(each(node.output())), passes)

    def _passing(self, below: _GroupPlan, output: Sequence[Any], passes: Any) -> _GroupPlan:
        column = self.make.alias(passes, LEFT_OUT)
        plan = self.make.project([*output, column], below.plan)
        return replace(below, plan=plan, passes=column.toAttribute())

    def _project(self, node: Any, below: _GroupPlan) -> _GroupPlan:
        groups, group_columns = dict(below.groups), set(below.group_columns)
        items = []
        for item in each(node.projectList()):
            if not is_alias(item):
                items.append(item)
                continue
            expression = item.child()
            if expression.deterministic() and references(expression) <= below.group_columns:
                group_columns.add(column_id(item))
            groups[column_id(item)] = _known_by(expression, below.groups)
            is_needed = below.passes is None or column_id(item) in self.needed_ids
            items.append(
                item if is_needed else self.make.alias(self.make.only_where(below.passes, expression), "", item)
            )
        plan = self.make.project([*items, *([below.passes] if below.passes is not None else [])], below.plan)
        return replace(below, plan=plan, groups=groups, group_columns=frozenset(group_columns))

    def _join(self, node: Any, children: list[Any], at: int, below: _GroupPlan) -> _GroupPlan:
        kind, condition = str(node.joinType().sql()), node.condition()
        join_condition = None if condition.isEmpty() else condition.get()
        is_over_groups = (
            join_condition is not None
            and join_condition.deterministic()
            and references(join_condition, children[at]) <= below.group_columns
        )
        outer = "LEFT OUTER" if at == 0 else "RIGHT OUTER"
        if (kind in {"LEFT SEMI", "LEFT ANTI"} and is_over_groups) or (kind == outer and below.passes is None):
            # Over grouping columns alone Spark moves it below the aggregate.
            children[at] = below.plan
            several = below.several or kind == outer
            return replace(below, plan=node.withNewChildren(self.make.seq(children)), several=several)
        if kind not in {outer, "INNER", "CROSS", "LEFT SEMI", "LEFT ANTI"}:
            raise _unsupported_step(self.model, f"a {kind} join")
        matched = self.make.alias(self.make.true, _MATCHED)
        other_side = children[1 - at]
        other_side = self.make.project([*each(other_side.output()), matched], other_side)
        condition = self.make.both_true(below.passes, join_condition)
        sides = (below.plan, other_side) if at == 0 else (other_side, below.plan)
        plan = self.make.join(node, *sides, outer.replace(" ", "").lower(), condition)
        has_match = self.make.is_not_null(matched.toAttribute())
        passes = {
            "INNER": has_match,
            "CROSS": has_match,
            "LEFT SEMI": has_match,
            "LEFT ANTI": self.make.negate(has_match),
        }.get(kind)
        passes = self.make.both_true(below.passes, passes)
        several = below.several or kind not in {"LEFT SEMI", "LEFT ANTI"}
        joined = replace(below, plan=plan, several=several, repeats=below.repeats or kind == "LEFT SEMI")
        return self._passing(joined, list(each(node.output())), passes)

    def _generate(self, node: Any, below: _GroupPlan) -> _GroupPlan:
        generator = node.generator()
        if below.passes is not None:
            inner = [
                part if part.foldable() else self.make.only_where(below.passes, part)
                for part in each(generator.children())
            ]
            generator = generator.withNewChildren(self.make.seq(inner))
        return replace(below, plan=self.make.generate(node, generator, below.plan), several=True)

    def _union(self, node: Any, children: Sequence[Any]) -> _GroupPlan:
        if any(child.isStreaming() for child in children):
            parts = [self.plan_of(child) for child in children]
            if all(part.passes is None and not part.several for part in parts):
                # Nobody leaves a group out, and whether rows of several share a key is not for here.
                return _GroupPlan(node)
        raise _unsupported_step(self.model, "a UNION")


def _stands_for(expression: Any, key: Any) -> bool:
    """Whether an expression differs between groups as a grouping column does: it is that, or an end of a window."""
    if expression.semanticEquals(key):
        return True
    return bool(_is_field(expression) and expression.child().semanticEquals(key) and _is_window(key))


def _known_by(expression: Any, groups: dict[int, frozenset[str]]) -> frozenset[str]:
    inner = expression.child() if _is_field(expression) and _is_window(expression.child()) else expression
    return groups.get(column_id(inner), frozenset()) if is_column(inner) else frozenset()


def _is_field(expression: Any) -> bool:
    return bool(expression.getClass().getSimpleName() == "GetStructField")


def _is_window(expression: Any) -> bool:
    return is_column(expression) and bool(expression.metadata().contains(_TIME_WINDOW))


def _key_text(key: Any) -> str:
    name = str(key.name()) if is_column(key) else str(key.sql())
    return "the grouping set (grouping_id())" if name == _GROUPING_ID else f"'{name}'"
