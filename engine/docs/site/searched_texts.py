"""The texts that the site's search box looks through beside names."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.manifest import Model
from engine.docs.site.column_trace import own_columns
from engine.docs.site.site_data import Facts, SiteNode


def text_records(facts: Facts) -> Iterator[list[list[str]]]:
    """Yield for each node, in the order of their numbers, its texts: what each is, its column if any, the text."""
    for node in facts.nodes:
        yield [[what, column, text] for what, column, text in _texts(facts, node) if text.strip()]


def _texts(facts: Facts, node: SiteNode) -> Iterator[tuple[str, str, str]]:
    yield "description", "", node.description
    if isinstance(node, Exposure):
        yield "exposure", "", " ".join([node.label, node.url, *(str(value) for value in node.owner.values())])
        return
    for column in own_columns(node):
        yield "description", column.name, column.description
    for test in facts.tests.get(node.id, ()):
        yield "test", test.column or "", f"{test.name} {test.description}"
    for unit_test in facts.unit_tests.get(node.id, ()):
        yield "unit test", "", f"{unit_test.name} {unit_test.description}"
    if isinstance(node, Model):
        yield "SQL", "", node.raw_sql
