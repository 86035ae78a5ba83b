"""FROM: relations, joins, and what follows a relation."""

from __future__ import annotations

from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from sqlglot import exp

from engine.compile.sql.query_nodes import holds_relations
from engine.compile.streaming.lowering import lower_pivots
from engine.compile.streaming.lowering.lower_conditions import conditions, equal
from engine.compile.streaming.lowering.lower_subqueries import GENERATORS
from engine.compile.streaming.lowering.lowering_context import Env, Queries
from engine.compile.streaming.lowering.plan_scope import NamedRelation, PlanScope
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


class From(Struct, frozen=True):
    """What a FROM reads: the plan, the names in it, and what `*` shows."""

    plan: LogicalPlan
    named: tuple[NamedRelation, ...]
    visible: tuple[PlanColumn, ...]


def lower_from(queries: Queries, select: exp.Select, env: Env, outer: PlanScope | None) -> From:
    """Lower the FROM of a SELECT with its joins and lateral views."""
    start = select.args.get("from_")
    if start is None:
        return From(SourcePlan(node=select), (), ())
    relation = _item(queries, start.this, env, outer)
    for join in select.args.get("joins") or ():
        relation = _join(queries, relation, join, env, outer)
    for view in select.args.get("laterals") or ():
        relation = _view(queries, relation, view, env, outer)
    sample = select.args.get("sample")
    return _sampled(relation, sample) if sample is not None else relation


def _item(queries: Queries, node: exp.Expr, env: Env, outer: PlanScope | None) -> From:
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        name = ".".join(part.name for part in node.parts).lower()
        facts = queries.relations.get(name)
        plan, alias = _table(queries, node, name, env), (facts.alias if facts is not None else "") or name
    elif isinstance(node, exp.Subquery) and not holds_relations(node):
        plan, alias = queries.query(node.this, env, outer), ""
    elif isinstance(node, exp.Subquery):
        inner = _item(queries, node.this, env, outer)
        return _behind(queries, _named(queries, inner, node), node, env, outer)
    elif isinstance(node, exp.TableSample):
        return _sampled(_item(queries, node.this, env, outer), node)
    elif isinstance(node, exp.Values) and node.expressions:
        first = node.expressions[0]
        width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        plan, alias = (
            SourcePlan(node=node, columns=tuple(PlanColumn(queries.number(), f"col{i + 1}") for i in range(width))),
            "",
        )
    else:
        plan, alias = SourcePlan(node=node, open=True), ""
    plan = _sampled_plan(plan, node.args.get("sample"))
    relation = From(plan, (NamedRelation(alias, plan.columns, plan.open),), plan.columns)
    return _behind(queries, _named(queries, relation, node), node, env, outer)


def _named(queries: Queries, relation: From, node: exp.Expr) -> From:
    """A relation under the alias behind it, which may name its columns, too."""
    alias, plan, seen = node.alias.lower(), relation.plan, relation.visible
    names = [name.lower() for name in node.alias_column_names]
    if names and not plan.open and len(names) == len(seen):
        columns = tuple(renamed(c, queries.number(), n) for c, n in zip(seen, names, strict=True))
        made = tuple((new.id, frozenset({old.id})) for new, old in zip(columns, seen, strict=True))
        plan = Projection(node=node, columns=columns, children=(plan,), sources=made)
        alias, seen = alias or relation.named[0].alias, columns
    return From(plan, (NamedRelation(alias, seen, plan.open),), seen) if alias else relation


def _behind(queries: Queries, relation: From, node: exp.Expr, env: Env, outer: PlanScope | None) -> From:
    """Pivots, and joins inside brackets."""
    for pivot in node.args.get("pivots") or ():
        scope = PlanScope(list(relation.named), relation.visible, queries.number, outer)
        plan = lower_pivots.lower_pivot(relation.plan, pivot, queries.values(scope, env), queries.number)
        alias = pivot.alias.lower() or (relation.named[0].alias if relation.named else "")
        relation = From(plan, (NamedRelation(alias, plan.columns, plan.open),), plan.columns)
    for join in node.args.get("joins") or ():
        relation = _join(queries, relation, join, env, outer)
    return relation


