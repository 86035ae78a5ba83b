"""How a model differs from what wrote its table last, as records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.compile import Model
from engine.compile.nodes.facts import Facts
from engine.errors import Diagnostic
from engine.plan import source_changes
from engine.plan.deployed.deployed_facts import LastWriter
from engine.plan.source_changes import StreamSource


class Change(StrEnum):
    NEW = "new"
    UNCHANGED = "unchanged"
    FORWARD = "forward"
    ADDITIVE = "additive"
    REBUILT = "rebuilt"
    STATE_BREAKING = "state-breaking"
    SOURCE_CHANGED = "source-changed"
    IDENTITY_CHANGED = "identity-changed"
    KEY_CHANGED = "key-changed"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a model differs from its last writer; `refusal`: why it cannot continue with that; None: it can."""

    change: Change
    reasons: tuple[str, ...] = ()
    refusal: Diagnostic | None = None
    kind_changed: bool = False
    discarded: str = ""
    before: Facts | None = None


@dataclass(frozen=True, slots=True)
class StreamsRead:
    before: Sequence[StreamSource]
    now: Sequence[StreamSource]
    difference: str | None

    @classmethod
    def compare(cls, model: Model, writer: LastWriter, streams: Sequence[StreamSource] | None) -> StreamsRead:
        """Compare what a checkpoint has recorded with what a query reads now; without a record the facts."""
        recorded_sources = writer.recorded_sources
        if recorded_sources is not None and streams is not None:
            reason = source_changes.difference(recorded_sources.streams, streams, ordered=recorded_sources.textual)
            return cls(recorded_sources.streams, streams, reason)
        before = source_changes.of_facts(writer.facts) if writer.facts else ()
        now = source_changes.of_facts(model.facts) if writer.facts else ()
        return cls(before, now, source_changes.difference(before, now, ordered=False))
