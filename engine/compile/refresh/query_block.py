"""A SELECT in the parts that a refresh puts together in other ways: items, sources, conditions, keys.

The parts are the user's own text: sqlglot's tree says what they are, and a part whose tokens are not found in the text
is not used. What cannot be followed with certainty raises `NotFollowedError`: the table is then computed in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from engine.compile.sql.aggregates import has_aggregate, is_aggregate, returns_rows
from engine.compile.sql.dialect import spark, tokenize

# Of a SELECT; anything else is not followed. An order without LIMIT changes no row.
_PARTS = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "hint", "order", "kind", "with_"}
_SHOWN = {
    "limit": "LIMIT", "offset": "OFFSET", "laterals": "LATERAL VIEW", "qualify": "QUALIFY",
    "windows": "a named WINDOW",
    "sample": "TABLESAMPLE", "sort": "SORT BY", "cluster": "CLUSTER BY", "distribute": "DISTRIBUTE BY",
    "pivots": "PIVOT",
}  # fmt: skip
# Of time: sqlglot writes them in capital letters.
_UNITS = {"year", "quarter", "month", "week", "day", "hour", "minute", "second"}
# Written by sqlglot as Spark reads them.
_PLAIN = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Not, exp.Is, exp.And, exp.Or, exp.Paren, exp.EQ,
    exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Coalesce, exp.Alias, exp.Star,
)  # fmt: skip


class NotFollowedError(Exception):
    """A query whose changes cannot be derived from those of its inputs; `hint` is the rewrite, if there is one."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True, slots=True)
class BlockSource:
    """Something in a FROM.

    Attributes:
        alias: by which its columns are qualified, in lower case.
        view: the name of an input; empty: it is a query of its own.
        inner: that query.
        join: how it is joined: empty for the first, else `INNER`, `LEFT` or `CROSS`.
        on: the condition; empty: none.
        columns: in lower case.
    """

    alias: str
    view: str
    inner: QueryBlock | None
    join: str
    on: str
    columns: frozenset[str]

    @property
    def outer(self) -> bool:
        """Whether its columns are NULL where nothing matches."""
        return self.join == "LEFT"


@dataclass(frozen=True, slots=True)
class QueryBlock:
    """A SELECT.

    Attributes:
        items: the text of its items.
        sources: in the order of its FROM.
        where: the text of its condition; empty: none; None: it cannot be written again.
        kept: the conjuncts of it that name no column of an outer side.
        keys: by output column in lower case, the text of an expression over the FROM by whose values output rows can be
            divided into parts that do not depend on each other.
        names: of the output columns, in order and in lower case; with `*` those of its sources.
        grouped: rows of the FROM come together in output rows: GROUP BY, DISTINCT or a window.
    """

    items: tuple[str, ...]
    sources: tuple[BlockSource, ...]
    where: str | None
    kept: tuple[str, ...]
    keys: Mapping[str, str]
    names: tuple[str, ...]
    grouped: bool

    @property
    def row_by_row(self) -> bool:
        """Whether each row of its only source gives a row or none, whatever the others are."""
        (first, *more) = self.sources
        return not (self.grouped or more) and (first.inner is None or first.inner.row_by_row)

    @property
    def views(self) -> frozenset[str]:
        """The inputs that it reads."""
        found = [one.inner.views if one.inner else frozenset({one.view}) for one in self.sources]
        return frozenset().union(*found)


def blocks_of(tree: exp.Expr, text: str, columns: Mapping[str, Sequence[str]]) -> tuple[QueryBlock, ...]:
    """Return the branches of a query: one, or those of a UNION ALL.

    Args:
        tree: of the query.
        text: of the query.
        columns: of each input, by the name it has in the text without quotes.

    Raises:
        NotFollowedError: the query is of another form.
    """
    return tuple(_Reader(text, tokenize(text), columns).branches(tree, {}, outermost=True))


