"""What FROM reads: inputs, CTEs, subqueries, joins, lateral views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.compile.columns import calls, types
from engine.compile.columns.facts import InputColumns
from engine.compile.columns.scope import Column, Missing, Output, Relation, Scope, Value, index, origins
from engine.compile.columns.texts import expression
from engine.compile.columns.values import influenced
from engine.compile.columns.walk import Walk
from engine.compile.columns.widening import widest

UNKNOWN = Output([], open=True)
_PLACEHOLDER = "@"


@dataclass(slots=True)
class Cte:
    """A query under a name, read when it is first used; `anchor` is the first half of a recursive one."""

    node: exp.Expr
    ctes: Mapping[str, Cte]
    output: Output | None = None
    busy: bool = False


def with_ctes(node: exp.Expr, ctes: Mapping[str, Cte]) -> Mapping[str, Cte]:
    """The CTEs that a query sees: its own before those around it, each one those before it."""
    clause = node.args.get("with_")
    if clause is None:
        return ctes
    known = dict(ctes)
    recursive = clause.args.get("recursive")
    for cte in clause.expressions:
        entry = Cte(cte, dict(known))
        if recursive:
            entry.ctes = {**known, cte.alias.lower(): entry}
        known[cte.alias.lower()] = entry
    return known


def cte_output(walk: Walk, cte: Cte) -> Output:
    """What a CTE gives."""
    if cte.output is not None:
        return cte.output
    body = cte.node.this
    if cte.busy:
        if not isinstance(body, exp.SetOperation):
            return UNKNOWN
        body = body.this
    cte.busy = True
    output = renamed(walk.query(walk, body, cte.ctes, None), cte.node.args.get("alias"))
    if body is cte.node.this:
        cte.output = output
    return output


def renamed(output: Output, alias: exp.Expr | None) -> Output:
    """The same under the names of `AS t(a, b)`."""
    names = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    if not names:
        return output
    if output.open or len(names) != len(output.columns):
        return Output([Column(identifier.name, Value(None)) for identifier in names])
    return Output([Column(i.name, c.value) for i, c in zip(names, output.columns, strict=True)])


def read_from(walk: Walk, select: exp.Select, scope: Scope) -> None:
    """Fill a scope with what a SELECT reads."""
    start = select.args.get("from_")
    if start is not None:
        _add(scope, *_item(walk, start.this, scope))
    for lateral in select.args.get("laterals") or ():
        if lateral.args.get("view"):
            _add(scope, *_item(walk, lateral, scope))
    for join in select.args.get("joins") or ():
        _join(walk, join, scope)


def _add(scope: Scope, relations: list[Relation], columns: list[Column]) -> None:
    for relation in relations:
        scope.add(relation)
    scope.columns = [*scope.columns, *columns]


def _item(walk: Walk, node: exp.Expr, scope: Scope) -> tuple[list[Relation], list[Column]]:
    """The relations that an item of FROM adds, and their columns."""
    alias = node.args.get("alias")
    inner = node.this
    if isinstance(node, exp.Subquery) and isinstance(inner, (exp.Table, exp.Subquery)) and not _queries(inner):
        nested = Scope(scope.ctes, scope.outer)
        _add(nested, *_item(walk, inner, nested))
        for join in inner.args.get("joins") or ():
            _join(walk, join, nested)
        if alias is None:
            return nested.relations, nested.columns
        whole = Output(nested.columns, open=nested.open)
        return _one(walk, node, whole, [])
    if isinstance(node, exp.Table):
        output, names = _table(walk, node, scope)
    elif isinstance(node, exp.Lateral):
        output, names = _lateral(walk, node, scope), []
    elif isinstance(node, exp.Values):
        output, names = _values(walk, node, scope), []
    elif isinstance(node, exp.Subquery):
        output, names = walk.query(walk, node.this, with_ctes(node, scope.ctes), None), []
    elif isinstance(node, exp.TableSample) and isinstance(inner, exp.Expr):
        return _item(walk, inner, scope)
    else:
        output, names = UNKNOWN, []
    relations, columns = _one(walk, node, output, names)
    joins = node.args.get("joins") if isinstance(node, exp.Table) and not isinstance(node.parent, exp.Subquery) else None
    if joins:
        nested = Scope(scope.ctes, scope.outer, relations, columns)
        for join in joins:
            _join(walk, join, nested)
        return nested.relations, nested.columns
    return relations, columns


def _queries(node: exp.Expr) -> bool:
    """Whether brackets hold a query, and not a join."""
    while isinstance(node, exp.Subquery):
        node = node.this
    return not isinstance(node, exp.Table)


def _one(walk: Walk, node: exp.Expr, output: Output, names: list[str]) -> tuple[list[Relation], list[Column]]:
    alias = node.args.get("alias")
    output = renamed(output, alias)
    if node.args.get("pivots"):
        walk.reasons["PIVOT makes columns from values"] = None
        output = UNKNOWN
    called = alias.name.lower() if alias is not None else ""
    known = [called, *names[1:]] if called else names
    return [Relation(tuple(known), output)], output.columns


def _table(walk: Walk, node: exp.Table, scope: Scope) -> tuple[Output, list[str]]:
    """What a name stands for, and the names by which it can be called: by itself and as it is written."""
    identifier = node.this
    if not isinstance(identifier, exp.Identifier):
        made = calls.generated(walk, identifier, scope) if isinstance(identifier, exp.Expr) else None
        columns = [Column(name, value) for name, value in made or ()]
        return Output(columns, open=made is None), [walk.name_of(identifier)]
    written = identifier.name
    if node.args.get("db") is None:
        cte = scope.ctes.get(written.lower())
        if isinstance(cte, Cte):
            return cte_output(walk, cte), [written.lower()]
    known = walk.inputs.get(written)
    short = written.split(" ", 1)[-1] if written.startswith(_PLACEHOLDER) else written
    names = [short.rsplit(".", 1)[-1].lower(), written.lower()]
    return (UNKNOWN if known is None else _input(walk, known)), names


def _input(walk: Walk, known: InputColumns) -> Output:
    node = known.node

    def column(name: str, type_: str | None) -> Column:
        return Column(name, Value(types.normal(type_) if type_ else None, ((node, name),), exact=True))

    columns = [column(name, type_) for name, type_ in known.columns or ()]
    hidden = {name.lower(): column(name, type_).value for name, type_ in known.hidden}
    output = Output(columns, known.columns is None, node if known.columns is None else None, hidden)
    if known.added:
        base = Scope({}, None, [Relation((), output)], columns, quiet=True)
        added = [(name, _added(walk, sql, base)) for name, sql in known.added]
        replaced = {name.lower() for name, _ in added}
        kept = [c for c in columns if c.name.lower() not in replaced]
        output = replace(output, columns=[*kept, *(Column(name, value) for name, value in added)])
    return output


def _added(walk: Walk, sql: str, scope: Scope) -> Value:
    tree = expression(sql)
    return Value(None) if tree is None else replace(walk, text=f"select {sql}").value(tree, scope)


def _lateral(walk: Walk, node: exp.Lateral, scope: Scope) -> Output:
    inner = node.this
    if isinstance(inner, exp.Subquery):
        return walk.query(walk, inner.this, with_ctes(inner, scope.ctes), scope)
    made = calls.generated(walk, inner, scope)
    if made is not None:
        return Output([Column(name, value) for name, value in made])
    value = walk.value(inner, scope)
    alias = node.args.get("alias")
    names = alias.args.get("columns") if alias is not None else None
    return Output([Column(i.name, Value(None, value.origins)) for i in names or ()], open=not names)


def _values(walk: Walk, node: exp.Values, scope: Scope) -> Output:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    found = [[walk.value(item, scope) for item in row] for row in rows]
    width = len(found[0]) if found else 0
    columns = [[row[place] for row in found if place < len(row)] for place in range(width)]
    return Output(
        [Column(f"col{i}", Value(widest(v.type for v in c), origins(c))) for i, c in enumerate(columns, 1)]
    )


def _join(walk: Walk, join: exp.Join, scope: Scope) -> None:
    left, before = scope.columns, list(scope.relations)
    relations, right = _item(walk, join.this, scope)
    kind, side, method = join.kind.upper(), join.side.upper(), join.method.upper()
    for relation in relations:
        scope.add(relation)
    names = [identifier.name for identifier in join.args.get("using") or ()]
    if method == "NATURAL":
        theirs = {column.name.lower() for column in right}
        names = [column.name for column in left if column.name.lower() in theirs]
    if names:
        scope.columns = _merged(walk, names, left, right, side)
    else:
        scope.columns = [*left, *right]
        if (on := join.args.get("on")) is not None:
            influenced(walk, [on], scope, "join")
    if kind in {"SEMI", "ANTI"}:
        scope.relations, scope.columns = before, left
    scope.forget()


def _merged(
    walk: Walk, names: Sequence[str], left: list[Column], right: list[Column], side: str
) -> list[Column]:
    """The columns of a join by USING: the common ones once and first."""
    ours, theirs = index(left), index(right)
    common = []
    for name in names:
        pair = [found[name.lower()][0] for found in (ours, theirs) if name.lower() in found]
        walk.influence(origins(pair), "join")
        known = pair if len(pair) == 2 else [*pair, Value(None)]  # noqa: PLR2004 - both sides
        chosen = known[1 if side == "RIGHT" else 0]
        if side == "FULL":
            chosen = Value(widest(v.type for v in known), origins(known))
        source = theirs if side == "RIGHT" else ours
        shown = next((c.name for c in (right if source is theirs else left) if c.name.lower() == name.lower()), name)
        common.append(Column(shown, chosen))
    taken = {name.lower() for name in names}
    return [*common, *(c for c in [*left, *right] if c.name.lower() not in taken)]


def window_value(walk: Walk, sql: str, scope: Scope) -> Value | None:
    """A declared window over a column or expression; None if the SELECT does not have it."""
    own = Scope({}, None, scope.relations, scope.columns, quiet=True)
    tree = expression(sql)
    if tree is None:
        return None
    try:
        for column in tree.find_all(exp.Column):
            own.look_up([part.name for part in column.parts])
    except Missing:
        return None
    return calls.window(replace(walk, text=f"select {sql}").value(tree, own))
