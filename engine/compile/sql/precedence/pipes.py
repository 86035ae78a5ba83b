"""Pipes (`FROM t |> WHERE a > 1 |> SELECT b`) as the nested SELECTs that Spark makes of them.

sqlglot reads pipes, too, but merges steps whose order counts: `|> LIMIT 5 |> WHERE a > 1` is `WHERE a > 1 LIMIT 5` to
it, and it has no SET, OFFSET or UNION of a SELECT. So its parser sees none: they are written out in the tokens, by
Spark's grammar (SqlBaseParser.g4: operatorPipeRightSide) and AstBuilder.visitOperatorPipeRightSide. A word that is put
in has the place of the sign `|>` in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

# One token, or the tokens of brackets with what is in them.
Item: TypeAlias = list[Token]

_T = TokenType
_OPENING, _CLOSING = {_T.L_PAREN: _T.R_PAREN, _T.L_BRACKET: _T.R_BRACKET}, {_T.R_PAREN, _T.R_BRACKET}
_SETS = {_T.UNION, _T.EXCEPT, _T.INTERSECT}
_ORDER = {_T.ORDER_BY, _T.SORT_BY, _T.CLUSTER_BY, _T.DISTRIBUTE_BY}
_RESULT = {*_ORDER, _T.LIMIT, _T.OFFSET}
_NAMES = {_T.VAR, _T.IDENTIFIER}
# Behind these a name follows, whatever else its word may be: `select offset, t.limit, a as window`.
_NAMING = {_T.SELECT, _T.COMMA, _T.DOT, _T.ALIAS}
# What ends an expression, so that a name behind it is an alias.
_VALUES = {*_NAMES, *_CLOSING, _T.NUMBER, _T.STRING, _T.END}
_QUANTIFIERS = {_T.ALL, _T.DISTINCT}
_STEPS = (
    "Steps are SELECT, EXTEND, SET, DROP, AS, WHERE, AGGREGATE, JOIN, ORDER BY, LIMIT, OFFSET, UNION and its like, "
    "PIVOT, UNPIVOT and TABLESAMPLE."
)
# Of a relation in brackets: its name until the tree is made.
_MARK = "|>"
# Of a star with REPLACE, among its facts: it comes from the step SET. Spark has no other.
SET = "set"


def without_pipes(tokens: list[Token], text: str) -> list[Token]:
    """The tokens of nested SELECTs in place of those of pipes.

    Args:
        tokens: of a statement.
        text: that they are of.

    Raises:
        ParseError: a step is none of Spark's, or groups by the number of a column.
    """
    return _flat(_items(tokens)) if _MARK in text else tokens


def named(tree: exp.Expr, text: str) -> exp.Expr:
    """A tree whose relations in brackets have the names that they had before a step put them there.

    Args:
        tree: of the tokens.
        text: that they are of.
    """
    for node in tree.find_all(exp.Identifier, exp.Star):
        if isinstance(node, exp.Star):
            node.meta[SET] = bool(node.args.get("replace")) and text[node.meta["start"]] == "|"
        elif node.name.startswith(_MARK):
            node.set("this", node.name.removeprefix(_MARK))
            node.meta.clear()
    return tree


def _items(tokens: Sequence[Token]) -> list[Item]:
    """What is side by side, and in brackets what is written out."""
    stack: list[list[Item]] = [[]]
    opened: list[Token] = []
    for token in tokens:
        if token.token_type in _OPENING:
            opened.append(token)
            stack.append([])
        elif token.token_type in _CLOSING and opened:
            inside = _flat(stack.pop())
            stack[-1].append([opened.pop(), *inside, token])
        else:
            stack[-1].append([token])
    while opened:
        inside = _flat(stack.pop())
        stack[-1].append([opened.pop(), *inside])
    return stack[-1]


def _flat(items: list[Item]) -> list[Token]:
    places = [index for index, item in enumerate(items) if _kind(item) is _T.PIPE_GT]
    if not places:
        return list(chain.from_iterable(items))
    behind = _behind_ctes(items)
    query = _started(items[behind : places[0]], items[places[0]][0])
    for place, end in zip(places, [*places[1:], len(items)], strict=True):
        for step in _steps(items[place + 1 : end]):
            query = _with_step(replace(query, sign=items[place][0]), step)
    return [*chain.from_iterable(items[:behind]), *_whole(query)]


def _behind_ctes(items: list[Item]) -> int:
    """Where the query behind WITH begins."""
    if not items or _kind(items[0]) is not _T.WITH:
        return 0
    for index in range(1, len(items) - 1):
        closes = len(items[index]) > 1 and _kind(items[index - 1]) is _T.ALIAS
        if closes and _kind(items[index + 1]) is not _T.COMMA:
            return index + 1
    return 0


def _steps(items: list[Item]) -> list[list[Item]]:
    """A step of a pipe; ORDER BY and the like behind it, and UNION, are steps of their own: of the query around."""
    found: list[list[Item]] = [[]]
    for index, item in enumerate(items):
        kind, before = _kind(item), _kind(items[index - 1]) if index else None
        kinds = [_kind(one) for one in found[-1]]
        follows = kind in kinds if kinds[:1] and kinds[0] in _RESULT else kind is not _T.OFFSET
        # `* except (a)` names columns.
        names = before in _NAMING or before is _T.STAR
        if index and not names and (kind in _SETS or (kind in _RESULT and follows)):
            found.append([])
        found[-1].append(item)
    return found


@dataclass(frozen=True, slots=True)
class _Query:
    """What comes out of the steps until here.

    Attributes:
        base: what is behind FROM.
        sign: of the step.
        whole: the query, if all of it is in brackets behind FROM.
        where: the condition.
        name: of the only relation.
        alone: FROM has one relation.
        result: the whole ends with ORDER BY, LIMIT or the like.
    """

    base: list[Token]
    sign: Token
    whole: list[Token] | None = None
    where: tuple[Token, ...] = ()
    name: str = ""
    alone: bool = True
    result: bool = False


def _started(items: list[Item], sign: Token) -> _Query:
    """The query in front of the first sign."""
    kinds = [_kind(item) for item in items]
    if kinds[:1] == [_T.TABLE] or (kinds[:1] == [_T.FROM] and not {_T.SELECT, _T.WHERE, *_SETS} & {*kinds}):
        relation = items[1:]
        alone = not {_T.COMMA, _T.JOIN, _T.LATERAL} & {*kinds}
        return _Query(_joined(relation), sign, name=_visible(relation) if alone else "", alone=alone)
    if kinds[:1] == [_T.VALUES]:
        return _Query(_joined(items), sign)
    return _closed(_Query([], sign), _joined(items))


def _with_step(query: _Query, step: list[Item]) -> _Query:
    """A query with one step more."""
    if not step:
        return query
    made = _BY_KIND.get(_kind(step[0])) or _BY_WORD.get(step[0][0].text.upper())
    if made is None and any(_kind(item) is _T.JOIN for item in step):
        made = _with_join
    if made is None:
        raise _unread(step[0][0])
    return made(query, step)


def _whole(query: _Query) -> list[Token]:
    """The query as a text of its own."""
    if query.whole is not None and not query.where:
        return query.whole
    return [*_star(query), *_source(query)]


def _source(query: _Query) -> list[Token]:
    where = [_put(query, _T.WHERE, "WHERE"), *query.where] if query.where else []
    return [_put(query, _T.FROM, "FROM"), *query.base, *where]


def _closed(query: _Query, whole: list[Token], *, result: bool = False) -> _Query:
    """A query in brackets behind FROM; names of the relation stay valid, as far as Spark lets them through."""
    inside = [_put(query, _T.L_PAREN, "("), *whole, _put(query, _T.R_PAREN, ")")]
    return _Query([*inside, *_alias(query)], query.sign, whole, name=query.name, result=result)


def _bracketed(query: _Query) -> list[Token]:
    return [_put(query, _T.L_PAREN, "("), *_whole(query), _put(query, _T.R_PAREN, ")")]


def _alias(query: _Query) -> list[Token]:
    return [_put(query, _T.IDENTIFIER, f"{_MARK}{query.name}")] if query.name else []


def _selected(query: _Query, items: list[Item]) -> _Query:
    """SELECT with its items; a WINDOW clause is behind FROM."""
    window = next((i for i in range(1, len(items) - 2) if _names_window(items, i)), len(items))
    return _closed(query, [*_joined(items[:window]), *_source(query), *_joined(items[window:])])


def _names_window(items: list[Item], index: int) -> bool:
    """Whether `WINDOW w AS (..)` begins."""
    kinds = [_kind(item) for item in items[index : index + 4]]
    return items[index][0].text.upper() == "WINDOW" and kinds[2:] == [_T.ALIAS, _T.L_PAREN]


def _filtered(query: _Query, step: list[Item]) -> _Query:
    condition = _joined(step[1:])
    if not query.where:
        return replace(query, where=tuple(condition))
    sides = [_side_of_and(query, side) for side in (query.where, condition)]
    return replace(query, where=(*sides[0], _put(query, _T.AND, "AND"), *sides[1]))


def _side_of_and(query: _Query, condition: Sequence[Token]) -> Sequence[Token]:
    """A side of AND: in brackets if it has an OR."""
    if _T.OR not in {token.token_type for token in condition}:
        return condition
    return [_put(query, _T.L_PAREN, "("), *condition, _put(query, _T.R_PAREN, ")")]


def _with_join(query: _Query, step: list[Item]) -> _Query:
    """A join. A condition before it is one behind it, too, unless it would meet the rows that the join adds."""
    keeps = not {_T.RIGHT, _T.FULL} & {_kind(item) for item in step}
    if query.where and (query.name or query.alone or not keeps):
        query = _closed(query, _whole(query))
    return replace(query, base=[*query.base, *_joined(step)], whole=None, name="", alone=False)


def _called(query: _Query, step: list[Item]) -> _Query:
    """AS: a relation has another name."""
    _, *names = step
    if [len(name) for name in names] != [1]:
        raise _unread(step[0][0])
    plain = query.alone and not query.where and query.whole is None and len(query.base) == 1
    base = query.base if plain else _bracketed(query)
    return _Query([*base, *names[0]], query.sign, name=_shown(names[0][0]))


def _ordered(query: _Query, step: list[Item]) -> _Query:
    """ORDER BY and the like, which see the columns of the step before; LIMIT behind ORDER BY is part of it."""
    whole = [*_star(query), *_source(query)]
    limits = _kind(step[0]) in {_T.LIMIT, _T.OFFSET}
    if query.result and query.whole is not None and not query.where and limits and not _limited(query.whole):
        whole = query.whole
    return _closed(query, [*whole, *_joined(step)], result=True)


def _limited(whole: list[Token]) -> bool:
    """Whether a query ends with LIMIT or OFFSET."""
    depth, found = 0, False
    for token in whole:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        found = found or (not depth and token.token_type in {_T.LIMIT, _T.OFFSET})
    return found


def _combined(query: _Query, step: list[Item]) -> _Query:
    """UNION and the like with a SELECT, VALUES, TABLE or a query in brackets."""
    side = next((i for i in range(1, len(step)) if _kind(step[i]) not in _QUANTIFIERS), len(step))
    other = _joined(step[side:])
    if len(step) - side > 1:
        other = [_put(query, _T.L_PAREN, "("), *other, _put(query, _T.R_PAREN, ")")]
    return _closed(replace(query, name=""), [*_bracketed(query), *_joined(step[:side]), *other])


def _without(query: _Query, step: list[Item]) -> _Query:
    """DROP: names of columns, no fields."""
    for item in step[1:]:
        if len(item) > 1 or _kind(item) is _T.DOT:
            raise _unread(item[0])
    names = [_put(query, _T.L_PAREN, "("), *_joined(step[1:]), _put(query, _T.R_PAREN, ")")]
    return _selected(query, [[*_star(query), _put(query, _T.EXCEPT, "EXCEPT")], names])


def _extended(query: _Query, step: list[Item]) -> _Query:
    return _selected(query, [[*_star(query), _put(query, _T.COMMA, ",")], *step[1:]])


def _assigned(query: _Query, step: list[Item]) -> _Query:
    """SET: each of its columns is replaced where it is, one after another."""
    for assignment in _parts(step[1:]):
        if [_kind(item) for item in assignment[1:2]] != [_T.EQ]:
            raise _unread(assignment[0][0] if assignment else query.sign)
        opening = [*_star(query), _put(query, _T.REPLACE, "REPLACE"), _put(query, _T.L_PAREN, "(")]
        value = [*_joined(assignment[2:]), _put(query, _T.ALIAS, "AS"), *assignment[0], _put(query, _T.R_PAREN, ")")]
        query = _selected(query, [[*opening, *value]])
    return query


def _grouped(query: _Query, step: list[Item]) -> _Query:
    """AGGREGATE: its keys are the first columns; a number is that of a column of the step before."""
    at = next((i for i, item in enumerate(step) if _kind(item) is _T.GROUP_BY), len(step))
    keys = [[_numbered(query, key)] if _is_number(key) else key for key in _parts(step[at + 1 :])]
    columns = [*map(_joined, keys), *([_joined(step[1:at])] if at > 1 else [])]
    if not all(columns) or not columns or _kind(columns[0]) is _T.ALL:
        raise _unread(step[0][0])
    select = [_put(query, _T.SELECT, "SELECT"), *_separated(query, columns)]
    group = [*step[at], *_separated(query, [_joined(_unnamed(key)) for key in keys])] if keys else []
    return _closed(query, [*select, *_source(query), *group])


def _is_number(key: list[Item]) -> bool:
    return len(key) == 1 and _kind(key[0]) is _T.NUMBER


def _numbered(query: _Query, key: list[Item]) -> Item:
    """The name of the column with a number, where a SELECT lists them."""
    items = _items(query.whole or [])
    begins = _kind(items[0]) is _T.SELECT if items else False
    end = next((i for i, item in enumerate(items) if _kind(item) in {_T.FROM, *_SETS, *_RESULT}), len(items))
    columns = _parts(items[1:end]) if begins else []
    known = all(len(column[-1]) == 1 and _kind(column[-1]) in _NAMES for column in columns)
    number = int(key[0][0].text)
    if not known or not 1 <= number <= len(columns):
        raise _unread(key[0][0], "Write the name of the column.")
    return columns[number - 1][-1]


def _unnamed(key: list[Item]) -> list[Item]:
    """A key without its alias."""
    if len(key) > 1 and _kind(key[-2]) is _T.ALIAS:
        return key[:-2]
    if len(key) > 1 and _kind(key[-1]) in _NAMES and key[-2][-1].token_type in _VALUES:
        return key[:-1]
    return key


def _parts(items: list[Item]) -> list[list[Item]]:
    """What commas separate."""
    found: list[list[Item]] = [[]] if items else []
    for item in items:
        if _kind(item) is _T.COMMA:
            found.append([])
        else:
            found[-1].append(item)
    return found


def _separated(query: _Query, parts: list[list[Token]]) -> list[Token]:
    between = [_put(query, _T.COMMA, ",")]
    return list(chain.from_iterable(part if not index else [*between, *part] for index, part in enumerate(parts)))


def _star(query: _Query) -> list[Token]:
    return [_put(query, _T.SELECT, "SELECT"), _put(query, _T.STAR, "*")]


def _pivoted(query: _Query, step: list[Item]) -> _Query:
    base = query if query.alone and not query.where else _closed(query, _whole(query))
    return _closed(query, [*_star(query), _put(query, _T.FROM, "FROM"), *base.base, *_joined(step)])


def _sampled(query: _Query, step: list[Item]) -> _Query:
    base = [*_bracketed(query), *_alias(query), *_joined(step)]
    return replace(_closed(query, _whole(query)), base=base, whole=None)


def _visible(relation: list[Item]) -> str:
    """The name by which columns of a relation are qualified."""
    last = relation[-1] if relation else []
    return _shown(last[0]) if len(last) == 1 and last[0].token_type in _NAMES else ""


def _shown(token: Token) -> str:
    """The name that a name in FROM gives, also that of a placeholder: `@source shop.orders`."""
    name = str(token.text)
    return name if not name.startswith("@") else name.rpartition(" ")[2].rpartition(".")[2] if " " in name else ""


def _joined(items: list[Item]) -> list[Token]:
    return list(chain.from_iterable(items))


def _kind(item: Item) -> TokenType:
    return item[0].token_type


def _put(query: _Query, kind: TokenType, text: str) -> Token:
    sign = query.sign
    return Token(kind, text, sign.line, sign.col, sign.start, sign.end)


def _unread(token: Token, hint: str = _STEPS) -> ParseError:
    place = {"line": token.line, "col": token.col, "description": "", "hint": hint}
    return ParseError(f"invalid step of a pipe: {token.text}", errors=[place])


_BY_KIND: dict[TokenType, Callable[[_Query, list[Item]], _Query]] = {
    _T.SELECT: _selected, _T.WHERE: _filtered, _T.ALIAS: _called, _T.SET: _assigned, _T.DROP: _without,
    _T.PIVOT: _pivoted, _T.UNPIVOT: _pivoted, _T.TABLE_SAMPLE: _sampled,
    **dict.fromkeys(_SETS, _combined), **dict.fromkeys(_RESULT, _ordered),
}  # fmt: skip
_BY_WORD: dict[str, Callable[[_Query, list[Item]], _Query]] = {"EXTEND": _extended, "AGGREGATE": _grouped}
