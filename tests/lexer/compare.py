"""Where compile reads a text otherwise than Spark's lexer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot.errors import TokenError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from engine.compile.sql.dialect import tokenize
from engine.compile.sql.lexer.lexemes import lexemes
from tests.lexer.spark_tokens import SparkToken

_Place = tuple[str, int, int]
_ILLEGAL = {"UNKNOWN", "UNCLOSED"}


def difference(text: str, theirs: Sequence[SparkToken]) -> str:
    """How compile reads a text otherwise: its lexemes, the tokens for the parser, the values of strings."""
    ours = [(kind.name, start, end) for kind, start, end in lexemes(text)]
    expected = [(token.kind, token.start, token.end) for token in theirs]
    if not _same(text, ours, expected):
        return f"lexemes {ours}\n    {expected} in Spark"
    return _other_tokens(text, theirs)


def _same(text: str, ours: list[_Place], expected: list[_Place]) -> bool:
    if expected and expected[-1][0] == "UNKNOWN":
        # A word with other letters is one lexeme to Spark, and is rejected at its first such letter here.
        kind, start, end = expected.pop()
        if not ours or ours[-1][0] != kind or not start <= ours[-1][1] < end:
            return False
        ours = [place for place in ours if place[1] < start]
    return [_shown(text, place) for place in ours] == [_shown(text, place) for place in expected]


def _shown(text: str, place: _Place) -> _Place:
    """A place without what the two delimit otherwise: the line break behind a comment, what has no end."""
    kind, start, end = place
    return kind, start, len(text[:end].rstrip("\r\n\\")) if kind == "COMMENT" else -1 if kind == "UNCLOSED" else end


def _other_tokens(text: str, theirs: Sequence[SparkToken]) -> str:
    illegal = bool(theirs) and theirs[-1].kind in _ILLEGAL
    wanted = [token for token in theirs if token.kind != "COMMENT"]
    try:
        tokens = tokenize(text)
    except TokenError as error:
        if illegal and theirs[-1].kind == "UNCLOSED" and error.start == theirs[-1].start:
            return ""
        # A hint without an end: Spark's parser finds it.
        return "" if any(token.rule == "HENT_START" for token in wanted) else f"{error}, and not in Spark"
    if tokens and tokens[-1].token_type is TokenType.UNKNOWN:
        stray = any(token.rule == "HENT_END" and token.start == tokens[-1].start for token in wanted)
        return "" if stray or (illegal and theirs[-1].kind == "UNKNOWN") else "a character is unknown, and not to Spark"
    if illegal:
        return f"tokens of a text that Spark's lexer rejects at {theirs[-1].start}"
    covered = [token for token in wanted if not any(t.start <= token.start and token.end <= t.end + 1 for t in tokens)]
    if covered:
        return f"no token for {covered}"
    begins, ends = {token.start for token in wanted}, {token.end for token in wanted}
    stray_tokens = [t for t in tokens if t.start not in begins or t.end + 1 not in ends]
    return f"tokens that are none in Spark: {stray_tokens}" if stray_tokens else "; ".join(_other_values(text, wanted))


def _other_values(text: str, wanted: Sequence[SparkToken]) -> Iterator[str]:
    ours = {t.end + 1: t for t in tokenize(text) if t.token_type in {TokenType.STRING, TokenType.HEX_STRING}}
    hints = [(t.start, t.end) for t in tokenize(text) if t.token_type is TokenType.HINT]
    for token in wanted:
        if token.value is None or any(start <= token.start <= end for start, end in hints):
            continue
        if token.end not in ours or ours[token.end].text != token.value:
            yield f"{token.value!r} in Spark, {ours[token.end].text if token.end in ours else None!r} here"