@dataclass(frozen=True, slots=True)
class _Reader:
    text: str
    tokens: list[Token]
    columns: Mapping[str, Sequence[str]]

    def branches(
        self, tree: exp.Expr, ctes: Mapping[str, QueryBlock], *, outermost: bool = False
    ) -> Iterator[QueryBlock]:
        ctes = self.with_ctes(tree, ctes)
        grouped = _filtered_groups(tree) if outermost else None
        if grouped is not None:
            yield from self.branches(grouped, ctes, outermost=True)
        elif isinstance(tree, exp.Subquery) and not _others(tree, {"this"}):
            yield from self.branches(tree.this, ctes, outermost=outermost)
        elif isinstance(tree, exp.Union) and not tree.args.get("distinct"):
            if _others(tree, {"this", "expression", "distinct", "with_"}):
                raise NotFollowedError("UNION with ORDER BY, LIMIT or BY NAME is not followed")
            yield from self.branches(tree.this, ctes, outermost=outermost)
            yield from self.branches(tree.expression, ctes, outermost=outermost)
        elif isinstance(tree, exp.Select):
            yield self.block(tree, ctes)
        else:
            word = "UNION" if isinstance(tree, exp.Union) else tree.key.upper()
            hint = "Write UNION ALL, and remove duplicates in a model of its own." if word == "UNION" else ""
            raise NotFollowedError(f"{word} is not followed", hint)

    def with_ctes(self, tree: exp.Expr, ctes: Mapping[str, QueryBlock]) -> Mapping[str, QueryBlock]:
        with_ = tree.args.get("with_")
        if with_ is None:
            return ctes
        if with_.args.get("recursive"):
            raise NotFollowedError("a recursive CTE is not followed")
        known = dict(ctes)
        for cte in with_.expressions:
            if _others(cte, {"this", "alias"}) or cte.args["alias"].args.get("columns"):
                raise NotFollowedError(
                    "a CTE with a list of columns is not followed", "Give the columns their aliases."
                )
            known[cte.alias.lower()] = self.inner(cte.this, known)
        return known

    def inner(self, tree: exp.Expr, ctes: Mapping[str, QueryBlock]) -> QueryBlock:
        found = tuple(self.branches(tree, ctes))
        if len(found) != 1:
            raise NotFollowedError("UNION ALL inside a CTE or subquery is not followed", "Make it a model of its own.")
        if found[0].grouped or any(one.outer for one in found[0].sources):
            reason = "GROUP BY, DISTINCT, windows and LEFT JOIN inside a CTE or subquery are not followed"
            raise NotFollowedError(reason, "Make it a model of its own, materialized: table.")
        if found[0].where is None:
            raise NotFollowedError("a WHERE inside a CTE or subquery is not followed: it is written in another way")
        return found[0]

    def block(self, select: exp.Select, ctes: Mapping[str, QueryBlock]) -> QueryBlock:
        self.check(select)
        sources = tuple(self.sources(select, ctes))
        scope = _Scope(sources)
        where = select.args.get("where")
        outputs = [(item.alias_or_name.lower(), item.unalias()) for item in select.expressions]
        names = tuple(scope.expanded(select.expressions))
        keys = {} if len(names) != len(outputs) else dict(self.keys(select, scope, outputs))
        if len(names) != len(outputs) and not select.args.get("group") and not select.args.get("distinct"):
            keys = dict(scope.star_keys(select.expressions))
        return QueryBlock(
            tuple(map(self.part, select.expressions)),
            sources,
            self.whole(where.this) if where is not None else "",
            tuple(self.kept(where.this, scope)) if where is not None else (),
            keys,
            names,
            bool(select.args.get("group") or select.args.get("distinct") or _windows(select)),
        )

    def check(self, select: exp.Select) -> None:
        for part in _others(select, _PARTS):
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
        self.check_group(select)

    def check_group(self, select: exp.Select) -> None:
        group = select.args.get("group")
        if group is None and (select.args.get("having") or any(map(has_aggregate, select.expressions))):
            raise NotFollowedError("an aggregate over all rows is not followed", "Add a GROUP BY.")
        if group is not None and _others(group, {"expressions", "all"}):
            raise NotFollowedError("ROLLUP, CUBE and GROUPING SETS are not followed")
        if group is not None and group.find(exp.GroupingSets, exp.Rollup, exp.Cube) is not None:
            raise NotFollowedError("ROLLUP, CUBE and GROUPING SETS are not followed")
        if group is not None and _windows(select):
            raise NotFollowedError("a window over an aggregate is not followed", "Make the aggregate a model.")

    def sources(self, select: exp.Select, ctes: Mapping[str, QueryBlock]) -> Iterator[BlockSource]:
        yield self.source(select.args["from_"].this, "", "", ctes)
        outer: set[str] = set()
        known = [self.source(select.args["from_"].this, "", "", ctes)]
        for join in select.args.get("joins") or ():
            side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
            if _others(join, {"this", "side", "kind", "on"}) or side not in {"", "LEFT"} or kind not in {
                "", "INNER", "OUTER", "CROSS",
            }:  # fmt: skip
                shown = (
                    "USING and NATURAL" if join.args.get("using") or join.args.get("method") else f"{side or kind} JOIN"
                )
                hint = (
                    "Write the condition behind ON." if "USING" in shown else "Write it as LEFT JOIN if it can be one."
                )
                raise NotFollowedError(f"{shown} is not followed", hint)
            on = join.args.get("on")
            word = "LEFT" if side == "LEFT" else "CROSS" if on is None else "INNER"
            if word == "LEFT" and on is None:
                raise NotFollowedError("LEFT JOIN without ON is not followed")
            source = self.source(join.this, word, self.part(on) if on is not None else "", ctes)
            known.append(source)
            if word != "LEFT" and on is not None and outer & _Scope(tuple(known)).aliases(on):
                raise NotFollowedError(
                    "an inner join by a column of a LEFT JOIN before it is not followed",
                    "Write the inner joins first.",
                )
            if word == "LEFT":
                outer.add(source.alias)
            yield source

    def source(self, node: exp.Expr, join: str, on: str, ctes: Mapping[str, QueryBlock]) -> BlockSource:
        alias = node.alias.lower()
        if isinstance(node, exp.Subquery) and not _others(node, {"this", "alias"}) and not _renamed(node):
            inner = self.inner(node.this, ctes)
            return BlockSource(alias, "", inner, join, on, frozenset(inner.names))
        if not isinstance(node, exp.Table) or _others(node, {"this", "db", "catalog", "alias"}) or _renamed(node):
            raise NotFollowedError("a FROM of another form than a model, a source, a CTE or a subquery is not followed")
        name = ".".join(part.name for part in node.parts)
        if len(node.parts) == 1 and name.lower() in ctes:
            inner = ctes[name.lower()]
            return BlockSource(alias or name.lower(), "", inner, join, on, frozenset(inner.names))
        if name not in self.columns:
            raise NotFollowedError(f"the columns of '{name}' are not known")
        columns = frozenset(column.lower() for column in self.columns[name])
        return BlockSource(alias or node.name.lower(), name, None, join, on, columns)

    def whole(self, condition: exp.Expr) -> str | None:
        """The text of a condition; None: it cannot be written again, as it need not for the outermost query."""
        try:
            return self.part(condition)
        except NotFollowedError:
            return None

    def kept(self, condition: exp.Expr, scope: _Scope) -> Iterator[str]:
        """Yield the conjuncts that name no column of an outer side."""
        for part in condition.unnest().flatten() if isinstance(condition.unnest(), exp.And) else (condition,):
            if part.find(exp.Column) is not None and not scope.outer & scope.aliases(part):
                try:
                    yield self.part(part)
                except NotFollowedError:
                    # Without it more keys are found than changed.
                    continue

    def keys(
        self, select: exp.Select, scope: _Scope, outputs: Sequence[tuple[str, exp.Expr]]
    ) -> Iterator[tuple[str, str]]:
        grain = self.grain(select, scope, outputs)
        for name, value in outputs:
            if not name or _outside(value, grain) or scope.outer & scope.aliases(value):
                continue
            yield name, self.part(value)

    def grain(
        self, select: exp.Select, scope: _Scope, outputs: Sequence[tuple[str, exp.Expr]]
    ) -> list[exp.Expr] | None:
        """The expressions by which rows of the FROM belong together; None: each row is on its own."""
        windows = _windows(select)
        if windows:
            parts = [list(window.args.get("partition_by") or ()) for window in windows]
            common = [part for part in parts[0] if all(part in other for other in parts)]
            if not common:
                raise NotFollowedError("windows without a common PARTITION BY are not followed", "Add PARTITION BY.")
            return common
        group = select.args.get("group")
        if group is None:
            return None
        if group.args.get("all"):
            return [value for _, value in outputs if not has_aggregate(value)]
        return [self.group_key(key, scope, outputs) for key in group.expressions]

    def group_key(self, key: exp.Expr, scope: _Scope, outputs: Sequence[tuple[str, exp.Expr]]) -> exp.Expr:
        """What a GROUP BY groups by: an ordinal and an alias are looked up, as Spark does."""
        if isinstance(key, exp.Literal):
            if key.is_string or not 1 <= int(key.name) <= len(outputs):
                raise NotFollowedError("GROUP BY a constant is not followed")
            return outputs[int(key.name) - 1][1]
        if isinstance(key, exp.Column) and not key.table and not scope.has(key.name):
            found = [value for name, value in outputs if name == key.name.lower()]
            if len(found) == 1:
                return found[0]
        return key

    def part(self, node: exp.Expr) -> str:
        """The text of a part, as the user wrote it.

        Raises:
            NotFollowedError: its tokens are not found.
        """
        wanted = [_token(token) for token in tokenize(node.sql(spark()))]
        given = [_token(token) for token in self.tokens]
        for start in range(len(given) - len(wanted) + 1):
            if given[start : start + len(wanted)] == wanted:
                return self.text[self.tokens[start].start : self.tokens[start + len(wanted) - 1].end + 1]
        if all(isinstance(one, _PLAIN) for one in node.walk()):
            return node.sql(spark())
        raise NotFollowedError(f"'{node.sql(spark())}' is not followed: it is written in another way than it is read")


