"""What is found in the tokens of a query, before the parser: what it would misread or not survive."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise, zip_longest

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from engine.compile.sql.foreign_words import foreign_words
from engine.compile.sql.pivot_results import with_calls

MAX_DEPTH = 200
MAX_NUMBER = 400
# sqlglot (30.30) cannot read `window` right after GROUP BY; a name of the same length keeps all positions.
HIDDEN_WINDOW = "w1nd0w"
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.L_PAREN}
_QUOTED = {TokenType.STRING, TokenType.IDENTIFIER, TokenType.RAW_STRING}
_INVISIBLE = re.compile("[\u00a0\u00ad\u200b-\u200f\u2028\u2029\u2060\ufeff]")
_NESTED_TYPES = {"array", "map", "struct"}
_AFTER_COMMA = {
    TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY,
    TokenType.ORDER_BY, TokenType.SELECT,
}  # fmt: skip
_IGNORING = {"any_value", "first", "first_value", "last", "last_value"}
_BEHIND_NAME = {TokenType.COMMA, TokenType.FROM, TokenType.ALIAS, TokenType.R_PAREN, TokenType.DOT}
_ENDS_FROM = {
    TokenType.SELECT, TokenType.WHERE, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.HAVING,
    TokenType.UNION, TokenType.ON, TokenType.USING,
}  # fmt: skip

_WINDOW = "Declare the window in the header: hour: {}, and group by its name."
WINDOW_TABLES = {
    "TUMBLE": _WINDOW.format("tumbling(ts, 1 hour)"),
    "HOP": _WINDOW.format("sliding(ts, 1 hour, 10 minutes), the size before the slide"),
    "SESSION": _WINDOW.format("session(ts, 10 minutes)"),
    "CUMULATE": "Group by windows of the step (tumbling(ts, 10 minutes)), and sum them in a batch table.",
}

# What Spark would replace by a setting, a property of Java or a variable of the environment, wherever it is.
_KIND = r"\$\{(?:(?:env|system|spark|sparkconf|hiveconf|hivevar):|spark\.)"
_VARIABLE = re.compile(rf"{_KIND}\S(?:(?!{_KIND})[^\s}}])*\}}")
VARIABLE = "Spark does not replace {} in SQL"
VARIABLE_HINT = (
    "Write {{ var('name') }} or {{ env_var('NAME') }}; for the literal characters write concat('$', '{..}'). "
    "Secrets belong in connections, not in SQL."
)

Report = Callable[[str, str, str, int], None]


def parseable(tokens: list[Token]) -> list[Token]:
    """The tokens in a form that sqlglot's parser understands."""
    result = list(tokens)
    left_out: set[int] = set()
    for index, (token, name) in enumerate(pairwise(tokens)):
        if token.token_type is TokenType.GROUP_BY and name.text.lower() == "window":
            result[index + 1] = _called(name, HIDDEN_WINDOW)
        elif name.token_type is TokenType.ALL and _is_name(token, tokens[index + 2 : index + 3]):
            result[index + 1] = _called(name, name.text)
        elif name.token_type is TokenType.FALSE and token.token_type is TokenType.COMMA:
            left_out |= _default_nulls(tokens, index)
        elif token.token_type is TokenType.VAR and token.text.lower() == "max" and name.text.lower() == "recursion":
            left_out |= _recursion_level(tokens, index)
    if left_out:
        result = [token for index, token in enumerate(result) if index not in left_out]
    return with_calls(result)


def _default_nulls(tokens: list[Token], comma: int) -> set[int]:
    """The places of `, false` in `first_value(x, false)`: the default, which sqlglot cannot read."""
    depth = 1
    if comma + 2 >= len(tokens) or tokens[comma + 2].token_type is not TokenType.R_PAREN:
        return set()
    for place in range(comma - 1, 0, -1):
        kind = tokens[place].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if depth == 1 and kind is TokenType.COMMA:
            return set()
        if not depth:
            return {comma, comma + 1} if tokens[place - 1].text.lower() in _IGNORING else set()
    return set()


