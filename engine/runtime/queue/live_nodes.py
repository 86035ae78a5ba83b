"""What `engine start` keeps up to date: models, groups of tests and sinks, each with what makes it due."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from engine.compile import DataTest, Manifest, Model, Severity, Sink, Source, UnitTest
from engine.compile.nodes.model_settings import Publish
from engine.compile.types.cron import Schedule
from engine.node_ids import TESTS
from engine.plan.deployed.read_deployed import read_by

# Tests after each commit of a busy stream would read its table all the time.
_TESTS_EVERY = 30.0


@dataclass(frozen=True, slots=True)
class LiveNode:
    """A model, the tests of one, or a sink, as the queue sees it; tests have the id `tests.` + the tested id.

    `upstream` live nodes must have succeeded before its turn; `commit_triggers`, by their commits, and `sources`, by
    new input, make it due. `min_seconds` are between the beginnings of two turns. `schedule` None: it is due when
    something changed.
    """

    id: str
    run: tuple[str, ...]
    upstream: frozenset[str] = frozenset()
    commit_triggers: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    min_seconds: float = 0.0
    schedule: Schedule | None = None


@dataclass(slots=True)
class _Groups:
    with_model: dict[str, list[str]] = field(default_factory=dict)
    apart: dict[str, list[str]] = field(default_factory=dict)


def live_nodes(manifest: Manifest, nodes: Iterable[str], sinks: Iterable[str] = ()) -> dict[str, LiveNode]:
    """Return the live nodes of a selection (models, data and unit tests), in build order, and the sinks last."""
    selected_nodes = [manifest.nodes[i] for i in nodes]
    models = {n.id: n for n in selected_nodes if isinstance(n, Model) and n.in_catalog}
    groups = _group_tests(manifest, selected_nodes, models)
    live: dict[str, LiveNode] = {}
    for id_ in manifest.order:
        if (model := models.get(id_)) is not None:
            live[id_] = _model_node(manifest, model, models, groups)
    for tested, tests in groups.apart.items():
        live[TESTS + tested] = _tests_node(manifest, tested, tests, models)
    for id_ in sinks:
        if isinstance(sink := manifest.nodes[id_], Sink):
            live[id_] = _sink_node(manifest, sink, models, groups)
    return live


def _group_tests(manifest: Manifest, selected_nodes: Iterable[object], models: Mapping[str, Model]) -> _Groups:
    groups = _Groups()
    for test in selected_nodes:
        if isinstance(test, UnitTest) and test.model in models:
            groups.with_model.setdefault(test.model, []).append(test.id)
        elif isinstance(test, DataTest):
            model = manifest.nodes[test.model]
            staged = isinstance(model, Model) and model.write.publish is Publish.ON_TESTS_PASS and test.model in models
            # Staged rows are published by the last test of the same turn.
            (groups.with_model if staged else groups.apart).setdefault(test.model, []).append(test.id)
        elif isinstance(test, UnitTest):
            groups.apart.setdefault(test.model, []).append(test.id)
    return groups


def _model_node(manifest: Manifest, model: Model, models: Mapping[str, Model], groups: _Groups) -> LiveNode:
    trigger_ids = set(_triggers(manifest, model))
    upstream = _nearest_live(manifest, model.id, models.keys())
    blocking = {
        TESTS + i
        for i in upstream
        if any(model.id not in manifest.parents(test) for test in _blocking_tests(manifest, groups, i))
    }
    schedule = Schedule.of(model.operation.schedule) if model.operation.schedule else None
    return LiveNode(
        model.id,
        (*groups.with_model.get(model.id, ()), model.id),
        frozenset(upstream | blocking),
        frozenset(trigger_ids & models.keys()) if schedule is None else frozenset(),
        frozenset(i for i in trigger_ids if isinstance(manifest.nodes[i], Source)) if schedule is None else frozenset(),
        model.operation.trigger.seconds,
        schedule,
    )


def _blocking_tests(manifest: Manifest, groups: _Groups, tested: str) -> Iterator[str]:
    for test in groups.apart.get(tested, ()):
        if isinstance(node := manifest.nodes[test], DataTest) and node.severity is Severity.ERROR:
            yield test


def _sink_node(manifest: Manifest, sink: Sink, models: Mapping[str, Model], groups: _Groups) -> LiveNode:
    """A sink is due after each commit of its model; where tests may fail, once they have passed."""
    model = {sink.model} & models.keys()
    tests = {TESTS + i for i in model if any(_blocking_tests(manifest, groups, i))}
    return LiveNode(sink.id, (sink.id,), frozenset(model | tests), frozenset(tests or model))


def _tests_node(manifest: Manifest, tested: str, tests: Iterable[str], models: Mapping[str, Model]) -> LiveNode:
    read_ids = {tested, *(i for test in tests for i in read_by(manifest, manifest.nodes[test]))}
    for node in list(read_ids):
        if isinstance(model := manifest.nodes[node], Model) and not model.streaming:
            read_ids |= {i for i in read_by(manifest, model) if model.computed_when_read}
    sources = frozenset(i for i in read_ids if isinstance(manifest.nodes[i], Source))
    return LiveNode(
        TESTS + tested, tuple(tests), frozenset({tested} & models.keys()), frozenset(read_ids & models.keys()),
        sources, _TESTS_EVERY,
    )  # fmt: skip


def _triggers(manifest: Manifest, model: Model) -> Iterator[str]:
    streams = {item.node for item in model.inputs if item.stream}
    for node in read_by(manifest, model):
        if not model.streaming or node in streams:
            yield node
            yield from _inputs_behind(manifest, node)


def _inputs_behind(manifest: Manifest, node: str) -> Iterator[str]:
    model = manifest.nodes[node]
    if isinstance(model, Model) and model.is_inlined:
        for item in model.inputs:
            yield item.node
            yield from _inputs_behind(manifest, item.node)


def _nearest_live(manifest: Manifest, node: str, live_ids: Iterable[str]) -> set[str]:
    live = set(live_ids)
    nearest: set[str] = set()
    waiting = list(manifest.parents(node))
    while waiting:
        current = waiting.pop()
        if current in live:
            nearest.add(current)
        elif isinstance(manifest.nodes[current], Model):
            waiting += manifest.parents(current)
    return nearest
