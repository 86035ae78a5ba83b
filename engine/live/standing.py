"""How a node of `engine start` is doing, in a word, with the reasons: the same on all pages and in `engine status`.

A model and the tests of it that have turns of their own are one thing to look at: the model's word covers both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.events import NodeState
from engine.node_ids import TESTS, shown_name

if TYPE_CHECKING:
    from engine.live.status_record import NodeRecord

# What a failing or stalled node does meanwhile.
_MEANWHILE = {
    NodeState.RUNNING: "running",
    NodeState.QUEUED: "queued",
    NodeState.WAITING: "waiting",
    NodeState.PAUSED: "paused",
    NodeState.STANDBY: "standby",
}
_RETRIES = {**_MEANWHILE, NodeState.RUNNING: "retrying", NodeState.BACKING_OFF: "backing off"}
_TONES = {NodeState.RUNNING: "good", NodeState.PAUSED: "warn", NodeState.WAITING: "warn"}


@dataclass(frozen=True, slots=True)
class Standing:
    """How a node is doing.

    Attributes:
        word: for example `idle`, `failing, retrying`, `stalled, queued`, `2 tests failing`.
        tone: `bad`, `warn`, `good`, or empty for nothing of note.
        reasons: why somebody should look at it, each once; empty: nobody needs to.
    """

    word: str
    tone: str
    reasons: tuple[str, ...] = ()


def standings(nodes: Iterable[NodeRecord]) -> dict[str, Standing]:
    by_id = {node["node"]: node for node in nodes}
    return {id_: standing(node, by_id.get(f"{TESTS}{id_}")) for id_, node in by_id.items()}


def standing(node: NodeRecord, tests: NodeRecord | None = None) -> Standing:
    reasons = tuple(dict.fromkeys(filter(None, _reasons(node, tests))))
    state = NodeState(node["state"])
    failing = {**node["tests_failing"], **(tests["tests_failing"] if tests else {})}
    if state is NodeState.FAILED:
        return Standing("failed", "bad", reasons)
    if node["failures"]:
        return Standing(_with_meanwhile("failing", _RETRIES.get(state)), "bad", reasons)
    if failing:
        word = f"{len(failing)} {'test' if len(failing) == 1 else 'tests'} failing"
        return Standing(_with_meanwhile(word, _MEANWHILE.get(state)), "bad", reasons)
    if node["health"] == "failed" or (tests is not None and tests["health"] == "failed"):
        # The tests could not be run.
        return Standing(_with_meanwhile("failing", _MEANWHILE.get(state)), "bad", reasons)
    if node["health"] == "stalled":
        return Standing(_with_meanwhile("stalled", _MEANWHILE.get(state)), "warn", reasons)
    return Standing(state.value, _TONES.get(state, ""), reasons)


def _with_meanwhile(word: str, meanwhile: str | None) -> str:
    return f"{word}, {meanwhile}" if meanwhile else word


def _reasons(node: NodeRecord, tests: NodeRecord | None) -> Iterator[str]:
    if node["failures"] or node["state"] == NodeState.FAILED:
        yield node["last_error"] or node["reason"]
    yield from failing_tests(node["tests_failing"])
    if tests is not None:
        # The error of a turn of tests is that of the first one that failed.
        yield from failing_tests(tests["tests_failing"])
        if tests["health"] == "failed" and not tests["tests_failing"] and not node["tests_failing"]:
            yield f"its tests cannot be run: {tests['last_error'] or tests['reason']}"
    if node["stalled"]:
        yield node["stalled"]


def failing_tests(failing: Mapping[str, str]) -> Iterator[str]:
    for test, message in failing.items():
        yield f"test {shown_name(test)} fails: {message}" if message else f"test {shown_name(test)} fails"