@dataclass(frozen=True, slots=True)
class _Scope:
    sources: tuple[BlockSource, ...]

    @property
    def outer(self) -> frozenset[str]:
        return frozenset(one.alias for one in self.sources if one.outer)

    def has(self, name: str) -> bool:
        return any(name.lower() in one.columns for one in self.sources)

    def aliases(self, node: exp.Expr) -> set[str]:
        """The sources whose columns an expression names."""
        return {self.alias(column) for column in node.find_all(exp.Column)}

    def alias(self, column: exp.Column) -> str:
        first = column.parts[0].name.lower()
        qualified = bool(column.table) and not column.args.get("db")
        if qualified and any(one.alias == first for one in self.sources):
            return self.one([one for one in self.sources if one.alias == first], column)
        if column.args.get("db"):
            raise NotFollowedError(f"'{column.sql(spark())}' is not followed", "Qualify columns with an alias.")
        return self.one([one for one in self.sources if first in one.columns], column)

    @staticmethod
    def one(found: Sequence[BlockSource], column: exp.Column) -> str:
        if len(found) != 1:
            raise NotFollowedError(f"the input of '{column.sql(spark())}' is not known", "Qualify it with an alias.")
        return found[0].alias

    def expanded(self, items: Sequence[exp.Expr]) -> Iterator[str]:
        """Yield the names of the output, those of a star without EXCEPT included."""
        for item in items:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                star = item if isinstance(item, exp.Star) else item.this
                if any(star.args.values()):
                    raise NotFollowedError("* EXCEPT is not followed", "List the columns.")
                qualifier = item.parts[0].name.lower() if isinstance(item, exp.Column) else ""
                for one in self.sources:
                    if qualifier in {"", one.alias}:
                        yield from sorted(one.columns)
            else:
                yield item.alias_or_name.lower()

    def star_keys(self, items: Sequence[exp.Expr]) -> Iterator[tuple[str, str]]:
        """Yield the columns of `*` over one source: each is a key, as rows are on their own."""
        if len(self.sources) == 1 and len(items) == 1 and isinstance(items[0], exp.Star):
            one = self.sources[0]
            yield from ((name, f"`{one.alias}`.`{name}`") for name in sorted(one.columns) if "`" not in name)


