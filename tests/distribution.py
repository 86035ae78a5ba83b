"""Which tests of `make test` share a process, and which begin first.

A process runs a file as a whole, with the fixtures of its module and one Spark session; files that need the same server
run in the same process, so that it starts once. The parts that take longest begin first: at the end all are busy.

pytest-xdist has `xdist_group` for that, which pytest 9.2 ignores silently (pytest-xdist, issue 1386): each process
started each server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

# What files and folders share. Those of `jvms` end the session that the others share.
_SHARED = {
    "kafka": (
        "tests/kafka/", "tests/example/test_kafka.py", "tests/fault_injection/test_matrix.py",
        "tests/histories/test_topic.py", "tests/runtime/test_freshness.py", "tests/sinks/test_kafka_delivery.py",
        "tests/sources/test_avro_decode.py",
        "tests/sources/test_avro_kafka.py", "tests/sources/test_examples.py", "tests/sources/test_inspect.py",
        "tests/sources/test_registry.py", "tests/sources/test_upstream_columns.py",
    ),
    "jvms": ("tests/spark/", "tests/api/test_runs.py", "tests/security/test_other_users.py"),
    "catalogs": ("tests/catalogs/", "tests/object_store/", "tests/store_faults/"),
    "browser": ("tests/browser/",),
    "cluster": ("tests/cluster/",),
}  # fmt: skip
# What a process starts once, by the fixture's name, and where it may be used.
_STARTING = {
    "broker": {"kafka"}, "registry": {"kafka"}, "s3_server": {"catalogs"}, "postgres_server": {"catalogs"},
    "rest_server": {"catalogs"}, "cluster": {"cluster"}, "browser": {"browser"},
}  # fmt: skip
# The longest first, by what was measured; the others follow in their order.
_FIRST = (
    "kafka", "catalogs", "tests/cli/test_start.py", "jvms", "browser",
    "tests/runtime/test_renamed_from.py", "tests/sources/test_files.py", "tests/runtime/test_rebuild.py", "cluster",
    "tests/runtime/test_change_log.py",
    "tests/runtime/test_bad_records.py", "tests/runtime/test_rollback.py", "tests/sources/test_file_names.py",
    "tests/runtime/test_renamed.py", "tests/runtime/test_extract_history.py", "tests/runtime/test_clone.py",
    "tests/runtime/test_joins.py", "tests/runtime/test_state_edits.py", "tests/example/test_build.py",
    "tests/fault_injection/test_catalog.py", "tests/fault_injection/test_killed.py", "tests/cli/test_watch.py",
    "tests/runtime/test_history.py",
    "tests/runtime/test_first_event.py", "tests/unit_tests/test_runs.py",
)  # fmt: skip


# What `make test` chooses its halves by. Of the second a file has a test if its text names a mark, of the first unless
# all of its tests have one.
_FAST, _REST = "not spark and not browser", "not (not spark and not browser)"
_MARKED = re.compile(r"\bmark\.(spark|browser)\b")
_ALL_MARKED = re.compile(r"^pytestmark = .*\bmark\.(spark|browser)\b", re.MULTILINE)


def is_passed_over(path: Path, marks: str) -> bool:
    """Whether a file has no test that a choice of marks takes, as far as its text says; those of browsers have a folder.

    Args:
        path: of a file or folder.
        marks: the value of `-m`.
    """
    if not marks.startswith((_FAST, _REST)) or not path.name.startswith("test_") or path.suffix != ".py":
        return False
    text, of_browser = path.read_text(encoding="utf-8"), path.parent.name == "browser"
    if marks.startswith(_REST):
        return not of_browser and not _MARKED.search(text)
    return of_browser or bool(_ALL_MARKED.search(text))


def unit_of(node_id: str) -> str:
    """What a test runs together with: a name of `_SHARED`, or its file."""
    file = node_id.partition("::")[0]
    return next((name for name, paths in _SHARED.items() if file.startswith(paths)), file)


def misplaced(items: Iterable[pytest.Item]) -> list[str]:
    """Tests that start something in a process where it is not shared, as lines for people."""
    found = []
    for item in items:
        for name in getattr(item, "fixturenames", ()):
            if name in _STARTING and unit_of(item.nodeid) not in _STARTING[name]:
                wanted = " or ".join(sorted(_STARTING[name]))
                found.append(f"{item.nodeid} starts '{name}': add its file to {wanted} in tests/distribution.py")
    return found


class Distribution(LoadScopeScheduling):
    """Hands parts to processes, the longest first."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def in_order(items: list[pytest.Item]) -> None:
    """Sort tests by when their parts begin; xdist takes the parts in the order of their first tests."""
    rank = {name: number for number, name in enumerate(_FIRST)}
    items.sort(key=lambda item: rank.get(unit_of(item.nodeid), len(rank)))
