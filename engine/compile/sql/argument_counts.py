"""Calls of Spark's functions with too few or too many arguments, and with columns where Spark wants a constant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType
from engine.compile.types.function_signatures import SIGNATURES

# Places of the arguments that must be constant, counted from 0: Spark's analyser was asked with a column in each place
# of the examples of DESCRIBE FUNCTION (a test asks again).
_CONSTANT = """
0: date_part datepart ntile percentile_cont percentile_disc rand randn random stack uuid
0 1: java_method randstr reflect schema_of_csv schema_of_json schema_of_xml try_reflect
0 1 2: uniform
1: any_value approx_count_distinct approx_top_k_estimate bround ceil ceiling collate first first_value floor
    histogram_numeric kll_sketch_agg_bigint kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
    kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float lag
    last last_value lead listagg mode percentile round shuffle sort_array string_agg to_binary to_csv to_json
    to_number to_xml try_to_binary try_to_number xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long
    xpath_number xpath_short xpath_string
1 2: approx_percentile approx_top_k from_csv from_json from_xml nth_value percentile_approx
1 2 3: window
1 2 3 4: mask
2: like try_variant_get variant_get
3: regexp_replace
"""
_KEYWORDS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.WHERE, TokenType.VALUES}
# By themselves: it takes longer to find them in their class, or in a set.
_OPEN, _CLOSE, _LEFT, _RIGHT = TokenType.L_PAREN, TokenType.R_PAREN, TokenType.L_BRACKET, TokenType.R_BRACKET
_COMMA, _WORD, _NUMBER, _TEXT = TokenType.COMMA, TokenType.VAR, TokenType.NUMBER, TokenType.STRING
_ODD = {*_KEYWORDS, TokenType.STAR, TokenType.FARROW, TokenType.FOR}
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}
# Behind these is a function or nothing that has brackets; sqlglot's tree does not place every function.
_BEFORE_NAME = {
    TokenType.ALIAS, TokenType.DCOLON, TokenType.DOT, TokenType.R_PAREN, TokenType.VAR, TokenType.IDENTIFIER,
    TokenType.WITH, TokenType.IN, TokenType.NUMBER, TokenType.STRING,
}  # fmt: skip
# Functions whose place is not in sqlglot's tree.
_UNPLACED = {
    "any_value", "approx_percentile", "ceil", "ceiling", "chr", "char", "current_date", "current_time",
    "current_timestamp", "current_user", "curdate", "element_at", "first", "first_value", "floor",
    "from_utc_timestamp", "if", "ilike", "initcap", "last", "last_value", "like", "listagg", "localtimestamp",
    "max_by", "min_by", "mod", "percentile", "percentile_approx", "session_user", "shiftleft", "shiftright",
    "shuffle", "string_agg", "substr", "substring", "to_utc_timestamp", "transform", "try_element_at", "uuid",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WrongCall:
    """A call that Spark rejects, if its name is that of a function.

    `start` is of the name, `offset` of the fault; `placed`: the tree knows where a function of this name is.
    """

    code: str
    message: str
    hint: str
    start: int
    offset: int
    placed: bool


def wrong_calls(tokens: Sequence[Token]) -> list[WrongCall]:
    """The calls that would be wrong; which of them are calls the tree shows (`confirmed`)."""
    counts_by_name = counts()
    wrong: list[WrongCall] = []
    before = None
    for place, token in enumerate(tokens):
        if token.token_type is _OPEN and before is not None:
            name = before.text.lower()
            if name in counts_by_name and (place < 2 or _begins(tokens[place - 2].token_type, name)):  # noqa: PLR2004
                wrong += _judge_call(tokens, name, place)
        before = token
    return wrong


def _begins(kind: TokenType, name: str) -> bool:
    """Whether a call may follow a token; `a not like ('x')` is an operator."""
    return kind not in _BEFORE_NAME and not (kind is TokenType.NOT and name in {"like", "ilike"})


def _judge_call(tokens: Sequence[Token], name: str, place: int) -> Iterator[WrongCall]:
    starts = _arguments(tokens, place, name)
    if starts is None:
        return
    called, expected, actual = tokens[place - 1], counts()[name], len(starts) - 1
    placed = name not in _UNPLACED
    if not expected.takes(actual):
        message = f"{name}() takes {expected.words}, not {actual}"
        yield WrongCall("argument-count", message, f"Write {expected.signature}.", called.start, called.start, placed)
        return
    for number in constant_places().get(name, ()):
        column = _column(tokens, starts[number], starts[number + 1] - 1) if number < actual else None
        if column is not None:
            message = f"argument {number + 1} of {name}() must be a constant, and '{column.text}' is a column"
            hint = f"Write the value itself: {expected.signature}."
            yield WrongCall("argument-constant", message, hint, called.start, column.start, placed)


def _arguments(tokens: Sequence[Token], place: int, name: str) -> list[int] | None:
    """Where the arguments behind a bracket begin, and one behind the last ends; None if they cannot be counted."""
    starts, depth = [place + 1], 0
    for at in range(place + 1, len(tokens)):
        kind = tokens[at].token_type
        if kind is _WORD or kind is _NUMBER or kind is _TEXT:
            continue
        if kind is _OPEN or kind is _LEFT:
            depth += 1
        elif kind is _CLOSE or kind is _RIGHT:
            depth -= 1
            if depth < 0:
                return [*starts, at + 1] if at > place + 1 else starts
        elif depth == 0:
            if kind is _COMMA:
                starts.append(at + 1)
            elif kind in _ODD and _is_uncounted(tokens, at, kind, name, starts):
                return None
    return None


def _is_uncounted(tokens: Sequence[Token], at: int, kind: TokenType, name: str, starts: list[int]) -> bool:
    """Subqueries, names before arguments, `*` for many columns, and the words of trim(both a from b)."""
    if kind is TokenType.STAR:
        return tokens[at - 1].token_type in {TokenType.L_PAREN, TokenType.COMMA, TokenType.DOT}
    if kind in {TokenType.FROM, TokenType.FOR}:
        return at == starts[0] or name in {"overlay", "substr", "substring", "trim"}
    return kind is TokenType.FARROW or at == starts[0]


def _column(tokens: Sequence[Token], start: int, stop: int) -> Token | None:
    for place in range(start, stop):
        following = tokens[place + 1].token_type if place + 1 < stop else None
        before = tokens[place - 1].token_type
        if tokens[place].token_type in _NAMES and following is not TokenType.L_PAREN and before is not TokenType.DOT:
            return tokens[place]
    return None


def confirm_calls(calls: list[WrongCall], tree: exp.Expr) -> Iterator[WrongCall]:
    """Those that are calls of functions, and whose columns are columns."""
    functions = {node.meta.get("start") for node in tree.find_all(exp.Func)}
    columns = {node.parts[0].meta.get("start") for node in tree.find_all(exp.Column)}
    for call in calls:
        function = call.start in functions or not call.placed
        if function and (call.code == "argument-count" or call.offset in columns or not call.placed):
            yield call


@dataclass(frozen=True, slots=True)
class Counts:
    """How many arguments a function takes: the numbers, the least of any, or pairs; and how it is written."""

    numbers: frozenset[int]
    least: int | None
    even: bool
    signature: str

    def takes(self, number: int) -> bool:
        if self.even:
            return number % 2 == 0
        return number in self.numbers if self.least is None else number >= self.least

    @property
    def words(self) -> str:
        if self.even:
            return "pairs of arguments"
        if self.least is not None:
            return f"{self.least} or more arguments"
        *lower_numbers, last = sorted(self.numbers)
        if not lower_numbers:
            return f"{last or 'no'} argument{'s' * (last != 1)}"
        run = len(lower_numbers) > 1 and last - lower_numbers[0] == len(lower_numbers)
        some = f"{lower_numbers[0]} to" if run else f"{', '.join(map(str, lower_numbers))} or"
        return f"{some} {last} arguments"


@cache
def counts() -> dict[str, Counts]:
    """By the name of a function in lower case."""
    by_name = {}
    for line in SIGNATURES.strip().splitlines():
        text, _, signature = line.partition(" ")
        first, _, last = text.rstrip("+").partition("-")
        numbers = range(int(first), int(last) + 1) if last else () if text == "even" else map(int, first.split(","))
        least = int(first) if text.endswith("+") else None
        name = signature.partition("(")[0]
        by_name[name] = Counts(frozenset(numbers), least, text == "even", signature)
    return by_name


@cache
def constant_places() -> dict[str, tuple[int, ...]]:
    """By the name of a function, the places of the arguments that must be constant."""
    by_name: dict[str, tuple[int, ...]] = {}
    for line in _CONSTANT.replace("\n    ", " ").strip().splitlines():
        places, _, names = line.partition(": ")
        by_name.update(dict.fromkeys(names.split(), tuple(map(int, places.split()))))
    return by_name
