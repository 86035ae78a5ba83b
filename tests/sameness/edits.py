"""Random edits of the text of a query: some mean nothing, some mean something else, some make it wrong."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import pairwise

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from engine.compile.sql.dialect import tokenize
from engine.compile.types.builtin_functions import BUILTIN

_Edit = Callable[[random.Random, str, list[Token]], str | None]
_WORD = re.compile(r"[A-Za-z_]\w*")
_TABLE = re.compile(r"\[\[(\w+)\]\]")
# A member of a row may stand for another one: in some rows that means nothing, in others all.
_SWAPS = tuple(
    tuple(line.split(" | "))
    for line in """
sum | avg | mean | max | min | count | first | last | any_value | median | mode | try_sum | try_avg | std | count_if
percentile_cont | percentile_disc
percentile | approx_percentile | percentile_approx
stddev | stddev_samp | stddev_pop | std | variance | var_samp | var_pop | kurtosis | skewness
first | first_value | any_value | last | last_value | nth_value
collect_list | collect_set | array_agg | array_distinct
max_by | min_by
bool_or | bool_and | some | any | every
bit_or | bit_and | bit_xor
listagg | string_agg
corr | covar_pop | covar_samp | regr_slope | regr_intercept | regr_r2 | regr_count | regr_sxy
rank | dense_rank | row_number | percent_rank | cume_dist
lag | lead
upper | ucase | lower | lcase | initcap | trim | ltrim | rtrim | btrim | reverse | length | char_length | octet_length | len
substr | substring | left | right
coalesce | nvl | ifnull | nullif | nanvl
ceil | ceiling | floor | round | bround | rint | abs | sign | signum
date | timestamp | to_date | to_timestamp | date_trunc | trunc | last_day
year | month | day | hour | minute | second | quarter | dayofmonth | dayofweek | weekday | weekofyear
date_add | date_sub | dateadd | add_months | datediff | date_diff
instr | locate | position
cast | try_cast
element_at | try_element_at | get
int | integer | bigint | long | smallint | double | float | real | decimal | string | date | timestamp | boolean
= | == | <=> | <> | != | < | > | <= | >=
+ | - | * | / | % | div
& | ^ | <<
and | or
like | ilike | rlike | regexp
asc | desc
first | last
rows | range
union | except | intersect | minus
left | right | full | inner | cross | semi | anti
explode | explode_outer | posexplode | inline
hour | hours | minute | minutes | day | days | month | second
order | sort | cluster | distribute
rollup | cube
using | on
struct | named_struct | array | map
to_json | to_csv | typeof
transform | filter | exists | forall
hash | xxhash64
""".strip().splitlines()
)
_DROPPED = {
    "distinct", "all", "outer", "inner", "asc", "desc", "not", "as", "natural", "left", "ignore nulls", "nulls last", "nulls first",
}  # fmt: skip
_ADDED = ("distinct", "not", "as", "asc", "desc", "outer", "inner", "all", "natural", "nulls last", "nulls first", "ignore nulls",
          "/* c */", "-- c\n", "  ", "\n", "filter (where n > 1)", "lateral", "::string", "::int", "is null", ".a", ".A", "['a']", "+ 0")  # fmt: skip


def edited(chance: random.Random, sql: str) -> str:
    """A query with one to three edits; the same text where none was possible."""
    before = sql
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3))):
        for _ in range(6):
            tokens = _tokens(sql)
            found = chance.choice(_EDITS)(chance, sql, tokens) if tokens else None
            if found is not None and found != sql:
                sql = found
                break
    return sql if sql != before else before


def _tokens(sql: str) -> list[Token]:
    try:
        return tokenize(_TABLE.sub(r" `\1` ", sql))
    except Exception:  # noqa: BLE001 - an edit left a quote open
        return []


def _replaced(sql: str, token: Token, text: str) -> str:
    return sql[: token.start] + text + sql[token.end + 1 :]


def _raw(sql: str, token: Token) -> str:
    return sql[token.start : token.end + 1]


def _any(chance: random.Random, tokens: list[Token], *kinds: TokenType) -> Token | None:
    fitting = [t for t in tokens if not kinds or t.token_type in kinds]
    return chance.choice(fitting) if fitting else None


def _cased(chance: random.Random, text: str) -> str:
    how = chance.randint(0, 3)
    return [text.upper(), text.lower(), text.capitalize(), text.swapcase()][how]


def _letter_case(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    words = [t for t in tokens if _WORD.search(_raw(sql, t)) and "[[" not in _raw(sql, t)]
    if not words:
        return None
    if chance.random() < 0.15:
        for token in reversed(words):
            if token.token_type not in {TokenType.STRING, TokenType.IDENTIFIER} and chance.random() < 0.5:
                sql = _replaced(sql, token, _cased(chance, _raw(sql, token)))
        return sql
    token = chance.choice(words)
    return _replaced(sql, token, _cased(chance, _raw(sql, token)))


def _backticks(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    token = chance.choice(tokens)
    raw = _raw(sql, token)
    if raw.startswith("`"):
        return _replaced(sql, token, raw.strip("`"))
    return _replaced(sql, token, f"`{raw}`") if re.fullmatch(r"\w+", raw) else None


def _brackets(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    start = chance.randrange(len(tokens))
    depth = 0
    for end in range(start, min(len(tokens), start + chance.choice((1, 1, 3, 3, 5, 8)))):
        depth += (tokens[end].token_type is TokenType.L_PAREN) - (tokens[end].token_type is TokenType.R_PAREN)
        if depth < 0:
            return None
    if depth:
        return None
    return f"{sql[: tokens[start].start]}({sql[tokens[start].start : tokens[end].end + 1]}){sql[tokens[end].end + 1 :]}"


def _unbracketed(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    opened: list[Token] = []
    pairs = []
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            opened.append(token)
        elif token.token_type is TokenType.R_PAREN and opened:
            pairs.append((opened.pop(), token))
    if not pairs:
        return None
    one, other = chance.choice(pairs)
    return _replaced(_replaced(sql, other, " "), one, " ")


def _swapped(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    found = [(t, row) for t in tokens for row in _SWAPS if _raw(sql, t).lower() in row]
    if not found:
        return None
    token, row = chance.choice(found)
    return _replaced(sql, token, chance.choice(row))


def _other_function(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    calls = [
        t for t, after in pairwise(tokens) if after.token_type is TokenType.L_PAREN and _WORD.fullmatch(_raw(sql, t))
    ]
    return _replaced(sql, chance.choice(calls), chance.choice(_FUNCTIONS)) if calls else None


def _dropped(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    found = [t for t in tokens if _raw(sql, t).lower() in _DROPPED]
    return _replaced(sql, chance.choice(found), " ") if found else None


def _added(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    at = chance.choice(tokens).end + 1
    return f"{sql[:at]} {chance.choice(_ADDED)} {sql[at:]}"


def _number(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    token = _any(chance, tokens, TokenType.NUMBER)
    if token is None:
        return None
    raw = _raw(sql, token)
    return _replaced(
        sql,
        token,
        chance.choice(
            (
                f"{raw}0",
                f"{raw}L",
                f"{raw}l",
                f"{raw}.0",
                f"'{raw}'",
                f"({raw})",
                f"{raw}D",
                f"{raw}S",
                f"{raw}e0",
                "2",
                "-1",
                "null",
            )
        ),
    )


def _text(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    token = _any(chance, tokens, TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING)
    if token is None:
        return None
    raw = _raw(sql, token)
    inner = raw.strip("rRxX")[1:-1]
    forms = (f'"{inner}"', f"'{inner}'", f"r'{inner}'", f"'{inner[:1]}' '{inner[1:]}'", f"'{inner} '", f"'\\{inner}'", f"'\\\\{inner}'",
             f"'{_cased(chance, inner)}'", f"X'{inner}'", f"R'{inner}'", f"`{inner}`", f"'{inner}' :: string")  # fmt: skip
    return _replaced(sql, token, chance.choice(forms))


def _turned(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    """Two neighbours of a comma or an operator change places."""
    middle = [
        i
        for i in range(1, len(tokens) - 1)
        if _raw(sql, tokens[i]).lower() in {",", "=", "and", "or", "+", "*", "<=>", "||", "&", "|"}
    ]
    if not middle:
        return None
    at = chance.choice(middle)
    ends = _CLAUSES if tokens[at].token_type is TokenType.COMMA else _CLAUSES | _OPERANDS
    left, right = _span(tokens, at - 1, -1, ends), _span(tokens, at + 1, 1, ends)
    if left is None or right is None:
        return None
    a, b = sql[tokens[left].start : tokens[at - 1].end + 1], sql[tokens[at + 1].start : tokens[right].end + 1]
    between = sql[tokens[at - 1].end + 1 : tokens[at + 1].start]
    return f"{sql[: tokens[left].start]}{b}{between}{a}{sql[tokens[right].end + 1 :]}"


def _span(tokens: list[Token], at: int, step: int, ends: set[TokenType]) -> int | None:
    """The last token of what is beside an operator: as far as the next comma, bracket or clause."""
    depth, last = 0, None
    while 0 <= at < len(tokens):
        kind = tokens[at].token_type
        depth += step * ((kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN))
        if depth < 0 or (depth == 0 and kind in ends):
            return last
        last, at = at, at + step
    return last


def _field(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    found = [(a, b) for a, b in pairwise(tokens) if a.token_type is TokenType.DOT and _WORD.fullmatch(_raw(sql, b))]
    if not found:
        return None
    dot, name = chance.choice(found)
    word = chance.choice((_raw(sql, name), _cased(chance, _raw(sql, name))))
    form = chance.choice((f"['{word}']", f".{word}", f".`{word}`", f". {word}"))
    return sql[: dot.start] + form + sql[name.end + 1 :]


def _qualified(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    token = _any(chance, tokens, TokenType.VAR)
    if token is None:
        return None
    return _replaced(sql, token, f"{chance.choice(('t', 'T', 'q', 'u'))}.{_raw(sql, token)}")


def _alias(chance: random.Random, sql: str, tokens: list[Token]) -> str | None:
    token = _any(chance, tokens, TokenType.ALIAS)
    return None if token is None else _replaced(sql, token, chance.choice(("", "AS", "as /* x */")))


_CLAUSES = {TokenType.COMMA, TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING,
            TokenType.ON, TokenType.ORDER_BY}  # fmt: skip
_OPERANDS = {TokenType.AND, TokenType.OR, TokenType.ALIAS}
_FUNCTIONS = tuple(sorted(BUILTIN))
_EDITS: tuple[_Edit, ...] = (
    _letter_case, _letter_case, _letter_case, _letter_case, _backticks, _backticks, _brackets, _brackets, _unbracketed, _swapped, _swapped,
    _swapped, _other_function, _dropped, _added, _added, _number, _text, _turned, _turned, _field, _qualified, _alias,
)  # fmt: skip
