"""The last run, read from run_results.json: every key may be missing or of another type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from engine.compile.manifest import Materialized, Node
from engine.docs import words
from engine.events import Status

_COUNTS = {
    "rows_in": "Rows in",
    "rows_out": "Rows out",
    "late": "Late rows",
    "batches": "Micro-batches",
    "state_rows": "Rows in state",
}


# What is not measured there: a batch's input, a view's rows.
_NOT_OF = {
    Materialized.STREAMING_TABLE: frozenset[str](),
    Materialized.TABLE: frozenset({"Rows in", "Late rows", "Micro-batches", "Rows in state"}),
    Materialized.VIEW: frozenset(_COUNTS.values()),
}


class Tone(StrEnum):
    """How a status is to be taken."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    PLAIN = "plain"


_TONES = {
    Status.SUCCESS: Tone.GOOD,
    Status.UNCHANGED: Tone.GOOD,
    Status.PASS: Tone.GOOD,
    Status.WARN: Tone.WARN,
    Status.SKIPPED: Tone.WARN,
    Status.FAIL: Tone.BAD,
    Status.ERROR: Tone.BAD,
}


@dataclass(frozen=True, slots=True)
class Fact:
    """A term and what it is."""

    term: str
    text: str


@dataclass(frozen=True, slots=True)
class NodeRun:
    """How a node ended."""

    status: str
    tone: Tone
    message: str = ""
    facts: tuple[Fact, ...] = ()

    def measured(self, kind: Materialized) -> NodeRun:
        """The same without the numbers that mean nothing for a kind of model."""
        return replace(self, facts=tuple(fact for fact in self.facts if fact.term not in _NOT_OF[kind]))


@dataclass(frozen=True, slots=True)
class LastRun:
    """A run: when it was, how its nodes ended by unique id, and its results counted in words."""

    at: str = ""
    nodes: Mapping[str, NodeRun] = field(default_factory=dict)
    summary: str = ""

    def of(self, node: Node, project: str) -> NodeRun | None:
        """How a node ended; ids may hold the project's name, as dbt's do."""
        kind, _, name = node.id.partition(".")
        return self.nodes.get(node.id) or self.nodes.get(f"{kind}.{project}.{name}")


def read_results(results: Mapping[str, Any] | None) -> LastRun:
    """Read what run_results.json holds; nothing of it is required."""
    given = results if isinstance(results, Mapping) else {}
    listed = given.get("results")
    nodes: dict[str, NodeRun] = {}
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("unique_id"), str):
            nodes[item["unique_id"]] = _node(item)
    return LastRun(words.moment(_mapping(given, "metadata").get("generated_at")), nodes, _summary(nodes))


def _mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _node(item: Mapping[str, Any]) -> NodeRun:
    status, message = item.get("status"), item.get("message")
    word = status if isinstance(status, str) and status else "unknown"
    tone = _TONES[Status(word)] if word in set(Status) else Tone.PLAIN
    facts = () if word == Status.SKIPPED else tuple(_facts(item))
    return NodeRun(word, tone, message if isinstance(message, str) else "", facts)


def _facts(item: Mapping[str, Any]) -> Iterator[Fact]:
    response = _mapping(item, "adapter_response")
    for key, term in _COUNTS.items():
        if (number := _number(response.get(key))) is not None:
            yield Fact(term, f"{number:,.0f}")
    if watermark := words.moment(response.get("watermark")):
        yield Fact("Watermark", watermark)
    if (seconds := _number(item.get("execution_time"))) is not None:
        yield Fact("Took", f"{seconds:,.1f} s")


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _summary(nodes: Mapping[str, NodeRun]) -> str:
    models = Counter(run.status for key, run in nodes.items() if not key.startswith("test."))
    tests = Counter(run.status for key, run in nodes.items() if key.startswith("test."))
    parts = [f"{what}: {_counted(counts)}" for what, counts in (("models", models), ("tests", tests)) if counts]
    return "; ".join(parts)


def _counted(counts: Counter[str]) -> str:
    return words.listed(f"{count:,} {status}" for status, count in sorted(counts.items()))
