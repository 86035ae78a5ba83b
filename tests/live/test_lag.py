"""What a plan finds unread, as the lag of a status: of topics, the times of the records are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import SetupError
from engine.live.lag import Lag, LagReader, seconds_unread
from engine.plan import Action, ActionKind, Plan
from engine.plan.actions.action import Unread, UnreadRecords
from engine.sources import Place, SourceSpec, source_traits, traits
from engine.sources.spec import ClusterOffsets

PLACE = Place(Path(), lambda _: {})
SPEC = SourceSpec("shop.events", "kafka", "", settings={"connection": "main", "topic": "events"})


def lags(reader: LagReader, *unread: Unread) -> tuple[Lag, ...]:
    return reader.lags(Plan({"model.m": Action("model.m", ActionKind.RESUME, unread=unread)}), PLACE)["model.m"]


def test_of_a_model_behind_another_that_will_run_counts_what_is_there_now() -> None:
    found = lags(LagReader(), Unread("m", "snapshots", present=2, oldest_at=5.0), Unread("n", "snapshots", present=0))
    assert found == (Lag("m", "snapshots", 2, 5.0), Lag("n", "snapshots", 0))
    assert seconds_unread(found, 12.0) == 7.0


class Times:
    """Answers as a broker, or not."""

    def __init__(self) -> None:
        self.asked = 0

    def oldest(
        self, _: SourceSpec, __: Place, offsets: Sequence[Mapping[str, Any]], ___: ClusterOffsets
    ) -> Mapping[tuple[str, int], float]:
        self.asked += 1
        if not offsets:
            raise SetupError("kafka-unreachable", "no broker", "")
        return {("events", int(p)): float(at) for p, at in offsets[0]["events"].items()}

    def close(self) -> None:
        self.asked = -1


def test_the_oldest_record_of_all_partitions_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times()
    known = replace(source_traits("kafka"), unread_times=lambda: times)
    monkeypatch.setattr("engine.sources.source_traits", lambda _: known)
    reader, topics = LagReader(), ClusterOffsets("c")

    def of(*offsets: Mapping[str, Any]) -> float | None:
        (found,) = lags(reader, Unread("e", "offsets", 3, records=UnreadRecords(SPEC, offsets, topics)))
        return found.oldest_at

    assert (of({"events": {"0": 9, "1": 4}}), of({"events": {}}), of()) == (4.0, None, None)
    assert lags(reader, Unread("e", "offsets", 0)) == (Lag("e", "offsets", 0),)
    assert times.asked == 3
    reader.close()
    assert times.asked == -1
    assert traits.UNKNOWN.unread_times is None
