"""The ids of data tests, which are unique over the project although tests may share a name."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from engine.errors import Diagnostic

_NOT_WORD = re.compile(r"\W+")
_TEST = "test."
# Tests that have turns of their own under `engine start`; the rest is the id of the model or source that they test.
TESTS = "tests."
SINK = "sink."


def data_test_name(*parts: str | None) -> str:
    """Build the name of a data test from its kind, model and column, as dbt does."""
    return _NOT_WORD.sub("_", "_".join(part for part in parts if part))


def data_test_id(name: str, tested: str) -> str:
    """Build the id of a data test; as in dbt, a hash at its end distinguishes equal names of two lists."""
    return f"{_TEST}{name}.{hashlib.blake2b(f'{tested} {name}'.encode(), digest_size=5).hexdigest()}"


def rest_of(node_id: str) -> str:
    return node_id.partition(".")[2]


def shown_name(node_id: str) -> str:
    """Return the display name of a node: a data test without its hash, `tests of NAME`, `sink NAME`."""
    kind, _, name = node_id.partition(".")
    if f"{kind}." == TESTS:
        return f"tests of {shown_name(name)}"
    if f"{kind}." == SINK:
        return f"sink {name}"
    return name.partition(".")[0] if f"{kind}." == _TEST else name


def repeated(ids: Iterable[str]) -> Iterator[Diagnostic]:
    """Report ids that several nodes share: only the last of these nodes would exist."""
    for node_id, number in Counter(ids).items():
        if number > 1:
            message = f"{number} nodes have the id '{node_id}'"
            yield Diagnostic("duplicate-name", message, "Rename all but one of them.", node=shown_name(node_id))
