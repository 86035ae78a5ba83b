"""How a query is put together of SELECTs whose changes follow from those of its inputs.

What cannot be followed with certainty raises `NotFollowedError`: the table is then computed in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from engine.compile.columns.column_scope import GroupKey, ScopeColumn
from engine.compile.columns.find_columns import bind
from engine.compile.columns.walk import Walk
from engine.compile.nodes.column_facts import InputColumns
from engine.compile.refresh.part_text import BlockScope, QueryText
from engine.compile.refresh.query_block import BlockKey, BlockSource, NotFollowedError, QueryBlock
from engine.compile.sql.aggregates import has_aggregate, returns_rows
from engine.compile.sql.dialect import spark
from engine.compile.sql.query_nodes import holds_relations
from engine.compile.sql.read_names import names_by_strings
from engine.compile.sql.shown_sql import join_words, shown_sql

# Of a SELECT; anything else is not followed. An order without LIMIT changes no row.
_PARTS = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "hint", "order", "kind", "with_"}
# Of one whose rows are each made of one row of the query in its FROM.
_PASSING = {"expressions", "from_", "where", "hint", "order", "with_"}
_SHOWN = {
    "limit": "LIMIT", "offset": "OFFSET", "laterals": "LATERAL VIEW", "qualify": "QUALIFY",
    "windows": "a named WINDOW",
    "sample": "TABLESAMPLE", "sort": "SORT BY", "cluster": "CLUSTER BY", "distribute": "DISTRIBUTE BY",
    "pivots": "PIVOT",
}  # fmt: skip
# Written by sqlglot as Spark reads them.
_PLAIN = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Not, exp.Is, exp.And, exp.Or, exp.Paren, exp.EQ,
    exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Coalesce,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Output:
    """A column of a SELECT: its name in lower case (empty: not certain), and its value (None: not certain)."""

    name: str
    value: exp.Expr | None
    column: ScopeColumn


def blocks_of(tree: exp.Expr, text: str, columns: Mapping[str, Sequence[str]]) -> tuple[QueryBlock, ...]:
    """Return the branches of a query: one, or those of a UNION ALL.

    `columns`: of each input in order, by the name it has in the text without quotes.

    Raises:
        NotFollowedError: the query is of another form.
    """
    query = QueryText.of_sql(text)
    if names_by_strings(text):
        raise NotFollowedError("IDENTIFIER(..) is not followed", "Write the name of the column.")
    inputs = {name: InputColumns(name, tuple((one, None) for one in own)) for name, own in columns.items()}
    bound = bind(tree, inputs, {}, text)
    if any(clause.args.get("recursive") for clause in tree.find_all(exp.With)):
        raise NotFollowedError("a recursive CTE is not followed")
    return tuple(_Reader(query, bound.noted, columns).branches(tree, outermost=True))


@dataclass(frozen=True, slots=True)
class _Reader:
    text: QueryText
    bound: Walk
    columns: Mapping[str, Sequence[str]]
    _read: dict[int, tuple[QueryBlock, ...]] = field(default_factory=dict)

    def branches(self, tree: exp.Expr, *, outermost: bool = False) -> Iterator[QueryBlock]:
        if isinstance(tree, exp.Subquery) and not _other_arguments(tree, {"this", "with_"}):
            yield from self.branches(tree.this, outermost=outermost)
        elif isinstance(tree, exp.Union) and not tree.args.get("distinct"):
            if _other_arguments(tree, {"this", "expression", "distinct", "with_"}):
                raise NotFollowedError("UNION with ORDER BY, LIMIT or BY NAME is not followed")
            yield from self.branches(tree.this, outermost=outermost)
            yield from self.branches(tree.expression, outermost=outermost)
        elif isinstance(tree, exp.Select):
            yield self.passed(tree) or self.block(tree, outermost=outermost)
        else:
            word = "UNION" if isinstance(tree, exp.Union) else tree.key.upper()
            hint = "Write UNION ALL, and remove duplicates in a model of its own." if word == "UNION" else ""
            raise NotFollowedError(f"{word} is not followed", hint)

    def relation(self, node: exp.Expr) -> tuple[str, tuple[QueryBlock, ...]] | None:
        """The alias and the branches of a CTE or subquery in a FROM; None: it is something else."""
        if (
            isinstance(node, exp.Subquery)
            and not _other_arguments(node, {"this", "alias"})
            and not holds_relations(node)
        ):
            return node.alias.lower(), _with_column_list(tuple(self.branches(node.this)), node)
        cte = self.bound.definitions.get(id(node))
        if cte is None or _other_arguments(node, {"this", "alias"}):
            return None
        return node.alias.lower() or node.name.lower(), _with_column_list(self.cte(cte), node)

    def cte(self, cte: exp.Expr) -> tuple[QueryBlock, ...]:
        blocks = self._read.get(id(cte))
        if blocks is None:
            if _other_arguments(cte, {"this", "alias"}):
                raise NotFollowedError("a CTE of another form than a query is not followed")
            blocks = self._read[id(cte)] = _with_column_list(tuple(self.branches(cte.this)), cte)
        return blocks

    def passed(self, select: exp.Select) -> QueryBlock | None:
        """Return the block of a query with groups, windows or outer joins, of which a SELECT takes rows and columns.

        `select a, n from (select .., rank() over (..) as n ..) where n = 1`. None: the SELECT does something else.
        """
        parts = [*select.expressions, select.args.get("where")]
        if (
            select.args.get("from_") is None
            or _other_arguments(select, _PASSING)
            or any(map(_does_more, filter(None, parts)))
        ):
            return None
        relation = self.relation(select.args["from_"].this)
        if relation is None or len(relation[1]) != 1 or not (relation[1][0].grouped or relation[1][0].outer):
            return None
        alias, inner = relation[0] or "__query0", relation[1][0]
        columns = self.columns_of(select.args["from_"].this)
        scope = BlockScope((BlockSource(alias, "", inner, "", "", columns),), self.bound)
        outputs = self.outputs(select, scope)
        keys = tuple(_passed_key(one, inner, scope) for one in outputs)
        return replace(inner, items=None, own_keys=keys, names=tuple(one.name for one in outputs))

    def columns_of(self, relation: exp.Expr) -> dict[int, str]:
        """The names of the columns of something in a FROM, by id."""
        return {one.value.id: one.name.lower() for one in self.bound.reads[id(relation)].columns if one.named}

    def block(self, select: exp.Select, *, outermost: bool) -> QueryBlock:
        _check(select)
        sources = tuple(self.sources(select))
        scope = BlockScope(sources, self.bound)
        where = select.args.get("where")
        outputs = self.outputs(select, scope)
        return QueryBlock(
            self.items(outputs) if not outermost else None,
            sources,
            (self.whole(where.this) if not outermost else None) if where is not None else "",
            tuple(self.inner_conditions(where.this, scope)) if where is not None else (),
            tuple(self.own_keys(select, scope, outputs)),
            tuple(one.name for one in outputs),
            bool(select.args.get("group") or select.args.get("distinct") or _windows(select)),
        )

    def outputs(self, select: exp.Select, scope: BlockScope) -> list[_Output]:
        """The columns of a SELECT, those that a star stands for in their order."""
        output = self.bound.selects.get(id(select))
        if output is None or output.open:
            raise NotFollowedError("the columns of * are not known", "List the columns.")
        outputs = []
        for column in output.columns:
            item, name = select.expressions[column.item], column.name.lower()
            value = scope.starred(column.value.id) if _is_star(item) else item.unalias()
            outputs.append(_Output(name if column.named else "", value, column))
        return outputs

    def items(self, outputs: Sequence[_Output]) -> tuple[tuple[str, str], ...] | None:
        values = [one.value for one in outputs]
        try:
            texts = [self.part(value) for value in values if value is not None]
        except NotFollowedError:
            return None
        return tuple(zip(texts, (one.name for one in outputs), strict=True)) if None not in values else None

    def sources(self, select: exp.Select) -> Iterator[BlockSource]:
        block_sources = [self.source(select.args["from_"].this, "", "", 0)]
        for place, join in enumerate(select.args.get("joins") or (), 1):
            word, on = _join_word(join), join.args.get("on")
            block_sources.append(self.source(join.this, word, self.part(on) if on is not None else "", place))
            scope = BlockScope(tuple(block_sources), self.bound)
            if word != "LEFT" and on is not None and scope.may_be_null(on):
                reason = "an inner join by a column of a LEFT JOIN before it is not followed"
                raise NotFollowedError(reason, "Write the inner joins first.")
        yield from block_sources

    def source(self, node: exp.Expr, join: str, on: str, place: int) -> BlockSource:
        relation = self.relation(node)
        if relation is not None:
            alias, inner = relation[0] or f"__query{place}", _single_block(relation[1])
            return BlockSource(alias, "", inner, join, on, self.columns_of(node))
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise NotFollowedError("a FROM of another form than a model, a source, a CTE or a subquery is not followed")
        if _other_arguments(node, {"this", "db", "catalog", "alias"}):
            raise NotFollowedError("a FROM with PIVOT, TABLESAMPLE and the like is not followed")
        if _column_list(node):
            raise NotFollowedError("a table with a list of columns is not followed", "Give the columns their aliases.")
        name = ".".join(part.name for part in node.parts)
        if name not in self.columns:
            raise NotFollowedError(f"the columns of '{name}' are not known")
        return BlockSource(node.alias.lower() or node.name.lower(), name, None, join, on, self.columns_of(node))

    def whole(self, condition: exp.Expr) -> str | None:
        """The text of a condition; None: it cannot be written again."""
        try:
            return self.part(condition)
        except NotFollowedError:
            return None

    def inner_conditions(self, condition: exp.Expr, scope: BlockScope) -> Iterator[str]:
        """Yield the conjuncts that name no column of an outer side; without one more keys are found than changed."""
        for part in condition.unnest().flatten() if isinstance(condition.unnest(), exp.And) else (condition,):
            try:
                if part.find(exp.Column) is not None and not scope.may_be_null(part):
                    yield self.part(part)
            except NotFollowedError:
                continue

    def own_keys(self, select: exp.Select, scope: BlockScope, outputs: Sequence[_Output]) -> Iterator[BlockKey | None]:
        grain = _group_keys(select, self.bound.groups.get(id(select)), scope, outputs)
        for value in (one.value for one in outputs):
            try:
                whole = value is not None and scope.decided(value, grain) and not scope.may_be_null(value)
                yield BlockKey(self.part(value), scope.cut(value)) if value is not None and whole else None
            except NotFollowedError:
                yield None

    def part(self, node: exp.Expr) -> str:
        """Return the text of a part; raise NotFollowedError if it is not found: sqlglot might change it."""
        text = self.text.of_part(node)
        if text is None and all(isinstance(one, _PLAIN) for one in node.walk()):
            text = node.sql(spark())
        if text is None:
            raise NotFollowedError(f"'{shown_sql(node)}' is not followed: it is written in another way than it is read")
        return text


def _check(select: exp.Select) -> None:
    """Raise NotFollowedError if the changes of a SELECT cannot be followed."""
    for part in _other_arguments(select, _PARTS):
        raise NotFollowedError(f"{_SHOWN.get(part, part.upper())} is not followed")
    if select.args.get("from_") is None:
        raise NotFollowedError("a SELECT without FROM is not followed")
    parts = [*select.expressions, *(select.args.get(key) for key in ("where", "group", "having"))]
    parts += [join.args.get("on") for join in select.args.get("joins") or ()]
    for part in filter(None, parts):
        if part.find(exp.Query) is not None:
            raise NotFollowedError("a subquery in an expression is not followed", "Join it, or make it a model.")
    for item in select.expressions:
        if any(map(returns_rows, item.walk())):
            raise NotFollowedError("functions that return several rows (explode) are not followed")
    _check_group(select)


def _check_group(select: exp.Select) -> None:
    group = select.args.get("group")
    if group is None and (select.args.get("having") or any(map(has_aggregate, select.expressions))):
        raise NotFollowedError("an aggregate over all rows is not followed", "Add a GROUP BY.")
    if group is not None and _other_arguments(group, {"expressions", "all"}):
        raise NotFollowedError("ROLLUP, CUBE and GROUPING SETS are not followed")
    if group is not None and group.find(exp.GroupingSets, exp.Rollup, exp.Cube) is not None:
        raise NotFollowedError("ROLLUP, CUBE and GROUPING SETS are not followed")
    if group is not None and _windows(select):
        raise NotFollowedError("a window over an aggregate is not followed", "Make the aggregate a model.")


def _join_word(join: exp.Expr) -> str:
    side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
    if _other_arguments(join, {"this", "side", "kind", "on"}) or side not in {"", "LEFT"} or kind not in {
        "", "INNER", "OUTER", "CROSS",
    }:  # fmt: skip
        join_text = "USING and NATURAL" if join.args.get("using") or join.args.get("method") else join_words(join)
        hint = "Write it as LEFT JOIN if it can be one." if side in {"FULL", "RIGHT"} else ""
        hint = "Write the condition behind ON." if "USING" in join_text else hint
        raise NotFollowedError(f"{join_text} is not followed", hint)
    without = join.args.get("on") is None
    if side == "LEFT" and without:
        raise NotFollowedError("LEFT JOIN without ON is not followed")
    return side or ("CROSS" if without else "INNER")


def _group_keys(
    select: exp.Select, keys: Sequence[GroupKey] | None, scope: BlockScope, outputs: Sequence[_Output]
) -> list[str] | None:
    """The keys of the expressions by which rows of the FROM belong together; None: each row is on its own."""
    windows = _windows(select)
    if windows:
        parts = [list(map(scope.key_of, window.args.get("partition_by") or ())) for window in windows]
        common = [part for part in parts[0] if all(part in other for other in parts)]
        if not common:
            raise NotFollowedError("windows without a common PARTITION BY are not followed", "Add PARTITION BY.")
        return common
    if keys is None:
        return None
    grain = []
    for key in keys:
        value: exp.Expr | None = key.node
        if key.column is not None:
            value = next(one.value for one in outputs if one.column is key.column)
        elif isinstance(value, exp.Literal):
            raise NotFollowedError("GROUP BY a constant is not followed")
        if value is not None:
            grain.append(scope.key_of(value))
        elif not select.args["group"].args.get("all"):
            raise NotFollowedError("GROUP BY a column of a star is not followed")
    return grain


def _passed_key(output: _Output, inner: QueryBlock, scope: BlockScope) -> BlockKey | None:
    """The key of an inner query that a column of the outer one gives; None: it gives none."""
    column = output.value.unnest() if output.value is not None else None
    if not isinstance(column, exp.Column):
        return None
    try:
        _, ref = scope.place(column)
    except NotFollowedError:
        return None
    return inner.keys.get(ref.name) if not ref.path else None


def _does_more(part: exp.Expr) -> bool:
    """Whether a part of a SELECT looks at several rows, or makes several."""
    return any(isinstance(node, exp.Query | exp.Window) or returns_rows(node) for node in part.walk()) or (
        has_aggregate(part)
    )


def _single_block(blocks: tuple[QueryBlock, ...]) -> QueryBlock:
    """Return the block of a query that is read by another one; raise NotFollowedError if it is of another form."""
    if len(blocks) != 1:
        raise NotFollowedError("UNION ALL inside a CTE or subquery is not followed", "Make it a model of its own.")
    (block,) = blocks
    if block.grouped or block.outer:
        reason = "GROUP BY, DISTINCT, windows and LEFT JOIN inside a CTE or subquery are not followed"
        raise NotFollowedError(reason, "Make it a model of its own, materialized: table.")
    if block.where is None:
        raise NotFollowedError("a WHERE inside a CTE or subquery is not followed: it is written in another way")
    block.query("")
    return block


def _with_column_list(blocks: tuple[QueryBlock, ...], node: exp.Expr) -> tuple[QueryBlock, ...]:
    """The blocks under the names of the list behind an alias, if there is one."""
    names = _column_list(node)
    if not names:
        return blocks
    renamed = []
    for block in blocks:
        if len(names) != len(block.names):
            raise NotFollowedError("a list of more or fewer columns than the query has is not followed")
        renamed.append(replace(block, names=names))
    return tuple(renamed)


def _column_list(node: exp.Expr) -> tuple[str, ...]:
    """The list of columns behind an alias, in lower case."""
    alias = node.args.get("alias")
    return tuple(one.name.lower() for one in alias.args.get("columns") or ()) if alias is not None else ()


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def _windows(select: exp.Select) -> list[exp.Window]:
    return [window for item in select.expressions for window in item.find_all(exp.Window)]


def _other_arguments(node: exp.Expr, expected: set[str]) -> list[str]:
    return [key for key, value in node.args.items() if value and key not in expected]
