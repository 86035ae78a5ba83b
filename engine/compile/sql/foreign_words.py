"""Words and signs of other databases that sqlglot reads and Spark's parser does not, found in the tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType
from engine.compile.sql.literal_checks import UNITED, interval_unit, moment_unit, number_fault, typed_literal
from engine.compile.types.moments import is_moment
from engine.errors import near

Found = tuple[str, str, int]
_Tokens = Sequence[Token]
_Rule = Callable[[_Tokens, int], Found | None]

# What Spark's grammar calls a type (asked of 4.1).
TYPES = frozenset({
    "ARRAY", "BIGINT", "BINARY", "BOOLEAN", "BYTE", "CHAR", "CHARACTER", "DATE", "DEC", "DECIMAL", "DOUBLE", "FLOAT",
    "GEOGRAPHY", "GEOMETRY", "INT", "INTEGER", "INTERVAL", "LONG", "MAP", "NUMERIC", "REAL", "SHORT", "SMALLINT",
    "STRING", "STRUCT", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TINYINT", "VARCHAR", "VARIANT", "VOID",
})  # fmt: skip
_INSTEAD = {
    **dict.fromkeys(("BPCHAR", "CLOB", "NCHAR", "NVARCHAR", "TEXT", "UUID", "VARCHAR2"), "string"),
    **dict.fromkeys(("BOOL",), "boolean"),
    **dict.fromkeys(("INT8", "INT64", "UBIGINT", "UINTEGER", "UNSIGNED", "HUGEINT"), "bigint"),
    **dict.fromkeys(("INT4", "INT32", "MEDIUMINT", "SIGNED", "USMALLINT"), "int"),
    **dict.fromkeys(("INT2", "INT16"), "smallint"),
    **dict.fromkeys(("FLOAT4", "FLOAT32"), "float"),
    **dict.fromkeys(("FLOAT8", "FLOAT64"), "double"),
    **dict.fromkeys(("BIGDECIMAL", "BIGNUMERIC", "MONEY", "NUMBER"), "decimal(38, 9)"),
    **dict.fromkeys(("DATETIME", "DATETIME2", "TIMESTAMPLTZ", "TIMESTAMPTZ"), "timestamp"),
    **dict.fromkeys(("DATETIME_NTZ", "TIMESTAMPNTZ"), "timestamp_ntz"),
    **dict.fromkeys(("BLOB", "BYTEA", "BYTES", "VARBINARY"), "binary"),
    # It can be named as a literal only.
    "TIME": "string, or timestamp",
    **dict.fromkeys(("JSON", "JSONB", "OBJECT"), "variant, and parse_json(x) for a string"),
}
_TYPED = {"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"}
_IGNORE_BEHIND = {"FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "LAG", "LEAD"}
_SUFFIXES = {"BD", "D", "F", "L", "S", "Y"}
_NAMED = {TokenType.VAR, TokenType.IDENTIFIER}
_HEXADECIMAL = re.compile(r"0[xX]([0-9A-Fa-f]+)")
_DIGITS = re.compile(r"[0-9A-Fa-f]*")
_LITERALS = {TokenType.STRING, TokenType.NUMBER}
_CASTS = {"CAST", "TRY_CAST"}
_OPENS_TYPE = {TokenType.L_PAREN, TokenType.LT}
_CLOSES_TYPE = {TokenType.R_PAREN, TokenType.GT}
_ENDS_TYPE = {*_OPENS_TYPE, *_CLOSES_TYPE, TokenType.COMMA}
_AFTER_TYPE = {*_OPENS_TYPE, TokenType.R_PAREN}
# `interval day to second`, `string collate utf8_lcase`.
_NOT_BEFORE_TYPE = {"INTERVAL", "TO", "COLLATE"}
_BEHIND_TYPE = {
    "FORMAT": (
        "Spark has no FORMAT in a cast",
        "Write to_date(x, 'yyyy-MM-dd'), to_timestamp(x, ..) or date_format(x, ..).",
    ),
    "DEFAULT": ("Spark has no DEFAULT in a cast", "Write coalesce(try_cast(..), ..)."),
    "PRECISION": ("Spark has no DOUBLE PRECISION", "Write double."),
    "WITH": ("Spark has no TIMESTAMP WITH TIME ZONE", "Write timestamp, which is a point in time."),
}
# Behind these begins an expression.
_BEGINS = {
    TokenType.SELECT, TokenType.COMMA, TokenType.L_PAREN, TokenType.EQ, TokenType.NEQ, TokenType.WHERE, TokenType.AND,
    TokenType.OR, TokenType.ON, TokenType.IN, TokenType.THEN, TokenType.ELSE, TokenType.WHEN, TokenType.NOT,
    TokenType.HAVING, TokenType.DISTINCT, TokenType.GT, TokenType.LT, TokenType.GTE, TokenType.LTE, TokenType.PLUS,
    TokenType.DASH, TokenType.BETWEEN, TokenType.L_BRACKET, TokenType.LIMIT,
}  # fmt: skip
# Pipes (`|> order by a |> union all ..`) end what is before them.
_STARTS = {TokenType.SELECT, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.PIPE_GT}
_ENDINGS = {TokenType.ORDER_BY: "ORDER BY", TokenType.LIMIT: "LIMIT"}


def foreign_words(tokens: _Tokens) -> Iterator[Found]:
    reported: set[str] = set()
    for place, token in enumerate(tokens):
        rule = _RULES.get(token.token_type)
        finding = rule(tokens, place) if rule is not None else None
        if finding is not None and finding[0] not in reported:
            reported.add(finding[0])
            yield finding


def _kind(tokens: _Tokens, place: int) -> TokenType | None:
    return tokens[place].token_type if 0 <= place < len(tokens) else None


def _word(tokens: _Tokens, place: int) -> str:
    return tokens[place].text.upper() if 0 <= place < len(tokens) else ""


def _limit(tokens: _Tokens, at: int) -> Found | None:
    if _kind(tokens, at - 1) is TokenType.NUMBER and _kind(tokens, at - 2) is TokenType.OFFSET:
        return "LIMIT comes before OFFSET", "Write LIMIT .. OFFSET ..", tokens[at].start
    first, comma, second = tokens[at + 1 : at + 2], _kind(tokens, at + 2), tokens[at + 3 : at + 4]
    if first and second and comma is TokenType.COMMA and first[0].token_type is TokenType.NUMBER:
        hint = f"Write LIMIT {second[0].text} OFFSET {first[0].text}."
        return "Spark has no LIMIT with two numbers", hint, tokens[at].start
    if _kind(tokens, at + 2) is TokenType.WITH and _word(tokens, at + 3) == "TIES":
        return "Spark has no WITH TIES", "Filter on rank() in an outer SELECT.", tokens[at + 2].start
    return None


def _offset(tokens: _Tokens, at: int) -> Found | None:
    if _kind(tokens, at + 1) is TokenType.NUMBER and _word(tokens, at + 2) in {"ROW", "ROWS"}:
        return "Spark has no OFFSET .. ROWS", "Write LIMIT .. OFFSET ..", tokens[at + 2].start
    return None


def _list(tokens: _Tokens, at: int) -> Found | None:
    before = _kind(tokens, at - 1)
    # `array[0]` may be an element of a column called so.
    several = before is TokenType.ARRAY and _kind(tokens, at + 2) is TokenType.COMMA
    if before in _BEGINS or several:
        return "Spark has no array literals in square brackets", "Write array(a, b).", tokens[at - several].start
    return None


def _placeholder(tokens: _Tokens, at: int) -> Found | None:
    return _unbound(tokens[at].start)


def _colon(tokens: _Tokens, at: int) -> Found | None:
    return _unbound(tokens[at].start) if _kind(tokens, at - 1) in _BEGINS else None


def _unbound(start: int) -> Found:
    return "a query parameter; models have none", "Write {{ var('name') }}.", start


def _is_null(tokens: _Tokens, at: int) -> Found | None:
    before = _kind(tokens, at - 1)
    if _kind(tokens, at + 1) is TokenType.L_PAREN or before in _BEGINS or before is TokenType.DOT:
        return None
    word = "IS NULL" if tokens[at].token_type is TokenType.ISNULL else "IS NOT NULL"
    return f"Spark has no {tokens[at].text.upper()} without parentheses", f"Write {word}.", tokens[at].start


def _alias(tokens: _Tokens, at: int) -> Found | None:
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    if following is None:
        return None
    if following.token_type in _LITERALS:
        literal_kind = "string" if following.token_type is TokenType.STRING else "number"
        return f"an alias is not a {literal_kind}", f"Write it in backquotes: `{following.text}`.", following.start
    behind = at + 2 if following.token_type is TokenType.NOT else at + 1
    if _word(tokens, behind) == "MATERIALIZED" and _kind(tokens, behind + 1) is TokenType.L_PAREN:
        hint = "Remove the word; to store the result once, make it a model."
        return "Spark has no MATERIALIZED in a CTE", hint, tokens[behind].start
    if _kind(tokens, at + 2) not in _AFTER_TYPE and _word(tokens, at + 2) not in _BEHIND_TYPE:
        return None
    function = _around(tokens, at)
    if _word(tokens, function) == "SAFE_CAST":
        return "Spark has no safe_cast()", "Write try_cast(x as int).", tokens[function].start
    return _type(tokens, at + 1, cast=True) if _word(tokens, function) in _CASTS else None


def _around(tokens: _Tokens, at: int) -> int:
    """The place of the word before the bracket around a token; -1: none within its SELECT."""
    depth = 0
    for place in range(at - 1, 0, -1):
        kind = tokens[place].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if depth < 0:
            return place - 1
        if depth == 0 and kind is TokenType.SELECT:
            return -1
    return -1


def _type(tokens: _Tokens, at: int, *, cast: bool) -> Found | None:
    """The first word from here to the end of a type that is not one of Spark's."""
    depth = 0
    for place in range(at, len(tokens)):
        kind = tokens[place].token_type
        if depth == 0 and place > at and kind not in _OPENS_TYPE:
            return _behind_type(tokens, place) if cast else None
        depth += (kind in _OPENS_TYPE) - (kind in _CLOSES_TYPE)
        if place == at or (_kind(tokens, place + 1) in _ENDS_TYPE and _word(tokens, place - 1) not in _NOT_BEFORE_TYPE):
            finding = _named_type(tokens, place)
            if finding is not None:
                return finding
    return None


