"""Reading a model's SQL with sqlglot: one query, its relations, what it keeps in state.

The tree is only looked at. What runs is the user's own text with replacements spliced in (`engine.compile.lower`),
so nothing that sqlglot would write differently can change a query.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from engine.compile.context import REF, SOURCE, THIS
from engine.errors import Diagnostic
from engine.jinja import Rendered

DIALECT = "spark"
MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Reference:
    """A relation in the FROM of some SELECT: kind is ref, source or this; offsets are those of the placeholder."""

    kind: str
    name: str
    alias: str
    sampled: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed model."""

    tree: exp.Expression
    references: tuple[Reference, ...]
    end: int


def parse(rendered: Rendered, node: str, found: list[Diagnostic]) -> Query | None:
    """Parse a rendered model; findings carry the place in the user's file."""
    tokens = _tokens(rendered, node, found)
    if tokens is None:
        return None
    before = len(found)
    _check_tokens(tokens, rendered, node, found)
    if len(found) > before:
        return None
    tree = _tree(tokens, rendered, node, found)
    if tree is None:
        return None
    references = tuple(_references(tree, rendered, node, found))
    end = tokens[-1].start if tokens[-1].token_type is TokenType.SEMICOLON else len(rendered.text)
    return Query(tree, references, end)


def _tokens(rendered: Rendered, node: str, found: list[Diagnostic]) -> list[Token] | None:
    try:
        tokens = sqlglot.tokenize(rendered.text, dialect=DIALECT)
    except TokenError:
        place = rendered.location(_open_quote(rendered.text))
        hint = "Close the quote or the comment that begins here."
        found.append(
            Diagnostic(
                "sql-syntax", "the SQL ends inside a quote or comment", hint, node=node, location=place
            )
        )
        return None
    if not tokens:
        hint = "Write a SELECT below the header."
        place = rendered.location(0)
        found.append(Diagnostic("not-a-query", "the model has no SQL", hint, node=node, location=place))
        return None
    return tokens


def _open_quote(text: str) -> int:
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


def _check_tokens(tokens: list[Token], rendered: Rendered, node: str, found: list[Diagnostic]) -> None:
    """Find what the parser would misread or fail to survive."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth > MAX_DEPTH:
            place = rendered.location(token.start)
            message = f"the SQL is nested more than {MAX_DEPTH} levels deep"
            found.append(Diagnostic("sql-too-deep", message, "Use CTEs.", node=node, location=place))
            return
        word = token.text.upper()
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        before = tokens[index - 1].text.upper() if index else ""
        stream = word == "STREAM" and before in {"FROM", "JOIN", ","} and _names_relation(following)
        delay = word == "DELAY" and following is not None and following.text.upper() == "OF"
        if stream or delay:
            place = rendered.location(token.start)
            message = "'FROM STREAM'" if stream else "the WATERMARK clause"
            hint = "Declare it in the header: streams: {flights: {watermark: scheduled_at delay 30 minutes}}."
            found.append(
                Diagnostic(
                    "stream-clause", f"{message} has no place in a model", hint, node=node, location=place
                )
            )


def _names_relation(token: Token | None) -> bool:
    return token is not None and token.token_type in {TokenType.VAR, TokenType.IDENTIFIER, TokenType.L_PAREN}


def _tree(
    tokens: list[Token], rendered: Rendered, node: str, found: list[Diagnostic]
) -> exp.Expression | None:
    dialect = sqlglot.Dialect.get_or_raise(DIALECT)
    try:
        trees = [tree for tree in dialect.parser().parse(tokens, rendered.text) if tree is not None]
    except ParseError as error:
        found.append(_parse_error(error, rendered, node))
        return None
    place = rendered.location(tokens[0].start)
    if len(trees) != 1:
        hint = "Keep one SELECT; each model is one query."
        found.append(
            Diagnostic(
                "not-a-query", f"{len(trees)} statements in one model", hint, node=node, location=place
            )
        )
        return None
    tree = trees[0]
    if not isinstance(tree, exp.Query):
        word = tokens[0].text.upper()
        hint = "Write the SELECT alone; the engine makes and fills the table."
        found.append(
            Diagnostic("not-a-query", f"a model is a SELECT, not {word}", hint, node=node, location=place)
        )
        return None
    return tree


def _parse_error(error: ParseError, rendered: Rendered, node: str) -> Diagnostic:
    detail = error.errors[0]
    highlight = detail.get("highlight") or ""
    line, column = detail.get("line") or 1, detail.get("col") or 1
    place = rendered.location_of_line(line, max(column - len(highlight) + 1, 1))
    hint = "A comma, keyword or bracket is missing or too many near this place."
    if highlight.lower() == "window" or "window" in (detail.get("start_context") or "").lower()[-30:]:
        hint = (
            "Declare the window in the header (windows: {hour: tumbling(ts, 1 hour)}) and group by its name."
        )
    near_what = f" near '{highlight}'" if highlight.strip() else ""
    return Diagnostic("sql-syntax", f"the SQL cannot be read{near_what}", hint, node=node, location=place)


def _references(
    tree: exp.Expression, rendered: Rendered, node: str, found: list[Diagnostic]
) -> Iterator[Reference]:
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        identifier = table.this
        if not isinstance(identifier, exp.Identifier):
            continue
        name = identifier.this
        start, end = span(identifier)
        sampled = table.args.get("sample") is not None or isinstance(table.parent, exp.TableSample)
        for prefix, kind in ((REF, "ref"), (SOURCE, "source")):
            if name.startswith(prefix):
                yield Reference(kind, name[len(prefix) :], table.alias, sampled, start, end)
                break
        else:
            if name == THIS:
                yield Reference("this", name, table.alias, sampled, start, end)
            elif table.args.get("db") is not None or name.lower() not in ctes:
                shown = ".".join(part.name for part in table.parts)
                found.append(
                    Diagnostic(
                        "undeclared-relation",
                        f"'{shown}' is neither a model, a source nor a CTE",
                        "Write {{ ref('model') }} or {{ source('name', 'table') }}, so that the order is known.",
                        node=node,
                        location=rendered.location(start),
                    )
                )


def span(node: exp.Expression) -> tuple[int, int]:
    """Begin and end (exclusive) of an identifier, or of a column of several, in the text."""
    identifiers = [node] if isinstance(node, exp.Identifier) else list(node.find_all(exp.Identifier))
    spans = [(i.meta["start"], i.meta["end"] + 1) for i in identifiers if "start" in i.meta]
    return min(s for s, _ in spans), max(e for _, e in spans)


def is_stateful(tree: exp.Expression, streams: int, *, dedup: bool) -> bool:
    """Whether Spark keeps state for the query: aggregates, distinct, limits, dedup, joins of streams."""
    if dedup:
        return True
    if any(
        select.args.get(key) for select in tree.find_all(exp.Select) for key in ("group", "distinct", "limit")
    ):
        return True
    for operation in tree.find_all(exp.SetOperation):
        if (
            operation.args.get("distinct")
            or not isinstance(operation, exp.Union)
            or operation.args.get("limit")
        ):
            return True
    if streams > 1 and any(True for _ in tree.find_all(exp.Join)):
        return True
    return any(not isinstance(a.parent, exp.Window) for a in tree.find_all(exp.AggFunc))


def normalised(tree: exp.Expression) -> str:
    """The query in one spelling: formatting, comments and keyword case gone."""
    with contextlib.suppress(AttributeError):
        tree = tree.copy()
    return tree.sql(dialect=DIALECT, comments=False, normalize_functions="upper")
