"""The tokens of Spark's own lexer, many texts at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_SOURCE = Path(__file__).with_name("SparkLexer.java")
_WORD = re.compile(r"[A-Za-z0-9_]+")
_NUMBERS = {
    "BIGINT_LITERAL", "SMALLINT_LITERAL", "TINYINT_LITERAL", "INTEGER_VALUE", "EXPONENT_VALUE", "DECIMAL_VALUE",
    "FLOAT_LITERAL", "DOUBLE_LITERAL", "BIGDECIMAL_LITERAL",
}  # fmt: skip
_COMMENTS = {"SIMPLE_COMMENT", "BRACKETED_COMMENT"}
# The rules between the keywords and the literals.
_SIGN = re.compile(r"[^\w\s'\"`]+")


class SparkToken(NamedTuple):
    """A token: its kind as compile names them, its place, the value of a string, the name of its rule."""

    kind: str
    start: int
    end: int
    value: str | None
    rule: str


@dataclass(frozen=True, slots=True)
class SparkLexer:
    """Spark's lexer in a Java process; the program around it is compiled by the compiler that Spark brings along.

    Args:
        jvm: of a py4j gateway with the classes of Spark.
        gateway: of it.
    """

    jvm: Any
    gateway: Any

    def tokens(self, texts: Sequence[str]) -> Iterator[list[SparkToken]]:
        """Yield the tokens of each text, up to the first that no legal text has; blanks are left out."""
        answers = str(self._call(list(texts))).split("\n\n")
        for text, answer in zip(texts, answers, strict=False):
            yield _told(text, answer.strip("\n").split("\n"))

    def _call(self, texts: list[str]) -> Any:
        compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(self.jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(_SOURCE.read_text("utf-8"))
        (method,) = compiler.getClassLoader().loadClass("tests.SparkLexer").getDeclaredMethods()
        arguments = self.gateway.new_array(self.jvm.java.lang.Object, 1)
        arguments[0] = "\x01".join(texts)
        return method.invoke(None, arguments)


def _told(text: str, lines: list[str]) -> list[SparkToken]:
    tokens = []
    unclosed = lines[-1] == "unclosed"
    for line in filter(None, lines[:-1] if unclosed else lines):
        rule, start, end, _, *value = line.split(" ")
        if rule == "WS":
            continue
        token = _token(text, rule, int(start), int(end), bytes.fromhex(value[0]).decode() if value else None)
        tokens.append(token)
        if token.kind in {"UNKNOWN", "UNCLOSED"}:
            return tokens
    if unclosed:
        tokens[-1] = tokens[-1]._replace(kind="UNCLOSED", end=-1)
    return tokens


def _token(text: str, rule: str, start: int, end: int, value: str | None) -> SparkToken:
    if rule == "UNRECOGNIZED":
        kind = "UNCLOSED" if text[start] in "'\"`" else "UNKNOWN"
    elif rule in _NUMBERS:
        kind = "NUMBER" if text[start:end].isascii() else "UNKNOWN"
    elif rule in _COMMENTS:
        kind = "COMMENT"
        if rule == "SIMPLE_COMMENT":
            # The end of the line is a blank as well.
            end = start + len(text[start:end].removesuffix("\n").removesuffix("\r"))
    elif value is not None:
        kind = "RAW_STRING" if text[start] in "rR" else "STRING"
    elif rule == "BACKQUOTED_IDENTIFIER":
        kind = "QUOTED_NAME"
    elif _SIGN.fullmatch(text[start:end]):
        kind = "SIGN"
    else:
        # Words with other letters pass the lexer, and then fail as names (PostProcessor.exitUnquotedIdentifier).
        kind = "WORD" if _WORD.fullmatch(text[start:end]) else "UNKNOWN"
    return SparkToken(kind, start, end, value, rule)
