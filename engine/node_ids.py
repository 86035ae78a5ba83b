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


def data_test_name(*parts: str | None) -> str:
    """The name of a data test, made from its kind, model and column as dbt does."""
    return _NOT_WORD.sub("_", "_".join(part for part in parts if part))


def data_test_id(name: str, tested: str) -> str:
    """The id of a listed data test; as in dbt, a hash at its end distinguishes equal names of two lists."""
    return f"{_TEST}{name}.{hashlib.blake2b(f'{tested} {name}'.encode(), digest_size=5).hexdigest()}"


def rest_of(node_id: str) -> str:
    return node_id.partition(".")[2]


def shown_name(node_id: str) -> str:
    """What to call a node by its id: a data test without its hash, the tests of a model or source as such."""
    kind, _, name = node_id.partition(".")
    if f"{kind}." == TESTS:
        return f"tests of {shown_name(name)}"
    return name.partition(".")[0] if f"{kind}." == _TEST else name


def repeated(ids: Iterable[str]) -> Iterator[Diagnostic]:
    """Findings about ids that several nodes have: of these only the last one would be there."""
    for node_id, number in Counter(ids).items():
        if number > 1:
            message = f"{number} nodes have the id '{node_id}'"
            yield Diagnostic("duplicate-name", message, "Rename all but one of them.", node=shown_name(node_id))