def _named_type(tokens: _Tokens, place: int) -> Found | None:
    token = tokens[place]
    word = token.text.upper()
    if word in {"CHAR", "CHARACTER", "VARCHAR"} and _kind(tokens, place + 1) is not TokenType.L_PAREN:
        return f"{word} needs a length", "Write string.", token.start
    if word in TYPES or word == "NULL" or not word[:1].isalpha() or token.token_type is TokenType.STRING:
        return None
    hint = f"Write {_INSTEAD[word]}." if word in _INSTEAD else near(token.text.lower(), [t.lower() for t in TYPES])
    return f"unknown type '{token.text}'", hint, token.start


def _behind_type(tokens: _Tokens, place: int) -> Found | None:
    """What some databases have between the type and the end of a cast."""
    word, token = _word(tokens, place), tokens[place]
    if word in _BEHIND_TYPE:
        message, hint = _BEHIND_TYPE[word]
        return message, hint, token.start
    return None


def _cast(tokens: _Tokens, at: int) -> Found | None:
    # sqlglot's tokens of `10L` are those of a cast.
    written = not (_kind(tokens, at - 1) is TokenType.NUMBER and _word(tokens, at + 1) in _SUFFIXES)
    return _type(tokens, at + 1, cast=False) if written and at + 1 < len(tokens) else None


