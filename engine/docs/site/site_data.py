"""What the site is made from: the project, its last run, its tables, and what is looked up again and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.guarantee import Guarantee, guarantees
from engine.compile.nodes.manifest import DataTest, Manifest, Model, Source
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.docs.site.freshness_status import FreshnessStatus
from engine.docs.site.graph_layout import Link, links_of
from engine.docs.site.last_run import LastRun
from engine.docs.site.table_statistics import StoredTable

Record = dict[str, Any]
# What has a page.
SiteNode = Source | Model | Exposure
_Test = TypeVar("_Test", DataTest, UnitTest)


@dataclass(frozen=True)
class Facts:
    """Everything that the site shows: the project, its last run, its tables, freshness, and the time.

    `watermarks` has that of each stream, by its id.
    """

    manifest: Manifest
    run: LastRun
    tables: Mapping[str, StoredTable]
    freshness: Mapping[str, FreshnessStatus]
    at: datetime
    watermarks: Mapping[str, datetime] = field(default_factory=dict)

    @cached_property
    def nodes(self) -> tuple[SiteNode, ...]:
        """The nodes that have a page, sources first, exposures last."""
        return (*self.manifest.sources, *self.manifest.models, *self.manifest.exposures)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Their positions by id: nodes are referenced by number."""
        return {node.id: number for number, node in enumerate(self.nodes)}

    @cached_property
    def links(self) -> dict[Link, bool]:
        return links_of(self.manifest)

    @cached_property
    def promised(self) -> Mapping[str, Guarantee]:
        return guarantees(self.manifest)

    @cached_property
    def tests(self) -> Mapping[str, list[DataTest]]:
        return _by_model(self.manifest.tests)

    @cached_property
    def unit_tests(self) -> Mapping[str, list[UnitTest]]:
        return _by_model(self.manifest.unit_tests)

    def all_tests(self, model: str) -> Iterator[DataTest | UnitTest]:
        yield from self.tests.get(model, ())
        yield from self.unit_tests.get(model, ())

    def watermark(self, node: str) -> datetime | None:
        """How far a stream is in event time: by its checkpoint, else by its last run."""
        run = self.run.nodes.get(node)
        return self.watermarks.get(node) or (run.watermark if run else None)

    @cached_property
    def found(self) -> Mapping[str, list[int]]:
        """The places of a node's findings among all, by the node's name."""
        places: dict[str, list[int]] = {}
        for place, diagnostic in enumerate(self.manifest.diagnostics):
            places.setdefault(diagnostic.node or "", []).append(place)
        return places


def _by_model(tests: Iterable[_Test]) -> dict[str, list[_Test]]:
    by_model: dict[str, list[_Test]] = {}
    for test in tests:
        by_model.setdefault(test.model, []).append(test)
    return by_model


def slim(record: Mapping[str, Any]) -> Record:
    return {key: value for key, value in record.items() if value not in (None, "", False, [], {}, ())}


def moment(at: datetime | None) -> int | None:
    """A time as milliseconds since 1970, as JavaScript has it."""
    return None if at is None else round(at.timestamp() * 1000)
