"""What a long-lived session keeps of the queries that ended."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest

from engine.runtime.streams import run_stream
from engine.runtime.writer import query_progress
from tests.lab import Lab, event
from tests.runtime.test_streams import HOURLY

pytestmark = pytest.mark.spark

# Py4J tells Java of each object that Python let go of, one at a time: behind those of all tests before.
_SECONDS = 180


def test_a_query_that_ended_is_let_go(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab.session is not None
    jvm: Any = lab.session.spark._jvm
    seen: list[Any] = []

    def watched(run: Any, model: Any, writer: Any, query: Any) -> Any:
        seen.append(jvm.java.lang.ref.WeakReference(query._jsq.streamingQuery()))
        return query_progress.Progress(run, model, writer, query)

    monkeypatch.setattr(run_stream, "Progress", watched)
    lab.model("hourly", HOURLY)
    for number in range(2):
        lab.land(f"file-{number}", [event(number, "10:00")])
        lab.build()
    assert len(seen) == 2

    ends = time.monotonic() + _SECONDS
    while any(query.get() is not None for query in seen) and time.monotonic() < ends:
        gc.collect()
        time.sleep(0.5)
        jvm.System.gc()
    assert [query.get() for query in seen] == [None, None]