def _star(tokens: _Tokens, at: int) -> Found | None:
    word = _word(tokens, at + 1)
    if word == "EXCLUDE" and _kind(tokens, at + 2) in {TokenType.L_PAREN, TokenType.VAR, TokenType.IDENTIFIER}:
        return "Spark has no * EXCLUDE", "Write * except (a, b).", tokens[at + 1].start
    if word == "EXCEPT" and _kind(tokens, at + 2) is TokenType.L_PAREN and _kind(tokens, at + 3) is TokenType.R_PAREN:
        return "* EXCEPT has no columns", "Name them: * except (a, b).", tokens[at + 1].start
    if word == "EXCEPT" and _kind(tokens, at + 2) in {TokenType.VAR, TokenType.IDENTIFIER}:
        return "the columns after EXCEPT must be in parentheses", "Write * except (a, b).", tokens[at + 2].start
    return None


def _for(tokens: _Tokens, at: int) -> Found | None:
    ends = _kind(tokens, at + 2) in {None, TokenType.R_PAREN} or _word(tokens, at + 2) in {"OF", "NOWAIT", "SKIP"}
    if ends and _word(tokens, at + 1) in {"UPDATE", "SHARE"}:
        return f"Spark has no FOR {_word(tokens, at + 1)}", "Remove it; a query locks nothing.", tokens[at].start
    return None


