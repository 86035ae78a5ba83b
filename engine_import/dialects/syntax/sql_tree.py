"""The SQL of a template as tokens and brackets with their places; Jinja is replaced by names and spaces."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from engine_import.templates.template_parts import PieceKind, pieces

# An expression of Jinja is replaced by as many letters, so that all places stay; a letter continues a name.
_REPLACEMENT = "J"
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OPENS = re.compile(r"(?:if|for|macro|call|filter|set|block|with|test|snapshot)\b")
# Brackets that one block of Jinja opens and another closes, a quote without an end.
UNREAD: Final = "not translated: its brackets or quotes do not match around blocks of Jinja"
# The translation of one level takes up to eight frames of Python's stack of 1,000.
_MOST_LEVELS: Final = 80
TOO_DEEP: Final = f"not translated: its brackets are nested more than {_MOST_LEVELS} levels deep"
_STRINGS = frozenset(
    (
        TokenType.STRING, TokenType.RAW_STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING,
        TokenType.NATIONAL_STRING, TokenType.UNICODE_STRING, TokenType.HEX_STRING, TokenType.BIT_STRING,
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """A token, or what is between two brackets.

    Attributes:
        start: offset of its first character in the template.
        end: offset behind its last one.
        text: of a token, as written; of brackets the opening one.
        kind: `word`, `name` (in quotes), `string`, `number`, `sign` or `brackets`.
        inside: the nodes between brackets.
    """

    start: int
    end: int
    text: str
    kind: str
    inside: tuple[Node, ...] = ()

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind in ("word", "sign") else ""


@dataclass(frozen=True, slots=True)
class SqlTree:
    """The nodes of a template.

    Attributes:
        nodes: those outside of all brackets.
        jinja: start and end of each expression of Jinja.
        blocks: the place of each block of Jinja, with the stack of open blocks behind it.
    """

    text: str
    nodes: tuple[Node, ...]
    jinja: tuple[tuple[int, int], ...]
    blocks: tuple[tuple[int, tuple[int, ...]], ...]

    def branch(self, offset: int) -> tuple[int, ...]:
        """Return the Jinja blocks open at a place: two of one branch are rendered together or not at all."""
        at = bisect_right(self.blocks, offset, key=lambda block: block[0])
        return self.blocks[at - 1][1] if at else ()

    def has_block(self, start: int, end: int) -> bool:
        """Whether a block of Jinja is between two places."""
        at = bisect_right(self.blocks, start - 1, key=lambda block: block[0])
        return at < len(self.blocks) and self.blocks[at][0] < end

    def has_jinja(self, node: Node) -> bool:
        return any(start < node.end and node.start < end for start, end in self.jinja)


def sql_tree(template: str, dialect: str) -> SqlTree | str:
    """Read a template, or return the reason why it cannot be read: `UNREAD` or `TOO_DEEP`."""
    masked, jinja, blocks = _masked(template)
    try:
        tokens = sqlglot.tokenize(masked, read=dialect)
    except SqlglotError:
        return UNREAD
    nodes = _in_brackets(leaf for token in tokens for leaf in _leaves(template, token))
    return nodes if isinstance(nodes, str) else SqlTree(template, nodes, tuple(jinja), tuple(blocks))


def _leaves(template: str, token: Token) -> list[Node]:
    """Return the nodes of a token: sqlglot reads ORDER BY as one, here it is two."""
    text, kind = template[token.start : token.end + 1], _kind(token)
    if kind != "word" or not any(character.isspace() for character in token.text):
        return [Node(token.start, token.end + 1, text, kind)]
    words = re.finditer(r"\S+", text)
    return [Node(token.start + word.start(), token.start + word.end(), word[0], kind) for word in words]


def _masked(template: str) -> tuple[str, list[tuple[int, int]], list[tuple[int, tuple[int, ...]]]]:
    made: list[str] = []
    jinja: list[tuple[int, int]] = []
    blocks: list[tuple[int, tuple[int, ...]]] = []
    stack: list[int] = []
    at = 0
    for number, piece in enumerate(pieces(template)):
        length = len(piece.text)
        if piece.part is PieceKind.TEXT:
            made.append(piece.text)
        elif piece.part is PieceKind.EXPRESSION:
            made.append(_REPLACEMENT * length)
            jinja.append((at, at + length))
        else:
            made.append(" " * length)
        if piece.part is PieceKind.BLOCK:
            _enter(stack, piece.inner, number)
            blocks.append((at, tuple(stack)))
        at += length
    return "".join(made), jinja, blocks


def _enter(stack: list[int], code: str, number: int) -> None:
    """Change the stack of open blocks by a block."""
    if code.startswith("end"):
        stack[-1:] = []
    elif code.startswith(("else", "elif")):
        stack[-1:] = [number]
    elif _OPENS.match(code) and not re.match(r"set\s[^=]*=", code):
        stack.append(number)


def _kind(token: Token) -> str:
    if token.token_type in _STRINGS:
        return "string"
    if token.token_type is TokenType.IDENTIFIER:
        return "name"
    if token.token_type is TokenType.NUMBER:
        return "number"
    return "word" if token.text[:1].isalpha() or token.text[:1] == "_" else "sign"


def _in_brackets(leaves: Iterable[Node]) -> tuple[Node, ...] | str:
    stack: list[tuple[Node | None, list[Node]]] = [(None, [])]
    for leaf in leaves:
        sign = leaf.text if leaf.kind == "sign" else ""
        if sign in _CLOSING:
            stack.append((leaf, []))
            if len(stack) > _MOST_LEVELS:
                return TOO_DEEP
        elif sign and sign in _CLOSING.values():
            opened, inside = stack.pop()
            if opened is None or _CLOSING[opened.text] != sign:
                return UNREAD
            stack[-1][1].append(Node(opened.start, leaf.end, opened.text, "brackets", tuple(inside)))
        else:
            stack[-1][1].append(leaf)
    return tuple(stack[0][1]) if len(stack) == 1 else UNREAD


def is_brackets(node: Node | None, sign: str = "(") -> bool:
    return node is not None and node.kind == "brackets" and node.text == sign


def split(nodes: Sequence[Node]) -> list[list[Node]]:
    parts: list[list[Node]] = [[]]
    for node in nodes:
        if node.word == ",":
            parts.append([])
        else:
            parts[-1].append(node)
    return parts if len(parts) > 1 or parts[0] else []