def _filtered_groups(tree: exp.Expr) -> exp.Expr | None:
    """The query with groups, DISTINCT or windows of which a query is a filter alone: `select * from (..) where n > 1`.

    A row of the outer query depends on the same rows as that of the inner one.
    """
    if not isinstance(tree, exp.Select) or _others(tree, {"expressions", "from_", "where", "order", "with_"}):
        return None
    inner = tree.args["from_"].this if tree.args.get("from_") is not None else None
    if not isinstance(inner, exp.Subquery) or _others(inner, {"this", "alias"}) or _renamed(inner):
        return None
    (star, *more), query, where = tree.expressions, inner.this, tree.args.get("where")
    whole = type(star) is exp.Star and not any(star.args.values()) and not more
    groups = isinstance(query, exp.Select) and (
        query.args.get("group") or query.args.get("distinct") or _windows(query)
    )
    return query if whole and groups and (where is None or where.find(exp.Query) is None) else None


def _outside(value: exp.Expr, grain: list[exp.Expr] | None) -> bool:
    """Whether an output value is not decided by the expressions that rows belong together by."""
    if any(is_aggregate(node) or isinstance(node, exp.Window) for node in value.walk()):
        return True
    if grain is None or value in grain:
        return False
    columns = list(value.find_all(exp.Column))
    return not columns or any(column not in grain for column in columns)


def _windows(select: exp.Select) -> list[exp.Window]:
    return [window for item in select.expressions for window in item.find_all(exp.Window)]


def _others(node: exp.Expr, known: set[str]) -> list[str]:
    return [key for key, value in node.args.items() if value and key not in known]


def _renamed(node: exp.Expr) -> bool:
    alias = node.args.get("alias")
    return alias is not None and bool(alias.args.get("columns"))


def _token(token: Token) -> tuple[TokenType, str]:
    if token.token_type is TokenType.STRING:
        return token.token_type, token.text.lower() if token.text.lower() in _UNITS else token.text
    return token.token_type, token.text.casefold()
