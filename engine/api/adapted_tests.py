"""Data tests as the options of a run want them, whatever their configuration says."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.node_ids import rest_of, shown_name

if TYPE_CHECKING:
    from engine.compile import DataTest, Manifest, Target


def with_adapted_tests(
    manifest: Manifest, nodes: Iterable[str], target: Target, *, store_failures: bool, warnings_fail: bool
) -> Manifest:
    """Return the manifest with the data tests of a run changed.

    Args:
        manifest: the compiled project.
        nodes: ids of what the run has.
        target: whose catalog holds the tables of failing rows.
        store_failures: each test keeps its failing rows in a table.
        warnings_fail: a test that would warn fails, and what depends on it is skipped.
    """
    from engine.compile import DataTest

    if not (store_failures or warnings_fail):
        return manifest
    tests = [node for i in nodes if isinstance(node := manifest.nodes[i], DataTest)]
    if store_failures:
        names = Counter(shown_name(i).lower() for i in manifest.nodes if i.startswith("test."))
        tests = [_storing(test, target, shared=names[test.name.lower()] > 1) for test in tests]
    if warnings_fail:
        tests = [_failing(test) for test in tests]
    # Nodes that nobody asks for need not be decoded.
    return replace(manifest, nodes=ChainMap({test.id: test for test in tests}, manifest.nodes))  # type: ignore[arg-type]


def _storing(test: DataTest, target: Target, *, shared: bool) -> DataTest:
    """The test with a table for its failing rows; `shared`: others have its name."""
    from engine.compile.declarations.failing_rows import failing_rows

    own = test.id.rpartition(".")[2] if rest_of(test.id) != test.name else test.kind
    table = f"{test.name}_{own}" if shared else test.name
    # Rows that are kept are written by the query, also if there are none.
    return test if test.stored else replace(test, stored=failing_rows(target, table), look=None)


def _failing(test: DataTest) -> DataTest:
    from engine.compile import Severity

    warn = test.warn_if or "!= 0"
    bounds = (warn,) if test.severity is Severity.WARN else (warn, test.error_if or "!= 0")
    return replace(test, severity=Severity.ERROR, error_if=" or ".join(dict.fromkeys(bounds)))