def _fetch(tokens: _Tokens, at: int) -> Found | None:
    if _word(tokens, at + 1).split(" ")[0] in {"FIRST", "NEXT"}:
        return "Spark has no FETCH FIRST", "Write LIMIT and a number.", tokens[at].start
    return None


def _sample(tokens: _Tokens, at: int) -> Found | None:
    if _kind(tokens, at + 1) is not TokenType.L_PAREN:
        return "Spark has no TABLESAMPLE methods", "Write TABLESAMPLE (10 PERCENT).", tokens[at].start
    aliased = _kind(tokens, at - 2) in {*_NAMED, TokenType.R_PAREN, TokenType.ALIAS}
    if aliased and _kind(tokens, at - 1) in _NAMED:
        hint = "Write the alias after it: t TABLESAMPLE (10 PERCENT) a."
        return "Spark has no alias before TABLESAMPLE", hint, tokens[at - 1].start
    return None


def _set(tokens: _Tokens, at: int) -> Found | None:
    behind = at + 1 + (_word(tokens, at + 1) in {"ALL", "DISTINCT"})
    if (_word(tokens, behind), _word(tokens, behind + 1)) == ("BY", "NAME"):
        return "Spark's SQL has no BY NAME", "List the columns of both sides in the same order.", tokens[behind].start
    if _kind(tokens, at - 1) is TokenType.STAR and _kind(tokens, at + 1) is TokenType.L_PAREN:
        return None  # `* except (a)`
    return _ended_before(tokens, at)


def _ended_before(tokens: _Tokens, at: int) -> Found | None:
    """ORDER BY or LIMIT of a SELECT before UNION, outside brackets: it is ambiguous which query it belongs to."""
    depth = 0
    for place in range(at - 1, -1, -1):
        kind = tokens[place].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if depth < 0 or (depth == 0 and kind in _STARTS):
            return None
        if depth == 0 and kind in _ENDINGS and _kind(tokens, place - 1) is not TokenType.DOT:
            clause, word = _ENDINGS[kind], tokens[at].text.upper()
            return f"{clause} is before {word}", "Put that SELECT in parentheses.", tokens[place].start
    return None


def _group(tokens: _Tokens, at: int) -> Found | None:
    following = _kind(tokens, at + 1)
    if following is TokenType.L_PAREN and _kind(tokens, at + 2) is TokenType.R_PAREN:
        return "Spark has no GROUP BY ()", "Remove it: without GROUP BY, all rows form one group.", tokens[at].start
    if following is TokenType.DISTINCT:
        return "Spark has no GROUP BY DISTINCT", "Remove DISTINCT.", tokens[at + 1].start
    return None


def _order(tokens: _Tokens, at: int) -> Found | None:
    function = tokens[_around(tokens, at)]
    if function.text.upper() in {"LISTAGG", "STRING_AGG"} and function.start < tokens[at].start:
        hint = "Write listagg(a, ',') WITHIN GROUP (ORDER BY a)."
        return f"Spark has no ORDER BY inside {function.text.lower()}(..)", hint, tokens[at].start
    return None


def _apply(tokens: _Tokens, at: int) -> Found | None:
    kind = _word(tokens, at - 1)
    if kind in {"CROSS", "OUTER"}:
        written = "CROSS JOIN LATERAL" if kind == "CROSS" else "LEFT JOIN LATERAL"
        return f"Spark has no {kind} APPLY", f"Write {written} (..).", tokens[at - 1].start
    return None


def _as_of(tokens: _Tokens, at: int) -> Found | None:
    if _kind(tokens, at + 1) is TokenType.JOIN:
        hint = "Join with <= and keep the newest match: max_by(struct(..), ts) .. group by the key."
        return "Spark has no ASOF JOIN", hint, tokens[at].start
    return None