def _table(queries: Queries, node: exp.Table, name: str, env: Env) -> LogicalPlan:
    if node.args.get("db") is None and name in env:
        definition = env[name]
        if not isinstance(definition, Ref):
            return definition
        columns = tuple(renamed(c, queries.number()) for c in definition.columns)
        return replace(definition, node=node, columns=columns)
    facts = queries.relations.get(name)
    if facts is None:
        return SourcePlan(node=node, name=name, open=True)
    marked = (facts.watermark or "").lower()
    # The names of fields keep their letter case: those of a JSON record have one.
    types = {n.lower(): t if t and "<" in t else (t or "").lower() for n, t in (facts.columns or {}).items()}
    if marked and facts.streaming:
        types.setdefault(marked, "timestamp")
    streaming, unknown = facts.streaming, facts.columns is None
    columns = tuple(PlanColumn(queries.number(), n, t, watermark=streaming and n == marked) for n, t in types.items())
    return SourcePlan(node=node, name=name, columns=columns, open=unknown, streaming=streaming, dedup=facts.dedup)


def _sampled(relation: From, sample: exp.Expr) -> From:
    return replace(relation, plan=_sampled_plan(relation.plan, sample))


def _sampled_plan(plan: LogicalPlan, sample: exp.Expr | None) -> LogicalPlan:
    if sample is None:
        return plan
    rows = sample.args.get("size") is not None and not sample.args.get("bucket_numerator")
    made = Limit if rows else Sample
    return made(node=sample, columns=plan.columns, children=(plan,), open=plan.open)


def _view(queries: Queries, relation: From, view: exp.Expr, env: Env, outer: PlanScope | None) -> From:
    """LATERAL VIEW explode(..)."""
    if view.this is None or view.find(exp.Func) is None:
        # sqlglot reads `u lateral .n` as a LATERAL of nothing.
        message = "LATERAL needs a function that makes rows"
        queries.report(error("sql-syntax", message, "Write LATERAL VIEW explode(..) name AS column.", view))
        return relation
    scope = PlanScope(list(relation.named), relation.visible, queries.number, outer)
    values = queries.values(scope, env)
    refs = values.of(view.this).refs
    plan = queries.widened(relation.plan, values)
    names = [name.lower() for name in view.alias_column_names] or _generated(view.this)
    made = tuple(PlanColumn(queries.number(), name) for name in names)
    sources = tuple((c.id, refs) for c in made)
    generated = Generate(
        node=view,
        columns=plan.columns + made,
        children=(plan,),
        uses=refs,
        renamed=sources,
        open=plan.open or not names,
    )
    named = NamedRelation(view.alias.lower(), made, not names)
    return From(generated, (*relation.named, named), relation.visible + made)


def _generated(call: exp.Expr) -> list[str]:
    """Spark's own names for the columns of a generator, where its argument shows them."""
    first = ["pos"] if isinstance(call, exp.Posexplode) else []
    if isinstance(call, (exp.Explode, exp.Posexplode)):
        if isinstance(call.this, exp.Array):
            return [*first, "col"]
        if isinstance(call.this, (exp.Map, exp.VarMap)):
            return [*first, "key", "value"]
    return []


def _join(queries: Queries, relation: From, join: exp.Expr, env: Env, outer: PlanScope | None) -> From:
    lateral = isinstance(join.this, exp.Lateral)
    read = partial(_lateral, left=relation) if lateral else _item
    right = read(queries, join.this, env, outer)
    kind = _kind(join)
    named = (*relation.named, *right.named)
    both = PlanScope(list(named), relation.visible + right.visible, queries.number, outer)
    values = queries.values(both, env)
    terms = conditions(join.args["on"], values, on=True) if join.args.get("on") is not None else ()
    pairs = _pairs(join, relation, right)
    terms += tuple(equal(left, other, node) for node, left, other in pairs)
    plan: LogicalPlan = Join(
        node=join,
        columns=relation.plan.columns if kind in {"semi", "anti"} else relation.plan.columns + right.plan.columns,
        children=(relation.plan, right.plan),
        uses=NO_IDS.union(*(c.refs for c in terms), right.plan.uses if lateral else NO_IDS),
        open=relation.plan.open or right.plan.open,
        kind=kind,
        conditions=terms,
        lateral=lateral,
    )
    if kind in {"semi", "anti"}:
        return From(plan, relation.named, relation.visible)
    merged, plan = _merged(queries, plan, kind, pairs)
    left_ids, right_ids = {left.id for _, left, _ in pairs}, {other.id for _, _, other in pairs}
    rest = tuple(c for c in relation.visible if c.id not in left_ids)
    rest += tuple(c for c in right.visible if c.id not in right_ids)
    return From(plan, named, merged + rest)


