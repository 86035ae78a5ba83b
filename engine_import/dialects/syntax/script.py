"""A template while it is translated: its tree, its warehouse, and the notes on what may differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine_import.dialects.syntax.sql_tree import Node, SqlTree
from engine_import.dialects.syntax.warehouse import Warehouse

# A note's number is between these in the text until all of it is written: then the line is known.
_OPEN, _CLOSE = "\ue000", "\ue001"
_MARK = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_HASH_COMMENT = re.compile(r"(\{[#%].*?(?:[#%]\}|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z))|#", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Note:
    """What to know about a place of a translated text.

    Attributes:
        line: of the text, from 1.
    """

    line: int
    message: str


@dataclass(slots=True)
class Script:
    """The state of a translation.

    Attributes:
        replaced: what is written for a name that nothing qualifies, by the name in lower case.
        written: the text of nodes by their first and last place, and whether their order decides on rows.
    """

    tree: SqlTree
    warehouse: Warehouse
    messages: list[str] = field(default_factory=list)
    replaced: Mapping[str, str] = field(default_factory=dict)
    written: dict[tuple[int, int, bool], str] = field(default_factory=dict)

    def note(self, message: str) -> str:
        """Return a mark that is written where the note belongs."""
        self.messages.append(message)
        return f"{_OPEN}{len(self.messages) - 1}{_CLOSE}"

    @contextmanager
    def replacing(self, names: Mapping[str, str]) -> Iterator[None]:
        """Write something else for some names, inside of a with block."""
        self.replaced = names
        yield
        self.replaced = {}

    def gap(self, start: int, end: int) -> str:
        """The white space, comments and blocks of Jinja between two places."""
        text = self.tree.text[start:end]
        if "#" in text and self.warehouse.dialect == "bigquery":
            return _HASH_COMMENT.sub(lambda match: match[1] or "--", text)
        return text


@dataclass(slots=True)
class Written:
    """A part of a list of nodes that is written.

    Attributes:
        nodes: which of the list it is.
        kind: `operand`, `dot` or `other`.
    """

    gap: str
    text: str
    nodes: Sequence[Node]
    kind: str = "other"

    @property
    def word(self) -> str:
        """Return its word or sign in lower case; empty if it is something else."""
        return self.nodes[0].word if len(self.nodes) == 1 else ""


def unmarked(text: str, messages: Sequence[str]) -> tuple[str, list[Note]]:
    """Return the text without marks, and the notes with the lines they belong to."""
    notes: list[Note] = []
    line = 1
    for part in re.split(f"({_OPEN}\\d+{_CLOSE})", text):
        if (mark := _MARK.fullmatch(part)) is not None:
            note = Note(line, messages[int(mark[1])])
            if note not in notes:
                notes.append(note)
        line += part.count("\n")
    return _MARK.sub("", text), notes


def is_markable(text: str) -> bool:
    return _OPEN not in text and _CLOSE not in text


def last_operand(made: list[Written]) -> Written | None:
    """Pop the value that ends here, as `a.b(c)[0]`; None if there is none, as after a keyword."""
    at = len(made)
    if not at or made[-1].kind != "operand":
        return None
    at -= 1
    while at >= 2 and made[at - 1].kind == "dot" and made[at - 2].kind == "operand":  # noqa: PLR2004 - the dot and what is before it
        at -= 2
    taken = made[at:]
    del made[at:]
    text = taken[0].text + "".join(entry.gap + entry.text for entry in taken[1:])
    return Written(taken[0].gap, text, [node for entry in taken for node in entry.nodes], "operand")
