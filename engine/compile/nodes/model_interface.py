"""What the models of a project must know of each other before they are finished."""

from __future__ import annotations

from dataclasses import dataclass

from engine.compile.nodes.materialization import Materialized
from engine.errors import Location
from engine.relations import Relation


@dataclass(frozen=True, slots=True)
class ModelInterface:
    """What the others must know of a model before it is finished.

    `kind` None: its settings could not be read. `rewritten`: why its rows change once written, so that no stream can
    read it. `selects`: the names its SELECT gives, in lower case, as far as they are in the text. `merges_like`: the
    stream by which its rows are replaced if that is a source of changes.
    """

    name: str
    file: str
    relation: Relation
    kind: Materialized | None
    enabled: bool
    rewritten: str
    selects: tuple[str, ...]
    reads: tuple[str, ...]
    place: Location | None
    renamed_from: str = ""
    merges_like: str = ""

    @property
    def id(self) -> str:
        return f"model.{self.name}"

    @property
    def in_catalog(self) -> bool:
        return self.kind is None or self.kind.traits.in_catalog

    @property
    def is_inlined(self) -> bool:
        return self.kind is not None and self.kind.traits.inlined
