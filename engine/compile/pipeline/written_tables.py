"""The tables that a project writes: no two writers may have one name, in any letter case, as in most catalogs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.compile.nodes.manifest import DataTest, Node
from engine.compile.nodes.model_interface import ModelInterface
from engine.errors import Diagnostic, Location
from engine.relations import Relation

# Staging tables and initial snapshots beside a model's table.
_BESIDE = re.compile(r"(?P<table>.+)__(?:g\d++|seed\d++_(?:(?!__seed)\w)+)")


@dataclass(frozen=True, slots=True)
class _Writer:
    """What writes a table: a model, or a test that keeps its failing rows."""

    relation: Relation
    called: str
    file: str
    place: Location
    node: str

    @property
    def key(self) -> tuple[str, str]:
        """The table, as a catalog without letter case names it."""
        return self.relation.schema.lower(), self.relation.name.lower()

    @property
    def written_at(self) -> str:
        """Where it is: a test is among others of its file."""
        return str(self.place) if self.called.startswith("the test") else self.file


def shared_tables(faces: Iterable[ModelInterface], tests: Iterable[Node]) -> Iterator[Diagnostic]:
    """Yield findings about tables that have several writers: models, and data tests that keep rows."""
    models = [_of_model(face) for face in faces if face.in_catalog]
    writers: dict[tuple[str, str], _Writer] = {}
    for one in [*models, *_of_tests(tests)]:
        first = writers.setdefault(one.key, one)
        if first is not one:
            message = f"{one.called} and {first.called} ({first.written_at}) both write {one.relation}"
            hint = "Give one of them another 'alias' or 'schema'."
            if one.called.startswith("the test"):
                hint = "Give the test another 'name'."
            yield Diagnostic("duplicate-table", message, hint, node=one.node, location=one.place)
    yield from _internal_name_clashes(models, writers)


def renamed_twice(faces: Iterable[ModelInterface]) -> Iterator[Diagnostic]:
    """Findings about models that are to continue a table that another model of the project has, or is to continue."""
    every = [face for face in faces if face.in_catalog]
    first: dict[str, ModelInterface] = {}
    for face in every:
        if not (name := face.renamed_from.lower()):
            continue
        place = Location(face.file)
        owner = next((other for other in every if other is not face and name in _table_names(other)), None)
        if owner is not None:
            message = f"'{face.name}' is renamed from '{face.renamed_from}', but that is '{owner.name}' ({owner.file})"
            hint = (
                f"Remove {owner.file}; or 'renamed_from', if each target was built since and '{owner.name}' is a new "
                "model of that name."
            )
            yield Diagnostic("renamed-from", message, hint, node=face.name, location=place)
        elif (other := first.setdefault(name, face)) is not face:
            message = f"'{face.name}' and '{other.name}' ({other.file}) are both renamed from '{face.renamed_from}'"
            hint = "One of them continues its table: remove 'renamed_from' from the other, which begins with a new one."
            yield Diagnostic("renamed-from", message, hint, node=face.name, location=place)


def _table_names(face: ModelInterface) -> set[str]:
    relation = face.relation
    whole = f"{relation.schema}.{relation.name}"
    return {name.lower() for name in (face.name, relation.name, whole, f"{relation.catalog}.{whole}")}


def _internal_name_clashes(models: Iterable[_Writer], writers: dict[tuple[str, str], _Writer]) -> Iterator[Diagnostic]:
    for one in models:
        match = _BESIDE.fullmatch(one.relation.name)
        owner = writers.get((one.key[0], match["table"])) if match else None
        if owner is not None:
            message = f"{one.called} writes {one.relation}, a name that {owner.called} ({owner.file}) needs"
            hint = "Set another 'alias'; <table>__g<n> is a full refresh, <table>__seed<n>_<name> an initial snapshot."
            yield Diagnostic("duplicate-table", message, hint, node=one.node, location=one.place)


def _of_model(face: ModelInterface) -> _Writer:
    return _Writer(face.relation, f"'{face.name}'", face.file, face.place or Location(face.file), face.name)


def _of_tests(tests: Iterable[Node]) -> Iterator[_Writer]:
    for test in tests:
        if isinstance(test, DataTest) and test.stored is not None:
            place = test.location or Location(test.file)
            yield _Writer(test.stored, f"the test '{test.name}'", test.file, place, test.name)