def _ignoring(tokens: _Tokens, at: int) -> Found | None:
    if _word(tokens, at - 1) != "NULLS" or _word(tokens, at - 2) not in {"IGNORE", "RESPECT"}:
        return None
    function = tokens[_around(tokens, at)].text.lower()
    if function.upper() not in _IGNORE_BEHIND:
        return None
    word = f"{_word(tokens, at - 2)} NULLS"
    hint = f"Write {function}(a) {word} OVER (..)."
    return f"{word} is after the parentheses of {function}()", hint, tokens[at - 2].start


def _var(tokens: _Tokens, at: int) -> Found | None:
    """A unit that is none, or 0x1F, which Spark reads as a name."""
    if tokens[at].text.upper() in UNITED:
        return moment_unit(tokens, at)
    digits = _HEXADECIMAL.fullmatch(tokens[at].text)
    if digits is None or _kind(tokens, at - 1) not in _BEGINS:
        return None
    hint = f"Write {int(digits[1], 16)}, or x'{digits[1]}' for bytes."
    return "Spark has no hexadecimal numbers (0x..)", hint, tokens[at].start


def _hex(tokens: _Tokens, at: int) -> Found | None:
    if _DIGITS.fullmatch(tokens[at].text):
        return None
    return "x'..' is not hexadecimal", "Write bytes as pairs of 0 to 9 and a to f: x'1F'.", tokens[at].start


def _string(tokens: _Tokens, at: int) -> Found | None:
    """A text behind a word: a date that is none, or a unit in quotes."""
    word, text = _word(tokens, at - 1), tokens[at].text
    if word == "N" and tokens[at - 1].end + 1 == tokens[at].start:
        return "Spark has no N'..' literals", "Remove the letter.", tokens[at - 1].start
    if (typed := typed_literal(tokens, at)) is not None:
        return typed
    if word in _TYPED and not is_moment(text, date=word == "DATE"):
        return f"'{text}' is not a {word.lower()}", "Write it such as '2026-01-31'.", tokens[at].start
    function = _word(tokens, at - 2)
    if word == "(" and function in UNITED and _kind(tokens, at + 1) is TokenType.COMMA and _count(tokens, at) > 1:
        hint = f"Write {function.lower()}({text.lower()}, ..)."
        return f"the unit of {function.lower()}() is a word, not a string", hint, tokens[at].start
    return None


def _count(tokens: _Tokens, at: int) -> int:
    """How many commas follow in the brackets around a token."""
    depth = commas = 0
    for token in tokens[at:]:
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        commas += depth == 0 and kind is TokenType.COMMA
        if depth < 0:
            break
    return commas


def _script(tokens: _Tokens, at: int) -> Found | None:
    if _kind(tokens, at + 1) is TokenType.STRING:
        hint = "Write the computation in SQL; a model runs no programs."
        return "rows go through a script (TRANSFORM .. USING)", hint, tokens[at].start
    return None


def _collate(tokens: _Tokens, at: int) -> Found | None:
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    if following is not None and following.token_type is TokenType.STRING:
        return "a collation is a name, not a string", f"Write COLLATE {following.text}.", following.start
    return None


_RULES: dict[TokenType, _Rule] = {
    TokenType.LIMIT: _limit,
    TokenType.OFFSET: _offset,
    TokenType.L_BRACKET: _list,
    TokenType.PLACEHOLDER: _placeholder,
    TokenType.COLON: _colon,
    TokenType.ISNULL: _is_null,
    TokenType.NOTNULL: _is_null,
    TokenType.ALIAS: _alias,
    TokenType.DCOLON: _cast,
    TokenType.STAR: _star,
    TokenType.FOR: _for,
    TokenType.FETCH: _fetch,
    TokenType.TABLE_SAMPLE: _sample,
    TokenType.UNION: _set,
    TokenType.EXCEPT: _set,
    TokenType.INTERSECT: _set,
    TokenType.GROUP_BY: _group,
    TokenType.ORDER_BY: _order,
    TokenType.APPLY: _apply,
    TokenType.ASOF: _as_of,
    TokenType.R_PAREN: _ignoring,
    TokenType.COLLATE: _collate,
    TokenType.HEX_STRING: _hex,
    TokenType.STRING: _string,
    TokenType.USING: _script,
    TokenType.VAR: _var,
    TokenType.NUMBER: number_fault,
    TokenType.INTERVAL: interval_unit,
}
