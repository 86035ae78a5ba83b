"""Which tests call which functions: pytest with this plugin notes it, one process at a time.

python -m pytest -p tests.mutants.callers --callers FILE ...
"""

from __future__ import annotations

import json
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
_ENGINE = f"{ROOT}/engine/"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--callers", type=Path)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--callers") is not None:
        config.pluginmanager.register(_Callers(config.getoption("--callers")))


class _Callers:
    """Notes for each function of the engine, by file and first line, the tests in which it ran."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._called: dict[str, list[str]] = defaultdict(list)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        seen: set[Any] = set()
        # Built-in functions arrive as other events; a code object is enough to know a function by.
        note = lambda frame, event, _: seen.add(frame.f_code) if event == "call" else None  # noqa: E731
        sys.setprofile(note)
        threading.setprofile(note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            for code in seen:
                if code.co_filename.startswith(_ENGINE):
                    place = f"{code.co_filename[len(str(ROOT)) + 1 :]}:{code.co_firstlineno}"
                    self._called[place].append(item.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps(self._called), encoding="utf-8")
