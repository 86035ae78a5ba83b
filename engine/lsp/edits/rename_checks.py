"""Whether a rename leaves everything else as it is: the project is compiled with it and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.compile import Manifest, Model, Source
from engine.errors import EngineError
from engine.lsp.edits.text_changes import TextChange, changed_texts
from engine.lsp.opened.open_project import OpenProject

Differs = Callable[[Manifest, Manifest], str]


def reason_against(opened: OpenProject, changes: Sequence[TextChange], differs: Differs) -> str:
    """Return why a rename would change meaning; empty: it would not.

    Raises:
        EngineError: the changed project cannot be compiled at all.
    """
    after = opened.compiled_with(changed_texts(opened, changes)).manifest
    if after.errors:
        first = after.errors[0]
        return f"{first.location or ''} would be wrong: {first.message} [{first.code}]"
    return differs(opened.manifest, after)


def table_reason(opened: OpenProject, model: Model) -> str | None:
    """Return why a table or the state of a model forbids a rename; None: nothing of it exists."""
    from engine.lake.catalog.catalog_settings import is_local
    from engine.lake.lake_reader import Lake

    if opened.compiled is None:
        return "the project was not compiled"
    catalog, relation = opened.compiled.target.catalog, model.relation
    if not is_local(catalog):
        return f"the table {relation} may exist on a server, which an editor does not ask"
    try:
        exists = Lake(catalog).table(relation.schema, relation.name) is not None
    except EngineError as error:
        return f"the table {relation} cannot be read: {error}"
    return f"the table {relation} exists and has the name" if exists else None


def columns_but(node: str, old: str, new: str) -> Differs:
    """Return what compares columns, types and origins, in which one column has another name."""

    def named(at: str, name: str) -> str:
        return new if at == node and name.lower() == old.lower() else name

    def differs(before: Manifest, after: Manifest) -> str:
        for model in before.models:
            wanted = [
                (named(model.id, c.name), c.type, [(o.node, named(o.node, o.column), o.kind) for o in c.origins])
                for c in model.columns
            ]
            other = after.model(model.name)
            got = [(c.name, c.type, [(o.node, o.column, o.kind) for o in c.origins]) for c in other.columns]
            if wanted != got:
                return f"columns of '{model.name}' would change"
            rows = [(o.node, named(o.node, o.column), o.kind) for o in model.indirect]
            if rows != [(o.node, o.column, o.kind) for o in other.indirect]:
                return f"the rows of '{model.name}' would change"
        return ""

    return differs


def queries_but() -> Differs:
    """Return what compares the compiled SQL of all models and tests."""

    def differs(before: Manifest, after: Manifest) -> str:
        for node_id, node in before.nodes.items():
            if getattr(node, "sql", "") != getattr(after.nodes.get(node_id), "sql", ""):
                return f"the compiled SQL of '{node_id}' would change"
        return ""

    return differs


def source_but(source: Source, new: str) -> Differs:
    """Return what compares the models, and what is read from a source that has another name."""

    def differs(before: Manifest, after: Manifest) -> str:
        other = after.nodes.get(f"source.{source.source}.{new}")
        if not isinstance(other, Source) or replace(other.spec, name=source.spec.name) != source.spec:
            return "the source would read something else, as it is found by its name"
        for model in before.models:
            columns = [(one.name, one.type) for one in after.model(model.name).columns]
            if columns != [(one.name, one.type) for one in model.columns]:
                return f"columns of '{model.name}' would change"
        return ""

    return differs
