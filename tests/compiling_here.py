"""Which tests without Java compile in the process of the test.

A compilation is done in a forked process (docs/design/005), which writes into pages that it shares with the process of the
tests: copying these took four times as long as compiling a project of one model (3,600 pages of 4 kB).
What the work gives, and what it raises, is pickled here as it is there. Tests of the process itself and of its limits
have it, and so have all tests with Spark, and all commands that a test starts. With FORKED=1, as in `make nightly`,
every test has it.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

# What is about the process: its limits, its end, what it logs, what is a fork of what.
FORKED = (
    "tests/cli/test_live_lines.py", "tests/compile/test_cache.py", "tests/compile/test_workers.py",
    "tests/security/test_bombs.py", "tests/security/test_fuzz.py", "tests/security/test_hostile_project.py",
    "tests/security/test_secrets_of_targets.py", "tests/security/test_template_attacks.py",
)  # fmt: skip


def compiles_here(item: pytest.Item) -> bool:
    """Whether no process is forked for what a test compiles."""
    marked = any(item.get_closest_marker(name) for name in ("spark", "browser"))
    return not os.environ.get("FORKED") and not marked and not item.nodeid.startswith(FORKED)


def sent(work: Callable[..., Any], *arguments: Any) -> Any:
    """What some work gives or raises, as it would come from a forked process."""
    try:
        value = work(*arguments)
    except Exception as error:
        raise pickle.loads(ForkingPickler.dumps(error)) from error
    return pickle.loads(ForkingPickler.dumps(value))
