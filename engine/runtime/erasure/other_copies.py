"""Where else the rows that `engine erase` removes from a model's tables may be, found by lineage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.compile import Manifest, Model, Source
from engine.compile.nodes.column_facts import Derivation
from engine.compile.sql.dialect import tokenize
from engine.lake.quoted_names import quoted
from engine.runtime.erasure.erase_condition import EraseRequest

# Columns of the condition: their names in another table.
_Names = Mapping[str, str]
_PLAIN = "abcdefghijklmnopqrstuvwxyz0123456789_"


@dataclass(frozen=True, slots=True)
class OtherCopy:
    """A place that may have the rows; `command` removes them there; empty: there is none."""

    node: str
    what: str
    command: str = ""


def other_copies(manifest: Manifest, request: EraseRequest) -> tuple[OtherCopy, ...]:
    return (*_state(request.model), *_downstream(manifest, request), *_upstream(manifest, request))


def _state(model: Model) -> Iterator[OtherCopy]:
    if model.stateful:
        what = "state of its query (windows, joins, dedup) until the watermark passes it"
        yield OtherCopy(model.name, what, f"engine build -f -s {model.name}")


def _downstream(manifest: Manifest, request: EraseRequest) -> Iterator[OtherCopy]:
    """The models that read the table, or what was made of it, near ones first."""
    names: dict[str, _Names | None] = {request.model.id: {name: name for name in request.columns}}
    for reader in manifest.models:
        above = [node for node in reader.depends_on if node in names]
        if not above or reader.id in names:
            continue
        passed = [{there: here for here, there in reversed(_copies(reader, node).items())} for node in above]
        names[reader.id] = _renamed(names[above[0]], passed[0]) if len(above) == 1 else None
        if reader.keeps_rows:
            yield _copy_in(reader, request, names[reader.id])


def _copy_in(reader: Model, request: EraseRequest, names: _Names | None) -> OtherCopy:
    if names is not None:
        after = f"engine build -s {reader.name}, then " if not reader.streaming else ""
        return OtherCopy(reader.name, "rows that were read from it", f"{after}{erase_command(reader, request, names)}")
    what = "rows computed from it" + (", and state of its query" if reader.stateful else "")
    return OtherCopy(reader.name, what, f"engine build -f -s {reader.name}")


def _upstream(manifest: Manifest, request: EraseRequest) -> Iterator[OtherCopy]:
    """The models and sources that the rows came from: a full refresh reads them again."""
    names: dict[str, _Names | None] = {request.model.id: {name: name for name in request.columns}}
    waiting = [request.model]
    while waiting:
        model = waiting.pop(0)
        for above in manifest.parents(model.id):
            node = manifest.nodes[above]
            if above in names:
                continue
            names[above] = _renamed(names[model.id], _copies(model, above))
            if isinstance(node, Source):
                what = f"records of the source ({node.spec.format}): a full refresh reads them again"
                yield OtherCopy(node.name, what)
            elif isinstance(node, Model):
                waiting.append(node)
                if node.keeps_rows:
                    known = names[above]
                    command = erase_command(node, request, known) if known is not None else ""
                    yield OtherCopy(node.name, "rows that it was made from: a full refresh reads them again", command)


def _copies(model: Model, above: str) -> dict[str, str]:
    found = {}
    for column in model.columns:
        origins = [origin for origin in column.origins if origin.kind == "direct"]
        copied = column.derivation is Derivation.COPY and len(origins) == 1 and origins[0].node == above
        if copied and "." not in origins[0].column:
            found[column.name] = origins[0].column
    return found


def _renamed(names: _Names | None, others: _Names) -> _Names | None:
    """The columns of the condition under other names; None: not all of them have one."""
    known = {old.lower(): new for old, new in others.items()}
    if names is None or not {name.lower() for name in names.values()} <= known.keys():
        return None
    return {name: known[there.lower()] for name, there in names.items()}


def erase_command(model: Model, request: EraseRequest, names: Mapping[str, str]) -> str:
    where = with_names(request.where, names).replace("\\", "\\\\").replace('"', '\\"')
    return f'engine erase {model.name} --where "{where}"'


def with_names(condition: str, names: Mapping[str, str]) -> str:
    other = {old.lower(): new for old, new in names.items()}
    tokens, parts, at = tokenize(condition), [], 0
    for index, token in enumerate(tokens):
        new = other.get(token.text.lower())
        before = condition[tokens[index - 1].start : tokens[index - 1].end + 1] if index else ""
        after = condition[tokens[index + 1].start : tokens[index + 1].end + 1] if index + 1 < len(tokens) else ""
        is_text = condition[token.start] in "'\""
        if new is None or is_text or before == "." or after == "(" or new.lower() == token.text.lower():
            continue
        parts += [condition[at : token.start], new if set(new.lower()) <= set(_PLAIN) else quoted(new)]
        at = token.end + 1
    return "".join([*parts, condition[at:]])
