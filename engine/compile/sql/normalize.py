"""The normal form of a query: equal for two texts only if Spark reads them as one.

Facts, fingerprints, plan, test passes and `state:modified` all compare it. It is made of the tokens, and of the tree
for the kind of name that a token is, never of SQL that sqlglot generates: it writes `percentile_cont` as
`percentile_disc`.

What means nothing: blanks, comments, the letter case of the names listed below, needless backticks and brackets, AS,
INNER, OUTER and ASC, the quotes and escapes of a string. Other rules are another `FORM` (`engine.compile.nodes.facts`).

Names in any letter case: those of a column, a table, a CTE or its alias, alone or first (`spark.sql.caseSensitive` is
pinned to false), keywords, and functions. As written, because it can reach a value or the name of an output: what
follows a dot, an alias, a selected column without one, `struct(Price)`, lists of names, the fields of a type, PIVOT and
UNPIVOT, the arguments of a lambda.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.dialect import UNFORESEEN, parse_tokens, tokenize
from engine.compile.sql.lexer.tokens import TokenType

# What names fields after columns that are its direct arguments.
_NAMING = (exp.Struct, exp.PropertyEQ, exp.Tuple, exp.Select, exp.Star)
_NAMING_CALLS = {"arrays_zip", "struct", "named_struct", "stack", "inline"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that mean something else to Spark without backticks, in one place or another: those that its `sql_keywords()`
# calls reserved, and what its parser and `LiteralFunctionResolution` read as a constant.
_SPECIAL = {
    "all", "and", "anti", "any", "array", "as", "authorization", "between", "both", "by", "case", "cast", "check",
    "collate", "column", "constraint", "create", "cross", "cube", "current_catalog", "current_database",
    "current_date", "current_schema", "current_time", "current_timestamp", "current_user", "distinct", "else", "end",
    "escape", "except", "execute", "exists", "false", "fetch", "filter", "for", "foreign", "from", "full", "grant",
    "group", "grouping", "grouping__id", "having", "in", "inner", "intersect", "interval", "into", "is", "join",
    "lateral", "leading", "left", "like", "limit", "localtimestamp", "map", "minus", "natural", "not", "null",
    "offset", "on", "only", "or", "order", "outer", "overlaps", "pivot", "primary", "recursive", "references",
    "rollup", "right", "select", "semi", "session_user", "set", "setminus", "some", "sql", "struct", "table",
    "tablesample", "then", "to", "trailing", "true", "union", "unique", "unknown", "unpivot", "user", "using",
    "values", "when", "where", "window", "with", "within",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamePlaces:
    """Where names are in a text: whether their letter case means nothing, by place; the places of aliases."""

    folds: Mapping[int, bool]
    aliases: AbstractSet[int]


def name_places(identifiers: Iterable[exp.Identifier]) -> NamePlaces:
    """What the identifiers of a tree say of the names in its text. One place can have several nodes."""
    folds: dict[int, bool] = {}
    aliases: set[int] = set()
    for identifier in identifiers:
        start = identifier.meta.get("start")
        if start is None:
            continue
        if folds.get(start, True):
            folds[start] = _refers(identifier)
        if _is_alias(identifier):
            aliases.add(start)
    return NamePlaces(folds, aliases)


def name_text(name: str, *, folds: bool, quoted: bool) -> str:
    """A name as the normal form has it.

    Args:
        name: without backticks.
        folds: its letter case means nothing.
        quoted: it was in backticks.
    """
    if folds and name.isascii():
        name = name.lower()
    if not quoted or (_PLAIN.fullmatch(name) and name.lower() not in _SPECIAL):
        return name
    return f"`{name.replace('`', '``')}`"


def _is_alias(identifier: exp.Identifier) -> bool:
    """Whether AS may be in front of it and need not."""
    parent = identifier.parent
    if isinstance(parent, exp.TableAlias):
        return identifier.arg_key == "this" and isinstance(parent.parent, (exp.Table, exp.Subquery, exp.Values))
    return isinstance(parent, exp.Alias) and identifier.arg_key == "alias" and isinstance(parent.parent, exp.Select)


def _refers(identifier: exp.Identifier) -> bool:
    parent = identifier.parent
    if isinstance(parent, exp.Column):
        return identifier is parent.parts[0] and not _names(parent, alone=len(parent.parts) == 1)
    if isinstance(parent, exp.TableAlias):
        return identifier.arg_key == "this"
    if isinstance(parent, exp.Table):
        # A placeholder names a model or source, `@ref Orders`.
        return not identifier.name.startswith("@")
    return isinstance(parent, exp.Join)


def _names(column: exp.Expr, *, alone: bool) -> bool:
    """Whether a name becomes part of an output: a column or field is called as it is written.

    What is selected without an alias has a name made of its text.
    """
    node, parent = column, column.parent
    while isinstance(parent, exp.Paren):
        node, parent = parent, parent.parent
    if isinstance(parent, (exp.Select, *_NAMING)) and alone and node.arg_key in {"expressions", "this"}:
        return True
    if alone and isinstance(parent, exp.Func) and _function_name(parent) in _NAMING_CALLS:
        return True
    direct = True
    while parent is not None:
        if isinstance(parent, exp.Pivot):
            return True
        if isinstance(parent, exp.Select):
            return node.arg_key == "expressions" and not direct
        if isinstance(parent, (exp.Alias, exp.Query)):
            # An alias names it.
            return _in_pivot(parent)
        node, parent, direct = parent, parent.parent, False
    return False


def _in_pivot(node: exp.Expr) -> bool:
    return node.find_ancestor(exp.Pivot) is not None


def _function_name(node: exp.Func) -> str:
    return (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()


_T = TokenType
_SIGNS = {_T.NEQ: "<>", _T.EQ: "=", _T.LTE: "<=", _T.GTE: ">="}
_ESCAPED = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000"})
# Words that are keywords to Spark and names to the tokenizer.
_WORDS = {
    "century", "current", "day", "dayofweek", "days", "decade", "dow", "doy", "epoch", "excluding", "first",
    "following", "group", "hour", "hours", "ignore", "including", "last", "microsecond", "microseconds",
    "millisecond", "milliseconds", "minute", "minutes", "month", "months", "nanosecond", "nulls", "preceding",
    "quarter", "respect", "second", "seconds", "session", "sets", "sliding", "time", "timezone", "tumbling",
    "unbounded", "week", "weeks", "within", "without", "year", "years", "zone",
}  # fmt: skip
_OPTIONAL = {_T.INNER, _T.OUTER, _T.ASC}
_SIDES = {_T.LEFT, _T.RIGHT, _T.FULL}
# Where an expression begins and ends that is nothing else's part.
_BEGINS = {_T.SELECT, _T.COMMA, _T.L_PAREN, _T.WHERE, _T.HAVING, _T.ON, _T.WHEN, _T.THEN, _T.ELSE}
_ENDS = {
    _T.COMMA, _T.R_PAREN, _T.FROM, _T.WHERE, _T.GROUP_BY, _T.HAVING, _T.ORDER_BY, _T.LIMIT, _T.ALIAS, _T.THEN, _T.ELSE,
    _T.END, _T.WHEN, _T.UNION, _T.EXCEPT, _T.INTERSECT, _T.JOIN, _T.INNER, _T.LEFT, _T.RIGHT, _T.FULL, _T.CROSS,
}  # fmt: skip
_OPERATORS = {
    _T.AND, _T.OR, _T.EQ, _T.NEQ, _T.LT, _T.LTE, _T.GT, _T.GTE, _T.NULLSAFE_EQ, _T.PLUS, _T.DASH, _T.STAR, _T.SLASH,
    _T.MOD, _T.DPIPE, _T.IS,
}  # fmt: skip


def spelling(
    text: str, tokens: Sequence[Token], identifiers: Iterable[exp.Identifier], parens: Iterable[exp.Paren]
) -> str:
    """Return the normal form of a query, from its text, the tokens of that, and the names and brackets of its tree."""
    names = name_places(identifiers)
    needless = _needless_brackets(tokens, parens, names)
    parts: list[str] = []
    before: Token | None = None
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        # A suffix of a number, the L of 1L, is a token `::` and a type in its place.
        if index in needless or (before is not None and before.start == token.start):
            continue
        if token.token_type in _OPTIONAL and _is_optional(before, token, following, names):
            continue
        if token.start in names.aliases and (before is None or before.token_type is not _T.ALIAS):
            parts.append("as")
        parts.append(_word(text, before, token, following, names))
        before = token
    return " ".join(parts)


def spelling_of(text: str) -> str:
    """The same for a text of its own, or an expression of the header; one that cannot be read stays as it is."""
    try:
        tokens = tokenize(text)
    except SqlglotError:
        return text
    words = [text[token.start : token.end + 1] for token in tokens]
    if not tokens or tokens[0].token_type in sqlglot.Parser.STATEMENT_PARSERS:
        return " ".join([*map(str.lower, words[:1]), *words[1:]])
    try:
        trees = [tree for tree in parse_tokens(tokens, text) if tree is not None]
    except (SqlglotError, RecursionError, *UNFORESEEN):
        return " ".join(words)
    nodes = [node for tree in trees for node in tree.find_all(exp.Identifier, exp.Paren)]
    identifiers = [node for node in nodes if isinstance(node, exp.Identifier)]
    return spelling(text, tokens, identifiers, [node for node in nodes if isinstance(node, exp.Paren)])


def same_meaning(one: str, other: str) -> bool:
    """Whether Spark reads two texts as one; those of facts may be in the form of another version of the parser."""
    return one == other or spelling_of(one) == spelling_of(other)


def _word(text: str, before: Token | None, token: Token, following: Token | None, names: NamePlaces) -> str:  # noqa: PLR0911 - one a kind
    kind = token.token_type
    if kind in _SIGNS:
        return _SIGNS[kind]
    raw = text[token.start : token.end + 1]
    if kind is _T.STRING:
        return _string(token.text)
    if kind is _T.HEX_STRING:
        return f"x'{token.text.upper()}'"
    if kind is _T.NUMBER:
        return raw.lower()
    folds = names.folds.get(token.start)
    if folds is not None:
        return name_text(token.text, folds=folds, quoted=kind is _T.IDENTIFIER)
    keeps_case = kind in {_T.IDENTIFIER, _T.HINT} or (before is not None and before.token_type in {_T.DOT, _T.COLON})
    if keeps_case or (kind is _T.VAR and not _is_word(token, following)):
        return raw
    return str(token.text).lower()


def _is_word(token: Token, following: Token | None) -> bool:
    """Whether it is the name of a function or a keyword."""
    return (following is not None and following.token_type is _T.L_PAREN) or token.text.lower() in _WORDS


def _string(value: str) -> str:
    """A literal of a value, the same however it was written."""
    escaped = value.translate(_ESCAPED)
    return f"'{escaped}'"


def _is_optional(before: Token | None, token: Token, following: Token | None, names: NamePlaces) -> bool:
    kind = token.token_type
    if token.start in names.folds:
        return False
    joins = following is not None and following.token_type is _T.JOIN
    sided = before is not None and before.token_type in _SIDES
    return kind is _T.ASC or (joins and (sided or kind is _T.INNER))


def _needless_brackets(tokens: Sequence[Token], parens: Iterable[exp.Paren], names: NamePlaces) -> Container[int]:
    """The brackets around what nothing could take apart: a name, a call, a text, or all that is between two commas."""
    begins = Counter(min((n.meta["start"] for n in paren.walk() if "start" in n.meta), default=-1) for paren in parens)
    if not begins:
        return ()
    needless: set[int] = set()
    partner = dict(_pairs(tokens))
    for at, end in partner.items():
        first = next((i for i in range(at, end) if tokens[i].token_type is not _T.L_PAREN), end)
        # Of several brackets that begin here the inner ones are those of the tree; the outer may be of a call.
        if not 0 < first - at <= begins[tokens[first].start] or (
            first == end - 1 and tokens[first].token_type is _T.NUMBER
        ):
            continue
        kinds = [tokens[i].token_type if 0 <= i < len(tokens) else None for i in (at - 1, end + 1)]
        is_aliased = end + 1 < len(tokens) and tokens[end + 1].start in names.aliases
        whole = (kinds[0] is None or kinds[0] in _BEGINS) and (kinds[1] is None or kinds[1] in _ENDS or is_aliased)
        near = all(kind is None or is_aliased or kind in _BEGINS | _ENDS | _OPERATORS for kind in kinds)
        if (whole and not _names_inside(tokens, at, end)) or (
            near and _is_atom(tokens, at + 1, end - 1, partner, names)
        ):
            needless |= {at, end}
    return needless


def _names_inside(tokens: Sequence[Token], at: int, end: int) -> bool:
    """Whether brackets hold an alias of their own, which Spark does not read."""
    depth = 0
    for token in tokens[at + 1 : end]:
        depth += (token.token_type is _T.L_PAREN) - (token.token_type is _T.R_PAREN)
        if depth == 0 and token.token_type is _T.ALIAS:
            return True
    return False


def _pairs(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.token_type is _T.L_PAREN:
            opened.append(index)
        elif token.token_type is _T.R_PAREN and opened:
            yield opened.pop(), index


def _is_atom(tokens: Sequence[Token], at: int, last: int, partner: dict[int, int], names: NamePlaces) -> bool:
    """Whether tokens are one name, one call, one text, or one of these in brackets."""
    if partner.get(at) == last:
        return _is_atom(tokens, at + 1, last - 1, partner, names)
    if tokens[at].token_type is _T.STRING:
        return at == last
    if tokens[at].start not in names.folds:
        return tokens[at].token_type is _T.VAR and partner.get(at + 1) == last
    while at + 2 <= last and tokens[at + 1].token_type is _T.DOT:
        at += 2
    return at == last
