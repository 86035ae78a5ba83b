"""Which models stage their rows until their tests have passed (`publish: on_tests_pass`)."""

from __future__ import annotations

from collections.abc import Iterable

from engine.compile import DataTest, Manifest, Model
from engine.compile.nodes.model_settings import Publish


def waits(model: Model) -> bool:
    """Whether the rows of a model wait for its tests."""
    return model.write.publish is Publish.ON_TESTS_PASS


def decided_by_tests(manifest: Manifest, nodes: Iterable[str]) -> list[Model]:
    """The models that are not part of a run, and of which rows may wait for tests that are."""
    chosen = set(nodes)
    found = {test.model for i in chosen if isinstance(test := manifest.nodes[i], DataTest)} - chosen
    return [model for i in sorted(found) if isinstance(model := manifest.nodes[i], Model) and waits(model)]
