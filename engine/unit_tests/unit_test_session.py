"""What a run needs for its unit tests: something that runs one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.plan.test_passes.compile_overrides import Versions
from engine.unit_tests.run_unit_test import UnitTests
from engine.unit_tests.temporary_lake import throw_away

if TYPE_CHECKING:
    from engine.runtime.run_nodes import RunUnit


@contextmanager
def run_units(versions: Versions, root: Path) -> Iterator[RunUnit]:
    with throw_away() as lake:
        yield UnitTests(versions, root, lake).run
