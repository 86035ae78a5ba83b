"""What a table that is named directly may have meant: a model or source of the project, ready to paste."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from engine.compile.references.resolve_references import KnownNodes
from engine.compile.sql.parse import UNDECLARED_HINT
from engine.errors import Diagnostic


def with_suggestions(problems: Iterable[Diagnostic], known_nodes: KnownNodes) -> Iterator[Diagnostic]:
    """Yield the problems, with the reference that was probably meant in the hints of `undeclared-relation`."""
    calls: dict[str, str] | None = None
    for problem in problems:
        if problem.code != "undeclared-relation":
            yield problem
            continue
        calls = calls if calls is not None else _calls(known_nodes)
        suggestion = _suggestion(problem.message.split("'")[1].lower(), calls) or UNDECLARED_HINT
        yield replace(problem, hint=problem.hint.replace(UNDECLARED_HINT, suggestion))


def _calls(known_nodes: KnownNodes) -> dict[str, str]:
    """By each name that people write for a table: the call that reads it. A model hides a source's bare table."""
    calls: dict[str, str] = {}
    for source in known_nodes.sources.values():
        call = f"{{{{ source('{source.source}', '{source.table}') }}}}"
        calls |= {source.table.lower(): call, source.name.lower(): call}
    for name, relation in known_nodes.relations.items():
        call = f"{{{{ ref('{name}') }}}}"
        calls |= {name.lower(): call, relation.name.lower(): call}
        calls.setdefault(f"{relation.schema}.{relation.name}".lower(), call)
    return calls


def _suggestion(name: str, calls: Mapping[str, str]) -> str:
    last_two = ".".join(name.split(".")[-2:])
    exact = calls.get(last_two) or calls.get(name.rpartition(".")[2])
    if exact:
        return f"Write {exact}, so that the dependency is known."
    close = difflib.get_close_matches(name, calls, n=1, cutoff=0.7)
    return f"Did you mean {calls[close[0]]}?" if close else ""
