"""What is found in the tokens of a query, before the parser: what it would misread or not survive."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import pairwise, zip_longest
from typing import Final

from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.dialect import is_unknown, tokenize
from engine.compile.sql.foreign_words import foreign_words
from engine.compile.sql.lexer.tokens import TokenType

Found = tuple[str, str]

_PARAMETER: Final = "a query parameter; models have none", "Write {{ var('name') }}."
_WORD: Final = re.compile(r"\w+")
_BY_TEXT: Final = {
    "{": ("a single brace is not valid SQL", "Jinja expressions have two braces: {{ ref('flights') }}."),
    "}": ("a single brace is not valid SQL", "Jinja expressions have two braces: {{ ref('flights') }}."),
    "@": _PARAMETER,
    "$": _PARAMETER,
    "*/": ("*/ ends no comment", "Remove it, or write a blank between * and /*."),
    "#": ("# begins no comment in Spark's SQL", "Write --."),
    "\\": ("a backslash outside a string", "Remove it."),
}
# Without a mark on the screen, or like a blank (those that are blanks to Spark, too, do not come here).
_INVISIBLE: Final = {"Cc", "Cf", "Zs", "Zl", "Zp"}


def unknown_character(token: Token, text: str) -> Found:
    """Return the message and hint for a token of the type UNKNOWN.

    Args:
        token: the last of the text.
        text: of the query.
    """
    character = token.text
    if text.startswith("$$", token.start):
        return "Spark has no string literals between $$", "Write it in single quotes."
    if character in _BY_TEXT:
        return _BY_TEXT[character]
    if "://" in character:
        return f"'{character}' is not a name", "An address is a string: write it in single quotes."
    if unicodedata.category(character) in _INVISIBLE:
        return f"an invisible character (U+{ord(character):04X})", "Delete it, or replace it by a space."
    name = _name_around(token.start, text)
    if name is not None:
        return f"'{name}' has letters other than a to z", f"Write it in backquotes: `{name}`."
    return (
        f"'{character}' (U+{ord(character):04X}) is not a character of SQL",
        "Remove it, or write the text in quotes.",
    )


def _name_around(place: int, text: str) -> str | None:
    """The word that a letter is in; None: it is not a letter."""
    if not text[place].isalnum():
        return None
    begin = place
    while begin and (text[begin - 1].isalnum() or text[begin - 1] == "_"):
        begin -= 1
    match = _WORD.match(text, begin)
    return match[0] if match else None


MAX_DEPTH = 200
# In a row: each query is a level below the next one, and Python's stack has a thousand frames.
MAX_SET_OPERATIONS = 900
_SET_OPERATIONS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}
MAX_NUMBER = 400
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.L_PAREN}
_NESTED_TYPES = {"array", "map", "struct"}
_AFTER_COMMA = {
    TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY,
    TokenType.ORDER_BY, TokenType.SELECT,
}  # fmt: skip
# A comma behind these has nothing before it; behind SELECT and VALUES where a query can begin.
_BEFORE_COMMA = {
    TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY,
    TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY,
}  # fmt: skip
_BEFORE_QUERY = {
    None, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.ALL,
    TokenType.DISTINCT, TokenType.PIPE_GT, TokenType.FROM,
}  # fmt: skip
_NESTING = {TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT}
_HINT_HINT = "Write /*+ broadcast(a), repartition(3) */."
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


def check_tokens(tokens: list[Token], text: str, report: Report) -> None:
    """Report nesting that is too deep, brackets and commas too many, and clauses that the header has instead."""
    check_depth(tokens, report)
    check_numbers(tokens, report)
    if check_variables(tokens, text, report):
        return
    if check_characters(tokens, text, report):
        return
    check_brackets(tokens, report)
    check_commas(tokens, report)
    if "<" in text or ">" in text:
        check_shifts(tokens, report)
    check_hints(tokens, report)
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
    combined = [0]
    before: TokenType | None = None
    for token, following in zip_longest(tokens, tokens[1:]):
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if kind is TokenType.L_PAREN:
            combined.append(0)
        elif kind is TokenType.R_PAREN and len(combined) > 1:
            combined.pop()
        combined[-1] += kind in _SET_OPERATIONS
        nested = following is not None and following.token_type is TokenType.LT
        types += nested and token.text.lower() in _NESTED_TYPES
        types -= kind is TokenType.GT and types > 0
        dots = dots + 1 if kind is TokenType.DOT else dots if before is TokenType.DOT else 0
        before = kind
        if max(depth, types, dots) > MAX_DEPTH:
            message = f"the SQL is nested more than {MAX_DEPTH} levels deep"
            report("sql-too-deep", message, "Use CTEs.", token.start)
            return
        if combined[-1] > MAX_SET_OPERATIONS:
            message = f"the SQL combines more than {MAX_SET_OPERATIONS} queries in a row"
            report("sql-too-deep", message, "Make a part of them a separate model.", token.start)
            return


def check_numbers(tokens: list[Token], report: Report) -> None:
    """Report numbers beyond Spark's 38 digits, or some 300 before the exponent; parsing long intervals is quadratic."""
    if all(token.end - token.start < MAX_NUMBER for token in tokens):
        return
    for before, token in pairwise(tokens):
        if before.token_type is TokenType.INTERVAL and len(token.text) > MAX_NUMBER:
            message = f"an interval of {len(token.text):,} characters"
            report("sql-syntax", message, "Write one such as interval '1 day 2 hours'.", token.start)
            return
    for token in tokens:
        if token.token_type is TokenType.NUMBER and len(token.text) > MAX_NUMBER:
            report("sql-syntax", f"a number of {len(token.text):,} characters", "Write a number.", token.start)
            return


