"""The steps of a pipe, each as a query over that of the step before (AstBuilder.visitOperatorPipeRightSide)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

from sqlglot.errors import ParseError
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType

# One token, or the tokens of brackets with what is in them.
Item: TypeAlias = list[Token]

_T = TokenType
_OPENING, _CLOSING = {_T.L_PAREN: _T.R_PAREN, _T.L_BRACKET: _T.R_BRACKET}, {_T.R_PAREN, _T.R_BRACKET}
SETS = {_T.UNION, _T.EXCEPT, _T.INTERSECT}
_ORDER = {_T.ORDER_BY, _T.SORT_BY, _T.CLUSTER_BY, _T.DISTRIBUTE_BY}
RESULT = {*_ORDER, _T.LIMIT, _T.OFFSET}
NAMES = {_T.VAR, _T.IDENTIFIER}
# What ends an expression, so that a name behind it is an alias.
_VALUES = {*NAMES, *_CLOSING, _T.NUMBER, _T.STRING, _T.END}
_QUANTIFIERS = {_T.ALL, _T.DISTINCT}
_STEPS = (
    "Steps are SELECT, EXTEND, SET, DROP, AS, WHERE, AGGREGATE, JOIN, ORDER BY, LIMIT, OFFSET, UNION and its like, "
    "PIVOT, UNPIVOT and TABLESAMPLE."
)
# Of a relation in brackets: its name until the tree is made.
MARK = "|>"


def side_by_side(tokens: Sequence[Token], inside: Callable[[list[Item]], list[Token]]) -> list[Item]:
    """Group the tokens of a query by brackets; `inside` says what becomes of what is in them."""
    stack: list[list[Item]] = [[]]
    opened: list[Token] = []
    for token in tokens:
        if token.token_type in _OPENING:
            opened.append(token)
            stack.append([])
        elif token.token_type in _CLOSING and opened:
            within = inside(stack.pop())
            stack[-1].append([opened.pop(), *within, token])
        else:
            stack[-1].append([token])
    while opened:
        within = inside(stack.pop())
        stack[-1].append([opened.pop(), *within])
    return stack[-1]


@dataclass(frozen=True, slots=True)
class PipeQuery:
    """What comes out of the steps until here.

    `base` is what is behind FROM; `whole` the query, if all of it is in brackets there. `sign` is of the step, `name`
    of the only relation; `alone`: FROM has one relation. `result`: the whole ends with ORDER BY, LIMIT or the like.
    """

    base: list[Token]
    sign: Token
    whole: list[Token] | None = None
    where: tuple[Token, ...] = ()
    name: str = ""
    alone: bool = True
    result: bool = False


def with_step(query: PipeQuery, step: list[Item]) -> PipeQuery:
    if not step:
        return query
    apply_step = _BY_KIND.get(kind_of(step[0])) or _BY_WORD.get(step[0][0].text.upper())
    if apply_step is None and any(kind_of(item) is _T.JOIN for item in step):
        apply_step = _with_join
    if apply_step is None:
        raise _unread(step[0][0])
    return apply_step(query, step)


def whole_query(query: PipeQuery) -> list[Token]:
    """The query as a text of its own."""
    if query.whole is not None and not query.where:
        return query.whole
    return [*_star(query), *_source(query)]


def _source(query: PipeQuery) -> list[Token]:
    where = [_token(query, _T.WHERE, "WHERE"), *query.where] if query.where else []
    return [_token(query, _T.FROM, "FROM"), *query.base, *where]


def close_query(query: PipeQuery, whole: list[Token], *, result: bool = False) -> PipeQuery:
    """A query in brackets behind FROM; names of the relation stay valid, as far as Spark lets them through."""
    inside = [_token(query, _T.L_PAREN, "("), *whole, _token(query, _T.R_PAREN, ")")]
    return PipeQuery([*inside, *_alias(query)], query.sign, whole, name=query.name, result=result)


def _bracket_query(query: PipeQuery) -> list[Token]:
    return [_token(query, _T.L_PAREN, "("), *whole_query(query), _token(query, _T.R_PAREN, ")")]


def _alias(query: PipeQuery) -> list[Token]:
    return [_token(query, _T.IDENTIFIER, f"{MARK}{query.name}")] if query.name else []


def _with_select(query: PipeQuery, items: list[Item]) -> PipeQuery:
    """SELECT with its items; a WINDOW clause is behind FROM."""
    window = next((i for i in range(1, len(items) - 2) if _names_window(items, i)), len(items))
    return close_query(query, [*tokens_of_items(items[:window]), *_source(query), *tokens_of_items(items[window:])])


def _names_window(items: list[Item], index: int) -> bool:
    """Whether `WINDOW w AS (..)` begins."""
    kinds = [kind_of(item) for item in items[index : index + 4]]
    return items[index][0].text.upper() == "WINDOW" and kinds[2:] == [_T.ALIAS, _T.L_PAREN]


def _with_where(query: PipeQuery, step: list[Item]) -> PipeQuery:
    condition = tokens_of_items(step[1:])
    if not query.where:
        return replace(query, where=tuple(condition))
    sides = [_side_of_and(query, side) for side in (query.where, condition)]
    return replace(query, where=(*sides[0], _token(query, _T.AND, "AND"), *sides[1]))


def _side_of_and(query: PipeQuery, condition: Sequence[Token]) -> Sequence[Token]:
    """A side of AND: in brackets if it has an OR."""
    if _T.OR not in {token.token_type for token in condition}:
        return condition
    return [_token(query, _T.L_PAREN, "("), *condition, _token(query, _T.R_PAREN, ")")]


def _with_join(query: PipeQuery, step: list[Item]) -> PipeQuery:
    """A join. A condition before it is one behind it, too, unless it would meet the rows that the join adds."""
    keeps = not {_T.RIGHT, _T.FULL} & {kind_of(item) for item in step}
    if query.where and (query.name or query.alone or not keeps):
        query = close_query(query, whole_query(query))
    return replace(query, base=[*query.base, *tokens_of_items(step)], whole=None, name="", alone=False)


def _with_alias(query: PipeQuery, step: list[Item]) -> PipeQuery:
    _, *names = step
    if [len(name) for name in names] != [1]:
        raise _unread(step[0][0])
    is_simple = query.alone and not query.where and query.whole is None and len(query.base) == 1
    base = query.base if is_simple else _bracket_query(query)
    return PipeQuery([*base, *names[0]], query.sign, name=_relation_name(names[0][0]))


def _with_order(query: PipeQuery, step: list[Item]) -> PipeQuery:
    """ORDER BY and the like, which see the columns of the step before; LIMIT behind ORDER BY is part of it."""
    whole = [*_star(query), *_source(query)]
    limits = kind_of(step[0]) in {_T.LIMIT, _T.OFFSET}
    if query.result and query.whole is not None and not query.where and limits and not _ends_with_limit(query.whole):
        whole = query.whole
    return close_query(query, [*whole, *tokens_of_items(step)], result=True)


def _ends_with_limit(whole: list[Token]) -> bool:
    """Whether a query ends with LIMIT or OFFSET."""
    depth, has_limit = 0, False
    for token in whole:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        has_limit = has_limit or (not depth and token.token_type in {_T.LIMIT, _T.OFFSET})
    return has_limit


def _with_set_operation(query: PipeQuery, step: list[Item]) -> PipeQuery:
    """UNION and the like with a SELECT, VALUES, TABLE or a query in brackets."""
    side = next((i for i in range(1, len(step)) if kind_of(step[i]) not in _QUANTIFIERS), len(step))
    other = tokens_of_items(step[side:])
    if len(step) - side > 1:
        other = [_token(query, _T.L_PAREN, "("), *other, _token(query, _T.R_PAREN, ")")]
    return close_query(replace(query, name=""), [*_bracket_query(query), *tokens_of_items(step[:side]), *other])


def _with_dropped(query: PipeQuery, step: list[Item]) -> PipeQuery:
    """DROP: names of columns, no fields."""
    for item in step[1:]:
        if len(item) > 1 or kind_of(item) is _T.DOT:
            raise _unread(item[0])
    names = [_token(query, _T.L_PAREN, "("), *tokens_of_items(step[1:]), _token(query, _T.R_PAREN, ")")]
    return _with_select(query, [[*_star(query), _token(query, _T.EXCEPT, "EXCEPT")], names])


def _with_extended(query: PipeQuery, step: list[Item]) -> PipeQuery:
    return _with_select(query, [[*_star(query), _token(query, _T.COMMA, ",")], *step[1:]])


def _with_set(query: PipeQuery, step: list[Item]) -> PipeQuery:
    """SET: each of its columns is replaced where it is, one after another."""
    for assignment in _parts(step[1:]):
        if [kind_of(item) for item in assignment[1:2]] != [_T.EQ]:
            raise _unread(assignment[0][0] if assignment else query.sign)
        opening = [*_star(query), _token(query, _T.REPLACE, "REPLACE"), _token(query, _T.L_PAREN, "(")]
        value = [
            *tokens_of_items(assignment[2:]),
            _token(query, _T.ALIAS, "AS"),
            *assignment[0],
            _token(query, _T.R_PAREN, ")"),
        ]
        query = _with_select(query, [[*opening, *value]])
    return query


def _with_aggregate(query: PipeQuery, step: list[Item]) -> PipeQuery:
    """AGGREGATE: its keys are the first columns; a number is that of a column of the step before."""
    at = next((i for i, item in enumerate(step) if kind_of(item) is _T.GROUP_BY), len(step))
    keys = [[_column_by_number(query, key)] if _is_number(key) else key for key in _parts(step[at + 1 :])]
    columns = [*map(tokens_of_items, keys), *([tokens_of_items(step[1:at])] if at > 1 else [])]
    if not all(columns) or not columns or kind_of(columns[0]) is _T.ALL:
        raise _unread(step[0][0])
    select = [_token(query, _T.SELECT, "SELECT"), *_join_with_commas(query, columns)]
    group = (
        [*step[at], *_join_with_commas(query, [tokens_of_items(_without_alias(key)) for key in keys])] if keys else []
    )
    return close_query(query, [*select, *_source(query), *group])


def _is_number(key: list[Item]) -> bool:
    return len(key) == 1 and kind_of(key[0]) is _T.NUMBER


def _column_by_number(query: PipeQuery, key: list[Item]) -> Item:
    """The name of the column with a number, where a SELECT lists them."""
    items = side_by_side(query.whole or [], tokens_of_items)
    begins = kind_of(items[0]) is _T.SELECT if items else False
    end = next((i for i, item in enumerate(items) if kind_of(item) in {_T.FROM, *SETS, *RESULT}), len(items))
    columns = _parts(items[1:end]) if begins else []
    are_named = all(len(column[-1]) == 1 and kind_of(column[-1]) in NAMES for column in columns)
    number = int(key[0][0].text)
    if not are_named or not 1 <= number <= len(columns):
        raise _unread(key[0][0], "Write the name of the column.")
    return columns[number - 1][-1]


def _without_alias(key: list[Item]) -> list[Item]:
    if len(key) > 1 and kind_of(key[-2]) is _T.ALIAS:
        return key[:-2]
    if len(key) > 1 and kind_of(key[-1]) in NAMES and key[-2][-1].token_type in _VALUES:
        return key[:-1]
    return key


def _parts(items: list[Item]) -> list[list[Item]]:
    """What commas separate."""
    parts: list[list[Item]] = [[]] if items else []
    for item in items:
        if kind_of(item) is _T.COMMA:
            parts.append([])
        else:
            parts[-1].append(item)
    return parts


def _join_with_commas(query: PipeQuery, parts: list[list[Token]]) -> list[Token]:
    between = [_token(query, _T.COMMA, ",")]
    return list(chain.from_iterable(part if not index else [*between, *part] for index, part in enumerate(parts)))


def _star(query: PipeQuery) -> list[Token]:
    return [_token(query, _T.SELECT, "SELECT"), _token(query, _T.STAR, "*")]


def _with_pivot(query: PipeQuery, step: list[Item]) -> PipeQuery:
    base = query if query.alone and not query.where else close_query(query, whole_query(query))
    return close_query(query, [*_star(query), _token(query, _T.FROM, "FROM"), *base.base, *tokens_of_items(step)])


def _with_sample(query: PipeQuery, step: list[Item]) -> PipeQuery:
    base = [*_bracket_query(query), *_alias(query), *tokens_of_items(step)]
    return replace(close_query(query, whole_query(query)), base=base, whole=None)


def visible_name(relation: list[Item]) -> str:
    """The name by which columns of a relation are qualified."""
    last = relation[-1] if relation else []
    return _relation_name(last[0]) if len(last) == 1 and last[0].token_type in NAMES else ""


def _relation_name(token: Token) -> str:
    """The name that a name in FROM gives, also that of a placeholder: `@source shop.orders`."""
    name = str(token.text)
    return name if not name.startswith("@") else name.rpartition(" ")[2].rpartition(".")[2] if " " in name else ""


def tokens_of_items(items: list[Item]) -> list[Token]:
    return list(chain.from_iterable(items))


def kind_of(item: Item) -> TokenType:
    """What an item is, or begins with."""
    return item[0].token_type


def _token(query: PipeQuery, kind: TokenType, text: str) -> Token:
    sign = query.sign
    return Token(kind, text, sign.line, sign.col, sign.start, sign.end)


def _unread(token: Token, hint: str = _STEPS) -> ParseError:
    place = {"line": token.line, "col": token.col, "description": "", "hint": hint}
    return ParseError(f"invalid step of a pipe: {token.text}", errors=[place])


_BY_KIND: dict[TokenType, Callable[[PipeQuery, list[Item]], PipeQuery]] = {
    _T.SELECT: _with_select, _T.WHERE: _with_where, _T.ALIAS: _with_alias, _T.SET: _with_set, _T.DROP: _with_dropped,
    _T.PIVOT: _with_pivot, _T.UNPIVOT: _with_pivot, _T.TABLE_SAMPLE: _with_sample,
    **dict.fromkeys(SETS, _with_set_operation), **dict.fromkeys(RESULT, _with_order),
}  # fmt: skip
_BY_WORD: dict[str, Callable[[PipeQuery, list[Item]], PipeQuery]] = {
    "EXTEND": _with_extended,
    "AGGREGATE": _with_aggregate,
}
