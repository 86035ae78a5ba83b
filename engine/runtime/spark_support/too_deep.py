"""Queries for which the stack of Java's threads has no room: where they are deepest, and how to continue."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.compile import Model, Source
from engine.compile.sql.dialect import parse_tokens, tokenize
from engine.compile.sql.parse import first_offset
from engine.errors import Diagnostic, Location

CODE = "query-too-deep"
_SIGNS = ("StackOverflowError", "FAILED_TO_PARSE_TOO_COMPLEX")
_HINT = (
    "Make a part of it a separate model; write many values of one column as IN (..), many terms of a sum as "
    "aggregate(array(a, b), 0D, (x, y) -> x + y). Or increase the stack of Java's threads: spark: {conf: "
    "{spark.driver.extraJavaOptions: -Xss32m}}."
)


def too_deep(error: Exception, node: Model | Source) -> Diagnostic | None:
    """What to tell of a stack that overflowed; None if it did not."""
    # The error of a stream has its cause in Java's trace only.
    text = f"{error}\n{getattr(error, '_stackTrace', None) or ''}"
    if not any(sign in text for sign in _SIGNS):
        return None
    message = "the query is too deep for the stack of Java's threads, mostly here"
    place = _deepest(node) if isinstance(node, Model) else None
    return Diagnostic(CODE, message, _HINT, node=node.name, location=place)


def _deepest(model: Model) -> Location:
    try:
        tree = parse_tokens(tokenize(model.sql), model.sql)[0]
    except (SqlglotError, RecursionError):
        return Location(model.file)
    if tree is None:
        return Location(model.file)
    depths: dict[int, int] = {}
    deepest = tree
    for node in tree.walk():
        depths[id(node)] = depths.get(id(node.parent), 0) + 1 if node.parent is not None else 0
        deepest = node if depths[id(node)] > depths[id(deepest)] else deepest
    while deepest.parent is not None and not isinstance(deepest.parent, (exp.Query, exp.Where, exp.Having)):
        deepest = deepest.parent
    return model.positions.locate(model.file, first_offset(deepest))