def check_characters(tokens: list[Token], text: str, report: Report) -> bool:
    """Report a character that Spark's lexer does not know, behind which there are no tokens; whether there is one."""
    if not is_unknown(tokens[-1]):
        return False
    report("sql-syntax", *unknown_character(tokens[-1], text), tokens[-1].start)
    return True


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
    if opened:
        report("sql-syntax", "a bracket is not closed", "Add ')'.", opened[-1].start)


def check_commas(tokens: list[Token], report: Report) -> None:
    """The parser skips a comma too many; Spark does not."""
    before = behind = None
    for token, following in zip_longest(tokens, tokens[1:]):
        kind = token.token_type
        if kind is TokenType.COMMA and (following is None or following.token_type in _AFTER_COMMA):
            report("sql-syntax", "a comma with nothing after it", "Remove the comma.", token.start)
        elif kind is TokenType.COMMA and _begins_list(before, behind):
            report("sql-syntax", "a comma with nothing before it", "Remove the comma.", token.start)
        behind, before = before, kind


def _begins_list(before: TokenType | None, behind: TokenType | None) -> bool:
    """Whether a list begins behind the last token; `behind` is the kind of the one before it, as words can be names."""
    if before in {TokenType.SELECT, TokenType.VALUES}:
        return behind in _BEFORE_QUERY
    if before in {TokenType.DISTINCT, TokenType.HINT}:
        return behind is TokenType.SELECT
    return before in _BEFORE_COMMA


def check_shifts(tokens: list[Token], report: Report) -> None:
    """The parser reads two signs as a shift, which is one sign to Spark."""
    types = 0
    for before, token in pairwise(tokens):
        kind = token.token_type
        if kind is TokenType.LT and before.token_type in _NESTING:
            types += 1
        elif kind is TokenType.GT and types:
            types -= 1
        elif kind is before.token_type and kind in {TokenType.LT, TokenType.GT} and before.start != token.start:
            sign = ">>" if kind is TokenType.GT else "<<"
            hint = f"Write {sign} without a blank."
            if before.end + 1 == token.start:
                hint = "Behind array, map or struct it ends types: write shiftright(a, b)."
            report("sql-syntax", f"Spark reads {sign[0]} {sign[0]} here, and no shift", hint, token.start)
            return


def check_hints(tokens: list[Token], report: Report) -> None:
    """The parser reads what it likes in a hint; Spark reads names, with arguments in brackets."""
    for token in tokens:
        if token.token_type is TokenType.HINT:
            inside = tokenize(token.comments[0])
            fault = next((one for one in _hint_faults(inside, token)), None)
            if fault is not None:
                report("sql-syntax", "a hint is a name, with arguments in brackets", _HINT_HINT, fault)


def _hint_faults(inside: list[Token], hint: Token) -> Iterator[int]:
    if not inside:
        yield hint.start
    depth = 0
    for before, token in zip([None, *inside], inside, strict=False):
        opening, closing = token.token_type is TokenType.L_PAREN, token.token_type is TokenType.R_PAREN
        kind_before = before.token_type if before is not None else None
        if depth == 0 and not opening and token.token_type is not TokenType.COMMA and not _is_word(token):
            yield token.start
        if (closing or token.token_type is TokenType.COMMA) and kind_before in {
            TokenType.L_PAREN,
            TokenType.COMMA,
            None,
        }:
            yield token.start
        depth += opening - closing


def _is_word(token: Token) -> bool:
    if token.token_type in {TokenType.NUMBER, TokenType.STRING}:
        return False
    return token.token_type is TokenType.IDENTIFIER or token.text.replace("_", "a").isalnum()


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
        has_name = following is not None and following.token_type in _NAMES
        word = token.text.upper()
        if word == "STREAM" and relation and has_name:
            _refuse("FROM STREAM", token, report)
        elif word == "DELAY" and following is not None and following.text.upper() == "OF":
            _refuse("the WATERMARK clause", token, report)


def check_window_tables(tokens: list[Token], report: Report) -> None:
    """Windows in Flink's form: TUMBLE(TABLE t, DESCRIPTOR(ts), ..)."""
    for function, bracket, table in zip(tokens, tokens[1:], tokens[2:], strict=False):
        name = function.text.upper()
        if name in WINDOW_TABLES and bracket.token_type is TokenType.L_PAREN and table.text.upper() == "TABLE":
            report("sql-syntax", f"Spark has no {name}()", WINDOW_TABLES[name], function.start)


def _refuse(construct: str, token: Token, report: Report) -> None:
    hint = "Declare it in the header: streams: {flights: {watermark: scheduled_at delay 30 minutes}}."
    report("stream-clause", f"{construct} is not allowed in a model", hint, token.start)