def _recursion_level(tokens: list[Token], at: int) -> set[int]:
    """The places of `max recursion level 100` behind the name of a CTE, which is a limit only."""
    words = [token.text.lower() for token in tokens[at : at + 3]]
    level = tokens[at + 3 : at + 4]
    if words == ["max", "recursion", "level"] and level and level[0].token_type is TokenType.NUMBER:
        return set(range(at, at + 4))
    return set()


def _called(token: Token, name: str) -> Token:
    """A word as a name of a column."""
    return Token(TokenType.VAR, name, token.line, token.col, token.start, token.end, token.comments)


def _is_name(before: Token, after: list[Token]) -> bool:
    """Whether ALL behind SELECT or GROUP BY is a column, as Spark's grammar reads it before a comma and its like."""
    if before.token_type is TokenType.SELECT:
        return not after or after[0].token_type in _BEHIND_NAME
    return before.token_type is TokenType.GROUP_BY and bool(after) and after[0].token_type is TokenType.COMMA


def check_tokens(tokens: list[Token], text: str, report: Report) -> None:
    """Report nesting that is too deep, brackets and commas too many, and clauses that the header has instead."""
    check_depth(tokens, report)
    check_numbers(tokens, report)
    if check_variables(tokens, text, report):
        return
    check_brackets(tokens, report)
    check_commas(tokens, report)
    check_invisible(tokens, text, report)
    for message, hint, offset in foreign_words(tokens):
        report("sql-syntax", message, hint, offset)
    words = text.upper()
    if "STREAM" in words or "DELAY" in words:
        check_stream_clauses(tokens, report)
    if any(name in words for name in WINDOW_TABLES):
        check_window_tables(tokens, report)


def variable(text: str) -> str | None:
    """The first variable of Spark's in a text without comments, such as `${env:HOME}`; None: there is none."""
    match = _VARIABLE.search(text)
    return match[0] if match else None


def check_variables(tokens: list[Token], text: str, report: Report) -> bool:
    """Report variables of Spark's, which are not replaced, in strings and names too; whether there is one."""
    if "${" not in text:
        return False
    places = [(token.start, token.end + 1) for token in tokens]
    for match in _VARIABLE.finditer(text):
        # A comment belongs to no token.
        if any(start <= match.start() < end for start, end in places):
            report("spark-variable", VARIABLE.format(match[0]), VARIABLE_HINT, match.start())
            return True
    return False


def check_depth(tokens: list[Token], report: Report) -> None:
    """The parser is recursive: a limit is kinder than a crash. Types and chains of fields count too."""
    if len(tokens) <= MAX_DEPTH:
        return
    depth = types = dots = 0
    before: TokenType | None = None
    for token, following in zip_longest(tokens, tokens[1:]):
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        nested = following is not None and following.token_type is TokenType.LT
        types += nested and token.text.lower() in _NESTED_TYPES
        types -= kind is TokenType.GT and types > 0
        dots = dots + 1 if kind is TokenType.DOT else dots if before is TokenType.DOT else 0
        before = kind
        if max(depth, types, dots) > MAX_DEPTH:
            message = f"the SQL is nested more than {MAX_DEPTH} levels deep"
            report("sql-too-deep", message, "Use CTEs.", token.start)
            return


def check_numbers(tokens: list[Token], report: Report) -> None:
    """Spark's numbers have 38 digits, and some 300 before the exponent of a double; Python converts no longest ones.

    The time that the parser takes for the text of an interval grows by the square of its length.
    """
    for before, token in pairwise(tokens):
        if before.token_type is TokenType.INTERVAL and len(token.text) > MAX_NUMBER:
            message = f"an interval of {len(token.text):,} characters"
            report("sql-syntax", message, "Write one such as interval '1 day 2 hours'.", token.start)
            return
    for token in tokens:
        if token.token_type is TokenType.NUMBER and len(token.text) > MAX_NUMBER:
            report("sql-syntax", f"a number of {len(token.text):,} characters", "Write a number.", token.start)
            return


