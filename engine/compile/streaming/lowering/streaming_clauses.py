"""Spark's own clauses of streams: `STREAM t`, and `WATERMARK ts DELAY OF INTERVAL ..`.

sqlglot reads the first wrongly and the second not at all, so that they are taken out of the tokens before it
parses, and noted here. In a model they are rejected; for the checker they mean what they mean to Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.dialect import parse_tokens, tokenize
from engine.compile.sql.token_checks import check_commas, check_depth
from engine.compile.streaming.query_plan.intervals import seconds

_MARK = "__watermark_"
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}
# Behind these a word before a bracket is an operator, an alias with columns or a name with a qualifier.
_NO_CALL_BEHIND = {
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.R_PAREN, TokenType.R_BRACKET,
    TokenType.ALIAS, TokenType.DOT, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE,
}  # fmt: skip
_BEFORE = {TokenType.FROM, TokenType.JOIN, TokenType.COMMA}


@dataclass(frozen=True, slots=True)
class Clause:
    """A WATERMARK clause: the event time, the name it gets, the delay in seconds, the relation's alias."""

    node: exp.Expr
    name: str
    delay: float | None
    alias: str


@dataclass(frozen=True, slots=True)
class Native:
    """What was taken out of the text: clauses by the identity of the relation, relations said to be streams."""

    clauses: Mapping[int, Clause] = field(default_factory=dict)
    streams: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement: its tree, or the findings if it cannot be parsed."""

    tree: exp.Expr | None
    native: Native = field(default_factory=Native)
    findings: tuple[QueryFinding, ...] = ()


class _SyntaxError(ValueError):
    """A clause that Spark does not read; carries the offset."""

    def __init__(self, message: str, start: int) -> None:
        super().__init__(message)
        self.start = start


def parse(text: str, synonyms: Mapping[str, str] | None = None) -> ParsedStatement:
    """Parse a statement as Spark 4.1 reads it.

    Args:
        text: the statement.
        synonyms: functions that are read by another name, in lower case.
    """
    findings: list[QueryFinding] = []

    def report(code: str, message: str, hint: str, start: int) -> None:
        findings.append(QueryFinding(code, message, hint, start))

    try:
        tokens = tokenize(text)
        check_depth(tokens, report)
        check_commas(tokens, report)
        if findings or not tokens:
            return ParsedStatement(None, findings=tuple(findings) or (_fault("there is no SQL", 0),))
        words, clauses, streams = text.upper(), dict[str, Clause](), frozenset[int]()
        if "STREAM" in words or "WATERMARK" in words:
            tokens, clauses, streams = _taken_out(tokens, text)
        tokens = _one_name(tokens, synonyms) if synonyms else tokens
        trees = parse_tokens(tokens, text)
    except _SyntaxError as error:
        return ParsedStatement(None, findings=(_fault(str(error), error.start),))
    except ParseError as error:
        detail = error.errors[0] if error.errors else {}
        place = (detail.get("line"), detail.get("col"))
        start = next((t.start for t in tokens if (t.line, t.col) == place), 0)
        return ParsedStatement(None, findings=(_fault(str(detail.get("description") or error), start),))
    except (SqlglotError, RecursionError) as error:
        return ParsedStatement(None, findings=(_fault(str(error).splitlines()[0], 0),))
    tree = trees[0] if len(trees) == 1 else None
    if tree is None:
        return ParsedStatement(None, findings=(_fault("there is more than one statement", 0),))
    return ParsedStatement(tree, Native(_by_relation(tree, clauses), streams))


def _one_name(tokens: list[Token], synonyms: Mapping[str, str]) -> list[Token]:
    """The tokens with one name for functions that are synonyms; a name that may not be a call stays as it is."""
    result = list(tokens)
    for index, (before, token, after) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False), 1):
        name = synonyms.get(token.text.lower())
        called = after.token_type is TokenType.L_PAREN and before.token_type not in _NO_CALL_BEHIND
        if name is not None and called:
            result[index] = _token(TokenType.VAR, name, token)
    return result


def _by_relation(tree: exp.Expr, clauses: Mapping[str, Clause]) -> dict[int, Clause]:
    """The clauses by their relations, which get the alias of the user in place of what stood for the clause."""
    by_relation = {}
    for alias in list(tree.find_all(exp.TableAlias)) if clauses else ():
        clause = clauses.get(alias.name)
        if clause is not None and alias.parent is not None:
            by_relation[id(alias.parent)] = clause
            alias.set("this", exp.to_identifier(clause.alias) if clause.alias else None)
    return by_relation


def _fault(message: str, start: int) -> QueryFinding:
    return QueryFinding("sql-syntax", message, "Correct the SQL near this place.", start)


def _taken_out(tokens: list[Token], text: str) -> tuple[list[Token], dict[str, Clause], frozenset[int]]:
    tokens, streams = _without_stream(tokens)
    out: list[Token] = []
    clauses: dict[str, Clause] = {}
    at = 0
    while at < len(tokens):
        end = _clause_end(tokens, at)
        if end is None or not out:
            out.append(tokens[at])
            at += 1
            continue
        name = f"{_MARK}{len(clauses)}"
        alias, after = _alias(tokens, end)
        clauses[name] = _clause(tokens[at + 1 : end], text, alias)
        at_token = tokens[at]
        out.append(_token(TokenType.VAR, name, at_token))
        at = after
    return out, clauses, streams


def _token(kind: TokenType, text: str, like: Token) -> Token:
    return Token(kind, text, like.line, like.col, like.start, like.end, like.comments)


def _is(tokens: list[Token], at: int, word: str) -> bool:
    if not 0 <= at < len(tokens) or tokens[at].token_type is TokenType.IDENTIFIER:
        return False
    return bool(tokens[at].text.upper() == word)


def _clause_end(tokens: list[Token], at: int) -> int | None:
    """Where a WATERMARK clause that begins here ends, if one does."""
    if not _is(tokens, at, "WATERMARK"):
        return None
    depth = 0
    for index in range(at + 1, len(tokens)):
        depth += (tokens[index].token_type is TokenType.L_PAREN) - (tokens[index].token_type is TokenType.R_PAREN)
        if depth < 0:
            return None
        if depth == 0 and _is(tokens, index, "DELAY") and _is(tokens, index + 1, "OF"):
            return _interval_end(tokens, index + 2)
    return None


def _interval_end(tokens: list[Token], at: int) -> int:
    if not _is(tokens, at, "INTERVAL"):
        start = tokens[min(at, len(tokens) - 1)].start
        raise _SyntaxError("the delay of a WATERMARK clause is an INTERVAL", start)
    at += 1
    while at + 1 < len(tokens) and _number(tokens[at]) and tokens[at + 1].token_type is not TokenType.COMMA:
        at += 1
        while at < len(tokens) and _number(tokens[at]) and tokens[at - 1].token_type is TokenType.DASH:
            at += 1
        if seconds(sqlglot.exp.Literal.string(f"1 {tokens[at].text}")) is None and not _is_month(tokens[at]):
            return at
        at += 1
    return at


def _number(token: Token) -> bool:
    return token.token_type in {TokenType.NUMBER, TokenType.STRING, TokenType.DASH}


def _is_month(token: Token) -> bool:
    return token.text.lower().rstrip("s") in {"month", "year"}


def _alias(tokens: list[Token], at: int) -> tuple[str, int]:
    explicit = _is(tokens, at, "AS")
    name = at + explicit
    if name < len(tokens) and (tokens[name].token_type in _NAMES) and not _is(tokens, name, "WATERMARK"):
        return tokens[name].text, name + 1
    return "", at


def _clause(tokens: list[Token], text: str, alias: str) -> Clause:
    delay = next(i for i in range(len(tokens) - 1, -1, -1) if _is(tokens, i, "DELAY"))
    if delay == 0:
        raise _SyntaxError("the WATERMARK clause names no column", tokens[0].start)
    first = tokens[0]
    tree = parse_tokens([_token(TokenType.SELECT, "SELECT", first), *tokens[:delay]], text)[0]
    length = text[tokens[delay + 2].start : tokens[-1].end + 1].lower().removeprefix("interval").replace("'", "")
    literal = exp.Literal.string(length)
    item = tree.expressions[0] if isinstance(tree, exp.Select) and tree.expressions else exp.Null()
    name = item.alias.lower()
    return Clause(item.this if isinstance(item, exp.Alias) else item, name, seconds(literal), alias)


def _without_stream(tokens: list[Token]) -> tuple[list[Token], frozenset[int]]:
    """Take out STREAM where it is before a relation, its brackets and its options."""
    out: list[Token] = []
    streams: set[int] = set()
    at = 0
    while at < len(tokens):
        before = out[-1].token_type if out else None
        if not (_is(tokens, at, "STREAM") and before in _BEFORE and _starts_relation(tokens, at + 1)):
            out.append(tokens[at])
            at += 1
            continue
        bracket = tokens[at + 1].token_type is TokenType.L_PAREN
        at += 1 + bracket
        if not bracket and at + 1 < len(tokens) and tokens[at + 1].token_type is TokenType.L_PAREN:
            raise _SyntaxError("STREAM does not take a table function", tokens[at].start)
        streams.add(tokens[at].start)
        while at < len(tokens) and (tokens[at].token_type in _NAMES or tokens[at].token_type is TokenType.DOT):
            out.append(tokens[at])
            at += 1
            dotted = at < len(tokens) and tokens[at].token_type is TokenType.DOT
            if tokens[at - 1].token_type in _NAMES and not dotted:
                break
        if bracket:
            at = _expect(tokens, at, TokenType.R_PAREN)
        if _is(tokens, at, "WITH") and at + 1 < len(tokens) and tokens[at + 1].token_type is TokenType.L_PAREN:
            at = _closing(tokens, at + 1) + 1
        if _is(tokens, at, "IDENTIFIED") or _is(tokens, at, "CHANGES"):
            message = f"Spark 4.1 does not read {tokens[at].text.upper()} behind a stream"
            raise _SyntaxError(message, tokens[at].start)
    return out, frozenset(streams)


def _starts_relation(tokens: list[Token], at: int) -> bool:
    if at >= len(tokens):
        return False
    if tokens[at].token_type is TokenType.L_PAREN:
        return at + 1 < len(tokens) and tokens[at + 1].token_type in _NAMES
    return tokens[at].token_type in _NAMES or (
        # a keyword of sqlglot's that is not a keyword of Spark's can name a relation
        at + 1 < len(tokens) and tokens[at + 1].token_type is TokenType.L_PAREN
    )


def _expect(tokens: list[Token], at: int, kind: TokenType) -> int:
    if at >= len(tokens) or tokens[at].token_type is not kind:
        start = tokens[min(at, len(tokens) - 1)].start
        raise _SyntaxError("the bracket behind STREAM is not closed", start)
    return at + 1


def _closing(tokens: list[Token], at: int) -> int:
    depth = 0
    for index in range(at, len(tokens)):
        depth += (tokens[index].token_type is TokenType.L_PAREN) - (tokens[index].token_type is TokenType.R_PAREN)
        if depth == 0:
            return index
    raise _SyntaxError("a bracket is not closed", tokens[at].start)
