"""FROM: relations, joins, and what follows a relation."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace
from sqlglot import exp

from engine.compile.columns.column_scope import OutputColumns
from engine.compile.sql.query_nodes import holds_relations
from engine.compile.streaming.lowering import lower_pivots
from engine.compile.streaming.lowering.lower_conditions import conditions, equal
from engine.compile.streaming.lowering.lower_subqueries import GENERATORS
from engine.compile.streaming.lowering.lowering_context import Env, Queries
from engine.compile.streaming.lowering.plan_scope import PlanScope
from engine.compile.streaming.query_plan.logical_plan import (
    NO_IDS,
    Generate,
    Join,
    Limit,
    LogicalPlan,
    PlanColumn,
    Projection,
    Ref,
    Sample,
    SourcePlan,
    groups_by_outer,
    renamed,
)
from engine.compile.streaming.query_plan.stream_facts import error


def lower_from(queries: Queries, select: exp.Select, env: Env, outer: PlanScope | None) -> LogicalPlan:
    """Lower the FROM of a SELECT with its joins and lateral views."""
    start = select.args.get("from_")
    if start is None:
        return SourcePlan(node=select)
    plan = _item(queries, start.this, env, outer)
    for join in select.args.get("joins") or ():
        plan = _join(queries, plan, join, env, outer)
    for view in select.args.get("laterals") or ():
        plan = _view(queries, plan, view, env, outer)
    return _sampled_plan(plan, select.args.get("sample"))


def _item(queries: Queries, node: exp.Expr, env: Env, outer: PlanScope | None) -> LogicalPlan:
    if isinstance(node, exp.TableSample):
        return _sampled_plan(_item(queries, node.this, env, outer), node)
    if isinstance(node, exp.Subquery) and holds_relations(node):
        return _behind(queries, _named(queries, _item(queries, node.this, env, outer), node), node, env, outer)
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        plan = _table(queries, node, env)
    elif isinstance(node, exp.Subquery):
        plan = queries.query(node.this, env, outer)
    elif isinstance(node, exp.Values) and (output := queries.stage(node, 0)) is not None:
        plan = SourcePlan(node=node, columns=_made(output))
    else:
        plan = SourcePlan(node=node, open=True)
    plan = _sampled_plan(plan, node.args.get("sample"))
    return _behind(queries, _named(queries, plan, node), node, env, outer)


def _made(output: OutputColumns) -> tuple[PlanColumn, ...]:
    return tuple(PlanColumn(column.value.id, column.name.lower()) for column in output.columns)


def _named(queries: Queries, plan: LogicalPlan, node: exp.Expr) -> LogicalPlan:
    """A relation under the names of columns that the alias behind it may have."""
    names, before, output = node.alias_column_names, queries.stage(node, 0), queries.stage(node, 1)
    if not names or plan.open or before is None or output is None or len(names) != len(before.columns):
        return plan
    by_id = {column.id: column for column in plan.columns}
    pairs = [(by_id.get(b.value.id), a) for b, a in zip(before.columns, output.columns, strict=True)]
    known = [(old, renamed(old, a.value.id, a.name.lower())) for old, a in pairs if old is not None]
    sources = tuple((new.id, frozenset({old.id})) for old, new in known)
    return Projection(node=node, columns=tuple(new for _, new in known), children=(plan,), sources=sources)


def _behind(queries: Queries, plan: LogicalPlan, node: exp.Expr, env: Env, outer: PlanScope | None) -> LogicalPlan:
    """Pivots, and joins inside brackets."""
    for place, pivot in enumerate(node.args.get("pivots") or (), 2):
        values = queries.values(queries.scope(outer, plan), env)
        plan = lower_pivots.lower_pivot(plan, pivot, values, queries.number, queries.stage(node, place))
    for join in node.args.get("joins") or ():
        plan = _join(queries, plan, join, env, outer)
    return plan


def _table(queries: Queries, node: exp.Table, env: Env) -> LogicalPlan:
    name, output = ".".join(part.name for part in node.parts).lower(), queries.stage(node, 0)
    if node.args.get("db") is None and name in env:
        definition = env[name]
        if not isinstance(definition, Ref):
            return definition
        return replace(definition, node=node, columns=queries.numbered(definition.columns, output))
    facts = queries.relations.get(name)
    if facts is None:
        return SourcePlan(node=node, name=name, open=True)
    marked = (facts.watermark or "").lower()
    # The names of fields keep their letter case: those of a JSON record have one.
    types = {n.lower(): t if t and "<" in t else (t or "").lower() for n, t in (facts.columns or {}).items()}
    if marked and facts.streaming:
        types.setdefault(marked, "timestamp")
    given = {c.name.lower(): c.value for c in reversed(output.columns)} | {**output.hidden} if output else {}
    ids = {name: given[name].id if name in given else queries.number() for name in types}
    streaming, unknown = facts.streaming, facts.columns is None
    columns = tuple(PlanColumn(ids[n], n, t, watermark=streaming and n == marked) for n, t in types.items())
    return SourcePlan(node=node, name=name, columns=columns, open=unknown, streaming=streaming, dedup=facts.dedup)


def _sampled_plan(plan: LogicalPlan, sample: exp.Expr | None) -> LogicalPlan:
    if sample is None:
        return plan
    rows = sample.args.get("size") is not None and not sample.args.get("bucket_numerator")
    made = Limit if rows else Sample
    return made(node=sample, columns=plan.columns, children=(plan,), open=plan.open)


def _view(queries: Queries, plan: LogicalPlan, view: exp.Expr, env: Env, outer: PlanScope | None) -> LogicalPlan:
    """LATERAL VIEW explode(..)."""
    if view.this is None or view.find(exp.Func) is None:
        # sqlglot reads `u lateral .n` as a LATERAL of nothing.
        message = "LATERAL needs a function that makes rows"
        queries.report(error("sql-syntax", message, "Write LATERAL VIEW explode(..) name AS column.", view))
        return plan
    values = queries.values(queries.scope(outer, plan), env)
    refs = values.of(view.this).refs
    plan = queries.widened(plan, values)
    output = queries.stage(view, 1)
    made = _made(output) if output is not None else ()
    return Generate(
        node=view,
        columns=plan.columns + made,
        children=(plan,),
        uses=refs,
        renamed=tuple((c.id, refs) for c in made),
        open=plan.open or output is None or output.open,
    )


def _join(queries: Queries, left: LogicalPlan, join: exp.Expr, env: Env, outer: PlanScope | None) -> LogicalPlan:
    lateral = isinstance(join.this, exp.Lateral)
    read = partial(_lateral, left=left) if lateral else _item
    right, kind = read(queries, join.this, env, outer), _kind(join)
    values = queries.values(queries.scope(outer, left, right), env)
    terms = conditions(join.args["on"], values, on=True) if join.args.get("on") is not None else ()
    pairs = _pairs(queries, join, left, right)
    terms += tuple(equal(ours, theirs, node) for node, ours, theirs, _ in pairs)
    plan: LogicalPlan = Join(
        node=join,
        columns=left.columns if kind in {"semi", "anti"} else left.columns + right.columns,
        children=(left, right),
        uses=NO_IDS.union(*(c.refs for c in terms), right.uses if lateral else NO_IDS),
        open=left.open or right.open,
        kind=kind,
        conditions=terms,
        lateral=lateral,
    )
    return _merged(plan, pairs) if kind == "full" and pairs else plan


def _kind(join: exp.Expr) -> str:
    side, kind = (str(join.args.get(name) or "").lower() for name in ("side", "kind"))
    if kind in {"semi", "anti"}:
        return kind
    return side if side in {"left", "right", "full"} else "inner"


_Pair = tuple[exp.Expr, PlanColumn, PlanColumn, int]


def _pairs(queries: Queries, join: exp.Expr, left: LogicalPlan, right: LogicalPlan) -> list[_Pair]:
    """The columns that USING and NATURAL compare, with the id of the one that is seen."""
    ours, theirs = ({column.id: column for column in side.columns} for side in (left, right))
    pairs = queries.bound.noted.merged.get(id(join), ())
    return [(node, ours[a], theirs[b], seen) for node, a, b, seen in pairs if a in ours and b in theirs]


def _merged(plan: LogicalPlan, pairs: list[_Pair]) -> LogicalPlan:
    """A full join makes a new column of each pair."""
    made, sources = [], []
    for node, left, right, seen in pairs:
        lost = node if left.watermark or right.watermark else None
        made.append(PlanColumn(seen, left.name, left.type, lost=lost))
        sources.append((seen, frozenset({left.id, right.id})))
    sources += [(c.id, frozenset({c.id})) for c in plan.columns]
    columns = (*made, *plan.columns)
    return Projection(node=plan.node, columns=columns, children=(plan,), sources=tuple(sources), open=plan.open)


def _one_row(node: exp.Expr, inner: exp.Expr) -> bool:
    """Whether it is one row under a condition, in WHERE or ON: Spark takes no step less for it then (measured)."""
    if not isinstance(inner, exp.Select) or inner.args.get("from_") is not None or inner.find(*GENERATORS) is not None:
        return False
    on = node.parent.args.get("on") if isinstance(node.parent, exp.Join) else None
    return inner.args.get("where") is not None or (on is not None and not isinstance(on, exp.Boolean))


def _lateral(queries: Queries, node: exp.Expr, env: Env, outer: PlanScope | None, *, left: LogicalPlan) -> LogicalPlan:
    """A lateral subquery sees the relations on its left; Spark treats it as a subquery of an expression."""
    scope = queries.scope(outer, left)
    inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    if not isinstance(inner, exp.Query):
        output, refs = queries.stage(node, 1), queries.values(scope, env).of(node.this).refs
        made = _made(output) if output is not None else ()
        return SourcePlan(node=node, columns=made, open=output is None or output.open, uses=refs)
    plan = queries.query(inner, env, scope)
    if plan.streaming:
        message = "a lateral subquery cannot read a stream"
        hint = "Use a join, or remove the input of the subquery from 'streams:'."
        queries.report(error("subquery-on-stream", message, hint, inner))
    refs = frozenset(scope.hits)
    plan = replace(plan, uses=refs)
    if refs and left.streaming and (groups_by_outer(plan, refs, scalar=False) or _one_row(node, inner)):
        queries.domain(node, left, refs)
    return replace(_named(queries, plan, node), uses=refs)
