"""Parsing a statement for the checker, with the checks of its tokens that keep the parser from misreading it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.dialect import parse_tokens, tokenize
from engine.compile.sql.lexer.tokens import TokenType
from engine.compile.sql.query_nodes import TreeNode
from engine.compile.sql.token_checks import check_commas, check_depth, check_stream_clauses

# Behind these a word before a bracket is an operator, an alias with columns or a name with a qualifier.
_NO_CALL_BEHIND = {
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.R_PAREN, TokenType.R_BRACKET,
    TokenType.ALIAS, TokenType.DOT, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement: its tree, or the findings if it cannot be parsed."""

    tree: TreeNode | None
    findings: tuple[QueryFinding, ...] = ()


def parse(text: str, synonyms: Mapping[str, str] | None = None) -> ParsedStatement:
    """Parse a statement as Spark 4.1 reads it; functions in `synonyms` (lower case) are read by another name."""
    findings: list[QueryFinding] = []

    def report(code: str, message: str, hint: str, start: int) -> None:
        findings.append(QueryFinding(code, message, hint, start))

    try:
        tokens = tokenize(text)
        check_depth(tokens, report)
        check_commas(tokens, report)
        if "STREAM" in (words := text.upper()) or "DELAY" in words:
            check_stream_clauses(tokens, report)
        if findings or not tokens:
            return ParsedStatement(None, tuple(findings) or (_fault("there is no SQL", 0),))
        tokens = _one_name(tokens, synonyms) if synonyms else tokens
        trees = parse_tokens(tokens, text)
    except ParseError as error:
        detail = error.errors[0] if error.errors else {}
        place = (detail.get("line"), detail.get("col"))
        start = next((t.start for t in tokens if (t.line, t.col) == place), 0)
        return ParsedStatement(None, (_fault(str(detail.get("description") or error), start),))
    except (SqlglotError, RecursionError) as error:
        return ParsedStatement(None, (_fault(str(error).splitlines()[0], 0),))
    if len(trees) != 1 or trees[0] is None:
        return ParsedStatement(None, (_fault("there is more than one statement", 0),))
    return ParsedStatement(trees[0])


def _one_name(tokens: list[Token], synonyms: Mapping[str, str]) -> list[Token]:
    """The tokens with one name for functions that are synonyms; a name that may not be a call stays as it is."""
    result = list(tokens)
    for index, (before, token, after) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False), 1):
        name = synonyms.get(token.text.lower())
        called = after.token_type is TokenType.L_PAREN and before.token_type not in _NO_CALL_BEHIND
        if name is not None and called:
            result[index] = Token(TokenType.VAR, name, token.line, token.col, token.start, token.end, token.comments)
    return result


def _fault(message: str, start: int) -> QueryFinding:
    return QueryFinding("sql-syntax", message, "Correct the SQL near this place.", start)
