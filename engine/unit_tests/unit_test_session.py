"""What a run needs for its unit tests: something that runs one, and the settings of a session for them alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import Target
from engine.plan.test_passes.compile_overrides import Versions
from engine.unit_tests.run_unit_test import UnitTests
from engine.unit_tests.temporary_lake import throw_away

if TYPE_CHECKING:
    from engine.runtime.turns import RunUnit


_OPTIONS = "spark.driver.extraJavaOptions"


@contextmanager
def run_units(versions: Versions, root: Path) -> Iterator[RunUnit]:
    """What runs a unit test of a project, in a lake that goes at the end.

    Args:
        versions: the compiled project, and as tests want it that override something.
        root: its folder.
    """
    with throw_away() as lake:
        yield UnitTests(versions, root, lake).run


def local_target(target: Target) -> Target:
    """The target with Spark on this machine, for runs of unit tests alone: their lake is a folder here.

    Such a session lives for a minute or so, in which Java's second compiler and its parallel collector cost more than
    they give.
    """
    conf = {
        **target.conf,
        _OPTIONS: f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {target.conf.get(_OPTIONS, '')}".strip(),
    }
    return replace(target, master=target.master if target.master.startswith("local") else "local[*]", conf=conf)