def _kind(join: exp.Expr) -> str:
    side, kind = (str(join.args.get(name) or "").lower() for name in ("side", "kind"))
    if kind in {"semi", "anti"}:
        return kind
    return side if side in {"left", "right", "full"} else "inner"


def _pairs(join: exp.Expr, left: From, right: From) -> list[tuple[exp.Expr, PlanColumn, PlanColumn]]:
    """The columns that USING and NATURAL compare."""
    using: list[tuple[exp.Expr, str]] = [(name, name.name.lower()) for name in join.args.get("using") or ()]
    if (join.args.get("method") or "").upper() == "NATURAL":
        theirs = {c.name for c in right.visible}
        using = [(join, c.name) for c in left.visible if c.name in theirs]
    pairs = []
    for node, name in using:
        ours = next((c for c in left.visible if c.name == name), None)
        other = next((c for c in right.visible if c.name == name), None)
        if ours is not None and other is not None:
            pairs.append((node, ours, other))
    return pairs


def _merged(
    queries: Queries, plan: LogicalPlan, kind: str, pairs: list[tuple[exp.Expr, PlanColumn, PlanColumn]]
) -> tuple[tuple[PlanColumn, ...], LogicalPlan]:
    """The one column that is seen of each pair; a full join makes a new one."""
    if kind != "full" or not pairs:
        return tuple(right if kind == "right" else left for _, left, right in pairs), plan
    made, sources = [], []
    for node, left, right in pairs:
        lost = node if left.watermark or right.watermark else None
        made.append(PlanColumn(queries.number(), left.name, left.type, lost=lost))
        sources.append((made[-1].id, frozenset({left.id, right.id})))
    sources += [(c.id, frozenset({c.id})) for c in plan.columns]
    columns = (*made, *plan.columns)
    wide = Projection(node=plan.node, columns=columns, children=(plan,), sources=tuple(sources), open=plan.open)
    return tuple(made), wide


def _one_row(node: exp.Expr, inner: exp.Expr) -> bool:
    """Whether it is one row under a condition, in WHERE or ON: Spark takes no step less for it then (measured)."""
    if not isinstance(inner, exp.Select) or inner.args.get("from_") is not None or inner.find(*GENERATORS) is not None:
        return False
    on = node.parent.args.get("on") if isinstance(node.parent, exp.Join) else None
    return inner.args.get("where") is not None or (on is not None and not isinstance(on, exp.Boolean))


def _lateral(queries: Queries, node: exp.Expr, env: Env, outer: PlanScope | None, *, left: From) -> From:
    """A lateral subquery sees the relations on its left; Spark treats it as a subquery of an expression."""
    scope = PlanScope(list(left.named), left.visible, queries.number, outer)
    inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    alias = node.alias.lower()
    if not isinstance(inner, exp.Query):
        names = [name.lower() for name in node.alias_column_names]
        columns = tuple(PlanColumn(queries.number(), name) for name in names)
        values = queries.values(scope, env)
        plan: LogicalPlan = SourcePlan(node=node, columns=columns, open=not names, uses=values.of(node.this).refs)
    else:
        plan = queries.query(inner, env, scope)
        if plan.streaming:
            message = "a lateral subquery cannot read a stream"
            hint = "Use a join, or remove the input of the subquery from 'streams:'."
            queries.report(error("subquery-on-stream", message, hint, inner))
        refs = frozenset(scope.hits)
        plan = replace(plan, uses=refs)
        if refs and left.plan.streaming and (groups_by_outer(plan, refs, scalar=False) or _one_row(node, inner)):
            queries.domain(node, left.plan, refs)
    return From(plan, (NamedRelation(alias, plan.columns, plan.open),), plan.columns)