def check_brackets(tokens: list[Token], report: Report) -> None:
    """The parser skips some brackets that are not closed, and reports others far behind them."""
    opened: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            opened.append(token)
        elif token.token_type is TokenType.R_PAREN and opened:
            opened.pop()
        elif token.token_type is TokenType.R_PAREN:
            report(
                "sql-syntax",
                "a closing bracket without an opening one",
                "Remove it, or add the opening bracket.",
                token.start,
            )
            return
        elif token.token_type is TokenType.L_BRACE:
            hint = "Jinja expressions have two braces: {{ ref('flights') }}."
            report("sql-syntax", "a single brace is not valid SQL", hint, token.start)
            return
    if opened:
        report("sql-syntax", "a bracket is not closed", "Add ')'.", opened[-1].start)


def check_invisible(tokens: list[Token], text: str, report: Report) -> None:
    """Invisible characters: in a name they make another name, between words Spark cannot read them."""
    if text.isascii():
        return
    for token in tokens:
        match = _INVISIBLE.search(text, token.start, token.end + 1) if token.token_type not in _QUOTED else None
        if match is not None:
            hint = "Delete it, or replace it by a space."
            report("sql-syntax", f"an invisible character (U+{ord(match[0]):04X})", hint, match.start())
            return


def check_commas(tokens: list[Token], report: Report) -> None:
    """The parser skips a comma too many; Spark does not."""
    for token, following in zip_longest(tokens, tokens[1:]):
        if token.token_type is TokenType.COMMA and (following is None or following.token_type in _AFTER_COMMA):
            report("sql-syntax", "a comma with nothing after it", "Remove the comma.", token.start)


def check_stream_clauses(tokens: list[Token], report: Report) -> None:
    """The parser reads `FROM STREAM t` as a table STREAM with the alias t."""
    in_from = [False]
    for index, token in enumerate(tokens):
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            in_from.append(False)
        elif kind is TokenType.R_PAREN and len(in_from) > 1:
            in_from.pop()
        elif kind in {TokenType.FROM, TokenType.JOIN}:
            in_from[-1] = True
        elif kind in _ENDS_FROM:
            in_from[-1] = False
        before = tokens[index - 1].token_type if index else None
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        relation = before in {TokenType.FROM, TokenType.JOIN} or (before is TokenType.COMMA and in_from[-1])
        named = following is not None and following.token_type in _NAMES
        word = token.text.upper()
        if word == "STREAM" and relation and named:
            _refuse("FROM STREAM", token, report)
        elif word == "DELAY" and following is not None and following.text.upper() == "OF":
            _refuse("the WATERMARK clause", token, report)


def check_window_tables(tokens: list[Token], report: Report) -> None:
    """Windows in Flink's form: TUMBLE(TABLE t, DESCRIPTOR(ts), ..)."""
    for function, bracket, table in zip(tokens, tokens[1:], tokens[2:], strict=False):
        name = function.text.upper()
        if name in WINDOW_TABLES and bracket.token_type is TokenType.L_PAREN and table.text.upper() == "TABLE":
            report("sql-syntax", f"Spark has no {name}()", WINDOW_TABLES[name], function.start)


def _refuse(what: str, token: Token, report: Report) -> None:
    hint = "Declare it in the header: streams: {flights: {watermark: scheduled_at delay 30 minutes}}."
    report("stream-clause", f"{what} is not allowed in a model", hint, token.start)


def open_quote(text: str) -> int:
    """Offset of the quote or comment that is never closed."""
    at = 0
    while at < len(text):
        two = text[at : at + 2]
        if two == "--":
            at = _after(text, "\n", at)
        elif two == "/*":
            end = text.find("*/", at + 2)
            if end < 0:
                return at
            at = end + 2
        elif text[at] in "'\"`":
            end = at + 1
            while end < len(text) and text[end] != text[at]:
                end += 2 if text[end] == "\\" and text[at] != "`" else 1
            if end >= len(text):
                return at
            at = end + 1
        else:
            at += 1
    return 0


def _after(text: str, what: str, at: int) -> int:
    end = text.find(what, at)
    return len(text) if end < 0 else end + len(what)
