"""How tests are handed to processes: by names that exist, and each server in one place."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import distribution
from tests.lab import REPOSITORY


def item(node_id: str, *fixtures: str) -> Any:
    return SimpleNamespace(nodeid=node_id, fixturenames=fixtures)


@pytest.mark.parametrize("path", [path for paths in distribution._SHARED.values() for path in paths])
def test_what_shares_a_process_exists(path: str) -> None:
    assert (REPOSITORY / path).exists()
    assert (REPOSITORY / path).is_dir() == path.endswith("/")


@pytest.mark.parametrize("name", distribution._FIRST)
def test_what_begins_first_exists_and_is_a_part(name: str) -> None:
    assert name in distribution._SHARED or distribution.unit_of(f"{name}::test") == name
    assert name in distribution._SHARED or (REPOSITORY / name).is_file()


def test_files_of_a_server_are_one_part_and_others_are_parts_of_their_own() -> None:
    ids = [
        "tests/kafka/test_crash.py::test_a[x@y]",
        "tests/example/test_kafka.py::test_b",
        "tests/pages/test_index.py::test_c",
    ]
    assert [distribution.unit_of(one) for one in ids] == ["kafka", "kafka", "tests/pages/test_index.py"]


def test_a_server_that_would_start_in_a_second_process_is_an_error() -> None:
    right, wrong = item("tests/kafka/test_x.py::test_a", "lab", "broker"), item("tests/cli/test_x.py::test_b", "broker")
    assert distribution.misplaced([right, item("tests/cli/test_x.py::test_c", "lab")]) == []
    (found,) = distribution.misplaced([right, wrong])
    assert found == "tests/cli/test_x.py::test_b starts 'broker': add its file to kafka in tests/distribution.py"


def test_long_parts_come_first_and_stay_whole() -> None:
    ids = [
        "tests/cli/test_init.py::test_a", "tests/kafka/test_crash.py::test_b", "tests/cli/test_watch.py::test_c",
        "tests/compile/test_cache.py::test_d", "tests/kafka/test_batch.py::test_e",
    ]  # fmt: skip
    items = [item(one) for one in ids]
    distribution.in_order(items)
    assert [one.nodeid[-1] for one in items] == ["b", "e", "c", "a", "d"]


def test_files_without_a_chosen_test_are_passed_over() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert "-m 'not ($(FAST)) $(NIGHTLY)'" in makefile
    assert "\nFAST := not spark and not browser\n" in makefile
    names = ("test_rooms.py", "pages/test_tutorial.py", "runtime/test_crash.py", "browser/test_live_page.py")
    paths = [REPOSITORY / "tests" / name for name in names]

    def passed_over(marks: str) -> list[bool]:
        return [distribution.is_passed_over(path, marks) for path in paths]

    assert passed_over("not (not spark and not browser) and not nightly") == [True, False, False, False]
    assert passed_over("not spark and not browser and not slow") == [False, False, True, True]
    assert passed_over("") == [False] * 4
    assert passed_over("spark") == [False] * 4
