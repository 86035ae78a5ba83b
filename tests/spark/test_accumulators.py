"""A session's end does not wait for PySpark's server of accumulators."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.spark.session import end_accumulators_at_once


@pytest.mark.slow
@pytest.mark.parametrize("by_path", [False, True], ids=["tcp", "unix"])
def test_the_server_ends_at_once_and_for_good(tmp_path: Path, by_path: bool) -> None:
    from pyspark.accumulators import _start_update_server

    seconds = []
    for number in range(4):
        path = tmp_path / f"{number}.sock"
        server: Any = _start_update_server("token", by_path, str(path) if by_path else None)
        # Its thread waits for connections by now.
        time.sleep(0.05)
        context: Any = SimpleNamespace(_accumulatorServer=server)
        end_accumulators_at_once(context)
        begin = time.monotonic()
        server.shutdown()
        seconds.append(time.monotonic() - begin)
        assert server.fileno() == -1
        assert not path.exists()
    # Without, it takes what is left of half a second: 0.45 s here.
    assert min(seconds) < 0.2


def test_a_context_without_a_server_is_left_alone() -> None:
    context: Any = SimpleNamespace(_accumulatorServer=None)
    end_accumulators_at_once(context)
    assert vars(context) == {"_accumulatorServer": None}
